-- Reads the editor types (LuaLS annotations) of all functions and types for scripts. The types of a function are
-- directly above its definition in lib/trinity. lib/trinity/_meta has the types of C++ bindings, of objects made at run
-- time, and of tables that functions take or return. The types of declared options are generated
-- (lib/trinity/command/option_types.lua); arguments of layers are typed by their names
-- (lib/trinity/graph/layers/arguments.lua). The reference (trinity help --markdown) is made from all of them, and tests
-- compare them with the run-time objects.
--
-- read() gives { classes =, order =, aliases = }:
--   classes[name] = { name =, parent =, description =, fields =, methods =, members = }
--     fields[i] = { name =, optional =, type =, text = }; a name in brackets is any key of that type
--     methods[i] = { name =, separator = '.' | ':', parameters =, returns =, description = }
--       parameters[i] = { name =, optional =, type =, text = }, returns[i] = { type =, text = }
--     members[name] is the entry of one of the two lists
--   classes and methods have since =, the version of trinity that brought them: from ---@since
--     above a function or field, or below ---@class for members without one
--   order: names of classes in order of declaration; aliases[name] = { name =, type =, words = set or nil }
--
-- The text of a parameter or return may continue on lines below it that begin with ---.
--
-- These are methods of a class: a function of the table whose `local` is directly below ---@class, except metamethods;
-- a function of another file that such a table is made with (`name = module.name`, `name = require 'trinity.module'`);
-- `X.name = make(...)` where `make` is declared to return a fun(); a ---@field of type fun() whose first parameter is
-- self, or of a module.

local core = require 'trinity.core'
local files = require 'trinity.files'
local util = require 'trinity.base.util'

local declarations = {}

--- The version that brought what has no @since.
declarations.first_version = '0.1.0'

local openers, closers = '[%(%[{<]', '[%)%]}>]'

--- Splits `text` into the type at its beginning and the rest. A blank ends the type, except inside brackets and next to
--- the characters that join its parts.
function declarations.split_type(text)
  local depth, i = 0, 1
  while i <= #text do
    local c = text:sub(i, i)
    if c:match(openers) then depth = depth + 1
    elseif c:match(closers) then depth = depth - 1
    elseif c == ' ' and depth == 0 and not text:sub(1, i - 1):match '[:|,]%s*$' and not text:match('^%s+|', i) then
      break
    end
    i = i + 1
  end
  return text:sub(1, i - 1), (text:sub(i):gsub('^%s+', ''))
end

