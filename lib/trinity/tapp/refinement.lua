-- The refinement of TAPP within a search: moves ends and nodes of the best scheme's stages.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local layer_chain = require 'trinity.tapp.layer_chain'
local tapp_moves = require 'trinity.tapp.moves'
local util = require 'trinity.base.util'

--- Spends the rest of the budget on neighbours of the best scheme so far; the ranks of a job divide every batch.
--- `notes` come from a checkpoint of this stage, or have no stage.
return function(run, chain, nodes, notes)
  local options, first, start_s = run.options, run.evaluations, core.clock_s()
  local state = { node_of = layer_chain.device_of(chain, run.placement), cost = -run.best.reward, batch = 0 }
  if notes.stage == 'refine' then
    first = tonumber(notes.first)
    state = { node_of = checkpoints.unpack(notes.nodes), cost = tonumber(notes.cost), batch = tonumber(notes.moves) }
  end
  local at = tapp_moves.of(chain, nodes)
  local function costs_of(schemes)
    local from, to = dist_search.range(run.agrees, #schemes)
    local own = util.map({ unpack(schemes, from, to) }, function(scheme)
      return layer_chain.placement(run.problem, chain, scheme)
    end)
    local rewards = dist_search.evaluate(run, run.agrees, own, from, #schemes)
    return util.listed(#schemes, function(i) return -rewards[i] end)
  end
  local function used()
    local passed = math.max((run.evaluations - first) / math.max(1, options.evaluations - first),
      (core.clock_s() - start_s) / math.max(1e-9, options.seconds - (start_s - run.start)))
    return dist_search.of_rank_0(run.agrees, math.min(1, passed))
  end
  while dist_search.more(run, run.agrees) do
    state.batch = state.batch + 1
    local stream, count = core.random(options.seed, 'tapp moves', state.batch), run:allowance(options.samples)
    local schemes = util.listed(count, function() return tapp_moves.neighbour(at, state.node_of, stream) end)
    local costs, best = costs_of(schemes), 1
    for i = 2, count do best = costs[i] < costs[best] and i or best end
    if tapp_moves.accepts(costs[best], state.cost, used()) then
      state.node_of, state.cost = schemes[best], costs[best]
    end
    if checkpoints.due(run) then
      checkpoints.write(run.checkpoint, run, { stage = 'refine', first = first, moves = state.batch, cost = state.cost,
        nodes = checkpoints.pack(state.node_of) })
    end
  end
end
