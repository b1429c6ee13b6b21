-- trinity.options: a script's options, typed by their defaults, with --help for free.

local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local check = require 'trinity.base.check'
local given_of = require 'trinity.command.given'
local model = require 'trinity.graph.model'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local runtimes = require 'trinity.cluster.runtimes'
local units = require 'trinity.base.units'
local util = require 'trinity.base.util'

local booleans = { ['true'] = true, yes = true, on = true, ['1'] = true,
  ['false'] = false, no = false, off = false, ['0'] = false }

local function convert(name, declared, text)
  if declared.type == 'number' then
    local value = units.number(text, declared.unit)
    if not value then
      util.fail_usage("option '--%s': expected %s, got '%s'", name, units.texts[declared.unit] or 'a number', text)
    end
    return value
  elseif declared.type == 'boolean' then
    if booleans[text] == nil then
      util.fail_usage("option '--%s': expected true or false, got '%s'", name, text)
    end
    return booleans[text]
  end
  return text
end

local function check_range(name, declared, value)
  local low, high = declared.min, declared.max
  if declared.type == 'number' and ((low and value < low) or (high and value > high)
      or value ~= value or (declared.integer and value % 1 ~= 0)) then
    util.fail_usage("option '--%s': expected %s%s%s, got %s", name,
      declared.integer and 'an integer' or 'a number', low and (' from %g'):format(low) or '',
      high and (' to %g'):format(high) or '', tostring(value))
  end
end

local function shown(value)
  if type(value) == 'table' then return 'none' end
  if type(value) == 'string' then return value == '' and "''" or value end
  return tostring(value)
end

-- What every script takes that is started as a program, where it has no option of that name itself.
local common = {
  run = { default = '', help = "name of the run's folder; none: no folder; default: by script, model, cluster, count" },
  runs = { default = '', help = 'where folders of runs are; none: no folder; default: $TRINITY_RUNS, or runs' },
  resume = { default = false, help = 'goes on with the interrupted run of --run' },
  quiet = { default = false, help = 'no progress on standard error' },
}

-- What every command takes that has a cluster.
local of_cluster = {
  constants = { default = 'calibrated', help = "of the GPUs: calibrated, data_sheet, or a file of Lua with one's own "
    .. '(trinity help trust)' },
  runtime = { default = '', help = 'training software: ' .. table.concat(runtimes.names(), ', ')
    .. ' (default: megatron on calibrated GPUs)' },
}

-- What follows the description of a script that searches and keeps nothing: it takes --run none alone.
local no_run = 'keeps no run'

