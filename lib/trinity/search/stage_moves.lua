-- Moves of pipelines over a row of layers (layer_chain.lua): of the end of a stage, its node, or the number of stages.
-- A scheme is the node of every layer; each node has consecutive layers.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local layer_chain = require 'trinity.search.layer_chain'
local util = require 'trinity.base.util'

local stage_moves = {}

-- Converts a scheme to a list of stages { node =, first = layer }.
local function stages_of(node_of)
  local stages = {}
  for l, node in ipairs(node_of) do
    if node ~= node_of[l - 1] then stages[#stages + 1] = { node = node, first = l } end
  end
  return stages
end

local function scheme_of(stages, layers)
  local stage = 0
  return util.listed(layers, function(l)
    if stages[stage + 1] and stages[stage + 1].first == l then stage = stage + 1 end
    return stages[stage].node
  end)
end

local function last_of(stages, s, layers) return (stages[s + 1] and stages[s + 1].first or layers + 1) - 1 end

-- Every move changes `stages` and returns whether they are still a valid, different pipeline. `at`: result of
-- stage_moves.of().
local moves = {}

-- Moves the beginning of a stage by one or several layers, with equal probability per order of magnitude; `narrow`: to
-- the position within that distance that the fewest bytes cross.
function moves.shift(stages, at, stream, narrow)
  if #stages < 2 then return false end
  local s = 1 + stream:integer(#stages - 1)
  local before, far = stages[s].first, at.layers ^ (0.8 * stream:uniform())
  far = narrow and math.ceil(far) or math.floor(far)
  local low, high, first = stages[s - 1].first + 1, last_of(stages, s, at.layers), nil
  if not narrow then first = before + (stream:integer(2) == 1 and far or -far) end
  for l = math.max(low, before - far), narrow and math.min(high, before + far) or 0 do
    local fewer = not first or at.crossing_bytes[l - 1] < at.crossing_bytes[first - 1]
    if l ~= before and fewer then first = l end
  end
  stages[s].first = first
  return first ~= nil and first >= low and first <= high
end

function moves.narrow(stages, at, stream) return moves.shift(stages, at, stream, true) end

-- Gives a stage another node; a stage that has it gets the first one's.
function moves.swap(stages, at, stream)
  local stage, node = stages[stream:integer(#stages)], stream:integer(at.nodes)
  for _, other in ipairs(stages) do
    if other.node == node then other.node = stage.node end
  end
  local before = stage.node
  stage.node = node
  return before ~= node
end

-- Swaps the nodes of two stages, which keep their amounts of work.
function moves.exchange(stages, at, stream)
  local a, b, share, sum = stream:integer(#stages), stream:integer(#stages), {}, 0
  for s, stage in ipairs(stages) do share[s] = at.work[last_of(stages, s, at.layers)] - at.work[stage.first - 1] end
  stages[a].node, stages[b].node, share[a], share[b] = stages[b].node, stages[a].node, share[b], share[a]
  for s = 2, #stages do
    sum = sum + share[s - 1]
    local first = stages[s - 1].first + 1
    while first < at.layers and (at.work[first] + at.work[first - 1]) / 2 < sum do first = first + 1 end
    if first > at.layers then return false end
    stages[s].first = first
  end
  return a ~= b
end

function moves.merge(stages, _, stream)
  if #stages < 2 then return false end
  table.remove(stages, stream:integer(#stages))
  stages[1].first = 1
  return true
end

-- Begins a stage on a node without one.
function moves.cut(stages, at, stream)
  local used, free, first, s = {}, {}, stream:integer(at.layers), 1
  for _, stage in ipairs(stages) do
    if stage.first == first then return false end
    if stage.first < first then s = s + 1 end
    used[stage.node] = true
  end
  for node = 1, at.nodes do free[#free + 1] = not used[node] and node or nil end
  if #free == 0 then return false end
  table.insert(stages, s, { node = free[stream:integer(#free)], first = first })
  return true
end

-- Moves, sampled in proportion to their number of entries.
local drawn = { 'shift', 'shift', 'shift', 'shift', 'narrow', 'narrow', 'swap', 'swap', 'exchange', 'merge', 'cut' }
local most_tries = 100

--- Returns a scheme one move away from `node_of` (two moves one time in three), or the scheme itself if no move is
--- found. `at`: result of stage_moves.of().
function stage_moves.neighbour(at, node_of, stream)
  local stages, left = stages_of(node_of), stream:integer(3) == 1 and 2 or 1
  for _ = 1, most_tries do
    local other = util.map(stages, function(stage) return { node = stage.node, first = stage.first } end)
    if moves[drawn[stream:integer(#drawn)]](other, at, stream) then
      stages, left = other, left - 1
      if left == 0 then break end
    end
  end
  return scheme_of(stages, at.layers)
end

--- Returns the data for moves over a row of layers and a number of nodes: work (sums of times up to a layer) and
--- crossing_bytes (after it).
function stage_moves.of(chain, nodes)
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
function stage_moves.accepts(cost, present, share)
  return cost - present < most_worse * (1 - share) ^ 2 * math.abs(present)
end

--- Spends the rest of a search's budget on neighbours of its best scheme so far, in batches of option samples; the
--- ranks of a job divide every batch. `notes` come from a checkpoint of this stage, or have no stage.
function stage_moves.refine(run, chain, nodes, notes)
  local options, first, start_s = run.options, run.evaluations, core.clock_s()
  local state = { node_of = layer_chain.device_of(chain, run.placement), cost = -run.best.reward, batch = 0 }
  if notes.stage == 'refine' then
    first, state = notes.first, notes.state
  end
  local at = stage_moves.of(chain, nodes)
  local function rewards_of(schemes)
    local from, to = dist_search.range(run.agrees, #schemes)
    local own = util.map({ unpack(schemes, from, to) }, function(scheme)
      return layer_chain.placement(run.problem, chain, scheme)
    end)
    return dist_search.evaluate(run, run.agrees, own, from, #schemes)
  end
  local function used()
    local passed = math.max((run.evaluations - first) / math.max(1, options.evaluations - first),
      (core.clock_s() - start_s) / math.max(1e-9, options.seconds - (start_s - run.start)))
    return dist_search.of_rank_0(run.agrees, math.min(1, passed))
  end
  while dist_search.more(run, run.agrees) do
    state.batch = state.batch + 1
    local stream = core.random(options.seed, 'tapp moves', state.batch)
    local schemes = util.listed(run:allowance(options.samples), function()
      return stage_moves.neighbour(at, state.node_of, stream)
    end)
    local rewards, best = rewards_of(schemes), 1
    for i = 2, #schemes do best = rewards[i] > rewards[best] and i or best end
    if stage_moves.accepts(-rewards[best], state.cost, used()) then
      state.node_of, state.cost = schemes[best], -rewards[best]
    end
    if checkpoints.due(run) then
      checkpoints.write(run, { stage = 'refine', first = first, state = state })
    end
  end
end

return stage_moves
