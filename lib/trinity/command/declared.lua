-- Declared options of a script (trinity.options): common options of all scripts, options for a cluster, the --help
-- text.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local renamed = require 'trinity.base.renamed'
local units = require 'trinity.base.units'
local util = require 'trinity.base.util'

local declared = {}

-- Options of every script that is started as a program, unless it declares an option of that name.
declared.common = {
  run = { type = 'string',
    help = "name of the run's folder (default: from script, model, cluster and a count); none: no folder" },
  runs = { type = 'string', help = 'folder of all runs (default: $TRINITY_RUNS, or runs); none: no folder' },
  resume = { default = false, help = 'resume the interrupted run of --run' },
  quiet = { default = false, help = 'no progress on standard error' },
}

-- Options of every script that has a cluster.
local of_cluster = {
  constants = { default = 'calibrated',
    help = 'GPU constants: calibrated, data_sheet, or a Lua file (trinity help accuracy)' },
  runtime = { type = 'string',
    help = 'training software: megatron (default on calibrated GPUs), megatron-2024, any (trinity help accuracy)' },
  slow = { type = 'string', help = 'slower devices, machines, NICs or links, each with a factor: n7/gpu3=1.3,n1=2' },
}

-- Follows the description of a script that has no run folder. Such a script accepts --run none only.
local no_run = 'keeps no run'

local types = { string = true, number = true }

--- Returns a declaration with its type, by default the type of its default value.
local function complete(name, option, further)
  if type(option) ~= 'table' or option.default == nil and not types[option.type] then
    check.wrong('trinity.options', 'option', name, option, "a table with a default, or with type 'string' or 'number'")
  end
  if option.unit ~= nil then check.choice('trinity.options', 'option', name .. '.unit', option.unit, units.texts) end
  return setmetatable(util.merged({ type = option.type or type(option.default) }, further), { __index = option })
end

--- Returns the declarations of a script by name, its description, and whether it has run folders. For a program,
--- declarations include the common options and those for a cluster.
function declared.read(spec, is_program)
  local named, all, keeps_run = {}, {}, spec[2] ~= no_run
  for name, option in util.sorted_pairs(spec) do
    if type(name) == 'string' then named[name] = option
    elseif name ~= 1 and (name ~= 2 or keeps_run) then
      check.refuse('trinity.options', 1, 'spec', 'names of options are strings, got %s', util.describe(name))
    end
  end
  for name, option in util.sorted_pairs(is_program and declared.common or {}) do
    local hidden = not keeps_run and (name == 'run' or name == 'resume')
    all[name] = complete(name, option, { common = true, hidden = hidden })
  end
  for name, option in util.sorted_pairs(is_program and named.cluster and not named.constants and of_cluster or {}) do
    all[name] = complete(name, option, { of_cluster = true })
  end
  for name, option in util.sorted_pairs(named) do all[name] = complete(name, option) end
  return all, spec[1], keeps_run
end

function declared.positional(all)
  for name, option in util.sorted_pairs(all) do
    if option.position then return name end
  end
end

function declared.shown(name) return '--' .. name:gsub('_', '-') end

function declared.about(option)
  local notes = {}
  if option.position then notes[1] = 'positional' end
  local default = option.default
  if default == '' then default = "''" end
  if default and type(default) ~= 'table' then notes[#notes + 1] = 'default: ' .. tostring(default) end
  return (option.help or '') .. (#notes > 0 and (' (%s)'):format(table.concat(notes, '; ')) or '')
end

-- Options that --help leaves to --help-all: options declared with `rare = true`, and with them the options of every
-- script and of clusters.
local function rare_of(all)
  local some, rare = false, {}
  for name, option in util.sorted_pairs(all) do
    rare[name] = option.rare or option.common or option.of_cluster and name ~= 'runtime'
    some = some or option.rare
  end
  return some and rare or {}
end

--- Whether --help leaves options to --help-all.
function declared.has_rare(all) return next(rare_of(all)) ~= nil end

local columns = 120 -- of --help

--- The text of --help, or of --help-all: `whole`.
function declared.text(all, description, whole)
  local own, common, width, rare, left = {}, {}, #'--help', rare_of(all), 0
  for name, option in util.sorted_pairs(all) do
    if rare[name] and not whole and not option.hidden then
      left = left + 1
    elseif not option.hidden then
      table.insert(option.common and common or own, name)
      width = math.max(width, #name + 2)
    end
  end
  if next(rare) then width = math.max(width, #'--help-all') end
  local lines = { description and description .. '\n', 'options:' }
  if not description then table.remove(lines, 1) end
  local function add(shown, words)
    local line = ('  %-' .. width .. 's '):format(shown)
    for word in words:gmatch '%S+' do
      if #line + 1 + #word > columns then
        lines[#lines + 1], line = line, (' '):rep(width + 3)
      end
      line = line .. ' ' .. word
    end
    lines[#lines + 1] = line
  end
  for _, name in ipairs(own) do add(declared.shown(name), declared.about(all[name])) end
  add('--help', 'this text')
  if left > 0 then add('--help-all', ('%d more options'):format(left)) end
  if #common > 0 then lines[#lines + 1] = 'of every script:' end
  for _, name in ipairs(common) do add(declared.shown(name), declared.about(all[name])) end
  return table.concat(lines, '\n')
end

local function command()
  local path = (rawget(_G, 'arg') or {})[0]
  local folder = core.home .. '/scripts/'
  return path and path:sub(1, #folder) == folder and path:sub(#folder + 1):match '^([^/]+)%.lua$' or nil
end

--- Finds an option by its name, with - or _. Raises a usage error with the new name or a suggestion if there is none.
function declared.find(name, all)
  local plain = name:gsub('-', '_')
  for _, key in ipairs { name, plain } do
    if all[key] then return all[key], key end
  end
  local word = core.renamed(plain)
  if word ~= '' and all[word] then
    util.warn_renamed('--' .. name, '--' .. word:gsub('_', '-'))
    return all[word], word
  end
  local now = renamed[('%s --%s'):format(command() or '', plain)]
  if now then util.fail_usage("option '--%s' was replaced; use %s", name, now) end
  local names = { 'help' }
  for known in util.sorted_pairs(all) do names[#names + 1] = known end
  local near = util.near(name, names):gsub("'([^']+)'", function(of) return "'" .. declared.shown(of) .. "'" end)
  util.fail_usage("unknown option '--%s'%s (%s lists them)", name, near,
    declared.has_rare(all) and '--help-all' or '--help')
end

return declared
