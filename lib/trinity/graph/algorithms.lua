-- Algorithms on graphs, most of them Boost.Graph's: see engine/graph/algorithms.h and cuts.h for what
-- each computes and what it costs. Lists of operators are ascending; what has an entry an operator is an
-- array. Wherever operators are taken, names do as well as numbers.

local arguments = require 'trinity.graph.arguments'
local array = require 'trinity.array'
local arrays = require 'trinity.graph.arrays'
local check = require 'trinity.check'

local orders = { number = true, depth_first = true, breadth_first = true }
local backward_words = { free = true, counted = true, forbidden = true }
local path_rules = { time_s = 'any', transfer_s = 'any' }
local cut_rules = { capacity = 'any', backward = { 'choice', backward_words } }

local function call_with_operator(call, i) return call(i) end

-- Calls a function with the bytes of edge i and the operators at its ends.
local function caller_of_edges(self)
  local out, from = arrays.rows(self, 'out'), 1
  return function(call, edge)
    while out.first[from + 1] <= edge do from = from + 1 end
    return call(out.bytes[edge], from, out.target[edge])
  end
end

return function(Graph)
  --- Operators in a topological order, an array: 'number' (default), as they are numbered; 'depth_first',
  --- each shortly before it is needed, which keeps few tensors waiting; 'breadth_first', by depth.
  function Graph:topological_order(kind)
    check.self('graph:topological_order', self, 'graph')
    if kind == nil then kind = 'number' end
    check.choice('graph:topological_order', 1, 'kind', kind, orders)
    return arrays.view(self.handle:topological_order(kind))
  end

  --- The longest path where operator i takes time_s (an array, a list or function(i)) and an edge
  --- transfer_s (the same per edge of csr(), or function(bytes, from, to); default: no time):
  --- { operators = along the path, length_s =, start_s =, tail_s = }. The last two are arrays: per
  --- operator the longest path up to its start, and from its start on. What is left of the length is
  --- its slack.
  function Graph:critical_path(options)
    check.self('graph:critical_path', self, 'graph')
    local owner = 'graph:critical_path'
    check.argument(owner, 1, 'options', options, 'table')
    check.fields(owner, options, path_rules)
    local times = arguments.numbers(owner, 'time_s', options.time_s, self.operators, call_with_operator)
    local transfers = options.transfer_s and
      arguments.numbers(owner, 'transfer_s', options.transfer_s, self.edges, caller_of_edges(self))
    local start_s, tail_s = array.double(self.operators), array.double(self.operators)
    local operators, length_s = self.handle:critical_path(times, transfers or nil, start_s, tail_s)
    return { operators = operators, length_s = length_s, start_s = start_s, tail_s = tail_s }
  end

  --- The least cut with all of `sources` on one side and all of `sinks` on the other (operators or lists
  --- of them): { capacity =, bytes =, source_side = operators }. options.capacity: 'bytes' (default; a
  --- tensor counts once however many readers it has beyond the cut), or per edge of csr() an array, a
  --- list or function(bytes, from, to), where math.huge is not cut. options.backward, what edges cost
  --- that lead back: 'free' (default), 'counted' as forward ones, 'forbidden', as between stages of a
  --- pipeline.
  function Graph:min_cut(sources, sinks, options)
    check.self('graph:min_cut', self, 'graph')
    local owner = 'graph:min_cut'
    sources = arguments.operators(owner, 1, 'sources', self, sources)
    sinks = arguments.operators(owner, 2, 'sinks', self, sinks)
    options = check.options(owner, 3, 'options', options, cut_rules)
    local capacity = options.capacity
    if capacity == 'bytes' then capacity = nil end
    if capacity ~= nil then
      capacity = arguments.numbers(owner, 'capacity', capacity, self.edges, caller_of_edges(self))
    end
    local cut, bytes, source_side = self.handle:min_cut(sources, sinks, options.backward or 'free', capacity)
    return { capacity = cut, bytes = bytes, source_side = source_side }
  end
end
