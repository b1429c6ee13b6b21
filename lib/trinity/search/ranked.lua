-- Searches with custom moves, a move ranker (lib/trinity/search/rankers.lua) and a custom acceptance rule: options
-- `moves`, `rank` and `accept` of methods, and the engine's searcher with them.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local Candidates = require('trinity.search.candidates').class
local memory_share = require 'trinity.strategy.memory_share'
local random_stream = require 'trinity.base.random'
local rankers = require 'trinity.search.rankers'
local util = require 'trinity.base.util'

local ranked = {}

local width = #rankers.features

-- Checks option `rank`.
local function check_rank(owner, place, name, value)
  local is = type(value)
  if is == 'boolean' or is == 'string' or is == 'function' or util.class_of(value) == 'ranker' then return end
  check.wrong(owner, place, name, value, 'true, false, a file of weights, a ranker or a function')
end

--- Declares option `rank` with a default and its text.
function ranked.option(default, otherwise)
  return { 'rank', 'any', default, late = true, check = check_rank, otherwise = otherwise,
    as = 'boolean|string|trinity.Ranker|fun(candidates: trinity.MoveCandidates): number[]',
    help = 'move ranker: true for the weights that come with trinity, a file of weights, a ranker or a function' }
end

--- Declares option `accept` of annealing.
function ranked.accept_option()
  return { 'accept', 'function', as = 'fun(progress: number, sample: number): number', otherwise = 'by temperature: '
    .. '-temperature * log(1 - sample)', help = 'custom acceptance rule: returns how much worse than the state a trial '
      .. 'may be, in multiples of the start value per unit, given the cooling progress (0 to 1) and a uniform sample '
      .. 'from [0, 1)' }
end

--- Argument of a function that returns moves.
---@class trinity.MoveState
---@field device_of trinity.Int32Array device of every unit
---@field unit integer pivot unit of the search's own move: sampled uniformly or by critical-path time
---@field random trinity.RandomStream random numbers from the seed of the search

--- Declares option `moves` of methods.
function ranked.moves_option()
  return { 'moves', 'function', as = 'fun(state: trinity.MoveState): integer[]?, integer?',
    otherwise = 'sets of units around state.unit',
    help = 'returns a move: a list of units and their new device; if it returns nothing, the search samples a move' }
end

--- Returns the ranker of option `rank`, or nil for none.
function ranked.of(value)
  if value == true then value = rankers.shipped end
  if type(value) == 'string' then return rankers.load(value) end
  return value or nil
end

-- A searcher of the engine that calls Lua functions for moves, scores and acceptance.
local Scripted = {}
Scripted.__index = Scripted

for _, name in ipairs { 'tell', 'evaluations', 'progress', 'ranking', 'close' } do
  Scripted[name] = function(self, ...) return self.searcher[name](self.searcher, ...) end
end

function Scripted:ask(room, most)
  local ok, count, limit = pcall(self.searcher.ask, self.searcher, room, most, self.call, self.features, self.scores,
    self.accept, self.moves, self.device_of, self.units)
  if not ok then error(self.failure or count, 0) end
  return count, limit
end

-- Writes the function's scores of `candidates` to the array `scores`.
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

-- Wraps a function for the engine and records its error, because the engine adds its own position to messages.
local function keeping(self, of)
  return function(...)
    local ok, result, second = pcall(of, ...)
    if ok then return result, second end
    self.failure = result
    error(result, 0)
  end
end

local function give_rank(self, rank, most)
  self.features, self.scores = array.double(most * width), array.double(most)
  local candidates = setmetatable({ count = 0, features = self.features, device_of = self.device_of,
    handle = self.searcher }, Candidates)
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

local function is_whole(value, most)
  return type(value) == 'number' and value % 1 == 0 and value >= 1 and value <= most
end

-- Writes the units of a move to the array `units`. Returns their number and the device.
local function take_move(list, device, units, devices, given, number)
  if type(list) ~= 'table' then util.fail('moves: expected a list of units, got %s', util.describe(list)) end
  for i = 1, #list do
    local unit = list[i]
    if not is_whole(unit, #units) then
      util.fail('moves: unit %d: expected an integer from 1 to %d, got %s', i, #units, util.describe(unit))
    end
    if given[unit] == number then util.fail('moves: unit %d: expected different units, got %d twice', i, unit) end
    units[i], given[unit] = unit, number
  end
  if #list > 0 and not is_whole(device, devices) then
    util.fail('moves: expected units and a device from 1 to %d, got device %s', devices, util.describe(device))
  end
  return #list, device or 1
end

local function give_moves(self, moves, devices, seed)
  self.units = array.int32(#self.device_of)
  local state = { device_of = self.device_of, unit = 1, random = random_stream(seed, 'moves of a function') }
  local given, number = array.double(#self.device_of), 0
  self.moves = keeping(self, function(unit)
    state.unit = unit
    local list, device = moves(state)
    if list == nil then return 0, 1 end
    number = number + 1
    return take_move(list, device, self.units, devices, given, number)
  end)
end

--- Makes a searcher of the engine (core.searcher) with optional moves, ranker (from ranked.of) and acceptance rule.
function ranked.searcher(problem, method, options, ranker, accept, moves)
  local ranks = type(ranker) == 'function'
  local share = (ranks or ranker and ranker.memory_features)
    and memory_share(problem, options.starts and options.starts[1] or problem:placement()) or nil
  local searcher = core.searcher(problem.handle, method, util.merged(options, { accept = accept ~= nil or nil,
    ranker = ranks or (ranker and ranker.handle) or nil, moves = moves ~= nil or nil, memory_share = share }))
  if not ranks and not accept and not moves then return searcher end
  local self = setmetatable({ searcher = searcher, device_of = array.int32(problem.graph.units) }, Scripted)
  if ranks then give_rank(self, ranker, options.candidates or 10) end
  if accept then give_accept(self, accept) end
  if moves then give_moves(self, moves, #problem.cluster.devices, options.seed or 1) end
  return self
end

return ranked
