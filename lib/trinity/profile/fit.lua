-- trinity.profile.fit: fits the parameters of the cost model (engine/strategy/cost.h) and of links to measured times.
--
--   operator   t = launch + max(flops / compute rate, bytes / memory rate), one launch for all, rates by cost key
--   link       t = latency + bytes / bandwidth
--
-- Both by least squares of the relative residuals r = predicted / measured - 1 with Huber's loss (r^2 / 2 up to 0.2,
-- linear beyond), by iteratively reweighted least squares. A disturbed operator thus has a bounded weight, and
-- microseconds count like seconds. Which of the two terms bounds an operator is unknown; in the order of flops / bytes
-- it is compute for the first and memory for the rest, so all such splits are tried. The launch time is found by a scan
-- and a golden section search.

local util = require 'trinity.base.util'

local fit = {}

local threshold = 0.2 -- of Huber's loss
local rounds = 12 -- of reweighting

local function huber(r)
  r = math.abs(r)
  return r <= threshold and r * r / 2 or threshold * (r - threshold / 2)
end

local function weight(r)
  r = math.abs(r)
  return r <= threshold and 1 or threshold / r
end

--- Returns the seconds per unit of samples[first..last], with units in field `unit`; nil if no sample has units.
local function seconds_per_unit(samples, first, last, unit, launch_s)
  local slope
  for _ = 1, rounds do
    local xy, xx = 0, 0
    for i = first, last do
      local s = samples[i]
      local x, y = s[unit] / s.time_s, 1 - launch_s / s.time_s
      local w = slope and weight(slope * x - y) or 1
      xy, xx = xy + w * x * y, xx + w * x * x
    end
    if xx == 0 then return nil end
    local new = math.max(0, xy / xx)
    if slope and math.abs(new - slope) <= 1e-12 * new then return new end
    slope = new
  end
  return slope
end

local function predicted(s, launch_s, per_flop, per_byte)
  return launch_s + math.max((per_flop or 0) * s.flops, (per_byte or 0) * s.bytes)
end

local function loss_of(samples, launch_s, per_flop, per_byte)
  local sum = 0
  for i = 1, #samples do
    sum = sum + huber(predicted(samples[i], launch_s, per_flop, per_byte) / samples[i].time_s - 1)
  end
  return sum
end

--- FLOP per byte; samples are sorted by it, largest first.
local function intensity(s) return s.bytes > 0 and s.flops / s.bytes or math.huge end

