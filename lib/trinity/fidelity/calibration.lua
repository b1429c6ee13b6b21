-- Values that fits move: constants of kinds of GPU, fields of runtimes, and what a source has beside them, as
-- lib/trinity/cluster/calibrated.lua keeps them. A parameter is { id, name, and kind, runtime or source with `of` }.

local errors = require 'trinity.fidelity.errors'
local util = require 'trinity.base.util'

local calibration = {}

local function kept() return require 'trinity.cluster.calibrated' end

--- All values: { constants = { KIND = {...} }, runtimes = { NAME = {...} }, sources = { NAME = { OF = {...} } } }.
function calibration.values()
  local all = { constants = {}, runtimes = kept().runtimes, sources = kept().sources }
  for kind in util.sorted_pairs(kept().kinds) do
    all.constants[kind] = require('trinity.cluster.constants').calibrated(kind)
  end
  return all
end

--- Where a parameter's value is: a table by name, as a path.
local function path_of(one)
  if one.kind then return 'constants', one.kind end
  if one.runtime then return 'runtimes', one.runtime end
  return 'sources', one.source, one.of
end

function calibration.value(values, one)
  local at = values
  for _, key in ipairs { path_of(one) } do at = at[key] end
  return at[one.name]
end

local function changed(at, keys, i, name, x)
  if not keys[i] then return util.merged(at, { [name] = x }) end
  return util.merged(at, { [keys[i]] = changed(at[keys[i]], keys, i + 1, name, x) })
end

--- Values with another one of a parameter; kinds that are like its kind have it, too.
function calibration.with(values, one, x)
  values = changed(values, { path_of(one) }, 1, one.name, x)
  for kind, about in util.sorted_pairs(one.kind and kept().kinds or {}) do
    if about.like == one.kind then
      values = changed(values, { 'constants', kind }, 1, one.name, x)
    end
  end
  return values
end

--- Values where parameters that hold for rows that are left out, and for none of the others, are where fits start.
function calibration.without(values, own, others, parameters)
  for _, one in ipairs(parameters) do
    local serves, left = false, false
    for _, entry in ipairs(others) do serves = serves or entry.slopes[one.id] ~= nil end
    for _, row in ipairs(own) do left = left or calibration.holds(row, one) end
    if left and not serves then values = calibration.with(values, one, one.start) end
  end
  return values
end

--- Whether a row's prediction goes by a parameter: of its kind of GPU, of the runtime of its case.
function calibration.holds(row, one)
  if one.kind then
    local like = (kept().kinds[row.kind] or {}).like
    return row.kind ~= nil and (row.kind == one.kind or like == one.kind) and (not one.serves or one.serves(row))
  end
  for _, name in ipairs(one.runtime and row.runtimes or {}) do
    if name == one.runtime then return not one.serves or one.serves(row) end
  end
  if one.runtime then return false end
  return row.family == one.of and (row.source and row.source.name or one.source) == one.source
end

--- Ids of rows of a source (or of groups, field `served`) that the values were fitted to, as a set.
function calibration.rows(source)
  local set = {}
  for id in (kept().rows[source] or ''):gmatch '%S+' do set[id] = true end
  return set
end

local function literal(value)
  return type(value) == 'number' and ('%.4g'):format(value) or ("'%s'"):format(value)
end

