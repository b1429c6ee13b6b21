-- The Trinity search (methods/stages.lua has its stages, without a policy of the name best). Its policy is the paper's
-- (papers/notes.md "Trinity: the search"): sample placements from the partition and schedule networks, simulate them,
-- reward them, improve the networks by PPO. After a warm start it is taught to sample placements like the best of it.
--
-- By default the policy of placements is off where moves refine: together with the other two stages it has never
-- helped; the learned part is the ranker (option rank). The presets of the paper and of its released code have the
-- policy of placements only. Under a limit in seconds a refined search omits that policy where its share is too short
-- to begin with (policy_s).

local array = require 'trinity.base.array'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local features = require 'trinity.learn.feature_options'
local options_of = require 'trinity.base.options'
local ranked = require 'trinity.search.ranked'
local slopes = require 'trinity.strategy.slopes'
local stages = require 'trinity.methods.stages'
local util = require 'trinity.base.util'

local preset = options_of.words('trinity.Preset', { 'default', 'paper', 'code', 'scratch' })
local agent_options = options_of.declare('trinity.AgentOptions', options_of.of_engine({ extends = stages.declared,
  help = "Settings of methods.trinity: its stages, then the policy's, with the defaults of the default preset.",
  { 'policy', 'any', false, late = true, check = stages.checked_later, as = 'boolean|number',
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

local policy = {}

--- The agent's part of the caller's options, checked.
function policy.settings(owner, given, seed, devices)
  local settings, job = util.merged(util.picked(given, of_agent), { seed = seed }), dist.current()
  if given.preset == 'scratch' then settings.groups = settings.groups or devices end
  local ok, message = pcall(core.check_agent, settings, job and job.size or 1)
  if not ok then util.fail_as(message, owner) end
  return settings
end

--- Writes a checkpoint of the policy stage, its weights in a file next to it.
local function keep_policy(self, agent, state)
  if self.job and self.job.rank > 0 then return end
  checkpoints.write_with_file(self, util.merged(state, { stage = 'policy' }), function(file) agent:save(file) end)
end

-- Rewards of a batch of `total`, from number `first` on sampled here, which of its placements do not fit (option
-- exclude_failing_after), and for credit = 'action', as preset 'scratch' has it, the gradients of the rewards.
local function price(self, batch, first, total)
  local rewards, metrics = dist_search.evaluate(self, self.job, batch, first, total)
  local credit = self.options.credit or self.options.preset == 'scratch' and 'action'
  local by_cost = credit == 'action' and slopes(self.problem, metrics, batch) or nil
  local failing = array.int32_of(util.map(metrics, function(m) return m.feasible and 0 or 1 end))
  return rewards, failing, by_cost
end

-- Tries the rest of the budget; the policy learns from whole batches only.
local function try_rest(self, batch, first, samples, allowed)
  for i = #batch, math.max(0, allowed - first + 1) + 1, -1 do batch[i] = nil end
  dist_search.evaluate(self, self.job, batch, first, allowed, samples)
end

--- PPO until the policy's share of the budget is used, or the placements that it samples stop improving and a
--- refinement follows. state: { updates, idle, last = evaluations at its end }.
local function learn(self, agent, state, plan)
  local options, samples = self.options, agent:summary().samples
  local first, own = agent:share()
  local batch = self.problem:placements(own)
  local end_s = self.start + options.seconds
  if plan.refine then end_s = core.clock_s() + plan.policy * (end_s - core.clock_s()) end
  local function goes_on() return dist_search.goes_on(self, self.job, self:more() and core.clock_s() < end_s) end
  while goes_on() and (not plan.refine or state.idle < options.patience) do
    local allowed = math.min(self:allowance(samples), state.last - self.evaluations)
    if allowed < samples and (plan.refine or allowed <= 0) then break end
    agent:sample(batch)
    if allowed < samples then return try_rest(self, batch, first, samples, allowed) end
    local before = self.best and self.best.reward or -math.huge
    local report = agent:update(price(self, batch, first, samples))
    self:learned(util.picked(report, { 'loss', 'entropy_groups', 'entropy_devices' }))
    state.updates = state.updates + 1
    state.idle = self.best.reward > before and 0 or state.idle + 1
    if checkpoints.due(self) then keep_policy(self, agent, state) end
  end
end

--- Whether the policy's share of the seconds is enough to begin with.
local function has_time(self, plan)
  local left_s = self.options.seconds - (core.clock_s() - self.start)
  local has = not plan.refine or plan.policy * left_s >= policy_s * self.problem.graph.units
  return dist_search.agreed(self.job, has)
end

--- The policy stage of a search.
function policy.train(self, settings, plan, resumed)
  if not has_time(self, plan) then return end
  local options, state = self.options, { updates = 0, idle = 0 }
  state.last = self.evaluations + math.floor(plan.policy * (options.evaluations - self.evaluations))
  if resumed then
    for _, key in ipairs { 'updates', 'idle', 'last' } do state[key] = tonumber(resumed[key]) or 0 end
    settings.resume = checkpoints.file_of('methods.trinity', self, self.resume, resumed)
  elseif options.load ~= '' then
    settings.load = options.load
  end
  local agent = core.agent(self.problem.handle, settings, self.job and self.job.handle)
  if not resumed and #plan.entries > 0 and self.best then agent:imitate({ self.placement }) end
  if self.job then self.job:barrier() end -- before rank 0 writes a checkpoint, every rank has read its own
  learn(self, agent, state, plan)
  if options.save ~= '' and (not self.job or self.job.rank == 0) then agent:save(options.save) end
  agent:close()
end

return function(methods)
  stages.register(methods, 'trinity', agent_options,
    { help = 'cheap heuristics, then annealing over moves that a trained ranker chooses; PPO on request', budget = true,
      source = 'Algorithms 2022, 15(4), 108' }, policy)
  stages.register(methods, 'best', stages.declared, { help = 'cheap heuristics, then annealing: trinity with nothing '
    .. 'learned', budget = true, source = 'lib/trinity/methods/stages.lua' })
  stages.register(methods, 'heuristics', stages.heuristics, { help = 'the best of the cheap heuristics, without a '
    .. 'search', budget = true, source = 'lib/trinity/search/warm_start.lua' })
end
