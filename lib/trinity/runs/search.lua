-- One search in a run folder (runs/DESIGN.md): its rows, best strategy so far, curve, timeline, and the data to resume
-- an interrupted run.
--
-- Rows: each of the first 16 steps, then one whenever the evaluations have grown by 6 %, or by 1 % with a better
-- placement, and the last step (curve.csv has all). The steps with a row thus depend on counts alone. A row is written
-- with the next one or at the end, because learners report numbers after the simulation of their batch
-- (Record:learned).

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local progress = require 'trinity.base.progress'
local records = require 'trinity.runs.records'
local run_folder = require 'trinity.runs.folder'
local run_metrics = require 'trinity.runs.metrics'
local run_problem = require 'trinity.runs.problem'
local state = require 'trinity.runs.state'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

local run_search = {}

local Record = {}
Record.__index = Record

local first_steps, growth, growth_if_better = 16, 1.06, 1.01
local most_searches = 2000 -- maximum per run, so that a loop over methods does not fill the disk
local ids = setmetatable({}, { __mode = 'k' }) -- ids of searches by their strategies
local active -- record of the running method

--- Returns the facts of a problem, which is written at its first use.
local function problem_facts(run, problem)
  local place = run.context
  while place do
    if place.problem_of[problem] then return place.problem_of[problem] end
    place = place.parent
  end
  local facts = run_problem.write(run.folder, state.next_id 'problems', problem)
  run.context.problem_of[problem] = facts
  if not run.about.model and not core.in_worker() then
    run.about.model, run.about.cluster = facts.model, facts.cluster
    state.save()
  end
  return facts
end

local function new(run, method, problem, options)
  local facts, id = problem_facts(run, problem), state.next_id 'searches'
  local self = setmetatable({ run = run, id = id, path = 'searches/' .. id, method = method, problem = problem,
    options = options, facts = facts, metrics = run.metrics, start = core.clock_s(), started_s = os.time(), rows = 0,
    last = 0, offset = 0, saved_at = core.clock_s(), saving_s = 0, seed = options.seed }, Record)
  run.kept = run.kept + 1
  return self
end

--- Writes the current search.json.
function Record:about(status, extra)
  return util.merged({ kind = 'trinity search 1', id = self.id, problem = self.facts.id, method = self.method,
    seed = self.seed, options = checkpoints.option_texts(self.options), status = status,
    started_at = state.time_text(self.started_s), started_s = self.started_s, seconds = core.clock_s() - self.start,
    lower_bound_s = self.facts.lower_bound_s or nil, resumed_from = self.resumed_from, began_anew = self.began_anew,
    outside = self.outside }, extra)
end

function Record:save_about(status, extra)
  self.run.folder:write(self.path .. '/search.json', json.encode(self:about(status, extra)))
end

--- Prints once why a search of a resumed run cannot resume; `why` nil: the reason known so far.
function Record:tell_anew(why)
  if not self.anew then return end
  why = why or self.keeps and self.anew or ('%s writes no checkpoints'):format(self.method)
  progress.note(('search %s (%s) starts from scratch: %s'):format(self.id, self.method, why))
  self.anew, self.began_anew = nil, why
end

--- Prints that the search resumes from a checkpoint.
function Record:tell_resumed(search)
  self.resumed_from = search.evaluations
  progress.note(('search %s (%s) resumes from its checkpoint at step %d, evaluation %d'):format(self.id, self.method,
    search.step, search.evaluations))
end

--- Writes the waiting row.
function Record:flush()
  local row = self.waiting
  if not row then return end
  self.waiting, self.rows, self.last = nil, self.rows + 1, row.evaluations
  self.metrics:write(row, self.started_s + row.seconds)
end

--- Returns the row of the search's current step.
function Record:row_of(search)
  local best = search.best
  local facts, m = self.facts, best.metrics
  return { search = self.id, problem = facts.id, method = self.method, seed = self.seed, model = facts.model,
    cluster = facts.cluster, step = search.step, evaluations = self.offset + search.evaluations,
    seconds = core.clock_s() - search.start, mean_reward = search.mean_reward, best_reward = best.reward,
    best_step_time_s = m.step_time_s, best_peak_memory_bytes = m.peak_memory_bytes,
    best_peak_communication_bytes = m.peak_communication_bytes, fits = m.feasible and 1 or 0,
    lower_bound_s = facts.lower_bound_s }
end

--- Records a step of the search.
function Record:step(search)
  self:tell_anew()
  if not search.best then return end
  self.steps = search.step
  local evaluations, last = self.offset + search.evaluations, self.waiting and self.waiting.evaluations or self.last
  local better = search.best.reward ~= self.reward
  local enough = evaluations >= growth * last or better and evaluations >= growth_if_better * last
  if search.step <= first_steps or enough then
    self:flush()
    self.waiting, self.skipped, self.reward = self:row_of(search), nil, search.best.reward
  else
    self.skipped = search
  end
  if search.best.reward ~= self.saved_reward then self:save_best(search) end
