-- trinity fidelity plan: what `trinity plan` names beside what others ran. --rows: published plans of dense networks
-- (plan_published.lua). --runs: plans that were measured (plan_measured.lua).

local errors = require 'trinity.fidelity.errors'
local json = require 'trinity.base.json'
local measured = require 'trinity.fidelity.plan_measured'
local published = require 'trinity.fidelity.plan_published'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local plan = {
  help = 'plans that trinity plan names, beside those that others ran',
  options = {
    rows = { default = '', help = 'table of published speeds (CSV)' },
    runs = { default = '', help = "vTrain's table of measured runs (CSV): the plan named in each group" },
    whole = { default = false, help = 'with --rows: searches all dimensions; else those that rows state, all others as '
      .. 'published' },
    tasks = { default = 20000000, integer = true, min = 1,
      help = 'operators that one simulation runs at most, in all micro-batches: rows with more are not told' },
    simulations = { default = 24, integer = true, min = 1, max = 2 ^ 20, help = 'of every search, at most' },
  },
}

local most_slower, most_ratio, least_rows = 0.02, 1.05, 2

local function print_published(list)
  print(text.format_table({ 'rows', 'network', 'GPUs', 'published', 'best', 'ratio', 'fits' }, util.map(list,
    function(one)
      local ids = #one.ids > 2 and ('%s and %d'):format(one.id, #one.ids - 1) or table.concat(one.ids, ', ')
      if one.too_large then return { ids, one.model, ('%d'):format(one.gpus), 'too large', '', '', '' } end
      return { ids, one.model, ('%d'):format(one.gpus), ('%.4g s'):format(one.published_s), ('%.4g s'):format(
        one.best_s), ('%.3f'):format(one.ratio), one.fits and 'yes' or 'no' }
    end)))
  for _, one in ipairs(list) do
    if not one.too_large and one.ratio > most_ratio then
      print(('%s: %s'):format(one.id, table.concat(one.differs, ', ')))
      print(('  published: %s'):format(one.published))
      print(('  best:      %s'):format(one.best))
      print(('  the published is %s'):format(one.why))
    end
  end
end

--- How many rows (not configurations) are within the bar, and how many were told.
local function within(list)
  local rows, near = 0, 0
  for _, one in ipairs(list) do
    if not one.too_large then rows = rows + #one.ids end
    if not one.too_large and one.ratio <= most_ratio then near = near + #one.ids end
  end
  return near, rows
end

local function print_groups(list)
  print(text.format_table({ 'group', 'runs', 'named: tensor x pipeline x data', 'micro-batch', 'took', 'fastest',
    'slower' }, util.map(list, function(one)
    return { one.group, ('%d'):format(one.rows), ('%d x %d x %d'):format(one.tensor, one.pipeline, one.data),
      ('%d'):format(one.micro_batch), ('%.4g s'):format(one.measured_s), ('%.4g s'):format(one.fastest_s),
      errors.percent(one.slower) }
  end)))
end

local function near_groups(list)
  local near = 0
  for _, one in ipairs(list) do if one.slower <= most_slower then near = near + 1 end end
  return near
end

function plan.run(options)
  if options.rows == '' and options.runs == '' then
    util.fail_usage "trinity fidelity plan: option '--rows' or '--runs' is missing: a table (CSV)"
  end
  local compared = options.rows ~= '' and published.compare(options.rows, options) or {}
  local groups = options.runs ~= '' and measured.groups(options.runs, least_rows) or {}
  local near, rows = within(compared)
  local data = { rows = compared, groups = groups, within = near, compared = rows,
    groups_within = near_groups(groups) }
  run:result('plan', data)
  if options.json then return print(json.encode(data)) end
  if options.rows ~= '' then
    print_published(compared)
    print(('%d of %d rows: the published plan takes at most %.2f times the best'):format(near, rows, most_ratio))
  end
  if options.runs == '' then return end
  print_groups(groups)
  print(('%d of %d groups: the plan named took at most %g %% longer than the fastest'):format(near_groups(groups),
    #groups, 100 * most_slower))
end

return plan
