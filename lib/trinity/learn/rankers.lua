-- Rankers of moves: what says which of a few moves of a search is worth a simulation
-- (engine/search/placement/move_ranker.h). A ranker is trained weights (rankers.load), weights to be trained
-- (rankers.new, rankers.trainer), or a function of a script:
--
--   trinity.methods.annealing(problem, { rank = function(candidates)
--     local scores = {}
--     for i = 1, candidates.count do scores[i] = candidates:get(i, 'transfer_blame') end
--     return scores
--   end })

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

--- Rankers of moves: weights that are trained, or functions of a script.
---@class trinity.RankersModule
local rankers = {}

--- The weights that method trinity takes by default.
rankers.shipped = core.home .. '/models/policies/moves.safetensors'

--- What a ranker is told of a move, by name (engine/search/placement/move_features.h).
---@type string[]
rankers.features = core.move_features()

local column = {}
for i, name in ipairs(rankers.features) do column[name] = i end

--- Weights that score moves.
---@class trinity.Ranker
---@field notes table<string, string> of the file that it was loaded from: what it was trained on, and by which command
---@field hidden integer[] widths of the hidden layers
---@field weights integer how many
local Ranker = { __name = 'ranker' }
Ranker.__index = Ranker

local function wrapped(handle, notes)
  local hidden, weights = handle:hidden()
  return setmetatable({ handle = handle, notes = notes, hidden = hidden, weights = weights }, Ranker)
end

--- Writes the weights as safetensors, with notes: texts by name.
---@param path string
---@param notes? table<string, string>
function Ranker:save(path, notes)
  check.argument('ranker:save', 1, 'path', path, 'string')
  if notes ~= nil then check.argument('ranker:save', 2, 'notes', notes, 'table') end
  self.handle:save(path, notes or self.notes)
end

--- Weights from a file, which `trinity train` or ranker:save wrote.
---@param path string
---@return trinity.Ranker
function rankers.load(path)
  check.argument('rankers.load', 1, 'path', path, 'string')
  return wrapped(core.load_ranker(path))
end

local new_options = options_of.declare('trinity.RankerOptions', { help = 'What a ranker is made of.',
  { 'hidden', 'integers', least = 1, most = 1024, otherwise = '{ 32, 32 }',
    help = 'widths of its hidden layers; none: a linear score' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of the weights as they are drawn' },
})

--- Weights as they are drawn, to be trained.
---@param options? trinity.RankerOptions
---@return trinity.Ranker
function rankers.new(options)
  options = new_options:read('rankers.new', 1, 'options', options)
  return wrapped(core.ranker { hidden = options.hidden or { 32, 32 }, seed = options.seed }, {})
end

--- Trains a ranker on annealings of several problems.
---@class trinity.MoveTrainer
---@field ranker trinity.Ranker
local Trainer = { __name = 'move trainer' }
Trainer.__index = Trainer

--- What a round of training came to.
---@class trinity.MoveReport
---@field trials integer moves that were simulated and learned from
---@field improving integer those that were better than what they changed
---@field loss number
---@field entropy number mean, of the choices in nats; 0 of imitate
---@field clipped_share number trials whose ratio of chances was cut
---@field best_share number geometric mean over the episodes of best found / start

local trainer_options = options_of.declare('trinity.MoveTrainerOptions', options_of.of_engine({
  help = 'Settings of the training of a ranker.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of everything that is drawn' } }, core.training_options()))

--- What trains `ranker`, whose weights it changes.
---@param ranker trinity.Ranker
---@param options? trinity.MoveTrainerOptions
---@return trinity.MoveTrainer
function rankers.trainer(ranker, options)
  if getmetatable(ranker) ~= Ranker then check.wrong('rankers.trainer', 1, 'ranker', ranker, 'a ranker') end
  options = trainer_options:read('rankers.trainer', 2, 'options', options)
  return setmetatable({ ranker = ranker, handle = core.move_trainer(ranker.handle, options) }, Trainer)
end

--- Adds a problem, with placements of which each episode takes one to start from. The step time is what is learned.
---@param problem trinity.Problem
---@param starts trinity.Placement[]
function Trainer:add(problem, starts)
  check.object('trainer:add', 1, 'problem', problem, 'problem')
  check.argument('trainer:add', 2, 'starts', starts, 'table')
  self.handle:add(problem.handle, starts)
end

--- Changes settings of what follows.
---@param options trinity.MoveTrainerOptions
function Trainer:set(options)
  check.argument('trainer:set', 1, 'options', options, 'table')
  trainer_options:check('trainer:set', options)
  self.handle:set(options)
end

