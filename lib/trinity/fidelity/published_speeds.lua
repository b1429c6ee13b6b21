-- trinity fidelity published --rows: published training speeds, told by problem:evaluate of each row's strategy
-- (published_row.lua reads rows, published_step.lua has the problem, published_constants.lua what is fitted).

local constants = require 'trinity.fidelity.published_constants'
local core = require 'trinity.core'
local csv = require 'trinity.fidelity.csv'
local fit = require 'trinity.fidelity.fit'
local json = require 'trinity.base.json'
local parallel_map = require 'trinity.parallel'
local parts = require 'trinity.fidelity.published_parts'
local picture = require 'trinity.fidelity.picture'
local published_row = require 'trinity.fidelity.published_row'
local published_step = require 'trinity.fidelity.published_step'
local run = require 'trinity.runs'
local summary = require 'trinity.fidelity.summary'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local speeds = {}

local noise, most_steps, rounds = 0.05, 60, 2

--- What published_step.predict says of rows, once for each configuration; values_of(row) gives constants. short: as
--- fits take them; 'parts': likewise, with `parts` of the step.
---@param rows table[]
---@param values_of fun(row: table): table<string, number>
---@param short? 'short'|'parts'
---@param keep? boolean what cannot be told is { refused }, with the sentence; else it is an error
---@return table[]
function speeds.tell(rows, values_of, short, keep)
  local keys, unique, at = {}, {}, {}
  for i, row in ipairs(rows) do
    local values = {}
    for name, value in util.sorted_pairs(values_of(row)) do values[#values + 1] = ('%s=%.9g'):format(name, value) end
    keys[i] = published_row.key(row) .. ' ' .. table.concat(values, ' ')
    if not at[keys[i]] then
      unique[#unique + 1] = i
      at[keys[i]] = #unique
    end
  end
  local told = parallel_map(unique, function(i)
    local row = rows[i]
    local values = values_of(row)
    local folded, shares = published_step.folded(row), nil
    local found, why = csv.attempt(published_step.predict, row, values, nil, short == 'parts'
      and function(problem, recompute) shares = parts.of(folded, problem, values, recompute) end or nil, short ~= nil)
    if not found then
      why = ('%s: %s'):format(csv.place(row.path, row), why)
      if keep then return { refused = why } end
      util.fail('%s', why)
    end
    found.parts = shares
    return found
  end, { quiet = short ~= 'parts' })
  return util.map(rows, function(_, i) return told[at[keys[i]]] end)
end

--- Rows that constants can be fitted to: measured ones, by kind of GPU.
local function measured(rows, family, serves)
  local found = {}
  for _, row in ipairs(rows) do
    if row.measured and (not family or row.family == family) and (not serves or serves(row)) then
      found[#found + 1] = row
    end
  end
  return found
end

--- Weights of rows: those of one configuration count as the root of how many there are.
local function weights_of(rows)
  local keys, count = util.map(rows, published_row.key), {}
  for _, key in ipairs(keys) do count[key] = (count[key] or 0) + 1 end
  return util.map(keys, function(key) return 1 / math.sqrt(count[key]) end)
end

--- Constants of a kind of GPU that bring `told` (priced with `before`, with parts) nearest to what was measured; those
--- that `serves` does not say stay.
---@param family string
---@param rows table[] of that kind
---@param told table[] of speeds.tell, in the order of the rows
---@param before table<string, number>
---@param serves? fun(name: string): boolean?
---@return table<string, number>
function speeds.refit(family, rows, told, before, serves)
  local weights, list = weights_of(rows), constants.list(family, serves)
  if #list == 0 then return before end
  return util.merged(before, fit.constants(list, function(values)
    local after = util.merged(before, values)
    return util.map(rows, function(row, i)
      local factor = parts.factor(row, told[i].parts, before, after)
      return weights[i] * math.log(told[i].tokens_per_s_per_gpu / factor / row.measured)
    end)
  end, noise, most_steps))
end

--- The two phases of a fit: { rows of it, its constants }. Dense rows come first; then mixtures of experts, for the
--- constants that only they tell, and for all of a kind of GPU that has no dense rows.
---@param rows table[] of one kind of GPU
---@return { rows: table[], serves: fun(name: string): boolean? }[]
local function phases_of(rows)
  local dense, mixtures = {}, {}
  for _, row in ipairs(rows) do table.insert(row.network.experts > 0 and mixtures or dense, row) end
  local alone = #dense == 0
  return {
    { rows = dense, serves = function(name) return not constants.of_mixtures[name] end },
    { rows = mixtures, serves = function(name) return alone or constants.of_mixtures[name] end },
  }
end

--- The name of a row's group.
local function group_of(row)
  return ('%s, %s'):format(row.gpu, row.network.experts > 0 and 'mixtures of experts' or 'dense')
end

local function groups_of(rows, told)
  local list, by = {}, {}
  for i, row in ipairs(rows) do
    local name = group_of(row)
    if not by[name] then
      by[name] = { name = name, errors = {} }
      list[#list + 1] = by[name]
    end
    table.insert(by[name].errors, told[i].tokens_per_s_per_gpu / row.measured - 1)
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- A phase for all kinds of GPU: rows are priced, constants moved along the parts of steps, and that again.
local function fit_phase(values, phases)
  local rows = {}
  for _, family in ipairs(constants.families) do
    for _, row in ipairs(phases[family].rows) do rows[#rows + 1] = row end
  end
  for _ = 1, rounds do
    local told = fit.attempt(function()
      return speeds.tell(rows, function(row) return values[row.family] end, 'parts')
    end)
    if not told or fit.stopping() then return end
    local by_row = {}
    for i, row in ipairs(rows) do by_row[row] = told[i] end
    for _, family in ipairs(constants.families) do
      local phase = phases[family]
      if #phase.rows > 0 then
        local own_told = util.map(phase.rows, function(row) return by_row[row] end)
        values[family] = speeds.refit(family, phase.rows, own_told, values[family], phase.serves)
      end
    end
  end
end

--- Constants by kind of GPU, fitted to the measured rows: those of dense rows, then those of mixtures of experts.
---@param rows table[]
---@param start? table<string, table<string, number>> values by kind of GPU to begin with
---@param only? table<table, boolean> fits to these rows alone: what they do not tell stays
---@return table<string, table<string, number>> values
function speeds.fit(rows, start, only)
  local values, phases = {}, { {}, {} }
  for _, family in ipairs(constants.families) do
    values[family] = constants.values(family, start and start[family])
    local own = {}
    for _, row in ipairs(rows) do
      if row.family == family then own[#own + 1] = row end
    end
    for n, phase in ipairs(phases_of(own)) do
      local chosen = {}
      for _, row in ipairs(phase.rows) do
        if not only or only[row] then chosen[#chosen + 1] = row end
      end
      phase.rows = chosen
      phases[n][family] = phase
    end
  end
  for _, phase in ipairs(phases) do fit_phase(values, phase) end
  return values
end

--- The file that published_constants.lua reads.
---@param values table<string, table<string, number>>
---@param ids string[] of the rows that they were fitted to
---@return string
function speeds.file(values, ids)
  local lines = { '-- Fitted by `trinity fidelity published --fit --save`: values by kind of GPU and name',
    '-- (published_constants.lua has units and meanings), and rows that they were fitted to: dense rows first, then',
    '-- mixtures of experts, for routing, release and what the host needs, and for all of a kind without dense rows.',
    'return {',
    '  rows = {' }
  local line = '   '
  for _, id in ipairs(ids) do
    if #line > 108 then lines[#lines + 1], line = line, '   ' end
    line = line .. (" '%s',"):format(id)
  end
  lines[#lines + 1] = line
  lines[#lines + 1] = '  },\n  values = {'
  for _, family in ipairs(constants.families) do
    lines[#lines + 1] = ('    %s = {'):format(family)
    for _, one in ipairs(constants.list(family)) do
      lines[#lines + 1] = ('      %s = %.4g,'):format(one.name, values[family][one.name])
    end
    lines[#lines + 1] = '    },'
  end
  return table.concat(lines, '\n') .. '\n  },\n}\n'
end

local function fitted_values()
  local fitted, values = constants.fitted(), {}
  for _, family in ipairs(constants.families) do values[family] = constants.values(family, fitted.values[family]) end
  return values, fitted
end

local function print_rows(rows, told)
  print(text.format_table({ 'row', 'network', 'GPUs', 'plan', 'published', 'told', 'off', 'memory' },
    util.map(rows, function(row, i)
      local p, t = row.plan, told[i]
      return { row.id, row.model, ('%d %s'):format(p.gpus, row.gpu),
        ('%s t%d p%dx%d d%d c%d e%d b%d'):format(row.precision, p.tensor, p.pipeline, p.virtual, p.data, p.context,
          p.expert, p.micro_batch), row.measured and ('%.1f'):format(row.measured) or '',
        ('%.1f'):format(t.tokens_per_s_per_gpu),
        summary.percent(row.measured and t.tokens_per_s_per_gpu / row.measured - 1),
        ('%.1f GB'):format(t.memory_bytes / 1e9) }
    end)))
  print 'published, told: tokens per second and GPU'
end

--- What rows leave open, each with what was assumed.
local function print_assumptions(rows, told)
  print ''
  for i, row in ipairs(rows) do
    local list = util.merged({}, row.assumed)
    if told[i].recompute ~= row.plan.recompute then
      list[#list + 1] = told[i].recompute .. ' recomputation: with less the plan does not fit'
    end
    if row.plan.context > 1 and not published_step.has_ring(row) then
      list[#list + 1] = ('messages of a ring of %d parts hide behind attention'):format(row.plan.context)
    end
    if #list > 0 then print(('%s: assumed: %s'):format(row.id, table.concat(list, '; '))) end
  end
end

local function show_fit(rows, options)
  local used = measured(rows)
  if #used == 0 then util.fail('no row to fit to: expected some with a value') end
  local before, fitted = fitted_values()
  local some, only, served, ids = fit.only(used, options.only, group_of), {}, {}, {}
  for _, row in ipairs(some) do only[row] = true end
  local values, stopped = fit.keeping(function() return speeds.fit(used, before, only) end)
  if options.only ~= '' then for _, id in ipairs(fitted.rows) do served[id] = true end end
  for _, row in ipairs(some) do served[row.id] = true end
  for _, row in ipairs(used) do if served[row.id] then ids[#ids + 1] = row.id end end
  local written = speeds.file(values, ids)
  used = some
  if options.save ~= '' then core.write_file(options.save, written) else io.write(written) end
  if stopped then return end
  local told = speeds.tell(used, function(row) return values[row.family] end, 'short')
  summary.print('rows that the constants were fitted to', groups_of(used, told))
end

--- Both phases along the parts of steps that rows have where `start` begins; told[row]: nil of rows that do not serve.
local function fit_left(family, rows, told, start)
  local values = start
  for _, phase in ipairs(phases_of(rows)) do
    local own = {}
    for _, row in ipairs(phase.rows) do if told[row] then own[#own + 1] = row end end
    if #own > 0 then
      local own_told = util.map(own, function(row)
        local factor = parts.factor(row, told[row].parts, start, values)
        return { tokens_per_s_per_gpu = told[row].tokens_per_s_per_gpu / factor, parts = told[row].parts }
      end)
      values = speeds.refit(family, own, own_told, values, phase.serves)
    end
  end
  return values
end

--- Draws measured rows by kind of GPU, mixtures apart.
local function draw(path, rows, told)
  picture.draw(path, util.map(rows, function(row, i)
    return { group = row.gpu .. (row.network.experts > 0 and ', experts' or ''), given = row.measured,
      told = told[i].tokens_per_s_per_gpu }
  end), 'tokens per second and GPU', true)
end

--- The file of errors (told over published, less one) that the manual's tables are of: no published value is in it.
--- Rows that it had before and that are not told now stay.
local function record(rows, told, left)
  local entries, lines = {}, { '-- Written by `trinity fidelity published --rows FILE --left_out --record FILE`: '
    .. 'errors (told over published,', '-- less one) of rows told by the fitted constants, and by constants fitted '
    .. 'without the network on that kind of GPU.', 'return {' }
  for _, one in ipairs(constants.errors()) do entries[one.id] = one end
  for i, row in ipairs(rows) do
    entries[row.id] = { id = row.id, group = group_of(row), network = row.model, recent = row.recent,
      fitted = told[i].tokens_per_s_per_gpu / row.measured - 1,
      left_out = left[i].tokens_per_s_per_gpu / row.measured - 1 }
  end
  for id, one in util.sorted_pairs(entries) do
    lines[#lines + 1] = ("  { id = '%s', group = '%s', network = '%s',"):format(id, one.group, one.network)
    lines[#lines + 1] = ('    recent = %s, fitted = %.4f, left_out = %.4f },'):format(tostring(one.recent), one.fitted,
      one.left_out)
  end
  return table.concat(lines, '\n') .. '\n}\n'
end

--- What is left out together: a network on a kind of GPU, however its name is written.
local function network_of(row) return row.family .. ' ' .. row.model:upper():gsub('%-3%.1', '3.1') end

--- Every network on a kind of GPU told by constants that were fitted to the others. The fitted constants are where each
--- fit begins; parts of steps are those there. options.only: of rows whose group has these words in its name; what
--- they do not tell is as it was fitted.
local function leave_each_out(all, options)
  all = measured(all)
  local used, start, told = fit.only(all, options.only, group_of), fitted_values(), {}
  local list = speeds.tell(used, function(row) return start[row.family] end, 'parts')
  for i, row in ipairs(used) do told[row] = list[i] end
  local networks, by = {}, {}
  for _, row in ipairs(used) do
    local key = network_of(row)
    if not by[key] then
      by[key] = {}
      networks[#networks + 1] = by[key]
    end
    table.insert(by[key], row)
  end
  local by_row, left = {}, {}
  for n, found in ipairs((fit.each(networks, 'networks', function(own)
    local family, key, others = own[1].family, network_of(own[1]), {}
    for _, one in ipairs(all) do
      if one.family == family and network_of(one) ~= key then others[#others + 1] = one end
    end
    local values = fit_left(family, others, told, #others > 0 and start[family] or constants.values(family))
    return speeds.tell(own, function() return values end, 'short')
  end))) do
    for i, row in ipairs(networks[n]) do by_row[row] = found[i] end
  end
  for i = #used, 1, -1 do
    if by_row[used[i]] then table.insert(left, 1, by_row[used[i]])
    else
      table.remove(used, i)
      table.remove(list, i)
    end
  end
  run:result('published', { left_out = util.map(used, function(row, i)
    return { row = row.id, predicted_tokens_per_s_per_gpu = left[i].tokens_per_s_per_gpu }
  end) })
  if options.record ~= '' then core.write_file(options.record, record(used, list, left)) end
  if options.picture ~= '' then draw(options.picture, used, left) end
  print_rows(used, left)
  print ''
  summary.print('every network on a kind of GPU told by constants that were fitted to the others',
    groups_of(used, left))
end

--- All rows of a table, those that can be told, and what is told of these. A row that is refused costs none of the
--- others: a warning says why. Throws where all are, behind before(all). Ctrl-C leaves those so far.
local function tell_rows(path, values, before)
  local all = published_row.all(path, true)
  local rows = {}
  for _, row in ipairs(all) do if not row.refused then rows[#rows + 1] = row end end
  local told = fit.each_piece(rows, 8 * core.threads(), 'rows', function(piece)
    return speeds.tell(piece, function(row) return values[row.family] end, nil, true)
  end)
  for i, one in ipairs(told) do rows[i].refused, rows[i].told = one.refused, one end
  local reached = {}
  for _, row in ipairs(all) do if row.refused or row.told then reached[#reached + 1] = row end end
  all = reached
  rows = csv.accepted(all, before and function() before(all) end)
  return all, rows, util.map(rows, function(row) return row.told end)
end

--- What JSON has of rows.
local function data_of(all)
  return { rows = util.map(all, function(row)
    if row.refused then return { row = row.id, refused = row.refused } end
    return { row = row.id, predicted_tokens_per_s_per_gpu = row.told.tokens_per_s_per_gpu,
      predicted_memory_bytes = row.told.memory_bytes }
  end) }
end

local function show(table_path, as_json, path)
  local values, fitted = fitted_values()
  local all, rows, told = tell_rows(table_path, values, as_json and function(refused)
    print(json.encode(data_of(refused)))
  end)
  local data = data_of(all)
  run:result('published', data)
  if as_json then return print(json.encode(data)) end
  print_rows(rows, told)
  print_assumptions(rows, told)
  print ''
  local served = {}
  for _, id in ipairs(fitted.rows) do served[id] = true end
  for _, heading in ipairs { 'rows that the constants were fitted to', 'predicted rows' } do
    local own, own_told = {}, {}
    for i, row in ipairs(rows) do
      if row.measured and (served[row.id] or false) == (heading ~= 'predicted rows') then
        own[#own + 1], own_told[#own_told + 1] = row, told[i]
      end
    end
    if #own > 0 then summary.print(heading, groups_of(own, own_told)) end
  end
  if path ~= '' then draw(path, rows, told) end
end

--- Tells the rows of a table, or fits to them. options: rows, fit, only, left_out, record, save, picture, json.
function speeds.run(options)
  if options.fit then return show_fit(published_row.all(options.rows), options) end
  if options.left_out then return leave_each_out(published_row.all(options.rows), options) end
  return show(options.rows, options.json, options.picture)
end

--- The constants with their values.
function speeds.constants()
  local values, all = fitted_values(), {}
  for _, family in ipairs(constants.families) do
    for _, one in ipairs(constants.list(family)) do
      all[#all + 1] = util.merged(one, { name = family .. '.' .. one.name, value = values[family][one.name] })
    end
  end
  return all
end

return speeds
