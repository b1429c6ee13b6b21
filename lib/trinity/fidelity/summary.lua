-- Errors of predictions, as comparisons print them: told over measured less one, in percent.

local text = require 'trinity.base.text'

local summary = {}

--- Mean, median and worst size of relative errors, and their mean with signs.
---@param errors number[] told / measured - 1
---@return { count: integer, mean: number, median: number, worst: number, signed: number }
function summary.of(errors)
  local sizes, sum, signed = {}, 0, 0
  for i, e in ipairs(errors) do
    sizes[i], sum, signed = math.abs(e), sum + math.abs(e), signed + e
  end
  table.sort(sizes)
  local n = #sizes
  local median = n % 2 == 1 and sizes[(n + 1) / 2] or n > 0 and (sizes[n / 2] + sizes[n / 2 + 1]) / 2 or 0
  return { count = n, mean = sum / math.max(1, n), median = median, worst = sizes[n] or 0,
    signed = signed / math.max(1, n) }
end

--- An error in percent, with its sign; empty where there is none.
---@param e? number
---@return string
function summary.percent(e) return e and ('%+.1f %%'):format(100 * e) or '' end

--- Prints a table of groups: { name, errors } each.
---@param heading string
---@param groups table[]
function summary.print(heading, groups)
  local lines = {}
  for i, group in ipairs(groups) do
    local s = summary.of(group.errors)
    lines[i] = { group.name, ('%d'):format(s.count), ('%.1f %%'):format(100 * s.mean),
      ('%.1f %%'):format(100 * s.median), ('%.1f %%'):format(100 * s.worst), summary.percent(s.signed) }
  end
  print(heading)
  print(text.format_table({ '', 'rows', 'mean error', 'median', 'worst', 'mean, signed' }, lines))
  print ''
end

return summary