--- Runs episodes, and learns which of the moves that they tried made the step shorter (DAgger).
---@param episodes integer
---@return trinity.MoveReport
function Trainer:imitate(episodes)
  return self.handle:imitate(check.integer('trainer:imitate', 1, 'episodes', episodes, 1, 2 ^ 20))
end

--- Runs episodes, and learns the choice among candidates by what came of it: PPO, or REINFORCE where clip is 0.
---@param episodes integer
---@return trinity.MoveReport
function Trainer:reinforce(episodes)
  return self.handle:reinforce(check.integer('trainer:reinforce', 1, 'episodes', episodes, 1, 2 ^ 20))
end

--- Writes the ranker and what the training goes on from.
---@param path string
---@param notes? table<string, string>
function Trainer:save(path, notes)
  check.argument('trainer:save', 1, 'path', path, 'string')
  if notes ~= nil then check.argument('trainer:save', 2, 'notes', notes, 'table') end
  self.handle:save(path, notes or {})
end

--- Goes on from such a file, on the same problems with the same seed, to the bytes of an unbroken training.
---@param path string
---@return table<string, string> notes
function Trainer:resume(path)
  check.argument('trainer:resume', 1, 'path', path, 'string')
  return self.handle:resume(path)
end

--- Moves among which a rank function chooses; numbers are those of rankers.features.
---@class trinity.MoveCandidates
---@field count integer
---@field features trinity.DoubleArray count x #rankers.features numbers, a row a move
local Candidates = { __name = 'candidates' }
Candidates.__index = Candidates

--- Feature `name` of move i.
---@param i integer
---@param name string
---@return number
function Candidates:get(i, name)
  check.integer('candidates:get', 1, 'i', i, 1, self.count)
  local at = column[name]
  if not at then
    check.refuse('candidates:get', 2, 'name', 'unknown feature %s', util.unknown(tostring(name), rankers.features))
  end
  return self.features[(i - 1) * #rankers.features + at]
end

-- What reads option `rank`: nil, an object of the engine, or a function.
local function check_rank(owner, place, name, value)
  local is = type(value)
  if is == 'boolean' or is == 'string' or is == 'function' or getmetatable(value) == Ranker then return end
  check.wrong(owner, place, name, value, 'true, false, a file of weights, a ranker or a function')
end

--- Declares option `rank` with a default, in words.
function rankers.option(default, otherwise)
  return { 'rank', 'any', default, late = true, check = check_rank, otherwise = otherwise,
    as = 'boolean|string|trinity.Ranker|fun(candidates: trinity.MoveCandidates): number[]',
    help = 'who chooses among moves: true for the weights that come with trinity, a file, a ranker, a function' }
end

--- The ranker that a value of option `rank` says: nil for none.
function rankers.of(value)
  if value == true then value = rankers.shipped end
  if type(value) == 'string' then return rankers.load(value) end
  return value or nil
end

-- The engine's searcher with a function that it calls for scores.
local Scripted = {}
Scripted.__index = Scripted

for _, name in ipairs { 'tell', 'evaluations', 'progress', 'ranking', 'close' } do
  Scripted[name] = function(self, ...) return self.searcher[name](self.searcher, ...) end
end

function Scripted:ask(room, most) return self.searcher:ask(room, most, self.call, self.features, self.scores) end

local function scripted(searcher, rank, most)
  local self = setmetatable({ searcher = searcher, features = array.double(most * #rankers.features),
    scores = array.double(most) }, Scripted)
  local candidates = setmetatable({ count = 0, features = self.features }, Candidates)
  self.call = function(count)
    candidates.count = count
    local scores = rank(candidates)
    if type(scores) ~= 'table' or #scores ~= count then
      util.fail('rank: expected a list of %d scores, got %s', count,
        type(scores) == 'table' and ('%d'):format(#scores) or util.describe(scores))
    end
    for i = 1, count do
      if type(scores[i]) ~= 'number' then
        util.fail('rank: score %d: expected a number, got %s', i, util.describe(scores[i]))
      end
      self.scores[i] = scores[i]
    end
  end
  return self
end

--- A searcher of the engine (core.searcher) that moves as `ranker` says: what rankers.of gave.
function rankers.searcher(problem, method, options, ranker)
  if not ranker then return core.searcher(problem.handle, method, options) end
  local is_function = type(ranker) == 'function'
  local searcher = core.searcher(problem.handle, method,
    util.merged(options, { ranker = is_function and true or ranker.handle }))
  return is_function and scripted(searcher, ranker, options.candidates or 16) or searcher
end

check.methods(Ranker)
check.methods(Trainer)
check.methods(Candidates)
return rankers
