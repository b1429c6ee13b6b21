-- How layers are shared out over the stages of a pipeline: the split whose largest load is least, exactly, where loads
-- add up; layers of virtual stages as equal as they can be.

local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

local stages = {}

--- Whether layers 1..n fit into p parts in a row of loads of at most `limit`, the most into the first; their numbers.
--- first, last: what the first and the last part bear beside; load(part, from, to).
local function greedy(cost, p, first, last, limit, speed, most)
  local counts, at, n = {}, 1, #cost
  for part = 1, p do
    local load, count = (part == 1 and first or 0) + (part == p and last or 0), 0
    if load * speed[part] > limit then return nil end
    while at <= n and count < most[part] and (load + cost[at]) * speed[part] <= limit do
      load, count, at = load + cost[at], count + 1, at + 1
    end
    counts[part] = count
  end
  return at > n and counts or nil
end

--- Moves layers so that no part is fuller than it must be behind the first fit: parts from the back take what they can.
local function evened(cost, p, first, last, limit, speed, most)
  local flipped, back, most_back = {}, {}, {}
  for i = 1, #cost do flipped[i] = cost[#cost + 1 - i] end
  for i = 1, p do back[i], most_back[i] = speed[p + 1 - i], most[p + 1 - i] end
  local a = greedy(cost, p, first, last, limit, speed, most)
  local b = greedy(flipped, p, last, first, limit, back, most_back)
  if not a or not b then return a end
  local upper, lower, counts, before = 0, 0, {}, 0
  for part = 1, p do -- a's ends are the latest that a fit can have, those of b from the back the earliest
    upper, lower = upper + a[part], lower + b[p + 1 - part]
    local even = math.floor(#cost * part / p + 0.5)
    local stop = math.max(lower, math.min(upper, even))
    counts[part], before = stop - before, stop
  end
  local at = 1
  for part = 1, p do
    local load = (part == 1 and first or 0) + (part == p and last or 0)
    if counts[part] < 0 or counts[part] > most[part] then return a end
    for _ = 1, counts[part] do load, at = load + cost[at], at + 1 end
    if load * speed[part] > limit * (1 + 1e-12) then return a end
  end
  return counts
end

--- Numbers of layers of p parts in a row whose largest load is least.
---@param cost number[] of every layer
---@param p integer
---@param first number what the first part bears beside its layers
---@param last number the same of the last
---@param speed? number[] factor of the cost on every part
---@param most? integer[] layers that every part may have
---@return integer[]? nil where the parts may not have all
function stages.split(cost, p, first, last, speed, most)
  speed = speed or util.listed(p, function() return 1 end)
  most = most or util.listed(p, function() return #cost end)
  local low, high = 0, first + last
  for i = 1, #cost do high = high + cost[i] end
  local slowest = 0
  for part = 1, p do slowest = math.max(slowest, speed[part]) end
  high = high * slowest
  for _ = 1, 60 do -- a double's bits are settled
    local middle = (low + high) / 2
    if greedy(cost, p, first, last, middle, speed, most) then high = middle else low = middle end
  end
  return evened(cost, p, first, last, high, speed, most)
end

--- Layers of every virtual stage in the order of the network, from those of every device (parallelism.place_of); a
--- device's chunks are as equal as they can be, the longer ones first.
---@param counts integer[] of every device
---@param v integer virtual stages of a device
---@param v_shaped boolean
---@return integer[]
function stages.virtual(counts, v, v_shaped)
  local p, list = #counts, {}
  for chunk = 1, p * v do
    local turn, n = math.floor((chunk - 1) / p), counts[parallelism.place_of(chunk, p, v_shaped)]
    list[chunk] = math.floor(n / v) + (turn < n % v and 1 or 0)
  end
  return list
end

--- Whether all numbers are equal.
function stages.even(list)
  for i = 2, #list do
    if list[i] ~= list[1] then return false end
  end
  return true
end

return stages
