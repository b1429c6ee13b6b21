-- Searches whose moves a ranker chooses (lib/trinity/search/rankers.lua), and a function accepts: options `rank` and
-- `accept` of methods, and the engine's searcher with them.

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

--- Declares option `accept` of annealing.
function ranked.accept_option()
  return { 'accept', 'function', as = 'fun(progress: number, drawn: number): number', otherwise = 'by temperature: '
    .. '-temperature * log(1 - drawn)', help = 'by how much a trial may be worse than the state, in multiples of the '
    .. "start's value per unit: of the progress of the cooling, 0 to 1, and a number drawn evenly from [0, 1)" }
end

--- The ranker that a value of option `rank` says: nil for none.
function ranked.of(value)
  if value == true then value = rankers.shipped end
  if type(value) == 'string' then return rankers.load(value) end
  return value or nil
end

-- The engine's searcher with functions that it calls for scores, and for what is accepted.
local Scripted = {}
Scripted.__index = Scripted

for _, name in ipairs { 'tell', 'evaluations', 'progress', 'ranking', 'close' } do
  Scripted[name] = function(self, ...) return self.searcher[name](self.searcher, ...) end
end

function Scripted:ask(room, most)
  local ok, count, limit = pcall(self.searcher.ask, self.searcher, room, most, self.call, self.features, self.scores,
    self.accept)
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

-- A function of the engine's that keeps what another one's error was: the engine says where it was asked, too.
local function keeping(self, of)
  return function(...)
    local ok, result = pcall(of, ...)
    if ok then return result end
    self.failure = result
    error(result, 0)
  end
end

local function give_rank(self, rank, most)
  self.features, self.scores = array.double(most * width), array.double(most)
  local candidates = setmetatable({ count = 0, features = self.features }, Candidates)
  self.call = keeping(self, function(count)
    candidates.count = count
    take_scores(rank, candidates, self.scores)
  end)
end

local function give_accept(self, accept)
  self.accept = keeping(self, function(progress, drawn)
    local rise = accept(progress, drawn)
    if type(rise) ~= 'number' or rise - rise ~= 0 then
      util.fail('accept: expected a finite number, got %s', util.describe(rise))
    end
    return rise
  end)
end

--- A searcher of the engine (core.searcher) that moves as `ranker` says (what ranked.of gave), and accepts as `accept`
--- does, where these are there.
function ranked.searcher(problem, method, options, ranker, accept)
  local ranks = type(ranker) == 'function'
  local searcher = core.searcher(problem.handle, method, util.merged(options,
    { ranker = ranks or (ranker and ranker.handle) or nil, accept = accept ~= nil or nil }))
  if not ranks and not accept then return searcher end
  local self = setmetatable({ searcher = searcher }, Scripted)
  if ranks then give_rank(self, ranker, options.candidates or 10) end
  if accept then give_accept(self, accept) end
  return self
end

return ranked
