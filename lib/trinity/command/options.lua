-- trinity.options: a script's options, typed by their defaults, with --help for free.

local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local check = require 'trinity.base.check'
local declared = require 'trinity.command.declared'
local given_of = require 'trinity.command.given'
local model = require 'trinity.graph.model'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local runtimes = require 'trinity.cluster.runtimes'
local units = require 'trinity.base.units'
local util = require 'trinity.base.util'

local booleans = { ['true'] = true, yes = true, on = true, ['1'] = true,
  ['false'] = false, no = false, off = false, ['0'] = false }

local function convert(name, option, text)
  if option.type == 'number' then
    local value = units.number(text, option.unit)
    if not value then
      util.fail_usage("option '--%s': expected %s, got '%s'", name, units.texts[option.unit] or 'a number', text)
    end
    return value
  elseif option.type == 'boolean' then
    if booleans[text] == nil then
      util.fail_usage("option '--%s': expected true or false, got '%s'", name, text)
    end
    return booleans[text]
  end
  return text
end

local function check_range(name, option, value)
  local low, high = option.min, option.max
  if option.type == 'number' and ((low and value < low) or (high and value > high)
      or value ~= value or (option.integer and value % 1 ~= 0)) then
    util.fail_usage("option '--%s': expected %s%s%s, got %s", name,
      option.integer and 'an integer' or 'a number', low and (' from %.14g'):format(low) or '',
      high and (' to %.14g'):format(high) or '', tostring(value))
  end
end

--- Checks before any computation that output files can be written. An option's `writes` is the suffix that follows its
--- value in the file name ('' for a file itself). Without a value, nothing is written.
local function check_outputs(declarations, values)
  for name, option in util.sorted_pairs(declarations) do
    if option.writes and values[name] == '' and option.default ~= '' then
      util.fail_usage("option '--%s': expected the name of a file or folder, got ''", name)
    end
    if option.writes and (values[name] or '') ~= '' then
      local ok, message = pcall(core.check_output, values[name] .. option.writes)
      if not ok then
        if core.stop_requested() then error(message, 0) end
        error(("option '--%s': %s"):format(name, (util.unplaced(message):gsub('^trinity%.check_output: ', ''))), 0)
      end
    end
  end
end

--- Removes the common options from `values` and passes the others to the run.
local function use_common(declarations, values)
  local given = {}
  for name in util.sorted_pairs(declared.common) do
    if declarations[name].common then given[name], values[name] = values[name], nil end
  end
  if declarations.run.hidden and given.run == 'none' then given.run = nil end
  for _, name in ipairs { 'run', 'resume' } do
    if declarations[name].hidden and given[name] then
      util.fail_usage("option '--%s': this command keeps no run", name)
    end
  end
  if given.quiet then progress.quiet = true end
  run_state.configure { name = given.run, root = given.runs, resume = given.resume or false, options = values }
end

--- Applies --constants and --runtime to the clusters of the command.
local function use_cluster_options(values)
  if type(values.constants) ~= 'string' then return end
  local ok, message = pcall(runtimes.read, values.runtime, constants.read(values.constants).runtimes)
  if not ok then util.fail_usage((util.unplaced(message):gsub("^option '", "option '--"))) end
  model.set_cluster_options(values)
end

--- Sets an option from word i and, if it needs a value, from the next word. Returns the index of the last word used and
--- the option's name.
local function set(values, declarations, words, i, name, value)
  local option, key = declared.find(name, declarations)
  if value == '' and words[i]:sub(1, 2) == '--' and not words[i]:find('=', 1, true) then
    if option.type == 'boolean' then
      local says = words[i + 1] == 'true' or words[i + 1] == 'false'
      i = says and i + 1 or i
      value = says and words[i] or 'true'
    else
      i = i + 1
      value = words[i] or util.fail_usage("option '--%s' needs a value", name)
    end
  end
  if option.type == 'table' then
    if values[key] == option.default then values[key] = { unpack(option.default) } end
    table.insert(values[key], value)
  else
    values[key] = convert(key, option, value)
    check_range(key, option, values[key])
  end
  return i, key
end

--- Reads words against declarations; prints `description` and them on --help or --help-all, which end the program.
local function parse(words, declarations, description)
  local values, given, i, place = {}, {}, 1, declared.positional(declarations)
  for name, option in util.sorted_pairs(declarations) do values[name] = option.default end
  while words[i] do
    local name, value = words[i]:match('^%-%-([^=]+)=?(.*)$')
    local whole = name == 'help-all' or name == 'help_all'
    if words[i] == '-h' or name == 'help' or whole then
      print(declared.text(declarations, description, whole))
      os.exit(0)
    end
    if not name and (not place or words[i]:match '^%-.') then
      util.fail_usage("unexpected argument '%s' (--help lists options)", words[i])
    elseif not name then
      name, value = place, words[i]
      if declarations[place].type ~= 'table' then place = nil end
    end
    i, name = set(values, declarations, words, i, name, value)
    i, given[name] = i + 1, true
  end
  given_of[values] = given
  return values
end

--- Reads the script's command line (`words`, by default the global `arg`) against a declaration { name = { default =,
--- type =, help =, min =, max =, integer =, unit =, position =, writes =, rare = }, ... }. The type is the default's; a
--- list collects texts. Without a default, `type` ('string' or 'number') says it, and the value is nil where the option
--- is not given. Accepts --name=value, --name value, --name for booleans, - for _ in names, and one word without dashes
--- (any number for a list) for an option declared with `position = true`. Numbers may be written 2.5M or 64Ki, and with
--- unit 'bytes' 25GiB, with 'bytes/s' 10Gbit/s. `writes` says that an option names a file that the script will write,
--- and what follows in its name ('' or '.csv'); one that cannot be is an error. An unknown name, a wrong type or a
--- value out of range ends the program with status 2; --help prints the declaration and ends it, without options that
--- are `rare`, which --help-all has, too. Returns the values by name. The program's command line also takes --run,
--- --runs, --resume and --quiet, which go to the run (lib/trinity/runs/init.lua) and the progress line.
--- Example: `trinity.options({ steps = { default = 3, help = 'training steps' } }, { '--steps=4' }).steps`
---@param spec table<string|integer, trinity.OptionSpec|string> [1] describes the script, [2] 'keeps no run': no --run
---@param words? string[]
---@return table<string, any> values by name
return function(spec, words)
  check.argument('trinity.options', 1, 'spec', spec, 'table')
  if words ~= nil then check.list('trinity.options', 2, 'words', words, 'string') end
  local is_program = words == nil
  local declarations, description = declared.read(spec, is_program)
  local values = parse(words or rawget(_G, 'arg') or {}, declarations, description)
  check_outputs(declarations, values)
  if is_program then
    core.keep_what_is_found() -- a signal right after a search still leaves time to save its result
    use_common(declarations, values)
    use_cluster_options(values)
  end
  return values
end
