-- trinity.compare: methods side by side on one problem, each under the same budget.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local comparison = require 'trinity.methods.comparison'
local methods = require 'trinity.methods'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local search = require 'trinity.search'
local strategy = require 'trinity.strategy.strategy'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local declared = options_of.declare('trinity.CompareOptions', { extends = search.declared,
  help = 'What trinity.compare takes: in addition to these, a table of its own options per method, under its name.',
  open = 'options of the method of that name',
  { 'seeds', 'integer', 1, least = 1, most = 10000, late = true,
    help = 'runs of every method that uses random numbers' },
  { 'labels', 'table', as = 'table<string, string>', help = 'what tables call methods, by their names' },
})

--- Refuses lists of anything but methods and strategies, and options that no method has.
local function check_arguments(problem, list, options)
  check.object('trinity.compare', 1, 'problem', problem, 'problem')
  check.argument('trinity.compare', 2, 'list', list, 'table')
  if #list == 0 then check.refuse('trinity.compare', 2, 'list', 'expected names of methods or strategies, got none') end
  for i = 1, #list do
    if type(list[i]) == 'string' then
      local known, message = pcall(methods.get, list[i])
      if not known then
        check.refuse('trinity.compare', 2, 'list', 'entry %d: %s', i, tostring(message):match 'no method.*$' or message)
      end
    elseif not strategy.is(list[i]) then
      check.refuse('trinity.compare', 2, 'list', 'entry %d: expected the name of a method or a strategy, got %s', i,
        util.describe(list[i]))
    end
  end
  if options == nil then options = {} end
  check.argument('trinity.compare', 3, 'options', options, 'table')
  local of_methods = {}
  for _, name in ipairs(methods.names()) do
    of_methods[name] = true
    if options[name] ~= nil then check.argument('trinity.compare', 'option', name, options[name], 'table') end
  end
  util.refuse_unknown('trinity.compare', options, util.merged(declared.by_name, of_methods))
  declared:check('trinity.compare', options)
  for name, label in util.sorted_pairs(options.labels or {}) do
    methods.get(name)
    if type(label) ~= 'string' or not label:match '^[^%c]+$' then
      check.wrong('trinity.compare', 'option', 'labels', label, ('a line of text for %s'):format(name))
    end
  end
  return options
end

--- Runs a method once: a strategy, or nil and why there is none, or nil, nil and true after Ctrl-C. An option that the
--- method does not know is the caller's mistake and stays an error.
local function run_once(self, name, seed, options)
  local settings = util.merged({ seed = seed, evaluations = options.evaluations, seconds = options.seconds,
    quiet = options.quiet }, options[name])
  local ok, result, reason = pcall(methods.get(name), self.problem, settings)
  if not ok then
    local message = tostring(result)
    if core.stop_requested() or core.was_interrupted() then return nil, nil, true end -- before there was a best
    if message:find(('methods.%s: '):format(name), 1, true) then error(result, 0) end
    return nil, 'failed: ' .. util.unplaced(message)
  end
  if not result then return nil, reason or 'found no placement' end
  return result
end

--- One line about a finished run: what a person who waits wants to know of it.
local function tell(name, seed, found, failure)
  if not found then return progress.note(('%s  seed %d  %s'):format(name, seed, failure)) end
  progress.note(('%s  seed %d  step time %.4g s%s  reward %s  %s evaluations  %.1f s'):format(name, seed,
    found.metrics.step_time_s, found.metrics.feasible and '' or ' (does not fit)', text.significant(found.reward),
    found.evaluations or '-', found.seconds or 0))
end

--- How many seeds a method needs: one if it uses no random numbers.
local function seeds_of(name, seeds)
  local about = methods.info(name)
  return about.deterministic and 1 or seeds
end

local function finish(self)
  local data = self:totable()
  run_state.keep_result('comparison', data, nil, self:summary(), self.problem)
  return self
end

--- A given strategy, as the problem simulates it: one of another problem is simulated again, and refused where its
--- operators or devices differ.
local function priced(problem, i, entry)
  if entry.problem == problem then return entry end
  local about = util.picked(entry, { 'method', 'seed', 'evaluations' })
  local ok, again = pcall(problem.strategy, problem, entry, about)
  if ok then return again end
  check.refuse('trinity.compare', 2, 'list', 'entry %d: the strategy belongs to %s on %s: %s', i,
    entry.problem.graph.name, entry.problem.cluster.name, (util.unplaced(again):gsub('^[%w_.:]+: ', '')))
end

--- Fills the comparison's rows; stopped by Ctrl-C, with those so far.
local function run_all(self, list, given)
  for i, entry in ipairs(list) do
    local given_one = strategy.is(entry)
    local row = comparison.row(given_one and (entry.method or '?') or entry,
      given_one or methods.info(entry).deterministic)
    self.rows[i] = row
    row.label = not given_one and given.labels and given.labels[entry] or nil
    if given_one then
      comparison.add(row, self.seed, priced(self.problem, i, entry))
    else
      for s = 0, seeds_of(entry, self.seeds) - 1 do
        local found, failure, stopped = run_once(self, entry, self.seed + s, given)
        if not stopped then
          comparison.add(row, self.seed + s, found, failure)
          if not given.quiet then tell(entry, self.seed + s, found, failure) end
        end
        if stopped or found and found.stopped then
          self.stopped = true
          return
        end
      end
    end
  end
end

--- Runs every entry of `list` (the name of a method, or a strategy already found) on the problem with the same seeds
--- and budget. A method that fails or finds nothing that fits is a row that says so (comparison:failed()). Ctrl-C ends
--- it with the rows so far. Print the comparison, or take its rows.
--- Example: `print(trinity.compare(problem, { 'heft', 'round_robin' }, { quiet = true }))`
---@param problem trinity.Problem
---@param list (string|trinity.Strategy)[]
---@param options? trinity.CompareOptions
---@return trinity.Comparison
return function(problem, list, options)
  options = check_arguments(problem, list, options)
  local usual = { evaluations = options.seconds and search.unlimited or 2000, seconds = math.huge }
  local given = util.merged(usual, options)
  local self = comparison.new(problem, options.seed or 1, options.seeds or 1, given.evaluations, given.seconds)
  run_state.current(problem) -- a run that cannot be kept is an error of the comparison, not of its first method
  core.begin_series() -- Ctrl-C between two searches, too, ends the comparison and not its script
  local ok, message = pcall(run_all, self, list, given)
  core.end_series()
  if not ok then error(message, 0) end
  return finish(self)
end
