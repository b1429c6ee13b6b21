-- The Trinity search in three stages, each of which can be switched off:
--   warm start  heuristics, one evaluation each, are simulated (search/warm_start.lua), and the policy is taught
--               to sample placements like the best of them;
--   policy      the paper's search (papers/notes.md "Trinity: the search"): sample placements from the partition and
--               schedule networks, simulate them, reward them, improve the networks by PPO;
--   refinement  annealing from the best so far, whose moves a trained ranker chooses (lib/trinity/search/rankers.lua),
--               where it pays in a race with a partition that is nearly as fast, or with other seeds
--               (lib/trinity/search/race.lua).
-- Options warm_start, policy and refine are true or false. warm_start may be a list of methods and placements instead,
-- policy and refine the share of the budget that they get after the warm start (0 to 1). By default the policy of
-- placements is off where moves refine: together with the other two stages it has never helped; the learned part is the
-- ranker (option rank). The presets of the paper and of its released code have the policy of placements only. Under a
-- limit in seconds a refined search omits that policy where its share is too short to begin with (policy_s). The
-- same search without anything learned has a name of its own, best.
--
-- In a job of several ranks (trinity.dist) they share the search: every rank does the warm start; the policy's batches
-- are divided among them; each refines with a seed and a part of the budget of its own, and the best of all is taken.
-- Rank 0 writes the files; every rank resumes from a checkpoint, and all must find the same one. A checkpoint
-- then keeps the beginning of the refinement, which restarts.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local features = require 'trinity.learn.feature_options'
local options_of = require 'trinity.base.options'
local ask_tell = require 'trinity.search.ask_tell'
local ask_tell_checkpoint = require 'trinity.search.ask_tell_checkpoint'
local race = require 'trinity.search.race'
local ranked = require 'trinity.search.ranked'
local search = require 'trinity.search'
local side_by_side = require 'trinity.search.side_by_side'
local slopes = require 'trinity.strategy.slopes'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local policy_share = 0.25

local function checked_later() end -- by stages_of()

local heuristic_options = options_of.declare('trinity.HeuristicsOptions', { extends = search.declared,
  help = 'Settings of methods.heuristics.',
  { 'warm_start', 'any', true, late = true, check = checked_later, as = 'boolean|(string|trinity.Placement)[]',
    otherwise = "true; of the paper's presets false", help = 'whether heuristics come first, or which' },
})

local stage_options = options_of.declare('trinity.StageOptions', { extends = heuristic_options,
  help = 'Settings of methods.best: the stages of the Trinity search but for its policy.',
  { 'refine', 'any', true, late = true, check = checked_later, as = 'boolean|number',
    otherwise = "true: the rest; of the paper's presets false",
    help = 'whether moves refine the best, or their share of the budget' },
  ranked.moves_option(),
  { 'checkpoint', 'string', '', help = 'a file that keeps what the search goes on from' },
  { 'checkpoint_every', 'integer', 10, least = 1,
    help = 'policy updates, or the same number of evaluations, between two checkpoints' },
  { 'resume', 'string', '', help = 'a checkpoint to go on from' },
})

local preset = options_of.words('trinity.Preset', { 'default', 'paper', 'code', 'scratch' })
local agent_options = options_of.declare('trinity.AgentOptions', options_of.of_engine({ extends = stage_options,
  help = "Settings of methods.trinity: its stages, then the policy's, with the defaults of the default preset.",
  { 'policy', 'any', false, late = true, check = checked_later, as = 'boolean|number',
    otherwise = 'true where nothing is refined, or a share',
    help = 'whether the policy of placements searches, or its share of the budget' },
  ranked.option(true, "true; of the paper's presets false"),
  { 'patience', 'integer', 4, least = 1,
    help = 'policy updates without a better placement after which the refinement begins' },
  { 'load', 'string', '', help = 'weights of a trained policy to start from' },
  { 'save', 'string', '', help = 'where the weights of the trained policy go' },
  { 'preset', preset, 'default', late = true,
    help = "'paper': the settings that the paper prints; 'code': the settings of the released code; 'scratch': the "
      .. 'policy learns from nothing, with a group per device' },
  { 'node2vec', features.node2vec, late = true, off = true,
    help = 'columns of the surroundings in the graph; false: none' },
}, core.agent_options()))

