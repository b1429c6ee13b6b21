-- Makes strategy-selection problems in the shape of the IOPDDL contest's (ASPLOS 2025) transformers over 32 devices,
-- with a memory limit near the smallest that can be met: tight.lua SEED [FILE.json]. As a module: a function of the
-- seed that returns the problem as trinity.select takes it, and the least limit that can be met. Whole numbers only,
-- so a seed gives the same problem on every machine.
--
-- Operators are einsums over a mesh of three axes: a strategy gives every axis to a loop index or to none (all devices
-- do the same). Contracted indices cost an all-reduce; an edge costs what it takes to move the producer's layout to
-- what the consumer reads: nothing where they agree or the consumer takes a slice of what is there, all-to-all or
-- all-gather per axis else. Chains of aliases must have the layout of their source: all other pairs are forbidden.
-- Weights live all the time, other results until their last consumer. The smallest peak comes from the least usage of
-- every node, which are layouts that all aliases share, so it can be reached; the limit is one to three per cent above.

local core = require 'trinity.core'
local trinity = require 'trinity'

local FORBIDDEN, MOST_STRATEGIES, AXES = 1e18, { 9, 16, 24, 36, 64, 112, 178 }, { 2, 4, 4 }

-- All ways to give the axes to `sizes`, an entry an axis: 0 for none. Sizes must divide.
local function layouts(sizes)
  local all = {}
  local function extend(layout, x, left)
    if x > #AXES then
      all[#all + 1] = layout
      return
    end
    for d = 0, #sizes do
      if d == 0 or left[d] % AXES[x] == 0 then
        local longer, rest = { unpack(layout) }, { unpack(left) }
        longer[x] = d
        if d > 0 then rest[d] = rest[d] / AXES[x] end
        extend(longer, x + 1, rest)
      end
    end
  end
  extend({}, 1, sizes)
  return all
end

-- A layout through a map of indices: 0 where an index is not in the tensor.
local function through(layout, map)
  local result = {}
  for x = 1, #AXES do result[x] = layout[x] > 0 and map[layout[x]] or 0 end
  return result
end

local function product(list)
  local result = 1
  for _, factor in ipairs(list) do result = result * factor end
  return result
end

-- Over how many devices a layout divides.
local function shares(layout)
  local count = 1
  for x = 1, #AXES do if layout[x] > 0 then count = count * AXES[x] end end
  return count
end

local Maker = {}
Maker.__index = Maker

-- The cost of reading layout `want` from a tensor of `bytes` in layout `have`.
function Maker:move_cost(have, want, bytes)
  local cost = 0
  for x = 1, #AXES do
    if have[x] ~= want[x] and have[x] > 0 then
      local exchanged = bytes / shares(want) * (AXES[x] - 1) / AXES[x]
      if want[x] > 0 then exchanged = exchanged / AXES[x] end
      cost = cost + 1 + math.floor(exchanged * self.slowness[x] / 64)
    end
  end
  return cost
end

function Maker:add(node)
  self.nodes[#self.nodes + 1] = node
  node.number, node.last = #self.nodes, #self.nodes
  return node
end

-- Thins strategies to some number, as compilers do; one of those that use least stays.
function Maker:thin(strategies)
  local most = MOST_STRATEGIES[self.random:integer(#MOST_STRATEGIES)]
  local least = 1
  for i, s in ipairs(strategies) do if s.usage < strategies[least].usage then least = i end end
  strategies[1], strategies[least] = strategies[least], strategies[1]
  while #strategies > most do table.remove(strategies, 1 + self.random:integer(#strategies - 1)) end
  return strategies
end

-- An einsum: loop sizes, the result's index of each loop index (0: contracted), operands with such maps.
function Maker:einsum(sizes, map, operands, bytes_each)
  local dims, strategies = {}, {}
  for i, d in ipairs(map) do if d > 0 then dims[d] = sizes[i] end end
  local node = self:add { dims = dims, bytes = bytes_each * product(dims) }
  for _, loop in ipairs(layouts(sizes)) do
    local s, cost = { loop = loop, out = through(loop, map) }, 0
    s.usage = math.ceil(node.bytes / shares(s.out))
    for x = 1, #AXES do
      if loop[x] > 0 and map[loop[x]] == 0 then
        cost = cost + 1 + math.floor(2 * s.usage * (AXES[x] - 1) / AXES[x] * self.slowness[x] / 64)
      end
    end
    s.cost = cost
    strategies[#strategies + 1] = s
  end
  node.strategies = self:thin(strategies)
  for _, operand in ipairs(operands) do self:connect(operand[1], node, operand[2]) end
  return self:aliases(node)
end

-- A result that others of its shape share: made once, used in every layer.
function Maker:shared(dims)
  local map, low = {}, {}
  for d = 1, #dims do map[d], low[d] = d, d > 1 and d - 1 or 0 end
  local rest = {}
  for d = 2, #dims do rest[d - 1] = dims[d] end
  local row = self:einsum(rest, { unpack(map, 1, #rest) }, { { self:scalar(), { 0, 0 } } }, 2)
  return self:einsum(dims, map, { { row, low } }, 2)
end

function Maker:connect(from, to, map)
  from.last = to.number
  local costs = {}
  for _, s in ipairs(from.strategies) do
    for _, t in ipairs(to.strategies) do
      costs[#costs + 1] = self:move_cost(s.out, through(t.loop, map), from.bytes)
    end
  end
  self.edges[#self.edges + 1] = { from.number, to.number, costs }
end

-- Some nodes are followed by others of the same layout, as bitcasts and conversions are; returns the last.
function Maker:aliases(node)
  while self.random:integer(100) <= 55 do
    local alias = self:add { dims = node.dims, bytes = node.bytes, strategies = {},
      usesnone = self.random:integer(2) == 1 }
    node.last = alias.number
    local costs = {}
    for i, s in ipairs(node.strategies) do
      alias.strategies[i] = { loop = s.loop, out = s.out, usage = s.usage, cost = 0 }
      for j = 1, #node.strategies do costs[#costs + 1] = i == j and 0 or FORBIDDEN end
    end
    self.edges[#self.edges + 1] = { node.number, alias.number, costs }
    node = alias
  end
  return node
end

function Maker:weight(dims)
  local node = self:add { dims = dims, bytes = 2 * product(dims), strategies = {}, resident = true }
  for i, layout in ipairs(layouts(dims)) do
    node.strategies[i] = { loop = layout, out = layout, usage = math.ceil(node.bytes / shares(layout)), cost = 0 }
  end
  return node
end

function Maker:scalar()
  local only = { loop = { 0, 0, 0 }, out = { 0, 0, 0 }, usage = 4, cost = 0 }
  return self:add { dims = {}, bytes = 4, strategies = { only } }
end

-- x [batch, length, width], normalised: two reductions with a common reader.
function Maker:norm(x)
  local b, l, h = unpack(x.dims)
  local mean = self:einsum({ b, l, h }, { 1, 2, 0 }, { { x, { 1, 2, 3 } } }, 4)
  local centred = self:einsum({ b, l, h }, { 1, 2, 3 }, { { x, { 1, 2, 3 } }, { mean, { 1, 2, 0 } } }, 2)
  local square = self:einsum({ b, l, h }, { 1, 2, 0 }, { { centred, { 1, 2, 3 } } }, 4)
  local gain = self:weight { h }
  return self:einsum({ b, l, h }, { 1, 2, 3 },
    { { centred, { 1, 2, 3 } }, { square, { 1, 2, 0 } }, { gain, { 0, 0, 1 } }, { self:scalar(), { 0, 0, 0 } } }, 2)
end

-- One weight's matmul: x [batch, length, k] with w [k, n].
function Maker:linear(x, n)
  local b, l, k = unpack(x.dims)
  local w = self:weight { k, n }
  return self:einsum({ b, l, n, k }, { 1, 2, 3, 0 }, { { x, { 1, 2, 0, 3 } }, { w, { 0, 0, 2, 1 } } }, 2)
end

function Maker:plus(x, y)
  return self:einsum(x.dims, { 1, 2, 3 }, { { x, { 1, 2, 3 } }, { y, { 1, 2, 3 } } }, 2)
end

-- heads: a width becomes heads of their own.
function Maker:split(x, heads)
  local b, l, h = unpack(x.dims)
  return self:einsum({ b, l, heads, h / heads }, { 1, 2, 3, 4 }, { { x, { 1, 2, 3, 0 } } }, 2)
end

-- Rotates [batch, length, heads, depth] by an angle a place of length and depth.
function Maker:turn(x, turns)
  return self:einsum(x.dims, { 1, 2, 3, 4 }, { { x, { 1, 2, 3, 4 } }, { turns, { 0, 1, 0, 2 } } }, 2)
end

function Maker:attention(x, heads, mask, turns)
  local normal = self:norm(x)
  local h = x.dims[3]
  local q = self:turn(self:split(self:linear(normal, h), heads), turns)
  local k = self:turn(self:split(self:linear(normal, h), heads), turns)
  local v = self:split(self:linear(normal, h), heads)
  local b, l, _, d = unpack(q.dims)
  local scores = self:einsum({ b, heads, l, l, d }, { 1, 2, 3, 4, 0 },
    { { q, { 1, 3, 2, 0, 4 } }, { k, { 1, 3, 0, 2, 4 } } }, 2)
  local masked = { { scores, { 1, 2, 3, 4 } }, { mask, { 0, 0, 1, 2 } } }
  scores = self:einsum({ b, heads, l, l }, { 1, 2, 3, 4 }, masked, 2)
  local all = { b, heads, l, l }
  local most = self:einsum(all, { 1, 2, 3, 0 }, { { scores, { 1, 2, 3, 4 } } }, 2)
  local raised = self:einsum(all, { 1, 2, 3, 4 }, { { scores, { 1, 2, 3, 4 } }, { most, { 1, 2, 3, 0 } } }, 2)
  local sum = self:einsum(all, { 1, 2, 3, 0 }, { { raised, { 1, 2, 3, 4 } } }, 4)
  local share = self:einsum(all, { 1, 2, 3, 4 }, { { raised, { 1, 2, 3, 4 } }, { sum, { 1, 2, 3, 0 } } }, 2)
  local mixed = self:einsum({ b, heads, l, d, l }, { 1, 3, 2, 4, 0 },
    { { share, { 1, 2, 3, 0, 4 } }, { v, { 1, 3, 0, 4, 2 } } }, 2)
  local joined = self:einsum({ b, l, h }, { 1, 2, 3 }, { { mixed, { 1, 2, 3 } } }, 2)
  return self:plus(x, self:linear(joined, h))
end

function Maker:feed_forward(x, widening)
  local normal, h = self:norm(x), x.dims[3]
  local wide = self:linear(normal, widening * h)
  local gate = self:linear(normal, widening * h)
  local bent = self:einsum(gate.dims, { 1, 2, 3 }, { { gate, { 1, 2, 3 } } }, 2)
  local both = self:einsum(wide.dims, { 1, 2, 3 }, { { wide, { 1, 2, 3 } }, { bent, { 1, 2, 3 } } }, 2)
  return self:plus(x, self:linear(both, h))
end

-- The least possible peak: every node with its least usage.
local function least_peak(problem)
  local changes = {}
  for v, live in ipairs(problem.nodes.intervals) do
    local least = math.huge
    for _, usage in ipairs(problem.nodes.usages[v]) do least = math.min(least, usage) end
    changes[live[1]] = (changes[live[1]] or 0) + least
    changes[live[2]] = (changes[live[2]] or 0) - least
  end
  local level, peak = 0, 0
  for t = 0, #problem.nodes.intervals do
    level = level + (changes[t] or 0)
    peak = math.max(peak, level)
  end
  return peak
end

function Maker:problem(name)
  local problem = { name = name, nodes = { intervals = {}, costs = {}, usages = {} },
    edges = { nodes = {}, costs = {} } }
  for v, node in ipairs(self.nodes) do
    local costs, usages = {}, {}
    for i, s in ipairs(node.strategies) do costs[i], usages[i] = s.cost, s.usage end
    problem.nodes.costs[v], problem.nodes.usages[v] = costs, usages
    local from, to = v - 1, node.last
    if node.resident then from, to = 0, #self.nodes end
    problem.nodes.intervals[v] = { from, node.usesnone and from or to }
  end
  for e, edge in ipairs(self.edges) do
    problem.edges.nodes[e], problem.edges.costs[e] = { edge[1], edge[2] }, edge[3]
  end
  return problem
end

-- The problem of a seed, about 800 nodes, and the least limit that can be met.
local function make(seed)
  local random = trinity.random(seed, 'tight selection')
  local function one_of(...) return (select(random:integer(select('#', ...)), ...)) end
  local maker = setmetatable({ random = random, nodes = {}, edges = {},
    slowness = { one_of(8, 16, 32), one_of(1, 2, 4), one_of(1, 2, 4) } }, Maker)
  local batch, length, heads = one_of(4, 8, 16), one_of(32, 64, 96), one_of(4, 8, 12)
  local width, widening = heads * one_of(32, 64), one_of(2, 3, 4)
  local vocabulary = maker:weight { 32 * one_of(200, 250, 300), width }
  local x = maker:einsum({ batch, length, width, vocabulary.dims[1] }, { 1, 2, 3, 0 },
    { { vocabulary, { 0, 0, 2, 1 } } }, 2)
  local mask, turns = maker:shared { length, length }, maker:shared { length, width / heads }
  while #maker.nodes < 720 do x = maker:feed_forward(maker:attention(x, heads, mask, turns), widening) end
  local last = maker:einsum(x.dims, { 1, 0, 2 }, { { maker:norm(x), { 1, 2, 3 } } }, 2)
  maker:einsum({ batch, vocabulary.dims[1], width }, { 1, 2, 0 },
    { { last, { 1, 0, 2 } }, { vocabulary, { 0, 1, 2 } } }, 4)
  local problem = maker:problem(('tight-%d'):format(seed))
  local least = least_peak(problem)
  problem.usage_limit = math.floor(least * (100 + random:integer(3)) / 100)
  return problem, least
end

-- Writes a problem as the contest does, counted from 0.
local function write(problem, path)
  for _, pair in ipairs(problem.edges.nodes) do pair[1], pair[2] = pair[1] - 1, pair[2] - 1 end
  local file = assert(io.open(path, 'w'))
  file:write(core.to_json { problem = problem })
  file:close()
end

if ... ~= 'module' then
  local seed = tonumber(arg[1]) or error('a seed: tight.lua SEED [FILE.json]', 0)
  write(make(seed), arg[2] or ('tight-%d.json'):format(seed))
  return
end
return make
