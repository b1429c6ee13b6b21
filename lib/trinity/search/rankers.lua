-- Move rankers, which choose among a few candidate moves the one to simulate (engine/search/placement/move_ranker.h). A
-- ranker has trained weights (rankers.load) or new weights (rankers.new, rankers.trainer), or is a function of a
-- script:
--
--   trinity.methods.annealing(problem, { rank = function(candidates)
--     local scores = {}
--     for i = 1, candidates.count do scores[i] = candidates:get(i, 'transfer_blame') end
--     return scores
--   end })

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local move_candidates = require 'trinity.search.candidates'
local core = require 'trinity.core'
local memory_share_of = require 'trinity.strategy.memory_share'
local options_of = require 'trinity.base.options'
local random_stream = require 'trinity.base.random'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

--- Move rankers: trained weights, or functions of a script.
---@class trinity.RankersModule
---@field shipped string file of the weights that method trinity uses by default
---@field features string[] names of the features of a move (engine/search/placement/move_features.h)
local rankers = {}

rankers.shipped = core.home .. '/models/policies/moves.safetensors'
rankers.features = move_candidates.names

--- Weights that score moves.
---@class trinity.Ranker
---@field notes table<string, string> notes of its file: training problems and command
---@field hidden integer[] widths of the hidden layers
---@field weights integer number of weights
---@field memory_features boolean true: its inputs include the memory features; false: only features of the step
local Ranker = { __name = 'ranker' }
Ranker.__index = Ranker

local function wrapped(handle, notes)
  local hidden, weights, memory_features = handle:about()
  return setmetatable({ handle = handle, notes = notes, hidden = hidden, weights = weights,
    memory_features = memory_features }, Ranker)
end

--- Writes the weights as safetensors, with notes (texts by name). Raises an error if the file cannot be written.
--- Example: `ranker:save('moves.safetensors', { trained_on = 'gpt2' })`
---@param path string
---@param notes? table<string, string>
function Ranker:save(path, notes)
  check.path('ranker:save', 1, 'path', path)
  if notes ~= nil then check.argument('ranker:save', 2, 'notes', notes, 'table') end
  self.handle:save(path, notes or self.notes)
end

--- Returns the scores of candidates of moves:draw() or of a rank function; moves with larger scores are more promising.
--- Example: `ranker:score(moves:draw(placement))`
---@param candidates trinity.MoveCandidates
---@return trinity.DoubleArray
function Ranker:score(candidates)
  if type(candidates) ~= 'table' or util.class_of(candidates) ~= 'candidates' then
    check.wrong('ranker:score', 1, 'candidates', candidates, 'candidates')
  end
  local scores = array.double(candidates.count)
  if candidates.count > 0 then self.handle:score(candidates.features, candidates.count, scores) end
  return scores
end

--- Loads weights that `trinity train` or ranker:save wrote. Raises an error if the file is no ranker. Example:
--- `trinity.search.rankers.load(trinity.search.rankers.shipped)`
---@param path string
---@return trinity.Ranker
function rankers.load(path)
  check.path('search.rankers.load', 1, 'path', path)
  return wrapped(core.load_ranker(path))
end

local new_options = options_of.declare('trinity.RankerOptions', { help = 'Options of rankers.new.',
  { 'hidden', 'integers', least = 1, most = 1024, otherwise = '{ 32, 32 }',
    help = 'widths of the hidden layers; an empty list gives a linear score' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'random seed of the initial weights' },
  { 'memory_features', 'boolean', false,
    help = "add memory features to its inputs: the reward's memory weight, and memory per unit and device" },
})

--- Returns a ranker with random initial weights, to be trained. Example: `trinity.search.rankers.new { hidden = { 16 },
--- seed = 1 }`
---@param options? trinity.RankerOptions
---@return trinity.Ranker
function rankers.new(options)
  options = new_options:read('search.rankers.new', 1, 'options', options)
  return wrapped(core.ranker { hidden = options.hidden or { 32, 32 }, seed = options.seed,
    memory_features = options.memory_features }, {})
end

--- Trains a ranker with annealing searches on several problems.
---@class trinity.MoveTrainer
---@field options trinity.MoveTrainerOptions current options; trainer:set changes them
---@field ranker trinity.Ranker
local Trainer = { __name = 'move trainer' }
Trainer.__index = Trainer

--- Statistics of a training round.
---@class trinity.MoveReport
---@field trials integer simulated moves that it learned from
---@field improving integer moves that improved the placement
---@field loss number
---@field entropy number mean entropy of the choices in nats; 0 for imitate
---@field clipped_share number fraction of trials with a clipped probability ratio
---@field best_share number geometric mean over episodes of best value / start value

