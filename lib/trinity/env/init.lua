-- trinity.env: problems as a vectorised environment of reinforcement learning, with reset and step as Gymnasium's
-- vector environments have them. An episode that ends restarts in the same step, as with autoreset in Gymnasium.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local fields = require 'trinity.base.fields'
local feature_options = require 'trinity.learn.feature_options'
local infeasibility = require 'trinity.strategy.infeasibility'
local mesh = require 'trinity.env.mesh'
local nodes_of = require 'trinity.env.nodes'
local observations = require 'trinity.env.observations'
local options_of = require 'trinity.base.options'
local place = require 'trinity.env.place'
local rewards = require 'trinity.strategy.rewards'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local declared = options_of.declare('trinity.EnvOptions', { help = 'What trinity.env takes.',
  { 'num_envs', 'integer', 8, least = 1, most = 65536, help = 'episodes at once; problems take turns' },
  { 'actions', options_of.words('trinity.EnvActions', { 'place', 'order', 'move', 'joint', 'mesh' }), 'place',
    help = "the next node's device; the next node and its device; any node's new device; all nodes' devices at once; "
      .. 'words of a mesh' },
  { 'decode', 'function', as = 'fun(actions: trinity.TorchTensor): trinity.Placement[]',
    otherwise = 'a device of each node', help = "the placements of 'joint' actions, one a row" },
  { 'groups', 'integer', 0, least = 0, most = 2 ^ 20,
    help = 'number of contiguous groups of colocation units that are the nodes; 0: each unit is one' },
  { 'reward', options_of.words('trinity.EnvReward', { 'final', 'difference', 'bound' }), 'final',
    help = 'the score at the end; what each step changes of it; of a lower bound of it, for place and order' },
  { 'steps', 'integer', 64, least = 1, most = 2 ^ 30, help = "of an episode of 'move'" },
  { 'start', 'any', 'first',
    as = "'first'|'random'|fun(problem: trinity.Problem, stream: trinity.RandomStream): trinity.Placement",
    check = function(owner, at, name, value)
      if type(value) ~= 'function' then check.choice(owner, at, name, value, { first = true, random = true }) end
    end, help = 'where nodes are before they are placed: all on device 1, sampled, or as a function says' },
  { 'strict', 'boolean', true,
    help = 'whether masked actions are refused; false: they are taken, those out of range modulo what there is' },
  { 'critical_path', 'boolean', false, help = "observes every node's share of the critical path; simulates longer" },
  { 'signal', 'function', as = 'fun(metrics: trinity.Metrics, reward: number): number',
    otherwise = "minus the step time over its lower bound, or the problem's own reward",
    help = 'the score of a simulated placement' },
  { 'features', feature_options.features, otherwise = 'without node2vec', help = 'of nodes' },
  { 'words', 'table', as = 'any[][]', otherwise = 'tensor, pipeline, schedule, zero_stage, recompute',
    help = "of 'mesh': a list of { name, values } in their order" },
  { 'global_batch', 'integer', least = 1, most = 2 ^ 40, otherwise = 'four micro-batches per device',
    help = "samples per step of 'mesh'" },
  { 'start_score', 'number', otherwise = 'simulated', help = "of start = 'first', where it is known" },
  { 'search', 'table', as = 'trinity.Search', help = 'counts evaluations, keeps the best; its budget ends the steps' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the first reset' },
})

--- Problems as a vectorised environment.
---@class trinity.Env
---@field problems trinity.Problem[]
---@field num_envs integer
---@field num_actions integer actions are 1 to num_actions; which of them are allowed, an observation's mask says
---@field max_steps integer the most steps of an episode
---@field evaluations integer plans that were simulated
---@field seed integer of the last reset
local Env = { __name = 'env' }
Env.__index = Env

-- The score of a simulated plan, of which `of` is known.
local function score(self, of, metrics, reward)
  if self.options.signal then return self.options.signal(metrics, reward) end
  return of.problem.reward == rewards.step_time() and reward / of.bound_s or reward
end

-- The score of plans whose degrees do not divide the sizes that they cut: ten times the ideal step, as the default
-- reward gives plans that do not fit.
local refused_score = -100

local function keep_best(self, number, plan, result)
  local best = self.best_of[number]
  if best and best.metrics.feasible and not (result.metrics.feasible and result.reward > best.reward) then return end
  if not infeasibility.better(result, best) then return end
  result.plan = array.is_int32(plan) and array.copy(plan) or plan
  self.best_of[number] = result
end

-- Simulates the plans of a search. Its last batch may be incomplete: it counts, but nothing is returned. The ranks of a
-- job divide a batch if only its metrics and rewards are needed.
local function simulate_within(self, search, of, plans)
  local job = search.agrees
  local count = dist_search.more(search, job) and search:allowance(#plans) or 0
  if count == 0 then return nil end
  if self.simulates or of.critical then job = nil end
  local first, last = dist_search.range(job, count)
  local values, metrics = dist_search.evaluate(search, job, { unpack(plans, first, last) }, first, count)
  if count < #plans then return nil end
  if of.critical then of.critical:run(plans, metrics, of.critical_s(#plans)) end
  return metrics, values
end

-- Metrics and rewards of plans of a problem; nothing where the search's budget does not suffice.
local function simulate(self, number, plans)
  local of, search = self.about[number], self.options.search
  if search then return simulate_within(self, search, of, plans) end
  local metrics
  if of.critical then
    metrics = util.listed(#plans, function()
      return array.metrics(of.devices, of.problem.graph.batch_size)
    end)
    of.critical:run(plans, metrics, of.critical_s(#plans))
  else
    metrics = of.problem:evaluate_batch(plans)
  end
  return metrics, util.listed(#plans, function(i) return of.problem:score(metrics[i], plans[i]) end)
end

-- Takes the results of a batch of plans of problem `number` into the states that they belong to.
local function take_results(self, number, plans, list, metrics, values)
  self.evaluations = self.evaluations + #plans
  for i, s in ipairs(list) do
    s.metrics, s.score = metrics[i], score(self, self.about[number], metrics[i], values[i])
    keep_best(self, number, plans[i], { metrics = metrics[i], reward = values[i] })
    if self.simulates or self.about[number].critical then observations.simulated(self, s, i) end
  end
end

-- Simulates the plans of states with words of a mesh.
local function evaluate_meshes(self, list)
  for _, s in ipairs(list) do
    s.score, s.metrics = refused_score, nil
    if s.plan then
      local ok, metrics, values = pcall(simulate, self, s.number, { s.plan })
      if not ok and not mesh.is_indivisible(tostring(metrics)) then error(metrics, 0) end
      if ok and not metrics then return false end
      if ok then take_results(self, s.number, { s.plan }, { s }, metrics, values) end
    end
  end
  return true
end

-- Simulates what the environments of a list hold; false where the budget does not suffice.
local function evaluate(self, list)
  if self.is_mesh then return evaluate_meshes(self, list) end
  local plans, members = {}, {}
  for number = 1, #self.about do plans[number], members[number] = {}, {} end
  for _, s in ipairs(list) do
    table.insert(plans[s.number], s.placement)
    table.insert(members[s.number], s)
  end
  for number = 1, #self.about do
    if #plans[number] > 0 then
      local metrics, values = simulate(self, number, plans[number])
      if not metrics then return false end
      take_results(self, number, plans[number], members[number], metrics, values)
    end
  end
  return true
end

-- Sets an episode's first placement; it is simulated where rewards are differences.
local function begin(self, s)
  s.returns, s.score, s.metrics = 0, nil, nil
  s.episode = (s.episode or 0) + 1
  if self.is_mesh then
    s.chosen, s.step, s.plan = {}, 0, nil
    return observations.write(self, s)
  end
  if self.is_joint then return observations.write(self, s) end
  local start, stream, of = self.options.start, core.random(self.seed, 'env ' .. s.index, s.episode), s.nodes
  local function device_of() return 1 end
  if start == 'random' then
    function device_of() return stream:integer(of.devices) end
  elseif type(start) == 'function' then
    local placement = array.placement('trinity.env', 'option', 'start', start(of.problem, stream), of.problem.graph)
    if not array.is_int32(placement) then
      util.fail("trinity.env: option 'start': the function at %s returned %s, expected a placement",
        util.function_place(start), util.describe(placement))
    end
    function device_of(k) return placement[of.operators[of.first[k]]] end
  end
  place.begin(s, device_of, self.options.actions == 'move')
  observations.write(self, s)
end

-- Begins the episodes of a list, and simulates where they begin. The first placement of all nodes on device 1 is
-- simulated once a problem.
local function begin_all(self, list)
  local anew, kept = {}, self.first_results
  for _, s in ipairs(list) do
    begin(self, s)
    local known = self.options.start == 'first' and kept[s.number]
    if known then
      observations.write_kept(self, s, known)
    elseif self.simulates then
      anew[#anew + 1] = s
    end
  end
  if #anew > 0 and not evaluate(self, anew) then return false end
  for _, s in ipairs(anew) do
    kept[s.number] = kept[s.number] or observations.kept(self, s)
  end
  return true
end

--- Begins all episodes, by default with the seed of the last reset plus one. Returns the first observations; nil
--- where the search's budget is used up. Example: `local observation = env:reset(1)`
---@param seed? integer
---@return trinity.EnvObservation?
function Env:reset(seed)
  if seed ~= nil then check.integer('env:reset', 1, 'seed', seed, 0, 2 ^ 53) end
  local inner = self.description
  inner.seed = seed or (inner.seed and inner.seed + 1 or inner.options.seed)
  for _, s in ipairs(inner.states) do s.episode = nil end
  inner.running = begin_all(inner, inner.states)
  self.seed, self.evaluations = inner.seed, inner.evaluations
  return inner.running and observations.make(inner) or nil
end

local function read_actions(self, actions)
  local given = tensor.is(actions) and actions:to_array() or actions
  if type(given) ~= 'table' and not array.is(given) or #given ~= self.num_envs then
    check.wrong('env:step', 1, 'actions', actions, ('%d actions, a list or a tensor int64'):format(self.num_envs))
  end
  for i = 1, self.num_envs do
    local action = given[i]
    if type(action) ~= 'number' or not (action >= 1 and action <= self.num_actions and action % 1 == 0) then
      check.refuse('env:step', 1, 'actions', 'entry %d: expected an integer from 1 to %d, got %s', i, self.num_actions,
        util.describe(action))
    end
  end
  return given
end

-- The placements that option decode makes of joint actions.
local function decoded(self, actions)
  local decode, of = self.options.decode, self.about[1].problem
  local list = decode(actions)
  if type(list) ~= 'table' or #list ~= self.num_envs then
    util.fail("trinity.env: option 'decode': the function at %s returned %s, expected a list of %d placements",
      util.function_place(decode), type(list) == 'table' and ('a list of %d'):format(#list) or util.describe(list),
      self.num_envs)
  end
  return util.map(list, function(given, i)
    local placement = array.placement('trinity.env', 'option', 'decode', given, of.graph, i)
    if not array.is_int32(placement) or #placement ~= of.graph.operators then
      util.fail("trinity.env: option 'decode': the function at %s returned %s as entry %d, expected a placement "
        .. '(problem:placement(), a device for each of %d operators)', util.function_place(decode),
        array.is_int32(placement) and ('an array of %d'):format(#placement) or util.describe(placement), i,
        of.graph.operators)
    end
    return placement
  end)
end

local function read_joint(self, actions)
  local width = not self.options.decode and self.max_nodes
  if not tensor.is(actions) or actions:dim() ~= 2 or actions:size(1) ~= self.num_envs or actions.dtype ~= 'int64'
    or width and actions:size(2) ~= width then
    check.wrong('env:step', 1, 'actions', actions,
      ('a tensor int64 [%d x %s]'):format(self.num_envs, width or 'choices'))
  end
  if self.options.decode then return decoded(self, actions) end
  local device = actions:to_array()
  return util.map(self.states, function(s)
    local of, first = s.nodes, (s.index - 1) * width
    for k = 1, of.count do
      if not (device[first + k] >= 1 and device[first + k] <= of.devices) then
        check.refuse('env:step', 1, 'actions', 'row %d: expected devices from 1 to %d, got %d', s.index, of.devices,
          device[first + k])
      end
    end
    return of.problem:placement_by_unit(function(unit) return device[first + of.node_of[unit]] end)
  end)
end

local function take_joint(_, s, placement)
  s.placement = placement
  return true, true
end

local function refuse_action(s, action)
  check.refuse('env:step', 1, 'actions', 'entry %d: action %d is masked; the mask of the last observation has 1 for '
    .. 'those that are allowed', s.index, action)
end

-- Takes an action of a placing environment. Whether the placement is to be simulated, and whether the episode ends.
local function act(self, s, action)
  local o, width = self.options, self.max_devices
  local k, d = place.read(s, action, o.actions, width, not o.strict)
  if not k or o.strict and self.mask[(s.index - 1) * self.num_actions + action] == 0 then refuse_action(s, action) end
  local from = s.device[k]
  place.apply(s, k, d)
  local done = o.actions == 'move' and s.step == o.steps or o.actions ~= 'move' and s.left == 0
  if not done then observations.write(self, s, k, from) end
  return done or self.simulates, done
end

local function choose(self, s, action)
  local word = self.words[s.step + 1]
  local strict = self.options.strict
  local value = word[2][strict and action or (action - 1) % #word[2] + 1]
  if value == nil or strict and self.mask[(s.index - 1) * self.num_actions + action] == 0 then
    refuse_action(s, action)
  end
  s.chosen[word[1]], s.step = value, s.step + 1
  local done = s.step == #self.words
  if done then s.plan = mesh.plan(s.about, s.chosen) or false else observations.write(self, s) end
  return done, done
end

local function reward_of(self, s, before, bound_s, done)
  local kind = self.options.reward
  if kind == 'difference' then return s.score - before end
  if kind == 'final' or self.is_mesh then return done and s.score or 0 end
  local was = -bound_s / s.nodes.bound_s
  return (done and s.score or -place.bound_s(s) / s.nodes.bound_s) - was
end

-- The work of env:step().
local function step(self, actions)
  if not self.running then util.fail 'env:step: expected env:reset() before, or budget that is left' end
  local given, to_simulate, finished = (self.is_joint and read_joint or read_actions)(self, actions), {}, {}
  local reward, done, befores, bounds = array.double(self.num_envs), array.double(self.num_envs), {}, {}
  local take, shaped = self.is_mesh and choose or self.is_joint and take_joint or act, self.options.reward == 'bound'
  for i, s in ipairs(self.states) do
    befores[i], bounds[i] = s.score or 0, shaped and place.bound_s(s) or 0
    local simulated, ends = take(self, s, given[i])
    if simulated then to_simulate[#to_simulate + 1] = s end
    if ends then finished[#finished + 1], done[i] = s, 1 end
  end
  if #to_simulate > 0 and not evaluate(self, to_simulate) then
    self.running = false
    return nil
  end
  local info = { episode_returns = {}, step_time_s = {}, feasible = {}, envs = {} }
  for i, s in ipairs(self.states) do
    reward[i] = reward_of(self, s, befores[i], bounds[i], done[i] == 1)
    s.returns = s.returns + reward[i]
  end
  for k, s in ipairs(finished) do
    info.envs[k], info.episode_returns[k] = s.index, s.returns
    info.feasible[k] = s.metrics ~= nil and s.metrics.feasible
    info.step_time_s[k] = s.metrics and s.metrics.step_time_s or math.huge
  end
  if not begin_all(self, finished) then self.running = false end
  return observations.make(self), tensor.new(reward):to { dtype = 'float32' },
    tensor.new(done):to { dtype = 'float32' }, info
end

--- Takes an action in every environment: in 'place' a device; in 'order' and 'move' (node - 1) x devices + device; in
--- 'joint' one device per node; in 'mesh' the index of a value of the next field. Returns observations, rewards,
--- which episodes are done (float32 [num_envs]) and what ended; nothing once the search's budget is used up: the rest
--- of it, too small for a whole batch, is simulated first. Where an episode ended, the observation belongs to the next.
--- Example: `local observation, reward, done, info = env:step((policy:act(env:reset())))`
---@param actions integer[]|trinity.TorchTensor int64 [num_envs]; of 'joint' [num_envs, nodes], or as decode takes them
---@return trinity.EnvObservation? observation
---@return trinity.TorchTensor? reward
---@return trinity.TorchTensor? done
---@return trinity.EnvInfo? info
function Env:step(actions)
  local observation, reward, done, info = step(self.description, actions)
  self.evaluations = self.description.evaluations
  if not observation then return nil end
  return observation, reward, done, fields.result('trinity.EnvInfo', info)
end

--- The best plan of problem `number` so far (default 1), as a strategy; nil where none was simulated.
--- Example: `env:reset(1); env:best()`
---@param number? integer
---@return trinity.Strategy?
function Env:best(number)
  number = number == nil and 1 or check.integer('env:best', 1, 'number', number, 1, #self.problems)
  local best = self.description.best_of[number]
  return best and self.problems[number]:strategy(best.plan, { method = 'env', evaluations = self.evaluations,
    seed = self.seed })
end

--- The observation of the present states, as reset() and step() gave it. Example: `env:observation().mask`
---@return trinity.EnvObservation
function Env:observation() return observations.make(self.description) end

--- Copies of the placements that the environments hold now; the environment 'mesh' has none.
--- Example: `#env:placements()`
---@return trinity.Placement[]
function Env:placements()
  local inner = self.description
  return util.map(inner.is_mesh and {} or inner.states, function(s) return array.copy(s.placement) end)
end

--- The constant data of problem `number` (default 1): nodes, their edges and times. Example: `env:graph(1)`
---@param number? integer
---@return trinity.EnvGraph
function Env:graph(number)
  number = number == nil and 1 or check.integer('env:graph', 1, 'number', number, 1, #self.problems)
  return observations.graph(self.description.about[number])
end

check.methods(Env, 'trinity.Env')

local function list_problems(given)
  local list = util.class_of(given) == 'problem' and { given } or given
  if type(list) ~= 'table' or #list == 0 then
    check.wrong('trinity.env', 1, 'problems', given, 'a problem or a list of problems')
  end
  for i = 1, #list do check.object('trinity.env', 1, ('problems[%d]'):format(i), list[i], 'problem') end
  return list
end

--- A vectorised environment of one problem, or of several that its episodes take in turn. Same seed, same bytes,
--- whatever the threads. Example: `local env = trinity.env(problem, { groups = 2, num_envs = 2 })`
---@param problems trinity.Problem|trinity.Problem[]
---@param options? trinity.EnvOptions
---@return trinity.Env
return function(problems, options)
  local list = list_problems(problems)
  options = declared:read('trinity.env', 2, 'options', options)
  local is_mesh, is_joint = options.actions == 'mesh', options.actions == 'joint'
  local self = { problems = list, options = options, num_envs = options.num_envs, evaluations = 0, about = {},
    states = {}, best_of = {}, first_results = {}, is_mesh = is_mesh, is_joint = is_joint }
  if options.reward == 'bound' and options.actions ~= 'place' and options.actions ~= 'order' then
    check.refuse('trinity.env', 'option', 'reward', "'bound' is for actions 'place' and 'order', got '%s'",
      options.actions)
  end
  if is_joint and options.reward ~= 'final' then
    check.refuse('trinity.env', 'option', 'reward', "'joint' actions have 'final' rewards, got '%s'", options.reward)
  end
  if options.decode and (not is_joint or #list > 1) then
    check.refuse('trinity.env', 'option', 'decode', "is for 'joint' actions of one problem")
  end
  if options.search and #list > 1 then
    check.refuse('trinity.env', 'option', 'search', 'expected one problem, got %d', #list)
  end
  self.simulates = not is_mesh and (options.actions == 'move' or options.reward == 'difference')
  for number, problem in ipairs(list) do
    self.about[number] = is_mesh and mesh.new(problem, options.global_batch)
      or options.decode and nodes_of.none(problem)
      or nodes_of.new(problem, options.groups, options.features or { node2vec = false })
  end
  observations.prepare(self)
  if options.start_score then
    for number = 1, #list do self.first_results[number] = { score = options.start_score, critical = {} } end
  end
  return setmetatable({ problems = util.merged(list), num_envs = self.num_envs, num_actions = self.num_actions,
    max_steps = self.max_steps, evaluations = 0, seed = options.seed, description = self }, Env)
end
