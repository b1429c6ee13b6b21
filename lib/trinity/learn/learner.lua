-- What learners are made of: a policy's functions called and checked, and one update by PPO, REINFORCE or
-- cross-entropy. `self` is what learner.new gives.
--
-- In a job of several ranks (trinity.dist) all draw the same actions from the same weights. Each prices its share of a
-- batch and computes the gradient of its share; rewards and gradients of all are added up, so that weights stay the
-- same on all ranks, and a batch is what one process would have drawn.

local array = require 'trinity.base.array'
local checkpoints = require 'trinity.runs.checkpoints'
local checks = require 'trinity.learn.policy_checks'
local core = require 'trinity.core'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local learner_checkpoint = require 'trinity.learn.learner_checkpoint'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local statistics = require 'trinity.base.statistics'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local learner = {}

-- Settings of learners, but for their defaults.
local settings = {
  samples = { 'integer', least = 1, most = 65536, help = 'placements per update' },
  epochs = { 'integer', least = 1, most = 10000, help = 'gradient steps on one batch' },
  learning_rate = { 'number', above = 0, most = 1000, help = 'of Adam' },
  entropy_weight = { 'number', least = 0, most = 1e6, help = 'bonus per choice' },
  gradient_norm = { 'number', above = 0, most = 1e9, help = 'common norm that gradients are clipped to' },
  baseline_n = { 'number', least = 1, most = 1e9, help = 'the baseline decays by (N - 1) / (N + 1)' },
  clip = { 'number', above = 0, most = 1e6, help = "PPO's epsilon, per choice" },
  elite = { 'number', above = 0, most = 1, help = 'share of the samples that are learned from' },
  normalize_advantage = { 'boolean', help = 'divides advantages by their root mean square' },
  last_learning_rate = { 'number', least = 0, most = 1000,
    help = 'what the learning rate falls to, linearly over the evaluations of the budget; 0: it stays' },
  preset = { { 'default', 'paper' },
    help = "'paper': what its authors say, where no option says otherwise (papers/notes.md)" },
  learn = { 'boolean', help = 'false: the policy draws and stays as it is' },
  load = { 'string', help = 'weights of another search to begin with' },
  save = { 'string', help = 'where the weights go' },
}

--- A setting of a method's for options.declare, with a default and where it needs one a help of its own.
function learner.option(name, default, help)
  local setting = settings[name]
  return { name, setting[1], default, least = setting.least, above = setting.above, most = setting.most,
    help = help or setting.help }
end

--- Bounds of options that follow from the problem: its units, and at most `most`.
function learner.units(most)
  return options_of.bound(most and ('the units or %d'):format(most) or 'the units', function(problem)
    return math.min(problem.graph.units, most or math.huge)
  end)
end

-- What the last step of an update was made on, for the run's rows.
local function note(self, loss, entropy)
  self.report = { loss = loss:item(), entropy = entropy:item() }
  return loss
end

--- One gradient step on `loss`, its gradients clipped to a global norm. In a job: on the mean of all ranks' losses; nil
--- is a loss of nothing.
function learner.step(self, loss)
  self.optimiser:zero_grad()
  if loss then loss:backward() end
  if self.job then self.job:average_gradients(self.parameters) end
  nn.clip_grad_norm(self.parameters, self.options.gradient_norm)
  self.optimiser:step()
end

-- The rewards of a batch in their order: from -0.5 for the least to 0.5, equals with the mean of their places.
local function ranks_of(rewards)
  local count = #rewards
  return util.map(rewards, function(reward)
    local below, equal = 0, 0
    for i = 1, count do
      if rewards[i] < reward then below = below + 1 elseif rewards[i] == reward then equal = equal + 1 end
    end
    return count > 1 and (below + (equal - 1) / 2) / (count - 1) - 0.5 or 0
  end)
end

--- What option `advantage` names beside 'moving_average', as functions of a batch's rewards.
learner.advantages = {
  batch = function(rewards)
    local mean = statistics.mean(rewards)
    local deviation = statistics.deviation(rewards)
    return util.map(rewards, function(reward)
      return deviation and deviation > 1e-12 and (reward - mean) / deviation or reward - mean
    end)
  end,
  ranks = ranks_of,
}

