-- How much longer (or larger) simulations are than the engine's bounds: a Gaussian process over what a plan does. It
-- learns from what was simulated and orders what is simulated next; it rules nothing out.

local Process = require 'trinity.base.gaussian_process'
local space = require 'trinity.plan.space'

local growth = {}

-- Terms of the kernel: a line in the logarithms of sizes, what every dimension adds by itself, what all add together,
-- and noise, since messages are no function of these dimensions alone.
local line, single, joint, noise = 0.5, 0.5, 0.5, 0.02

-- Dimensions, with the distance of one step (of sizes: of a factor of two); devices: how many; gathered: how often all
-- weights are exchanged between replicas, a step and a device.
local dimensions = { { 'tensor', 0.35, size = true }, { 'context', 0.35, size = true }, { 'expert', 0.35, size = true },
  { 'pipeline', 0.35, size = true }, { 'data', 0.25, size = true }, { 'micro_batch', 0.25, size = true },
  { 'placement', 0.7, size = true }, { 'devices', 0.35, size = true }, { 'virtual_stages', 0.35, size = true },
  { 'bucket_bytes', 0.25, size = true }, { 'gathered', 0.35, size = true }, { 'schedule', 0.7 }, { 'zero_stage', 0.7 },
  { 'recompute', 0.5 }, { 'sequence_parallel', 0.25 }, { 'order', 0.7 } }
local count, sizes, farthest = #dimensions, 11, 4
local words = {} -- a number for every word, so far apart that none is near another

--- A point as numbers.
---@param point trinity.PlanPoint
---@return number[]
function growth.features(point)
  local list, exchanged = {}, point.zero_stage == 3 and point.micro_batches or 1
  local made = { devices = space.used(point), gathered = exchanged / point.tensor / point.pipeline / point.expert }
  for i, dimension in ipairs(dimensions) do
    local value = made[dimension[1]] or point[dimension[1]]
    if dimension.size then
      list[i] = math.log(math.max(value or 1, 1e-9)) / math.log(2)
    else
      local key = type(value) == 'table' and 'moved' or tostring(value)
      if not words[key] then words[key], words[0] = 1000 * (words[0] or 1), (words[0] or 1) + 1 end
      list[i] = words[key]
    end
  end
  return list
end

local function kernel(a, b, from)
  local sum, far, product = 0, 0, 0
  for i = 1, count do
    local distance = math.min(math.abs(a[i] - b[i]), farthest) * dimensions[i][2]
    sum, far = sum + (distance == 0 and 1 or math.exp(-distance)), far + distance
    if i <= sizes then product = product + (a[i] - from[i]) * (b[i] - from[i]) end
  end
  return single * sum / count + joint * math.exp(-far) + line * product
end

-- The process is over log(1 + log(growth) / bend): a few plans whose messages take as long as their computation must
-- not make it uncertain of all others. At this logarithm of the growth its slope has fallen to a half.
local bend = 0.1

local Growth = {}
Growth.__index = Growth

function Growth:add(features, factor)
  self.process:add(features, (1 + math.max(0, math.log(factor)) / bend) ^ bend)
end

--- The expected growth, at least 1, less `optimism` standard deviations.
function Growth:estimate(features, optimism)
  return math.exp(bend * (self.process:estimate(features, optimism) ^ (1 / bend) - 1))
end

--- Counts its own expectation as observed, until forget().
function Growth:expect(features) self.process:expect(features) end

function Growth:forget() self.process:forget() end

--- A process that knows nothing yet; mean, deviation: of the logarithm of the growth.
function growth.new(mean, deviation)
  return setmetatable({ process = Process.new(kernel, mean, deviation, noise) }, Growth)
end

return growth