end

--- Adds a learner's numbers of its latest update to the row of that step.
function Record:learned(fields)
  if self.skipped or not self.waiting then return end
  for name, value in util.sorted_pairs(fields) do self.waiting[name] = value end
end

function Record:save_best(search)
  if not checkpoints.is_due(self.saved_at, self.saving_s) then return end
  local begun, problem = core.clock_s(), self.problem
  local text = problem:to_json(search.plan or search.placement, { method = self.method, seed = self.seed,
    reward = search.best.reward, evaluations = self.offset + search.evaluations,
    step_time_s = search.best.metrics.step_time_s })
  self.run.folder:write(self.path .. '/strategy.json', text)
  self:save_about('running', { evaluations = self.offset + search.evaluations, steps = search.step,
    best_reward = search.best.reward, best_step_time_s = search.best.metrics.step_time_s })
  self.saved_at, self.saved_reward = core.clock_s(), search.best.reward
  self.saving_s = self.saved_at - begun
end

local function curve_text(curve)
  local lines = { table.concat(checkpoints.point, ',') }
  for i, point in ipairs(curve) do
    lines[i + 1] = checkpoints.pack(checkpoints.curve_numbers { point }):gsub(' ', ',')
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Stores a strategy that is better than all previous ones on its problem.
function Record:remember(found)
  local best, id = self.run.best, self.facts.id
  if found.problem == self.problem and self.problem.better(found, best[id]) then best[id] = found end
end

function Record:save_found(found)
  local folder = self.run.folder
  if found.problem ~= self.problem then return end
  local ok, text = pcall(strategy.text, found)
  if ok then folder:write(self.path .. '/strategy.json', text) end
  if found.curve then folder:write(self.path .. '/curve.csv', curve_text(found.curve)) end
end

--- Removes files that a finished search no longer needs.
function Record:remove_checkpoint()
  for _, ending in ipairs { '', '.policy0', '.policy1', '.scores' } do
    pcall(core.remove_tree, self:checkpoint_path() .. ending)
  end
end

--- Writes the last row, if the search has made none since.
function Record:last_row(found)
  if self.skipped then
    self:flush_skipped()
  elseif self.rows == 0 and not self.waiting and found then
    self.waiting = self:row_of { best = found, step = 1, evaluations = found.evaluations or 1,
      start = self.start }
  end
  self:flush()
end

--- Ends the record: with a strategy, with nil and a reason, or with an error message.
function Record:finish(found, reason, failure)
  self.found = found
  self:tell_anew()
  self:last_row(found)
  if not found then
    local stopped = core.was_interrupted()
    local status = stopped and 'stopped' or failure and 'failed' or 'done'
    self:save_about(status, util.merged({ error = not stopped and failure or nil, nothing = reason }, self.reached))
    self.ended = true
    return
  end
  local stopped = found.stopped or core.stop_requested()
  self:save_found(found)
  ids[found] = self.id
  self:remember(found)
  if found.splits then self.facts = setmetatable({ lower_bound_s = false }, { __index = self.facts }) end
  self:save_about(stopped and 'stopped' or 'done', { evaluations = found.evaluations, best_reward = found.reward,
    best_step_time_s = found.metrics.step_time_s, fits = found.metrics.feasible, infeasibility = found:infeasibility(),
    steps = self.steps, points = found.curve and #found.curve, taken_s = found.seconds, updates = found.updates,
    stages = found.search_stages })
  self.ended = true
  -- only now: if killed before, it resumes from the checkpoint
  if self.keeps and not stopped then self:remove_checkpoint() end
end

local function same_options(was, options)
  return json.encode(was or {}) == json.encode(json.decode(json.encode(checkpoints.option_texts(options))))
end

local function read_curve(path)
  local ok, text = pcall(core.read_file, path)
  if not ok then return nil end
  return checkpoints.curve_of(checkpoints.unpack((text:gsub('^[^\n]*', ''):gsub(',', ' '))))
end

--- Returns the strategy of a finished search, or nil and what is wrong with its files.
function Record:load_found(path, about)
  local ok, found = pcall(strategy.load, self.problem, path .. '/strategy.json')
  if not ok then return nil, util.unplaced(tostring(found)) end
  if found.reward ~= about.best_reward then
    return nil, 'its strategy.json is not what it found'
  end
  found.method, found.seed, found.evaluations, found.seconds = self.method, about.seed, about.evaluations, about.taken_s
  found.updates, found.search_stages = about.updates, about.stages
  found.curve, ids[found] = read_curve(path .. '/curve.csv'), self.id
  return found
