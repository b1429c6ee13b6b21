-- The frame of every search: budget, evaluation, reward, best so far, progress, stopping.

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
---@since 0.1.0
---@field problem trinity.Problem
---@field method string
---@field options table<string, any>
---@field evaluations integer how many plans were simulated
---@field step integer how often search:evaluate was called
---@field mean_reward? number of the placements of the last step
---@field updates? integer how often a policy was updated; nil where the method has none
---@field stages? string[] what the search went through, where that depends on its options and budget
---@field sum_of_means? number the sum of that over all steps
---@field curve trinity.CurvePoint[]
---@field placement trinity.Placement that of the best so far
---@field plan? trinity.Strategy the best so far, where it was not given as a placement alone
---@field best? { metrics: trinity.Metrics, reward: number }
---@field start number clock at the start in seconds
---@field stopped? boolean whether Ctrl-C came
---@field progress table the progress line
---@field resumable? boolean whether search:resumed was called
local Search = { __name = 'search' }
Search.__index = Search

---@class trinity.SearchModule
---@since 0.1.0
---@field common trinity.SearchOptions options that every method takes, with their defaults
---@field rules table<string, any> what those options may be (lib/trinity/base/check.lua)
---@field declared table what every method's options extend (lib/trinity/base/options.lua)
---@field unlimited integer a number of evaluations that no search reaches
---@field rescued trinity.Strategy[] the best of searches that failed where no file keeps it, the last 16
local search = {}

search.unlimited = 2 ^ 53

--- What every method's options extend.
search.declared = options_of.declare('trinity.SearchOptions', { help = 'What every method takes.',
  { 'seed', 'integer', 1, least = 0, help = 'fixes every random number' },
  { 'evaluations', 'integer', 2000, least = 1, help = 'placements to simulate' },
  { 'seconds', 'number', math.huge, above = 0, otherwise = 'no limit',
    help = "wall-clock limit; results then depend on the machine's speed" },
  { 'quiet', 'boolean', false, help = 'no progress line' },
  { 'rescue', 'string', '', otherwise = "in the run's folder",
    help = 'a file for the best so far when the script fails' },
})

search.common, search.rules = search.declared:defaults(), search.declared.rules

search.rescued = {}

local most_rescued = 16

-- Options of a declaration: `false` stands for a default that the method finds for itself.
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

--- Merges a method's own defaults, the common ones and the caller's options; refuses unknown names. Methods of the
--- library give what they declare (lib/trinity/base/options.lua) for the defaults, and the problem where bounds follow
--- from it.
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
      -- `false` stands for a default that the method finds for itself.
      rules[key], options[key] = search.rules[key] or (value == false and 'any' or type(value)), value
    end
  end
  check.fields('methods.' .. method, given or {}, rules)
  for key, value in util.sorted_pairs(given or {}) do options[key] = value end
  return options
end

--- Whether budget is left and nobody asked to stop.
---@return boolean
function Search:more()
  if core.stop_requested() then self.stopped = true end
  return not self.stopped and self.evaluations < self.options.evaluations
    and core.clock_s() - self.start < self.options.seconds
end

--- How many of `wanted` evaluations the budget still allows.
---@param wanted integer
---@return integer
function Search:allowance(wanted)
  check.integer('search:allowance', 1, 'wanted', wanted, 0)
  return math.min(wanted, self.options.evaluations - self.evaluations)
end

-- Makes a plan the best: a placement alone is copied, of any other a strategy is kept.
local function keep_best(self, plan, result)
  self.best, self.plan = result, nil
  if not array.is_int32(plan) then
    self.plan = strategy.of_result(self.problem, plan, result)
    plan = self.plan.placement
  end
  for op = 1, #plan do self.placement[op] = plan[op] end
end

--- Simulates plans, scores them, keeps the best: one step of the progress line. A plan is what problem:evaluate takes:
--- a placement, { placement =, schedule =, micro_batches = }, { mesh = }, a strategy. A placement that contradicts its
--- schedule does not fit; a plan above reject_above_s is never the best.
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

--- Draws the progress line and keeps the step in the run's folder.
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

--- Begins to keep checkpoints in the folder of the run, from which `--resume` goes on after a crash or Ctrl-C. Called
--- at the beginning of the body. Where an interrupted run goes on, best, evaluations and curve are again what they
--- were, and what search:keep wrote last is returned, once; else nil. For methods that are called by
--- trinity.methods.NAME.
---@return any
function Search:resumed()
  if self.resumable then return nil end
  self.resumable = true
  checkpoints.begin(self)
  local notes = checkpoints.restore_kept('methods.' .. self.method, self)
  return notes and json.decode(notes.state, 'the state of a checkpoint')
