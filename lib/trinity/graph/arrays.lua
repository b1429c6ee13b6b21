-- Arrays of a graph, made at the first access and cached. Integer arrays are read-only views that keep their memory
-- alive, even after graph:close(); arrays of numbers are copies.

local array = require 'trinity.base.array'

local arrays = {}

--- Returns a read-only view of a vector of the engine.
function arrays.view(vector)
  return array.int32_view(vector)
end

--- Returns numbers of the engine by name: see graph_numbers in engine/lua/bind/bind_algorithms.cpp.
local function integers(self, which) return arrays.view(self.handle:numbers(which)) end

local function numbers(self, which, length)
  local out = array.double(length)
  self.handle:values(which, out)
  return out
end

--- Fields with one entry per operator, and the functions that make them.
arrays.fields = {
  depth = function(self) return integers(self, 'depth') end,
  unit_of = function(self) return integers(self, 'unit') end,
  flops_of = function(self) return numbers(self, 'flops', self.operators) end,
  output_bytes = function(self) return numbers(self, 'output_bytes', self.operators) end,
  parameter_bytes_of = function(self) return numbers(self, 'parameter_bytes', self.operators) end,
  persistent_bytes_of = function(self) return numbers(self, 'persistent_bytes', self.operators) end,
  workspace_bytes_of = function(self) return numbers(self, 'workspace_bytes', self.operators) end,
  activation_bytes_of = function(self) return numbers(self, 'activation_bytes', self.operators) end,
  measured_time_s = function(self) return numbers(self, 'measured_time_s', self.operators) end,
}

-- Rows of edges by graph; freed with the graph.
local rows = setmetatable({}, { __mode = 'k' })

local function make_out(self)
  return { first = integers(self, 'first'), target = integers(self, 'target'),
    bytes = numbers(self, 'edge_bytes', self.edges) }
end

local function make_in(self)
  local edge, bytes = integers(self, 'in_edge'), array.double(self.edges)
  local by_edge = arrays.rows(self, 'out').bytes
  for i = 1, #edge do bytes[i] = by_edge[edge[i]] end
  return { first = integers(self, 'in_first'), source = integers(self, 'in_source'), edge = edge, bytes = bytes }
end

--- Returns the compressed sparse rows of edges: 'out' { first, target, bytes }, 'in' { first, source, edge, bytes }.
function arrays.rows(self, direction)
  local of_graph = rows[self]
  if not of_graph then
    of_graph = {}
    rows[self] = of_graph
  end
  if not of_graph[direction] then
    of_graph[direction] = direction == 'out' and make_out(self) or make_in(self)
  end
  return of_graph[direction]
end

return arrays