end

--- Returns the state of the same search from an earlier process of this run: { found = strategy } or { nothing = text }
--- if it was finished, { checkpoint = path } if it can resume, { anew = reason } if it was started and cannot resume;
--- nil if it was not started.
function Record:earlier()
  if not self.run.resumed then return nil end
  local path = self.run.path .. '/' .. self.path
  local about = json.try(path .. '/search.json')
  if not about then return nil end
  if about.method ~= self.method or about.seed ~= self.seed or about.problem ~= self.facts.id
    or not same_options(about.options, self.options) then
    return { anew = 'the saved state belongs to another search' }
  end
  if about.status ~= 'done' then
    local file = path .. '/checkpoint.json'
    if not util.exists(file) then return { anew = 'it had not reached its first checkpoint' } end
    local row = self.run.last_row[self.id]
    if row then self.last, self.reward, self.rows = row.evaluations, row.best_reward, 1 end
    return { checkpoint = file }
  end
  if about.nothing then return { nothing = about.nothing } end
  local found, wrong = self:load_found(path, about)
  if found then return { found = found } end
  return { anew = wrong, spoilt = true }
end

-- Returns what is wrong with the files of a finished search (after a power loss), or nil.
local function spoilt(path, about)
  if about.nothing then return nil end
  if not json.try(path .. '/strategy.json') then return 'strategy.json is missing or not whole' end
  if about.points and #(read_curve(path .. '/curve.csv') or {}) ~= about.points then return 'curve.csv is not whole' end
end

-- Returns the content of search.json in a folder, and the evaluations of the search that are kept; nil if it starts
-- from scratch.
local function kept_of(path)
  local about = json.try(path .. '/search.json')
  if not about then return nil end
  if about.outside then return about, 0 end
  if about.status ~= 'done' then return about, checkpoints.reached(path) end
  local wrong = spoilt(path, about)
  if not wrong then return about, math.huge end
  progress.warn(('%s: %s; the search starts from scratch'):format(path, wrong))
  pcall(core.remove_tree, path .. '/search.json')
end

