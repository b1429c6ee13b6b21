-- Shared code of the learners of trinity.learn and of methods that train networks: options, the loop of updates with
-- its checkpoints and reports, gradient steps.
--
-- In a job of several ranks (trinity.dist) all ranks sample the same actions from the same weights and compute the same
-- updates; the environment divides the simulations among them.

local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local learner_checkpoint = require 'trinity.learn.learner_checkpoint'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local rollout = require 'trinity.learn.rollout'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local training = {}

training.declared = options_of.declare('trinity.LearnOptions', { help = 'What every learner takes.',
  { 'total_timesteps', 'integer', needed = true, least = 1, most = 2 ^ 53,
    help = 'steps of all environments together' },
  { 'num_steps', 'integer', 32, least = 1, most = 2 ^ 20, help = 'of every environment per update' },
  { 'learning_rate', 'number', 2.5e-3, above = 0, most = 1000, help = 'of Adam' },
  { 'anneal_lr', 'boolean', false, help = 'the learning rate falls to 0 over total_timesteps' },
  { 'gamma', 'number', 1, least = 0, most = 1, help = 'discount per step' },
  { 'ent_coef', 'number', 1e-2, least = 0, most = 1e6, help = 'weight of the entropy bonus' },
  { 'ent_coef_end', 'number', least = 0, most = 1e6, otherwise = 'ent_coef',
    help = 'what ent_coef becomes over total_timesteps' },
  { 'max_grad_norm', 'number', 0.5, above = 0, most = 1e9, help = 'common norm that gradients are clipped to' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the environment and of sampling' },
  { 'on_update', 'function', as = 'fun(report: trinity.UpdateReport)', help = 'called after each update' },
})

local function field(policy, name) return policy[name] end

--- Refuses what is no environment, or no policy of one with the functions that are named.
function training.check(owner, env, policy, names)
  check.object(owner, 1, 'env', env, 'env')
  for name in names:gmatch '%S+' do
    local ok, found = pcall(field, policy, name)
    if type(policy) ~= 'table' or not ok or type(found) ~= 'function' then
      check.refuse(owner, 2, 'policy', 'expected a policy with the functions %s, got %s', names, util.describe(policy))
    end
  end
  return policy
end

--- One gradient step on a loss, its gradients clipped to a common norm.
function training.step(optimiser, parameters, loss, max_grad_norm)
  optimiser:zero_grad()
  loss:backward()
  nn.clip_grad_norm(parameters, max_grad_norm)
  optimiser:step()
end

--- Zero mean and unit deviation.
function training.normalised(values)
  if values:numel() < 2 then return values - values:mean() end
  return (values - values:mean()) / (values:std() + 1e-8)
end

--- Advantages [rows] in the shape of log-probabilities [rows] or [rows, choices].
function training.by_choice(advantages, log_probs)
  return log_probs:dim() > 1 and advantages:unsqueeze(2) or advantages
end

-- Joins the other ranks of a job and takes rank 0's weights.
local function join(search, parameters)
  local job = search.agrees or dist_search.begin(search, dist.current())
  if not job then return nil end
  local lines = util.map(parameters, function(parameter, i)
    return ('parameter %d: %s %s'):format(i, table.concat(parameter:size(), ' x '), parameter.dtype)
  end)
  job:agree("the policy's shape", table.concat(lines, '\n'))
  for _, parameter in ipairs(parameters) do
    local values = parameter:detach():clone()
    tensor.no_grad(function() parameter:copy_(job:broadcast(values)) end)
  end
  return job
end

-- Begins to learn within a search, with the other ranks of a job, and where an interrupted run ended. Returns the notes
-- of its checkpoint. A second learner within a search has no checkpoints, nor one in a body with search:resumed().
local function begin(self)
  local search = self.search
  local job = join(search, self.parameters)
  search.updates = search.updates or 0
  if search.resumable then return {} end
  search.resumable, self.keeps = true, true
  checkpoints.begin(search, dist_search.share(job))
  local notes = learner_checkpoint.restore(self.owner, search, self.parameters, self.optimiser)
  if notes and job then job:agree(('the checkpoint %s'):format(search.resume), search.resumed_at) end
  return notes or {}
end

--- Refuses logits that are not all finite.
function training.check_finite(owner, logits)
  local sum = tensor.no_grad(logits.sum, logits):item() -- finite where all of them are
  if not (math.abs(sum) < math.huge) then
    util.fail('%s: the policy diverged: its logits are no finite numbers; use a smaller learning_rate', owner)
  end
end

--- Trains until play() gives nothing. self:
---   owner, parameters, optimiser, max_grad_norm
---   search                       whose evaluations it uses, or nil: gets rows and checkpoints
---   play(number)                 what update `number` learns from; nil where the budget is used up
---   learn(batch, number, step)   takes gradient steps by step(loss); returns the row of the search, nil for none
---   may(number)                  optional: whether a checkpoint may follow update `number`
---   notes(), resume(notes, number)   optional: what checkpoints contain further, and the way back after update
---                                `number`; {} and 0 without a checkpoint
function training.loop(self)
  local search = self.search
  local notes = search and begin(self) or {}
  local number = notes.number or 0
  if self.resume then self.resume(notes, number) end
  local function step(loss)
    local value = loss:item()
    if not (math.abs(value) < math.huge) then
      util.fail('%s: the loss has numbers that are not finite: rewards are too large, or the policy diverged; use a '
        .. 'smaller learning_rate', self.owner)
    end
    training.step(self.optimiser, self.parameters, loss, self.max_grad_norm)
  end
  while true do
    number = number + 1
    local batch = self.play(number)
    if not batch then return end
    local row = self.learn(batch, number, step)
    if row and search then
      search:learned(row)
      if self.keeps and checkpoints.due(search) and (not self.may or self.may(number)) then
        learner_checkpoint.write(search, self.parameters, self.optimiser,
          util.merged({ number = number }, self.notes and self.notes()))
      end
    end
  end
end

--- Plays and updates until total_timesteps: learner.learn(batch, step, ent_coef, number) gives the fields of its
--- report, `batch` is what rollout.play() gives. Returns the reports; training ends early where the environment's
--- budget does.
function training.run(owner, env, policy, o, learner)
  local parameters, reports = policy:parameters(), {}
  local optimiser = nn.adam { parameters = parameters, learning_rate = o.learning_rate, epsilon = 1e-5 }
  local agent = rollout.begin(env, policy, o.seed)
  local passed
  training.loop { owner = owner, search = env.description.options.search, parameters = parameters,
    optimiser = optimiser, max_grad_norm = o.max_grad_norm, notes = learner.notes,
    resume = function(notes, number)
      agent.timesteps = number * o.num_steps * env.num_envs
      if number > 0 and learner.resume then learner.resume(notes) end
    end,
    play = function(number)
      passed = agent.timesteps / o.total_timesteps
      if passed >= 1 then return nil end
      if o.anneal_lr then optimiser.learning_rate = o.learning_rate * (1 - passed) end
      agent.stream = core.random(o.seed, 'agent', number)
      return rollout.play(agent, o.num_steps)
    end,
    learn = function(batch, number, step)
      local report = learner.learn(batch, step, o.ent_coef + ((o.ent_coef_end or o.ent_coef) - o.ent_coef) * passed,
        number)
      report.timesteps, report.episode_return = agent.timesteps, rollout.episode_return(agent)
      reports[#reports + 1] = report
      if o.on_update then o.on_update(report) end
      return { loss = report.policy_loss, entropy = report.entropy }
    end }
  return reports
end

return training
