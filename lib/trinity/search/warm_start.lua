-- Starts of a search: simulated placements of heuristics that take well under a second each.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local warm_start = {}

--- Heuristics that are tried by default, in the order of how often they are best. A small budget ends the list early.
warm_start.portfolio = { 'single_device', 'etf', 'm_etf', 'expert', 'heft', 'cpop', 'metis', 'scotch',
  'contiguous', 'fm' }

local first_entries = 5 -- tried without a check of the clock
local most_operators = 20000
local slow = { expert = true, etf = true, m_etf = true, heft = true, cpop = true, fm = true }

--- Returns whether a graph is too large for slow heuristics and for the partitions of a race.
function warm_start.is_large(graph) return graph.operators > most_operators end

local function same(a, b)
  for op = 1, #a do
    if a[op] ~= b[op] then return false end
  end
  return true
end

--- Checks option `warm_start` and returns its list of entries, which may be empty.
function warm_start.check(owner, methods, given)
  if given == false then return {} end
  if given == true then return warm_start.portfolio end
  if type(given) ~= 'table' then
    check.wrong(owner, 'option', 'warm_start', given, 'true, false or a list of methods and placements')
  end
  for i = 1, #given do
    if type(given[i]) == 'string' then
      if methods.info(given[i]).budget then
        check.refuse(owner, 'option', 'warm_start', 'entry %d: expected a heuristic without a search, got method %s',
          i, util.quoted(given[i]))
      end
    elseif not array.is_int32(given[i]) and not (type(given[i]) == 'table' and rawget(given[i], 1)) then
      check.refuse(owner, 'option', 'warm_start', 'entry %d: expected a method or a placement, got %s', i,
        util.describe(given[i]))
    end
  end
  return given
end

--- Returns the placement of an entry, or nil if the heuristic found none.
local function placement_of(self, methods, entry)
  if type(entry) ~= 'string' then
    return array.placement('methods.' .. self.method, 'option', 'warm_start', entry, self.problem.graph)
  end
  local found = methods.get(entry)(self.problem, { seed = self.options.seed, quiet = true })
  if not found then return nil end
  -- Methods that simulated several placements to choose one used that part of the budget.
  self.evaluations = self.evaluations + math.max(0, (found.evaluations or 1) - 1)
  return found.placement
end

--- Simulates the placements of `entries` within the budget of the search `self`: at most half of its evaluations and,
--- after the first five, about a third of its seconds, but at least one placement. Equal placements count once.
function warm_start.run(self, methods, entries)
  local most, list = math.max(1, math.floor(self.options.evaluations / 2)), {}
  local default, large = entries == warm_start.portfolio, warm_start.is_large(self.problem.graph)
  for i, entry in ipairs(entries) do
    local late = i > first_entries and core.clock_s() - self.start > self.options.seconds / 3
    if self.evaluations + #list >= most or #list > 0 and (late or core.stop_requested()) then break end
    local placement = not (default and large and slow[entry]) and placement_of(self, methods, entry)
    for _, other in ipairs(list) do
      if placement and same(placement, other) then placement = nil end
    end
    if placement then list[#list + 1] = placement end
  end
  if #list > 0 then self:evaluate(list) end
end

return warm_start
