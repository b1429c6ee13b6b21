-- Splits of a row of layers (tapp.layer_chain) into pipeline stages on unequal nodes, by the engine
-- (engine/search/pipeline/layer_split.h): the exact one of least load, the one of equal work, and the one whose
-- simulated step is fastest, by trying all that could be.

local check = require 'trinity.base.check'
local layer_chain = require 'trinity.tapp.layer_chain'
local util = require 'trinity.base.util'

local layer_split = {}

local rules = { micro_batches = { 'integer', 1, 2 ^ 30 } }

--- The split of least load: the largest stage's seconds per micro-batch are as few as any split into consecutive
--- parts, each on a node of its own, allows. Returns the device of every layer and that load, or nil where memory
--- allows none. options: micro_batches (how many 1F1B may hold, 1). Clusters of at most 12.
function layer_split.least_load(problem, chain, options)
  check.object('layer_split.least_load', 1, 'problem', problem, 'problem')
  options = check.options('layer_split.least_load', 3, 'options', options, rules)
  local devices = #problem.cluster.devices
  if devices > 12 then
    check.refuse('layer_split.least_load', 1, 'problem', 'expected at most 12 devices, got %d', devices)
  end
  return chain.row:least_load(options.micro_batches or 1)
end

--- The split of equal work as GPipe has it, all nodes taken for equal: the largest sum of the times of a part is least.
--- Returns the device of every layer.
function layer_split.equal_work(problem, chain)
  check.object('layer_split.equal_work', 1, 'problem', problem, 'problem')
  return chain.row:equal_work()
end

local fastest_rules = { micro_batches = { 'integer', 1, 2 ^ 30 }, below_s = 'number', most = { 'integer', 0, 2 ^ 40 } }

--- The split into consecutive parts, each on a node of its own, whose step is fastest by the problem's own schedule:
--- all are tried but those that keep a node busy for too long already. options: micro_batches, as the problem has them
--- (1); below_s, a step that is known (none): only a faster one is looked for; most, the splits that may be tried
--- (100000). Returns { tried =, device_of =, step_time_s = }, without the last two where nothing is faster; nil when
--- there would be more to try.
function layer_split.fastest(problem, chain, options)
  check.object('layer_split.fastest', 1, 'problem', problem, 'problem')
  options = check.options('layer_split.fastest', 3, 'options', options, fastest_rules)
  return chain.row:fastest(options, function(splits, below_s)
    local placements = util.map(splits, function(device_of) return layer_chain.placement(problem, chain, device_of) end)
    local limit = below_s < math.huge and { reject_above_s = below_s } or nil
    return util.map(problem:evaluate_batch(placements, limit), function(metrics)
      return metrics.feasible and metrics.step_time_s or math.huge
    end)
  end)
end

return layer_split
