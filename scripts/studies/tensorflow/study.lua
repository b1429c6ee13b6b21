#!/usr/bin/env trinity
-- A network as the operations of one training step in TensorFlow 1.15: how many there are of each type. --save writes
-- the graph as JSON, which every command takes as a model.

local trinity = require 'trinity'
local settings = require 'trinity.command.settings'
local tensorflow = require 'studies.tensorflow'
local util = require 'trinity.base.util'

local options = trinity.options {
  "Builds a network as TensorFlow 1.15's operations of one training step.",
  'keeps no run',
  model = { default = 'inception_v3', position = true,
    help = 'inception_v3, nasnet_large, pnasnet_large, gnmt or nmt' },
  set = settings.of_model,
  batch_size = { default = 0, help = "samples of a step; 0: the model's own", min = 0, integer = true },
  save = { default = '', writes = '', help = 'a JSON file for the graph' },
}

local graph = tensorflow.load(options.model, util.merged(settings.read('set', options.set), {
  batch_size = options.batch_size > 0 and options.batch_size or nil }))
local counts = {}
for i = 1, graph.operators do
  local type = graph:operator(i).type
  counts[type] = (counts[type] or 0) + 1
end
print(('%s: %d operations, %d edges'):format(graph.name, graph.operators, graph.edges))
local rows = util.map(util.sorted_keys(counts), function(type) return { type, ('%d'):format(counts[type]) } end)
print(trinity.system.format_table({ 'type', 'operations' }, rows))
if options.save ~= '' then graph:save(options.save) end
