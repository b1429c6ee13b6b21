#!/usr/bin/env trinity
-- Table 4 of the Trinity article (Algorithms 2022, 15(4), 108) beside the simulator's: step times and
-- memory of its networks on its P100 cards, as TensorFlow 1.15's operations.

local trinity = require 'trinity'

local options = trinity.options {
  'Sets simulated step times and memory beside those that the Trinity article measured (table 4).',
  cluster = { default = 'p100_paper', help = 'a cluster that takes a count' },
  granularity = { default = 'framework', help = "framework (TensorFlow 1.15's operators) or layer" },
  only = { default = '', help = "one model of the table; '': all" },
}

-- What the article states, in its units (s, GB). one: step time on one card, or 'OOM'. Then per number of
-- cards: the expert's step time, and Trinity's step time, peak communication and peak memory. It states no
-- sizes of its translation networks: NMT has as many units here as make one card too small and two not, as
-- in the article. InceptionV3's single card is a riddle: TensorFlow's own benchmark (tensorflow/docs,
-- site/en/r1/guide/performance/benchmarks.md) trained it with 64 images on K80s, which have 12 GB. So is
-- NASNet-Large's (8): on two cards the article has 3.7 GB at most, twice which is no more than one card has.
local article = {
  { model = 'inception_v3', batch_size = 64, one = 'OOM', { 2, 0.75, 0.73, 5.6, 5.3 },
    { 4, 0.75, 0.75, 7.9, 3.4 } },
  { model = 'gnmt', batch_size = 64, one = 0.30, { 2, 0.42, 0.37, 1.0, 2.5 }, { 4, 0.51, 0.42, 1.9, 1.1 } },
  { model = 'nmt', batch_size = 64, hidden = 1728, one = 'OOM', { 2, 2.76, 2.76, 7.1, 7.2 },
    { 4, 2.81, 2.60, 4.4, 8.8 } },
  { model = 'nasnet_large', batch_size = 8, one = 'OOM', { 2, 2.10, 1.79, 6.1, 3.7 }, { 4, 2.12, 1.81, 7.2, 3.9 } },
  { model = 'nasnet_large', batch_size = 32, one = 'OOM', { 4, 'OOM', 5.21, 12.2, 11.3 } },
  { model = 'pnasnet_large', batch_size = 8, one = 1.45, { 2, 1.91, 1.70, 3.3, 6.3 }, { 4, 2.01, 1.71, 1.8, 6.0 } },
}

--- The network in as many parts as there are cards, as `contiguous` cuts it, or on one.
local function simulate(graph, cards)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster(('%sx%d'):format(options.cluster, cards)) }
  local found = trinity.methods.contiguous(problem, { quiet = true })
  return found.metrics, problem.lower_bound_s
end

local function time(value) return value == 'OOM' and value or ('%.2f'):format(value) end
local function gigabytes(bytes) return ('%.1f'):format(bytes / 1e9) end
local function simulated_time(metrics) return metrics.feasible and ('%.2f'):format(metrics.step_time_s) or 'OOM' end

--- What a cell of the article and the simulator say of each other.
local function verdict(published, metrics)
  if (published == 'OOM') == metrics.feasible then
    return metrics.feasible and 'differs: fits here' or 'differs: out of memory here'
  end
  if published == 'OOM' then return 'agrees' end
  local ratio = metrics.step_time_s / published
  return ('%s, %.2f times'):format(ratio <= 2 and ratio >= 0.5 and 'agrees' or 'differs', ratio)
end

local one, several = {}, {}
for _, row in ipairs(article) do
  if options.only == '' or options.only == row.model then
    local graph = trinity.model(row.model, { batch_size = row.batch_size, hidden = row.hidden,
      granularity = options.granularity })
    local name = ('%s (%d)'):format(row.model, row.batch_size)
    local metrics, bound_s = simulate(graph, 1)
    one[#one + 1] = { name, tostring(graph.operators), time(row.one), simulated_time(metrics), ('%.2f'):format(bound_s),
      gigabytes(metrics.peak_memory_bytes), verdict(row.one, metrics) }
    for _, cell in ipairs(row) do
      local cards, expert, best, communication, memory = unpack(cell)
      local parts, parts_bound_s = simulate(graph, cards)
      several[#several + 1] = { name, tostring(cards), time(expert), simulated_time(parts),
        ('%.2f'):format(parts_bound_s), verdict(expert, parts), time(best), ('%.1f'):format(communication),
        gigabytes(parts.peak_communication_bytes), ('%.1f'):format(memory), gigabytes(parts.peak_memory_bytes) }
    end
  end
end

if #one == 0 then
  error(("no model '%s' in table 4 (known: gnmt, inception_v3, nasnet_large, nmt, pnasnet_large)"):format(
    options.only), 0)
end

print 'One card. Step times in s, memory in GB; "bound" is a lower bound of the simulated step.\n'
print(trinity.format_table({ 'network (batch)', 'operators', 'article', 'simulated', 'bound', 'peak memory',
  'agreement (within 2 times)' }, one))
print '\nSeveral cards: the article\'s layered expert beside consecutive parts of equal work; what the article\'s'
print 'Trinity reached, for comparison of communication and memory (that of the fullest card, GB).\n'
print(trinity.format_table({ 'network (batch)', 'cards', 'expert', 'simulated', 'bound', 'agreement', 'Trinity',
  'communication', 'simulated', 'memory', 'simulated' }, several))
print '\nFitted to the table: the dispatch of p100_paper (to gnmt on one card), the units of nmt (to its memory).'
print(('simulated on %s, %s granularity; made by: trinity scripts/table4.lua'):format(options.cluster,
  options.granularity))
