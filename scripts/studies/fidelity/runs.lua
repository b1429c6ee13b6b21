-- Comparisons with measured runs: predictions, fits of constants, cross-validation, tables. A source is a module with
--
--   name, help, quantity             words for messages
--   read(options)                    rows: { id, place, kind, group, left_out, measured, refused, assumed }
--   prediction(row, values)          { predicted = in the unit of `measured`, memory_bytes }; values: of a fit
--   json                             what --json prints of a row and its prediction, in a list called `list`
--   priors                           of its other parameters (scripts/studies/fidelity/fitted.lua)
--
-- row.title heads the script of its case; assumptions.csv has what rows leave open. Errors: predicted / measured - 1.
-- `left_out` names what is left out of a fit together, `configuration` rows that differ in their measurements alone.

local case = require 'studies.fidelity.case'
local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local csv = require 'studies.rows'
local errors = require 'studies.fidelity.errors'
local fitted = require 'studies.fidelity.fitted'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local run = require 'trinity.runs'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local runs = {}

local noise, step = 0.05, 0.05

local function configuration_of(row) return row.configuration or row end

--- Predictions of rows over worker processes, once per configuration; in their order. keep: a row that cannot be
--- predicted becomes { refused }, with the sentence; else it is an error.
local function predict(rows, values, keep)
  local of, groups = {}, util.grouped(rows, configuration_of)
  local found = parallel_map(groups, function(same)
    local row = same[1]
    local prediction, why = csv.attempt(row.source.prediction, row, values)
    if prediction then return prediction end
    why = why:gsub('^problem:strategy: ', '')
    why = row.place and not why:find(row.place, 1, true) and ('%s: %s'):format(row.place, why) or why
    return keep and { refused = why } or util.fail('%s', why)
  end, { quiet = keep })
  for i, same in ipairs(groups) do of[same.name] = found[i] end
  return util.map(rows, function(row) return of[configuration_of(row)] end)
end

--- Logarithms of predicted over measured: of time or speed, and of memory where a source measures it.
local function logs_of(row, prediction)
  return { math.log(prediction.predicted / row.measured),
    row.measured_bytes and math.log(prediction.memory_bytes / row.measured_bytes) or nil }
end

local function with(rows, field) return util.filtered(rows, function(row) return row[field] ~= nil end) end

--- Errors of rows at `values` for fitted.solution, with their row: two of a row with memory. Rows of one configuration
--- share the weight of one.
local function profiled(rows, values, parameters)
  local entries, of, alike = {}, {}, {}
  for _, same in ipairs(util.grouped(rows, configuration_of)) do alike[same.name] = #same end
  for i, prediction in ipairs(predict(rows, values)) do
    local row = rows[i]
    of[row] = util.map(logs_of(row, prediction), function(log)
      return { row = row, log = log, slopes = {}, weight = 1 / math.sqrt(alike[configuration_of(row)]) }
    end)
    entries = util.joined(entries, of[row])
  end
  for _, one in ipairs(parameters) do
    local own = util.filtered(rows, function(row) return fitted.holds(row, one) end)
    local there = fitted.with(values, one, fitted.value(values, one) * math.exp(step))
    for i, prediction in ipairs(predict(own, there)) do
      for k, log in ipairs(logs_of(own[i], prediction)) do
        local entry = of[own[i]][k]
        entry.slopes[one.id] = (log - entry.log) / step
      end
    end
  end
  return entries
end

local function serves(one, entries)
  return util.find(entries, function(entry) return entry.slopes[one.id] ~= nil end) ~= nil
end

--- Values that bring profiled rows nearest to what was measured, along their slopes. What no row goes by stays.
local function moved_along(entries, values, parameters)
  local serving = util.map(util.filtered(parameters, function(one) return serves(one, entries) end),
    function(one) return util.merged(one, { from = fitted.value(values, one) }) end)
  local found = fitted.solution(serving, entries, noise)
  for _, one in ipairs(serving) do values = fitted.with(values, one, found[one.id]) end
  return values
