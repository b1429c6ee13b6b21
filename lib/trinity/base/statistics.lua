-- Means, deviations and a paired test of significance.

local util = require 'trinity.base.util'

local statistics = {}

function statistics.mean(list)
  local sum = 0
  for i = 1, #list do sum = sum + list[i] end
  return sum / #list
end

--- Returns the sample standard deviation (divisor n - 1), exactly 0 of equal numbers; nil for a single number.
function statistics.deviation(list)
  if #list < 2 then return nil end
  local shifted = util.map(list, function(x) return x - list[1] end)
  local mean, sum = statistics.mean(shifted), 0
  for i = 1, #list do sum = sum + (shifted[i] - mean) ^ 2 end
  return math.sqrt(sum / (#list - 1))
end

-- Returns twice the ranks of absolute values; equal ones get the mean of their ranks.
local function doubled_ranks(list)
  local order, ranks, first = util.order_of(util.map(list, math.abs)), {}, 1
  while first <= #order do
    local last = first
    while last < #order and math.abs(list[order[last + 1]]) == math.abs(list[order[first]]) do last = last + 1 end
    for i = first, last do ranks[order[i]] = first + last end
    first = last + 1
  end
  return ranks
end

-- The complementary error function: Press et al., Numerical Recipes, erfcc, to 1.2e-7 of its value.
local chebyshev = { 0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
  1.00002368, -1.26551223 }

local function erfc(x)
  local t, sum = 1 / (1 + 0.5 * x), 0
  for _, c in ipairs(chebyshev) do sum = sum * t + c end
  return t * math.exp(-x * x + sum)
end

-- Returns P(twice W <= least) for equally likely signs, by counting the ways to each sum.
local function exact_tail(ranks, least)
  local chance, top = { [0] = 1 }, 0
  for _, rank in ipairs(ranks) do
    top = top + rank
    for sum = top, 0, -1 do
      chance[sum] = 0.5 * ((chance[sum] or 0) + (sum >= rank and chance[sum - rank] or 0))
    end
  end
  local tail = 0
  for sum = 0, least do tail = tail + chance[sum] end
  return tail
end

local most_exact = 100 -- differences; for more, the normal approximation is used

--- Returns the two-sided p-value of Wilcoxon's signed-rank test for paired differences (infinite ones are the largest;
--- zeros are ignored): { p, pairs, least_p = minimum of p for this number, exact }. Exact up to 100
--- differences, with ties.
function statistics.signed_rank(differences)
  local list = util.filtered(differences, function(difference) return difference ~= 0 end)
  local n, ranks, positive, all, squares = #list, doubled_ranks(list), 0, 0, 0
  for i, rank in ipairs(ranks) do
    if list[i] > 0 then positive = positive + rank end
    all, squares = all + rank, squares + rank * rank
  end
  local least, exact = math.min(positive, all - positive), n <= most_exact
  local tail
  if n == 0 then tail = 0.5
  elseif exact then tail = exact_tail(ranks, least)
  else tail = 0.5 * erfc((all / 2 - least) / math.sqrt(squares / 4) / math.sqrt(2)) end
  return { p = math.min(1, 2 * tail), pairs = #differences, least_p = math.min(1, 2 ^ (1 - #differences)),
    exact = exact }
end

return statistics
