-- An exact Gaussian process for the logarithm of a factor, with a Cholesky factor that grows with observations.

local Process = {}
Process.__index = Process

-- Weight of the prior in observations; number of latest observations that are kept if there are more than twice as
-- many.
local prior_weight, kept = 4, 64

--- kernel(a, b, from): covariance of two inputs; from: the first observed input. mean, deviation: prior mean and
--- standard deviation of the logarithm. noise: variance of one observation, if the kernel of an input is about 1.
function Process.new(kernel, mean, deviation, noise)
  return setmetatable({ kernel = kernel, prior = mean, deviation = deviation, noise = noise, expected = 0, epoch = 0 },
    Process):clear()
end

function Process:clear()
  -- rows: of the Cholesky factor of the kernel of the inputs; values, ones: what it makes of observations and of 1
  self.inputs, self.observed, self.rows, self.values, self.ones = {}, {}, {}, {}, {}
  self.known = setmetatable({}, { __mode = 'k' }) -- by input, as long as the caller keeps it
  return self
end

-- Returns the kernel between the inputs and a point, divided by the factor: one entry per observation.
local function projected(self, input, list)
  for i = #list + 1, #self.rows do
    local row, sum = self.rows[i], self.kernel(self.inputs[i], input, self.inputs[1])
    for k = 1, i - 1 do sum = sum - row[k] * list[k] end
    list[i] = sum / row[i]
  end
  return list
end

local function append(self, input, value)
  local n = #self.rows + 1
  local row = projected(self, input, {})
  self.inputs[n], self.observed[n] = input, value
  local rest, a, b = self.kernel(input, input, self.inputs[1]) + self.noise, value, 1
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

function Process:add(input, factor)
  if #self.rows == 2 * kept then
    local inputs, observed = self.inputs, self.observed
    self:clear()
    for i = kept + 1, 2 * kept do append(self, inputs[i], observed[i]) end
  end
  append(self, input, math.log(factor))
end

--- Adds its own expectation as an observation, which lowers the uncertainty nearby; forget() removes such observations.
function Process:expect(input)
  local mean = math.log(self:estimate(input, 0))
  append(self, input, mean)
  self.expected = self.expected + 1
end

function Process:forget()
  for _ = 1, self.expected do
    for _, list in ipairs { self.inputs, self.observed, self.rows, self.values, self.ones } do table.remove(list) end
  end
  self.expected, self.epoch, self.least = 0, self.epoch + 1, #self.rows
end

--- Returns the expected factor less `optimism` standard deviations, at least 1. Equal tables (by identity) are equal
--- inputs.
function Process:estimate(input, optimism)
  local known = self.known[input]
  if not known then
    known = {}
    self.known[input] = known
  elseif known.epoch ~= self.epoch then
    for i = #known, self.least + 1, -1 do known[i] = nil end
  end
  known.epoch = self.epoch
  projected(self, input, known)
  local mean, scale = self.mean or self.prior, self.scale or self.deviation
  local variance = #known > 0 and self.kernel(input, input, self.inputs[1]) or 1
  local sum = mean
  for i = 1, #known do
    sum, variance = sum + known[i] * (self.values[i] - mean * self.ones[i]), variance - known[i] ^ 2
  end
  return math.exp(math.max(0, sum - optimism * scale * math.sqrt(math.max(0, variance))))
end

return Process
