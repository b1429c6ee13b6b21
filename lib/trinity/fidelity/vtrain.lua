-- trinity fidelity vtrain: training runs of GPT on 64 to 512 A100 that the authors of vTrain measured, and plans on one
-- machine whose times they put together, beside what evaluating the rows' strategies gives (vtrain_rows.lua says how a
-- row is read; the eight constants are trinity.cluster.calibration's).

local calibration = require 'trinity.cluster.calibration'
local core = require 'trinity.core'
local csv = require 'trinity.fidelity.csv'
local errors = require 'trinity.fidelity.errors'
local fit = require 'trinity.fidelity.fit'
local json = require 'trinity.base.json'
local order = require 'trinity.fidelity.order'
local picture = require 'trinity.fidelity.picture'
local rows_of = require 'trinity.fidelity.vtrain_rows'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local vtrain = {
  help = 'training runs of GPT on A100',
  options = {
    rows = { default = '', help = 'table of runs, or of what is asked (CSV)' },
    fit = { default = false, help = 'fits the constants to the rows and prints these' },
    left_out = { default = false, help = 'fits without each network in turn, and tells its rows' },
    save = { default = '', help = 'with --fit: the file for the constants' },
    cluster = { default = '',
      help = "Lua file of a function from a number of GPUs to a description of one's own cluster" },
    values = { default = '', help = "file that --save wrote, for one's own cluster" },
    picture = { default = '', help = 'told against given times, as PATH.svg and PATH.png' },
    steps = { default = 12, integer = true, min = 1, max = 100, help = 'of a fit, at most' },
    only = { default = '', help = 'with --fit: rows whose group has these words in its name' },
  },
}

local most_listed, rows_of_a_piece = 100, 64
--- Errors from which rows count by their size, not its square, fit by fit, each from where the one before ended: of
--- measured runs, and of composed times, which have no noise of runs but cells of a profile that are out of line.
local noises_of = { [false] = { 0.05 }, [true] = { 0.05, 0.01 } }
--- Rows of a group from which on it is ranked, and the difference from which on two are told apart (in logarithms).
local least_ranked, apart = 4, 0.05
local made_here = 'trinity fidelity vtrain --fit'
--- Sets of constants: of measured runs, and of vTrain's composed times.
local set_of = { [false] = 'a100_vtrain', [true] = 'a100_vtrain_composed' }

--- What a file of Lua returns. `data`: it is none of the user's scripts, and has no function to call.
local function returned_by(path, data)
  local chunk, why = util.load_file(path)
  if not chunk then util.fail('%s', why) end
  if data then setfenv(chunk, {}) end
  local ok, value = pcall(chunk)
  if not ok then util.fail('%s', tostring(value)) end
  return value
end

--- What describes one's own cluster; nil for vTrain's.
local function describer(path)
  if path == '' then return nil end
  local describe = returned_by(path)
  if type(describe) ~= 'function' then
    util.fail('%s: expected a function from a number of GPUs to a description, got %s', util.shortened(path),
      util.describe(describe))
  end
  return describe
end

--- Values that --save wrote of one's own cluster, and the groups that they were fitted to; without a file vTrain's.
local function own_values(path)
  if path == '' then return (calibration.fitted(set_of[false])), {} end
  local sets = returned_by(path, true)
  local own = type(sets) == 'table' and sets.own
  if type(own) ~= 'table' or type(own.values) ~= 'table' or type(own.rows) ~= 'table' then
    util.fail("%s: expected what 'fidelity vtrain --save' writes for one's own cluster", util.shortened(path))
  end
  for _, one in ipairs(calibration.constants()) do
    if type(own.values[one.name]) ~= 'number' then
      util.fail("%s: value '%s' is missing", util.shortened(path), one.name)
    end
  end
  return own.values, own.rows
end

--- Tells rows together; where that is refused one by one, so that a row that is costs none of the others.
local function tell_some(path, tell, list, values)
  fit.each_piece(list, rows_of_a_piece, 'rows', function(piece)
    local told = csv.attempt(tell, piece, values)
    for i, row in ipairs(piece) do
      if told then row.told_s = told[i]
      else
        local found, why = csv.attempt(tell, { row }, values)
        if found then row.told_s = found[1]
        else row.refused = ('%s: %s'):format(csv.place(path, row), why) end
      end
    end
    return piece
  end)
end

