-- The editor types of declared options (lib/trinity/base/options.lua), one file per directory of the library, which the
-- build writes to build/types. Also the reverse: the fields of objects and results from their editor types.

local core = require 'trinity.core'
local files = require 'trinity.files'
local options = require 'trinity.base.options'
local util = require 'trinity.base.util'

local option_types = {}

local home = core.home .. '/lib/trinity/'

--- Returns the modules below a folder that declare options.
local function declaring(folder, prefix, modules)
  for _, name in ipairs(core.list_folder(home .. folder)) do
    local stem = name:match '^(.*)%.lua$'
    if not stem and not name:find('.', 1, true) and name ~= '_meta' then
      declaring(folder .. name .. '/', prefix .. name .. '.', modules)
    elseif stem and core.read_file(home .. folder .. name):find '\n[^-\n][^\n]*= options[_of]*%.declare%(' then
      modules[#modules + 1] = ((prefix .. stem):gsub('%.init$', ''))
    end
  end
  return modules
end

--- Formats a number as a person would write it.
local function number_text(value)
  local power = math.log(value) / math.log(2)
  if value >= 2 ^ 24 and power % 1 == 0 then return ('2^%d'):format(power) end
  local short = ('%.2e'):format(value)
  local text = ('%.10g'):format(value)
  if math.abs(value) >= 1e6 and tonumber(short) == value then text = short:gsub('%.?0*e', 'e') end
  return (text:gsub('e%+?(%-?)0*', 'e%1'))
end

local function value_text(value)
  if type(value) == 'number' then return number_text(value) end
  if type(value) == 'string' then return ("'%s'"):format(value) end
  if type(value) == 'table' then return ('{ %s }'):format(table.concat(util.map(value, value_text), ', ')) end
  return tostring(value)
end

local any_number = 1e300 -- larger bounds are not shown

local function range_text(entry)
  local most = entry.most
  if type(most) == 'table' then most = most.text
  else most = most and most < any_number and number_text(most) or nil end
  if entry.above then return 'above 0' .. (most and ', at most ' .. most or '') end
  if entry.least then return number_text(entry.least) .. (most and ' to ' .. most or ' or more') end
  return most and 'at most ' .. most
end

--- Returns the text after an option's type: help, default, range.
local function about(entry)
  local notes = {}
  if entry.otherwise then notes[1] = 'default: ' .. entry.otherwise
  elseif entry.default ~= nil and entry.default ~= '' then notes[1] = 'default ' .. value_text(entry.default) end
  notes[#notes + 1] = range_text(entry)
  return entry.help .. (#notes > 0 and (' (%s)'):format(table.concat(notes, '; ')) or '')
end

local lua_types = { number = 'number', integer = 'integer', integers = 'integer[]', boolean = 'boolean',
  string = 'string', table = 'table', any = 'any', ['function'] = 'function', userdata = 'trinity.TorchTensor',
  tensor = 'trinity.Tensor', tensors = 'trinity.Tensor[]' }

local function words_text(words)
  return table.concat(util.map(words.list, function(word) return ("'%s'"):format(word) end), '|')
end

local function type_text(entry)
  local kind = entry[2]
  local text = entry.as or entry.words and (entry.words.alias or words_text(entry.words))
  if not text then
    if options.is(kind) then text = kind.name
    elseif kind == 'object' then text = 'trinity.' .. entry.class:gsub('^%l', string.upper)
    elseif kind == 'list' then text = entry.of .. '[]'
    else text = lua_types[kind] end
  end
  return entry.off and text .. '|false' or text
end

--- Returns the lines of a declaration.
local function class_text(declared)
  local lines = {}
  if declared.help then lines[1] = '--- ' .. declared.help end
  lines[#lines + 1] = ('---@class %s%s'):format(declared.name, declared.parent and ': ' .. declared.parent.name or '')
  for _, entry in ipairs(declared.own) do
    lines[#lines + 1] = ('---@field %s%s %s %s'):format(entry.name, entry.needed and '' or '?', type_text(entry),
      about(entry))
  end
  if declared.open then lines[#lines + 1] = ('---@field [string] any %s'):format(declared.open) end
  return table.concat(lines, '\n')
end

-- Returns the lines of the library's methods, from their registrations.
local function methods_text()
  local methods, lines = require 'trinity.methods', { '', '---@class trinity.MethodsModule', '---@since 0.1.0' }
  for _, name in ipairs(methods.names()) do
    local method = methods.info(name)
    if options.is(method.options) then
      lines[#lines + 1] = ('---@field %s fun(problem: trinity.Problem, options?: %s): trinity.Strategy?, '
        .. 'reason_why_there_is_none: string? %s%s. Example: `trinity.methods.%s(problem%s)`'):format(name,
        method.options.name, (method.help:gsub('^%l', string.upper)),
        method.source ~= '' and (' (%s)'):format(method.source) or '', name,
        method.budget and ', { evaluations = 32, quiet = true }' or '')
    end
  end
  return table.concat(lines, '\n')
end

local head = [[
---@meta _
-- Options of functions in lib/trinity/%s, generated by the build from the modules' declarations
-- (lib/trinity/base/options.lua).
error 'this file is for editors']]

--- Returns the texts of all directories of the library: { methods = text, ... }.
function option_types.texts()
  for _, name in ipairs(declaring('', 'trinity.', {})) do require(name) end
  local parts = {}
  local function add(room, text)
    parts[room] = parts[room] or { head:format(room) }
    table.insert(parts[room], text)
  end
  for name, words in util.sorted_pairs(options.aliases) do
    add(words.room, ('%s---@alias %s %s'):format(parts[words.room] and '' or '\n', name, words_text(words)))
  end
  for _, declared in util.sorted_pairs(options.declared) do add(declared.room, '\n' .. class_text(declared)) end
  add('methods', methods_text())
  local texts = {}
  for room, lines in util.sorted_pairs(parts) do texts[room] = table.concat(lines, '\n') .. '\n' end
  return texts
end

--- Writes the texts of all directories of the library to a folder.
function option_types.write(folder)
  for room, text in util.sorted_pairs(option_types.texts()) do files.write(('%s/%s.lua'):format(folder, room), text) end
end

local fields_head = [[
-- Fields of returned objects by class, from the editor types (lib/trinity/base/fields.lua; `build/trinity
-- tests/lua/golden.lua --accept fields` writes them): the fields of objects and results, the fields that hold results,
-- the results of methods and functions. Classes of results are written without `trinity.`, lists as `Class*`.

local given = { names = {}, nested = {}, returns = {} }

given.names = {
]]

local function is_taken(name)
  return options.declared[name] or name:match 'Spec$' or name:match 'Options$' or name:match 'Module$'
    or name == 'trinity'
end

-- Returns whether one of the classes is a plain table that functions return.
local function plain_of(classes)
  for _, name in ipairs(declaring('', 'trinity.', {})) do require(name) end
  return function(of)
    local name = of:match '^trinity%.[%w_]+' or ''
    local plain = classes[name] and not is_taken(name) and #classes[name].methods == 0
    local rest = plain and of:sub(#name + 1):gsub('%?$', '')
    return (rest == '' or rest == '[]') and name:sub(#'trinity.' + 1) .. rest:gsub('%[%]', '*') or nil
  end
end

local function each_field(classes, class, visit)
  while class do
    for _, field in ipairs(class.fields) do
      if field.name:match '^%w' then visit(field) end
    end
    class = classes[class.parent]
  end
end

-- Adds a line to a table of texts, broken where it is too long.
local function add_text(lines, name, words)
  local line, between = ("  ['%s'] = [["):format(name), ''
  for _, word in ipairs(words) do
    if #line + #word > 115 then lines[#lines + 1], line, between = line, '    ', '' end
    line, between = line .. between .. word, ' '
  end
  lines[#lines + 1] = line .. ']],'
end

-- The methods of classes as `trinity.Class.name`, functions of modules as `module.name`.
local function add_returns(classes, plain, lines)
  local label = { trinity = 'trinity' }
  for _, field in ipairs(classes.trinity.fields) do
    if field.type:match 'Module$' then label[field.type] = field.name end
  end
  for name, class in util.sorted_pairs(classes) do
    for _, method in ipairs(class.methods) do
      local result = method.returns[1] and plain(method.returns[1].type)
      -- One function of builders makes all tensors of graphs.
      if result and not result:match '^Tensor' then
        add_text(lines, ('%s.%s'):format(label[name] or name, method.name), { result })
      end
    end
  end
end

--- Returns the text of lib/trinity/base/field_names.lua: classes that functions return, not classes of arguments.
--- classes: from trinity.command.declarations.
function option_types.field_names(classes)
  local plain = plain_of(classes)
  local names, nested, returns = {}, {}, {}
  for name, class in util.sorted_pairs(classes) do
    local words, parts = {}, {}
    each_field(classes, class, function(field)
      words[#words + 1] = field.name
      local inner = plain(field.type)
      if inner then parts[#parts + 1] = ('%s=%s'):format(field.name, inner) end
    end)
    if not is_taken(name) then
      add_text(names, name, words)
      if #parts > 0 then add_text(nested, name, parts) end
    end
  end
  add_returns(classes, plain, returns)
  return ('%s%s\n}\n\ngiven.nested = {\n%s\n}\n\ngiven.returns = {\n%s\n}\n\nreturn given\n'):format(fields_head,
    table.concat(names, '\n'), table.concat(nested, '\n'), table.concat(returns, '\n'))
end

return option_types
