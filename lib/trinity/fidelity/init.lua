-- What `trinity fidelity` sets beside numbers that others measured or counted. A comparison is a module of this room
-- that returns { help = a line, options = { NAME = what trinity.options takes }, run = function(options) }: what it is
-- given are the values of its options and `json`. To add one, add its name to the list below.

local util = require 'trinity.base.util'

local fidelity = {}

--- Names of the comparisons, in the order of the help.
fidelity.names = { 'strategies', 'published' }

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

--- Runs the comparison called `name` with the options that the command line gave.
function fidelity.run(name, options)
  local known = {}
  for _, one in ipairs(fidelity.names) do known[one] = true end
  if name == '' then
    util.fail_usage('trinity fidelity COMPARISON: expected one of %s', table.concat(fidelity.names, ', '))
  end
  if not known[name] then
    util.fail_usage('trinity fidelity COMPARISON: unknown name %s', util.unknown(name, fidelity.names))
  end
  local chosen = comparison(name)
  for option, declared in util.sorted_pairs(fidelity.options()) do
    if not chosen.options[option] and options[option] ~= declared.default then
      util.fail_usage("option '--%s' is not of '%s'", option, name)
    end
  end
  return chosen.run(options)
end

return fidelity