end

--- Rows whose group has `words` in its name, in order. Raises an error that names the groups if there are none.
local function chosen(rows, words)
  local found = util.filtered(rows, function(row) return row.group:find(words, 1, true) end)
  if #rows > 0 and #found == 0 then
    local names = util.sorted_keys(util.set(util.map(rows, function(row) return row.group end)))
    util.fail("option '--only': no group of rows has %s in its name (groups: %s)", util.quoted(words),
      table.concat(names, '; '))
  end
  return found
end

--- The parameters of a fit that the option selects.
local function parameters_of(rows, words)
  local all, wanted = fitted.parameters(rows), #words > 0 and util.words(words) or { '' }
  local found = util.filtered(all, function(one)
    return util.find(wanted, function(word) return one.id:find(word, 1, true) end) ~= nil
  end)
  return #found > 0 and found or util.fail("option '--parameters': none has %s in its name (there are: %s)",
    util.quoted(words), table.concat(util.map(all, function(one) return one.id end), ', '))
end

--- Errors of rows by their groups, and of memory apart.
local function groups_of(rows, prediction)
  local list = {}
  for i, row in ipairs(rows) do
    local found = prediction and prediction[i] or row.prediction
    list[#list + 1] = { row.group, found.predicted / row.measured - 1, row }
    if row.measured_bytes then
      list[#list + 1] = { row.group .. ': memory', found.memory_bytes / row.measured_bytes - 1, row }
    end
  end
  return errors.grouped(list)
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
  for _, line in ipairs(csv.read(core.home .. '/scripts/studies/fidelity/assumptions.csv', 'source', 'assumption')) do
    if line.source == source.name then print('assumed: ' .. line.assumption) end
  end
  for _, row in ipairs(rows) do
    local list, again = util.merged({}, row.assumed), row.prediction.recompute
    if again and row.recompute and again ~= row.recompute then
      list[#list + 1] = again .. ' recomputation: with less the plan does not fit'
    end
    if #list > 0 then print(('%s: assumed: %s'):format(row.id, table.concat(list, '; '))) end
  end
end

local function show_fit(source, rows, options)
  local used = chosen(with(rows, 'measured'), options.only)
  if #used == 0 then util.fail('no row to fit to: expected some with a value') end
  local values, parameters = fitted.values(), parameters_of(used, options.parameters)
  local _, stopped = fitted.each({ 1, 2 }, 'rounds of the fit', function() -- slopes change as constants move
    values = moved_along(profiled(used, values, parameters), values, parameters)
  end, 'the fit ended early (%s) with the best so far; it cannot be resumed')
  fitted.save(options.save, values, source.name, used, options.only ~= '' or options.parameters ~= '')
  if stopped then return end
  errors.print('rows that the constants were fitted to', groups_of(used, predict(used, fitted.rounded(values))))
end

--- Every network predicted by constants that were fitted to the others, along slopes at the calibrated ones. A
--- parameter that holds for rows that are left out, and for none of the others, is where fits start.
local function cross_validate(source, rows, options)
  rows = with(rows, 'measured')
  local used, values = chosen(rows, options.only), fitted.values()
  local parameters = parameters_of(used, options.parameters)
  --- Rows whose prediction changes with a fitted parameter, at least with one of their kind of GPU or their source.
  local function served(list, at_least)
    return util.filtered(list, function(row)
      return util.find(parameters, function(one)
        return (not at_least or one.kind or one.source) and fitted.holds(row, one)
      end) ~= nil
    end)
  end
  used = served(used)
  local entries = profiled(rows, values, parameters)
  fitted.each(util.grouped(used, function(row) return row.left_out end), 'networks', function(own)
    local others = util.filtered(entries, function(entry) return entry.row.left_out ~= own.name end)
    local start = values
    for _, one in ipairs(parameters) do
      local left = util.find(own, function(row) return fitted.holds(row, one) end)
      if left and not serves(one, others) then start = fitted.with(start, one, one.start) end
    end
    for i, one in ipairs(predict(own, moved_along(others, start, parameters))) do own[i].prediction = one end
  end)
  local reached = with(used, 'prediction')
  run:result(source.name, { left_out = util.map(reached, function(row)
    return { row = row.id, predicted = row.prediction.predicted }
  end) })
  if options.save ~= '' then
    local refitted = served(reached, true)
    fitted.save(options.save, values, source.name, refitted, true,
      errors.recorded(groups_of(refitted, predict(refitted)), groups_of(refitted)))
  end
  print_rows(source, reached)
  print ''
  errors.print('every network predicted by constants that were fitted to the others', groups_of(reached))
end

local function print_script(source, rows, id)
  local row = util.find(rows, function(one) return one.id == id end)
    or util.fail("option '--script': no row %s", util.unknown(id, util.map(rows, function(one) return one.id end)))
  if row.refused then util.fail('%s', row.refused) end
  if not row.title then util.fail("option '--script': %s has no script for its rows", source.name) end
  io.write(case.script(row.case, case.evaluate(row.case), row.title))
end

local function show(source, all, options)
  local rows, choice = util.filtered(all, function(row) return not row.refused end), constants.read(options.constants)
  local values = choice.sources and fitted.values(choice) or nil
  local prediction = fitted.each_piece(rows, 8 * core.threads(), 'rows', function(piece)
    return predict(piece, values, true)
  end)
  for i, one in ipairs(prediction) do rows[i].refused, rows[i].prediction = one.refused, one end
  local reached = util.filtered(all, function(row) return row.refused or row.prediction end)
  local data = { [source.list or 'rows'] = util.map(reached, function(row)
    local one, told = util.merged(row.prediction, { id = row.id, refused = row.refused }), {}
    for ours, name in util.sorted_pairs(source.json) do told[name] = one[ours] end
    return told
  end) }
  rows = csv.accepted(reached, options.json and function() print(json.encode(data)) end)
  run:result(source.name, data)
  if options.json then return print(json.encode(data)) end
  print_rows(source, rows)
  print_assumptions(source, rows)
  print ''
  local known = fitted.rows(source.name, options.constants)
  for _, heading in ipairs { 'rows that the constants were fitted to', 'predicted rows' } do
    local own = util.filtered(with(rows, 'measured'), function(row)
      return (known[row.served or row.id] or false) == (heading ~= 'predicted rows')
    end)
    if #own > 0 then errors.print(heading, groups_of(own)) end
  end
  if source.ranked then errors.print_ranking(rows) end
end

--- Rows of a source, and of --more-rows.
local function read(source, options)
  local fits = options.fit or options.cross_validate
  local function rows_of(one, given)
    local rows = fits and csv.accepted(one.read(given)) or one.read(given)
    for _, row in ipairs(rows) do row.source = one end
    return rows
  end
  local rows = rows_of(source, options)
  for _, word in ipairs(options.more_rows) do
    local name, path = word:match '^(%w+):(.+)$'
    if not fits or name ~= 'published' and name ~= 'vtrain' then
      util.fail_usage("option '--more-rows': expected published:FILE or vtrain:FILE with --fit or --cross-validate, "
        .. 'got %s', util.quoted(word))
    end
    rows = util.joined(rows, rows_of(require('studies.fidelity.' .. name), util.merged(options, { rows = path })))
  end
  return rows
end

--- Runs a comparison with the options that the command line gave.
function runs.run(source, options)
  if options.fit and options.cross_validate then
    util.fail_usage "option '--cross-validate': cannot be combined with --fit, which fits all rows"
  end
  if (options.fit or options.cross_validate) and options.constants ~= 'calibrated' and options.constants ~= '' then
    util.fail_usage "option '--constants': cannot be combined with a fit, which starts at the calibrated ones"
  end
  local rows = read(source, options)
  if options.script ~= '' then return print_script(source, rows, options.script) end
  return (options.fit and show_fit or options.cross_validate and cross_validate or show)(source, rows, options)
end

return runs
