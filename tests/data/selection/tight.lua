-- Makes strategy-selection problems in the shape of the IOPDDL contest's (ASPLOS 2025) transformers over 32 devices,
-- with a memory limit near the smallest that can be met: a function of a seed that returns the problem as
-- trinity.select takes it, and the least limit that can be met. Whole numbers only, so a seed gives the same problem
-- on every machine.
--
-- Operators are einsums over a mesh of three axes: a strategy gives every axis to a loop index or to none (all devices
-- do the same). Contracted indices cost an all-reduce; an edge costs what it takes to move the producer's layout to
-- what the consumer reads: nothing where they agree or the consumer takes a slice of what is there, all-to-all or
-- all-gather per axis else. Chains of aliases must have the layout of their source: all other pairs are forbidden.
-- Weights live all the time, other results until their last consumer. The smallest peak comes from the least usage of
-- every node, which are layouts that all aliases share, so it can be reached; the limit is one to three per cent above.

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

-- A layout of loops, one letter each, in a tensor of other letters: 0 where the loop's letter is not among them.
local function through(layout, loops, letters)
  local result = {}
  for x, loop in ipairs(layout) do
    result[x] = loop > 0 and letters:find(loops:sub(loop, loop), 1, true) or 0
  end
  return result
end

-- Over how many devices a layout divides.
local function shares(layout)
  local count = 1
  for x, loop in ipairs(layout) do if loop > 0 then count = count * AXES[x] end end
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

