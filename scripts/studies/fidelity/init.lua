-- Comparisons of `trinity study fidelity` with numbers that others measured or counted. A comparison is a module here
-- that returns { help = a line, options = { NAME = what trinity.options takes }, run = function(options) }: what it is
-- given are the values of its options and `json`; `shared`: tables of ../shared/data by the option that they are the
-- default of, where option `instead` is not given; one of measured runs has what runs.lua asks for, and its options. To
-- add one, add its name to the list below.

local bars = require 'studies.fidelity.bars'
local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local shared = require 'studies.shared'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local fidelity = {}

--- Names of the comparisons, in the order of the help.
fidelity.names = { 'kernels', 'moe_layer', 'collectives', 'strategies', 'published', 'vtrain', 'sailor', 'golden',
  'plan' }

local function comparison(name) return require('studies.fidelity.' .. name) end

--- The options of a comparison; comparisons with measured runs have more in common.
local function options_of(name)
  local one = comparison(name)
  return one.prediction and util.merged(require('studies.fidelity.runs').options, one.options) or one.options
end

--- The options of all comparisons, for trinity.options. The help of each says which comparisons take it.
function fidelity.options()
  local all, helps = {}, {}
  for _, name in ipairs(fidelity.names) do
    for option, declared in util.sorted_pairs(options_of(name)) do
      local list = helps[option] or {}
      local same
      for _, row in ipairs(list) do same = row.help == declared.help and row or same end
      if same then
        same.names = same.names .. ', ' .. name
      else
        list[#list + 1] = { names = name, help = declared.help }
      end
      helps[option], all[option] = list, declared
    end
  end
  for option, list in util.sorted_pairs(helps) do
    all[option] = util.merged(all[option], { help = table.concat(util.map(list, function(row)
      return row.names .. ': ' .. row.help
    end), '; ') })
  end
  return all
end

function fidelity.help()
  return table.concat(util.map(fidelity.names, function(name)
    return ('%s: %s'):format(name, comparison(name).help)
  end), '; ') .. '; constants: lists what predictions rest on; errors: lists what the last fits left'
end

--- Prints the fitted constants of kinds of GPU, of runtimes, of sources, and of collectives; instead of a
--- kind's own, the ones that option `constants` gives it.
local function show_constants(options)
  local about, all, kept = require 'trinity.cluster.constants', {}, require 'trinity.cluster.calibrated'
  local choice = about.read(options.constants)
  local function add(of, values, meanings)
    for name, value in util.sorted_pairs(values or {}) do
      local known = meanings[name] or {}
      all[#all + 1] = { of = of, name = name, value = value, unit = known.unit, least = known.least, most = known.most,
        meaning = known.meaning or known.help }
    end
  end
  local kinds = {}
  for kind, one in util.sorted_pairs(choice.kinds and kept.kinds or {}) do kinds[kind] = one.values end
  for kind, own in util.sorted_pairs(choice.kinds or {}) do kinds[kind] = util.merged(kinds[kind], own) end
  for kind, values in util.sorted_pairs(kinds) do add(kind, values, about.by_name) end
  for name, values in util.sorted_pairs(kept.runtimes) do
    add('runtime ' .. name, values, require('trinity.cluster.runtimes').declared.by_name)
  end
  for source, families in util.sorted_pairs(kept.sources) do
    for family, values in util.sorted_pairs(families) do
      add(('%s %s'):format(source, family), values, comparison(source).priors)
    end
  end
  if options.json then return print(json.encode { constants = all }) end
  print(text.format_table({ 'of', 'constant', 'value', 'unit', 'bounds', 'meaning' }, util.map(all, function(c)
    return { c.of, c.name, type(c.value) == 'number' and ('%.4g'):format(c.value) or tostring(c.value), c.unit or '',
      c.least and ('%g to %g'):format(c.least, c.most) or '', c.meaning or '' }
  end)))
end

--- Prints the errors that the last fits left, by source and group of rows: of rows in the fit, and of rows left out.
local function show_errors(options)
  local recorded, cells = require('studies.fidelity.fitted').fits().errors, {}
  if options.json then return print(json.encode(recorded)) end
  local function shares(one)
    local list = one and { one.mean, one.median, one.worst } or {}
    return table.concat(util.map(list, errors.percent), ', ')
  end
  local apart = {}
  for source, groups in util.sorted_pairs(recorded) do
    for group, one in util.sorted_pairs(groups) do
      local bar = bars.of(source, group)
      local missed = bar and bars.missed(bar, one.left_out)
      cells[#cells + 1] = { source, group, ('%d'):format(one.rows), shares(one.fitted), shares(one.left_out),
        bar and errors.percent(bar.mean) or '', missed and 'missed' or bar and 'met' or '' }
      for _, row in ipairs(missed and one.apart or {}) do
        apart[#apart + 1] = { group, row.row, row.from or '', errors.signed(row.fitted), errors.signed(row.left_out) }
      end
    end
  end
  print(text.format_table({ 'source', 'rows of', 'rows', 'fitted', 'left out', 'bar', '' }, cells))
  print 'mean, median and worst error; left out: predicted by constants that were fitted to other networks or runs'
  if #apart == 0 then return end
  print '\nrows that pull apart where a bar is missed: the errors that differ most, of one network where a group has'
  print 'such rows; no rate that both share brings both below half of the difference'
  print(text.format_table({ 'rows of', 'row', 'from', 'fitted', 'left out' }, apart))
end

--- Runs the comparison called `name` with the options that the command line gave.
function fidelity.run(name, options)
  local shown = { constants = show_constants, errors = show_errors }
  local known = util.merged(shown, util.set(fidelity.names))
  if name == '' then
    util.fail_usage('trinity study fidelity COMPARISON: expected one of %s, constants or errors',
      table.concat(fidelity.names, ', '))
  end
  if not known[name] then
    util.fail_usage('trinity study fidelity COMPARISON: unknown name %s', util.unknown(name, util.sorted_keys(known)))
  end
  if shown[name] then return shown[name](options) end
  local own = options_of(name)
  for option, declared in util.sorted_pairs(fidelity.options()) do
    if not own[option] and options[option] ~= declared.default then
      util.fail_usage("option '--%s' is not of '%s'", option, name)
    end
  end
  local one, given = comparison(name), util.merged({}, options)
  for option, path in util.sorted_pairs(one.shared or {}) do
    if not (one.instead and options[one.instead] ~= '') then given[option] = shared(options[option], path) end
  end
  return one.run(given)
end

return fidelity
