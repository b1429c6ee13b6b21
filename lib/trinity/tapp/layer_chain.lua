-- A training graph as a row of layers, for methods that cut it into pipeline stages: a layer is a colocation unit with
-- forward operators; layers stand in the order of their first ones. Everything else belongs to the layer whose forward
-- operator it serves. A cut between two layers never sends a tensor backwards in forward passes over a chain.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local layer_chain = {}

-- Per operator the layer, from 1; and per layer its first operator. Units come in the order of their first operators.
local function find_layers(graph)
  local first, layer_of_unit, layer_of = {}, {}, array.int32(graph.operators)
  local unit_of, operators = graph.unit_of, {}
  for op = 1, graph.operators do
    operators[op] = graph:operator(op)
    local unit = unit_of[op]
    if operators[op].phase == 'forward' and not layer_of_unit[unit] then
      first[#first + 1] = op
      layer_of_unit[unit] = #first
    end
  end
  local last = 1
  for op = 1, graph.operators do
    local served = operators[op].forward
    last = layer_of_unit[unit_of[op]] or served and layer_of_unit[unit_of[served]] or last
    layer_of[op] = last
  end
  return operators, layer_of, first
end

-- Seconds of every layer on each kind of device, forward and the rest: devices of one type and speed share them.
local function layer_times(problem, self, operators)
  local kinds, kind_of = {}, {}
  for d, device in ipairs(problem.cluster.devices) do
    local key = ('%s x %.17g'):format(device.type, device.speed or 1)
    if not kinds[key] then
      local placement = array.filled(problem.graph.operators, d)
      local timeline = problem:timeline { placement = placement }
      local forward, backward, update = {}, {}, {}
      for l = 1, self.layers do forward[l], backward[l], update[l] = 0, 0, 0 end
      for op = 1, #placement do
        local time_s, l = timeline.end_s[op] - timeline.start_s[op], self.layer_of[op]
        local sum = operators[op].phase == 'forward' and forward or backward
        if not operators[op].collective then
          sum[l] = sum[l] + time_s
          if operators[op].phase == 'update' then update[l] = update[l] + time_s end
        end
      end
      timeline:close()
      self.kinds[#self.kinds + 1] = { device = d, forward_s = forward, backward_s = backward, update_s = update }
      kinds[key] = #self.kinds
    end
    kind_of[d] = kinds[key]
  end
  return kind_of
end

-- Bytes that cross the cut behind each layer, forwards and backwards. A tensor crosses once however many read it.
local function crossing_bytes(graph, operators, self)
  local forward, backward = {}, {}
  for l = 0, self.layers do forward[l], backward[l] = 0, 0 end
  local reach = {}
  for op = 1, graph.operators do
    for _, input in ipairs(operators[op].inputs) do
      reach[input.name] = reach[input.name] or { low = math.huge, high = 0 }
      local span = reach[input.name]
      span.low, span.high = math.min(span.low, self.layer_of[op]), math.max(span.high, self.layer_of[op])
    end
  end
  for op = 1, graph.operators do
    local from = self.layer_of[op]
    for _, output in ipairs(operators[op].outputs) do
      local span = reach[output.name]
      if span then
        for cut = from, span.high - 1 do forward[cut] = forward[cut] + output.bytes end
        for cut = span.low, from - 1 do backward[cut] = backward[cut] + output.bytes end
      end
    end
  end
  return forward, backward
end

--- The layers of a problem: fields layers (their number), layer_of (an int32 array over operators), type, and per
--- layer parameter_bytes, fixed_bytes (with optimiser state) and activation_bytes (forward outputs); kinds, a list of
--- { device = the first of its kind, forward_s =, backward_s =, update_s = } (seconds per layer; backward_s is with
--- updates), kind_of (per device); forward_bytes and backward_bytes, per layer what a cut behind it sends in each
--- direction.
function layer_chain.of(problem)
  check.object('layer_chain.of', 1, 'problem', problem, 'problem')
  local graph, self = problem.graph, { kinds = {}, type = {} }
  local operators, layer_of, first = find_layers(graph)
  if #first == 0 then util.fail("layer_chain.of: graph '%s' has no forward operators", graph.name) end
  self.layer_of, self.layers = layer_of, #first
  for l, op in ipairs(first) do self.type[l] = operators[op].type end
  self.parameter_bytes, self.fixed_bytes, self.activation_bytes = {}, {}, {}
  for l = 1, self.layers do self.parameter_bytes[l], self.fixed_bytes[l], self.activation_bytes[l] = 0, 0, 0 end
  for op = 1, graph.operators do
    local l, about = layer_of[op], operators[op]
    self.parameter_bytes[l] = self.parameter_bytes[l] + about.parameter_bytes
    self.fixed_bytes[l] = self.fixed_bytes[l] + about.parameter_bytes + about.persistent_bytes
    local kept = about.phase == 'forward' and graph.activation_bytes_of[op] or 0
    self.activation_bytes[l] = self.activation_bytes[l] + kept
  end
  self.kind_of = layer_times(problem, self, operators)
  self.forward_bytes, self.backward_bytes = crossing_bytes(graph, operators, self)
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

return layer_chain
