-- trinity.compare: methods side by side on one problem, under one budget.

local core = require 'trinity.core'
local check = require 'trinity.check'
local methods = require 'trinity.methods'
local search = require 'trinity.search'
local strategy = require 'trinity.strategy'
local text = require 'trinity.text'
local util = require 'trinity.util'

local Comparison = { __name = 'comparison' }
Comparison.__index = Comparison

local columns = {
  { 'method', function(s) return s.method or '?' end },
  { 'step time', function(s) return ('%.4f s'):format(s.metrics.step_time_s) end },
  { 'over bound', function(s)
    return ('%.2fx'):format(s.metrics.step_time_s / s:lower_bound_s())
  end },
  { 'peak memory', function(s) return core.format_bytes(s.metrics.peak_memory_bytes) end },
  { 'peak communication', function(s)
    return core.format_bytes(s.metrics.peak_communication_bytes)
  end },
  { 'feasible', function(s) return s.metrics.feasible and 'yes' or 'no' end },
  { 'reward', function(s) return ('%.4f'):format(s.reward) end },
  { 'evaluations', function(s) return tostring(s.evaluations or '-') end },
  { 'seconds', function(s) return s.seconds and ('%.1f'):format(s.seconds) or '-' end },
}

--- The table as text, with the lower bound and what was compared under which budget.
function Comparison:__tostring()
  local head, rows = {}, {}
  for c, column in ipairs(columns) do
    head[c] = column[1]
    for r, found in ipairs(self.rows) do
      rows[r] = rows[r] or {}
      rows[r][c] = column[2](found)
    end
  end
  local lines = { text.format_table(head, rows) }
  lines[#lines + 1] = ''
  local bounds = self.problem:bounds()
  lines[#lines + 1] = ('simulated; lower bounds: step time %.4f s (critical path %.4f s, '
    .. 'work over speed %.4f s, intervals %.4f s), peak memory %s'):format(
      bounds.step_time_s, bounds.critical_path_s, bounds.work_s, bounds.interval_s,
      core.format_bytes(bounds.peak_memory_bytes))
  lines[#lines + 1] = ('%s on %s, seed %d, at most %d evaluations a method')
    :format(self.problem.graph.name, self.problem.cluster.name, self.seed, self.evaluations)
  local script = rawget(_G, 'arg') or {}
  if script[0] then
    local name = script[0]:gsub('^' .. core.home:gsub('%p', '%%%0') .. '/', '')
    lines[#lines + 1] = ('made by: trinity %s %s'):format(name, table.concat(script, ' '))
  end
  if self.stopped then lines[#lines + 1] = 'stopped by Ctrl-C: the last row had less than its budget' end
  return table.concat(lines, '\n')
end

--- The strategy found by a method of this comparison, or nil when Ctrl-C came before it.
function Comparison:find(name)
  check.self('comparison:find', self, 'comparison')
  check.argument('comparison:find', 1, 'name', name, 'string')
  for _, found in ipairs(self.rows) do if found.method == name then return found end end
end

--- Refuses lists of anything but methods and strategies, and options that no method has.
local function check_arguments(problem, list, options)
  check.object('trinity.compare', 1, 'problem', problem, 'problem')
  check.argument('trinity.compare', 2, 'list', list, 'table')
  for i = 1, #list do
    if type(list[i]) == 'string' then methods.get(list[i])
    elseif not strategy.is(list[i]) then
      check.refuse('trinity.compare', 2, 'list', 'entry %d: expected the name of a method or a strategy, got %s', i,
        util.describe(list[i]))
    end
  end
  local rules = {}
  for key, rule in util.sorted_pairs(search.rules) do rules[key] = rule end
  for _, name in ipairs(methods.names()) do rules[name] = 'table' end
  return check.options('trinity.compare', 3, 'options', options, rules)
end

--- Runs every entry of `list` (the name of a method, or a strategy already found) on the problem
--- with the same seed and budget. options: evaluations, seconds, seed, quiet, and per method a table of
--- its own options under its name. Ctrl-C ends it with the rows so far. Returns a comparison: print
--- it, or take its rows.
return function(problem, list, options)
  options = check_arguments(problem, list, options)
  local self = setmetatable({ problem = problem, rows = {}, seed = options.seed or 1,
    evaluations = options.evaluations or 2000 }, Comparison)
  for i, entry in ipairs(list) do
    if strategy.is(entry) then
      self.rows[i] = entry
    else
      local method = methods.get(entry)
      local settings = { seed = self.seed, evaluations = self.evaluations,
        seconds = options.seconds, quiet = options.quiet, rescue = options.rescue }
      for key, value in util.sorted_pairs(options[entry] or {}) do settings[key] = value end
      self.rows[i] = method(problem, settings)
      if self.rows[i].stopped then
        self.stopped = true
        break
      end
    end
  end
  return self
end
