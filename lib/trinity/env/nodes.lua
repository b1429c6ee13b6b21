-- The constant data of a problem in environments: its nodes, which are colocation units or contiguous groups of
-- them in topological order, with their costs, edges and features.

local array = require 'trinity.base.array'
local features = require 'trinity.learn.features'
local groups_of = require 'trinity.learn.groups'

local nodes = {}

-- Operators by node: node k has operators[first[k]] to operators[first[k + 1] - 1].
local function index_operators(self, problem)
  local unit_of, count = problem.graph.unit_of, array.int32(self.count + 2)
  for op = 1, problem.graph.operators do
    local k = self.node_of[unit_of[op]]
    count[k + 1] = count[k + 1] + 1
  end
  count[1] = 1
  for k = 2, self.count + 1 do count[k] = count[k] + count[k - 1] end
  self.first, self.operators = array.copy(count), array.int32(problem.graph.operators)
  for op = 1, problem.graph.operators do
    local k = self.node_of[unit_of[op]]
    self.operators[count[k]] = op
    count[k] = count[k] + 1
  end
end

-- Seconds of every node on every device, time_s[(node - 1) x devices + device], and the bytes that it keeps all step.
local function add_costs(self, problem)
  local graph, unit_of, devices = problem.graph, problem.graph.unit_of, self.devices
  self.time_s, self.bytes, self.capacity = array.double(self.count * devices), array.double(self.count), {}
  for d = 1, devices do
    local times = problem:operator_times(d)
    for op = 1, graph.operators do
      local at = (self.node_of[unit_of[op]] - 1) * devices + d
      self.time_s[at] = self.time_s[at] + times[op]
    end
    self.capacity[d] = problem.cluster.devices[d].capacity_bytes
  end
  self.largest_bytes = 0
  for op = 1, graph.operators do
    local k = self.node_of[unit_of[op]]
    self.bytes[k] = self.bytes[k] + graph.parameter_bytes_of[op] + graph.persistent_bytes_of[op]
    self.largest_bytes = math.max(self.largest_bytes, self.bytes[k])
  end
end

-- Edges between nodes, each once: lists from, to and bytes, and the children of every node. Nodes stand in topological
-- order; an edge that points back (of a group) is left out.
local function add_edges(self, told)
  local number, n = {}, self.count
  self.from, self.to, self.edge_bytes, self.children, self.parent_count = {}, {}, {}, {}, {}
  for k = 1, n do self.children[k], self.parent_count[k] = {}, 0 end
  for e = 1, told.edges do
    local a, b = self.node_of[told.from[e]], self.node_of[told.to[e]]
    local key = (a - 1) * n + b
    if a < b and not number[key] then
      number[key] = #self.from + 1
      self.from[number[key]], self.to[number[key]], self.edge_bytes[number[key]] = a, b, 0
      table.insert(self.children[a], b)
      self.parent_count[b] = self.parent_count[b] + 1
    end
    if a < b then self.edge_bytes[number[key]] = self.edge_bytes[number[key]] + told.bytes[e] end
  end
end

--- The data of a problem with option decode: no nodes.
function nodes.none(problem)
  return { problem = problem, count = 0, devices = #problem.cluster.devices, bound_s = problem:bounds().step_time_s }
end

--- Nodes of a problem: all units (groups = 0), or `groups` groups, with features [nodes, width] as `settings` of
--- trinity.learn.features say and the type of every node's first unit.
function nodes.new(problem, groups, settings)
  local count = groups > 0 and math.min(groups, problem.graph.units) or problem.graph.units
  local self = { problem = problem, count = count, devices = #problem.cluster.devices,
    node_of = groups_of.contiguous(problem, count), bound_s = problem:bounds().step_time_s }
  index_operators(self, problem)
  add_costs(self, problem)
  local told = features(problem, settings)
  add_edges(self, told)
  self.features, self.types = groups_of.rows(told.values, self.node_of, count), array.int32(count)
  local types = told.types:to_array()
  for unit = problem.graph.units, 1, -1 do self.types[self.node_of[unit]] = types[unit] end
  return self
end

return nodes
