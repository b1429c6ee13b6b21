-- The harness of every search: budget, evaluation, reward, best so far, progress, stopping.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local checkpoints = require 'trinity.runs.checkpoints'
local dist = require 'trinity.dist'
local dist_search = require 'trinity.search.shared'
local hooks = require 'trinity.base.hooks'
local json = require 'trinity.base.json'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local records = require 'trinity.runs.records'
local search_curve = require 'trinity.search.curve'
local simulator = require 'trinity.strategy.simulator'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

---@class trinity.Search
---@field problem trinity.Problem
---@field method string
---@field options table<string, any>
---@field evaluations integer number of simulated plans
---@field step integer number of calls of search:evaluate
---@field mean_reward? number mean reward of the last step
---@field updates? integer number of policy updates; nil if the method has no policy
---@field stages? string[] stages of the search, if they depend on its options and budget
---@field sum_of_means? number sum of mean rewards over all steps
---@field curve trinity.CurvePoint[]
---@field placement trinity.Placement placement of the best so far
---@field plan? trinity.Strategy best so far, if it is not a placement alone
---@field best? { metrics: trinity.Metrics, reward: number }
---@field start number clock at the start in seconds
---@field stopped? boolean true: stopped by Ctrl-C
---@field progress table the progress line
---@field resumable? boolean true: search:resumed was called
local Search = { __name = 'search' }
Search.__index = Search

---@class trinity.SearchModule
---@field rankers trinity.RankersModule rankers of moves
---@field common trinity.SearchOptions common options of all methods, with their defaults
---@field rules table<string, any> allowed values of these options (lib/trinity/base/check.lua)
---@field declared table declaration that the options of every method extend (lib/trinity/base/options.lua)
---@field unlimited integer a number of evaluations that no search reaches
---@field rescued trinity.Strategy[] best strategies of the last 16 failed searches without a run folder
local search = {}

search.unlimited = 2 ^ 53

--- Options that the options of every method extend.
search.declared = options_of.declare('trinity.SearchOptions', { help = 'Options of every method.',
  { 'seed', 'integer', 1, least = 0, help = 'random seed' },
  { 'evaluations', 'integer', 2000, least = 1, help = 'number of placements to simulate' },
  { 'seconds', 'number', math.huge, above = 0, otherwise = 'no limit',
    help = "time limit in seconds; results then depend on the machine's speed" },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
})

search.common, search.rules = search.declared:defaults(), search.declared.rules

search.rescued = {}

local most_rescued = 16

-- Reads options of a declaration. `false` means that the method chooses the default itself.
local function of_declaration(owner, declared, given, problem)
  declared:check(owner, given, problem)
  local all = {}
  for _, entry in ipairs(declared.all) do
    local name, value = entry.name, given[entry.name]
    if value == nil then
      if entry.late then value = false
      elseif search.declared.by_name[name] == entry then value = search.common[name]
      else value = entry.default end
    end
    all[name] = value
  end
  return all
end

--- Merges a method's defaults, the common options and the caller's options. Raises an error for an unknown name or a
--- wrong type. Methods of the library pass a declaration (lib/trinity/base/options.lua) as defaults, and the problem if
--- limits depend on it. Example: `trinity.search.options('mine', { batch = 16 }, { evaluations = 100 })`
---@param method string
---@param defaults table<string, any>
---@param given? table<string, any>
---@param problem? trinity.Problem
---@return table<string, any>
function search.options(method, defaults, given, problem)
  check.argument('search.options', 1, 'method', method, 'string')
  check.argument('search.options', 2, 'defaults', defaults, 'table')
  if given ~= nil then check.argument('search.options', 3, 'given', given, 'table') end
  if problem ~= nil then check.object('search.options', 4, 'problem', problem, 'problem') end
  if options_of.is(defaults) then return of_declaration('methods.' .. method, defaults, given or {}, problem) end
  local rules, options = {}, {}
  for _, set in ipairs { search.common, defaults } do
    for key, value in util.sorted_pairs(set) do
      -- `false` means that the method chooses the default itself.
      rules[key], options[key] = search.rules[key] or (value == false and 'any' or type(value)), value
    end
  end
  check.fields('methods.' .. method, given or {}, rules)
  for key, value in util.sorted_pairs(given or {}) do options[key] = value end
  return options
end

--- Returns whether budget is left and no stop was requested. Example: `while search:more() do ... end`
---@return boolean
function Search:more()
  if core.stop_requested() then self.stopped = true end
  return not self.stopped and self.evaluations < self.options.evaluations
    and core.clock_s() - self.start < self.options.seconds
end

--- Returns how many of `wanted` evaluations the budget still allows. Example: `search:allowance(16)`
---@param wanted integer
---@return integer
function Search:allowance(wanted)
  check.integer('search:allowance', 1, 'wanted', wanted, 0)
  return math.min(wanted, self.options.evaluations - self.evaluations)
end

