-- The rows of a run: the same scalars in metrics.jsonl, written immediately, and in a TensorBoard event file, written
-- within a second or with the next row. Numbers have 17 digits, so that they are read back exactly (TensorBoard stores
-- 32 bits).
--
-- The steps of a search that make a row depend on counts alone (search.lua), and all numbers except `seconds` on the
-- seed alone.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local tensorboard = require 'trinity.runs.tensorboard'

local metrics = {}

local Metrics = {}
Metrics.__index = Metrics

-- Fields of every search, in order; the first six identify the search.
local first_names = { 'search', 'problem', 'method', 'seed', 'model', 'cluster', 'step', 'evaluations', 'seconds',
  'mean_reward', 'best_reward', 'best_step_time_s', 'best_peak_memory_bytes', 'best_peak_communication_bytes', 'fits',
  'lower_bound_s', 'loss', 'entropy', 'entropy_groups', 'entropy_devices' }
local no_scalar = { search = true, problem = true, method = true, seed = true, model = true, cluster = true,
  step = true, evaluations = true }

local function number_text(value)
  if value - value ~= 0 then return 'null' end -- infinity and NaN
  return ('%.17g'):format(value)
end

-- Cache of names and texts as JSON.
local encoded = setmetatable({}, { __mode = 'k', __index = function(t, text)
  t[text] = json.encode(text)
  return t[text]
end })

--- Returns a row as a line of JSON, with the fields of `names` in order.
local function line_of(names, row)
  local parts = {}
  for i = 1, #names do
    local name, value = names[i], row[names[i]]
    if type(value) == 'number' then
      parts[#parts + 1] = encoded[name] .. ':' .. number_text(value)
    elseif value ~= nil then
      parts[#parts + 1] = encoded[name] .. ':' .. encoded[tostring(value)]
    end
  end
  return '{' .. table.concat(parts, ',') .. '}\n'
end

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

--- Tags of the scalars of rows of one search, by field.
function Metrics:tags_of(row)
  local key = ('%s/%s'):format(row.search or '', row.seed or '')
  local tags = self.tags[key]
  if not tags then
    local prefix = row.method and ('%s/%s/%s/seed%s/'):format(safe_tag(row.model), safe_tag(row.cluster),
      safe_tag(row.method), row.seed and ('%d'):format(row.seed) or '-') or ''
    tags = setmetatable({}, { __index = function(t, name)
      t[name] = tensorboard.tag(prefix .. safe_tag(name))
      return t[name]
    end })
    self.tags[key] = tags
  end
  return tags
end

--- Returns the event of a row at time `wall_time_s`, or nil if it has no scalar.
function Metrics:event(row, wall_time_s)
  local list, values, tags, names = {}, {}, self:tags_of(row), self.names
  for i = 1, #names do
    local value = row[names[i]]
    if type(value) == 'number' and not no_scalar[names[i]] and value - value == 0 then
      list[#list + 1], values[#values + 1] = tags[names[i]], value
    end
  end
  local step = row.evaluations or row.step or self.rows
  if #list == 0 then return nil end
  return tensorboard.scalars(wall_time_s, math.max(0, math.min(2 ^ 53, math.floor(step))), list, values)
end

--- Adds new fields of `row` to the names.
function Metrics:learn_names(row)
  local grown = {}
  for name in pairs(row) do -- new ones are sorted below
    if not self.known[name] then grown[#grown + 1] = name end
  end
  table.sort(grown)
  for _, name in ipairs(grown) do
    self.known[name] = true
    self.names[#self.names + 1] = name
  end
end

--- Writes a row with time `wall_time_s`.
function Metrics:write(row, wall_time_s)
  self:learn_names(row)
  local folder, line = self.folder, line_of(self.names, row)
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
  local self = setmetatable({ folder = folder, names = {}, known = {}, tags = {}, rows = 0, held = {}, flushed_s = 0,
    events = ('events.out.tfevents.%d.trinity'):format(started_s) }, Metrics)
  for i, name in ipairs(first_names) do self.names[i], self.known[name] = name, true end
  if not rows or #rows == 0 then return self end
  local lines, events = {}, { tensorboard.head(started_s) }
  for _, entry in ipairs(rows) do self:learn_names(entry.row) end
  for i, entry in ipairs(rows) do
    self.rows = i
    lines[i] = line_of(self.names, entry.row)
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
