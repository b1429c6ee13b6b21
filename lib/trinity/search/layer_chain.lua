-- A training graph as a row of layers, for methods that cut it into pipeline stages: the engine's row
-- (engine/search/pipeline/layer_row.h defines layers, times and bytes), its placements, and exact cuts over
-- heterogeneous nodes (engine/search/pipeline/layer_cut.h): row:least_load(micro_batches) minimizes the largest stage,
-- row:equal_work() treats all nodes as equal.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local layer_chain = {}

--- Returns the layers of a problem: fields layers (their number), layer_of (an int32 array over operators), type, and
--- per layer parameter_bytes, fixed_bytes (with optimizer states) and activation_bytes (forward outputs); kinds, a list
--- of { device = the first of its type, forward_s =, backward_s =, update_s = } (seconds per layer; backward_s includes
--- updates), kind_of (per device); forward_bytes and backward_bytes, per layer the bytes that a cut after it sends in
--- each direction; row, the engine's object.
function layer_chain.of(problem)
  check.object('layer_chain.of', 1, 'problem', problem, 'problem')
  local row = core.layer_row(problem.handle)
  local self = row:about()
  self.row, self.layer_of = row, array.int32_of(self.layer_of)
  return self
end

--- Returns the placement with every layer l on device `device_of[l]`.
function layer_chain.placement(problem, chain, device_of)
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = device_of[chain.layer_of[op]] end
  return placement
end

--- Returns the device of every layer in a placement: the device of the layer's first operator.
function layer_chain.device_of(chain, placement)
  local device_of = {}
  for op = #placement, 1, -1 do device_of[chain.layer_of[op]] = placement[op] end
  return device_of
end

--- Finds the cut into consecutive parts, each on its own node, with the fastest step by the problem's schedule; cuts
--- that keep a node busy for too long are skipped. options: micro_batches (default: the problem's, or 1); below_s, a
--- known step time: only faster ones are searched; most, the maximum number of cuts to try (100000). Returns { tried =,
--- device_of =, step_time_s = }, without the last two if nothing is faster; nil if more cuts would have to be tried.
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
