-- The refinement of a search from its best so far: all placements where these are few, local search on few units, else
-- annealing, alone or in a race (race.lua).
--
-- In a job of several ranks each refines with a seed and a part of the budget of its own, and the best of all is taken.
-- A checkpoint then keeps the beginning of the refinement, which restarts.

local ask_tell = require 'trinity.search.ask_tell'
local ask_tell_checkpoint = require 'trinity.search.ask_tell_checkpoint'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local in_flight = require 'trinity.search.in_flight'
local race = require 'trinity.search.race'
local ranked = require 'trinity.search.ranked'
local util = require 'trinity.base.util'

local refinement = {}

-- Units up to which local search finds the optimum more often, and choices that are all tried; beyond, annealing ends 1
-- to 3 % lower on the reference graphs.
local few_units, most_exhaustive = 64, 2 ^ 18

-- Whether all placements are tried.
local function exhaustive(problem, budget)
  return (#problem.cluster.devices) ^ problem.graph.units <= math.min(budget, most_exhaustive)
end

--- The searcher of the refinement from the best so far, in a race against `rival` if there is one, with a budget of
--- evaluations.
local function refiner(self, start, rival, budget)
  local problem, seed, moves = self.problem, self.options.seed, self.options.moves
  if exhaustive(problem, budget) then
    return core.searcher(problem.handle, 'exhaustive', { seed = seed })
  end
  if problem.graph.units <= few_units then
    return ranked.searcher(problem, 'local_search', { seed = seed, starts = { start } }, nil, nil, moves)
  end
  local function shared(searcher) return in_flight(self, searcher, self.ranker) end
  local both = { evaluations = budget, seconds = self.options.seconds }
  if rival and race.pays(self) then
    return race.new(problem, start, rival, seed, both, self.ranker, shared, moves)
  end
  return shared(race.annealing(problem, start, seed, both, self.ranker, moves))
end

local function placement_of(self, devices)
  local placement = self.problem:placement()
  if #devices ~= #placement then
    util.fail('methods.%s: %s: a placement that the refinement begins with is missing', self.method, self.resume)
  end
  for op = 1, #placement do placement[op] = devices[op] end
  return placement
end

--- The starts of the refinement: the best so far and the partition that races against it, if any.
local function starts(self, resumed)
  if resumed then
    return placement_of(self, resumed.start), resumed.rival and placement_of(self, resumed.rival)
  end
  local races = self.problem.graph.units > few_units and race.pays(self)
  local rival = races and race.rival(self) or nil
  return placement_of(self, self.placement), rival
end

--- Every rank refines `start` with a seed and a part of the budget of its own; the best of all is taken. Where all
--- placements can be tried, all ranks do that.
local function refine_together(self, start, rival)
  local job, options, budget = self.job, self.options, self.options.evaluations - self.evaluations
  job:barrier() -- before rank 0 writes a checkpoint, every rank has read the one that the search goes on from
  if self.checkpoint and job.rank == 0 then
    checkpoints.write(self, { stage = 'refine', first = self.evaluations,
      start = start:totable(), rival = rival and rival:totable() })
  end
  local alike = exhaustive(self.problem, budget)
  local first, last = dist_search.range(job, budget)
  local part = alike and budget or last - first + 1
  local own = dist_search.branch(self, part)
  if not alike and job.rank > 0 then
    own.options.seed = core.random(options.seed, 'refinement of a rank', job.rank):integer(2 ^ 53) - 1
  end
  local on_scores, finish = dist_search.pulse(own, job)
  if part > 0 then
    local searcher = refiner(own, start, rival, part)
    ask_tell(own, searcher, { on_scores = on_scores })
    self.ranking = own.ranking
    searcher:close()
  end
  finish()
  dist_search.join(self, job, own, alike)
end

--- Returns the name of the refinement of a problem within a budget; `ranks`: whether a ranker chooses moves.
function refinement.name(problem, options, ranks)
  if exhaustive(problem, options.evaluations) then return 'every placement' end
  if problem.graph.units <= few_units then return 'local search' end
  return ranks and 'annealing of ranked moves' or 'annealing'
end

--- Refines the best so far of a search with what is left of its budget; self.ranker: nil or the ranker of moves.
--- `resumed`: the notes of a checkpoint of this stage, or nil.
function refinement.run(self, resumed)
  local start, rival = starts(self, resumed)
  local first = resumed and resumed.first or self.evaluations
  if self.job then
    self.evaluations = first
    return refine_together(self, start, rival)
  end
  local hooks = ask_tell_checkpoint.hooks(self, resumed, first,
    { stage = 'refine', start = start:totable(), rival = rival and rival:totable() })
  local searcher = refiner(self, start, rival, self.options.evaluations - first)
  ask_tell(self, searcher, hooks)
  searcher:close()
end

return refinement
