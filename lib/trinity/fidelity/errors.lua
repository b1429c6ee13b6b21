-- How far predictions are from measurements: errors of rows, ranks within groups, the plan that a planner would name.

local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local errors = {}

--- Of relative errors (predicted / measured - 1): how many, mean, median and worst size, and the mean with signs.
---@param list number[]
---@return { count: integer, mean: number, median: number, worst: number, signed: number }
function errors.summary(list)
  local sizes = util.map(list, math.abs)
  if #sizes == 0 then return { count = 0, mean = 0 / 0, median = 0 / 0, worst = 0 / 0, signed = 0 / 0 } end
  return { count = #sizes, mean = statistics.mean(sizes), median = util.median(sizes),
    worst = math.max(unpack(sizes)), signed = statistics.mean(list) }
end

--- Kendall's tau-b of pairs { predicted, measured }; nil where one side is all equal (Kendall, Biometrika 33(3), 1945).
---@param pairs_of { [1]: number, [2]: number }[]
---@return number?
function errors.tau(pairs_of)
  local sum, predicted, measured = 0, 0, 0
  local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
  for i = 1, #pairs_of do
    for j = i + 1, #pairs_of do
      local a, b = sign(pairs_of[i][1] - pairs_of[j][1]), sign(pairs_of[i][2] - pairs_of[j][2])
      sum, predicted, measured = sum + a * b, predicted + a * a, measured + b * b
    end
  end
  if predicted == 0 or measured == 0 then return nil end
  return sum / math.sqrt(predicted * measured)
end

--- How much slower the plan that is predicted fastest was than the fastest, as a part.
---@param pairs_of { [1]: number, [2]: number }[]
---@return number
function errors.choice(pairs_of)
  local named, fastest = 1, math.huge
  for i, pair in ipairs(pairs_of) do
    if pair[1] < pairs_of[named][1] then named = i end
    fastest = math.min(fastest, pair[2])
  end
  return pairs_of[named][2] / fastest - 1
end

--- Rows with fields predicted_s, measured_s and group by group, in the order of their first rows: { name, pairs }.
---@param rows table[]
---@return { name: string, pairs: number[][] }[]
function errors.groups(rows)
  local list, by = {}, {}
  for _, row in ipairs(rows) do
    if row.measured_s then
      if not by[row.group] then
        by[row.group] = { name = row.group, pairs = {} }
        list[#list + 1] = by[row.group]
      end
      table.insert(by[row.group].pairs, { row.predicted_s, row.measured_s })
    end
  end
  return list
end

--- Means over groups of at least `least` rows: how many groups, tau, and the choice of plan with its worst.
---@param rows table[]
---@param least integer
---@return { groups: integer, tau: number, choice: number, worst_choice: number }
function errors.ranking(rows, least)
  local taus, choices = {}, {}
  for _, group in ipairs(errors.groups(rows)) do
    if #group.pairs >= least then
      taus[#taus + 1] = errors.tau(group.pairs)
      choices[#choices + 1] = errors.choice(group.pairs)
    end
  end
  if #choices == 0 then return { groups = 0, tau = 0 / 0, choice = 0 / 0, worst_choice = 0 / 0 } end
  return { groups = #choices, tau = #taus > 0 and statistics.mean(taus) or 0 / 0, choice = statistics.mean(choices),
    worst_choice = math.max(unpack(choices)) }
end

--- A share as text, in percent.
function errors.percent(x) return x ~= x and '-' or ('%.1f %%'):format(100 * x) end

--- The same with its sign; empty where there is none.
function errors.signed(x) return x and ('%+.1f %%'):format(100 * x) or '' end

--- Prints a table of groups: { name, errors } each.
function errors.print(heading, groups)
  local all = { name = 'all', errors = {} }
  for _, group in ipairs(groups) do
    for _, e in ipairs(group.name:find ': memory$' and {} or group.errors) do table.insert(all.errors, e) end
  end
  groups = util.merged({}, groups)
  if #groups > 1 then groups[#groups + 1] = all end
  print(heading)
  print(text.format_table({ '', 'rows', 'mean error', 'median', 'worst', 'mean, signed' }, util.map(groups,
    function(group)
      local s = errors.summary(group.errors)
      return { group.name, ('%d'):format(s.count), errors.percent(s.mean), errors.percent(s.median),
        errors.percent(s.worst), errors.signed(s.signed) }
    end)))
  print ''
end

--- Prints how plans of a group (field `ranked`) are ordered: tau, and how much slower the plan that is named is.
function errors.print_ranking(rows, predictions)
  local list = {}
  for i, row in ipairs(rows) do
    if row.measured then
      list[#list + 1] = { group = row.ranked, predicted_s = predictions[i].predicted, measured_s = row.measured }
    end
  end
  local found = errors.ranking(list, 4)
  if found.groups == 0 then return end
  print(('order within %d groups of plans: tau %.3f; the plan predicted fastest is %s slower than the fastest, at most '
    .. '%s'):format(found.groups, found.tau, errors.percent(found.choice), errors.percent(found.worst_choice)))
end

return errors
