-- What comparisons with measured runs share: predictions, the fit of constants, cross-validation, tables and files.
-- A source is a module with
--
--   name, help, options, quantity    words for messages; options beside those of runs.options
--   read(options, keep)              rows: { id, line, path, kind, group, left_out, measured, refused, assumed }
--   prediction(row, values, short)   { predicted = in the unit of `measured`, memory_bytes }; values: of a fit
--   json(rows)                       what --json prints
--   head, line(row)                  the table of rows
--   parameters(rows)                 what a fit may change: { id, kind or runtime or source, name, and a prior }
--
-- Errors are predicted / measured - 1. `left_out` names what is left out of a fit together.

local calibration = require 'trinity.fidelity.calibration'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local errors = require 'trinity.fidelity.errors'
local fit = require 'trinity.base.fit'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local picture = require 'trinity.fidelity.picture'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local runs = {}

--- Options of every source.
runs.options = {
  fit = { default = false, help = 'fits the constants to the rows and prints these' },
  cross_validate = { default = false, help = 'fits without each network in turn, and predicts that one' },
  only = { default = '', help = 'with --fit, --cross_validate: rows whose group has these words in its name; other '
    .. 'constants stay' },
  parameters = { default = '', help = 'with --fit, --cross_validate: what is fitted has these words in its name '
    .. "('h100.', 'composer-2023.')" },
  more_rows = { default = {}, help = 'with --fit, --cross_validate: SOURCE:FILE, rows of another source that are '
    .. 'fitted, too' },
  save = { default = '', help = 'with --fit, --cross_validate: the file for constants and errors' },
  picture = { default = '', help = 'predicted against measured values, as PATH.svg and PATH.png' },
  script = { default = '', help = 'prints this row as a Lua script that predicts the same' },
}

local noise, most_steps, rounds, step = 0.05, 60, 2, 0.05

