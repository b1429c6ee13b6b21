-- The result of trinity.compare: methods side by side, as text and as plain data.

local calibrate = require 'trinity.cluster.calibrate'
local core = require 'trinity.core'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local comparison_table = require 'trinity.methods.comparison_table'
local infeasibility = require 'trinity.strategy.infeasibility'
local run_search = require 'trinity.runs.search'
local search = require 'trinity.search'
local strategy = require 'trinity.strategy.strategy'
local significance = require 'trinity.methods.significance'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

--- Methods side by side; tostring() gives the table.
---@class trinity.Comparison
---@field problem trinity.Problem
---@field rows trinity.ComparisonRow[]
---@field seed integer the first
---@field seeds integer how many
---@field evaluations integer of each run, at most
---@field seconds number of each run, at most
---@field stopped? boolean whether Ctrl-C ended it
local Comparison = { __name = 'comparison' }
Comparison.__index = Comparison

local comparison = { class = Comparison }

local fitting, values_of = comparison_table.fitting, comparison_table.values

--- Whether row `a` beats `b`: by how many runs fit, then by the median reward.
local function beats(a, b)
  local function facts(row)
    return fitting(row) / #row.runs, util.median(values_of(row, function(s) return s.reward end))
  end
  local fit_a, reward_a = facts(a)
  local fit_b, reward_b = facts(b)
  if fit_a ~= fit_b then return fit_a > fit_b end
  return reward_a > reward_b
end

--- The row of the best method: most runs that fit, then the largest median reward; nil where none fits.
--- Example: `comparison:best().method`
---@return trinity.ComparisonRow?
function Comparison:best()
  local best
  for _, row in ipairs(self.rows) do
    if row.best and row.best.metrics.feasible and (not best or beats(row, best)) then best = row end
  end
  return best
end

--- Where nothing fits: the row whose best run is closest to it; nil where something fits, or nothing was found.
local function least_infeasible(self)
  local closest, least = nil, math.huge
  for _, row in ipairs(self.rows) do
    if row.best then
      if row.best.metrics.feasible then return nil end
      local distance = infeasibility.distance(row.best.metrics)
      if not closest or distance < least then closest, least = row, distance end
    end
  end
  return closest
end

