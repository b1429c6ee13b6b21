-- Checkpoints of searches: strategy files for problem:load(), whose notes have the state of the search. A checkpoint
-- replaces the previous one atomically, so that a crash at any moment leaves a valid one. Binary data is in files next
-- to it: weights in two alternating files, scores in one that only grows (ask_tell_checkpoint.lua in search). A
-- checkpoint has the CRC-32C of its notes and of its data in these files; a changed or truncated one is refused.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local progress = require 'trinity.base.progress'
local records = require 'trinity.runs.records'
local simulator = require 'trinity.strategy.simulator'
local strategy = require 'trinity.strategy.strategy'
local tensorboard = require 'trinity.runs.tensorboard'
local util = require 'trinity.base.util'

local checkpoints = {}

-- State files are rewritten after least_s at the earliest, and take at most this fraction of the time.
checkpoints.least_s, checkpoints.share = 5, 0.01

--- Returns whether a file that was written at `at_s` in `taken_s` should be rewritten.
function checkpoints.is_due(at_s, taken_s)
  return core.clock_s() - at_s >= math.max(checkpoints.least_s, taken_s / checkpoints.share)
end

local kind = 'trinity search checkpoint 4'

--- Returns numbers as text without loss of precision.
function checkpoints.pack(list, count)
  local parts = util.listed(count or #list, function(i) return ('%.17g'):format(list[i]) end)
  return table.concat(parts, ' ')
end

--- Reverses pack(): returns a list.
function checkpoints.unpack(text)
  local list = {}
  for word in (text or ''):gmatch '%S+' do list[#list + 1] = tonumber(word) end
  return list
end

--- Fields of a point of a search's curve.
checkpoints.point = { 'evaluations', 'mean_reward', 'best_reward', 'best_step_time_s' }

local point = checkpoints.point

--- Returns the numbers of a curve, point by point.
function checkpoints.curve_numbers(curve)
  local values = {}
  for _, entry in ipairs(curve) do
    for _, name in ipairs(point) do values[#values + 1] = entry[name] end
  end
  return values
end

function checkpoints.curve_of(values)
  local curve = {}
  for first = 1, #values - #point + 1, #point do -- an incomplete point is omitted
    local entry = {}
    for i, name in ipairs(point) do entry[name] = values[first + i - 1] end
    curve[#curve + 1] = entry
  end
  return curve
end

-- Options that may differ between a run and a resumed one.
local free = { quiet = true, seconds = true }

local function option_text(value)
  if type(value) == 'function' then return 'the function at ' .. util.function_place(value) end
  if type(value) ~= 'table' then return tostring(value) end
  local parts = {}
  for key, entry in util.sorted_pairs(value) do
    local text = type(entry) == 'cdata' and checkpoints.pack(entry) or tostring(entry)
    parts[#parts + 1] = ('%s=%s'):format(key, text)
  end
  return table.concat(parts, ' ')
end

--- Returns the options that identify a search, as texts by name.
function checkpoints.option_texts(options)
  local texts = {}
  for key, value in util.sorted_pairs(options) do
    if not free[key] then texts[key] = option_text(value) end
  end
  return texts
end

--- Sets the checkpoint files of the search `self` in its run folder. Of the ranks that share a search, rank 0 writes
--- them and all read them: share(text) returns rank 0's text (nil for nil); nil without sharing.
function checkpoints.begin(self, share)
  local record = records[self]
  self.checkpoint, self.resume = record and record:checkpoint_path() or nil, record and record.resume
  if share then self.resume = share(self.resume) end
  self.kept_at, self.keeping_s = core.clock_s(), 0
  if record then record.keeps = true end
end

--- Returns whether a checkpoint is due.
function checkpoints.due(self) return self.checkpoint and checkpoints.is_due(self.kept_at, self.keeping_s) end

--- Calls body(), which writes a file next to the checkpoint. Returns whether it succeeded; after an error, writing to
--- the run folder ends.
function checkpoints.guard(self, body) return records[self].run.folder:try(body, records[self].path) end

local no_sum = '"sum": "--------"'

-- Returns the CRC-32C of a checkpoint's text without the checksum itself.
local function sum_of(text)
  local first, last = text:find('"sum": *"[%x-]+"')
  if not first then return nil end
  return ('%08x'):format(tensorboard.crc32c(text:sub(1, first - 1) .. no_sum .. text:sub(last + 1)))
end

-- Reads a checkpoint and checks it.
local function read_checked(path)
  local ok, text = pcall(core.read_file, path)
  if not ok then return nil, util.unplaced(tostring(text)) end
  if not text:find(kind, 1, true) then
    local version = text:match '"trinity search checkpoint (%d+)"'
    return nil, version and ('expected a checkpoint of version 4, got version %s'):format(version)
      or 'no checkpoint of a search'
  end
  local sum = sum_of(text)
  if not sum or text:match '"sum": *"(%x+)"' ~= sum then return nil, 'changed or cut short since it was written' end
  return text
end

--- Writes a checkpoint of the search `self` with its best so far; `notes`: what the method adds, as JSON represents it.
function checkpoints.write(self, notes)
  local begun, record = core.clock_s(), records[self]
  record:flush() -- rows up to this point are stored
  local state = json.encode { method = self.method, evaluations = self.evaluations, step = self.step,
    updates = self.updates, curve = checkpoints.curve_numbers(self.curve), mean_reward = self.mean_reward,
    options = checkpoints.option_texts(self.options), is_placement = not self.plan, notes = notes }
  local text = self.problem:to_json(self.plan or self.placement, { kind = kind, state = state, sum = '--------' })
  text = text:gsub('"sum": *"%-+"', ('"sum": "%s"'):format(sum_of(text)), 1)
  record:write_checkpoint(text)
  self.kept_at = core.clock_s()
  self.keeping_s = self.kept_at - begun
end

-- Returns the state in the notes of a checkpoint, or nil.
local function state_of(notes)
  local ok, state = pcall(json.decode, notes.state or '')
  for _, name in ipairs { 'curve', 'notes', 'options' } do
    if not ok or type(state) ~= 'table' or type(state[name]) ~= 'table' then return nil end
  end
  return state
end

--- Returns the checksum of a file.
function checkpoints.content_sum(content) return ('%08x'):format(tensorboard.crc32c(content)) end

--- Writes a checkpoint of the search `self` and a file next to it with body(path). The file is never the one of the
--- last checkpoint, which stays valid until the new checkpoint exists.
function checkpoints.write_with_file(self, notes, body)
  local slot = 1 - (self.slot or 1)
  local file = ('%s.policy%d'):format(self.checkpoint, slot)
  if not checkpoints.guard(self, function() body(file) end) then return end
  local ok, content = pcall(core.read_file, file)
  if not ok then return end -- the folder cannot be written
  notes.policy, notes.policy_sum = file:match '[^/]*$', checkpoints.content_sum(content)
  checkpoints.write(self, notes)
  self.slot = slot
end

local function refuse(owner, path, message, ...) util.fail('%s: %s: %s', owner, path, message:format(...)) end

local function check_options(owner, path, options, before)
  for key, text in util.sorted_pairs(checkpoints.option_texts(options)) do
    local was = before[key] or '?'
    if was ~= text then
      refuse(owner, path, "expected option '%s' = %s, as it was written, got %s", key, util.shortened(was, 60),
        util.shortened(text, 60))
    end
  end
end

-- Returns the file in the note `name` of the checkpoint `path`, and its content (the first `bytes` of a growing file);
-- nil and a reason if it was changed.
local function checked_file(path, name, sum, bytes)
  name = tostring(name):match '[^/]*$'
  local file = (path:match '^.*/' or '') .. name
  local ok, content = pcall(core.read_file, file)
  if not ok then
    return nil, 'a file that belongs to it: ' .. util.plain(content)
  end
  local length = #content
  if bytes then content = content:sub(1, tonumber(bytes) or 0) end
  if checkpoints.content_sum(content) ~= sum then
    return nil, ('%s, which belongs to it, was changed since it was written'):format(file)
  end
  return file, content, length
end

-- Returns what is wrong with the files of a checkpoint with these notes, or nil.
local function wrong_beside(path, notes)
  for _, name in ipairs { 'policy', 'scores' } do
    if notes[name] then
      local file, wrong = checked_file(path, notes[name], notes[name .. '_sum'], notes[name .. '_bytes'])
      if not file then return wrong end
    end
  end
end

local function is_count(value) return type(value) == 'number' and value >= 0 and value % 1 == 0 end

--- Restores the search `self` from the checkpoint at `path`. Returns the notes of the method.
function checkpoints.restore(owner, self, path)
  local problem, placement = self.problem, self.problem:placement()
  local text, wrong = read_checked(path)
  if not text then refuse(owner, path, '%s', wrong) end
  local ok, loaded = pcall(problem.handle.from_json, problem.handle, text, path, placement)
  if not ok then util.fail('%s: %s', owner, util.unplaced(tostring(loaded))) end
  local state = state_of(loaded.notes) or {}
  if state.method ~= self.method then refuse(owner, path, 'got a checkpoint of method %s',
    util.quoted(state.method or '?')) end
  if not loaded.same_graph or not loaded.same_cluster then
    refuse(owner, path, 'got a checkpoint for another %s', loaded.same_graph and 'cluster' or 'graph')
  end
  check_options(owner, path, self.options, state.options)
  if not is_count(state.evaluations) or not is_count(state.step) then
    refuse(owner, path, 'expected the counts of a search, got none')
  end
  local wrong_file = wrong_beside(path, state.notes)
  if wrong_file then refuse(owner, path, '%s', wrong_file) end
  local plan = state.is_placement and placement or strategy.plan_of(problem, loaded, placement)
  local metrics = simulator.run_batch(owner, problem, { plan }, nil, true)[1]
  self.best = { metrics = metrics, reward = problem:score(metrics, plan, true) }
  self.plan = plan ~= placement and strategy.of_result(problem, plan, self.best) or nil
  placement = self.plan and self.plan.placement or placement
  for op = 1, #placement do self.placement[op] = placement[op] end
  self.evaluations, self.step, self.updates = state.evaluations, state.step, state.updates
  self.curve, self.mean_reward = checkpoints.curve_of(state.curve), state.mean_reward
  -- Ranks of a job that resume together compare this text.
  self.resumed_at = ('one of %d evaluations with checksum %s'):format(self.evaluations, tostring(loaded.notes.sum))
  return state.notes
end

--- Returns the file that the notes of the checkpoint `path` name, after a check of its content.
function checkpoints.file_of(owner, self, path, notes)
  local file, wrong = checked_file(path, notes.policy, notes.policy_sum)
  if not file then refuse(owner, path, '%s', wrong) end
  self.slot = tonumber(file:match '%d$')
  return file
end

--- Returns the data of the checkpoint `path` in a growing file: content, file, and its current length, because a later
--- write may have been interrupted before the next checkpoint.
function checkpoints.grown(owner, path, name, sum, bytes)
  local file, content, length = checked_file(path, name, sum, bytes)
  if not file then refuse(owner, path, '%s', content) end
  return content, file, length
end

--- Appends `text` to a file next to the checkpoint of the search `self`, or replaces the file.
function checkpoints.write_beside(self, file, text, grows)
  return checkpoints.guard(self, function()
    if grows then core.append_file(file, text, 'synced') else core.write_file(file, text) end
  end)
end

--- Returns the evaluations of the checkpoint in the folder of a search, 0 without one. Warns about a damaged one and
--- removes it.
function checkpoints.reached(folder)
  local path = folder .. '/checkpoint.json'
  if not util.exists(path) then return 0 end
  local text, wrong = read_checked(path)
  local ok, saved = pcall(json.decode, text or '', path)
  local state = text and ok and type(saved) == 'table' and type(saved.notes) == 'table' and state_of(saved.notes)
  wrong = wrong or wrong_beside(path, state and state.notes or {})
  if not wrong then return state and state.evaluations or 0 end
  progress.warn(('%s: %s; it is removed, and the search starts from scratch'):format(path, wrong))
  core.remove_tree(path)
  return 0
end

--- Restores the search `self` from its checkpoint in the run folder; load(path) reads its weight file, if there is one.
--- Returns the notes, or nil without a checkpoint.
function checkpoints.restore_kept(owner, self, load)
  if not self.resume then return nil end
  local notes = checkpoints.restore(owner, self, self.resume)
  if load and notes.policy then load(checkpoints.file_of(owner, self, self.resume, notes)) end
  if records[self] then records[self]:tell_resumed(self) end
  return notes
end

return checkpoints