-- A node whose tensor has these sizes.
function Maker:add(dims, bytes_each)
  local node = { dims = dims, bytes = bytes_each, strategies = {}, number = #self.nodes + 1, last = #self.nodes + 1 }
  for _, size in ipairs(dims) do node.bytes = node.bytes * size end
  self.nodes[node.number] = node
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

-- An einsum: letters of its loops and of its result, and operands, each with its letters. `sizes`: of letters, where
-- they are not an operand's.
function Maker:einsum(loops, result, bytes_each, operands, sizes)
  sizes = sizes or {}
  for _, operand in ipairs(operands) do
    for d, size in ipairs(operand[1].dims) do
      local letter = operand[2]:sub(d, d)
      sizes[letter] = sizes[letter] or size
    end
  end
  local function sizes_of(letters)
    local list = {}
    for letter in letters:gmatch '.' do list[#list + 1] = sizes[letter] end
    return list
  end
  local node = self:add(sizes_of(result), bytes_each)
  for i, layout in ipairs(layouts(sizes_of(loops))) do
    local s = { layout = layout, out = through(layout, loops, result), cost = 0 }
    s.usage = math.ceil(node.bytes / shares(s.out))
    for x, loop in ipairs(layout) do
      if loop > 0 and s.out[x] == 0 then
        s.cost = s.cost + 1 + math.floor(2 * s.usage * (AXES[x] - 1) / AXES[x] * self.slowness[x] / 64)
      end
    end
    node.strategies[i] = s
  end
  self:thin(node.strategies)
  for _, operand in ipairs(operands) do
    local from, letters = unpack(operand)
    from.last = node.number
    self:connect(from, node, function(s, t)
      return self:move_cost(s.out, through(t.layout, loops, letters), from.bytes)
    end)
  end
  return self:aliases(node)
end

-- An edge that costs cost(strategy, strategy, their numbers).
function Maker:connect(from, to, cost)
  local costs = {}
  for i, s in ipairs(from.strategies) do
    for j, t in ipairs(to.strategies) do costs[#costs + 1] = cost(s, t, i, j) end
  end
  self.edges[#self.edges + 1] = { from.number, to.number, costs }
end

-- Some nodes are followed by others of the same layout, as bitcasts and conversions are; returns the last.
function Maker:aliases(node)
  while self.random:integer(100) <= 55 do
    local alias = self:add(node.dims, 0)
    alias.bytes, alias.usesnone, node.last = node.bytes, self.random:integer(2) == 1, alias.number
    for i, s in ipairs(node.strategies) do
      alias.strategies[i] = { out = s.out, usage = s.usage, cost = 0 }
    end
    self:connect(node, alias, function(_, _, i, j) return i == j and 0 or FORBIDDEN end)
    node = alias
  end
  return node
end

function Maker:weight(dims)
  local node = self:add(dims, 2)
  node.resident = true
  for i, layout in ipairs(layouts(dims)) do
    node.strategies[i] = { out = layout, usage = math.ceil(node.bytes / shares(layout)), cost = 0 }
  end
  return node
end

function Maker:scalar()
  local node = self:add({}, 4)
  node.strategies[1] = { out = { 0, 0, 0 }, usage = 4, cost = 0 }
  return node
end

-- A result that others of its shape share: made once, used in every layer.
function Maker:shared(rows, columns)
  local row = self:einsum('c', 'c', 2, { { self:scalar(), '' } }, { c = columns })
  return self:einsum('rc', 'rc', 2, { { row, 'c' } }, { r = rows })
end

-- x [batch, length, width], normalised: two reductions with a common reader.
function Maker:norm(x)
  local mean = self:einsum('blw', 'bl', 4, { { x, 'blw' } })
  local centred = self:einsum('blw', 'blw', 2, { { x, 'blw' }, { mean, 'bl' } })
  local square = self:einsum('blw', 'bl', 4, { { centred, 'blw' } })
  local gain = self:weight { x.dims[3] }
  return self:einsum('blw', 'blw', 2, { { centred, 'blw' }, { square, 'bl' }, { gain, 'w' }, { self:scalar(), '' } })
end

-- One weight's matmul: x [batch, length, k] with w [k, n].
function Maker:linear(x, n)
  return self:einsum('blnk', 'bln', 2, { { x, 'blk' }, { self:weight { x.dims[3], n }, 'kn' } })
end

function Maker:plus(x, y) return self:einsum('blw', 'blw', 2, { { x, 'blw' }, { y, 'blw' } }) end

-- A matmul of x whose width becomes heads of their own.
function Maker:heads(x, heads)
  local width = x.dims[3]
  return self:einsum('blhd', 'blhd', 2, { { self:linear(x, width), 'blh' } }, { h = heads, d = width / heads })
end

-- Rotates [batch, length, heads, depth] by an angle a place of length and depth.
function Maker:turn(x, turns) return self:einsum('blhd', 'blhd', 2, { { x, 'blhd' }, { turns, 'ld' } }) end

function Maker:attention(x, heads, mask, turns)
  local normal = self:norm(x)
  local q, k = self:turn(self:heads(normal, heads), turns), self:turn(self:heads(normal, heads), turns)
  local v = self:heads(normal, heads)
  local scores = self:einsum('bhqkd', 'bhqk', 2, { { q, 'bqhd' }, { k, 'bkhd' } })
  scores = self:einsum('bhqk', 'bhqk', 2, { { scores, 'bhqk' }, { mask, 'qk' } })
  local most = self:einsum('bhqk', 'bhq', 2, { { scores, 'bhqk' } })
  local raised = self:einsum('bhqk', 'bhqk', 2, { { scores, 'bhqk' }, { most, 'bhq' } })
  local sum = self:einsum('bhqk', 'bhq', 4, { { raised, 'bhqk' } })
  local share = self:einsum('bhqk', 'bhqk', 2, { { raised, 'bhqk' }, { sum, 'bhq' } })
  local mixed = self:einsum('bhqdk', 'bqhd', 2, { { share, 'bhqk' }, { v, 'bkhd' } })
  local joined = self:einsum('blw', 'blw', 2, { { mixed, 'blw' } }, { w = x.dims[3] })
  return self:plus(x, self:linear(joined, x.dims[3]))
end

function Maker:feed_forward(x, widening)
  local normal, width = self:norm(x), x.dims[3]
  local wide = self:linear(normal, widening * width)
  local gate = self:linear(normal, widening * width)
  local bent = self:einsum('blw', 'blw', 2, { { gate, 'blw' } })
  return self:plus(x, self:linear(self:plus(wide, bent), width))
end

-- The least possible peak: every node with its least usage.
local function least_peak(nodes)
  local changes, level, peak = {}, 0, 0
  for v, live in ipairs(nodes.intervals) do
    local least = math.min(unpack(nodes.usages[v]))
    changes[live[1]] = (changes[live[1]] or 0) + least
    changes[live[2]] = (changes[live[2]] or 0) - least
  end
  for t = 0, #nodes.intervals do
    level = level + (changes[t] or 0)
    peak = math.max(peak, level)
  end
  return peak
end

function Maker:problem(name)
  local nodes, edges = { intervals = {}, costs = {}, usages = {} }, { nodes = {}, costs = {} }
  for v, node in ipairs(self.nodes) do
    local costs, usages = {}, {}
    for i, s in ipairs(node.strategies) do costs[i], usages[i] = s.cost, s.usage end
    nodes.costs[v], nodes.usages[v] = costs, usages
    nodes.intervals[v] = node.resident and { 0, #self.nodes } or { v - 1, node.usesnone and v - 1 or node.last }
  end
  for e, edge in ipairs(self.edges) do edges.nodes[e], edges.costs[e] = { edge[1], edge[2] }, edge[3] end
  return { name = name, nodes = nodes, edges = edges }
end

-- The problem of a seed, about 800 nodes, and the least limit that can be met.
return function(seed)
  local random = trinity.random(seed, 'tight selection')
  local function one_of(...) return (select(random:integer(select('#', ...)), ...)) end
  local maker = setmetatable({ random = random, nodes = {}, edges = {},
    slowness = { one_of(8, 16, 32), one_of(1, 2, 4), one_of(1, 2, 4) } }, Maker)
  local batch, length, heads = one_of(4, 8, 16), one_of(32, 64, 96), one_of(4, 8, 12)
  local width, widening = heads * one_of(32, 64), one_of(2, 3, 4)
  local vocabulary = maker:weight { 32 * one_of(200, 250, 300), width }
  local x = maker:einsum('blwv', 'blw', 2, { { vocabulary, 'vw' } }, { b = batch, l = length })
  local mask, turns = maker:shared(length, length), maker:shared(length, width / heads)
  while #maker.nodes < 720 do x = maker:feed_forward(maker:attention(x, heads, mask, turns), widening) end
  local last = maker:einsum('blw', 'bw', 2, { { maker:norm(x), 'blw' } })
  maker:einsum('bvw', 'bv', 4, { { last, 'bw' }, { vocabulary, 'vw' } })
  local problem = maker:problem(('tight-%d'):format(seed))
  local least = least_peak(problem.nodes)
  problem.usage_limit = math.floor(least * (100 + random:integer(3)) / 100)
  return problem, least
end
