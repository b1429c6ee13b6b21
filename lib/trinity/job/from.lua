-- trinity plan --from: the best plan for a job file, as a diff of the file.

local diff = require 'trinity.job.diff'
local job = require 'trinity.job'
local memory = require 'trinity.job.memory'
local replan = require 'trinity.job.replan'
local util = require 'trinity.base.util'

local from = {}

--- Returns the output of the command: { lines, step_time_s (of the plan; nil if no plan is faster), before_s, changes {
--- name, value, gives_s }, missed }.
---@param path string
---@param options table cluster, keep, simulations, output, quiet
---@return table
function from.run(path, options)
  local found = job.read(path, { gpus = memory.gpus_of(options.cluster) })
  local best, now = replan.from(found, options)
  if not best then
    return { before_s = now, changes = {}, lines = {
      now and ('no plan is faster than the file: %.4g s per step'):format(now) or 'no plan fits that the client '
        .. 'accepts' } }
  end
  local text, changed, missed = diff.apply(path, util.read_file(path), best.changes)
  local lines = { ('--- %s: %s'):format(path, now and ('%.4g s per step'):format(now) or 'does not fit'),
    ('+++ %s: %.4g s per step'):format(options.output or path, best.step_time_s) }
  for _, line in ipairs(changed) do lines[#lines + 1] = line end
  for _, change in ipairs(missed) do
    lines[#lines + 1] = ('change by hand: %s %s'):format(change.name, tostring(change.value or 'off'))
  end
  if options.output then util.write_file('plan', options.output, text) end
  return { lines = lines, step_time_s = best.step_time_s, before_s = now, changes = util.map(best.changes,
    function(change) return util.picked(change, { 'name', 'value', 'gives_s' }) end),
    missed = util.map(missed, function(change) return change.name end) }
end

return from
