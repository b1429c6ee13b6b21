-- Policies: distributions over placements with parameters to learn. The learners (trinity.ppo,
-- trinity.reinforce, trinity.cross_entropy) ask four things of one; write your own with them, or give
-- one of the constructors here a network:
--   policy:parameters()              list of tensors that are learned
--   policy:sample(count, stream)     actions, an int64 tensor [count, choices], each from 1
--   policy:evaluate(actions)         their log-probabilities [count, choices] and the mean entropy of a
--                                    choice (a scalar), both with gradients
--   policy:placements(actions)       a list of placements, one a row

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local checks = require 'trinity.learn.policy_checks'
local core = require 'trinity.core'
local features = require 'trinity.learn.features'
local learner = require 'trinity.learn.learner'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local slopes = require 'trinity.strategy.slopes'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

--- Distributions over placements with parameters to learn. Write your own as a table with the functions of
--- trinity.Policy, or give one of these a network.
---@class trinity.PoliciesModule
---@since 0.1.0
local policies = {}

---@class trinity.Policy
---@since 0.1.0
local Policy = { __name = 'policy' }

-- Logits as the user's function gave them: numbers of the right shape.
local function check_logits(self, owner, logits, shape)
  local function refuse(got)
    checks.refuse_result(owner, "function 'logits'", self.logits, got, 'a tensor of finite numbers [%s] (devices last)',
      table.concat(shape, ' x '))
  end
  if not checks.is_shape(logits, shape) or not checks.is_float(logits) then refuse(checks.describe(logits)) end
  if not checks.is_finite(logits) then refuse 'numbers that are not finite' end
  return logits
end

local function check_actions(self, owner, actions)
  local count = tensor.is(actions) and actions:dim() == 2 and actions:size(1) or 1
  if not checks.is_shape(actions, { count, self.choices }) or actions.dtype ~= 'int64' or count == 0 then
    check.refuse(owner, 1, 'actions', 'expected tensor int64 [count x %d], got %s', self.choices,
      checks.describe(actions))
  end
  local least, most = actions:min():item(), actions:max():item()
  if least < 1 or most > self.devices then
    check.refuse(owner, 1, 'actions', 'expected devices from 1 to %d, got %d', self.devices,
      least < 1 and least or most)
  end
end

local function check_sampling(self, count, stream)
  check.integer('policy:sample', 1, 'count', count, 1, math.floor(2 ^ 28 / (self.choices * self.devices)))
  if util.class_of(stream) ~= 'random stream' then
    check.wrong('policy:sample', 2, 'stream', stream, 'a random stream (trinity.random)')
  end
end

--- The tensors that are learned.
---@return trinity.TorchTensor[]
function Policy:parameters() return self.learned end

--- A placement for every row of actions.
---@param actions trinity.TorchTensor
---@return trinity.Placement[]
function Policy:placements(actions)
  check_actions(self, 'policy:placements', actions)
  local rows, device = self.problem:placements(actions:size(1)), actions:to_array()
  local choices, choice_of = self.choices, self.choice_of
  for s, placement in ipairs(rows) do
    local first = (s - 1) * choices
    for op = 1, #placement do placement[op] = device[first + choice_of[op]] end
  end
  return rows
end

local function refuse_field(owner, name, message, ...)
  check.refuse(owner, 1, 'spec', "field '%s': %s", name, message:format(...))
end

