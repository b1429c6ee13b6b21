-- Values that fits move: constants of kinds of GPU, fields of runtimes, and what a source adds to them, as
-- lib/trinity/cluster/calibrated.lua keeps them; fits.json has the rows of the fits and the errors that they left.
-- A parameter is { id, name, and kind, runtime or source with `of` }.

local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local lua_text = require 'studies.fidelity.lua_text'
local runtimes = require 'trinity.cluster.runtimes'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local fitted = {}

local function kept() return require 'trinity.cluster.calibrated' end

local fits

--- The last fits, or the ones saved with a file of constants: { rows = ids by source, errors = by source and group:
--- { rows, fitted, left_out, apart } }; apart: the two rows of a group that pull apart most.
function fitted.fits(file)
  if file and core.exists(file .. '.json') then return json.read(file .. '.json') end
  fits = fits or json.read(core.home .. '/scripts/studies/fidelity/fits.json')
  return fits
end

--- Tables by name, each with the fields of another's table of its name.
local function each_merged(tables, others)
  local all = util.merged(tables)
  for name, fields in util.sorted_pairs(others or {}) do all[name] = util.merged(all[name], fields) end
  return all
end

--- All values: { constants = { KIND = {...} }, runtimes = { NAME = {...} }, sources = { NAME = { OF = {...} } } }.
--- choice: of constants.read, the file of a fit.
function fitted.values(choice)
  choice = choice or constants.read()
  local all = { constants = {}, runtimes = each_merged(kept().runtimes, choice.runtimes),
    sources = each_merged(kept().sources, choice.sources) }
  for kind in util.sorted_pairs(util.merged(kept().kinds, choice.kinds)) do
    all.constants[kind] = constants.of(choice, kind)
  end
  return all
end

--- Where a parameter's value is: a table by name, as a path.
local function path_of(one)
  if one.kind then return 'constants', one.kind end
  if one.runtime then return 'runtimes', one.runtime end
  return 'sources', one.source, one.of
end

function fitted.value(values, one)
  local at = values
  for _, key in ipairs { path_of(one) } do at = at[key] end
  return at[one.name]
end

local function changed(at, keys, i, name, x)
  if not keys[i] then return util.merged(at, { [name] = x }) end
  return util.merged(at, { [keys[i]] = changed(at[keys[i]], keys, i + 1, name, x) })
end

--- Values with another one of a parameter; kinds that are like its kind have it, too.
function fitted.with(values, one, x)
  values = changed(values, { path_of(one) }, 1, one.name, x)
  for kind, about in util.sorted_pairs(one.kind and kept().kinds or {}) do
    if about.like == one.kind then
      values = changed(values, { 'constants', kind }, 1, one.name, x)
    end
  end
  return values
end

--- Values where parameters that hold for rows that are left out, and for none of the others, are where fits start.
function fitted.without(values, own, others, parameters)
  for _, one in ipairs(parameters) do
    local serves, left = false, false
    for _, entry in ipairs(others) do serves = serves or entry.slopes[one.id] ~= nil end
    for _, row in ipairs(own) do left = left or fitted.holds(row, one) end
    if left and not serves then values = fitted.with(values, one, one.start) end
  end
  return values
end

--- Whether a row's prediction goes by a parameter: of its kind of GPU, of the runtime of its case, of its source.
function fitted.holds(row, one)
  if one.of_mixtures and row.network.experts == 0 then return false end
  if one.kind then return row.kind ~= nil and (row.kind == one.kind or fitted.like(row.kind) == one.kind) end
  for _, name in ipairs(one.runtime and row.runtimes or {}) do
    if name == one.runtime then return true end
  end
  return not one.runtime and row.family == one.of and (row.source and row.source.name or one.source) == one.source
end

function fitted.like(kind) return (kept().kinds[kind] or {}).like or kind end

local of_mixtures = { routing = true, expert_dispatch_s = true, layer_dispatch_s = true, routing_speed = true }

