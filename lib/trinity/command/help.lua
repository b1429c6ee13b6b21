-- Output of `trinity help [NAME]` and of the prompt's help: commands and the pages of the manual by part, or one page,
-- the options of a command or a model, the methods, the formats, an entry of the reference; for any other words the
-- places in the manual.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local declared = require 'trinity.command.declared'
local index = require 'trinity.command.manual_index'
local manual = require 'trinity.command.manual'
local model = require 'trinity.graph.model'
local reference = require 'trinity.command.reference'
local util = require 'trinity.base.util'

local help = {}

local function show_all()
  io.write('commands (trinity help NAME lists the options of one):\n',
    manual.listing(util.map(commands.names(), function(name) return { name, commands.about(name).description } end)),
    'pages of the manual (trinity help NAME shows one, trinity help WORDS finds them):\n')
  local rows, at = {}, 0
  for i, name in ipairs(manual.names()) do rows[i] = { name, manual.title(name) } end
  local lines = util.words(manual.listing(rows), '[^\n]+')
  for _, part in ipairs(manual.parts()) do
    io.write(part.name, '\n')
    for _ = 1, #part.pages do
      at = at + 1
      io.write(lines[at], '\n')
    end
  end
end

--- Names of the reference that have the words, joined by underscores, at the beginning of a part of theirs.
local function names_with(words, entries)
  local found, joined = {}, words:lower():gsub('[ -]', '_')
  for name in util.sorted_pairs(entries) do
    local at = name:lower():find(joined, 1, true)
    if at and (at == 1 or name:sub(at - 1, at - 1):match '[.:_]') then found[#found + 1] = name end
  end
  return found
end

--- Shows where the manual mentions some words; whether it does.
local function show_found(words)
  local terms, pages, rows = index.terms(words), index.find(words), {}
  for _, row in ipairs(terms) do
    local elsewhere = row[3] == '' and '' or (' Elsewhere: %s.'):format(row[3])
    io.write(manual.plain(('**%s**: %s.%s'):format(row[1], row[2], elsewhere)))
  end
  if #pages > 0 then
    for i = 1, math.min(#pages, 8) do rows[i] = pages[i] end
    io.write(('%s in the manual (trinity help PAGE shows one):\n'):format(util.quoted(words)), manual.listing(rows))
  end
  return #terms + #pages > 0
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
function help.topics()
  local all = { 'methods', 'formats' }
  for _, list in ipairs { commands.names(), manual.names(), model.names() } do
    for _, name in ipairs(list) do all[#all + 1] = name end
  end
  return all
end

--- Shows what there is about a name or some words; without any, the names of commands and pages.
function help.show(topic)
  if not topic then return show_all() end
  if topic == 'methods' then return show_methods() end
  if topic == 'formats' then return show_formats() end
  local page = manual.page(topic)
  if page then return io.write(manual.plain(manual.source(page))) end
  for _, name in ipairs(commands.names()) do
    if name == topic then
      local command = commands.about(name)
      print(declared.text(command.options, command.description, true))
      show_found('trinity ' .. name)
      return
    end
  end
  local about = model.about(topic)
  if about then return show_model(topic, about) end
  local entries = reference.names(declarations.read())
  if entries[topic] then
    if topic:match '^[%l_]+$' then show_found(topic) end -- a field's or a function's name may be a word of the manual
    return io.write(manual.plain(reference.entry(topic)))
  end
  local now = require('trinity.base.renamed')[topic]
  if now then util.fail_usage("help: '%s' is now 'trinity %s'", topic, now) end
  local found, functions = show_found(topic), names_with(topic, entries)
  if #functions > 0 then
    io.write('in the reference: ', table.concat(functions, ', ', 1, math.min(#functions, 8)), '\n')
  end
  local types = util.filtered(core.operator_types(), function(name) return name:lower() == topic:lower() end)
  if types[1] then
    io.write(("%s: a type of operators, for net:operator('%s', ...); see trinity help own_models\n"):format(types[1],
      types[1]))
  end
  if found or #functions > 0 or types[1] then return end
  local known = help.topics()
  local near = core.suggestion(topic, known)
  if near == '' then near = core.suggestion(topic, util.sorted_keys(entries)) end
  util.fail_usage("help: nothing about %s%s ('trinity help' lists commands and pages)", util.quoted(topic), near)
end

return help
