-- How much longer (or larger) simulations are than the engine's bounds: a Gaussian process over what a plan does. It
-- learns from what was simulated and orders what is simulated next; it rules nothing out.

local space = require 'trinity.plan.space'

local Growth = {}
Growth.__index = Growth

-- Terms of the kernel: a line in the logarithms of sizes, what every dimension adds by itself, what all add together,
-- and noise, since messages are no function of these dimensions alone.
local line, single, joint, noise = 2, 0.5, 0.5, 0.02

-- Observations that the prior counts as; those that are kept where there are more than twice as many: the latest.
local prior_weight, kept = 4, 64

-- Dimensions, with the distance of one step (of sizes: of a factor of two).
local dimensions = { { 'tensor', 0.35, size = true }, { 'context', 0.35, size = true }, { 'expert', 0.35, size = true },
  { 'pipeline', 0.35, size = true }, { 'data', 0.25, size = true }, { 'micro_batch', 0.25, size = true },
  { 'placement', 0.7, size = true }, { 'devices', 0.35, size = true }, { 'schedule', 0.7 }, { 'shard', 0.7 },
  { 'recompute', 0.5 }, { 'sequence_parallel', 0.25 }, { 'order', 0.7 } }
local count, sizes, farthest = #dimensions, 8, 4
local words = {} -- a number for every word, so far apart that none is near another

--- A point as numbers.
---@param point trinity.PlanPoint
---@return number[]
function Growth.features(point)
  local list, used = {}, space.width(point) * point.pipeline * point.data
  for i, dimension in ipairs(dimensions) do
    local value = point[dimension[1]]
    if dimension[1] == 'devices' then value = used end
    if dimension.size then
      list[i] = math.log(value or 1) / math.log(2)
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

--- mean, deviation: of the logarithm of a growth, before anything is known.
---@param mean number
---@param deviation number
function Growth.new(mean, deviation)
  return setmetatable({ prior = mean, deviation = deviation, expected = 0, epoch = 0 }, Growth):clear()
end

function Growth:clear()
  -- rows: of the Cholesky factor of the kernel of the inputs; values, ones: what it makes of observations and of 1
  self.inputs, self.observed, self.rows, self.values, self.ones, self.known = {}, {}, {}, {}, {}, {}
  return self
end

-- The kernel between the inputs and a point, divided by the factor: as many entries as there are observations.
local function projected(self, features, list)
  for i = #list + 1, #self.rows do
    local row, sum = self.rows[i], kernel(self.inputs[i], features, self.inputs[1])
    for k = 1, i - 1 do sum = sum - row[k] * list[k] end
    list[i] = sum / row[i]
  end
  return list
end

local function append(self, features, value)
  local n = #self.rows + 1
  local row = projected(self, features, {})
  self.inputs[n], self.observed[n] = features, value
  local rest, a, b = kernel(features, features, self.inputs[1]) + noise, value, 1
  for k = 1, n - 1 do
    rest, a, b = rest - row[k] ^ 2, a - row[k] * self.values[k], b - row[k] * self.ones[k]
  end
  row[n] = math.sqrt(rest)
  self.rows[n], self.values[n], self.ones[n] = row, a / row[n], b / row[n]
  local plain, squares = prior_weight * self.prior, prior_weight * self.deviation ^ 2
  for i = 1, n do plain = plain + self.observed[i] end
  self.mean = plain / (n + prior_weight)
  for i = 1, n do squares = squares + (self.values[i] - self.mean * self.ones[i]) ^ 2 end
  self.scale = math.sqrt(squares / (n + prior_weight))
end

--- Adds an observation.
---@param features number[]
---@param growth number
function Growth:add(features, growth)
  if #self.rows == 2 * kept then
    local inputs, observed = self.inputs, self.observed
    self:clear()
    for i = kept + 1, 2 * kept do append(self, inputs[i], observed[i]) end
  end
  append(self, features, math.log(growth))
end

--- Adds what it expects itself, so that it expects less to learn nearby; forget() takes such observations back.
function Growth:expect(features)
  local mean = math.log(self:estimate(features, 0))
  append(self, features, mean)
  self.expected = self.expected + 1
end

function Growth:forget()
  for _ = 1, self.expected do
    for _, list in ipairs { self.inputs, self.observed, self.rows, self.values, self.ones } do table.remove(list) end
  end
  self.expected, self.epoch, self.least = 0, self.epoch + 1, #self.rows
end

--- By what a bound is multiplied for an estimate; never below 1.
---@param features number[]
---@param optimism number standard deviations below the mean
---@return number
function Growth:estimate(features, optimism)
  local known = self.known[features]
  if not known then
    known = {}
    self.known[features] = known
  elseif known.epoch ~= self.epoch then
    for i = #known, self.least + 1, -1 do known[i] = nil end
  end
  known.epoch = self.epoch
  projected(self, features, known)
  local mean, scale = self.mean or self.prior, self.scale or self.deviation
  local variance = #known > 0 and kernel(features, features, self.inputs[1]) or 1
  local sum = mean
  for i = 1, #known do
    sum, variance = sum + known[i] * (self.values[i] - mean * self.ones[i]), variance - known[i] ^ 2
  end
  return math.exp(math.max(0, sum - optimism * scale * math.sqrt(math.max(0, variance))))
end

return Growth
