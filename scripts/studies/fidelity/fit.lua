-- Fits constants to measurements: positive numbers within bounds, with log-normal priors. Large errors have less weight
-- (soft L1: 2 (sqrt(1 + (e / noise)^2) - 1)), so that disturbed runs have little influence.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local system = require 'trinity.base.system'
local util = require 'trinity.base.util'

local fit = {}

local most_sweeps, least_move = 500, 1e-7

--- Returns body(item) for every item of a list, in order: all of them, or those done before Ctrl-C; and whether it was
--- pressed. what: of the items ('rows'); early: the warning after Ctrl-C, with its name, for others than predictions.
function fit.each(items, what, body, early)
  local results, shown = {}, progress.new('fidelity', false)
  local stopped = system.stoppable(function(stop_requested)
    for i, item in ipairs(items) do
      shown:update { text = ('%d of %d %s'):format(i, #items, what) }
      local ok, found = pcall(body, item)
      if stop_requested() then return end
      if not ok then
        shown:finish()
        error(found, 0)
      end
      results[i] = found
    end
  end)
  shown:finish()
  if stopped then
    progress.warn((early or ('stopped by %%s: %d of %d %s are predicted; it cannot be resumed'):format(#results, #items,
      what)):format(core.stop_name()))
  end
  return results, stopped
end

--- The same for parts of a list: body(piece) takes several items at once and returns a list.
function fit.each_piece(items, size, what, body)
  local pieces = {}
  for i = 1, #items, size do pieces[#pieces + 1] = { unpack(items, i, math.min(#items, i + size - 1)) } end
  local found, stopped = fit.each(pieces, ('pieces of %d %s'):format(size, what), body)
  return util.joined(unpack(found)), stopped
end

--- Returns the fitted values by id. parameters: { id, start (of the prior), spread, least, most, from (where slopes
--- were taken) } each; errors: { log = log(predicted / measured), slopes = by id, weight } each. Every round moves one
--- parameter after the other to the least of a parabola above the objective, which therefore never rises.
function fit.constants(parameters, errors, noise)
  local moved, logs = {}, util.map(errors, function(one) return one.log end)
  for _ = 1, most_sweeps do
    local largest = 0
    for _, one in ipairs(parameters) do
      local at = math.log(one.from) + (moved[one.id] or 0)
      local slope, curve = (at - math.log(one.start)) / one.spread ^ 2, 1 / one.spread ^ 2
      for k, entry in ipairs(errors) do
        local by = entry.slopes[one.id]
        if by then
          local scale = (entry.weight / noise) ^ 2
          local weight = scale / math.sqrt(1 + scale * logs[k] ^ 2)
          slope, curve = slope + weight * by * logs[k], curve + weight * by * by
        end
      end
      local step = math.max(math.log(one.least), math.min(math.log(one.most), at - slope / curve)) - at
      for k, entry in ipairs(errors) do logs[k] = logs[k] + step * (entry.slopes[one.id] or 0) end
      moved[one.id], largest = (moved[one.id] or 0) + step, math.max(largest, math.abs(step))
    end
    if largest < least_move then break end
  end
  local values = {}
  for _, one in ipairs(parameters) do values[one.id] = one.from * math.exp(moved[one.id] or 0) end
  return values
end

return fit
