-- How far predictions are from measurements: errors of rows and their bars, ranks within groups, the plan that a
-- planner would name, rows that pull a fit apart.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local statistics = require 'studies.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local errors = {}

-- Upper limits of the mean errors of rows left out, and of any row, by source: the first whose pattern a group has.
local bars = csv.read(core.home .. '/scripts/studies/fidelity/bars.csv', 'source', 'group', 'mean', 'worst')

--- The bar of a group, { mean, worst }; nil for none.
function errors.bar(source, group)
  local bar = util.find(bars, function(one) return one.source == source and group:find(one.group) end)
  return bar and { mean = tonumber(bar.mean), worst = tonumber(bar.worst) }
end

--- Whether errors { mean, worst } are beyond a bar.
function errors.missed(bar, found)
  return found.mean > bar.mean or bar.worst ~= nil and found.worst > bar.worst
end

--- How much slower the plan that is predicted fastest was than the fastest, as a part, of { predicted, measured }.
function errors.choice(pairs_of)
  local named = pairs_of[util.order_of(util.map(pairs_of, function(pair) return pair[1] end))[1]]
  return named[2] / math.min(unpack(util.map(pairs_of, function(pair) return pair[2] end))) - 1
end

--- Means over groups of at least `least` rows { predicted, measured, group = }: how many groups, tau, and the choice of
--- plan with its worst.
function errors.ranking(rows, least)
  local taus, choices = {}, {}
  for _, group in ipairs(util.grouped(rows, function(row) return row.group end)) do
    if #group >= least then taus[#taus + 1], choices[#choices + 1] = statistics.tau(group), errors.choice(group) end
  end
  local of_choices = statistics.summary(choices)
  return { groups = #choices, tau = statistics.mean(taus), choice = of_choices.mean, worst_choice = of_choices.worst }
end

--- A share as text, in percent.
function errors.percent(x) return x ~= x and '-' or ('%.1f %%'):format(100 * x) end

--- The same with its sign; empty where there is none.
function errors.signed(x) return x and ('%+.1f %%'):format(100 * x) or '' end

--- Errors of { name, error } entries (and of what they have more) by their names, sorted.
function errors.grouped(list)
  local groups = util.map(util.grouped(list, function(one) return one[1] end), function(group)
    return util.merged({ name = group.name, rows = util.map(group, function(one) return one[3] end) },
      util.map(group, function(one) return one[2] end))
  end)
  table.sort(groups, util.by 'name')
  return groups
end

--- A table of the errors of groups with these heads.
function errors.table(groups, heads)
  return text.format_table(util.joined({ '' }, heads), util.map(groups, function(group)
    local s = statistics.summary(group)
    local cells = { rows = ('%d'):format(s.count), ['mean error'] = errors.percent(s.mean),
      median = errors.percent(s.median), worst = errors.percent(s.worst), ['mean, signed'] = errors.signed(s.signed) }
    return util.joined({ group.name }, util.map(heads, function(head) return cells[head] end))
  end))
end

--- Prints the errors of groups and, of several, of all together without memory.
function errors.print(heading, groups)
  local times = util.filtered(groups, function(group) return not group.name:find ': memory$' end)
  local all = util.merged({ name = 'all' }, util.joined(unpack(times)))
  print(heading)
  print(errors.table(#groups > 1 and util.joined(groups, { all }) or groups, { 'rows', 'mean error', 'median', 'worst',
    'mean, signed' }) .. '\n')
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

--- The two rows of a group that pull its constants apart most, the one predicted too large first: of one network on
--- one kind of GPU, where some are, else of the group. { row, from, fitted, left_out } each.
local function apart(fit, left)
  local best
  for i, one in ipairs(fit.rows) do
    for j, other in ipairs(fit.rows) do
      local gap, same = fit[i] - fit[j], one.left_out == other.left_out
      local better = not best or same and not best.same or same == best.same and gap > best.gap
      if gap > 0 and (one.configuration or one) ~= (other.configuration or other) and better then
        best = { i, j, gap = gap, same = same }
      end
    end
  end
  return best and util.map(best, function(i)
    local row = fit.rows[i]
    return { row = row.id, from = row.from, fitted = fit[i], left_out = left[i] }
  end)
end

local function shares(list) return util.picked(statistics.summary(list), { 'mean', 'median', 'worst' }) end

--- The errors of cross-validation by group that fits.json keeps, of rows in the fit and left out: of the same groups.
function errors.recorded(fit, left)
  local found = {}
  for i, group in ipairs(left) do
    found[group.name] = { rows = #group, fitted = shares(fit[i]), left_out = shares(group),
      apart = apart(fit[i], group) }
  end
  return found
end

local function share_text(one)
  return one and table.concat(util.map({ one.mean, one.median, one.worst }, errors.percent), ', ') or ''
end

--- Prints the errors that the last fits left, by source and group of rows: of rows in the fit, and of rows left out.
function errors.show(recorded, as_json)
  if as_json then return print(json.encode(recorded)) end
  local cells, pulling = {}, {}
  for source, groups in util.sorted_pairs(recorded) do
    for group, one in util.sorted_pairs(groups) do
      local bar = errors.bar(source, group)
      local missed = bar and errors.missed(bar, one.left_out)
      cells[#cells + 1] = { source, group, ('%d'):format(one.rows), share_text(one.fitted), share_text(one.left_out),
        bar and errors.percent(bar.mean) or '', missed and 'missed' or bar and 'met' or '' }
      for _, row in ipairs(missed and one.apart or {}) do
        pulling[#pulling + 1] = { group, row.row, row.from or '', errors.signed(row.fitted),
          errors.signed(row.left_out) }
      end
    end
  end
  print(text.format_table({ 'source', 'rows of', 'rows', 'fitted', 'left out', 'bar', '' }, cells))
  print 'mean, median and worst error; left out: predicted by constants that were fitted to other networks or runs'
  if #pulling == 0 then return end
  print '\nrows that pull apart where a bar is missed: the errors that differ most, of one network where a group has'
  print 'such rows; no rate that both share brings both below half of the difference'
  print(text.format_table({ 'rows of', 'row', 'from', 'fitted', 'left out' }, pulling))
end

return errors