--- Returns the best rates for samples in order of decreasing intensity, and their loss.
local function rates(samples, launch_s)
  local best = { loss = math.huge }
  for split = 0, #samples do
    if split == 0 or split == #samples or intensity(samples[split]) > intensity(samples[split + 1]) then
      local per_flop = seconds_per_unit(samples, 1, split, 'flops', launch_s)
      local per_byte = seconds_per_unit(samples, split + 1, #samples, 'bytes', launch_s)
      local loss = loss_of(samples, launch_s, per_flop, per_byte)
      if loss < best.loss then best = { loss = loss, per_flop = per_flop, per_byte = per_byte } end
    end
  end
  return best
end

local function total_loss(groups, launch_s)
  local sum = util.sum(groups, function(group) return rates(group.samples, launch_s).loss end)
  return sum
end

--- Returns the launch time with minimum loss, from 0 to `most`.
local function find_launch(groups, most)
  local grid, best, least = { 0 }, 1, total_loss(groups, 0)
  for i = 1, 24 do
    grid[i + 1] = most * 10 ^ ((i - 24) / 6)
    local loss = total_loss(groups, grid[i + 1])
    if loss < least then best, least = i + 1, loss end
  end
  local low, high = grid[math.max(1, best - 1)], grid[math.min(#grid, best + 1)]
  local golden = (math.sqrt(5) - 1) / 2
  local a, b = high - golden * (high - low), low + golden * (high - low)
  local loss_a, loss_b = total_loss(groups, a), total_loss(groups, b)
  for _ = 1, 40 do
    if loss_a <= loss_b then
      high, b, loss_b = b, a, loss_a
      a = high - golden * (high - low)
      loss_a = total_loss(groups, a)
    else
      low, a, loss_a = a, b, loss_b
      b = low + golden * (high - low)
      loss_b = total_loss(groups, b)
    end
  end
  local found = (low + high) / 2
  return total_loss(groups, found) < least and found or grid[best]
end

local function sorted_samples(samples)
  table.sort(samples, function(a, b)
    local x, y = intensity(a), intensity(b)
    if x ~= y then return x > y end
    return a.time_s < b.time_s
  end)
  return samples
end

--- Returns median, mean and largest of |predicted / measured - 1| of a fit.
function fit.residuals(list)
  local sum = 0
  for i = 1, #list do
    list[i] = math.abs(list[i])
    sum = sum + list[i]
  end
  table.sort(list)
  return { count = #list, median = list[math.ceil(#list / 2)] or 0, mean = #list > 0 and sum / #list or 0,
    largest = list[#list] or 0 }
end

--- Converts rates to efficiencies. A term that bounds no sample gets the smallest efficiency at which it bounds none.
local function efficiencies(group, found, peaks)
  local per_flop, per_byte = found.per_flop, found.per_byte
  if not per_flop or per_flop == 0 then per_flop = math.huge end
  if not per_byte or per_byte == 0 then per_byte = math.huge end
  for _, s in ipairs(group) do
    if not (found.per_flop and found.per_flop > 0) and s.flops > 0 then
      per_flop = math.min(per_flop, (found.per_byte or 0) * s.bytes / s.flops)
    end
    if not (found.per_byte and found.per_byte > 0) and s.bytes > 0 then
      per_byte = math.min(per_byte, (found.per_flop or 0) * s.flops / s.bytes)
    end
  end
  local function efficiency(per, peak)
    if not (per > 0 and per < math.huge) then return nil end
    return 1 / (per * peak)
  end
  return { compute_efficiency = efficiency(per_flop, peaks.flops_per_s),
    memory_efficiency = efficiency(per_byte, peaks.memory_bytes_per_s) }
end

--- Fits the cost model to measured operators. samples: a list of { key =, flops =, bytes =, time_s = } with times above
--- zero; peaks: { flops_per_s =, memory_bytes_per_s = }. Returns launch_s, compute_efficiency and memory_efficiency of
--- all operators together, operators = the same by key, and residuals.
function fit.operators(samples, peaks)
  local by_key, groups, all, least = {}, {}, {}, math.huge
  for _, s in ipairs(samples) do
    by_key[s.key] = by_key[s.key] or {}
    table.insert(by_key[s.key], s)
    all[#all + 1] = s
    least = math.min(least, s.time_s)
  end
  for key, list in util.sorted_pairs(by_key) do
    groups[#groups + 1] = { key = key, samples = sorted_samples(list) }
  end
  local result = { launch_s = #all > 0 and find_launch(groups, math.min(1e-3, 4 * least)) or 0, operators = {} }
  local errors = {}
  for _, group in ipairs(groups) do
    local found = rates(group.samples, result.launch_s)
    result.operators[group.key] = efficiencies(group.samples, found, peaks)
    for _, s in ipairs(group.samples) do
      errors[#errors + 1] = predicted(s, result.launch_s, found.per_flop, found.per_byte) / s.time_s - 1
    end
  end
  local together = efficiencies(all, rates(sorted_samples(all), result.launch_s), peaks)
  result.compute_efficiency, result.memory_efficiency = together.compute_efficiency, together.memory_efficiency
  result.residuals = fit.residuals(errors)
  return result
end

--- One reweighted least-squares step for time = latency + per_byte * bytes with relative residuals.
local function solve_line(points, weights)
  local s1, sx, sxx, sy, sxy = 0, 0, 0, 0, 0
  for i, p in ipairs(points) do
    local w, one, x = weights[i], 1 / p.time_s, p.bytes / p.time_s
    s1, sx, sxx = s1 + w * one * one, sx + w * one * x, sxx + w * x * x
    sy, sxy = sy + w * one, sxy + w * x
  end
  local determinant = s1 * sxx - sx * sx
  local latency_s = determinant > 0 and (sy * sxx - sxy * sx) / determinant or 0
  if latency_s <= 0 or determinant <= 1e-14 * s1 * sxx then return 0, sxy / sxx end
  return latency_s, math.max((sxy * s1 - sy * sx) / determinant, 1e-15)
end

--- Fits latency and bandwidth of a link. points: a list of { bytes =, time_s = } with at least two sizes. Returns
--- latency_s, bandwidth_bytes_per_s and residuals.
function fit.link(points)
  local weights, latency_s, per_byte = {}, 0, 0
  for i = 1, #points do weights[i] = 1 end
  for _ = 1, 4 * rounds do
    latency_s, per_byte = solve_line(points, weights)
    for i, p in ipairs(points) do weights[i] = weight((latency_s + per_byte * p.bytes) / p.time_s - 1) end
  end
  local errors = util.map(points, function(p) return (latency_s + per_byte * p.bytes) / p.time_s - 1 end)
  return { latency_s = latency_s, bandwidth_bytes_per_s = 1 / per_byte, residuals = fit.residuals(errors) }
end

return fit