--- The parameters of a fit: constants of the rows' kinds of GPU, fields of their runtimes, constants of their sources.
function fitted.parameters(rows)
  local found, kinds, names, sources = {}, {}, {}, {}
  for _, row in ipairs(rows) do
    if row.kind then kinds[fitted.like(row.kind)] = true end
    for _, name in ipairs(row.runtimes) do names[name] = true end
    if row.family and row.source then sources[row.source.name] = row.source end
  end
  --- owner: { kind =, runtime =, or source = and of = }
  local function add(owner, of, values, priors, starts)
    for name in util.sorted_pairs(values or {}) do
      found[#found + 1] = util.merged(priors[name], { start = (starts or {})[name] }, owner, { name = name,
        id = ('%s.%s'):format(of, name), of_mixtures = of_mixtures[name] })
    end
  end
  for kind in util.sorted_pairs(kinds) do
    add({ kind = kind }, kind, (kept().kinds[kind] or {}).values, constants.by_name, constants.priors[kind])
  end
  for name in util.sorted_pairs(names) do add({ runtime = name }, name, kept().runtimes[name], runtimes.priors) end
  for name, source in util.sorted_pairs(sources) do
    for family, values in util.sorted_pairs(kept().sources[name]) do
      add({ source = name, of = family }, family, values, source.priors)
    end
  end
  return found
end

--- Ids of rows of a source (or of groups, field `served`) that the values were fitted to, as a set. file: a
--- person's own constants.
function fitted.rows(source, file) return util.set(fitted.fits(file).rows[source] or {}) end

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
  local function kind_of(row) return row.kind and fitted.like(row.kind) or '' end
  for _, group in ipairs(util.grouped(left_out, kind_of)) do
    by[group.name] = statistics.summary(util.map(group, function(row)
      return row.prediction.predicted / row.measured - 1
    end))
  end
  for kind, about in util.sorted_pairs(kept().kinds) do
    local own = {}
    for name in util.sorted_pairs(about.values or {}) do own[name] = values.constants[kind][name] end
    kinds[kind] = util.merged(about, about.values and { values = own },
      by[kind] and not about.like and { rows = by[kind].count, mean_error = by[kind].mean })
  end
  return kinds
end

local function summary(list)
  local s = statistics.summary(list)
  return { mean = s.mean, median = s.median, worst = s.worst }
end

--- The two rows of a group that pull its constants apart most, the one predicted too large first: of one network on
--- one kind of GPU, where some are, else of the group. { row, from, fitted, left_out } each.
local function apart(fit, left)
  local best
  local function consider(i, j)
    local gap = fit[i] - fit[j]
    local same = fit.rows[i].left_out == fit.rows[j].left_out
    if not best or same ~= best.same and same or same == best.same and gap > best.gap then
      best = { i, j, gap = gap, same = same }
    end
  end
  for i = 1, #fit do
    for j = 1, #fit do
      local one, other = fit.rows[i], fit.rows[j]
      if fit[i] > fit[j] and (one.configuration or one) ~= (other.configuration or other) then consider(i, j) end
    end
  end
  return best and util.map(best, function(i)
    local row = fit.rows[i]
    return { row = row.id, from = row.from, fitted = fit[i], left_out = left[i] }
  end)
end

local head = [[
-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of
-- `trinity study fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that
-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that
-- were left out of the fit. Rows and errors of the fits are in scripts/studies/fidelity/fits.json.
]]

--- Writes calibrated.lua with these values to a file and fits.json to FILE.json; prints calibrated.lua where the file
--- is ''. some: whether rows are some of a source's, whose others stay; found: { fitted, left_out } groups of
--- cross-validation, where rows have the prediction without their network; or nil.
function fitted.save(path, values, source, rows, some, found)
  local ids, groups = {}, util.merged(fitted.fits().errors[source])
  for _, row in ipairs(found and {} or rows) do
    local name = row.source and row.source.name or source
    ids[name] = ids[name] or (some or name ~= source) and fitted.rows(name) or {}
    ids[name][row.served or row.id] = true
  end
  for name, set in util.sorted_pairs(ids) do ids[name] = util.sorted_keys(set) end
  for i, group in ipairs(found and found.left_out or {}) do
    groups[group.name] = { rows = #group, fitted = summary(found.fitted[i]), left_out = summary(group),
      apart = apart(found.fitted[i], group) }
  end
  local written = head .. 'return ' .. lua_text.of(fitted.rounded { kinds = kinds_with(values, found and rows or {}),
    runtimes = values.runtimes, sources = values.sources }) .. '\n'
  if path == '' then return io.write(written) end
  core.write_file(path, written)
  core.write_file(path .. '.json', core.to_json(fitted.rounded { rows = util.merged(fitted.fits().rows, ids),
    errors = util.merged(fitted.fits().errors, { [source] = groups }) }) .. '\n')
end

return fitted