-- Makes a plan the best one: a placement is copied, any other plan is stored as a strategy.
local function keep_best(self, plan, result)
  self.best, self.plan = result, nil
  if not array.is_int32(plan) then
    self.plan = strategy.of_result(self.problem, plan, result)
    plan = self.plan.placement
  end
  for op = 1, #plan do self.placement[op] = plan[op] end
end

--- Simulates and scores plans and keeps the best one; counts as one step. Plans are as in problem:evaluate: a
--- placement, { placement =, schedule =, micro_batches = }, { mesh = }, or a strategy. A placement that contradicts its
--- schedule counts as infeasible. A plan above reject_above_s never becomes the best. Example: `local rewards, metrics
--- = search:evaluate { placement }`
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.DoubleArray rewards
---@return trinity.Metrics[] metrics
function Search:evaluate(plans, options)
  check.argument('search:evaluate', 1, 'plans', plans, 'table')
  if #plans == 0 then check.refuse('search:evaluate', 1, 'plans', 'expected at least one plan, got none') end
  local given = plans
  plans = {}
  for i = 1, #given do
    plans[i] = array.placement('search:evaluate', 1, 'plans', given[i], self.problem.graph, i)
  end
  local problem = self.problem
  local metrics = simulator.run_batch('search:evaluate', problem, plans, options, true)
  local rewards, sum = array.double(#plans), 0
  for i = 1, #plans do
    local result = { metrics = metrics[i], reward = problem:score(metrics[i], plans[i]) }
    rewards[i] = result.reward
    sum = sum + result.reward
    if problem.better(result, self.best) then keep_best(self, plans[i], result) end
  end
  self.evaluations = self.evaluations + #plans
  search_curve.note(self, sum / #plans)
  self:show(#plans)
  return rewards, metrics
end

--- Updates the progress line and records the step in the run folder. Only needed by searches that do not call
--- search:evaluate. Example: `search:show(16)`
---@param batch integer size of the last batch
function Search:show(batch)
  check.integer('search:show', 1, 'batch', batch, 1)
  local record = records[self]
  if record then record:step(self) end
  local share = math.max(self.evaluations / self.options.evaluations,
    (core.clock_s() - self.start) / self.options.seconds)
  local bounded = self.options.evaluations < search.unlimited
  self.progress:update { step = self.step, best = self.best, evaluations = self.evaluations,
    steps = bounded and math.ceil(self.options.evaluations / batch) or nil, share = math.min(1, share),
    problem = self.problem, method = self.method, seed = self.options.seed, search = record and record.id }
end

--- Enables checkpoints in the run folder, from which `--resume` continues after a crash or Ctrl-C. Call it at the
--- beginning of the body. If an interrupted run resumes, best, evaluations and curve are restored and the last state of
--- search:keep is returned, once; otherwise returns nil. For methods that are called as trinity.methods.NAME. Example:
--- `local state = search:resumed() or { round = 0 }`
---@return any
function Search:resumed()
  if self.resumable then return nil end
  self.resumable = true
  checkpoints.begin(self)
  local notes = checkpoints.restore_kept('methods.' .. self.method, self)
  return notes and json.decode(notes.state, 'the state of a checkpoint')
end

--- Saves the state that the body needs to resume from here, at most every five seconds: a table, or a function that
--- returns one and is only called when the state is saved. After a resume, later batches are evaluated again. The state
--- may have numbers, texts (UTF-8), booleans, lists and tables with named fields. Raises an error at the first call for
--- values that JSON cannot represent (a list with named fields or holes, an infinite number). Example: `search:keep {
--- round = 3 }`
---@param state table|fun(): table
function Search:keep(state)
  if type(state) ~= 'table' and type(state) ~= 'function' then
    check.wrong('search:keep', 1, 'state', state, 'a table or a function that returns one')
  end
  if not self.resumable then util.fail 'search:keep: call search:resumed() before it, at the beginning of the body' end
  local due = self.best and checkpoints.due(self)
  if not due and self.keepable then return end
  if type(state) == 'function' then
    local ok, made = pcall(state)
    if not ok and util.function_place(state) == 'a function of C' then
      check.refuse('search:keep', 1, 'state', 'expected a table or a function that returns one, got one that failed')
    end
    if not ok then error(made, 0) end
    state = made
  end
  check.argument('search:keep', 1, 'state', state, 'table')
  local text = json.text_of('search:keep', 1, 'state', state, 'exact')
  self.keepable = true
  if due then checkpoints.write(self, { state = text }) end
end

--- Counts a policy update and records the learner's numbers with this step in the run folder. Example: `search:learned
--- { loss = 0.5, entropy = 1.2 }`
---@param fields table<string, number> entropy, loss, ...
function Search:learned(fields)
  check.argument('search:learned', 1, 'fields', fields, 'table')
  self.updates = (self.updates or 0) + 1
  local record = records[self]
  if record then record:learned(fields) end
end

--- Returns the best so far as a strategy. Raises an error if no plan was evaluated. Example: `search:result().metrics`
---@return trinity.Strategy
function Search:result()
  if not self.best then
    if self.stopped then util.fail 'interrupted' end -- it started after Ctrl-C
    util.fail("method '%s' ended without evaluating a plan", self.method)
  end
  search_curve.complete(self)
  return strategy.new('search:result', self.problem, self.plan or self.placement, { method = self.method,
    seed = self.options.seed, evaluations = self.evaluations, updates = self.updates, search_stages = self.stages,
    ranking = self.ranking, seconds = core.clock_s() - self.start, curve = self.curve, stopped = self.stopped },
    true, true)
end

--- Saves the best so far after the body of a search failed: in the run folder or, without one, in search.rescued.
--- Returns a text about it.
local function rescue(self)
  if not self.best then return '' end
  local about = { method = self.method, seed = self.options.seed, evaluations = self.evaluations }
  local notes = util.merged(about, { reward = self.best.reward, step_time_s = self.best.metrics.step_time_s })
  local path = hooks.searches.rescue(self, self.problem:to_json(self.plan or self.placement, notes))
  if not path then
    local list, more = search.rescued, { seconds = core.clock_s() - self.start, curve = self.curve }
    if #list == most_rescued then table.remove(list, 1) end
    list[#list + 1] = strategy.of_result(self.problem, self.plan or self.placement, self.best, util.merged(about, more))
  end
  return ('\n  the best so far (step time %.6g s after %d evaluations) is %s'):format(self.best.metrics.step_time_s,
    self.evaluations, path and 'saved in ' .. path or 'in trinity.search.rescued (there is no run folder)')
end

-- Time that a search has after its limit to finish the current batch. Then its body is interrupted.
local function grace_s(seconds) return math.max(0.4, 0.05 * seconds) end

--- Runs the body of a search. Returns whether it succeeded, its error message, and whether Ctrl-C stopped it.
--- Interruption at the time limit is a success. A search without time for any placement simulates one.
local function run_body(self, body)
  -- Ranks of a job share their work, and rank 0 alone decides when it ends.
  local shared = dist.joins() or dist.current()
  local limited = self.options.seconds < math.huge and not shared
  core.begin_search()
  if limited then core.begin_limit(self.options.seconds + grace_s(self.options.seconds)) end
  local ok, message = xpcall(function()
    body(self)
    if self.agrees then dist_search.settle(self) end
  end, function(text) return text end)
  if self.agrees then core.end_agreement() end
  local stopped = core.stop_requested()
  local late = limited and core.end_limit()
  if late and not ok and not stopped and tostring(message):match 'interrupted$' then ok = true end
  local over = limited and core.clock_s() - self.start >= self.options.seconds
  if over and ok and not stopped and not self.best then
    ok, message = xpcall(function() self:evaluate { self.problem:placement() } end, function(text) return text end)
  end
  core.end_search()
  return ok, message, stopped
end

--- Runs a search: `body(search)` calls search:evaluate while search:more(). Returns the best strategy. Ctrl-C and the
--- time limit end the search with the best so far, even in the middle of a batch. If the body raises an error, the best
--- so far is saved in the run folder or, without one, in search.rescued, and the error is raised again. Example:
--- `trinity.search.run('mine', problem, trinity.search.options('mine', {}), body)`
---@param method string
---@param problem trinity.Problem
---@param options trinity.SearchOptions result of search.options
---@param body fun(search: trinity.Search)
---@return trinity.Strategy
function search.run(method, problem, options, body)
  check.argument('search.run', 1, 'method', method, 'string')
  check.object('search.run', 2, 'problem', problem, 'problem')
  check.argument('search.run', 3, 'options', options, 'table')
  for key, default in util.sorted_pairs(search.common) do
    if options[key] == nil then
      check.refuse('search.run', 3, 'options', "field '%s' is missing (its default is %s); use search.options",
        key, tostring(default))
    end
  end
  check.argument('search.run', 4, 'body', body, 'function')
  local self = setmetatable({ method = method, problem = problem, options = options,
    evaluations = 0, step = 0, curve = {}, placement = problem:placement(),
    start = core.clock_s(), progress = progress.new(method, options.quiet) }, Search)
  local keep
  records[self], keep = hooks.searches.attach(method, problem, options)
  local ok, message, stopped = run_body(self, body)
  self.progress:finish()
  if not ok and stopped and self.best then ok, self.stopped = true, true end
  if not ok then
    keep(self, nil, util.shortened(tostring(message), 1000))
    local saved = rescue(self)
    if type(message) == 'string' then error(message .. saved, 0) end
    -- An error object is raised unchanged; the text about the best is printed.
    if saved ~= '' then progress.say(('trinity: %s: the search failed%s'):format(method, saved)) end
    error(message, 0)
  end
  local found = self.best and self:result()
  keep(self, found)
  return found or self:result()
end

check.methods(Search, 'trinity.Search', 'agrees checkpoint grows in_time job keepable keeping_s kept_at ranker '
  .. 'ranking resume resumed_at slot stop_status whole')

return search
