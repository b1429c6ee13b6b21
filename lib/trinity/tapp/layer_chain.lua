-- A training graph as a row of layers, for methods that cut it into pipeline stages: the engine's (what a layer is, its
-- times and bytes: engine/search/pipeline/layer_row.h), placements of it, and its exact cuts over unequal nodes
-- (engine/search/pipeline/layer_cut.h), which check what they are given: row:least_load(micro_batches) is the one
-- whose largest stage takes least, row:equal_work() takes all nodes for equal.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local layer_chain = {}

--- The layers of a problem: fields layers (their number), layer_of (an int32 array over operators), type, and per
--- layer parameter_bytes, fixed_bytes (with optimiser state) and activation_bytes (forward outputs); kinds, a list of
--- { device = the first of its kind, forward_s =, backward_s =, update_s = } (seconds per layer; backward_s is with
--- updates), kind_of (per device); forward_bytes and backward_bytes, per layer what a cut behind it sends in each
--- direction; row, the engine's.
function layer_chain.of(problem)
  check.object('layer_chain.of', 1, 'problem', problem, 'problem')
  local row = core.layer_row(problem.handle)
  local self = row:about()
  self.row, self.layer_of = row, array.int32_of(self.layer_of)
  return self
end

--- The placement that puts every layer on the device that `device_of[l]` says.
function layer_chain.placement(problem, chain, device_of)
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = device_of[chain.layer_of[op]] end
  return placement
end

--- The device of every layer in such a placement: that of its first operator.
function layer_chain.device_of(chain, placement)
  local device_of = {}
  for op = #placement, 1, -1 do device_of[chain.layer_of[op]] = placement[op] end
  return device_of
end

--- The cut into consecutive parts, each on a node of its own, whose step is fastest by the problem's own schedule:
--- all are tried but those that keep a node busy for too long already. options: micro_batches, as the problem has them
--- (1); below_s, a step that is known (none): only a faster one is looked for; most, the cuts that may be tried
--- (100000). Returns { tried =, device_of =, step_time_s = }, without the last two where nothing is faster; nil when
--- there would be more to try.
function layer_chain.fastest(problem, chain, options)
  return chain.row:fastest(options, function(cuts, below_s)
    local placements = util.map(cuts, function(device_of) return layer_chain.placement(problem, chain, device_of) end)
    local limit = below_s < math.huge and { reject_above_s = below_s } or nil
    return util.map(problem:evaluate_batch(placements, limit), function(metrics)
      return metrics.feasible and metrics.step_time_s or math.huge
    end)
  end)
end

return layer_chain