--- { a = 1, b = 'x' } on lines of at most 118 columns.
local function table_text(values, indent)
  local lines, line = {}, (' '):rep(indent)
  for name, value in util.sorted_pairs(values) do
    local word = ('%s = %s, '):format(name:match '^[%a_][%w_]*$' and name or ("['%s']"):format(name), literal(value))
    if #line + #word > 118 then lines[#lines + 1], line = line:gsub('%s+$', ''), (' '):rep(indent) end
    line = line .. word
  end
  lines[#lines + 1] = (line:gsub('%s+$', ''))
  return table.concat(lines, '\n')
end

local function wrapped(words, indent)
  local lines, line = {}, (' '):rep(indent)
  for word in words:gmatch '%S+' do
    if #line + #word > 116 then lines[#lines + 1], line = line, (' '):rep(indent) end
    line = line .. word .. ' '
  end
  lines[#lines + 1] = line
  return (table.concat(lines, '\n'):gsub(' +\n', '\n'):gsub(' +$', ''))
end

local function key_text(name) return name:match '^[%a_][%w_]*$' and name or ("['%s']"):format(name) end

--- Rows and mean error of what was left out, by kind of GPU: a kind's own rows and those of kinds like it.
local function by_kind(rows, prediction)
  local sums = {}
  for i, row in ipairs(rows) do
    local about = kept().kinds[row.kind]
    local kind = about and (about.like or row.kind)
    if kind then
      local sum = sums[kind] or { count = 0, sum = 0 }
      sums[kind] = sum
      sum.count, sum.sum = sum.count + 1, sum.sum + math.abs(prediction[i].predicted / row.measured - 1)
    end
  end
  return sums
end

--- The text of calibrated.lua with these values. some: whether rows are some of a source's, whose others stay; found:
--- { fitted, left_out } groups of cross-validation with predictions `prediction`, or nil.
function calibration.text(values, source, rows, some, found)
  local now = kept()
  local all_rows = util.merged(now.rows)
  if not found then
    local ids = {}
    for _, row in ipairs(rows) do
      local name = row.source and row.source.name or source
      ids[name] = ids[name] or (some or name ~= source) and calibration.rows(name) or {}
      ids[name][row.served or row.id] = true
    end
    for name, set in util.sorted_pairs(ids) do all_rows[name] = table.concat(util.sorted_keys(set), ' ') end
  end
  local sums, groups = found and by_kind(rows, found.prediction) or {}, util.merged(now.errors[source])
  for i, group in ipairs(found and found.left_out or {}) do
    local left, own = errors.summary(group.errors), errors.summary(found.fitted[i].errors)
    groups[group.name] = ('%d, %.4f %.4f %.4f, %.4f %.4f %.4f'):format(left.count, own.mean, own.median, own.worst,
      left.mean, left.median, left.worst)
  end
  local all_errors = util.merged(now.errors, { [source] = groups })
  local lines = { '-- Calibrated constants (lib/trinity/cluster/constants.lua, runtimes.lua), as fits of',
    '-- `trinity fidelity SOURCE --fit --save FILE` write them. `values` are fitted, `assumed` are not: no row of that',
    '-- kind separates them from the others. `like`: a kind has the shares of another. `mean_error`: of networks that',
    '-- were left out of the fit; errors, by group of rows: rows, fitted mean, median, worst, left-out mean, median,',
    '-- worst.',
    'return {', '  kinds = {' }
  for kind, about in util.sorted_pairs(now.kinds) do
    local sum = sums[kind]
    local head = about.like and ("like = '%s'"):format(about.like)
      or ('rows = %d, mean_error = %.4f'):format(sum and sum.count or about.rows,
        sum and sum.sum / sum.count or about.mean_error)
    lines[#lines + 1] = ('    %s = { %s,'):format(kind, head)
    if about.values then
      local own = {}
      for name in util.sorted_pairs(about.values) do own[name] = values.constants[kind][name] end
      lines[#lines + 1] = ('      values = {\n%s\n      },'):format(table_text(own, 8))
    end
    if about.assumed then
      lines[#lines + 1] = ('      assumed = {\n%s\n      },'):format(table_text(about.assumed, 8))
    end
    lines[#lines + 1] = '    },'
  end
  lines[#lines + 1] = '  },\n  runtimes = {'
  for name, own in util.sorted_pairs(values.runtimes) do
    lines[#lines + 1] = ('    %s = {\n%s\n    },'):format(key_text(name), table_text(own, 6))
  end
  lines[#lines + 1] = '  },\n  sources = {'
  for name, families in util.sorted_pairs(values.sources) do
    lines[#lines + 1] = ('    %s = {'):format(name)
    for family, own in util.sorted_pairs(families) do
      lines[#lines + 1] = ('      %s = {\n%s\n      },'):format(family, table_text(own, 8))
    end
    lines[#lines + 1] = '    },'
  end
  lines[#lines + 1] = '  },\n  rows = {'
  for name, list in util.sorted_pairs(all_rows) do
    lines[#lines + 1] = ('    %s = [[\n%s\n    ]],'):format(name, wrapped(list, 6))
  end
  lines[#lines + 1] = '  },\n  errors = {'
  for name, list in util.sorted_pairs(all_errors) do
    lines[#lines + 1] = ('    %s = {'):format(name)
    for group, line in util.sorted_pairs(list) do lines[#lines + 1] = ("      ['%s'] = '%s',"):format(group, line) end
    lines[#lines + 1] = '    },'
  end
  return table.concat(lines, '\n') .. '\n  },\n}\n'
end

return calibration
