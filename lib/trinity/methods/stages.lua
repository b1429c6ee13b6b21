-- The stages of methods trinity, best and heuristics, each of which can be switched off:
--   warm start  heuristics, one evaluation each, are simulated (search/warm_start.lua);
--   policy      of methods that have one (trinity.lua);
--   refinement  annealing from the best so far (search/refinement.lua), whose moves a trained ranker chooses
--               (search/rankers.lua), where it pays in a race with a nearly as fast partition (search/race.lua).
-- Options warm_start, policy and refine are true or false. warm_start may be a list of methods and placements instead,
-- policy and refine the share of the budget that they get after the warm start (0 to 1).
--
-- In a job of several ranks (trinity.dist) they share the search: every rank does the warm start; the policy's batches
-- are divided among them; each refines with a seed and a part of the budget of its own, and the best of all is taken.
-- Rank 0 writes the files; every rank resumes from a checkpoint, and all must find the same one.

local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local options_of = require 'trinity.base.options'
local ranked = require 'trinity.search.ranked'
local refinement = require 'trinity.search.refinement'
local search = require 'trinity.search'
local warm_start = require 'trinity.search.warm_start'

local stages = {}

local policy_share = 0.25

--- The check of options that plan_of() checks.
function stages.checked_later() end

stages.heuristics = options_of.declare('trinity.HeuristicsOptions', { extends = search.declared,
  help = 'Settings of methods.heuristics.',
  { 'warm_start', 'any', true, late = true, check = stages.checked_later, as = 'boolean|(string|trinity.Placement)[]',
    otherwise = "true; of the paper's presets false", help = 'whether heuristics come first, or which' },
})

stages.declared = options_of.declare('trinity.StageOptions', { extends = stages.heuristics,
  help = 'Settings of methods.best: the stages of the Trinity search but for its policy.',
  { 'refine', 'any', true, late = true, check = stages.checked_later, as = 'boolean|number',
    otherwise = "true: the rest; of the paper's presets false",
    help = 'whether moves refine the best, or their share of the budget' },
  ranked.moves_option(),
})

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

--- The stages by the options: { entries = of the warm start, policy = share of the rest, refine = whether, ranker }.
--- learns: whether there may be a policy; plain: whether by default there is a policy alone.
local function plan_of(owner, methods, given, learns, plain)
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

--- The state from which the search resumes: notes of a checkpoint, or nil. Ends a job whose ranks read different ones.
local function resumed_notes(self)
  local notes = checkpoints.restore_kept('methods.' .. self.method, self, function() end) -- checks the policy's file
  if notes and self.job then self.job:agree(('the checkpoint %s'):format(self.resume), self.resumed_at) end
  return notes
end

--- Registers a method of stages. policy, of one that has one: { settings(owner, given, seed, devices) = its options,
--- checked; train(self, settings, plan, resumed) = searches until its share of the budget is used }.
function stages.register(methods, name, declared, about, policy)
  about.options = declared
  methods.register(name, function(problem, given)
    given = given or {}
    local owner, options = 'methods.' .. name, search.options(name, declared, given)
    local only_heuristics = declared == stages.heuristics
    local settings = policy and policy.settings(owner, given, options.seed, #problem.cluster.devices)
    local plan = plan_of(owner, methods, only_heuristics and { warm_start = given.warm_start, refine = false } or given,
      policy ~= nil, (given.preset or 'default') ~= 'default')
    local _ = plan.policy > 0 and core.agent -- without LibTorch an error before anything is computed
    return search.run(name, problem, options, function(self)
      self.job = dist_search.begin(self, dist.current())
      checkpoints.begin(self, dist_search.share(self.job))
      local resumed = resumed_notes(self)
      local refining = resumed and resumed.stage == 'refine'
      self.stages, self.ranker = { #plan.entries > 0 and 'warm start' or nil }, plan.ranker
      if plan.refine then
        table.insert(self.stages, refinement.name(problem, options, plan.ranker ~= nil))
      end
      -- A ranker was trained before: only a policy of placements, or nothing learned at all, is counted.
      local ranks = self.stages[#self.stages] == 'annealing of ranked moves'
      self.updates = policy and (plan.policy > 0 or not ranks) and (self.updates or 0) or nil
      if not resumed and #plan.entries > 0 then
        warm_start.run(self, methods, plan.entries)
        dist_search.follow(self, self.job)
      end
      if plan.policy > 0 and not refining then policy.train(self, settings, plan, resumed) end
      if plan.refine and dist_search.agreed(self.job, self:more()) then
        refinement.run(self, refining and resumed or nil)
      end
    end)
  end, about)
end

return stages