local function budget_text(self, ranges)
  local parts = {}
  if self.evaluations < search.unlimited then parts[1] = ('at most %d evaluations'):format(self.evaluations) end
  if self.seconds < math.huge then parts[#parts + 1] = ('at most %g s'):format(self.seconds) end
  local seeds = self.seeds == 1 and ('seed %d'):format(self.seed)
    or ('seeds %d to %d (%s)'):format(self.seed, self.seed + self.seeds - 1, ranges and 'median [range]' or 'medians')
  return ('%s, %s a method'):format(seeds, table.concat(parts, ' and '))
end

local function row_of(self, owner, place, name, value)
  for _, row in ipairs(self.rows) do if row.method == value then return row end end
  check.refuse(owner, place, name, 'no row %s', util.unknown(value,
    util.map(self.rows, function(row) return row.method end)))
end

--- Whether the rewards of two methods differ by more than chance, over the seeds that both have: a
--- paired test, where a run that fits beats one that does not. A method without random numbers, or a strategy, has the
--- same result for every seed. nil where neither uses random numbers, or no seed has both.
--- Example: `comparison:significance('heft', 'round_robin')`
---@param name string
---@param against string
---@return { test: string, p: number, pairs: integer, least_p: number, exact: boolean }?
function Comparison:significance(name, against)
  check.argument('comparison:significance', 1, 'name', name, 'string')
  check.argument('comparison:significance', 2, 'against', against, 'string')
  local a = row_of(self, 'comparison:significance', 1, 'name', name)
  local b = row_of(self, 'comparison:significance', 2, 'against', against)
  return significance.of(self, a, b)
end

--- The table alone. Example: `comparison:table { format = 'markdown' }`
---@param options? trinity.ComparisonTableOptions
---@return string
function Comparison:table(options) return comparison_table.write(self, options) end

local function made_by()
  local script = rawget(_G, 'arg') or {}
  if not script[0] then return nil end
  local name = script[0]:gsub('^' .. core.home:gsub('%p', '%%%0') .. '/', '')
  return 'made by: trinity ' .. table.concat({ name:match '^scripts/([%w_]+)%.lua$' or name, unpack(script) }, ' ')
end

--- The notes below the table: the lower bound, the methods and their budget, why a row is empty. ranges:
--- whether the table has ranges next to medians. Example: `print(comparison:notes())`
---@param ranges? boolean
---@return string
function Comparison:notes(ranges)
  if ranges ~= nil then check.argument('comparison:notes', 1, 'ranges', ranges, 'boolean') end
  local lines, best = {}, self:best()
  for _, row in ipairs(self.rows) do
    for _, failure in ipairs(row.failures) do lines[#lines + 1] = ('%s: %s'):format(row.method, failure) end
  end
  lines[#lines + 1] = ''
  local bounds = self.problem:bounds()
  lines[#lines + 1] = ('simulated; lower bounds: step time %s (critical path %s, work over speed %s, intervals %s), '
    .. 'peak memory %s'):format(text.seconds(bounds.step_time_s), text.seconds(bounds.critical_path_s),
      text.seconds(bounds.work_s), text.seconds(bounds.interval_s), core.format_bytes(bounds.peak_memory_bytes))
  for _, row in ipairs(self.rows) do
    if row.best and row.best.splits then
      lines[#lines + 1] = 'the bounds hold where operators are whole; a strategy with splits may be below them'
      break
    end
  end
  local closest = least_infeasible(self)
  if closest then
    lines[#lines + 1] = ('no method found a strategy that fits; the least infeasible, by %s: %s'):format(
      closest.method, closest.best:infeasibility().text)
  end
  for _, row in ipairs(self.rows) do
    local name = comparison_table.name_of(row)
    if row.runs[1] and row.runs[1].updates == 0 and name ~= row.method then
      lines[#lines + 1] = ('%s: what %s came to, whose policy had no update in this budget'):format(name, row.method)
    end
  end
  if best and #self.rows > 1 then lines[#lines + 1] = ('* best: %s'):format(comparison_table.name_of(best)) end
  lines[#lines + 1] = significance.text(self, best)
  lines[#lines + 1] = ('%s on %s, %s'):format(self.problem.graph.name, self.problem.cluster.name,
    budget_text(self, ranges))
  lines[#lines + 1] = calibrate.text(self.problem.cluster.basis)
  lines[#lines + 1] = made_by()
  if self.stopped then
    lines[#lines + 1] = ('stopped by %s: the last row had less than its budget'):format(core.stop_name())
  end
  return table.concat(lines, '\n')
end

--- The table as text, with the notes.
function Comparison:__tostring()
  return self:table() .. '\n' .. self:notes()
end

--- The best run of a method of this comparison, or nil when there is none.
--- Example: `comparison:find('heft').metrics.step_time_s`
---@param name string
---@return trinity.Strategy?
function Comparison:find(name)
  check.argument('comparison:find', 1, 'name', name, 'string')
  for _, row in ipairs(self.rows) do if row.method == name then return row.best end end
end

--- The metrics of a strategy as plain data, with the id of the search of a run that found it.
function comparison.facts(found)
  local facts = strategy.facts(found)
  facts.search = run_search.id_of(found)
  return facts
end

--- The result as a sentence. Example: `print(comparison:summary())`
---@return string
function Comparison:summary()
  local best, problem = self:best(), self.problem
  local where = ('%s on %s'):format(problem.graph.name, problem.cluster.name)
  if not best then
    local closest = least_infeasible(self)
    return ('Of %d methods for %s, none found a strategy that fits%s.'):format(#self.rows, where,
      closest and ('; the least infeasible, by %s: %s'):format(closest.method,
        closest.best:infeasibility().text) or '')
  end
  local step_time_s = best.best.metrics.step_time_s
  local bound = ('a step of %.4g s'):format(step_time_s)
  if not best.best.splits then -- the bound binds whole operators
    bound = ('%s, %.2f times the lower bound'):format(bound, step_time_s / best.best:bounds().step_time_s)
  end
  if #self.rows == 1 then return ('%s found for %s: %s.'):format(best.method, where, bound) end
  return ('Of %d methods for %s, %s has the largest reward: %s.'):format(#self.rows, where, best.method, bound)
end

--- The comparison as plain data, as scripts/search.lua prints it as JSON. Example: `comparison:totable()[1]`
---@return table
function Comparison:totable()
  local rows, best, closest = {}, self:best(), least_infeasible(self)
  for r, row in ipairs(self.rows) do
    local runs = util.map(row.runs, comparison.facts)
    local times = values_of(row, function(s) return s.metrics.step_time_s end)
    local name = comparison_table.name_of(row)
    rows[r] = { method = row.method, called = name ~= row.method and name or nil, runs = runs, failures = row.failures,
      median_step_time_s = #runs > 0 and util.median(times) or nil,
      mean_step_time_s = #runs > 0 and statistics.mean(times) or nil,
      deviation_step_time_s = statistics.deviation(times),
      against_best = best and row ~= best and significance.of(self, row, best) or nil }
  end
  local basis = calibrate.data(self.problem.cluster.basis)
  return { model = self.problem.graph.name, cluster = self.problem.cluster.name, seed = self.seed, seeds = self.seeds,
    constants = basis.constants, runtime = basis.runtime,
    evaluations = self.evaluations < search.unlimited and self.evaluations or nil,
    seconds = self.seconds < math.huge and self.seconds or nil, lower_bound_s = self.problem:bounds().step_time_s,
    rows = rows, best = best and best.method,
    least_infeasible = closest and closest.method, stopped = self.stopped or false }
end

--- Whether anything went wrong: a run failed with an error, or no method found anything. Example: `comparison:failed()`
---@return boolean
function Comparison:failed()
  local runs = 0
  for _, row in ipairs(self.rows) do
    runs = runs + #row.runs
    for _, failure in ipairs(row.failures) do
      if failure:match '^failed: ' then return true end
    end
  end
  return #self.rows > 0 and runs == 0
end

function comparison.new(problem, seed, seeds, evaluations, seconds)
  return setmetatable({ problem = problem, rows = {}, seed = seed, seeds = seeds, evaluations = evaluations,
    seconds = seconds }, Comparison)
end

--- An empty row; fixed: its one run stands for every seed.
function comparison.row(method, fixed)
  return fields.result('trinity.ComparisonRow', { method = method, fixed = fixed, runs = {}, failures = {},
    by_seed = {} })
end

--- Adds a run to a row, or why there is none.
function comparison.add(row, seed, found, failure)
  if not found then
    if row.failures[#row.failures] ~= failure then row.failures[#row.failures + 1] = failure end
    return
  end
  row.runs[#row.runs + 1], row.by_seed[seed] = found, found
  if found.problem.better(found, row.best) then row.best = found end
end

check.methods(Comparison, 'trinity.Comparison')

return comparison
