-- Whether two methods of a comparison differ by more than chance: a paired test over seeds.

local statistics = require 'trinity.base.statistics'

local significance = {}

significance.test = 'Wilcoxon signed-rank'

-- Which of two runs is better, as a difference: of their rewards where both fit, infinite where one does. 0: neither.
local function difference(a, b)
  local fits_a, fits_b = a.metrics.feasible, b.metrics.feasible
  if fits_a and fits_b then return a.reward - b.reward end
  return fits_a == fits_b and 0 or fits_a and math.huge or -math.huge
end

--- The test of two rows of a comparison, over the seeds that both have; nil where neither uses random numbers, or no
--- seed has both.
function significance.of(comparison, a, b)
  local differences = {}
  if a.fixed and b.fixed then return nil end
  for seed = comparison.seed, comparison.seed + comparison.seeds - 1 do
    local of_a, of_b = a.by_seed[seed], b.by_seed[seed]
    if a.fixed then of_a = a.runs[1] end
    if b.fixed then of_b = b.runs[1] end
    if of_a and of_b then differences[#differences + 1] = difference(of_a, of_b) end
  end
  if #differences == 0 then return nil end
  local found = statistics.signed_rank(differences)
  found.test = significance.test
  return found
end

--- The tests of every row against the best one, as a line, by the names of the table; nil with one seed or
--- nothing to test.
function significance.text(comparison, best)
  local function name_of(row) return row.label or row.method end
  if comparison.seeds == 1 or not best then return nil end
  local parts, first = {}, nil
  for _, row in ipairs(comparison.rows) do
    local test = row ~= best and significance.of(comparison, row, best)
    if test then
      first = first or test
      parts[#parts + 1] = ('%s %.3g%s'):format(name_of(row), test.p,
        test.pairs < first.pairs and (' (%d pairs)'):format(test.pairs) or '')
    end
  end
  if not first then return nil end
  return ('p against %s: %s (%s, two-sided, %s, %d seeds in pairs, never below %.3g%s)'):format(name_of(best),
    table.concat(parts, ', '), significance.test, first.exact and 'exact' or 'normal approximation', first.pairs,
    first.least_p, #parts > 1 and (', not corrected for %d tests'):format(#parts) or '')
end

return significance
