-- How far predictions are from measurements: errors of rows, ranks within groups, the plan that a planner would name.

local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local errors = {}

--- How much slower the plan that is predicted fastest was than the fastest, as a part, of { predicted, measured }.
function errors.choice(pairs_of)
  local named, fastest = 1, math.huge
  for i, pair in ipairs(pairs_of) do
    if pair[1] < pairs_of[named][1] then named = i end
    fastest = math.min(fastest, pair[2])
  end
  return pairs_of[named][2] / fastest - 1
end

--- Means over groups of at least `least` rows { predicted, measured, group = }: how many groups, tau, and the choice of
--- plan with its worst.
function errors.ranking(rows, least)
  local taus, choices = {}, {}
  for _, group in ipairs(util.grouped(rows, function(row) return row.group end)) do
    if #group >= least then
      taus[#taus + 1], choices[#choices + 1] = statistics.tau(group), errors.choice(group)
    end
  end
  local of_choices = statistics.summary(choices)
  return { groups = #choices, tau = #taus > 0 and statistics.mean(taus) or 0 / 0, choice = of_choices.mean,
    worst_choice = of_choices.worst }
end

--- A share as text, in percent.
function errors.percent(x) return x ~= x and '-' or ('%.1f %%'):format(100 * x) end

--- The same with its sign; empty where there is none.
function errors.signed(x) return x and ('%+.1f %%'):format(100 * x) or '' end

function errors.print(heading, groups)
  local all, list = { name = 'all' }, util.merged({}, groups)
  for _, group in ipairs(groups) do
    for _, e in ipairs(group.name:find ': memory$' and {} or group) do table.insert(all, e) end
  end
  if #groups > 1 then list[#list + 1] = all end
  print(heading)
  print(text.format_table({ '', 'rows', 'mean error', 'median', 'worst', 'mean, signed' }, util.map(list,
    function(group)
      local s = statistics.summary(group)
      return { group.name, ('%d'):format(s.count), errors.percent(s.mean), errors.percent(s.median),
        errors.percent(s.worst), errors.signed(s.signed) }
    end)))
  print ''
end

--- Prints how plans of a group (field `ranked`) are ordered: tau, and how much slower the plan that is named is.
function errors.print_ranking(rows)
  local list = {}
  for _, row in ipairs(rows) do
    if row.measured then list[#list + 1] = { row.prediction.predicted, row.measured, group = row.ranked } end
  end
  local found = errors.ranking(list, 4)
  if found.groups == 0 then return end
  print(('order within %d groups of plans: tau %.3f; the plan predicted fastest is %s slower than the fastest, at most '
    .. '%s'):format(found.groups, found.tau, errors.percent(found.choice), errors.percent(found.worst_choice)))
end

return errors