--- Rows that were come to before Ctrl-C.
local function reached_of(rows)
  local found = {}
  for _, row in ipairs(rows) do if row.told_s or row.refused then found[#found + 1] = row end end
  return found
end

--- Seconds of all rows, each by the constants of its kind, or on one's own cluster by its own.
local function tell_all(list, options)
  local tell = rows_of.teller(false, describer(options.cluster))
  if options.cluster ~= '' then return tell_some(options.rows, tell, list, (own_values(options.values))) end
  for _, composed in ipairs { false, true } do
    local own = {}
    for _, row in ipairs(list) do if row.composed == composed then own[#own + 1] = row end end
    tell_some(options.rows, tell, own, (calibration.fitted(set_of[composed])))
  end
end

--- The constants of a kind: composed times know no network and no other groups beside one, have the loss of kernels
--- of their own, and are put together with calls of collectives.
local function constants_of(composed)
  if not composed then return calibration.constants() end
  return calibration.constants { compute_efficiency = true, half_width = true, memory_efficiency = true,
    launch_s = true, dispatch_s = true, inside_share = true, loss_share = true, call_s = true }
end

--- Constants fitted to rows, all of one kind. How groups of composed times are ranked counts, too, pairs of them in the
--- other order as much as errors of all rows of that size. (Measured runs are of two groups.)
local function fitted_to(list, tell, steps)
  local composed = list[1].composed
  local values = calibration.fitted(set_of[composed])
  for i, noise in ipairs(noises_of[composed]) do
    local constants = util.map(constants_of(composed), function(one)
      return util.merged(one, { from = values[one.name] or one.start })
    end)
    values = fit.constants(constants, function(tried)
      local told = tell(list, tried)
      return util.map(list, function(row, k) return math.log(told[k] / row.measured_s) end)
    end, noise, steps, i > 1 and order.residuals(list, least_ranked, apart, 2 * #list / noise) or nil)
    if fit.stopping() then break end
  end
  return values
end

local function measured(list)
  local found = {}
  for _, row in ipairs(list) do if row.measured_s then found[#found + 1] = row end end
  return found
end

--- Names of the groups of rows, in their order, with how many rows each has.
local function groups_named(list)
  return util.map(errors.groups(list), function(group) return ('%s: %d rows'):format(group.name, #group.pairs) end)
end

--- The file that calibration.lua reads, with one set made anew.
local function fitted_file(name, values, rows)
  local before = name ~= 'own' and require 'trinity.cluster.calibration_fitted' or {}
  local all = util.merged(before, { [name] = { made = made_here, values = values, rows = rows } })
  local lines = { '-- Fitted sets of constants by name (calibration.lua has units and meanings), and the rows that '
    .. 'each was fitted to.', 'return {' }
  for set, entry in util.sorted_pairs(all) do
    lines[#lines + 1] = ("  %s = {\n    made = '%s',\n    rows = {"):format(set, entry.made)
    for _, row in ipairs(entry.rows) do lines[#lines + 1] = ("      '%s',"):format(row) end
    lines[#lines + 1] = '    },\n    values = {'
    for _, one in ipairs(calibration.constants(entry.values)) do
      lines[#lines + 1] = ('      %s = %.4g,'):format(one.name, entry.values[one.name])
    end
    lines[#lines + 1] = '    },\n  },'
  end
  return table.concat(lines, '\n') .. '\n}\n'
end

local function line_of(name, list)
  local all, ranking = errors.summary(util.map(list, function(row) return row.told_s / row.measured_s - 1 end)),
    errors.ranking(list, least_ranked)
  return { name, ('%d'):format(all.count), errors.percent(all.mean), errors.percent(all.median),
    errors.percent(all.worst), ranking.tau ~= ranking.tau and '-' or ('%.3f'):format(ranking.tau),
    errors.percent(ranking.choice), errors.percent(ranking.worst_choice) }
end

--- Prints what rows come to, network by network and together.
local function print_summary(heading, list)
  if #list == 0 then return end
  local lines, by, names = {}, {}, {}
  for _, row in ipairs(list) do
    if not by[row.model] then
      by[row.model] = {}
      names[#names + 1] = row.model
    end
    table.insert(by[row.model], row)
  end
  for _, name in ipairs(names) do lines[#lines + 1] = line_of(name, by[name]) end
  if #names > 1 then lines[#lines + 1] = line_of('all', list) end
  print(heading)
  print(text.format_table({ 'network', 'rows', 'mean error', 'median', 'worst', 'tau in groups', 'choice slower by',
    'worst choice' }, lines))
  print ''
end

local function print_rows(list)
  local lines = {}
  for _, row in ipairs(list) do
    lines[#lines + 1] = { ('%d'):format(row.number), ('%d'):format(row.hidden), ('%d'):format(row.gpus),
      ('%d x %d x %d'):format(row.tensor, row.pipeline, row.data), ('%d'):format(row.micro_batch),
      row.measured_s and ('%.3f'):format(row.measured_s) or '', ('%.3f'):format(row.told_s),
      row.measured_s and ('%+.1f %%'):format(100 * (row.told_s / row.measured_s - 1)) or '' }
  end
  print(text.format_table({ 'row', 'hidden', 'GPUs', 'tensor x pipeline x data', 'micro-batch', 'given s', 'told s',
    'off' }, lines))
  print ''
end

--- Draws rows with a time, network by network.
local function draw(path, list)
  picture.draw(path, util.map(list, function(row)
    return { group = row.model, given = row.measured_s, told = row.told_s }
  end), 'time in s')
end

--- Whether a row is of a group that its constants were fitted to.
local function served(row, options)
  local _, groups
  if options.cluster ~= '' then _, groups = own_values(options.values)
  else _, groups = calibration.fitted(set_of[row.composed]) end
  for _, group in ipairs(groups) do
    if group:find(row.group .. ':', 1, true) == 1 then return true end
  end
  return false
end

--- The rows of a file that can be told, all that it has, and what is told of them.
local function show(all, list, options)
  tell_all(list, options)
  all = reached_of(all)
  local data = { rows = util.map(all, function(row)
    return { predicted_s = row.told_s, refused = row.refused }
  end) }
  list = csv.accepted(all, options.json and function() print(json.encode(data)) end)
  run:result('vtrain', data)
  if options.json then return print(json.encode(data)) end
  if #list <= most_listed then print_rows(list) end
  local kinds = { { false, 'measured runs' }, { true, "agreement with vTrain's simulator (times put together, not "
    .. 'measured)' } }
  for _, kind in ipairs(kinds) do
    local fitted, predicted = {}, {}
    for _, row in ipairs(measured(list)) do
      if row.composed == kind[1] then table.insert(served(row, options) and fitted or predicted, row) end
    end
    print_summary(kind[2] .. ': rows that the constants were fitted to', fitted)
    print_summary(kind[2] .. ': predicted rows', predicted)
  end
  for _, line in ipairs(rows_of.assumptions) do print('assumed: ' .. line) end
  if options.picture ~= '' then draw(options.picture, list) end
end

--- Rows of one kind; refuses both together.
local function of_one_kind(list)
  for _, row in ipairs(list) do
    if row.composed ~= list[1].composed then
      util.fail('fits take measured runs (more than 8 GPUs) or composed times (up to 8), got both')
    end
  end
  return list
end

local function show_fit(list, options)
  local used = fit.only(of_one_kind(measured(list)), options.only, function(row) return row.group end)
  if #used == 0 then util.fail('no row to fit to: expected some with a time') end
  local tell = rows_of.teller(true, describer(options.cluster))
  local values, stopped = fit.keeping(function() return fitted_to(used, tell, options.steps) end)
  local set = options.cluster ~= '' and 'own' or set_of[used[1].composed]
  local written = fitted_file(set, values, groups_named(used))
  if options.save ~= '' then core.write_file(options.save, written) else io.write(written) end
  if stopped then return end
  for i, told in ipairs(tell(used, values)) do used[i].told_s = told end
  print_summary('rows that the constants were fitted to', used)
end

--- Every network told by constants that were fitted to the others.
local function leave_each_out(list, options)
  local used, names, told_rows = of_one_kind(measured(list)), {}, {}
  for _, row in ipairs(used) do names[row.model] = true end
  local tell = rows_of.teller(true, describer(options.cluster))
  local told = fit.each(util.sorted_keys(names), 'networks', function(name)
    local own, others = {}, {}
    for _, row in ipairs(used) do table.insert(row.model == name and own or others, row) end
    for i, told_s in ipairs(tell(own, fitted_to(others, tell, options.steps))) do own[i].told_s = told_s end
    return own
  end)
  for _, own in ipairs(told) do
    for _, row in ipairs(own) do told_rows[#told_rows + 1] = row end
  end
  run:result('vtrain', { left_out = util.map(told_rows, function(row)
    return { row = row.number, predicted_s = row.told_s }
  end) })
  print_summary('networks told by constants that were fitted to the others', told_rows)
end

function vtrain.run(options)
  if options.rows == '' then
    util.fail_usage("trinity fidelity vtrain: option '--rows' is missing: a table of runs (CSV)")
  end
  local all, list = rows_of.read(options.rows, not (options.fit or options.left_out)), {}
  for _, row in ipairs(all) do
    if options.cluster ~= '' then row.composed = false end
    if not row.refused then list[#list + 1] = row end
  end
  if options.fit then return show_fit(list, options) end
  if options.left_out then return leave_each_out(list, options) end
  return show(all, list, options)
end

--- The constants of this comparison with their values.
function vtrain.constants()
  local all = {}
  for _, composed in ipairs { false, true } do
    local values = calibration.fitted(set_of[composed])
    for _, one in ipairs(constants_of(composed)) do
      local name = ('%s.%s'):format(set_of[composed], one.name)
      all[#all + 1] = util.merged(one, { name = name, value = values[one.name] })
    end
  end
  return all
end

return vtrain