local function print_help(declarations, description)
  if description then print(description .. '\n') end
  print('options:')
  local width = 6
  for name in util.sorted_pairs(declarations) do width = math.max(width, #name) end
  for name, declared in util.sorted_pairs(declarations) do
    if not declared.common then
      print(('  --%-' .. width .. 's  %s (%sdefault: %s)'):format(name, declared.help or '',
        declared.position and 'or without --' .. name .. '; ' or '', shown(declared.default)))
    end
  end
  print(('  --%-' .. width .. 's  %s'):format('help', 'this text'))
  local begun = false
  for name, declared in util.sorted_pairs(declarations) do
    if declared.common and not declared.hidden then
      if not begun then print 'of every script:' end
      begun = true
      print(('  --%-' .. width .. 's  %s'):format(name, declared.help))
    end
  end
end

--- The declarations of `spec`, with the common options for a command line of the program. without: a run.
local function declare(spec, of_program, without)
  local declarations = {}
  for name, declared in util.sorted_pairs(of_program and common or {}) do
    declarations[name] = setmetatable({ type = type(declared.default), common = true,
      hidden = without and (name == 'run' or name == 'resume') }, { __index = declared })
  end
  if of_program and spec.cluster and not spec.constants then spec = util.merged(of_cluster, spec) end
  for name, declared in util.sorted_pairs(spec) do
    if type(name) ~= 'string' then
      check.refuse('trinity.options', 1, 'spec', 'names of options are strings, got %s', util.describe(name))
    end
    if type(declared) ~= 'table' or declared.default == nil then
      check.wrong('trinity.options', 'option', name, declared, 'a table with a default')
    end
    if declared.unit ~= nil then
      check.choice('trinity.options', 'option', name .. '.unit', declared.unit, units.texts)
    end
    declarations[name] = setmetatable({ type = type(declared.default) }, { __index = declared })
  end
  return declarations
end

--- The name of the option that words without dashes go to: that declared with `position = true`.
local function positional(declarations)
  for name, declared in util.sorted_pairs(declarations) do
    if declared.position then return name end
  end
end

--- The option that `name`, with - or _, calls.
local function find(name, declarations)
  local plain = name:gsub('-', '_')
  for _, key in ipairs { name, plain } do
    if declarations[key] then return declarations[key], key end
  end
  for _, declared in util.sorted_pairs(declarations) do
    local now = declared.replaces and declared.replaces[plain]
    if now then util.fail_usage("option '--%s' is no more; use %s", name, now) end
  end
  local names = { 'help' }
  for known in util.sorted_pairs(declarations) do names[#names + 1] = known end
  util.fail_usage("unknown option '--%s'%s (--help lists them)", name, core.suggestion(name, names))
end

--- Refuses names of files that cannot be written, before what is to be written there is computed. An option's `writes`
--- is what follows its value in the name of a file ('' for a file itself); where it is empty, nothing is written, or,
--- where the default is a name, that name is missing.
local function check_outputs(declarations, values)
  for name, declared in util.sorted_pairs(declarations) do
    if declared.writes and values[name] == '' and declared.default ~= '' then
      util.fail_usage("option '--%s': expected the name of a file or folder, got ''", name)
    end
    if declared.writes and values[name] ~= '' then
      local ok, message = pcall(core.check_output, values[name] .. declared.writes)
      if not ok then
        if core.stop_requested() then error(message, 0) end
        error(("option '--%s': %s"):format(name, (util.unplaced(message):gsub('^trinity%.check_output: ', ''))), 0)
      end
    end
  end
end

--- Takes the common options out of `values`, and tells the rest to the run.
local function use_common(declarations, values)
  local given = {}
  for name in util.sorted_pairs(common) do
    if declarations[name].common then given[name], values[name] = values[name], nil end
  end
  if declarations.run.hidden and given.run == 'none' then given.run = '' end
  for _, name in ipairs { 'run', 'resume' } do
    if declarations[name].hidden and given[name] ~= common[name].default then
      util.fail_usage("option '--%s': this command keeps no run", name)
    end
  end
  if given.quiet then progress.quiet = true end
  run_state.configure { name = given.run ~= '' and given.run or nil, root = given.runs ~= '' and given.runs or nil,
    resume = given.resume or false, options = values }
end

--- Has clusters of the command made with its constants and runtime.
local function use_cluster_options(values)
  if type(values.constants) ~= 'string' then return end
  constants.read(values.constants)
  runtimes.read(values.runtime)
  model.set_cluster_options(values)
end

--- Sets an option from word i and, where it needs one, the next word; returns the last word that it took, and the
--- option's name.
local function set(values, declarations, words, i, name, value)
  local declared, key = find(name, declarations)
  if value == '' and words[i]:sub(1, 2) == '--' and not words[i]:find('=', 1, true) then
    if declared.type == 'boolean' then
      local says = words[i + 1] == 'true' or words[i + 1] == 'false'
      i = says and i + 1 or i
      value = says and words[i] or 'true'
    else
      i = i + 1
      value = words[i] or util.fail_usage("option '--%s' needs a value", name)
    end
  end
  if declared.type == 'table' then
    if values[key] == declared.default then values[key] = { unpack(declared.default) } end
    table.insert(values[key], value)
  else
    values[key] = convert(key, declared, value)
    check_range(key, declared, values[key])
  end
  return i, key
end

--- Reads words against declarations; prints `description` and them on --help, which ends the program.
local function parse(words, declarations, description)
  local values, given, i, place = {}, {}, 1, positional(declarations)
  for name, declared in util.sorted_pairs(declarations) do values[name] = declared.default end
  while words[i] do
    local name, value = words[i]:match('^%-%-([^=]+)=?(.*)$')
    if words[i] == '-h' or name == 'help' then
      print_help(declarations, description)
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
--- help =, min =, max =, integer =, unit =, position =, writes =, replaces = }, ... }. The type is the
--- default's; a list collects texts. Accepts --name=value, --name value, --name for booleans, and one word without
--- dashes (any number for a list) for an option declared with `position = true`. Numbers may be written 2.5M or 64Ki,
--- and with unit 'bytes' 25GiB, with 'bytes/s' 10Gbit/s. `writes` says that an option names a file that the script
--- will write, and what follows in its name ('' or '.csv'); one that cannot be is an error. `replaces`:
--- names that are refused, with what to write instead. An unknown name, a wrong type or a value out of range ends the
--- program with status 2; --help prints the declaration and ends it. Returns the values by name. The program's
--- command line also takes --run, --runs, --resume and --quiet, which go to the run (lib/trinity/runs/init.lua) and the
--- progress line.
---@param spec table<string|integer, trinity.OptionSpec|string> [1] describes the script, [2] 'keeps no run': no --run
---@param words? string[]
---@return table<string, any> values by name
return function(spec, words)
  check.argument('trinity.options', 1, 'spec', spec, 'table')
  if words ~= nil then check.list('trinity.options', 2, 'words', words, 'string') end
  local of_program, named = words == nil, {}
  for key, value in util.sorted_pairs(spec) do
    if key ~= 1 and (key ~= 2 or value ~= no_run) then named[key] = value end
  end
  local declarations = declare(named, of_program, spec[2] == no_run)
  local values = parse(words or rawget(_G, 'arg') or {}, declarations, spec[1])
  check_outputs(declarations, values)
  if of_program then
    core.keep_what_is_found() -- a signal just behind a search leaves the time to keep its result, too
    use_common(declarations, values)
    use_cluster_options(values)
  end
  return values
end