-- Advantages of a function of the script's, or of one above: as many finite numbers as there are rewards.
local function own_advantages(self, rewards)
  local given = self.options.advantage
  local compute = learner.advantages[given] or given
  local list = compute(util.listed(#rewards, function(i) return rewards[i] end))
  local function refuse(got)
    util.fail("%s: option 'advantage': the function at %s returned %s, expected a list of %d finite numbers",
      self.owner, util.function_place(compute), got, #rewards)
  end
  if type(list) ~= 'table' then refuse(util.describe(list)) end
  if #list ~= #rewards then refuse(('a list of %d'):format(#list)) end
  return tensor.new(util.map(list, function(value, i)
    if type(value) ~= 'number' or not (math.abs(value) < math.huge) then
      refuse(('%s as entry %d'):format(value ~= value and 'NaN' or util.describe(value), i))
    end
    return { value }
  end))
end

-- Rewards of a batch as advantages [count, 1] against a moving average (eq. 15 of papers/notes.md "Trinity:
-- equations": decay (N - 1) / (N + 1)), divided by their root mean square in the batch or its moving average, whichever
-- is larger.
local function advantages(self, rewards)
  if (self.options.advantage or 'moving_average') ~= 'moving_average' then return own_advantages(self, rewards) end
  local o, mean, squares = self.options, 0, 0
  for i = 1, #rewards do mean = mean + rewards[i] / #rewards end
  self.baseline = self.baseline or mean
  for i = 1, #rewards do
    local off = rewards[i] - self.baseline
    squares = squares + off * off / #rewards
  end
  local function average(old, new) return old and (2 * new + (o.baseline_n - 1) * old) / (o.baseline_n + 1) or new end
  self.squares = average(self.squares, squares)
  local scale = o.normalize_advantage and self.squares > 1e-24 and math.sqrt(math.max(squares, self.squares)) or 1
  local rows = util.listed(#rewards, function(i) return { (rewards[i] - self.baseline) / scale } end)
  self.baseline = average(self.baseline, mean)
  return tensor.new(rows)
end

-- What the policy's functions return is checked; `self.owner` and the function's place stand in the message.
local function refuse_result(self, name, got, ...)
  checks.refuse_result(self.owner, ("policy's function '%s'"):format(name), self.policy[name], got, ...)
end

--- Draws `count` actions [count, choices].
function learner.sample(self, count, stream)
  local actions = self.policy:sample(count, stream)
  if not tensor.is(actions) or actions:dim() ~= 2 or actions:size(1) ~= count or actions.dtype ~= 'int64' then
    refuse_result(self, 'sample', checks.describe(actions), 'actions, a tensor int64 [%d x choices]', count)
  end
  return actions
end

--- The placements of actions.
function learner.placements(self, actions)
  local list, count = self.policy:placements(actions), actions:size(1)
  if type(list) ~= 'table' or #list ~= count then
    local got = type(list) == 'table' and ('a list of %d'):format(#list) or util.describe(list)
    refuse_result(self, 'placements', got, 'a list of %d placements', count)
  end
  list = util.map(list, function(placement, i)
    return array.placement(self.owner, 'result', 'placements', placement, self.problem.graph, i)
  end)
  for i, placement in ipairs(list) do
    if not array.is_int32(placement) or #placement ~= self.problem.graph.operators then
      local got = array.is_int32(placement) and ('an array of %d'):format(#placement) or util.describe(placement)
      refuse_result(self, 'placements', ('%s as entry %d'):format(got, i),
        'a placement (problem:placement(), a device for each of %d operators)', self.problem.graph.operators)
    end
  end
  return list
end

-- Log-probabilities [count, choices] and entropy; with gradients unless `recorded` is false.
local function evaluate(self, actions, recorded)
  local log_probability, entropy = self.policy:evaluate(actions)
  local shape = actions:size()
  if not checks.is_shape(log_probability, shape) or not checks.is_float(log_probability) then
    refuse_result(self, 'evaluate', checks.describe(log_probability),
      'log-probabilities, a tensor of numbers [%d x %d]', shape[1], shape[2])
  end
  if not checks.is_finite(log_probability) then
    refuse_result(self, 'evaluate', 'log-probabilities that are not finite', 'finite numbers')
  end
  if recorded ~= false and not log_probability.requires_grad then
    refuse_result(self, 'evaluate', 'log-probabilities without gradients', 'some that depend on its parameters')
  end
  if not checks.is_float(entropy) or entropy:numel() ~= 1 or not checks.is_finite(entropy) then
    refuse_result(self, 'evaluate', checks.describe(entropy) .. ' as its second value',
      'the mean entropy, a tensor with one finite number')
  end
  return log_probability, entropy
end

-- Of rows [count, ...] that all ranks have, those that this one learns from, as a function of a tensor; and what its
-- mean weighs among the ranks' means. No rows: nil.
local function share_of(self, count)
  local job = self.job
  if not job then return function(rows) return rows end, 1 end
  local first, last = dist_search.range(job, count)
  if last < first then return nil, 0 end
  return function(rows) return rows:narrow(1, first, last - first + 1) end, (last - first + 1) * job.size / count
end

-- A step on the loss of the rows that this rank has; loss_of() is not asked where there are none.
local function step_on_share(self, weight, loss_of)
  local loss = weight > 0 and loss_of() or nil
  learner.step(self, weight ~= 1 and loss and loss * weight or loss)
end

--- PPO with a ratio per choice (papers/notes.md "Trinity: contradictions and gaps", 13).
function learner.ppo(self, actions, rewards)
  local o, advantage = self.options, advantages(self, rewards)
  local share, weight = share_of(self, #rewards)
  local old
  if share then
    actions, advantage = share(actions), share(advantage)
    old = tensor.no_grad(function() return (evaluate(self, actions, false)) end)
  end
  for _ = 1, o.epochs do
    step_on_share(self, weight, function()
      local log_probability, entropy = evaluate(self, actions)
      local ratio = (log_probability - old):clamp(-20, 20):exp()
      local objective = (ratio * advantage):minimum(ratio:clamp(1 - o.clip, 1 + o.clip) * advantage):mean()
      return note(self, -(objective + entropy * o.entropy_weight), entropy)
    end)
  end
end

--- REINFORCE (Williams 1992) with a moving-average baseline.
function learner.reinforce(self, actions, rewards)
  local advantage = advantages(self, rewards)
  local share, weight = share_of(self, #rewards)
  step_on_share(self, weight, function()
    local log_probability, entropy = evaluate(self, share(actions))
    return note(self, -((log_probability * share(advantage)):mean() + entropy * self.options.entropy_weight), entropy)
  end)
end

-- Numbers of the `count` largest rewards; among equals the earlier sample.
local function elite(rewards, count)
  local order = util.listed(#rewards, function(i) return i end)
  table.sort(order, function(a, b)
    if rewards[a] ~= rewards[b] then return rewards[a] > rewards[b] end
    return a < b
  end)
  for i = #order, count + 1, -1 do order[i] = nil end
  return order
end

--- Cross-entropy (Rubinstein 1999; as Post uses it, papers/notes.md "Post"): raises the likelihood of the best
--- samples.
function learner.cross_entropy(self, actions, rewards)
  local o = self.options
  local count = math.max(1, math.floor(o.elite * #rewards + 0.5))
  local chosen = actions:index_select(1, tensor.new(elite(rewards, count), { dtype = 'int64' }))
  local share, weight = share_of(self, count)
  for _ = 1, o.epochs do
    step_on_share(self, weight, function()
      local log_probability, entropy = evaluate(self, share(chosen))
      return note(self, -(log_probability:mean() + entropy * o.entropy_weight), entropy)
    end)
  end
end

local required = { 'parameters', 'sample', 'evaluate', 'placements' }

--- A policy with all its functions; `source` is the function that made it, if one did.
function learner.check_policy(owner, policy, source)
  local from = source and (' from the function at %s'):format(util.function_place(source)) or ''
  if type(policy) ~= 'table' then
    util.fail('%s: expected a policy%s, got %s', owner, from, checks.describe(policy))
  end
  for _, name in ipairs(required) do
    if type(policy[name]) ~= 'function' then
      util.fail("%s: a policy%s needs the functions %s; '%s' is %s", owner, from, table.concat(required, ', '), name,
        util.describe(policy[name]))
    end
  end
  return policy
end

local function learned_parameters(self)
  local list = self.policy:parameters()
  if type(list) ~= 'table' or #list == 0 then
    refuse_result(self, 'parameters', type(list) == 'table' and 'an empty list' or checks.describe(list),
      'a list of tensors that require gradients')
  end
  for i, entry in ipairs(list) do
    if not tensor.is(entry) or not entry.requires_grad then
      refuse_result(self, 'parameters', ('%s as entry %d'):format(checks.describe(entry), i),
        'tensors that require gradients')
    end
  end
  return list
end

--- A policy in training; `owner` begins the messages about it. options: those of the learner and seed.
function learner.new(owner, policy, problem, options)
  local self = { owner = owner, policy = policy, problem = problem, options = options }
  self.parameters = learned_parameters(self)
  self.optimiser = nn.adam { parameters = self.parameters, learning_rate = options.learning_rate }
  return self
end

--- Whether the search `run` goes on: in a job all ranks get rank 0's answer.
function learner.more(self, run) return dist_search.more(run, self.job) end

-- Begins to learn with the other ranks, from rank 0's parameters.
local function join(self, run)
  run.updates = run.updates or 0
  self.job = dist_search.begin(run, dist.current())
  if not self.job then return end
  local lines = util.map(self.parameters, function(parameter, i)
    return ('parameter %d: %s %s'):format(i, table.concat(parameter:size(), ' x '), parameter.dtype)
  end)
  self.job:agree("the policy's shape", table.concat(lines, '\n'))
  for _, parameter in ipairs(self.parameters) do
    local values = parameter:detach():clone()
    tensor.no_grad(function() parameter:copy_(self.job:broadcast(values)) end)
  end
end

--- Begins to learn for the search `run`, with the other ranks of a job, and where an interrupted run ended: returns the
--- notes of its checkpoint, or nil. A policy of the script's own that goes on learning (self.keeps = false) has none.
function learner.begin(self, run)
  join(self, run)
  if self.keeps == false then return nil end
  checkpoints.begin(run, dist_search.share(self.job))
  local notes = learner_checkpoint.restore(self.owner, run, self.parameters, self.optimiser)
  if notes and self.job then self.job:agree(('the checkpoint %s'):format(run.resume), run.resumed_at) end
  if notes then self.baseline, self.squares = tonumber(notes.baseline), tonumber(notes.squares) end
  return notes
end

-- Writes a checkpoint after `batch` batches.
local function keep(self, run, batch, own)
  learner_checkpoint.write(run, self.parameters, self.optimiser, util.merged({ batch = batch, baseline = self.baseline,
    squares = self.squares }, own.notes and own.notes()))
end

-- One batch: drawn, priced, learned from.
local function train_batch(self, run, batch, update, signal)
  local stream, count = core.random(self.options.seed, 'policy', batch), run:allowance(self.options.samples)
  local actions = learner.sample(self, count, stream)
  local first, last = dist_search.range(self.job, count)
  local own = last >= first and learner.placements(self, actions:narrow(1, first, last - first + 1)) or {}
  local rewards, metrics = dist_search.evaluate(run, self.job, own, first, count)
  if signal then
    for i = 1, #rewards do rewards[i] = signal(metrics[i], rewards[i]) end
  end
  self.report = nil
  update(self, actions, rewards, batch)
  if self.report then (run.whole or run):learned(self.report) end
end

--- Draws, prices and learns until the budget of `run` is used up: update(self, actions, rewards, batch).
--- signal(metrics, reward) gives what is learned from, where that is not the problem's reward. In a job of several
--- ranks (trinity.dist) the budget is that of all together. `own` is what the method adds to checkpoints, all optional:
--- notes() -> table, resume(notes), may(batch) -> whether one may be written after that batch, begun = what
--- learner.begin() gave, where the method called it (false for nil).
function learner.train(self, run, update, signal, own)
  own = own or {}
  local whole, notes = run.whole or run, own.begun
  if notes == nil then notes = learner.begin(self, whole) end
  local batch = notes and tonumber(notes.batch) or 0
  if notes and own.resume then own.resume(notes) end
  while learner.more(self, run) do
    batch = batch + 1
    train_batch(self, run, batch, update, signal)
    if checkpoints.due(whole) and (not own.may or own.may(batch)) then keep(self, whole, batch, own) end
  end
end

return learner
