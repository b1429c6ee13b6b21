-- Shared code of comparisons with measured runs: predictions, the fit of constants, cross-validation, tables and files.
-- A source is a module with
--
--   name, help, options, quantity    words for messages; options in addition to runs.options
--   read(options)                    rows: { id, line, path, kind, group, left_out, measured, refused, assumed }
--   prediction(row, values, short)   { predicted = in the unit of `measured`, memory_bytes }; values: of a fit
--   json(row)                        what --json prints of a row, in a list called `list` (default 'rows')
--   priors                           of its other parameters (scripts/studies/fidelity/fitted.lua)
--   assumptions, script(row)         what rows leave open; a row as a script
--
-- Errors are predicted / measured - 1. `left_out` names what is left out of a fit together.

local fitted = require 'studies.fidelity.fitted'
local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local errors = require 'studies.fidelity.errors'
local fit = require 'studies.fidelity.fit'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local plot = require 'trinity.report.plot'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local runs = {}

--- Options of every source.
runs.options = {
  fit = { default = false, help = 'fits the constants to the rows and prints these' },
  cross_validate = { default = false, help = 'fits without each network in turn, and predicts that one' },
  only = { default = '', help = 'with --fit, --cross-validate: rows whose group has these words in its name; other '
    .. 'constants stay' },
  parameters = { default = '', help = 'with --fit, --cross-validate: what is fitted has one of these words, between '
    .. "commas, in its name ('h100.', 'composer-2023.,deepspeed')" },
  more_rows = { default = {}, help = 'with --fit, --cross-validate: SOURCE:FILE, rows of another source that are '
    .. 'fitted, too' },
  save = { default = '', help = 'with --fit, --cross-validate: the file for constants; rows and errors go to '
    .. 'FILE.json' },
  picture = { default = '', help = 'predicted against measured values, as PATH.svg and PATH.png' },
  script = { default = '', help = 'prints this row as a Lua script that predicts the same' },
}

local noise, most_steps, rounds, step = 0.05, 60, 2, 0.05

--- Predictions of rows over worker processes, once per configuration; in their order. keep: a row that cannot be
--- predicted becomes { refused }, with the sentence; else it is an error.
local function predict(source, rows, values, short, keep)
  local groups = util.grouped(rows, function(row) return row.configuration or row end)
  local found = parallel_map(groups, function(same)
    local row = same[1]
    local prediction, why = csv.attempt((row.source or source).prediction, row, values, short)
    if prediction then return prediction end
    why = why:gsub('^problem:strategy: ', '')
    why = row.path and not why:find(row.path, 1, true) and ('%s: %s'):format(csv.place(row.path, row), why) or why
    if keep then return { refused = why } end
    util.fail('%s', why)
  end, { quiet = not short })
  local of = {}
  for i, same in ipairs(groups) do
    for _, row in ipairs(same) do of[row] = found[i] end
  end
  return util.map(rows, function(row) return of[row] end)
end

--- Logarithms of predicted over measured: of time or speed, and of memory where a source measures it.
local function logs_of(row, prediction)
  local list = { math.log(prediction.predicted / row.measured) }
  if row.measured_bytes then list[2] = math.log(prediction.memory_bytes / row.measured_bytes) end
  return list
end

local function with(rows, field, without)
  return util.filtered(rows, function(row) return (row[field] ~= nil) ~= (without or false) end)
end

