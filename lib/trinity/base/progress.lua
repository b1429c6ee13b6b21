-- One line of progress on standard error. On a terminal it is redrawn in place, with a bar, and fits its width; where
-- the locale is not UTF-8 the bar is of ASCII, where NO_COLOR is set it has no colour (no-color.org). Elsewhere lines
-- come after half a second, and then whenever a quarter more time has passed: some forty in two hours. --quiet (which
-- sets progress.quiet) shows nothing.

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

--- `silent` is true while items of trinity.parallel_map run: their searches show nothing. `quiet`: the user wants to
--- see nothing. listener(self, state) is called with every update, shown or not. terminal(1) and terminal(2) say what
--- standard output and error are: redraws, columns, utf8, colour.
local progress = { silent = false, quiet = false, listener = nil, duration = duration, terminal = core.terminal }

progress.printable = core.printable

--- A progress display called `label`. `quiet` shows nothing.
function progress.new(label, quiet)
  label = core.printable(label)
  local terminal = core.terminal(2)
  return setmetatable({ label = label, quiet = quiet or progress.silent or progress.quiet, look = terminal,
    terminal = terminal.redraws, shown = -math.huge, interval_s = terminal.redraws and 0.1 or 0.5,
    start = core.clock_s() }, Progress)
end

--- What there is to say as a list of parts, the less important ones last.
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

--- A bar of `width` characters, `share` of them full.
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

--- The line of a terminal with so many columns: as many parts as fit, behind the bar where that fits, too.
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

--- Writes a line on standard error; control characters in it, as names may have them, are shown as text.
function progress.say(text)
  io.stderr:write(core.printable(text), '\n')
  io.stderr:flush()
end

--- Writes a line that stays: what came of one part of a long job.
function progress.note(text)
  if not progress.silent and not progress.quiet then progress.say(text) end
end

--- Writes a warning, which --quiet does not hide.
function progress.warn(text) progress.say('trinity: warning: ' .. text) end

--- Shows a state { step, steps, share, best, evaluations, problem } or { done, items, share } or { text } when it is
--- time. `share` is the part of the work that is done; `problem` tells the lower bound.
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
