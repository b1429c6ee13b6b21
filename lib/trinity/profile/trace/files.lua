-- trinity.profile.trace.files: reads files of PyTorch's profiler. Kineto's trace (torch.profiler, export_chrome_trace):
-- events with begin and duration in microseconds. The execution trace (torch.profiler.ExecutionTraceObserver): nodes
-- without times, whose attribute rf_id is Kineto's 'Record function id'.

local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local files = {}

local function fail(path, ...) util.fail('%s: %s', util.shortened(path), (...):format(select(2, ...))) end

local function read_list(path, field)
  local whole = json.decode(json.text(path), util.shortened(path))
  if type(whole) ~= 'table' then fail(path, 'expected an object, got %s', util.describe(whole)) end
  local list = whole[field]
  if type(list) ~= 'table' then fail(path, "field '%s': expected a list, got %s", field, util.describe(list)) end
  if #list == 0 then fail(path, "field '%s': expected at least one entry", field) end
  return list
end

local function text_in(path, where, of, field)
  local value = of[field]
  if type(value) ~= 'string' then
    fail(path, "%s: field '%s': expected a text, got %s", where, field, util.describe(value))
  end
  return value
end

local function number_in(path, where, of, field, least, needed)
  local value = of[field]
  if value == nil and not needed then return nil end
  if type(value) ~= 'number' or not (value >= least and value < 1e18) then
    fail(path, "%s: field '%s': expected a number from %g, got %s", where, field, least, util.describe(value))
  end
  return value
end

local kinds = { cpu_op = 'operator', python_function = 'module', user_annotation = 'note' }

--- Converts a complete event; nil for events that are not needed.
local function event_of(path, n, event)
  local where = ('traceEvents[%d]'):format(n - 1)
  if type(event) ~= 'table' then fail(path, '%s: expected an object, got %s', where, util.describe(event)) end
  if event.ph == 'X' and event.cat == 'kernel' then
    fail(path, "%s: field 'cat': expected a trace of the CPU, got the kernel of a GPU", where)
  end
  local kind = event.ph == 'X' and kinds[event.cat]
  if not kind then return nil end
  local name = text_in(path, where, event, 'name')
  local class, count = name:match '^nn%.Module: (.*)_(%d+)$'
  if kind == 'module' and not class then return nil end
  local begin = number_in(path, where, event, 'ts', 0, true)
  local duration = number_in(path, where, event, 'dur', 0, true)
  local arguments = event.args or {}
  if type(arguments) ~= 'table' then
    fail(path, "%s: field 'args': expected an object, got %s", where, util.describe(arguments))
  end
  where = where .. ": field 'args'"
  return { kind = kind, name = name, class = class, instance = class and class .. '_' .. count, begin = begin,
    finish = begin + duration, duration = duration, thread = tostring(event.tid), place = n - 1,
    sequence = number_in(path, where, arguments, 'Sequence number', 0),
    forward_thread = number_in(path, where, arguments, 'Fwd thread id', 0),
    record = number_in(path, where, arguments, 'Record function id', 0) }
end

local function earlier(a, b)
  if a.begin ~= b.begin then return a.begin < b.begin end
  if a.finish ~= b.finish then return a.finish > b.finish end
  return a.place < b.place
end

-- An event:
--   kind           'operator'|'module'|'note'
--   name           string
--   class          string (or nil), class of a module
--   instance       string (or nil), class and number of a module
--   begin          number, microseconds
--   finish         number, microseconds
--   duration       number, microseconds
--   thread         string
--   place          integer, in traceEvents, from 0
--   sequence       number (or nil), sequence number of autograd's node
--   forward_thread number (or nil), above 0 for a node of the backward pass
--   record         number (or nil), 'Record function id'

--- Returns the last step of a Kineto trace (ProfilerStep#N) and its events, in order of begin.
---@param path string
---@return table step
---@return table[] events
function files.kineto(path)
  local all, step = {}, nil
  for n, event in ipairs(read_list(path, 'traceEvents')) do
    local read = event_of(path, n, event)
    all[#all + 1] = read
    if read and read.kind == 'note' and read.name:find '^ProfilerStep#' and (not step or read.begin > step.begin) then
      step = read
    end
  end
  if not step then
    fail(path, "field 'traceEvents': expected a user_annotation 'ProfilerStep#N', which a profile with a schedule has")
  end
  local events, modules, operators = {}, 0, 0
  for _, event in ipairs(all) do
    if event ~= step and event.begin >= step.begin and event.finish <= step.finish then
      events[#events + 1] = event
      if event.kind == 'module' then modules = modules + 1 end
      if event.kind == 'operator' then operators = operators + 1 end
    end
  end
  if operators == 0 then fail(path, "field 'traceEvents': expected operators (cat 'cpu_op') in %s", step.name) end
  if modules == 0 then
    fail(path, "field 'traceEvents': expected events 'nn.Module: ...' in %s, which a profile with_stack=True has",
      step.name)
  end
  table.sort(events, earlier)
  return step, events
end

--- Returns the attribute rf_id of a node, or nil.
local function record_of(path, where, node)
  local attributes = node.attrs
  if type(attributes) ~= 'table' then
    fail(path, "%s: field 'attrs': expected a list, got %s", where, util.describe(attributes))
  end
  for _, attribute in ipairs(attributes) do
    if type(attribute) == 'table' and attribute.name == 'rf_id' then
      return number_in(path, where .. ": attribute 'rf_id'", attribute, 'value', 0, true)
    end
  end
end

--- Joins an execution trace with Kineto's operators by their records, and returns the fraction that it has. Raises an
--- error if a record has another name, because the files are then of different runs.
---@param path string
---@param events table[]
---@return number share
function files.join(path, events)
  local names = {}
  for n, node in ipairs(read_list(path, 'nodes')) do
    local where = ('nodes[%d]'):format(n - 1)
    if type(node) ~= 'table' then fail(path, '%s: expected an object, got %s', where, util.describe(node)) end
    local record = record_of(path, where, node)
    if record then names[record] = { where = where, name = text_in(path, where, node, 'name') } end
  end
  local joined, count = 0, 0
  for _, event in ipairs(events) do
    local node = event.kind == 'operator' and event.record and names[event.record]
    if event.kind == 'operator' then count = count + 1 end
    if node and node.name ~= event.name then
      fail(path, "%s: field 'name': expected '%s', which Kineto's record %d is, got '%s': they are of different runs",
        node.where, util.shortened(event.name, 80), event.record, util.shortened(node.name, 80))
    end
    if node then joined = joined + 1 end
  end
  if joined == 0 then fail(path, "field 'nodes': expected attributes 'rf_id' with records of Kineto's step, got "
    .. "none") end
  return joined / count
end

return files