-- Splits a text at a character outside of brackets.
local function split(text, sign)
  local list, depth, first = {}, 0, 1
  for i = 1, #text do
    local c = text:sub(i, i)
    if c:match(openers) then depth = depth + 1
    elseif c:match(closers) then depth = depth - 1
    elseif c == sign and depth == 0 then
      list[#list + 1] = text:sub(first, i - 1)
      first = i + 1
    end
  end
  list[#list + 1] = text:sub(first)
  return list
end

--- Returns the alternatives of a type: 'A|B[]' gives { 'A', 'B[]' }.
function declarations.alternatives(type_text)
  return type_text:match '^fun%(' and { type_text } or split(type_text, '|')
end

-- Makes the method `name` from a type fun(self: A, b?: B): C, d: D.
local function of_type(name, type_text, description)
  local list, values = type_text:match '^fun(%b()):? ?(.*)$'
  local method = { name = name, separator = '.', parameters = {}, returns = {}, description = description }
  for _, part in ipairs(list == '()' and {} or split(list:sub(2, -2), ',')) do
    local label, optional, of = part:match '^ ?([%w_.]+)(%??): (.+)$'
    if label == 'self' then method.separator = ':'
    else table.insert(method.parameters, { name = label, optional = optional == '?', type = of, text = '' }) end
  end
  for _, part in ipairs(values == '' and {} or split(values, ',')) do
    local label, of = part:match '^ ?([%w_]+): (.+)$'
    table.insert(method.returns, { type = of or part:match '^ ?(.*)$', text = label and label:gsub('_', ' ') or '' })
  end
  return method
end

local Reader = {}
Reader.__index = Reader

--- Clears the annotations of the function or class that was just read.
function Reader:clear()
  self.description, self.parameters, self.returns, self.continued = {}, {}, {}, nil
  self.open, self.said, self.since = nil, false, nil
end

local handlers = {}

--- Starts or continues a class. Fields that follow are its members; functions of the `local` that follows are its
--- methods.
handlers['class'] = function(self, text)
  local name, parent = text:match '^([%w_.]+):? ?([%w_.]*)$'
  if not name then return false end
  local class = self.result.classes[name] or { name = name, description = '', fields = {}, methods = {}, members = {} }
  if parent ~= '' then class.parent = parent end
  if #self.description > 0 then class.description = table.concat(self.description, '\n') end
  if not self.result.classes[name] then table.insert(self.result.order, name) end
  self:clear()
  self.result.classes[name], self.class, self.open = class, class, class
  return true
end

handlers['field'] = function(self, text)
  local name, optional, rest = text:match '^(%[?[%w_]+%]?)(%??) (.+)$'
  if not name or not self.open or self.class.members[name] then return false end
  local type_text, note = declarations.split_type(rest)
  if note == '' then note = table.concat(self.description, ' ') end
  local field = { name = name, optional = optional == '?', type = type_text, text = note, since = self.since }
  table.insert(self.class.fields, field)
  self.class.members[name], self.description, self.since = field, {}, nil
  return true
end

handlers['param'] = function(self, text)
  local name, optional, rest = text:match '^([%w_.]+)(%??) (.+)$'
  if not name then return false end
  local type_text, note = declarations.split_type(rest)
  self.continued = { name = name, optional = optional == '?', type = type_text, text = note }
  table.insert(self.parameters, self.continued)
  return true
end

handlers['return'] = function(self, text)
  local type_text, note = declarations.split_type(text)
  self.continued = { type = type_text, text = note }
  table.insert(self.returns, self.continued)
  return true
end

handlers['since'] = function(self, text)
  if not text:match '^%d+%.%d+%.%d+$' or self.since then return false end
  if self.open and not self.open.since then self.open.since = text else self.since = text end
  return true
end

handlers['alias'] = function(self, text)
  local name, rest = text:match '^([%w_.]+) (.+)$'
  if not name then return false end
  local alias = { name = name, type = rest }
  if rest:match "^'[%w_'|]+'$" then alias.words = util.set(util.words(rest, "'([^']+)'")) end
  self.result.aliases[name] = alias
  return true
end

local ignored = { meta = true, generic = true, operator = true, overload = true, type = true, see = true }

local function add_method(class, method)
  if class.members[method.name] then return end
  table.insert(class.methods, method)
  class.members[method.name] = method
end

--- Reads a function, whose parameters must equal the declared ones: a method, or a function that another table may
--- export.
function Reader:method(owner, separator, name, list)
  local class, names = self.of_variable[owner], {}
  local declared = #self.parameters + #self.returns > 0
  if class and class.name == 'trinity.Layers' and not class.members[name] then
    local layers = require 'trinity.graph.layers.arguments'
    self.parameters = layers.typed(util.words(list), self.parameters)
    if #self.returns == 0 then self.returns = { { type = 'trinity.Tensor', text = '' } } end
  end
  if name:match '^__' or not class and not declared or class and class.members[name] then return not declared end
  for i, parameter in ipairs(self.parameters) do names[i] = parameter.name end
  local makes = not class and #names == 0 and self.returns[1].type:match '^fun%('
  if table.concat(names, ', ') ~= list and not makes then return false end
  local method = { name = name, separator = separator, parameters = self.parameters, returns = self.returns,
    description = table.concat(self.description, '\n'), since = self.since }
  self.said = true -- these lists are taken
  if class then add_method(class, method) else self.functions[self.module .. '.' .. name] = method end
  return true
end

-- Reads the functions that a table constructor exports: { class, name, 'module.function' }.
function Reader:entries(line)
  for name, variable, entry in line:gmatch '([%w_]+) = ([%w_]+)%.([%w_]+)' do
    table.insert(self.given, { self.table, name, (self.required[variable] or '') .. '.' .. entry })
  end
  for name, module, entry in line:gmatch "([%w_]+) = require%(?%s*'trinity%.([%w_.]+)'%)?%.?([%w_]*)" do
    table.insert(self.given, { self.table, name, module .. '.' .. entry })
  end
end

--- Reads the names of functions and tables from a line of code.
function Reader:code(line)
  local owner, separator, name, list = line:match '^function ([%w_]+)([.:])([%w_]+)%((.-)%)'
  if owner then return self:method(owner, separator, name, list) end
  name, list = line:match '^local function ([%w_]+)%((.-)%)'
  if not name then name, list = '', line:match '^return function%((.-)%)' end
  if list then return self:method('', '.', name, list) end
  local variable, rest = line:match '^local ([%w_]+)(.*)$'
  if variable and self.open then
    self.of_variable[variable] = self.open
    if rest:match '{' or rest:match '^ = late%.modules%(' then self.table = self.open end
  elseif variable then
    self.required[variable] = rest:match "^ = require 'trinity%.([%w_.]+)'"
  end
  if self.table and not line:match ' = late%.modules%(' then self:entries(line) end
  if line:sub(-1) == '}' then self.table = nil end
  local maker
  owner, name, maker = line:match '^([%w_]+)%.([%w_]+) = ([%w_]+)[ (]'
  local made = maker and self.functions[self.module .. '.' .. maker]
  if made and self.of_variable[owner] then
    local about = #self.description > 0 and table.concat(self.description, '\n') or made.description
    add_method(self.of_variable[owner], of_type(name, made.returns[1].type, about))
  end
  local result = self.functions[self.module .. '.' .. (line:match '^return ([%w_]+)$' or '?')]
  if result then self.functions[self.module .. '.'] = result end
  return #self.parameters + #self.returns == 0
end

function Reader:line(line)
  if line:match '^%-%-%-' then self.said = true end
  local annotation, text = line:match '^%-%-%-@(%w+) ?(.*)$'
  if annotation then self.continued = nil end
  if annotation then return ignored[annotation] or (handlers[annotation] and handlers[annotation](self, text)) end
  if line:match '^%-%-%-' then
    local words = line:gsub('^%-%-%- ?', '')
    if self.continued then self.continued.text = self.continued.text .. ' ' .. words
    else table.insert(self.description, words) end
    return true
  end
  local understood = self:code(line)
  if self.said then self:clear() end
  return understood
end

--- Reads a file. An annotation that is not understood is an error, even if no function follows.
function Reader:text(folder, path, text)
  if not text:find('---@', 1, true) then return end
  self.module = path:gsub('/?init%.lua$', ''):gsub('%.lua$', ''):gsub('/', '.')
  self.of_variable, self.required, self.table = {}, {}, nil
  self:clear()
  local count = 0
  for line in (text .. '\n'):gmatch '([^\n]*)\n' do
    count = count + 1
    if not self:line(line:match '^%s*(.*)$') then
      error(('%s%s:%d: not understood: %s'):format(folder, path, count, line), 0)
    end
  end
end

local function files_in(folder, below, list)
  for _, name in ipairs(core.list_folder(folder .. below)) do
    if name:match '%.lua$' then list[#list + 1] = below .. name
    elseif not name:match '%.' then files_in(folder, below .. name .. '/', list) end
  end
  return list
end

--- Turns exported functions and fields of function types into methods.
local function settle(self)
  for _, given in ipairs(self.given) do
    local class, name, method = given[1], given[2], self.functions[given[3]]
    if method then
      add_method(class, { name = name, separator = method.separator, parameters = method.parameters,
        returns = method.returns, description = method.description, since = method.since })
    end
  end
  local aliases = self.result.aliases
  for _, class in util.sorted_pairs(self.result.classes) do
    local fields, module = {}, class.name == 'trinity' or class.name:match 'Module$'
    for _, field in ipairs(class.fields) do
      local of = aliases[field.type] and aliases[field.type].type or field.type
      if of:match '^fun%(self:' or module and of:match '^fun%(' then
        class.members[field.name] = nil
        local made = of_type(field.name, of, field.text)
        made.since = field.since
        add_method(class, made)
      else
        fields[#fields + 1] = field
      end
    end
    class.fields = fields
    for _, method in ipairs(class.methods) do
      method.since = method.since or class.since or declarations.first_version
    end
  end
end

--- Reads all files below a folder, by default lib/trinity and the generated types of its declared options.
function declarations.read(folder)
  local made = not folder and require('trinity.command.option_types').texts() or {}
  folder = folder or core.home .. '/lib/trinity/'
  local self = setmetatable({ result = { classes = {}, order = {}, aliases = {} }, functions = {}, given = {} }, Reader)
  for name, text in util.sorted_pairs(made) do self:text('types/', name .. '.lua', text) end
  for _, path in ipairs(files_in(folder, '', {})) do self:text(folder, path, core.read_file(folder .. path)) end
  settle(self)
  return self.result
end

-- Returns the editor types of layers, whose arguments are typed by their names.
local function layers_text(class)
  return '---@meta _\n\n---@class trinity.Layers\n' .. table.concat(util.map(class.methods, function(method)
    local takes = util.map(method.parameters, function(one)
      return ('%s%s: %s'):format(one.name, one.optional and '?' or '', one.type)
    end)
    local gives = util.map(method.returns, function(one) return one.type end)
    return ('---@field %s fun(self: trinity.Layers, %s): %s %s\n'):format(method.name, table.concat(takes, ', '),
      table.concat(gives, ', '), (method.description:gsub('\n', ' ')))
  end))
end

--- Writes the editor types that are generated to a folder, as the build does to build/types.
function declarations.write(folder)
  local texts = require('trinity.command.option_types').texts()
  for room, text in util.sorted_pairs(texts) do files.write(('%s/%s.lua'):format(folder, room), text) end
  files.write(folder .. '/layers.lua', layers_text(declarations.read().classes['trinity.Layers']))
end

return declarations
