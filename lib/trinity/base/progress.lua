-- One line of progress on standard error. On a terminal it is redrawn in place, with a bar, and fits the width. Without
-- a UTF-8 locale the bar is ASCII; with NO_COLOR it has no colour (no-color.org). Otherwise the first line comes after
-- half a second, and another one whenever the time has grown by a quarter: about forty in two hours. --quiet
-- (progress.quiet) hides it.

local core = require 'trinity.core'
local significant = require('trinity.base.text').significant

local Progress = {}
Progress.__index = Progress

local function duration(seconds)
  if seconds ~= seconds or seconds > 359999 then return '?' end
  if seconds < 59.5 then return ('%d s'):format(seconds + 0.5) end
  if seconds < 3600 then return ('%d:%02d min'):format(seconds / 60, seconds % 60) end
  return ('%d:%02d h'):format(seconds / 3600, seconds % 3600 / 60)
end

--- `silent` is true while items of trinity.parallel_map run, whose searches show no progress. `quiet`: the user asked
--- for no progress. listener(self, state) is called with every update, shown or not. terminal(1) and terminal(2)
--- describe standard output and error: redraws, columns, utf8, colour.
local progress = { silent = false, quiet = false, listener = nil, duration = duration, terminal = core.terminal }

progress.printable = core.printable

--- Makes a progress display called `label`. `quiet` hides it.
function progress.new(label, quiet)
  label = core.printable(label)
  local terminal = core.terminal(2)
  return setmetatable({ label = label, quiet = quiet or progress.silent or progress.quiet, look = terminal,
    terminal = terminal.redraws, shown = -math.huge, interval_s = terminal.redraws and 0.1 or 0.5,
    start = core.clock_s() }, Progress)
end

--- Returns the parts of the line, less important ones last.
local function parts_of(self, now, state)
  if state.text then return { core.printable(state.text) } end
  local elapsed = now - self.start
  local left = state.share > 0 and elapsed / state.share * (1 - state.share) or 0 / 0
  local time_left = duration(left) .. ' left'
  if state.items then return { ('%d/%d items'):format(state.done, state.items), time_left } end
  local parts, best, bound_s = {}, state.best, state.lower_bound_s
  parts[1] = ('step %d/%s'):format(state.step, state.steps or '?')
  if best then
    local gap = bound_s and bound_s > 0 and (' (%.2fx bound)'):format(best.metrics.step_time_s / bound_s) or ''
    local fits = best.metrics.feasible and '' or ' (does not fit)'
    parts[2] = ('best %.4g s%s%s'):format(best.metrics.step_time_s, gap, fits)
    parts[3] = 'reward ' .. significant(best.reward)
  end
  parts[#parts + 1] = ('%.0f evaluations/s'):format(state.evaluations / math.max(elapsed, 1e-9))
  parts[#parts + 1] = time_left
  return parts
end

local eighths = { [0] = '', '\226\150\143', '\226\150\142', '\226\150\141', '\226\150\140', '\226\150\139',
  '\226\150\138', '\226\150\137' }
local full = '\226\150\136'

--- Returns a bar of `width` characters, with fraction `share` filled.
function progress.bar(share, width, look)
  local filled = math.max(0, math.min(1, share)) * width
  local whole = math.floor(filled)
  if not look.utf8 then return '[' .. ('#'):rep(whole) .. ('-'):rep(width - whole) .. ']' end
  local part = whole < width and math.floor((filled - whole) * 8) or 0
  local done = full:rep(whole) .. eighths[part]
  local rest = ('\226\148\128'):rep(width - whole - (part > 0 and 1 or 0))
  if look.colour then return '\27[36m' .. done .. '\27[2m' .. rest .. '\27[0m' end
  return done .. rest
end

local bar_width, least_columns = 20, 20

--- Returns the line for a terminal with this number of columns: the bar if it fits, then the parts that fit.
function progress.fit(label, parts, share, look)
  local columns = math.max(least_columns, look.columns > 0 and look.columns or 80) - 1
  local text = label
  for i = 1, #parts do
    if #text + 2 + #parts[i] <= columns then text = text .. '  ' .. parts[i] end
  end
  if #text > columns then text = text:sub(1, columns) end
  local width = math.min(bar_width, columns - #text - 5)
  if not share or width < 4 then return text end
  return progress.bar(share, width, look) .. '  ' .. text
end

--- Writes a line on standard error; control characters (for example in names) are shown as text.
function progress.say(text)
  io.stderr:write(core.printable(text), '\n')
  io.stderr:flush()
end

--- Writes a permanent line: the result of a part of a long job.
function progress.note(text)
  if not progress.silent and not progress.quiet then progress.say(text) end
end

--- Writes a warning, which --quiet does not hide.
function progress.warn(text) progress.say('trinity: warning: ' .. text) end

--- Shows a state { step, steps, share, best, evaluations, problem } or { done, items, share } or { text } if an update
--- is due. `share`: fraction of the work done; `problem`: for the lower bound.
function Progress:update(state)
  local now = core.clock_s()
  if progress.listener then progress.listener(self, state) end
  if self.quiet or now - self.start < 0.3 or now - self.shown < self.interval_s then return end
  self.shown = now
  if not state.lower_bound_s and state.problem and not state.problem.default_schedule then
    state.lower_bound_s = state.problem:bounds().step_time_s
  end
  local parts = parts_of(self, now, state)
  if self.terminal then
    io.stderr:write('\r\27[K', progress.fit(self.label, parts, state.share, self.look))
  else
    io.stderr:write(self.label, '  ', table.concat(parts, '  '), '\n')
    self.interval_s = math.max(0.5, (now - self.start) / 4)
  end
  io.stderr:flush()
end

--- Clears the line.
function Progress:finish()
  if not self.quiet and self.terminal and self.shown > -math.huge then
    io.stderr:write('\r\27[K')
    io.stderr:flush()
  end
end

return progress
