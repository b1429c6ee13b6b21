-- Comparisons of `trinity study fidelity` with numbers of others. A comparison is a module here that returns { help = a
-- line, takes = names of options below, shared = tables of ../shared/data by the option that they are the default of,
-- run = function(options), or what runs.lua asks for }. To add one, add its name to the list below.

local errors = require 'studies.fidelity.errors'
local fitted = require 'studies.fidelity.fitted'
local runs = require 'studies.fidelity.runs'
local shared = require 'studies.shared'
local util = require 'trinity.base.util'

local fidelity = {}

--- Names of the comparisons, in the order of the help.
fidelity.names = { 'kernels', 'collectives', 'published', 'vtrain', 'sailor', 'golden', 'plan' }

local function words(help) return { default = '', help = help } end
local function flag(help) return { default = false, help = help } end

local declared = {
  rows = words "table of measurements, or of what is asked (CSV; of collectives, also a folder of vTrain's)",
  also = { default = {}, help = 'another table or folder, whose rows follow; may be given several times' },
  cluster = words "Lua file of a function from a number of GPUs to a description of one's own cluster",
  plans = words 'folder of plans, with what is in it (JSON)',
  data = words 'folder of profiles, sizes and bandwidths',
  exchanges = words 'table of all-to-alls of experts (CSV)',
  every = { default = 8, min = 1, help = 'takes one row of matmuls in this number' },
  whole = flag 'searches all dimensions; else those that rows state, all others as published',
  simulations = { default = 24, integer = true, min = 1, max = 2 ^ 20, help = 'of every search, at most' },
  fit = flag 'fits the constants to the rows and prints these',
  cross_validate = flag 'fits without each network in turn, and predicts that one',
  only = words 'rows whose test or, in fits, group has these words in its name; other constants stay',
  parameters = words "in fits: those with one of these words, between commas, in the name ('h100.', 'composer-2023.')",
  more_rows = { default = {}, help = 'in fits: published:FILE or vtrain:FILE, rows that are fitted, too' },
  save = words 'in fits: the file for constants; rows and errors go to FILE.json',
  script = words 'prints this row as a Lua script that predicts the same',
}
local of_fits = util.words 'fit cross_validate only parameters more_rows save script'

local function comparison(name) return require('studies.fidelity.' .. name) end

--- The options that a comparison takes, as a set.
local function taken(name)
  local one = comparison(name)
  return util.set(util.joined(one.prediction and of_fits or {}, util.words(one.takes)))
end

--- The options of all comparisons, for trinity.options. The help of each says which comparisons take it.
function fidelity.options()
  local helps = util.map(fidelity.names, function(name) return ('%s: %s'):format(name, comparison(name).help) end)
  local all = { ('Compares predictions with numbers of others. %s; errors: lists what the last fits left.'):format(
      table.concat(helps, '; ')),
    comparison = { default = '', position = true, help = table.concat(fidelity.names, ', ') .. ', errors' },
    constants = { default = 'calibrated', help = "of GPUs: calibrated, data_sheet, or a file of Lua with one's own" },
    json = flag 'JSON on standard output and nothing else' }
  for option, one in util.sorted_pairs(declared) do
    local names = util.filtered(fidelity.names, function(name) return taken(name)[option] end)
    all[option] = util.merged(one, { help = ('%s: %s'):format(table.concat(names, ', '), one.help) })
  end
  return all
end

--- Runs the comparison that the command line names, with its options.
function fidelity.run(options)
  local name, known = options.comparison, util.joined(fidelity.names, { 'errors' })
  if not util.set(known)[name] then
    util.fail_usage('trinity study fidelity COMPARISON: unknown name %s', util.unknown(name, known))
  end
  if name == 'errors' then return errors.show(fitted.fits().errors, options.json) end
  local own, one, given = taken(name), comparison(name), util.merged(options)
  for option, about in util.sorted_pairs(declared) do
    if not own[option] and options[option] ~= about.default then
      util.fail_usage("option '--%s' is not of '%s'", option, name)
    end
  end
  for option, path in util.sorted_pairs(one.shared) do given[option] = shared(options[option], path) end
  if one.run then return one.run(given) end
  runs.run(one, given)
end

return fidelity
