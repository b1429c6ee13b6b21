#!/usr/bin/env trinity
-- Table 3 of the Trinity paper (Algorithms 2022, 15(4), 108): operators and edges of its networks as
-- TensorFlow 1.15's graphs, beside ours at both granularities.

local trinity = require 'trinity'

local options = trinity.options {
  'Sets the sizes of our graphs beside those that the Trinity paper states (table 3).',
  only = { default = '', help = "one model of the table; '': all" },
  optimiser = { default = 'momentum', help = 'sgd, momentum or adam' },
}

-- Operators and edges as the paper has them. It says nothing of how long its sentences are (PTB's have 21
-- words on average); with these lengths its sizes come out.
local paper = {
  { model = 'inception_v3', operators = 12745, edges = 21928 },
  { model = 'nasnet_large', operators = 18644, edges = 27505 },
  { model = 'pnasnet_large', operators = 14063, edges = 20718 },
  { model = 'gnmt', sequence = 15, operators = 8738, edges = 16564 },
  { model = 'nmt', sequence = 32, operators = 16432, edges = 24235 },
}

local function deviation(ours, theirs) return ('%+.1f %%'):format((ours / theirs - 1) * 100) end

local rows, layers = {}, {}
for _, row in ipairs(paper) do
  if options.only == '' or options.only == row.model then
    local function graph(granularity)
      return trinity.model(row.model, { sequence = row.sequence, granularity = granularity,
        optimiser = options.optimiser })
    end
    local layer, framework = graph 'layer', graph 'framework'
    local name = row.sequence and ('%s (sequence %d)'):format(row.model, row.sequence) or row.model
    rows[#rows + 1] = { name, tostring(row.operators), tostring(framework.operators),
      deviation(framework.operators, row.operators), tostring(row.edges), tostring(framework.edges),
      deviation(framework.edges, row.edges), tostring(framework.units) }
    layers[#layers + 1] = { name, tostring(layer.operators), tostring(layer.edges), tostring(layer.units) }
  end
end

if #rows == 0 then error(("option '--only': table 3 has no model '%s'"):format(options.only), 0) end
print "Granularity 'framework': the operations of one training step in TensorFlow 1.15. An edge is a tensor"
print 'and an operator that reads it, or a control dependency.\n'
print(trinity.format_table({ 'network', 'operators', 'ours', 'deviation', 'edges', 'ours', 'deviation', 'units' },
  rows))
print "\nGranularity 'layer', the same training step:\n"
print(trinity.format_table({ 'network', 'operators', 'edges', 'units' }, layers))
print(('\noptimiser %s; made by: trinity scripts/table3.lua'):format(options.optimiser))
