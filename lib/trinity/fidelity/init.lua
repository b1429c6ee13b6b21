-- What `trinity fidelity` sets beside numbers that others measured or counted. A comparison is a module of this room
-- that returns { help = a line, options = { NAME = what trinity.options takes }, run = function(options) }: what it is
-- given are the values of its options and `json`; one that rests on fitted constants has constants(), a list of { name,
-- value, unit, meaning, least, most }. To add one, add its name to the list below.

local json = require 'trinity.base.json'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local fidelity = {}

--- Names of the comparisons, in the order of the help.
fidelity.names = { 'collectives', 'strategies', 'published', 'vtrain', 'sailor', 'plan' }

local function comparison(name) return require('trinity.fidelity.' .. name) end

--- The options of all comparisons, for trinity.options.
function fidelity.options()
  local all = {}
  for _, name in ipairs(fidelity.names) do
    for option, declared in util.sorted_pairs(comparison(name).options) do
      local before = all[option]
      all[option] = util.merged(declared, { help = before and ('%s; %s: %s'):format(before.help, name, declared.help)
        or ('%s: %s'):format(name, declared.help) })
    end
  end
  return all
end

--- A line of help for each.
function fidelity.help()
  return table.concat(util.map(fidelity.names, function(name)
    return ('%s: %s'):format(name, comparison(name).help)
  end), '; ')
end

--- Prints the constants of all comparisons, or of the one called `name`.
local function show_constants(name, as_json)
  local lines, all = {}, {}
  for _, one in ipairs(fidelity.names) do
    local listed = comparison(one).constants
    for _, c in ipairs((name == '' or name == one) and listed and listed() or {}) do
      all[#all + 1] = { comparison = one, name = c.name, value = c.value, unit = c.unit, least = c.least, most = c.most,
        meaning = c.meaning }
      lines[#lines + 1] = { one, c.name, ('%.4g'):format(c.value), c.unit, ('%g to %g'):format(c.least, c.most),
        c.meaning }
    end
  end
  if as_json then return print(json.encode { constants = all }) end
  print(text.format_table({ 'comparison', 'constant', 'value', 'unit', 'bounds', 'meaning' }, lines))
end

--- Runs the comparison called `name` with the options that the command line gave.
function fidelity.run(name, options)
  local known = {}
  for _, one in ipairs(fidelity.names) do known[one] = true end
  if name == '' and options.constants then return show_constants(name, options.json) end
  if name == '' then
    util.fail_usage('trinity fidelity COMPARISON: expected one of %s', table.concat(fidelity.names, ', '))
  end
  if not known[name] then
    util.fail_usage('trinity fidelity COMPARISON: unknown name %s', util.unknown(name, fidelity.names))
  end
  if options.constants then return show_constants(name, options.json) end
  local chosen = comparison(name)
  for option, declared in util.sorted_pairs(fidelity.options()) do
    if not chosen.options[option] and options[option] ~= declared.default then
      util.fail_usage("option '--%s' is not of '%s'", option, name)
    end
  end
  return chosen.run(options)
end

return fidelity
