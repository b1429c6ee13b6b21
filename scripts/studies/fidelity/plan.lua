-- Plans of `trinity plan` compared with plans that others ran. --rows: published plans of dense networks
-- (plan_published.lua). --runs: plans that were measured (plan_measured.lua).

local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local measured = require 'studies.fidelity.plan_measured'
local published = require 'studies.fidelity.plan_published'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local plan = {
  help = 'plans that trinity plan finds, compared with plans that others ran',
  shared = { rows = 'llm-published/throughput.csv' }, instead = 'runs',
  options = {
    rows = { default = '', help = 'table of published speeds (CSV)' },
    runs = { default = '', help = "vTrain's table of measured runs (CSV): the plan named in each group" },
    whole = { default = false, help = 'with --rows: searches all dimensions; else those that rows state, all others as '
      .. 'published' },
    tasks = { default = 20000000, integer = true, min = 1,
      help = 'operators that one simulation runs at most, in all micro-batches: larger rows are not predicted' },
    simulations = { default = 24, integer = true, min = 1, max = 2 ^ 20, help = 'of every search, at most' },
  },
}

local most_slower, most_ratio, least_rows = 0.02, 1.05, 2

local function print_published(list)
  print(text.format_table({ 'rows', 'network', 'GPUs', 'published', 'best', 'ratio', 'fits' }, util.map(list,
    function(one)
      local ids = #one.ids > 2 and ('%s and %d'):format(one.id, #one.ids - 1) or table.concat(one.ids, ', ')
      local own = { ids, one.model, ('%d'):format(one.gpus), 'too large', '', '', '' }
      if one.too_large then return own end
      return util.merged(own, { [4] = ('%.4g s'):format(one.published_s), [5] = ('%.4g s'):format(one.best_s),
        [6] = ('%.3f'):format(one.ratio), [7] = one.fits and 'yes' or 'no' })
    end)))
  for _, one in ipairs(list) do
    if not one.too_large and one.ratio > most_ratio then
      print(('%s: %s\n  published: %s\n  best:      %s\n  the published is %s'):format(one.id,
        table.concat(one.differs, ', '), one.published, one.best, one.why))
    end
  end
end

local function print_groups(list)
  print(text.format_table({ 'group', 'runs', 'named: tensor x pipeline x data', 'micro-batch', 'took', 'fastest',
    'slower' }, util.map(list, function(one)
    return { one.group, ('%d'):format(one.rows), ('%d x %d x %d'):format(one.tensor, one.pipeline, one.data),
      ('%d'):format(one.micro_batch), ('%.4g s'):format(one.measured_s), ('%.4g s'):format(one.fastest_s),
      errors.percent(one.slower) }
  end)))
end

function plan.run(options)
  local data = { rows = options.rows ~= '' and published.compare(options.rows, options) or {},
    groups = options.runs ~= '' and measured.groups(options.runs, least_rows) or {}, within = 0, compared = 0,
    groups_within = 0 }
  for _, one in ipairs(data.rows) do -- counted by rows, not by configurations
    if not one.too_large then data.compared = data.compared + #one.ids end
    if not one.too_large and one.ratio <= most_ratio then data.within = data.within + #one.ids end
  end
  for _, one in ipairs(data.groups) do
    if one.slower <= most_slower then data.groups_within = data.groups_within + 1 end
  end
  run:result('plan', data)
  if options.json then return print(json.encode(data)) end
  if options.rows ~= '' then
    print_published(data.rows)
    print(('%d of %d rows: the published plan takes at most %.2f times the best'):format(data.within, data.compared,
      most_ratio))
  end
  if options.runs == '' then return end
  print_groups(data.groups)
  print(('%d of %d groups: the plan named took at most %g %% longer than the fastest'):format(data.groups_within,
    #data.groups, 100 * most_slower))
end

return plan