-- The choice of every operator from that of every unit.
local function spread(owner, problem, choice_of_unit, choices)
  local units, unit_of = problem.graph.units, problem.graph.unit_of
  if choice_of_unit == nil and choices ~= units then
    refuse_field(owner, 'choice_of_unit', 'needed where choices (%d) are not units (%d)', choices, units)
  end
  if choice_of_unit ~= nil then
    if type(choice_of_unit) ~= 'table' and not array.is_int32(choice_of_unit) then
      refuse_field(owner, 'choice_of_unit', 'expected a list or an int32 array, got %s', util.describe(choice_of_unit))
    end
    if #choice_of_unit ~= units then
      refuse_field(owner, 'choice_of_unit', 'expected %d entries, one a unit, got %d', units, #choice_of_unit)
    end
    for unit = 1, units do
      local choice = choice_of_unit[unit]
      if type(choice) ~= 'number' or not (choice >= 1 and choice <= choices and choice % 1 == 0) then
        refuse_field(owner, 'choice_of_unit', 'entry %d: expected an integer from 1 to %d, got %s', unit, choices,
          util.describe(choice))
      end
    end
  end
  local choice_of = array.int32(problem.graph.operators)
  for op = 1, #choice_of do choice_of[op] = choice_of_unit and choice_of_unit[unit_of[op]] or unit_of[op] end
  return choice_of
end

-- The learned tensors of a module, or of a list of modules and tensors.
local function learned_of(owner, source)
  local list = {}
  for i, part in ipairs(nn.is_module(source) and { source } or source) do
    if tensor.is(part) and part.requires_grad then
      list[#list + 1] = part
    elseif nn.is_module(part) then
      for _, weight in ipairs(part:parameters()) do list[#list + 1] = weight end
    else
      refuse_field(owner, 'learned', 'entry %d: expected a module or a tensor that requires gradients, got %s', i,
        checks.describe(part))
    end
  end
  if #list == 0 then refuse_field(owner, 'learned', 'expected modules or tensors, got nothing to learn') end
  return list
end

local spec_options = options_of.declare('trinity.PolicySpec', { kind = 'field', help = 'What a policy is made of.',
  { 'problem', 'object', class = 'problem', needed = true, help = 'what placements are of' },
  { 'logits', 'function', needed = true, help = 'of every choice' },
  { 'learned', 'table', needed = true, as = 'trinity.Module|(trinity.Module|trinity.TorchTensor)[]',
    help = 'what the logits depend on' },
  { 'choices', 'integer', least = 1, most = 2 ^ 22, otherwise = 'the colocation units', help = 'how many' },
  { 'choice_of_unit', 'any', as = 'integer[]|trinity.Placement', otherwise = 'one each',
    help = 'the choice of every unit' },
})

local function new(owner, spec, class)
  spec_options:read(owner, 1, 'spec', spec)
  local choices = spec.choices or spec.problem.graph.units
  return setmetatable({ problem = spec.problem, choices = choices, devices = #spec.problem.cluster.devices,
    logits = spec.logits, learned = learned_of(owner, spec.learned),
    choice_of = spread(owner, spec.problem, spec.choice_of_unit, choices) }, class)
end

local function entropy_of(rows) return rows:exp():mul(rows):sum(-1):mean():neg() end

-- A class of policies: Policy's methods and its own.
local function class()
  local made = { __name = 'policy', parameters = Policy.parameters, placements = Policy.placements }
  made.__index = made
  return made
end

--- What learners ask of a policy. Those of trinity.policies have fields beside it.
---@class trinity.Policy
---@field problem trinity.Problem
---@field choices integer
---@field devices integer
---@field logits function
---@field learned trinity.TorchTensor[]
---@field choice_of trinity.Placement int32 array: the choice of every operator
local Independent = class()

--- Draws actions: int64 [count, choices], each from 1.
---@param count integer
---@param stream trinity.RandomStream
---@return trinity.TorchTensor
function Independent:sample(count, stream)
  check_sampling(self, count, stream)
  return tensor.no_grad(function()
    local rows = check_logits(self, 'policy:sample', self.logits(), { self.choices, self.devices })
    return tensor.categorical(rows:unsqueeze(1):expand { count, self.choices, self.devices }, stream)
  end)
end

--- Log-probabilities [count, choices] of actions and the mean entropy of a choice, with gradients.
---@param actions trinity.TorchTensor
---@return trinity.TorchTensor log_probabilities
---@return trinity.TorchTensor entropy
function Independent:evaluate(actions)
  check_actions(self, 'policy:evaluate', actions)
  local logits = check_logits(self, 'policy:evaluate', self.logits(), { self.choices, self.devices })
  local rows = logits:log_softmax(-1)
  return rows:gather(2, actions:transpose(1, 2)):transpose(1, 2), entropy_of(rows)
end

--- The placement whose every choice is the most likely one; of equals the first device.
---@return trinity.Placement
function Independent:greedy()
  return self:placements(tensor.no_grad(function()
    local rows = check_logits(self, 'policy:greedy', self.logits(), { self.choices, self.devices })
    return rows:argmax(-1):unsqueeze(1)
  end))[1]
end

--- Choices that know nothing of each other; logits() gives [choices, devices].
---@param spec trinity.PolicySpec
---@return trinity.Policy
function policies.independent(spec) return new('policies.independent', spec, Independent) end

local Chain = class()

function Chain:sample(count, stream)
  check_sampling(self, count, stream)
  return tensor.no_grad(function()
    local previous, actions = tensor.full({ count, 1 }, self.devices + 1, { dtype = 'int64' }), {}
    for k = 1, self.choices do
      local logits = check_logits(self, 'policy:sample', self.logits(k, k, previous), { count, 1, self.devices })
      previous = tensor.categorical(logits, stream)
      actions[k] = previous
    end
    return tensor.cat(actions, 2)
  end)
end

function Chain:evaluate(actions)
  check_actions(self, 'policy:evaluate', actions)
  local count = actions:size(1)
  local start = tensor.full({ count, 1 }, self.devices + 1, { dtype = 'int64' })
  local previous = self.choices == 1 and start
    or tensor.cat({ start, actions:narrow(2, 1, self.choices - 1) }, 2)
  local logits = check_logits(self, 'policy:evaluate', self.logits(1, self.choices, previous),
    { count, self.choices, self.devices })
  local rows = logits:log_softmax(-1)
  return rows:gather(3, actions:unsqueeze(3)):squeeze(3), entropy_of(rows)
end

-- Every choice is the most likely one behind those before it.
function Chain:greedy()
  return self:placements(tensor.no_grad(function()
    local previous, actions = tensor.full({ 1, 1 }, self.devices + 1, { dtype = 'int64' }), {}
    for k = 1, self.choices do
      previous = check_logits(self, 'policy:greedy', self.logits(k, k, previous), { 1, 1, self.devices }):argmax(-1)
      actions[k] = previous
    end
    return tensor.cat(actions, 2)
  end))[1]
end

--- Choices one after the other, each knowing the one before. logits(first, last, previous) gives [count, last - first +
--- 1, devices] for choices first to last; previous [count, last - first + 1] are the devices chosen just before them,
--- devices + 1 before the first.
---@param spec trinity.PolicySpec
---@return trinity.Policy
function policies.chain(spec) return new('policies.chain', spec, Chain) end

local table_options = options_of.declare('trinity.PolicyTableOptions', { help = 'What policies.table takes.',
  { 'groups', 'integer', least = 1, most = learner.units(), otherwise = 'min(units, 20 x devices)', help = 'how many' },
})

local network_options = options_of.declare('trinity.PolicyNetworkOptions', { help = 'What policies.network takes.',
  { 'hidden', 'integer', 64, least = 1, most = 65536, help = 'width of the hidden layer' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53 - 1, help = 'of the initial weights' },
  { 'features', 'table', as = 'trinity.FeatureOptions', help = 'what the network is told' },
})

--- A table of free logits over contiguous groups of equal work, no network (Post, papers/notes.md "Post").
---@param problem trinity.Problem
---@param options? trinity.PolicyTableOptions
---@return trinity.Policy
function policies.table(problem, options)
  check.object('policies.table', 1, 'problem', problem, 'problem')
  local groups = table_options:read('policies.table', 2, 'options', options, problem).groups
    or math.min(problem.graph.units, 20 * #problem.cluster.devices) -- as Post and Trinity have them
  local logits = tensor.zeros({ groups, #problem.cluster.devices }, { requires_grad = true })
  return policies.independent { problem = problem, learned = { logits }, logits = function() return logits end,
    choices = groups, choice_of_unit = policies.contiguous_groups(problem, groups) }
end

--- A hidden layer over the features of every unit.
---@param problem trinity.Problem
---@param options? trinity.PolicyNetworkOptions
---@return trinity.Policy
function policies.network(problem, options)
  check.object('policies.network', 1, 'problem', problem, 'problem')
  options = network_options:read('policies.network', 2, 'options', options)
  local seed, hidden, type_size = options.seed, options.hidden, 20
  local told = features(problem, options.features)
  local embedding = nn.embedding { count = told.type_count, size = type_size, seed = seed }
  local layers = nn.sequential { nn.linear { inputs = told.width + type_size, outputs = hidden }, nn.relu,
    nn.linear { inputs = hidden, outputs = #problem.cluster.devices }, seed = seed }
  return policies.independent { problem = problem, learned = { embedding, layers },
    logits = function() return layers(tensor.cat({ embedding(told.types), told.values }, 2)) end }
end

--- The group of every unit, from 1: contiguous parts of about equal work along the graph, none empty.
---@param problem trinity.Problem
---@param groups integer at most the number of units
---@return trinity.Placement an int32 array
function policies.contiguous_groups(problem, groups)
  check.object('policies.contiguous_groups', 1, 'problem', problem, 'problem')
  local units = problem.graph.units
  check.integer('policies.contiguous_groups', 2, 'groups', groups, 1, units)
  local handle = core.features(problem.handle, { node2vec = false })
  local position, group_of, order = array.double(units), array.int32(units), {}
  handle:position(position)
  handle:close()
  for unit = 1, units do order[unit] = unit end
  table.sort(order, function(a, b)
    if position[a] ~= position[b] then return position[a] < position[b] end
    return a < b
  end)
  local group = 0
  for place, unit in ipairs(order) do
    -- At most one group further than the unit before, and never so far behind that a later group goes empty.
    local wanted = math.floor(position[unit] * groups) + 1
    group = math.max(groups - (units - place), math.min(group + 1, groups, math.max(group, wanted)))
    group_of[unit] = group
  end
  return group_of
end

--- Trinity's policy in the engine.
---@class trinity.Agent
---@since 0.1.0
---@field problem trinity.Problem
---@field batch trinity.Placement[] the latest
---@field groups integer
---@field units integer
---@field samples integer placements a batch
---@field parameters integer numbers that are learned
---@field loaded number share of them that came from the file `load`
local Agent = { __name = 'agent' }
Agent.__index = Agent

--- Draws a batch of placements; the next call overwrites them.
---@return trinity.Placement[]
function Agent:sample()
  self.handle:sample(self.batch)
  return self.batch
end

-- A list of numbers as a double array; what is no table goes through as it is.
local function doubles(owner, name, list)
  if type(list) ~= 'table' then return list end
  return array.double_of(check.list(owner, 1, name, list, 'number'))
end

-- Booleans as an int32 array of 0 and 1.
local function marks(owner, list)
  if list == nil then return nil end
  return array.int32_of(util.map(check.list(owner, 2, 'failing', list, 'boolean'), function(fails)
    return fails and 1 or 0
  end))
end

--- Learns from the rewards of the latest batch, larger is better.
---@param rewards number[]|trinity.DoubleArray
---@param failing? boolean[] samples that broke a limit, for exclude_failing_after
---@param metrics? trinity.Metrics[] of the batch, which credit = 'action' needs
---@return trinity.AgentReport
function Agent:update(rewards, failing, metrics)
  local by_cost
  if metrics ~= nil then
    check.argument('agent:update', 3, 'metrics', metrics, 'table')
    for i = 1, #metrics do
      if not array.is_metrics(metrics[i]) then
        check.refuse('agent:update', 3, 'metrics', 'entry %d: expected metrics, got %s', i, util.describe(metrics[i]))
      end
    end
    by_cost = slopes(self.problem, metrics, self.batch)
  end
  return self.handle:update(doubles('agent:update', 'rewards', rewards), marks('agent:update', failing), by_cost)
end

local imitation = options_of.declare('trinity.ImitationSettings', { help = 'How placements are imitated.',
  { 'weights', 'table', as = 'number[]', otherwise = 'all alike', help = 'positive, one a placement' },
  { 'steps', 'integer', -1, least = -1, most = 1e5, help = 'gradient steps; -1: 0 for one placement, 40 for several' },
  { 'learning_rate', 'number', 5e-3, above = 0, most = 10, help = 'of these steps' },
  { 'smoothing', 'number', 0.05, least = 0, most = 1, help = 'share of probability that is left to other choices' },
})

--- Raises the likelihood of given placements (1 to 64): a warm start.
---@param placements trinity.Placement[]
---@param settings? trinity.ImitationSettings
---@return trinity.ImitationReport
function Agent:imitate(placements, settings)
  check.argument('agent:imitate', 1, 'placements', placements, 'table')
  local given = placements
  placements = {}
  for i = 1, #given do
    placements[i] = array.placement('agent:imitate', 1, 'placements', given[i], self.problem.graph, i)
    if not array.is_int32(placements[i]) then
      check.refuse('agent:imitate', 1, 'placements', 'entry %d: expected a placement (problem:placement()), got %s', i,
        util.describe(given[i]))
    end
  end
  return self.handle:imitate(placements, imitation:read('agent:imitate', 2, 'settings', settings))
end

--- Forgets the moving averages of reward and advantage, or sets the baseline.
---@param value? number
function Agent:reset_baseline(value) self.handle:reset_baseline(value) end

--- Saves weights, state of the optimiser, baseline and step, for the options `load` and `resume`.
---@param path string
function Agent:save(path) self.handle:save(path) end

--- What was drawn in the latest batch.
---@return trinity.AgentActions
function Agent:actions()
  local by_unit, by_group = self.samples * self.units, self.samples * self.groups
  local groups, devices = array.int32(by_unit), array.int32(by_group)
  local group_logs, device_logs = array.double(by_unit), array.double(by_group)
  self.handle:actions(groups, devices, group_logs, device_logs)
  local function rows(values, columns) return tensor.new(values):reshape { self.samples, columns } end
  return { groups = rows(groups, self.units), devices = rows(devices, self.groups),
    group_logs = rows(group_logs, self.units), device_logs = rows(device_logs, self.groups) }
end

--- Seconds spent so far in the parts of sample() and update().
---@return trinity.AgentProfile
function Agent:profile() return self.handle:profile() end

--- The most likely placement.
---@return trinity.Placement
function Agent:greedy()
  local list = self.problem:placements(1)
  self.handle:greedy(list)
  return list[1]
end

--- Frees the engine's memory; any further use is an error.
function Agent:close() check.closing('agent:close', self, 'agent').handle:close() end

--- Trinity's own policy with its own PPO in the engine (engine/learn/agent.h).
---@param problem trinity.Problem
---@param options? trinity.AgentOptions without those of every method but the seed
---@return trinity.Agent
function policies.trinity(problem, options)
  check.object('policies.trinity', 1, 'problem', problem, 'problem')
  if options ~= nil then check.argument('policies.trinity', 2, 'options', options, 'table') end
  local handle, loaded = core.agent(problem.handle, options or {})
  local self = handle:summary()
  self.gradient_steps = nil -- grows: not a field to keep
  self.handle, self.problem, self.batch, self.loaded = handle, problem, problem:placements(self.samples), loaded
  return setmetatable(self, Agent)
end

check.methods(Independent, 'trinity.Policy')
check.methods(Chain, 'trinity.Policy')
check.methods(Agent, 'trinity.Agent')

return policies
