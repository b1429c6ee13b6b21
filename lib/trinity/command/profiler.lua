-- `trinity --profile FILE SCRIPT`: how the wall time of a script is spent. LuaJIT's sampler (jit.profile) calls back
-- about a thousand times per second of CPU time. The time since the last sample is attributed to the current stack, so
-- that all stacks add up to the wall time. If a sample was taken outside of Lua, its leaf is [engine], [garbage
-- collector] or [compiler].

local core = require 'trinity.core'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local profiler = {}

local interval_ms = 1
local deepest = 60   -- frames of a stack that are kept
local hottest = 10   -- lines to print

local leaves = { C = '[engine]', G = '[garbage collector]', J = '[compiler]' }
local state

--- Shortens frames: paths relative to the library's folder, no addresses of C functions.
local function short(path)
  return (path:gsub(core.home:gsub('%p', '%%%0') .. '/', ''):gsub('@0x%x+', '[C]'))
end

local function add(to, key, seconds) to[key] = (to[key] or 0) + seconds end

--- Attributes the time since the last sample to a stack.
local function sample(thread, vm)
  local now = core.clock_s()
  local passed, leaf = now - state.last_s, leaves[vm]
  state.last_s = now
  local stack = short(state.dump(thread, 'pFZ;', -deepest))
  add(state.stacks, leaf and (stack == '' and leaf or stack .. ';' .. leaf) or stack, passed)
  add(state.lines, short(state.dump(thread, 'plZ', 1)), passed)
  add(state.shares, leaf or 'Lua', passed)
end

--- Starts profiling, with folded stacks to `path`. Raises an error before the script runs if it cannot be written.
function profiler.start(path)
  local ok, message = pcall(core.check_output, path)
  if not ok then
    util.fail_as(message, '--profile')
  end
  local sampler = require 'jit.profile'
  state = { path = path, start_s = core.clock_s(), last_s = core.clock_s(), stacks = {}, lines = {}, shares = {},
    dump = sampler.dumpstack, stop = sampler.stop }
  sampler.start('fi' .. interval_ms, function(thread, _, vm) sample(thread, vm) end)
end

--- Returns the seconds of all stacks as lines `frame;frame;frame MICROSECONDS` (flamegraph.pl, speedscope), sorted.
function profiler.folded(stacks)
  local lines = {}
  for stack, seconds in util.sorted_pairs(stacks) do
    local us = math.floor(seconds * 1e6 + 0.5)
    if us > 0 then lines[#lines + 1] = ('%s %d\n'):format(stack == '' and '[start]' or stack, us) end
  end
  return table.concat(lines)
end

--- Returns the time fractions of Lua and the engine, and a table of the hottest lines.
local function summary(wall_s)
  local list, parts = {}, {}
  for line, seconds in util.sorted_pairs(state.lines) do list[#list + 1] = { line = line, seconds = seconds } end
  table.sort(list, util.by('-seconds', 'line'))
  local rows = util.listed(math.min(hottest, #list), function(i)
    return { list[i].line, ('%.3f'):format(list[i].seconds), ('%.1f %%'):format(100 * list[i].seconds / wall_s) }
  end)
  for name, seconds in util.sorted_pairs(state.shares) do
    parts[#parts + 1] = ('%s %.1f %%'):format(name, 100 * seconds / wall_s)
  end
  return ('profile: %.3f s: %s\n%s'):format(wall_s, table.concat(parts, ', '),
    text.format_table({ 'line', 'seconds', 'of all' }, rows))
end

--- Stops profiling, writes the file and prints the hottest lines to standard error.
function profiler.stop()
  if not state then return end
  state.stop()
  local now = core.clock_s()
  add(state.stacks, '[end]', now - state.last_s)
  add(state.shares, 'Lua', now - state.last_s)
  local wall_s = math.max(now - state.start_s, 1e-9)
  core.write_file(state.path, profiler.folded(state.stacks))
  require('trinity.base.progress').say(summary(wall_s))
  state = nil
end

return profiler