--- Returns the rows of an earlier process of a resumed run that are kept: rows of finished searches, and of others up
--- to their checkpoint. { row =, wall_time_s = } each.
function run_search.earlier_rows(run)
  local rows, torn = run_metrics.read(run.path .. '/metrics.jsonl')
  local kept, limit, begun, done = {}, {}, {}, 0
  run.last_row = {}
  if torn > 0 then progress.warn(('%s/metrics.jsonl: an incomplete line is skipped'):format(run.path)) end
  for _, file in ipairs(core.list_folder(run.path .. '/spool')) do
    for _, row in ipairs(run_metrics.read(('%s/spool/%s'):format(run.path, file))) do rows[#rows + 1] = row end
  end
  for _, id in ipairs(core.list_folder(run.path .. '/searches')) do
    local about, reached = kept_of(('%s/searches/%s'):format(run.path, id))
    if about then
      begun[id], limit[id] = about.started_s, reached
      done = done + (reached == math.huge and 1 or 0)
    end
  end
  run.earlier_text = ('%d search%s of it %s done'):format(done, done == 1 and '' or 'es', done == 1 and 'is' or 'are')
  for _, row in ipairs(rows) do
    if row.search and (row.evaluations or math.huge) <= (limit[row.search] or 0) then
      run.last_row[row.search] = row
      kept[#kept + 1] = { row = row, wall_time_s = (begun[row.search] or run.started_s) + (row.seconds or 0) }
    end
  end
  for _, folder in ipairs { 'spool', 'results' } do pcall(core.remove_tree, run.path .. '/' .. folder) end
  for _, name in ipairs(core.list_folder(run.path)) do
    if name:match '^events%.out%.tfevents%.' then pcall(core.remove_tree, run.path .. '/' .. name) end
  end
  return kept
end

--- Starts the search with the result of earlier().
function Record:begin(earlier)
  self.resume, self.anew = earlier and earlier.checkpoint, earlier and earlier.anew
  if earlier and earlier.spoilt then self:tell_anew(earlier.anew) end
  if not self.resume then self:save_about 'running' end
end

-- Returns the record of a new search in the current run; nil without a run, or if it has too many searches.
local function begin(method, problem, options)
  local run = state.current(problem)
  if not run or run.folder.broken or run.kept >= most_searches then return nil end
  return new(run, method, problem, options)
end

-- Ends the running record. If Ctrl-C interrupts this, the record stays for run_search.close().
local function finish(record, found, reason, failure)
  local ended, problem = pcall(record.finish, record, found, reason, failure)
  if ended or not core.was_interrupted() then active = nil end
  if not ended then error(problem, 0) end
end

--- Calls a method and records its search. A resumed run returns the earlier result of the method instead.
function run_search.record(method, problem, options, body)
  local record = not active and begin(method, problem, options) or nil
  if not record then return body() end
  local earlier = record:earlier()
  if earlier and (earlier.found or earlier.nothing) then
    record:remove_checkpoint() -- its process was killed before doing this
    if earlier.found then record:remember(earlier.found) end
    return earlier.found, earlier.nothing
  end
  active = record -- while anything is written, because Ctrl-C may interrupt
  record:begin(earlier)
  local ok, found, reason = pcall(body)
  if not ok then
    finish(record, nil, nil, util.shortened(tostring(found), 1000))
    error(found, 0)
  end
  finish(record, found, reason)
  return found, reason
end

--- Returns the id of the search of a strategy, or nil.
function run_search.id_of(found) return ids[found] end

--- Starts a search that may belong to a method. Returns its record and a function that ends it; nil and that function
--- within another search.
function run_search.attach(method, problem, options)
  local record, own = active, false
  if not record then
    record, own = begin(method, problem, options), true
    if not record then return nil, function() end end
    record.outside = true -- not by trinity.methods: a resumed run executes its body again
    local earlier = record:earlier()
    active = record
    record:begin(earlier and { anew = 'so does every search outside trinity.methods' })
  elseif record.search then
    return nil, function() end
  end
  record.search = true
  return record, function(search, found, failure)
    record.search = nil
    if failure and search.best then
      local m = search.best.metrics
      record.reached = { evaluations = record.offset + search.evaluations, steps = search.step,
        best_reward = search.best.reward, best_step_time_s = m.step_time_s, fits = m.feasible }
    end
    record:flush_skipped()
    record.offset = record.offset + search.evaluations
    if own then finish(record, found, nil, failure) end
  end
end

--- Writes the best so far of a failed search, as JSON text, to the run folder; for a search within another one to a
--- separate file. Returns the path, or nil without a run folder.
function run_search.rescue(search, text)
  local record = records[search] or active
  if not record then return nil end
  local name = records[search] and 'strategy' or ('rescued-%s-seed%s'):format(run_folder.word(search.method),
    tostring(search.options.seed))
  local path = ('%s/%s.json'):format(record.path, name)
  return record.run.folder:write(path, text) and record.run.path .. '/' .. path or nil
end

function Record:flush_skipped()
  if not self.skipped then return end
  self:flush()
  self.waiting, self.skipped = self:row_of(self.skipped), nil
end

function Record:checkpoint_path() return ('%s/%s/checkpoint.json'):format(self.run.path, self.path) end

function Record:write_checkpoint(text) self.run.folder:keep(self.path .. '/checkpoint.json', text) end

--- Writes the timelines of the best strategies of a context, one per problem.
function run_search.save_timelines(run)
  for _, found in util.sorted_pairs(run.best) do
    local ok, trace = pcall(function() return found.problem:timeline(found):chrome_trace() end)
    if ok and ids[found] then run.folder:write(('searches/%s/timeline.json'):format(ids[found]), trace) end
  end
end

-- Ends the record of a search that Ctrl-C interrupted before its end.
local function end_stopped(record)
  if record.ended then return end
  if record.found and pcall(record.finish, record, record.found) then return end
  record:save_about 'stopped'
end

-- Marks searches of workers (trinity.parallel_map) that Ctrl-C interrupted before their end.
local function end_stopped_workers(run)
  for _, id in ipairs(core.list_folder(run.path .. '/searches')) do
    local about = id:match '^m%d' and json.try(('%s/searches/%s/search.json'):format(run.path, id))
    if about and about.status == 'running' then
      about.status = 'stopped'
      run.folder:write(('searches/%s/search.json'):format(id), json.encode(about))
    end
  end
end

--- Ends a run: adds a result with the best search if the script saved no result.
function run_search.close(run)
  if active then end_stopped(active) end
  active = nil
  if core.was_interrupted() then end_stopped_workers(run) end
  run_search.save_timelines(run)
  if run.results > 0 then return end
  for _, found in util.sorted_pairs(run.best) do
    local bound = found:bounds().step_time_s
    local data = strategy.facts(found)
    data.method, data.model, data.cluster = found.method, found.problem.graph.name, found.problem.cluster.name
    data.search = ids[found]
    local summary = ('%s found a step of %.4g s for %s on %s, %.2f times the lower bound.'):format(
      found.method or 'the search', data.step_time_s, data.model, data.cluster, data.step_time_s / bound)
    state.keep_result('search', data, nil, summary)
  end
end

return run_search
