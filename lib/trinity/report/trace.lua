-- Converts a Chrome trace of this program (engine/formats/export/chrome_trace.h) to columns for the page's timeline. It
-- is read line by line, with one event per line.
--
-- trace.read(text, index_of) gives { step_ns, tracks, names, memory, sent_bytes, received_bytes, schedule, events }:
--   tracks   a list by device and row: { device = (from 0), name = 'compute' | 'send' | 'to gpu1' | ..., kind =
--            'compute' | 'link' | 'collective', count =, start = , length =, operator =, phase =, part =, bytes = },
--            the last six packed columns (pack.lua) over its events by start: ns, ns, number of the operator (index_of
--            [name], or beyond these in `extra`), phase (0 forward, 1 backward, 2 update), micro-batch, bytes sent
--   memory   by device { time = packed ns, bytes = packed, peak = }
--   schedule nil or, with several micro-batches, a list of { device, micro_batch, phase, start_ns, end_ns, busy_ns }:
--            passes of micro-batches from the first to the last operator

local json = require 'trinity.base.json'
local pack = require 'trinity.report.pack'
local util = require 'trinity.base.util'

local trace = {}

local most_devices = 4096

local phases = { forward = 0, backward = 1, update = 2 }

local function ns(us) return math.floor(us * 1000 + 0.5) end

local function device_of(self, d)
  self.devices[d] = self.devices[d] or { threads = {}, memory = { time = {}, bytes = {}, peak = 0 }, sent = 0,
    received = 0 }
  return self.devices[d]
end

local function track_of(self, d, thread)
  local threads = device_of(self, d).threads
  threads[thread] = threads[thread] or { events = {}, name = thread == 0 and 'compute' or 'row ' .. thread }
  return threads[thread]
end

local function operator_of(self, name)
  local number = self.index_of[name]
  if not number then
    self.extra[#self.extra + 1] = name
    number = self.known + #self.extra
    self.index_of[name] = number
  end
  return number
end

local function add_slice(self, event)
  local args, kind = event.args or {}, event.cat
  local track = track_of(self, event.pid, event.tid)
  local start, length = ns(event.ts), ns(event.dur)
  if kind == 'transfer' then
    track.kind = 'link'
    device_of(self, event.pid).sent = device_of(self, event.pid).sent + args.bytes
    self.to[#self.to + 1] = { args.to, args.bytes }
  elseif kind == 'collective' then
    track.kind = 'collective'
  end
  local part = args.micro_batch or 1
  self.parts, self.end_ns = math.max(self.parts, part), math.max(self.end_ns, start + length)
  self.events = self.events + 1
  track.events[#track.events + 1] = { start, length, operator_of(self, args.operator or event.name),
    phases[kind] or 0, part, args.bytes or 0 }
end

local function add_level(self, event)
  local memory = device_of(self, event.pid).memory
  memory.time[#memory.time + 1], memory.bytes[#memory.bytes + 1] = ns(event.ts), event.args.bytes
  memory.peak = math.max(memory.peak, event.args.bytes)
end

local function add_name(self, event)
  if event.name == 'process_name' then device_of(self, event.pid).name = event.args.name
  elseif event.name == 'thread_name' then track_of(self, event.pid, event.tid).name = event.args.name end
end

local takes = { X = add_slice, C = add_level, M = add_name }

--- Returns the packed columns of a track.
trace.columns = { 'start', 'length', 'operator', 'phase', 'part', 'bytes' }

local function pack_track(d, track)
  table.sort(track.events, util.by(1, 2, 3))
  local packed = { device = d, name = track.name, kind = track.kind or 'compute', count = #track.events }
  for c, name in ipairs(trace.columns) do
    local values = util.map(track.events, function(event) return event[c] end)
    packed[name] = pack.integers(values)
  end
  return packed
end

--- Returns the passes of every micro-batch on every device, from its compute events.
local function schedule_of(self, count)
  local spans, list = {}, {}
  for d = 0, count - 1 do
    for _, event in ipairs(track_of(self, d, 0).events) do
      local key = ('%d %d %d'):format(d, event[5], event[4])
      local span = spans[key]
      if not span then
        span = { device = d, micro_batch = event[5], phase = event[4], start_ns = event[1], end_ns = 0, busy_ns = 0 }
        spans[key], list[#list + 1] = span, span
      end
      span.start_ns, span.end_ns = math.min(span.start_ns, event[1]), math.max(span.end_ns, event[1] + event[2])
      span.busy_ns = span.busy_ns + event[2]
    end
  end
  return list
end

local function result_of(self, count)
  local result = { step_ns = self.end_ns, events = self.events, micro_batches = self.parts, tracks = {},
    memory = {}, sent_bytes = {}, received_bytes = {}, extra = self.extra, devices = {},
    schedule = self.parts > 1 and schedule_of(self, count) or nil }
  local by_name = {}
  for d = 0, count - 1 do
    local device = device_of(self, d)
    local name = device.name or ('device ' .. d)
    by_name[name:gsub(' %(.*$', '')] = device
    result.devices[d + 1] = name
  end
  for _, sent in ipairs(self.to) do
    if by_name[sent[1]] then by_name[sent[1]].received = by_name[sent[1]].received + sent[2] end
  end
  for d = 0, count - 1 do
    local device, threads = device_of(self, d), 0
    for thread in pairs(device.threads) do threads = math.max(threads, thread) end -- sorted: the largest only
    for thread = 0, threads do
      local track = device.threads[thread]
      if track then result.tracks[#result.tracks + 1] = pack_track(d, track) end
    end
    result.memory[d + 1] = { time = pack.integers(device.memory.time), bytes = pack.integers(device.memory.bytes),
      peak = device.memory.peak }
    result.sent_bytes[d + 1], result.received_bytes[d + 1] = device.sent, device.received
  end
  return result
end

--- index_of: numbers of operators by name, from 1 to `known`; other operators get larger numbers.
function trace.read(text, index_of, known)
  local self = { devices = {}, index_of = setmetatable({}, { __index = index_of }), known = known,
    extra = {}, to = {}, parts = 1, end_ns = 0, events = 0 }
  for line in text:gmatch '[^\n]+' do
    if line:find('^{"ph":"[XCM]"') then
      local event = json.decode((line:gsub(',$', '')), 'the trace')
      takes[event.ph](self, event)
    end
  end
  local count = 0
  for d in pairs(self.devices) do count = math.max(count, d + 1) end -- sorted: the largest only
  if count > most_devices then error(('the trace: expected at most %d devices'):format(most_devices), 0) end
  return result_of(self, count)
end

return trace