--- Rows with logarithms at `values` and their slopes by every parameter: { row, logs, slopes = { id = list } }.
local function profiled(source, rows, values, parameters)
  local function told_at(tried, holds)
    local own, list = {}, {}
    for _, row in ipairs(rows) do if holds(row) then own[#own + 1] = row end end
    for i, prediction in ipairs(predict(source, own, tried, true)) do list[own[i]] = logs_of(own[i], prediction) end
    return list
  end
  local base = told_at(values, function() return true end)
  local found = util.map(rows, function(row) return { row = row, logs = base[row], slopes = {} } end)
  for _, one in ipairs(parameters) do
    local moved = fitted.with(values, one, fitted.value(values, one) * math.exp(step))
    local list = told_at(moved, function(row) return fitted.holds(row, one) end)
    for _, entry in ipairs(found) do
      entry.slopes[one.id] = list[entry.row] and util.map(list[entry.row], function(log, k)
        return (log - entry.logs[k]) / step
      end)
    end
  end
  return found
end

--- Values that bring profiled rows nearest to what was measured, along their slopes. What no row goes by stays.
local function moved_along(entries, values, all)
  local start, weight, parameters = {}, {}, {}
  for _, one in ipairs(all) do
    local serves = util.find(entries, function(entry) return entry.slopes[one.id] ~= nil end) ~= nil
    if serves then
      start[one.id] = fitted.value(values, one)
      parameters[#parameters + 1] = util.merged(one, { name = one.id, from = start[one.id], field = one.name })
    end
  end
  for _, same in ipairs(util.grouped(entries, function(one) return one.row.configuration or one.row.id end)) do
    for _, entry in ipairs(same) do weight[entry] = 1 / math.sqrt(#same) end
  end
  local found = fit.constants(parameters, function(tried)
    local list = {}
    for _, entry in ipairs(entries) do
      for k, log in ipairs(entry.logs) do
        for id, slopes in util.sorted_pairs(entry.slopes) do log = log + slopes[k] * math.log(tried[id] / start[id]) end
        list[#list + 1] = weight[entry] * log
      end
    end
    return list
  end, noise, most_steps)
  for _, one in ipairs(parameters) do
    values = fitted.with(values, util.merged(one, { name = one.field }), found[one.id])
  end
  return values
end

--- The parameters of a fit that the option selects.
local function parameters_of(rows, words)
  local found, all = {}, fitted.parameters(rows)
  local wanted = #words > 0 and util.words(words) or { '' }
  for _, one in ipairs(all) do
    local fits = util.find(wanted, function(word) return one.id:find(word, 1, true) end) ~= nil
    if fits then found[#found + 1] = one end
  end
  if #found == 0 then
    util.fail("option '--parameters': none has %s in its name (there are: %s)", util.quoted(words),
      table.concat(util.map(all, function(one) return one.id end), ', '))
  end
  return found
end

--- Values fitted to rows, in rounds, for slopes change as constants move.
local function fitted_to(source, rows, words)
  local parameters, values = parameters_of(rows, words), fitted.values()
  for _ = 1, rounds do
    local entries = fit.attempt(function() return profiled(source, rows, values, parameters) end)
    if not entries or fit.stopping() then break end
    values = moved_along(entries, values, parameters)
  end
  return values
end

--- Errors of rows by their groups, and of memory apart, sorted by name; `rows`: whose they are.
local function groups_of(rows, prediction)
  local list = {}
  for i, row in ipairs(rows) do
    local found = prediction and prediction[i] or row.prediction
    list[#list + 1] = { found.predicted / row.measured - 1, row.group, row }
    if row.measured_bytes then
      list[#list + 1] = { found.memory_bytes / row.measured_bytes - 1, row.group .. ': memory', row }
    end
  end
  local groups = util.map(util.grouped(list, function(one) return one[2] end), function(group)
    return util.merged({ name = group.name, rows = util.map(group, function(one) return one[3] end) },
      util.map(group, function(one) return one[1] end))
  end)
  table.sort(groups, function(a, b) return a.name < b.name end)
  return groups
end

local function print_rows(source, rows)
  if source.lists_no_rows then return end
  local head = { 'row', 'network', 'GPUs', 'plan', 'measured', 'predicted', 'off', 'memory' }
  print(text.format_table(head, util.map(rows, function(row)
    local t = row.prediction
    return { row.id, row.network_name or '', row.gpus_text or '', row.plan_text or '',
      row.measured and ('%.6g'):format(row.measured) or '', ('%.6g'):format(t.predicted),
      errors.signed(row.measured and t.predicted / row.measured - 1),
      t.memory_bytes and ('%.1f GB'):format(t.memory_bytes / 1e9) or '' }
  end)))
  print('measured, predicted: ' .. source.quantity)
end

local function print_assumptions(source, rows)
  print ''
  for _, line in ipairs(source.assumptions or {}) do print('assumed: ' .. line) end
  for _, row in ipairs(rows) do
    local list, again = util.merged({}, row.assumed), row.prediction.recompute
    if again and row.recompute and again ~= row.recompute then
      list[#list + 1] = again .. ' recomputation: with less the plan does not fit'
    end
    if #list > 0 then print(('%s: assumed: %s'):format(row.id, table.concat(list, '; '))) end
  end
end

--- Plots PATH.svg and PATH.png of rows with a measured value: one point per row, one series per group.
local function draw(source, path, rows)
  if path == '' then return end
  rows = with(rows, 'measured')
  if #rows == 0 then util.fail('no picture: no row has a measured value') end
  local series = util.map(util.grouped(rows, function(row) return row.group end), function(group)
    return { name = group.name, points = util.map(group, function(row)
      return { row.measured, row.prediction.predicted }
    end) }
  end)
  local drawn, reason = plot.scatter(path, { series = series, x = 'measured ' .. source.quantity,
    y = 'predicted ' .. source.quantity, width = 700, height = 650, log_x = source.decades, log_y = source.decades })
  print(drawn and ('picture: %s'):format(drawn) or 'no picture: ' .. reason)
end

local function show_fit(source, rows, options)
  local used = fit.only(with(rows, 'measured'), options.only, function(row) return row.group end)
  if #used == 0 then util.fail('no row to fit to: expected some with a value') end
  local values, stopped = fit.keeping(function() return fitted_to(source, used, options.parameters) end)
  fitted.save(options.save, values, source.name, used, options.only ~= '' or options.parameters ~= '')
  if stopped then return end
  errors.print('rows that the constants were fitted to',
    groups_of(used, predict(source, used, fitted.rounded(values))))
end

--- Every network predicted by constants that were fitted to the others, along slopes at the calibrated ones.
local function cross_validate(source, rows, options)
  rows = with(rows, 'measured')
  local used, values = fit.only(rows, options.only, function(row) return row.group end), fitted.values()
  local parameters = parameters_of(used, options.parameters)
  --- Whether a row's prediction changes with a fitted parameter, at least with one of its kind of GPU or its source.
  local function is_served(row, at_least)
    return util.find(parameters, function(one)
      return (not at_least or one.kind or one.source) and fitted.holds(row, one)
    end) ~= nil
  end
  local function served(list, at_least)
    return util.filtered(list, function(row) return is_served(row, at_least) end)
  end
  used = served(used)
  local entries = profiled(source, rows, values, parameters)
  fit.each(util.grouped(used, function(row) return row.left_out end), 'networks', function(own)
    local others = util.filtered(entries, function(entry) return entry.row.left_out ~= own.name end)
    local start = fitted.without(values, own, others, parameters)
    local moved = #others > 0 and moved_along(others, start, parameters) or start
    for i, one in ipairs(predict(source, own, moved, true)) do own[i].prediction = one end
  end)
  local reached = with(used, 'prediction')
  run:result(source.name, { left_out = util.map(reached, function(row)
    return { row = row.id, predicted = row.prediction.predicted }
  end) })
  local groups = groups_of(reached)
  if options.save ~= '' then
    local refitted = served(reached, true)
    fitted.save(options.save, values, source.name, refitted, true, { left_out = groups_of(refitted),
      fitted = groups_of(refitted, predict(source, refitted, nil, true)) })
  end
  draw(source, options.picture, reached)
  print_rows(source, reached)
  print ''
  errors.print('every network predicted by constants that were fitted to the others', groups)
end

local function print_script(source, rows, id)
  for _, row in ipairs(rows) do
    if row.id == id then
      if row.refused then util.fail('%s', row.refused) end
      if not source.script then util.fail("option '--script': %s has no script for its rows", source.name) end
      return io.write(source.script(row))
    end
  end
  util.fail("option '--script': no row %s", util.unknown(id, util.map(rows, function(row) return row.id end)))
end

local function show(source, all, options)
  local rows, choice = with(all, 'refused', true), constants.read(options.constants)
  local values = choice.sources and fitted.values(choice) or nil
  local prediction = fit.each_piece(rows, 8 * core.threads(), 'rows', function(piece)
    return predict(source, piece, values, false, true)
  end)
  for i, one in ipairs(prediction) do rows[i].refused, rows[i].prediction = one.refused, one end
  local reached = util.filtered(all, function(row) return row.refused or row.prediction end)
  local data = { [source.list or 'rows'] = util.map(reached, source.json) }
  rows = csv.accepted(reached, options.json and function() print(json.encode(data)) end)
  run:result(source.name, data)
  if options.json then return print(json.encode(data)) end
  print_rows(source, rows)
  print_assumptions(source, rows)
  print ''
  local served = fitted.rows(source.name, options.constants)
  for _, heading in ipairs { 'rows that the constants were fitted to', 'predicted rows' } do
    local own = util.filtered(with(rows, 'measured'), function(row)
      return (served[row.served or row.id] or false) == (heading ~= 'predicted rows')
    end)
    if #own > 0 then errors.print(heading, groups_of(own)) end
  end
  if source.ranked then errors.print_ranking(rows) end
  draw(source, options.picture, rows)
end

--- Runs a comparison with the options that the command line gave.
function runs.run(source, options)
  local fits = options.fit or options.cross_validate
  if options.fit and options.cross_validate then
    util.fail_usage "option '--cross-validate': cannot be combined with --fit, which fits all rows"
  end
  if fits and options.constants ~= 'calibrated' and options.constants ~= '' then
    util.fail_usage "option '--constants': cannot be combined with a fit, which starts at the calibrated ones"
  end
  local rows = source.read(options)
  if fits then rows = csv.accepted(rows) end
  for _, word in ipairs(options.more_rows) do
    local name, path = word:match '^(%w+):(.+)$'
    local other = name and ({ published = true, vtrain = true })[name] and require('studies.fidelity.' .. name)
    if not other or not fits then
      util.fail_usage("option '--more-rows': expected published:FILE or vtrain:FILE with --fit or --cross-validate, "
        .. 'got %s', util.quoted(word))
    end
    for _, row in ipairs(csv.accepted(other.read(util.merged(options, { rows = path })))) do
      row.source = other
      rows[#rows + 1] = row
    end
  end
  if options.script ~= '' then return print_script(source, rows, options.script) end
  if options.fit then return show_fit(source, rows, options) end
  if options.cross_validate then return cross_validate(source, rows, options) end
  return show(source, rows, options)
end

return runs
