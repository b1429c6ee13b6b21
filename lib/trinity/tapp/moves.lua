-- Neighbours of a pipeline, for the end of TAPP's search: changes of the end of a stage, of its node, or of the number
-- of stages. A scheme is the node of every layer, as in trinity.tapp.policy; the caller evaluates it.

local util = require 'trinity.base.util'

local tapp_moves = {}

-- Converts a scheme to a list of stages { node =, first = layer }.
local function stages_of(node_of)
  local stages = {}
  for l, node in ipairs(node_of) do
    if node ~= node_of[l - 1] then stages[#stages + 1] = { node = node, first = l } end
  end
  return stages
end

local function last_of(stages, s, layers) return (stages[s + 1] and stages[s + 1].first or layers + 1) - 1 end

local function scheme_of(stages, layers)
  local node_of = {}
  for s, stage in ipairs(stages) do
    for l = stage.first, last_of(stages, s, layers) do node_of[l] = stage.node end
  end
  return node_of
end

local function copy(stages)
  return util.map(stages, function(stage) return { node = stage.node, first = stage.first } end)
end

-- Returns a node without a stage, or nil.
local function free_node(stages, nodes, stream)
  local used, free = {}, {}
  for _, stage in ipairs(stages) do used[stage.node] = true end
  for node = 1, nodes do
    if not used[node] then free[#free + 1] = node end
  end
  return #free > 0 and free[stream:integer(#free)] or nil
end

-- Every move changes `stages` and returns whether they are still a valid, different pipeline. `at` has layers, nodes,
-- work (sums of times up to a layer) and crossing_bytes (after it).
local moves = {}

-- Moves the beginning of a stage by one or several layers, with equal probability per order of magnitude.
function moves.shift(stages, at, stream)
  if #stages < 2 then return false end
  local s = 1 + stream:integer(#stages - 1)
  local far = math.floor(at.layers ^ (0.8 * stream:uniform()))
  local first = stages[s].first + (stream:integer(2) == 1 and far or -far)
  stages[s].first = first
  return first > stages[s - 1].first and first <= last_of(stages, s, at.layers)
end

-- Moves the beginning of a stage to the nearby position with the fewest crossing bytes.
function moves.narrow(stages, at, stream)
  if #stages < 2 then return false end
  local s = 1 + stream:integer(#stages - 1)
  local far = math.ceil(at.layers ^ (0.8 * stream:uniform()))
  local first, least = nil, math.huge
  for l = math.max(stages[s - 1].first + 1, stages[s].first - far),
    math.min(last_of(stages, s, at.layers), stages[s].first + far) do
    if l ~= stages[s].first and at.crossing_bytes[l - 1] < least then first, least = l, at.crossing_bytes[l - 1] end
  end
  stages[s].first = first
  return first ~= nil
end

function moves.swap(stages, _, stream)
  local a, b = stream:integer(#stages), stream:integer(#stages)
  stages[a].node, stages[b].node = stages[b].node, stages[a].node
  return a ~= b
end

-- Swaps two nodes, which keep their amounts of work.
function moves.exchange(stages, at, stream)
  local a, b = stream:integer(#stages), stream:integer(#stages)
  if a == b then return false end
  local share, sum = {}, 0
  for s = 1, #stages do share[s] = at.work[last_of(stages, s, at.layers)] - at.work[stages[s].first - 1] end
  stages[a].node, stages[b].node, share[a], share[b] = stages[b].node, stages[a].node, share[b], share[a]
  for s = 2, #stages do
    sum = sum + share[s - 1]
    local first = stages[s - 1].first + 1
    while first < at.layers and (at.work[first] + at.work[first - 1]) / 2 < sum do first = first + 1 end
    if first > at.layers then return false end
    stages[s].first = first
  end
  return true
end

function moves.replace(stages, at, stream)
  local node = free_node(stages, at.nodes, stream)
  if not node then return false end
  stages[stream:integer(#stages)].node = node
  return true
end

function moves.merge(stages, _, stream)
  if #stages < 2 then return false end
  table.remove(stages, stream:integer(#stages))
  stages[1].first = 1
  return true
end

function moves.cut(stages, at, stream)
  local node, first = free_node(stages, at.nodes, stream), stream:integer(at.layers)
  if not node then return false end
  local s = 1
  while stages[s] and stages[s].first < first do s = s + 1 end
  if stages[s] and stages[s].first == first then return false end
  table.insert(stages, s, { node = node, first = first })
  return true
end

-- Moves, sampled in proportion to their number of entries.
local drawn = { 'shift', 'shift', 'shift', 'shift', 'narrow', 'narrow', 'swap', 'exchange', 'replace', 'merge',
  'cut' }
local most_tries = 100

--- Returns a scheme one move away from `node_of` (two moves one time in three), or the scheme itself if no move is
--- found. `at`: result of tapp_moves.of.
function tapp_moves.neighbour(at, node_of, stream)
  local stages, left = stages_of(node_of), stream:integer(3) == 1 and 2 or 1
  for _ = 1, most_tries do
    local other = copy(stages)
    if moves[drawn[stream:integer(#drawn)]](other, at, stream) then
      stages, left = other, left - 1
      if left == 0 then break end
    end
  end
  return scheme_of(stages, at.layers)
end

--- Returns the data for moves of a row of layers (trinity.tapp.layer_chain) and a number of nodes.
function tapp_moves.of(chain, nodes)
  local work, crossing_bytes = { [0] = 0 }, {}
  for l = 1, chain.layers do
    work[l], crossing_bytes[l] = work[l - 1], chain.forward_bytes[l] + chain.backward_bytes[l]
    for _, kind in ipairs(chain.kinds) do work[l] = work[l] + kind.forward_s[l] + kind.backward_s[l] end
  end
  return { layers = chain.layers, nodes = nodes, work = work, crossing_bytes = crossing_bytes }
end

local most_worse = 0.03

--- Threshold accepting (Dueck and Scheuer 1990): the best of a batch is accepted if its cost is at most the threshold
--- above the current one; the threshold falls from 3 % to 0 while `share` of the budget goes from 0 to 1.
function tapp_moves.accepts(cost, present, share)
  return cost - present < most_worse * (1 - share) ^ 2 * math.abs(present)
end

return tapp_moves
