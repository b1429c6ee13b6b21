-- A training graph as a row of layers, for methods that cut it into pipeline stages: the engine's row
-- (engine/search/pipeline/layer_row.h defines layers, times and bytes), its placements, and exact cuts over
-- heterogeneous nodes (engine/search/pipeline/layer_cut.h): row:least_load(micro_batches) minimizes the largest stage,
-- row:equal_work() treats all nodes as equal.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'

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

return layer_chain
