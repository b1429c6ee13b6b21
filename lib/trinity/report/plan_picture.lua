-- Renders a plan as SVG: one row per pipeline stage, with its layers, its devices by the axes of the mesh, the timeline
-- and the memory of its first device. The data comes from shown.lua; it may be untrusted, so it is checked and escaped.

local core = require 'trinity.core'
local owners = require 'trinity.strategy.owners'
local util = require 'trinity.base.util'

local picture = {}

local width, row, top, most_rows, most_devices = 960, 30, 84, 64, 64
local letter = 0.56 -- mean width of a letter / font size
-- Positions and widths of the columns of a row.
local at = { layers = 10, mesh = 150, time = 330, memory = 770 }
local wide = { mesh = 165, time = 425, memory = 180 }

-- Okabe and Ito, 2008, as in report/colours.js.
local phases = { forward = '#0072B2', backward = '#E69F00', update = '#009E73' }
local bubble, busy, free, first_part, other_part = '#E4E4E4', '#8CB8D8', '#F4F4F4', '#5B5B5B', '#A9A9A9'

local function escaped(text)
  return (tostring(text):gsub('[&<>"\']', function(c) return ('&#%d;'):format(c:byte()) end))
end

local function number(value, otherwise)
  return type(value) == 'number' and value == value and math.abs(value) < math.huge and value or otherwise or 0
end

local function list_of(value) return type(value) == 'table' and value or {} end

local Drawing = {}
Drawing.__index = Drawing

