-- Statistics of studies, in addition to trinity.base.statistics: relative errors and ranks.

local util = require 'trinity.base.util'

local statistics = setmetatable({}, { __index = require 'trinity.base.statistics' })

--- Returns statistics of relative errors: count, mean, median and maximum of absolute values, and the signed mean.
function statistics.summary(list)
  local sizes = util.map(list, math.abs)
  if #sizes == 0 then return { count = 0, mean = 0 / 0, median = 0 / 0, worst = 0 / 0, signed = 0 / 0 } end
  return { count = #sizes, mean = statistics.mean(sizes), median = util.median(sizes),
    worst = math.max(unpack(sizes)), signed = statistics.mean(list) }
end

--- Returns Kendall's tau-b of pairs; nil if one side is constant (Kendall, Biometrika 33(3), 1945).
function statistics.tau(pairs_of)
  local sum, first, second = 0, 0, 0
  local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
  for i = 1, #pairs_of do
    for j = i + 1, #pairs_of do
      local a, b = sign(pairs_of[i][1] - pairs_of[j][1]), sign(pairs_of[i][2] - pairs_of[j][2])
      sum, first, second = sum + a * b, first + a * a, second + b * b
    end
  end
  if first == 0 or second == 0 then return nil end
  return sum / math.sqrt(first * second)
end

return statistics