--- Predictions of rows over worker processes, those of one configuration once; in their order. keep: what cannot be
--- predicted is { refused }, with the sentence; else it is an error.
local function predict(source, rows, values, short, keep)
  local keys, unique, at = {}, {}, {}
  for i, row in ipairs(rows) do
    keys[i] = row.key and row:key() or tostring(i)
    if not at[keys[i]] then
      unique[#unique + 1] = i
      at[keys[i]] = #unique
    end
  end
  local prediction = parallel_map(unique, function(i)
    local row = rows[i]
    local found, why = csv.attempt((row.source or source).prediction, row, values, short)
    if found then return found end
    why = row.path and not why:find(row.path, 1, true) and ('%s: %s'):format(csv.place(row.path, row), why) or why
    if keep then return { refused = why } end
    util.fail('%s', why)
  end, { quiet = not short })
  return util.map(rows, function(_, i) return prediction[at[keys[i]]] end)
end

--- Logarithms of predicted over measured: of time or speed, and of memory where a source measures it.
local function logs_of(row, prediction)
  local list = { math.log(prediction.predicted / row.measured) }
  if row.measured_bytes then list[2] = math.log(prediction.memory_bytes / row.measured_bytes) end
  return list
end

local function measured(rows)
  local found = {}
  for _, row in ipairs(rows) do if row.measured then found[#found + 1] = row end end
  return found
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
    local moved = calibration.with(values, one, calibration.value(values, one) * math.exp(step))
    local list = told_at(moved, function(row) return calibration.holds(row, one) end)
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
  local start, count, parameters = {}, {}, {}
  for _, one in ipairs(all) do
    local serves = false
    for _, entry in ipairs(entries) do serves = serves or entry.slopes[one.id] ~= nil end
    if serves then parameters[#parameters + 1] = one end
  end
  for _, one in ipairs(parameters) do start[one.id] = calibration.value(values, one) end
  for _, entry in ipairs(entries) do
    local key = entry.row.configuration or entry.row.id
    count[key] = (count[key] or 0) + 1
  end
  local priors = util.map(parameters, function(one)
    return util.merged(one, { name = one.id, from = start[one.id] })
  end)
  local fitted = fit.constants(priors, function(tried)
    local list = {}
    for _, entry in ipairs(entries) do
      local weight = 1 / math.sqrt(count[entry.row.configuration or entry.row.id])
      for k, log in ipairs(entry.logs) do
        for id, slopes in util.sorted_pairs(entry.slopes) do log = log + slopes[k] * math.log(tried[id] / start[id]) end
        list[#list + 1] = weight * log
      end
    end
    return list
  end, noise, most_steps)
  for _, one in ipairs(parameters) do values = calibration.with(values, one, fitted[one.id]) end
  return values
end

--- What a fit may change, of that what the option asks for.
local function parameters_of(source, rows, words)
  local found, names = {}, {}
  for _, one in ipairs(source.parameters(rows)) do
    names[#names + 1] = one.id
    if one.id:find(words, 1, true) then found[#found + 1] = one end
  end
  if #found == 0 then
    util.fail("option '--parameters': none has %s in its name (there are: %s)", util.quoted(words),
      table.concat(names, ', '))
  end
  return found
end

--- Values fitted to rows, in rounds, for slopes change as constants move.
local function fitted_to(source, rows, words)
  local parameters, values = parameters_of(source, rows, words), calibration.values()
  for _ = 1, rounds do
    local entries = fit.attempt(function() return profiled(source, rows, values, parameters) end)
    if not entries or fit.stopping() then break end
    values = moved_along(entries, values, parameters)
  end
  return values
end

local function groups_of(rows, prediction)
  local list, by = {}, {}
  local function add(name, e)
    if not by[name] then
      by[name] = { name = name, errors = {} }
      list[#list + 1] = by[name]
    end
    table.insert(by[name].errors, e)
  end
  for i, row in ipairs(rows) do
    add(row.group, prediction[i].predicted / row.measured - 1)
    if row.measured_bytes then add(row.group .. ': memory', prediction[i].memory_bytes / row.measured_bytes - 1) end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function print_rows(source, rows, prediction)
  local head = { 'row', 'network', 'GPUs', 'plan', 'measured', 'predicted', 'off', 'memory' }
  print(text.format_table(head, util.map(rows, function(row, i)
    local t = prediction[i]
    return { row.id, row.network_name or '', row.gpus_text or '', row.plan_text or '',
      row.measured and ('%.6g'):format(row.measured) or '', ('%.6g'):format(t.predicted),
      errors.signed(row.measured and t.predicted / row.measured - 1),
      t.memory_bytes and ('%.1f GB'):format(t.memory_bytes / 1e9) or '' }
  end)))
  print('measured, predicted: ' .. source.quantity)
end

local function print_assumptions(source, rows, prediction)
  print ''
  for _, line in ipairs(source.assumptions or {}) do print('assumed: ' .. line) end
  for i, row in ipairs(rows) do
    local list = util.merged({}, row.assumed)
    local again = prediction[i].recompute
    if again and row.recompute and again ~= row.recompute then
      list[#list + 1] = again .. ' recomputation: with less the plan does not fit'
    end
    if #list > 0 then print(('%s: assumed: %s'):format(row.id, table.concat(list, '; '))) end
  end
end

local function draw(source, path, rows, prediction)
  picture.draw(path, util.map(rows, function(row, i)
    return { group = row.group, measured = row.measured, predicted = prediction[i].predicted }
  end), source.quantity, source.decades)
end

local function show_fit(source, rows, options)
  local used = fit.only(measured(rows), options.only, function(row) return row.group end)
  if #used == 0 then util.fail('no row to fit to: expected some with a value') end
  local values, stopped = fit.keeping(function() return fitted_to(source, used, options.parameters) end)
  local written = calibration.text(values, source.name, used, options.only ~= '' or options.parameters ~= '')
  if options.save ~= '' then core.write_file(options.save, written) else io.write(written) end
  if stopped then return end
  errors.print('rows that the constants were fitted to', groups_of(used, predict(source, used, values, true)))
end

--- Rows by what is left out together, in order.
local function parts_of(rows)
  local list, by = {}, {}
  for _, row in ipairs(rows) do
    if not by[row.left_out] then
      by[row.left_out] = {}
      list[#list + 1] = by[row.left_out]
    end
    table.insert(by[row.left_out], row)
  end
  return list
end

--- Every network predicted by constants that were fitted to the others, along slopes at the calibrated ones.
local function cross_validate(source, rows, options)
  rows = measured(rows)
  local used, values = fit.only(rows, options.only, function(row) return row.group end), calibration.values()
  local parameters = parameters_of(source, used, options.parameters)
  local entries = profiled(source, rows, values, parameters)
  local prediction = {}
  fit.each(parts_of(used), 'networks', function(own)
    local others = {}
    for _, entry in ipairs(entries) do
      if entry.row.left_out ~= own[1].left_out then others[#others + 1] = entry end
    end
    local start = calibration.without(values, own, others, parameters)
    local moved = #others > 0 and moved_along(others, start, parameters) or start
    for i, one in ipairs(predict(source, own, moved, true)) do prediction[own[i]] = one end
  end)
  local kept, list = {}, {}
  for _, row in ipairs(used) do if prediction[row] then kept[#kept + 1], list[#list + 1] = row, prediction[row] end end
  run:result(source.name, { left_out = util.map(kept, function(row, i)
    return { row = row.id, predicted = list[i].predicted }
  end) })
  local groups = groups_of(kept, list)
  if options.save ~= '' then
    core.write_file(options.save, calibration.text(values, source.name, kept, true, { left_out = groups,
      fitted = groups_of(kept, predict(source, kept, nil, true)), prediction = list }))
  end
  if options.picture ~= '' then draw(source, options.picture, kept, list) end
  if not source.lists_no_rows then print_rows(source, kept, list) end
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
  local rows = {}
  for _, row in ipairs(all) do if not row.refused then rows[#rows + 1] = row end end
  local prediction = fit.each_piece(rows, 8 * core.threads(), 'rows', function(piece)
    return predict(source, piece, nil, false, true)
  end)
  for i, one in ipairs(prediction) do rows[i].refused, rows[i].prediction = one.refused, one end
  local reached = {}
  for _, row in ipairs(all) do if row.refused or row.prediction then reached[#reached + 1] = row end end
  local data = source.json(reached)
  rows = csv.accepted(reached, options.json and function() print(json.encode(data)) end)
  prediction = util.map(rows, function(row) return row.prediction end)
  run:result(source.name, data)
  if options.json then return print(json.encode(data)) end
  if not source.lists_no_rows then print_rows(source, rows, prediction) end
  print_assumptions(source, rows, prediction)
  print ''
  local served = calibration.rows(source.name)
  for _, heading in ipairs { 'rows that the constants were fitted to', 'predicted rows' } do
    local own, own_predictions = {}, {}
    for i, row in ipairs(rows) do
      if row.measured and (served[row.served or row.id] or false) == (heading ~= 'predicted rows') then
        own[#own + 1], own_predictions[#own_predictions + 1] = row, prediction[i]
      end
    end
    if #own > 0 then errors.print(heading, groups_of(own, own_predictions)) end
  end
  if source.ranked then errors.print_ranking(rows, prediction) end
  if options.picture ~= '' then draw(source, options.picture, rows, prediction) end
end

--- Runs a comparison with the options that the command line gave.
---@param source table
---@param options table<string, any>
function runs.run(source, options)
  local fits = options.fit or options.cross_validate
  local rows = source.read(options, true)
  if fits then rows = csv.accepted(rows) end
  for _, word in ipairs(options.more_rows) do
    local name, path = word:match '^(%w+):(.+)$'
    local other = name and ({ published = true, vtrain = true })[name] and require('trinity.fidelity.' .. name)
    if not other or not fits then
      util.fail_usage("option '--more_rows': expected published:FILE or vtrain:FILE with --fit or --cross_validate, "
        .. 'got %s', util.quoted(word))
    end
    for _, row in ipairs(other.read(util.merged(options, { rows = path }))) do
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