end

--- Keeps what the body needs to continue from here, if five seconds have passed since it was kept: a table, or a
--- function that returns one and is called only then. Batches evaluated later are evaluated again. The state comes back
--- as it was given: numbers, texts (UTF-8), true, false, lists and tables with named fields. What JSON cannot hold (a
--- list with named fields or holes, an infinite number) is refused at the first call, even if nothing is written.
---@param state table|fun(): table
function Search:keep(state)
  if type(state) ~= 'table' and type(state) ~= 'function' then
    check.wrong('search:keep', 1, 'state', state, 'a table or a function that returns one')
  end
  if not self.resumable then util.fail 'search:keep: search:resumed() has to be called before, at the beginning' end
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
  if due then checkpoints.write(self.checkpoint, self, { state = text }) end
end

--- Counts an update of a policy, and adds what the learner says of it to the run's row of this step.
---@param fields table<string, number> entropy, loss, ...
function Search:learned(fields)
  check.argument('search:learned', 1, 'fields', fields, 'table')
  self.updates = (self.updates or 0) + 1
  local record = records[self]
  if record then record:learned(fields) end
end

--- The best so far as a strategy.
---@return trinity.Strategy
function Search:result()
  if not self.best then
    if self.stopped then util.fail 'interrupted' end -- it began after Ctrl-C
    util.fail("method '%s' ended without evaluating a plan", self.method)
  end
  search_curve.complete(self)
  return strategy.new('search:result', self.problem, self.plan or self.placement, { method = self.method,
    seed = self.options.seed, evaluations = self.evaluations, updates = self.updates, search_stages = self.stages,
    ranking = self.ranking, seconds = core.clock_s() - self.start, curve = self.curve, stopped = self.stopped },
    true, true)
end

--- Keeps the best so far for the script where there is no file for it.
local function remember(self)
  local list, about = search.rescued, { method = self.method, seed = self.options.seed, evaluations = self.evaluations,
    seconds = core.clock_s() - self.start, curve = self.curve }
  if #list == most_rescued then table.remove(list, 1) end
  list[#list + 1] = strategy.of_result(self.problem, self.plan or self.placement, self.best, about)
end

--- Saves the best so far when the body of a search failed; returns what to say about it.
local function rescue(self)
  if not self.best then return '' end
  local notes = { method = self.method, seed = self.options.seed, reward = self.best.reward,
    evaluations = self.evaluations, step_time_s = self.best.metrics.step_time_s }
  local text, path = self.problem:to_json(self.plan or self.placement, notes), self.options.rescue
  local what = ('\n  the best so far (step time %.6g s after %d evaluations) is '):format(
    self.best.metrics.step_time_s, self.evaluations)
  local why = "in no file, as no run is kept (option 'rescue' names one)"
  if path == '' then
    path = hooks.searches.rescue(self, text)
    if path then return what .. 'saved in ' .. path end
  else
    local ok, message = pcall(core.write_file, path, text)
    if ok then return what .. 'saved in ' .. path end
    why = 'in no file: ' .. message
  end
  remember(self)
  return ('%s%s; trinity.search.rescued has it'):format(what, why)
end

-- What a search has beyond its seconds, for the batch that is under way and its end: then its body is interrupted.
local function grace_s(seconds) return math.max(0.4, 0.05 * seconds) end

--- Runs the body of a search. Returns whether it ended well, the message of its error, whether Ctrl-C stopped it. One
--- that is interrupted because its time is up ends well; one that had no time for any placement prices one.
local function run_body(self, body)
  -- Ranks of a job share their work: rank 0 alone says when it ends.
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

--- Runs a search: `body(search)` calls search:evaluate while search:more(). Returns the best strategy. Ctrl-C ends it
--- early with the best so far, and so does the end of its seconds, even in the middle of a batch; an error in it saves
--- the best so far in the run's folder, in the file of option rescue, or where there is neither in search.rescued, and
--- goes on to the script.
---@param method string
---@param problem trinity.Problem
---@param options trinity.SearchOptions as search.options returns them
---@param body fun(search: trinity.Search)
---@return trinity.Strategy
function search.run(method, problem, options, body)
  check.argument('search.run', 1, 'method', method, 'string')
  check.object('search.run', 2, 'problem', problem, 'problem')
  check.argument('search.run', 3, 'options', options, 'table')
  for key, default in util.sorted_pairs(search.common) do
    if options[key] == nil then
      check.refuse('search.run', 3, 'options', "field '%s' is missing (search.options gives all, its default is %s)",
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
    -- An error object stays what it is; what there is to say goes beside it.
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