local trainer_options = options_of.declare('trinity.MoveTrainerOptions', options_of.of_engine({
  help = 'Options of rankers.trainer.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'random seed' } }, core.training_options()))

local trainer_defaults = {} -- defaults of the engine, which fills them in itself
for _, option in ipairs(core.training_options()) do trainer_defaults[option.name] = option.default end

--- Returns a trainer of `ranker`, whose weights it changes. Example:
--- `trinity.search.rankers.trainer(trinity.search.rankers.new(), { seed = 1 })`
---@param ranker trinity.Ranker
---@param options? trinity.MoveTrainerOptions
---@return trinity.MoveTrainer
function rankers.trainer(ranker, options)
  if getmetatable(ranker) ~= Ranker then check.wrong('search.rankers.trainer', 1, 'ranker', ranker, 'a ranker') end
  options = trainer_options:read('search.rankers.trainer', 2, 'options', options)
  return setmetatable({ ranker = ranker, handle = core.move_trainer(ranker.handle, options),
    description = { tasks = {} }, options = util.merged(trainer_defaults, options) }, Trainer)
end

local batch = 64

--- Runs one annealing search with the reward of a task and records the candidates of its moves. Returns its searcher,
--- and best value / start value.
local function rewarded_episode(self, number)
  local task, o = self.description.tasks[(number - 1) % #self.description.tasks + 1], self.options
  local random = random_stream(o.seed, 'rewarded episode', number)
  local problem, seed, start = task.problem, random:integer(2 ^ 53) - 1, task.starts[random:integer(#task.starts)]
  local reward = task.reward and task.reward(problem:evaluate(start), random)
  local memory_share = self.ranker.memory_features and memory_share_of(problem, start, reward) or nil
  local searcher = core.searcher(problem.handle, 'annealing', { seed = seed, evaluations = o.evaluations,
    starts = { start }, first_temperature = o.first_temperature, groups = true, evenly_one_in = 5,
    ranker = self.ranker.handle, memory_share = memory_share, candidates = o.candidates, sharpness = o.sharpness,
    plain_one_in = o.plain_one_in, record = true })
  local room, values, excess = problem:placements(batch), array.double(batch), array.double(batch)
  local first, best
  while searcher:evaluations() < o.evaluations do
    local count = searcher:ask(room, math.min(batch, o.evaluations - searcher:evaluations()))
    if count == 0 then break end
    local trials = util.listed(count, function(i) return room[i] end)
    for i, metrics in ipairs(problem:evaluate_batch(trials)) do
      values[i] = -(reward and reward(metrics) or problem:score(metrics, trials[i]))
      excess[i] = metrics.excess_memory_bytes
      first = first or values[i]
      if not best or values[i] < best then best = values[i] end
    end
    searcher:tell(values, excess)
  end
  return searcher, math.exp((best - first) / math.max(math.abs(first), 1e-300))
end

--- Adds a training problem and its starts; every episode starts from one of them. The ranker learns the problem's
--- reward. If the reward of any problem is not the step time, episodes run one after the other. reward: a function that
--- samples the reward of each episode instead, given the metrics of its start. Example: `trainer:add(problem, {
--- problem:placement() })`
---@param problem trinity.Problem
---@param starts trinity.Placement[]
---@param reward? fun(start: trinity.Metrics, random: trinity.RandomStream): trinity.Reward
function Trainer:add(problem, starts, reward)
  check.object('trainer:add', 1, 'problem', problem, 'problem')
  check.argument('trainer:add', 2, 'starts', starts, 'table')
  if reward ~= nil then check.argument('trainer:add', 3, 'reward', reward, 'function') end
  self.handle:add(problem.handle, starts)
  self.description.tasks[#self.description.tasks + 1] = { problem = problem, starts = starts, reward = reward }
  self.description.rewarded = self.description.rewarded or reward ~= nil or problem.reward ~= rewards.step_time()
end

--- Changes options for the following episodes. Raises an error for an unknown option. Example: `trainer:set { clip =
--- 0.1 }`
---@param options trinity.MoveTrainerOptions
function Trainer:set(options)
  check.argument('trainer:set', 1, 'options', options, 'table')
  trainer_options:check('trainer:set', options)
  self.handle:set(options)
  for name, value in util.sorted_pairs(options) do self.options[name] = value end
end

local function learn(self, kind, episodes)
  check.integer('trainer:' .. kind, 1, 'episodes', episodes, 1, 2 ^ 20)
  if not self.description.rewarded then return self.handle[kind](self.handle, episodes) end
  local searchers, shares, before = {}, {}, self.handle:episodes()
  for i = 1, episodes do searchers[i], shares[i] = rewarded_episode(self, before + i) end
  local report = self.handle:learn(kind, searchers, shares)
  for _, searcher in ipairs(searchers) do searcher:close() end
  return report
end

--- Runs episodes and learns to predict which of their moves improved the value (DAgger). Example: `trainer:imitate(8)`
---@param episodes integer
---@return trinity.MoveReport
function Trainer:imitate(episodes) return learn(self, 'imitate', episodes) end

--- Runs episodes and learns the choice among candidates by its result, with PPO, or with REINFORCE if clip is 0.
--- Example: `trainer:reinforce(8)`
---@param episodes integer
---@return trinity.MoveReport
function Trainer:reinforce(episodes) return learn(self, 'reinforce', episodes) end

--- Writes the ranker and the state of its training, for trainer:resume. Example: `trainer:save 'moves.training'`
---@param path string
---@param notes? table<string, string>
function Trainer:save(path, notes)
  check.path('trainer:save', 1, 'path', path)
  if notes ~= nil then check.argument('trainer:save', 2, 'notes', notes, 'table') end
  self.handle:save(path, notes or {})
end

--- Resumes a training from a file of trainer:save. With the same problems and seed, the result is byte-identical to an
--- uninterrupted training. Returns the notes of the file. Example: `trainer:resume 'moves.training'`
---@param path string
---@return table<string, string> notes
function Trainer:resume(path)
  check.path('trainer:resume', 1, 'path', path)
  return self.handle:resume(path)
end

check.methods(Ranker, 'trinity.Ranker')
check.methods(Trainer, 'trinity.MoveTrainer')
return rankers
