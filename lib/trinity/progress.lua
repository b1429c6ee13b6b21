-- One line of progress on standard error: redrawn in place on a terminal, now and then otherwise.

local core = require 'trinity.core'

local Progress = {}
Progress.__index = Progress

local function duration(seconds)
  if seconds ~= seconds or seconds > 359999 then return '?' end
  if seconds < 59.5 then return ('%d s'):format(seconds + 0.5) end
  if seconds < 3600 then return ('%d:%02d min'):format(seconds / 60, seconds % 60) end
  return ('%d:%02d h'):format(seconds / 3600, seconds % 3600 / 60)
end

--- `silent` is true while items of trinity.parallel_map run: their searches show nothing.
local progress = { silent = false }

--- A progress display called `label`. `quiet` shows nothing.
function progress.new(label, quiet)
  local terminal = core.is_terminal(2)
  return setmetatable({ label = label, quiet = quiet or progress.silent, terminal = terminal, shown = -math.huge,
    interval_s = terminal and 0.1 or 0.5, start = core.clock_s() }, Progress)
end

local function line(self, now, state)
  if state.text then return ('%s  %s'):format(self.label, state.text) end
  local elapsed = now - self.start
  local left = state.share > 0 and elapsed / state.share * (1 - state.share) or 0 / 0
  if state.items then
    return ('%s  %d/%d items  %s left'):format(self.label, state.done, state.items, duration(left))
  end
  local best = state.best
  local text = ('%s  step %d/%s'):format(self.label, state.step, state.steps or '?')
  if best then
    text = text .. ('  best %.4g s%s  reward %.4f'):format(best.metrics.step_time_s,
      best.metrics.feasible and '' or ' (does not fit)', best.reward)
  end
  return text .. ('  %.0f evaluations/s  %s left'):format(
    state.evaluations / math.max(elapsed, 1e-9), duration(left))
end

--- Writes a line that stays: what came of one part of a long job.
function progress.note(text)
  if progress.silent then return end
  io.stderr:write(text, '\n')
  io.stderr:flush()
end

--- Shows a state { step, steps, share, best, evaluations } or { done, items, share } when it is time.
--- `share` is the part of the work that is done.
function Progress:update(state)
  local now = core.clock_s()
  if self.quiet or now - self.start < 0.3 or now - self.shown < self.interval_s then return end
  self.shown = now
  if self.terminal then
    io.stderr:write('\r\27[K', line(self, now, state))
  else
    io.stderr:write(line(self, now, state), '\n')
    self.interval_s = math.min(10, self.interval_s * 2)
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
