-- Values that fits move: constants of kinds of GPU, fields of runtimes, and what a source adds to them, as
-- lib/trinity/cluster/calibrated.lua keeps them; fits.json has the rows of the fits and the errors that they left.
-- A parameter is { id, name, path (of the table that has it) }, with its kind, runtime, or source and family.

local case = require 'studies.fidelity.case'
local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local kept = require 'trinity.cluster.calibrated'
local progress = require 'trinity.base.progress'
local runtimes = require 'trinity.cluster.runtimes'
local statistics = require 'studies.statistics'
local system = require 'trinity.base.system'
local util = require 'trinity.base.util'

local fitted = {}

--- Constants that predictions of a source have in addition: { unit, start, least, most, spread, meaning } by name.
function fitted.priors(source)
  local found = {}
  for _, row in ipairs(csv.read(core.home .. '/scripts/studies/fidelity/priors.csv', 'source', 'name')) do
    for _, name in ipairs { 'start', 'least', 'most', 'spread' } do row[name] = tonumber(row[name]) end
    if row.source == source then found[row.name] = row end
  end
  return found
end

--- The last fits, or the ones saved with a file of constants: { rows = ids by source, errors = by source and group:
--- { rows, fitted, left_out, apart } }; apart: the two rows of a group that pull apart most.
function fitted.fits(file)
  local own = file and core.exists(file .. '.json')
  return json.read(own and file .. '.json' or core.home .. '/scripts/studies/fidelity/fits.json')
end

--- Ids of rows of a source (or of groups, field `served`) that the values were fitted to, as a set. file: a
--- person's own constants.
function fitted.rows(source, file) return util.set(fitted.fits(file).rows[source] or {}) end

--- Tables by name, each with the fields of another's table of its name.
local function each_merged(tables, others)
  local all = util.merged(tables)
  for name, fields in util.sorted_pairs(others or {}) do all[name] = util.merged(all[name], fields) end
  return all
end

--- All values: { constants = { KIND = {...} }, runtimes = { NAME = {...} }, sources = { NAME = { FAMILY = {...} } } }.
--- choice: of constants.read, the file of a fit.
function fitted.values(choice)
  choice = choice or constants.read()
  local all = { constants = {}, runtimes = each_merged(kept.runtimes, choice.runtimes),
    sources = each_merged(kept.sources, choice.sources) }
  for kind in util.sorted_pairs(util.merged(kept.kinds, choice.kinds)) do
    all.constants[kind] = constants.of(choice, kind)
  end
  return all
end

function fitted.value(values, one)
  for _, key in ipairs(one.path) do values = values[key] end
  return values[one.name]
end

local function changed(at, path, i, name, x)
  if not path[i] then return util.merged(at, { [name] = x }) end
  return util.merged(at, { [path[i]] = changed(at[path[i]], path, i + 1, name, x) })
end

--- Values with another one of a parameter; kinds that are like its kind have it, too.
function fitted.with(values, one, x)
  values = changed(values, one.path, 1, one.name, x)
  for kind, about in util.sorted_pairs(one.kind and kept.kinds or {}) do
    if about.like == one.kind then values = changed(values, { 'constants', kind }, 1, one.name, x) end
  end
  return values
end

function fitted.like(kind) return (kept.kinds[kind] or {}).like or kind end

--- Whether a row's prediction goes by a parameter: of its kind of GPU, of the runtime of its case, of its source.
function fitted.holds(row, one)
  if one.of_mixtures and row.network.experts == 0 then return false end
  if one.kind then return row.kind ~= nil and fitted.like(row.kind) == one.kind end
  if one.runtime then return util.find(row.runtimes, function(name) return name == one.runtime end) ~= nil end
  return row.family == one.family and row.source.name == one.source
end

local of_mixtures = util.set 'routing expert_dispatch_s layer_dispatch_s routing_speed'

