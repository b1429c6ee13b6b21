-- trinity.system: this program and machine, what stops a script, and helpers of scripts.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local progress = require 'trinity.base.progress'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

---@class trinity.SystemModule
---@field api integer level of the script interface (trinity help extending); it increases when something is removed
---@field home string the folder of lib, models and scripts
---@field version string version of the program
local system = {
  api = 1,
  home = core.home,
  version = core.version,
  sorted_pairs = util.sorted_pairs,
  median = util.median,
  format_table = text.format_table,
}

--- Whether this trinity was built with LibTorch, which tensors, networks, learning methods, several processes and the
--- executor need. Example: `trinity.system.has_torch()`
---@return boolean
function system.has_torch() return core.has_torch() end

--- Runs body(stop_requested), a loop that ends when stop_requested() is true. The first Ctrl-C only sets
--- stop_requested(); a search, simulation or command that runs then raises 'interrupted'. The second Ctrl-C stops the
--- script. Returns whether a stop was requested. Example: `trinity.system.stoppable(function(stop_requested) while not
--- stop_requested() do break end end)`
---@param body fun(stop_requested: fun(): boolean)
---@return boolean
function system.stoppable(body)
  check.argument('system.stoppable', 1, 'body', body, 'function')
  core.begin_search()
  local ok, message = xpcall(function() body(core.stop_requested) end, function(raised) return raised end)
  local stopped = core.stop_requested()
  core.end_search()
  if not ok then error(message, 0) end
  return stopped
end

--- Returns LibTorch and the BLAS in use, as a line of text. Warns on standard error about a slow BLAS.
--- Example: `trinity.system.describe_torch()`
---@return string
function system.describe_torch()
  local versions, slow = core.describe_torch()
  if slow then
    progress.warn('the reference BLAS is loaded, about 16 times slower than OpenBLAS; install '
      .. 'libopenblas0-openmp')
  end
  return versions
end

local engine_functions = { format_bytes = 1, threads = 0, clock_s = 0, describe_machine = 0,
  stop_requested = 0, was_interrupted = 0, stop_status = 0, stop_name = 0 } -- numbers of arguments
for name, most in util.sorted_pairs(engine_functions) do
  system[name] = fields.limited('system.' .. name, core[name], most)
end

return system
