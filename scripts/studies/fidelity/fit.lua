-- Fits constants to measurements: positive numbers within bounds, with log-normal priors, by the Levenberg-Marquardt
-- method on log(predicted / measured) (Marquardt, SIAM J. Appl. Math. 11(2), 1963). Large errors have less weight (soft
-- L1: 2 (sqrt(1 + (e / noise)^2) - 1)), so that disturbed runs have little influence.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local fit = {}

local least_gain = 1e-4 -- minimum relative gain of the objective for another step

local keeping = false -- within fit.keeping

--- Returns the rows whose group has `words` in its name, in order. Raises an error that names the groups if there are
--- none.
function fit.only(rows, words, group_of)
  local found, groups = {}, {}
  for _, row in ipairs(rows) do
    groups[group_of(row)] = true
    if group_of(row):find(words, 1, true) then found[#found + 1] = row end
  end
  if #rows > 0 and #found == 0 then
    local names = util.sorted_keys(groups)
    local more = #names > 6 and ('; and %d more'):format(#names - 6) or ''
    util.fail("option '--only': no group of rows has %s in its name (groups: %s%s)", util.quoted(words),
      table.concat(names, '; ', 1, math.min(#names, 6)), more)
  end
  return found
end

--- Returns the result of body() and whether Ctrl-C ended its fits with the best so far. The second Ctrl-C ends the
--- script. says(name of the signal): returns the message for more than a fit.
function fit.keeping(body, says)
  keeping = true
  core.begin_search()
  local ok, result = pcall(body)
  local stopped = core.stop_requested()
  core.end_search()
  keeping = false
  if not ok then error(result, 0) end
  if stopped then
    says = says or function(signal)
      return ('the fit ended early (%s) with the best so far; it cannot be resumed'):format(signal)
    end
    progress.warn(says(core.stop_name()))
  end
  return result, stopped
end

--- Returns body(item) for every item of a list, in order: all of them, or those done before Ctrl-C; and whether it was
--- pressed. Shows progress, and how many `what` ('rows') are done.
function fit.each(items, what, body)
  if #items == 0 then return {}, false end
  local results, looks = {}, progress.new('fidelity', false)
  local _, stopped = fit.keeping(function()
    for i, item in ipairs(items) do
      looks:update { text = ('%d of %d %s'):format(i, #items, what) }
      local ok, found = pcall(body, item)
      if core.stop_requested() then return end -- a fit may have ended early
      if not ok then error(found, 0) end
      results[i] = found
    end
  end, function(signal)
    return ('stopped by %s: %d of %d %s are predicted; it cannot be resumed'):format(signal, #results, #items, what)
  end)
  looks:finish()
  return results, stopped
end

--- Returns the result of body(), or nil if Ctrl-C ended it and the previous results are to be kept.
function fit.attempt(body)
  local ok, result = pcall(body)
  if ok then return result end
  if not (keeping and core.stop_requested()) then error(result, 0) end
  return nil
end

--- Returns whether Ctrl-C requested the fit to end with the best so far.
function fit.stopping() return keeping and core.stop_requested() end

--- fit.each for parts of a list: body(piece) takes several items at once and returns a list.
function fit.each_piece(items, size, what, body)
  local pieces, results = {}, {}
  for i, item in ipairs(items) do
    if i % size == 1 or size == 1 then pieces[#pieces + 1] = {} end
    table.insert(pieces[#pieces], item)
  end
  local found, stopped = fit.each(pieces, ('pieces of %d %s'):format(size, what), body)
  for _, list in ipairs(found) do
    for _, one in ipairs(list) do results[#results + 1] = one end
  end
  return results, stopped
end

--- Returns a residual whose square is 2 (sqrt(1 + e^2) - 1).
local function softened(e)
  local size = math.sqrt(2 * (math.sqrt(1 + e * e) - 1))
  return e < 0 and -size or size
end

--- Solves a x = b in place by Gaussian elimination with pivots; a is symmetric and positive.
local function solve(a, b)
  local n = #b
  for k = 1, n do
    local pivot = k
    for i = k + 1, n do if math.abs(a[i][k]) > math.abs(a[pivot][k]) then pivot = i end end
    a[k], a[pivot], b[k], b[pivot] = a[pivot], a[k], b[pivot], b[k]
    for i = k + 1, n do
      local factor = a[i][k] / a[k][k]
      for j = k, n do a[i][j] = a[i][j] - factor * a[k][j] end
      b[i] = b[i] - factor * b[k]
    end
  end
  for k = n, 1, -1 do
    for j = k + 1, n do b[k] = b[k] - a[k][j] * b[j] end
    b[k] = b[k] / a[k][k]
  end
  return b
end

local function squares(list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] * list[i] end
  return sum
end

--- Converts logarithms to values by name.
local function values_of(constants, x)
  local values = {}
  for i, constant in ipairs(constants) do values[constant.name] = math.exp(x[i]) end
  return values
end

--- Returns the residuals: softened errors, and distances of constants from their priors.
local function residuals(constants, x, errors, noise)
  local list, found = {}, errors(values_of(constants, x))
  for i, e in ipairs(found) do list[i] = softened(e / noise) end
  for i, constant in ipairs(constants) do
    list[#list + 1] = (x[i] - math.log(constant.start)) / constant.spread
  end
  return list
end

--- Returns derivatives by every constant, [constant][residual].
local function slopes(constants, x, here, residuals_at)
  local result, step = {}, 1e-3
  for i in ipairs(constants) do
    local before = x[i]
    x[i] = before + step
    local there = residuals_at(x)
    x[i] = before
    for r = 1, #there do there[r] = (there[r] - here[r]) / step end
    result[i] = there
  end
  return result
end

local function step_of(free, slope, here, damping)
  local a, b = {}, {}
  for k, i in ipairs(free) do
    a[k], b[k] = {}, 0
    for r = 1, #here do b[k] = b[k] - slope[i][r] * here[r] end
    for l, j in ipairs(free) do
      local sum = 0
      for r = 1, #here do sum = sum + slope[i][r] * slope[j][r] end
      a[k][l] = k == l and sum * (1 + damping) or sum
    end
  end
  return solve(a, b)
end

--- Returns the next point, within bounds. Constants at a bound that would leave it are fixed, and the step is computed
--- for the others.
local function moved(constants, x, slope, here, damping)
  local free, next_x = {}, {}
  for i = 1, #x do free[i], next_x[i] = i, x[i] end
  while #free > 0 do
    local step, still = step_of(free, slope, here, damping), {}
    for k, i in ipairs(free) do
      local least, most = math.log(constants[i].least), math.log(constants[i].most)
      next_x[i] = math.max(least, math.min(most, x[i] + step[k]))
      if next_x[i] ~= x[i] or step[k] == 0 then still[#still + 1] = i end
    end
    if #still == #free then break end
    free = still
  end
  return next_x
end

--- Returns the fitted values by name. constants: { name, start, least, most, spread } each, with `from` if the search
--- starts at another value than the prior `start`; errors(values) returns log(predicted / measured), always in the same
--- order; noise: error above which weights decrease; steps: maximum number. Within fit.keeping, Ctrl-C ends it with the
--- best so far.
function fit.constants(constants, errors, noise, steps)
  local x, damping = {}, 1e-2
  for i, constant in ipairs(constants) do x[i] = math.log(constant.from or constant.start) end
  local looks, step, priced = progress.new('fit', false), 0, 0
  local function told(values)
    priced = priced + 1
    looks:update { text = ('step %d of at most %d, %d predictions'):format(step, steps, priced) }
    return errors(values)
  end
  local function residuals_at(point) return residuals(constants, point, told, noise) end
  local here = fit.attempt(function() return residuals_at(x) end)
  if not here then error('interrupted', 0) end
  while step < steps and not fit.stopping() do
    step = step + 1
    local better = fit.attempt(function()
      local slope = slopes(constants, x, here, residuals_at)
      for _ = 1, 8 do
        local next_x = moved(constants, x, slope, here, damping)
        local there = residuals_at(next_x)
        if squares(there) < squares(here) then
          local share = squares(there) / squares(here)
          x, here, damping = next_x, there, damping / 5
          return share
        end
        damping = damping * 4
      end
    end)
    if not better or better > 1 - least_gain then break end
  end
  return values_of(constants, x)
end

return fit