-- Names of what the agent itself takes.
local of_agent = { 'preset', 'node2vec' }
for _, option in ipairs(core.agent_options()) do
  if not option.name:find('.', 1, true) then of_agent[#of_agent + 1] = option.name end
end
local policy_s = 0.005 -- a colocation unit: what the policy's features and first updates take, at the least

--- An option that is true, false or a share from 0 to 1: whether it is on, and the share or nil.
local function stage(owner, given, name, default)
  local value = given[name]
  if value == nil then return default end
  if type(value) == 'boolean' then return value end
  if type(value) ~= 'number' or not (value >= 0 and value <= 1) then
    check.wrong(owner, 'option', name, value, 'true, false or a share from 0 to 1')
  end
  return value > 0, value
end

--- The stages: { entries = of the warm start, policy = share of the rest, refine = whether }. learns: whether there may
--- be a policy.
local function stages_of(owner, methods, given, learns)
  local plain = (given.preset or 'default') ~= 'default'
  local warm = given.warm_start
  if warm == nil then warm = not plain end
  local refine, refine_given = stage(owner, given, 'refine', not plain)
  local policy, policy_given = stage(owner, given, 'policy', learns and (not refine or refine_given ~= nil))
  if policy_given and refine_given and policy_given + refine_given > 1 then
    check.refuse(owner, 'option', 'refine', 'shares of policy and refine are %g together, expected at most 1',
      policy_given + refine_given)
  end
  if given.moves and not refine then check.refuse(owner, 'option', 'moves', 'nothing is refined') end
  local entries = warm_start.check(owner, methods, warm)
  if not policy and not refine and #entries == 0 then
    check.refuse(owner, 'option', 'refine', '%s: nothing to do',
      learns and 'warm_start, policy and refine are all off' or 'warm_start and refine are both off')
  end
  local share = policy_given or refine_given and 1 - refine_given or policy_share
  local rank = given.rank
  if rank == nil then rank = learns and not plain end
  return { entries = entries, policy = policy and (refine and share or 1) or 0, refine = refine,
    ranker = refine and ranked.of(rank) or nil }
end

-- The agent's part of the caller's options, checked.
local function agent_settings(owner, given, seed, devices)
  local settings, job = { seed = seed }, dist.current()
  for _, name in ipairs(of_agent) do settings[name] = given[name] end
  if given.preset == 'scratch' then settings.groups = settings.groups or devices end
  local ok, message = pcall(core.check_agent, settings, job and job.size or 1)
  if not ok then util.fail('%s: %s', owner, (util.unplaced(message):gsub('^trinity%.check_agent: ', ''))) end
  return settings
end

--- Reads the options of method `name` by `declared`: the search's, the stages' and, where it learns, the agent's.
local function read_options(name, declared, methods, given, devices)
  local owner, learns = 'methods.' .. name, declared == agent_options
  local options = search.options(name, declared, given)
  local settings = learns and agent_settings(owner, given, options.seed, devices)
  local stages = declared == heuristic_options and { warm_start = given.warm_start, refine = false } or given
  stages = stages_of(owner, methods, stages, learns)
  local _ = stages.policy > 0 and core.agent -- without LibTorch an error before anything is computed
  return options, settings, stages
end

--- Writes a checkpoint of the policy stage, its weights in a file next to it.
local function keep_policy(self, agent, state)
  if self.job and self.job.rank > 0 then return end
  checkpoints.write_with_file(self, { stage = 'policy', updates = state.updates, idle = state.idle, last = state.last },
    function(file) agent:save(file) end)
end

-- Before rank 0 writes a checkpoint, every rank has read the one that the search goes on from.
local function wait_for_all(self)
  if self.job then self.job:barrier() end
end

-- Rewards of a batch of `total`, from number `first` on sampled here, which of its placements do not fit (option
-- exclude_failing_after), and for credit = 'action', as preset 'scratch' has it, the gradients of the rewards.
local function price(self, batch, first, total)
  local rewards, metrics = dist_search.evaluate(self, self.job, batch, first, total)
  local credit = self.options.credit or self.options.preset == 'scratch' and 'action'
  local by_cost = credit == 'action' and slopes(self.problem, metrics, batch) or nil
  local failing = array.int32(#metrics)
  for i = 1, #metrics do failing[i] = metrics[i].feasible and 0 or 1 end
  return rewards, failing, by_cost
end

-- Tries the rest of the budget; the policy learns from whole batches only.
local function try_rest(self, batch, first, samples, allowed)
  for i = #batch, math.max(0, allowed - first + 1) + 1, -1 do batch[i] = nil end
  dist_search.evaluate(self, self.job, batch, first, allowed, samples)
end

-- The facts of an update for a row of the run.
local function facts_of(report)
  return { loss = report.loss, entropy_groups = report.entropy_groups, entropy_devices = report.entropy_devices }
end

--- The policy stage: PPO until its share of the budget is used, or the placements that it samples stop improving and
--- a refinement follows. state: { updates, idle, last = evaluations at its end }.
local function learn(self, agent, state, stages)
  local options, samples = self.options, agent:summary().samples
  local first, own = agent:share()
  local batch = self.problem:placements(own)
  local end_s = self.start + options.seconds
  if stages.refine then end_s = core.clock_s() + stages.policy * (end_s - core.clock_s()) end
  local function goes_on() return dist_search.goes_on(self, self.job, self:more() and core.clock_s() < end_s) end
  while goes_on() and (not stages.refine or state.idle < options.patience) do
    local allowed = math.min(self:allowance(samples), state.last - self.evaluations)
    if allowed < samples and (stages.refine or allowed <= 0) then break end
    agent:sample(batch)
    if allowed < samples then return try_rest(self, batch, first, samples, allowed) end
    local before = self.best and self.best.reward or -math.huge
    self:learned(facts_of(agent:update(price(self, batch, first, samples))))
    state.updates = state.updates + 1
    state.idle = self.best.reward > before and 0 or state.idle + 1
    if checkpoints.due(self, state.updates % options.checkpoint_every == 0) then keep_policy(self, agent, state) end
  end
end

--- Whether the policy's share of the seconds is enough to begin with.
local function has_time(self, stages)
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  local has = not stages.refine or stages.policy * left_s >= policy_s * self.problem.graph.units
  return dist_search.agreed(self.job, has)
end

local function train(self, settings, stages, resumed)
  local options, state = self.options, { updates = 0, idle = 0 }
  state.last = self.evaluations + math.floor(stages.policy * (options.evaluations - self.evaluations))
  if resumed then
    for _, key in ipairs { 'updates', 'idle', 'last' } do state[key] = tonumber(resumed[key]) or 0 end
    settings.resume = checkpoints.file_of('methods.trinity', self, self.resume, resumed)
  elseif options.load ~= '' then
    settings.load = options.load
  end
  local agent = core.agent(self.problem.handle, settings, self.job and self.job.handle)
  if not resumed and #stages.entries > 0 and self.best then agent:imitate({ self.placement }) end
  wait_for_all(self)
  learn(self, agent, state, stages)
  if options.save ~= '' and (not self.job or self.job.rank == 0) then agent:save(options.save) end
  agent:close()
end

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
  local function shared(searcher) return side_by_side.shared(self, searcher, self.ranker) end
  local both = { evaluations = budget, seconds = self.options.seconds }
  if rival and race.pays(self) then
    return race.new(problem, start, rival, seed, both, self.ranker, shared, moves)
  end
  local twins = race.twins(self)
  if twins > 1 then return race.of_twins(problem, twins, start, seed, both, self.ranker, shared, moves) end
  return shared(race.annealing(problem, start, seed, both, self.ranker, moves))
end

-- A placement or nil as a checkpoint keeps it, and back.
local function packed(placement) return placement and checkpoints.pack(placement) or '' end

local function placement_of(self, devices)
  local placement = self.problem:placement()
  if #devices ~= #placement then
    check.refuse('methods.' .. self.method, 'option', 'resume',
      'a placement that the refinement begins with is missing')
  end
  for op = 1, #placement do placement[op] = devices[op] end
  return placement
end

--- The starts of the refinement: the best so far and the partition that races against it, if any. Where no race
--- is worthwhile it is only for annealings in parallel.
local function starts(self, resumed)
  if resumed then
    local rival = checkpoints.unpack(resumed.rival or '')
    return placement_of(self, checkpoints.unpack(resumed.start)), #rival > 0 and placement_of(self, rival) or nil
  end
  local races = self.problem.graph.units > few_units and (race.pays(self) or side_by_side.may(self))
  local rival = races and race.rival(self) or nil
  return placement_of(self, self.placement), rival
end

--- Every rank refines `start` with a seed and a part of the budget of its own; the best of all is taken. Where all
--- placements can be tried, all ranks do that.
local function refine_together(self, start, rival)
  local job, options, budget = self.job, self.options, self.options.evaluations - self.evaluations
  wait_for_all(self)
  if self.checkpoint and job.rank == 0 then
    checkpoints.write(self.checkpoint, self, { stage = 'refine', first = self.evaluations,
      start = checkpoints.pack(start), rival = packed(rival) })
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

-- Whether the refinement is annealing.
local function is_annealed(self)
  return self.problem.graph.units > few_units and not exhaustive(self.problem, self.options.evaluations)
end

--- Annealings on all threads at once. A checkpoint keeps the best so far, from which they restart.
local function refine_side_by_side(self, team, rival)
  self.stages[#self.stages] = 'annealing'
  if self.ranker then self.updates = self.updates or 0 end -- which chooses nothing here
  ask_tell(self, team, { on_scores = function()
    if not self.checkpoint or not checkpoints.due(self, false) then return end
    checkpoints.write(self.checkpoint, self, { stage = 'refine', first = self.evaluations,
      start = checkpoints.pack(self.placement), rival = packed(rival) })
  end })
  team:close()
end

--- The refinement stage, with what is left of the budget.
local function refine(self, resumed)
  local start, rival = starts(self, resumed)
  local first = resumed and (tonumber(resumed.first) or 0) or self.evaluations
  if self.job then
    self.evaluations = first
    return refine_together(self, start, rival)
  end
  local team = is_annealed(self) and side_by_side.new(self, start, rival)
  if team then return refine_side_by_side(self, team, rival) end
  local hooks = ask_tell_checkpoint.hooks(self, resumed, first,
    { stage = 'refine', start = checkpoints.pack(start), rival = packed(rival) })
  local searcher = refiner(self, start, rival, self.options.evaluations - first)
  ask_tell(self, searcher, hooks)
  searcher:close()
end

--- The state from which the search resumes: notes of a checkpoint, or nil. Ends a job whose ranks read different ones.
local function resumed_notes(self)
  if not self.resume then return nil end
  local owner = 'methods.' .. self.method
  local kept = self.options.resume == ''
  local notes = kept and checkpoints.restore_kept(owner, self, function() end) -- which checks the policy's file, too
    or checkpoints.restore(owner, self, self.resume)
  if self.job then self.job:agree(('the checkpoint %s'):format(self.resume), self.resumed_at) end
  return notes
end

-- The stages of a search in addition to a policy.
local function stage_names(problem, stages, options)
  local names, few = {}, problem.graph.units <= few_units
  if #stages.entries > 0 then names[1] = 'warm start' end
  if not stages.refine then return names end
  names[#names + 1] = exhaustive(problem, options.evaluations) and 'every placement' or few and 'local search'
    or stages.ranker and 'annealing of ranked moves' or 'annealing'
  return names, stages.ranker ~= nil and names[#names] == 'annealing of ranked moves'
end

local function register(methods, name, declared, about)
  local learns = declared == agent_options
  about.options = declared
  methods.register(name, function(problem, given)
    local options, settings, stages = read_options(name, declared, methods, given or {}, #problem.cluster.devices)
    return search.run(name, problem, options, function(self)
      self.job = dist_search.begin(self, dist.current())
      checkpoints.begin(self, dist_search.share(self.job))
      local resumed = resumed_notes(self)
      local refining = resumed and resumed.stage == 'refine'
      local ranks
      self.stages, ranks = stage_names(problem, stages, options)
      -- A ranker was trained before: only a policy of placements, or nothing learned at all, is counted.
      self.updates = learns and (stages.policy > 0 or not ranks) and (self.updates or 0) or nil
      self.ranker = stages.ranker
      if not resumed and #stages.entries > 0 then
        warm_start.run(self, methods, stages.entries)
        dist_search.follow(self, self.job)
      end
      if stages.policy > 0 and not refining and has_time(self, stages) then
        train(self, settings, stages, resumed)
      end
      if stages.refine and dist_search.agreed(self.job, self:more()) then refine(self, refining and resumed or nil) end
    end)
  end, about)
end

return function(methods)
  register(methods, 'trinity', agent_options,
    { help = 'cheap heuristics, then annealing over moves that a trained ranker chooses; PPO on request', budget = true,
      source = 'Algorithms 2022, 15(4), 108' })
  register(methods, 'best', stage_options, { help = 'cheap heuristics, then annealing: trinity with nothing learned',
    budget = true, source = 'lib/trinity/methods/trinity.lua' })
  register(methods, 'heuristics', heuristic_options, { help = 'the best of the cheap heuristics, without a search',
    budget = true, source = 'lib/trinity/search/warm_start.lua' })
end
