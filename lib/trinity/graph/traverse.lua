-- Iteration over a graph: operators, edges, neighbours, units. Operators are numbered from 1 in a topological order:
-- every edge leads from a lower to a higher number.

local arguments = require 'trinity.graph.arguments'
local arrays = require 'trinity.graph.arrays'
local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local directions = { out = true, ['in'] = true }

local function next_number(count, i)
  if i < count then return i + 1 end
end

-- Returns the neighbours of operator `i` in sorted rows of edges, each once.
local function distinct(first, neighbour, i)
  local list, previous = {}, 0
  for e = first[i], first[i + 1] - 1 do
    local other = neighbour[e]
    if other ~= previous then list[#list + 1] = other end
    previous = other
  end
  return list
end

return function(class)
  ---@class trinity.Graph
  local Graph = class

  --- Returns the number of the operator called `name`, or nil. Example: `graph:find 'conv_1'`
  ---@param name string
  ---@return integer?
  function Graph:find(name) return self.handle:find(check.argument('graph:find', 1, 'name', name, 'string')) end

  --- Iterates over operators in topological order: for i in graph:nodes() do ... end
  --- Example: `for operator, name in graph:nodes() do print(operator, name) end`
  ---@return fun(operators: integer, i: integer): integer?
  ---@return integer operators
  ---@return integer start
  function Graph:nodes() return next_number, self.operators, 0 end

  --- Iterates over edges, one per tensor and reader: for from, to, bytes in graph:each_edge() do ... end
  --- Example: `for from, to, bytes in graph:each_edge() do print(from, to, bytes) end`
  ---@return fun(): integer?, integer?, number?
  function Graph:each_edge()
    local out, edges, from, edge = arrays.rows(self, 'out'), self.edges, 1, 0
    local first, target, bytes = out.first, out.target, out.bytes
    return function()
      if edge == edges then return nil end
      edge = edge + 1
      while first[from + 1] <= edge do from = from + 1 end
      return from, target[edge], bytes[edge]
    end
  end

  --- Returns edges as compressed sparse rows, for compiled loops: edges that leave operators ('out', the default) or
  --- enter them ('in'). Example: `graph:csr('in').first[1]`
  ---@param direction? 'out'|'in'
  ---@return trinity.GraphRows
  function Graph:csr(direction)
    if direction == nil then direction = 'out' end
    check.choice('graph:csr', 1, 'direction', direction, directions)
    return util.merged(arrays.rows(self, direction))
  end

  --- Returns the operators that read outputs of operator `i`, each once, ascending. Example: `graph:successors(1)`
  ---@param i trinity.OperatorRef
  ---@return integer[]
  function Graph:successors(i)
    local out = arrays.rows(self, 'out')
    return distinct(out.first, out.target, arguments.operator('graph:successors', 1, 'i', self, i))
  end

  --- Returns the operators whose outputs operator `i` reads, each once, ascending. Example:
  --- `graph:predecessors(graph.operators)`
  ---@param i trinity.OperatorRef
  ---@return integer[]
  function Graph:predecessors(i)
    local rows = arrays.rows(self, 'in')
    return distinct(rows.first, rows.source, arguments.operator('graph:predecessors', 1, 'i', self, i))
  end

  --- Returns the producers of the inputs of operator `i` in the order of its arguments, with repetitions. Example:
  --- `graph:inputs(graph.operators)`
  ---@param i trinity.OperatorRef
  ---@return integer[]
  function Graph:inputs(i)
    local inputs = self.handle:operator(arguments.operator('graph:inputs', 1, 'i', self, i)).inputs
    return util.map(inputs, function(tensor) return tensor.producer end)
  end

  --- Returns the operators of colocation unit `u` (see unit_of), which share a device. Example: `graph:unit(1)`
  ---@param u integer
  ---@return integer[]
  function Graph:unit(u) return self.handle:unit(check.integer('graph:unit', 1, 'u', u, 1, self.units)) end
end
