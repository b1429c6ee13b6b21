-- The rows of a run: the same scalars in metrics.jsonl, written immediately, and in a TensorBoard event file, written
-- within a second or with the next row. Numbers are read back exactly (TensorBoard stores 32 bits).
--
-- The steps of a search that make a row depend on counts alone (search.lua), and all numbers except `seconds` on the
-- seed alone.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local tensorboard = require 'trinity.runs.tensorboard'
local util = require 'trinity.base.util'

local metrics = {}

local Metrics = {}
Metrics.__index = Metrics

-- Fields that identify a search or its step.
local no_scalar = util.set 'search problem method seed model cluster step evaluations'

--- Returns the rows of a file with JSON lines, and the number of invalid lines (truncated by a crash), which are
--- skipped.
function metrics.read(path)
  local ok, text = pcall(core.read_file, path)
  local rows, torn = {}, 0
  if not ok then return rows, torn end
  for line in text:gmatch '[^\n]+' do
    local whole, row = pcall(json.decode, line)
    if whole and type(row) == 'table' then rows[#rows + 1] = row else torn = torn + 1 end
  end
  return rows, torn
end

local function safe_tag(text) return (tostring(text):gsub('[/%c]', '_')) end

-- The beginning of a row's tags.
local function prefix_of(row)
  return row.method and ('%s/%s/%s/seed%s/'):format(safe_tag(row.model), safe_tag(row.cluster), safe_tag(row.method),
    row.seed and ('%d'):format(row.seed) or '-') or ''
end

--- Returns the event of a row at time `wall_time_s`, or nil if it has no scalar.
function Metrics:event(row, wall_time_s)
  local tags, values, prefix = {}, {}, prefix_of(row)
  for name, value in util.sorted_pairs(row) do
    if type(value) == 'number' and not no_scalar[name] and value - value == 0 then
      tags[#tags + 1], values[#values + 1] = prefix .. safe_tag(name), value
    end
  end
  local step = row.evaluations or row.step or self.rows
  if #tags == 0 then return nil end
  return tensorboard.scalars(wall_time_s, math.max(0, math.min(2 ^ 53, math.floor(step))), tags, values)
end

--- Writes a row with time `wall_time_s`.
function Metrics:write(row, wall_time_s)
  local folder, line = self.folder, json.encode(row) .. '\n'
  if self.lines_only then return folder:append(self.path, line) end
  self.rows = self.rows + 1
  if not self.begun then self:begin(wall_time_s) end
  folder:append('metrics.jsonl', line)
  self.held[#self.held + 1] = self:event(row, wall_time_s)
  if wall_time_s - self.flushed_s >= 1 then self:flush(wall_time_s) end
end

--- Writes waiting events.
function Metrics:flush(wall_time_s)
  if #self.held > 0 then self.folder:append(self.events, table.concat(self.held)) end
  self.held, self.flushed_s = {}, wall_time_s or self.flushed_s
end

--- Writes the heads of the files, before the first row.
function Metrics:begin(wall_time_s)
  self.begun = true
  self.folder:write('metrics.jsonl', '')
  self.folder:write(self.events, tensorboard.head(wall_time_s))
end

--- Starts the files of a folder, with existing `rows` ({ row, wall_time_s } each).
function metrics.new(folder, started_s, rows)
  local self = setmetatable({ folder = folder, rows = 0, held = {}, flushed_s = 0,
    events = ('events.out.tfevents.%d.trinity'):format(started_s) }, Metrics)
  if not rows or #rows == 0 then return self end
  local lines, events = {}, { tensorboard.head(started_s) }
  for i, entry in ipairs(rows) do
    self.rows = i
    lines[i] = json.encode(entry.row) .. '\n'
    events[#events + 1] = self:event(entry.row, entry.wall_time_s)
  end
  folder:write('metrics.jsonl', table.concat(lines))
  folder:write(self.events, table.concat(events))
  self.begun = true
  return self
end

--- Rows of a worker: JSON lines in its own file, which the main process takes over.
function metrics.spool(folder, path)
  local self = metrics.new(folder, 0)
  self.lines_only, self.path = true, path
  return self
end

return metrics
