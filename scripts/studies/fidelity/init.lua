-- Comparisons of `trinity study fidelity` with numbers that others measured or counted. A comparison is a module here
-- that returns { help = a line, options = { NAME = what trinity.options takes }, run = function(options) }: what it is
-- given are the values of its options and `json`; `shared`: tables of ../shared/data by the option that they are the
-- default of, where option `instead` is not given; one of measured runs has what runs.lua asks for, and its options. To
-- add one, add its name to the list below.

local errors = require 'studies.fidelity.errors'
local fitted = require 'studies.fidelity.fitted'
local json = require 'trinity.base.json'
local runs = require 'studies.fidelity.runs'
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
  return util.merged(one.prediction and runs.options, one.options)
end

--- The options of all comparisons, for trinity.options. The help of each says which comparisons take it.
function fidelity.options()
  local list, all = {}, {}
  for _, name in ipairs(fidelity.names) do
    for option, declared in util.sorted_pairs(options_of(name)) do
      list[#list + 1] = { option = option, name = name, declared = declared }
    end
  end
  for _, same in ipairs(util.grouped(list, function(one) return one.option end)) do
    local helps = util.map(util.grouped(same, function(one) return one.declared.help end), function(alike)
      return ('%s: %s'):format(table.concat(util.map(alike, function(one) return one.name end), ', '), alike.name)
    end)
    all[same.name] = util.merged(same[#same].declared, { help = table.concat(helps, '; ') })
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
    for name, value in util.sorted_pairs(values) do
      local known = meanings[name] or {}
      all[#all + 1] = { of = of, name = name, value = value, unit = known.unit, least = known.least, most = known.most,
        meaning = known.meaning or known.help }
    end
  end
  for kind in util.sorted_pairs(util.merged(choice.kinds and kept.kinds, choice.kinds)) do
    add(kind, util.merged((kept.kinds[kind] or {}).values, choice.kinds[kind]), about.by_name)
  end
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

--- Runs the comparison called `name` with the options that the command line gave.
function fidelity.run(name, options)
  if name == '' then
    util.fail_usage('trinity study fidelity COMPARISON: expected one of %s, constants or errors',
      table.concat(fidelity.names, ', '))
  end
  if name == 'constants' then return show_constants(options) end
  if name == 'errors' then return errors.show(fitted.fits().errors, options.json) end
  if not util.set(fidelity.names)[name] then
    local known = util.joined(fidelity.names, { 'constants', 'errors' })
    table.sort(known)
    util.fail_usage('trinity study fidelity COMPARISON: unknown name %s', util.unknown(name, known))
  end
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
  if one.run then return one.run(given) end
  runs.run(one, given)
end

return fidelity