function Drawing:add(text, ...) self[#self + 1] = text:format(...) end

function Drawing:box(x, y, w, h, colour, title)
  self:add('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s">%s</rect>', x, y, w, h, colour,
    title and ('<title>%s</title>'):format(escaped(title)) or '')
end

--- most: maximum width; longer texts are scaled down.
function Drawing:text(x, y, text, size, anchor, most)
  size = size or 12
  if most then size = math.min(size, most / (letter * #text)) end
  self:add('<text x="%.1f" y="%.1f" font-size="%.3g" text-anchor="%s">%s</text>', x, y, size, anchor or 'start',
    escaped(text))
end

--- Adds a legend from x to the right, in several lines if needed. Returns the height of the last line.
function Drawing:legend(x, y, entries)
  local from = x
  for _, entry in ipairs(entries) do
    local wide_s = 22 + 11 * letter * #entry[1]
    if x > from and x + wide_s > width then x, y = from, y + 18 end
    self:box(x, y - 9, 10, 10, entry[2])
    self:text(x + 14, y, entry[1], 11)
    x = x + wide_s
  end
  return y
end

local function seconds_text(s) return ('%.4g s'):format(s) end

local function layers_text(chunks)
  local words = util.map(list_of(chunks), function(chunk)
    local first, last = number(list_of(chunk)[1]), number(list_of(chunk)[2])
    return last < first and 'none' or last == first and ('%d'):format(first) or ('%d-%d'):format(first, last)
  end)
  return #words > 3 and ('%s, ... %s'):format(words[1], words[#words]) or table.concat(words, ', ')
end

--- Returns the devices of a stage per replica, and the number of replicas.
local function inner_of(plan)
  local size = { data = 1, placement = 1, context = 1, tensor = 1 }
  for _, axis in ipairs(list_of(plan.axes)) do
    if size[axis.name] then size[axis.name] = math.max(1, math.floor(number(axis.size, 1))) end
  end
  return size.placement * size.context * size.tensor, size.data
end

--- Draws the devices of a stage, grouped by replica.
local function draw_mesh(self, y, plan)
  local inner, replicas = inner_of(plan)
  local all = replicas * inner
  local drawn = math.min(all, most_devices)
  local gap = inner > 1 and 2 or 0
  local step = math.min(14, (wide.mesh - gap * math.ceil(drawn / inner)) / drawn)
  for i = 0, drawn - 1 do
    self:box(at.mesh + i * step + gap * math.floor(i / inner), y + 5, step * 0.86, row - 12,
      i % inner == 0 and first_part or other_part,
      ('replica %d, part %d'):format(math.floor(i / inner) + 1, i % inner + 1))
  end
  if drawn < all then self:text(at.mesh + wide.mesh, y + 18, '...', 11) end
end

--- Adds the timeline of the first device on grey (idle). Without passes, shows how long it computes.
local function draw_time(self, y, stage, step_s)
  local scale = wide.time / math.max(step_s, 1e-12)
  self:box(at.time, y + 4, wide.time, row - 10, bubble, 'waits')
  if not stage.passes then
    return self:box(at.time, y + 4, math.min(wide.time, number(stage.busy_s) * scale), row - 10, busy, 'computes')
  end
  for _, pass in ipairs(list_of(stage.passes)) do
    local start_s, end_s = number(pass.start_s), math.min(step_s, number(pass.end_s))
    local w = (end_s - start_s) * scale
    self:add('<rect x="%.2f" y="%.1f" width="%.2f" height="%d" fill="%s" stroke="#fff" stroke-width="%.2f">'
      .. '<title>%s of micro-batch %d, %s</title></rect>', at.time + start_s * scale, y + 4, math.max(0.3, w), row - 10,
      phases[pass.phase] or bubble, w > 4 and 0.6 or 0.1, escaped(pass.phase), number(pass.micro_batch),
      escaped(seconds_text(end_s - start_s)))
    if w > 13 then
      self:text(at.time + start_s * scale + w / 2, y + 18, ('%d'):format(number(pass.micro_batch)), 10, 'middle')
    end
  end
end

local function bytes_of(stage, owner)
  return math.max(0, number(list_of(list_of(stage).peak_bytes)[owner.key]))
end

--- Adds memory as a bar; small owners of a nearly empty device are omitted.
local function scale_of(stages, capacity)
  local most = 1
  for _, stage in ipairs(stages) do
    local total = util.sum(owners.list, function(owner) return bytes_of(stage, owner) end)
    most = math.max(most, total)
  end
  return most < capacity / 3 and 1.6 * most or math.max(capacity, most)
end

local function draw_memory(self, y, stage, scale)
  local x, total = at.memory, 0
  self:box(at.memory, y + 4, wide.memory, row - 10, free)
  for _, owner in ipairs(owners.list) do
    local bytes = bytes_of(stage, owner)
    local w = bytes / scale * wide.memory
    total = total + bytes
    if bytes > 0 then
      self:box(x, y + 4, w, row - 10, owner.colour, ('%s: %s'):format(owner.name, core.format_bytes(bytes)))
    end
    x = x + w
  end
  self:text(at.memory + wide.memory - 3, y + 18, core.format_bytes(total), 10, 'end')
end

local function mesh_text(plan)
  local words = util.map(list_of(plan.axes), function(axis)
    return ('%s %d'):format(tostring(axis.name), number(axis.size, 1))
  end)
  if number(plan.expert, 1) > 1 then words[#words + 1] = ('experts over %d'):format(plan.expert) end
  return #words > 0 and table.concat(words, ' x ') or 'one device'
end

local function draw_heads(self, plan, capacity)
  self:text(10, 22, tostring(plan.text), 15, 'start', width - 20)
  local what = plan.placed and '' or '; devices: ' .. mesh_text(plan)
  self:text(10, 42, ('step time %s, lower bound %s%s'):format(seconds_text(number(plan.step_time_s)),
    seconds_text(number(plan.lower_bound_s)), what), 12, 'start', width - 20)
  self:text(at.layers, top - 8, plan.placed and 'device' or 'stage: layers', 11)
  if not plan.placed then self:text(at.mesh, top - 8, 'its devices, by replica', 11) end
  self:text(at.time, top - 8, plan.placed and 'what it does in a step' or 'what the first does in a step', 11)
  self:text(at.memory + wide.memory, top - 8, ('memory %s(a device has %s)'):format(plan.placed and ''
    or 'of the first ', core.format_bytes(capacity)), 11, 'end')
end

local function any(list, is)
  return util.find(list_of(list), function(entry) return is(entry) end) ~= nil
end

-- Draws the legend of the rows.
local function time_legend(stages)
  local entries = { { 'waits', bubble } }
  if any(stages, function(stage) return not stage.passes end) then entries[2] = { 'computes', busy } end
  for _, name in ipairs { 'forward', 'backward', 'update' } do
    local function has(pass) return list_of(pass).phase == name end
    if any(stages, function(stage) return any(stage.passes, has) end) then
      entries[#entries + 1] = { name, phases[name] }
    end
  end
  return entries
end

local function memory_legend(stages)
  local shown = owners.of_any(util.map(stages, function(stage)
    local peak = {}
    for _, owner in ipairs(owners.list) do peak[owner.key] = bytes_of(stage, owner) end
    return peak
  end))
  local entries = util.map(shown, function(owner) return { owner.name, owner.colour } end)
  entries[#entries + 1] = { 'free memory', free }
  return entries
end

function picture.svg(plan)
  local self = setmetatable({}, Drawing)
  local stages, step_s = list_of(plan.stages), number(plan.step_time_s)
  local capacity = math.max(1, number(plan.capacity_bytes, 1))
  local scale, rows = scale_of(stages, capacity), math.min(#stages, most_rows)
  local drawn = { unpack(stages, 1, rows) }
  draw_heads(self, plan, capacity)
  for s = 1, rows do
    local y, label = top + (s - 1) * row, stages[s].name
    label = plan.placed and tostring(label) or ('%d: %s'):format(s, layers_text(stages[s].layers))
    self:text(at.layers, y + 18, label, 12, 'start', (plan.placed and at.time or at.mesh) - at.layers - 6)
    if not plan.placed then draw_mesh(self, y, plan) end
    draw_time(self, y, stages[s], step_s)
    draw_memory(self, y, stages[s], scale)
  end
  local y = top + rows * row + 22
  if rows < #stages then
    self:text(at.layers, y, ('and %d more %s'):format(#stages - rows, plan.placed and 'devices' or 'stages'), 11)
    y = y + 18
  end
  if not plan.placed then
    y = self:legend(at.layers, y, { { 'first device of a replica', first_part },
      inner_of(plan) > 1 and { 'its others', other_part } or nil }) + 18
  end
  y = self:legend(at.layers, y, time_legend(drawn)) + 18
  local height = self:legend(at.layers, y, memory_legend(drawn)) + 14
  return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" '
    .. 'fill="#222">\n<rect width="%d" height="%d" fill="#fff"/>\n%s\n</svg>\n'):format(width, height, width, height,
    width, height, table.concat(self, '\n'))
end

--- Adds pictures of the plans to a run's result of kind 'plan'; plans without stored data have none.
function picture.add_to(data)
  for _, plan in ipairs(list_of(data.plans)) do
    if type(plan) == 'table' and type(plan.shown) == 'table' then
      local ok, svg = pcall(picture.svg, plan.shown)
      plan.picture, plan.shown = ok and svg or nil, nil
    end
  end
  data.plans = list_of(data.plans)
end

return picture
