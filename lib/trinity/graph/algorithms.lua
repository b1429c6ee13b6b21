-- Graph algorithms, most of them from Boost.Graph. engine/graph/algorithms.h and cuts.h state results and complexity.
-- Lists of operators are ascending; results with one entry per operator are arrays. Operators may be given by name or
-- number.

local arguments = require 'trinity.graph.arguments'
local array = require 'trinity.base.array'
local arrays = require 'trinity.graph.arrays'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'

local orders = { number = true, depth_first = true, breadth_first = true }
local path_options = options_of.declare('trinity.GraphPathOptions', { help = 'Options of graph:critical_path.',
  { 'time_s', 'any', needed = true, as = 'trinity.DoubleArray|number[]|fun(i: integer): number',
    help = 'seconds per operator' },
  { 'transfer_s', 'any', otherwise = 'none', help = 'seconds per edge of csr()',
    as = 'trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number' },
})
local cut_options = options_of.declare('trinity.CutOptions', { help = 'Options of graph:min_cut.',
  { 'capacity', 'any', 'bytes', help = "'bytes': a tensor counts once even with several readers; or one "
    .. 'number per edge of csr(), math.huge: never cut',
    as = "'bytes'|trinity.DoubleArray|number[]|fun(bytes: number, from: integer, to: integer): number" },
  { 'backward', options_of.words('trinity.BackwardEdges', { 'free', 'counted', 'forbidden' }), 'free',
    help = 'cost of edges that lead from the sink side to the source side' },
})

local function call_with_operator(call, i) return call(i) end

-- Calls a function with the bytes and the two operators of edge i.
local function caller_of_edges(self)
  local out, from = arrays.rows(self, 'out'), 1
  return function(call, edge)
    while out.first[from + 1] <= edge do from = from + 1 end
    return call(out.bytes[edge], from, out.target[edge])
  end
end

return function(class)
  ---@class trinity.Graph
  local Graph = class

  --- Sorted edges between colocation units, as arrays; bytes counts each tensor once.
  ---@class trinity.UnitEdges
  ---@field count integer
  ---@field from trinity.Placement unit that writes
  ---@field to trinity.Placement unit that reads
  ---@field bytes trinity.DoubleArray

  --- Returns the edges between colocation units. Example: `graph:unit_edges().count`
  ---@return trinity.UnitEdges
  function Graph:unit_edges()
    local n = self.handle:unit_edges()
    local edges = { count = n, from = array.int32(n), to = array.int32(n), bytes = array.double(n) }
    self.handle:unit_edges(edges.from, edges.to, edges.bytes)
    return edges
  end

  --- Returns operators in a topological order, as an array. 'number' (default): by number; 'depth_first': each shortly
  --- before its readers, which keeps few tensors alive; 'breadth_first': by depth. Example:
  --- `graph:topological_order('depth_first')[1]`
  ---@param kind? trinity.OrderKind
  ---@return trinity.Int32View
  function Graph:topological_order(kind)
    if kind == nil then kind = 'number' end
    check.choice('graph:topological_order', 1, 'kind', kind, orders)
    return arrays.view(self.handle:topological_order(kind))
  end

  --- Returns the longest path for given times of operators and, optionally, edges, in seconds. Example:
  --- `graph:critical_path { time_s = function() return 1 end }`
  ---@param options trinity.GraphPathOptions
  ---@return trinity.GraphPath
  function Graph:critical_path(options)
    local owner = 'graph:critical_path'
    options = path_options:read(owner, 1, 'options', options)
    local times = arguments.numbers(owner, 'time_s', options.time_s, self.operators, call_with_operator)
    local transfers = options.transfer_s and
      arguments.numbers(owner, 'transfer_s', options.transfer_s, self.edges, caller_of_edges(self))
    local start_s, tail_s = array.double(self.operators), array.double(self.operators)
    local operators, length_s = self.handle:critical_path(times, transfers or nil, start_s, tail_s)
    return { operators = operators, length_s = length_s, start_s = start_s, tail_s = tail_s }
  end

  --- Returns the minimum cut with all `sources` on one side and all `sinks` on the other. Example: `graph:min_cut(1,
  --- graph.operators)`
  ---@param sources trinity.OperatorRef|trinity.OperatorRef[]
  ---@param sinks trinity.OperatorRef|trinity.OperatorRef[]
  ---@param options? trinity.CutOptions
  ---@return trinity.Cut
  function Graph:min_cut(sources, sinks, options)
    local owner = 'graph:min_cut'
    sources = arguments.operators(owner, 1, 'sources', self, sources)
    sinks = arguments.operators(owner, 2, 'sinks', self, sinks)
    options = cut_options:read(owner, 3, 'options', options)
    local capacity = options.capacity
    if capacity == 'bytes' then capacity = nil end
    if capacity ~= nil then
      capacity = arguments.numbers(owner, 'capacity', capacity, self.edges, caller_of_edges(self))
    end
    local cut, bytes, source_side = self.handle:min_cut(sources, sinks, options.backward, capacity)
    return { capacity = cut, bytes = bytes, source_side = source_side }
  end
end
