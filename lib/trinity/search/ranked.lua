-- Searches whose moves a ranker chooses (lib/trinity/search/rankers.lua): option `rank` of methods, and the engine's
-- searcher with it.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local Candidates = require('trinity.search.candidates').class
local rankers = require 'trinity.search.rankers'
local util = require 'trinity.base.util'

local ranked = {}

local width = #rankers.features

-- What reads option `rank`: nil, an object of the engine, or a function.
local function check_rank(owner, place, name, value)
  local is = type(value)
  if is == 'boolean' or is == 'string' or is == 'function' or util.class_of(value) == 'ranker' then return end
  check.wrong(owner, place, name, value, 'true, false, a file of weights, a ranker or a function')
end

--- Declares option `rank` with a default, in words.
function ranked.option(default, otherwise)
  return { 'rank', 'any', default, late = true, check = check_rank, otherwise = otherwise,
    as = 'boolean|string|trinity.Ranker|fun(candidates: trinity.MoveCandidates): number[]',
    help = 'who chooses among moves: true for the weights that come with trinity, a file, a ranker, a function' }
end

--- The ranker that a value of option `rank` says: nil for none.
function ranked.of(value)
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

function Scripted:ask(room, most)
  local ok, count, limit = pcall(self.searcher.ask, self.searcher, room, most, self.call, self.features, self.scores)
  if not ok then error(self.failure or count, 0) end
  return count, limit
end

-- Has the function's scores of `candidates` in the array `scores`.
local function take_scores(rank, candidates, scores)
  local given, count = rank(candidates), candidates.count
  if type(given) ~= 'table' or #given ~= count then
    util.fail('rank: expected a list of %d scores, got %s', count,
      type(given) == 'table' and ('%d'):format(#given) or util.describe(given))
  end
  for i = 1, count do
    local score = given[i]
    if type(score) ~= 'number' or score - score ~= 0 then
      util.fail('rank: score %d: expected a finite number, got %s', i, util.describe(score))
    end
    scores[i] = score
  end
end

local function scripted(searcher, rank, most)
  local self = setmetatable({ searcher = searcher, features = array.double(most * width),
    scores = array.double(most) }, Scripted)
  local candidates = setmetatable({ count = 0, features = self.features }, Candidates)
  self.call = function(count)
    candidates.count = count
    local ok, message = pcall(take_scores, rank, candidates, self.scores)
    if ok then return end
    self.failure = message -- the engine says where it was asked, too
    error(message, 0)
  end
  return self
end

--- A searcher of the engine (core.searcher) that moves as `ranker` says: what ranked.of gave.
function ranked.searcher(problem, method, options, ranker)
  if not ranker then return core.searcher(problem.handle, method, options) end
  local is_function = type(ranker) == 'function'
  local searcher = core.searcher(problem.handle, method,
    util.merged(options, { ranker = is_function and true or ranker.handle }))
  return is_function and scripted(searcher, ranker, options.candidates or 10) or searcher
end

return ranked