--- The parameters of a fit: constants of the rows' kinds of GPU, fields of their runtimes, constants of their sources.
function fitted.parameters(rows)
  local found, tables = {}, {} -- tables: of values, { owner, path, values, priors, starts }
  for _, row in ipairs(rows) do
    local kind, source = row.kind and fitted.like(row.kind), row.source.name
    tables['1' .. (kind or '')] = kind and { { kind = kind }, { 'constants', kind }, (kept.kinds[kind] or {}).values,
      constants.by_name, constants.priors[kind] }
    for _, name in ipairs(row.runtimes) do
      tables['2' .. name] = { { runtime = name }, { 'runtimes', name }, kept.runtimes[name], runtimes.priors }
    end
    for family, values in util.sorted_pairs(row.family and kept.sources[source] or {}) do
      tables[('3%s %s'):format(source, family)] = { { source = source, family = family }, { 'sources', source, family },
        values, row.source.priors }
    end
  end
  for _, of in util.sorted_pairs(tables) do
    local owner, path, values, priors, starts = unpack(of, 1, 5)
    for name in util.sorted_pairs(values or {}) do
      found[#found + 1] = util.merged(priors[name], { start = (starts or {})[name] }, owner, { name = name, path = path,
        id = ('%s.%s'):format(path[#path], name), of_mixtures = of_mixtures[name] })
    end
  end
  return found
end

--- Values with numbers of four digits, as files keep them.
function fitted.rounded(value)
  if type(value) == 'number' then return tonumber(('%.4g'):format(value)) end
  if type(value) ~= 'table' then return value end
  local copy = {}
  for key, entry in util.sorted_pairs(value) do copy[key] = fitted.rounded(entry) end
  return copy
end

--- Kinds with values of a fit and, of those whose rows were left out, how many there were and their mean error.
local function kinds_with(values, left_out)
  local by, kinds = {}, {}
  for _, group in ipairs(util.grouped(left_out, function(row) return row.kind and fitted.like(row.kind) or '' end)) do
    by[group.name] = { rows = #group, mean_error = statistics.summary(util.map(group, function(row)
      return row.prediction.predicted / row.measured - 1
    end)).mean }
  end
  for kind, about in util.sorted_pairs(kept.kinds) do
    local own = about.values and util.picked(values.constants[kind], util.sorted_keys(about.values))
    kinds[kind] = util.merged(about, { values = own }, not about.like and by[kind] or nil)
  end
  return kinds
end

--- Writes calibrated.lua with these values to a file and fits.json to FILE.json; prints calibrated.lua where the file
--- is ''. some: whether rows are some of a source's, whose others stay; groups: the errors of cross-validation, where
--- rows have the prediction without their network; or nil.
function fitted.save(path, values, source, rows, some, groups)
  local ids = {}
  for _, row in ipairs(groups and {} or rows) do
    local name = row.source.name
    ids[name] = ids[name] or (some or name ~= source) and fitted.rows(name) or {}
    ids[name][row.served or row.id] = true
  end
  for name, set in util.sorted_pairs(ids) do ids[name] = util.sorted_keys(set) end
  local head = util.read_file(core.home .. '/lib/trinity/cluster/calibrated.lua'):match '^.-\nreturn '
  local written = head .. case.lua_text(fitted.rounded { kinds = kinds_with(values, groups and rows or {}),
    runtimes = values.runtimes, sources = values.sources }) .. '\n'
  if path == '' then return io.write(written) end
  core.write_file(path, written)
  local last = fitted.fits()
  core.write_file(path .. '.json', core.to_json(fitted.rounded { rows = util.merged(last.rows, ids),
    errors = util.merged(last.errors, { [source] = util.merged(last.errors[source], groups) }) }) .. '\n')
end

local most_sweeps, least_move = 500, 1e-7

--- Returns body(item) for every item of a list, in order: all of them, or those done before Ctrl-C; and whether it was
--- pressed. what: of the items ('rows'); early: the warning after Ctrl-C, with its name, for others than predictions.
function fitted.each(items, what, body, early)
  local results, shown = {}, progress.new('fidelity', false)
  local stopped = system.stoppable(function(stop_requested)
    for i, item in ipairs(items) do
      shown:update { text = ('%d of %d %s'):format(i, #items, what) }
      local ok, found = pcall(body, item)
      if stop_requested() then return end
      if not ok then
        shown:finish()
        error(found, 0)
      end
      results[i] = found
    end
  end)
  shown:finish()
  if stopped then
    progress.warn((early or ('stopped by %%s: %d of %d %s are predicted; it cannot be resumed'):format(#results, #items,
      what)):format(core.stop_name()))
  end
  return results, stopped
end

--- The same for parts of a list: body(piece) takes several items at once and returns a list.
function fitted.each_piece(items, size, what, body)
  local pieces = {}
  for i = 1, #items, size do pieces[#pieces + 1] = { unpack(items, i, math.min(#items, i + size - 1)) } end
  local found, stopped = fitted.each(pieces, ('pieces of %d %s'):format(size, what), body)
  return util.joined(unpack(found)), stopped
end

--- Returns the fitted values by id: positive numbers within bounds, with log-normal priors. Large errors have less
--- weight (soft L1: 2 (sqrt(1 + (e / noise)^2) - 1)), so that disturbed runs have little influence. parameters: { id,
--- start (of the prior), spread, least, most, from (where slopes were taken) } each; errors: { log = log(predicted /
--- measured), slopes = by id, weight } each. Every round moves one parameter after the other to the least of a parabola
--- above the objective, which therefore never rises.
function fitted.solution(parameters, errors, noise)
  local moved, logs = {}, util.map(errors, function(one) return one.log end)
  for _ = 1, most_sweeps do
    local largest = 0
    for _, one in ipairs(parameters) do
      local at = math.log(one.from) + (moved[one.id] or 0)
      local slope, curve = (at - math.log(one.start)) / one.spread ^ 2, 1 / one.spread ^ 2
      for k, entry in ipairs(errors) do
        local by = entry.slopes[one.id]
        if by then
          local scale = (entry.weight / noise) ^ 2
          local weight = scale / math.sqrt(1 + scale * logs[k] ^ 2)
          slope, curve = slope + weight * by * logs[k], curve + weight * by * by
        end
      end
      local step = math.max(math.log(one.least), math.min(math.log(one.most), at - slope / curve)) - at
      for k, entry in ipairs(errors) do logs[k] = logs[k] + step * (entry.slopes[one.id] or 0) end
      moved[one.id], largest = (moved[one.id] or 0) + step, math.max(largest, math.abs(step))
    end
    if largest < least_move then break end
  end
  local values = {}
  for _, one in ipairs(parameters) do values[one.id] = one.from * math.exp(moved[one.id] or 0) end
  return values
end

return fitted
