-- The text of `trinity help [NAME]` and of the prompt's help: commands and chapters, or one chapter of the manual, the
-- options of a command or model, the methods, the formats, or an entry of the reference.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local declared = require 'trinity.command.declared'
local manual = require 'trinity.command.manual'
local model = require 'trinity.graph.model'
local reference = require 'trinity.command.reference'
local util = require 'trinity.base.util'

local help = {}

local function show_all()
  io.write('commands (trinity help NAME lists the options of one):\n',
    manual.listing(util.map(commands.names(), function(name) return { name, commands.about(name).description } end)),
    'chapters of the manual (trinity help NAME shows one):\n',
    manual.listing(util.map(manual.names(), function(name) return { name, manual.title(name) } end)))
end

local function show_methods()
  local methods, rows = require 'trinity.methods', {}
  for i, name in ipairs(methods.names()) do
    local about, notes = methods.info(name), {}
    if about.source ~= '' then notes[#notes + 1] = about.source end
    if about.budget then notes[#notes + 1] = 'uses evaluations' end
    if about.deterministic then notes[#notes + 1] = 'deterministic' end
    if about.needs ~= '' then notes[#notes + 1] = 'needs ' .. about.needs end
    rows[i] = { name, about.help .. (#notes > 0 and (' (%s)'):format(table.concat(notes, '; ')) or '') }
  end
  io.write('methods of trinity.methods (trinity.compare takes their names; see trinity help searching):\n',
    manual.listing(rows))
end

local function show_formats()
  local written, read = require('trinity.formats').table()
  local function rows(list)
    return util.map(list, function(row) return { row[1], ('%s (%s)'):format(row[2], row[3]) } end)
  end
  io.write('formats that strategies are exported to (trinity export --format NAME, strategy:export):\n',
    manual.listing(rows(written)), 'files that can be read (by trinity.model and the commands):\n',
    manual.listing(rows(read)))
end

--- The options of a model of models/.
local function show_model(name, about)
  local rows = {}
  for option, of in util.sorted_pairs(about.options or {}) do
    local default = of.default
    if type(default) == 'table' then default = table.concat(default, ',') end
    rows[#rows + 1] = { option, ('%s(default: %s)'):format(of.help and of.help .. ' ' or '',
      default == '' and "''" or tostring(default)) }
  end
  io.write(('%s: %s\noptions, of trinity.model or with --set NAME=VALUE:\n'):format(name, about.help or 'a model'),
    manual.listing(rows), ('of every model (trinity help ModelOptions): %s\n'):format(
      table.concat(model.common_options(), ', ')))
end

--- Returns all topics except entries of the reference.
---@return string[]
function help.topics()
  local all = { 'methods', 'formats' }
  for _, list in ipairs { commands.names(), manual.names(), model.names() } do
    for _, name in ipairs(list) do all[#all + 1] = name end
  end
  return all
end

--- Shows the help on a topic; without one, the names of commands and chapters.
---@param topic? string
function help.show(topic)
  if not topic then return show_all() end
  if topic == 'methods' then return show_methods() end
  if topic == 'formats' then return show_formats() end
  for _, name in ipairs(manual.names()) do
    if name == topic then return io.write(manual.plain(manual.source(name))) end
  end
  for _, name in ipairs(commands.names()) do
    if name == topic then
      local command = commands.about(name)
      return print(declared.text(command.options, command.description))
    end
  end
  local about = model.about(topic)
  if about then return show_model(topic, about) end
  local entries = reference.names(declarations.read())
  if entries[topic] then return io.write(manual.plain(reference.entry(topic))) end
  local now = require('trinity.command.renamed')[topic]
  if now then util.fail_usage("help: '%s' is now 'trinity %s'", topic, now) end
  local known = help.topics()
  local near = core.suggestion(topic, known)
  if near == '' then near = core.suggestion(topic, util.sorted_keys(entries)) end
  util.fail_usage("help: unknown topic %s%s ('trinity help' lists commands and chapters)", util.quoted(topic), near)
end

return help
