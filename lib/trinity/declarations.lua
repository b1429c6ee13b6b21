-- Reads the editor types in lib/trinity/_meta: what scripts can call, with types and descriptions. The
-- reference (trinity reference) is made of it, and tests compare it with what is there at run time.
--
-- read() gives { classes =, order =, aliases = }:
--   classes[name] = { name =, parent =, description =, variable =, fields =, methods =, members = }
--     fields[i] = { name =, optional =, type =, text = }; a name in brackets is any key of that type
--     methods[i] = { name =, separator = '.' | ':', parameters =, returns =, description = }
--       parameters[i] = { name =, optional =, type =, text = }, returns[i] = { type =, text = }
--     members[name] is the entry of one of the two lists
--   order: names of classes as they are declared; aliases[name] = { name =, type =, words = set or nil }

local core = require 'trinity.core'

local declarations = {}

local openers, closers = '[%(%[{<]', '[%)%]}>]'

--- The type that `text` begins with, and what follows it. Blanks end a type but inside brackets, and
--- beside the signs that join its parts.
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

--- The alternatives of a type: 'A|B[]' gives { 'A', 'B[]' }.
function declarations.alternatives(type_text)
  local list, depth, first = {}, 0, 1
  if type_text:match '^fun%(' then return { type_text } end
  for i = 1, #type_text do
    local c = type_text:sub(i, i)
    if c:match(openers) then depth = depth + 1
    elseif c:match(closers) then depth = depth - 1
    elseif c == '|' and depth == 0 then
      list[#list + 1] = type_text:sub(first, i - 1)
      first = i + 1
    end
  end
  list[#list + 1] = type_text:sub(first)
  return list
end

local Reader = {}
Reader.__index = Reader

--- Forgets what was said about the function or class that was just read.
function Reader:clear() self.description, self.parameters, self.returns = {}, {}, {} end

local handlers = {}

--- A class; fields and functions that follow are its members.
handlers['class'] = function(self, text)
  local name, parent = text:match '^([%w_.]+):? ?([%w_.]*)$'
  if not name or self.result.classes[name] then return false end
  self.class = { name = name, parent = parent ~= '' and parent or nil, fields = {}, methods = {}, members = {},
    description = table.concat(self.description, '\n'), file = self.file }
  self.result.classes[name] = self.class
  table.insert(self.result.order, name)
  self:clear()
  return true
end

handlers['field'] = function(self, text)
  local name, optional, rest = text:match '^(%[?[%w_]+%]?)(%??) (.+)$'
  if not name or not self.class then return false end
  local type_text, note = declarations.split_type(rest)
  local field = { name = name, optional = optional == '?', type = type_text, text = note }
  table.insert(self.class.fields, field)
  self.class.members[name] = field
  return true
end

handlers['param'] = function(self, text)
  local name, optional, rest = text:match '^([%w_.]+)(%??) (.+)$'
  if not name then return false end
  local type_text, note = declarations.split_type(rest)
  table.insert(self.parameters, { name = name, optional = optional == '?', type = type_text, text = note })
  return true
end

handlers['return'] = function(self, text)
  local type_text, note = declarations.split_type(text)
  table.insert(self.returns, { type = type_text, text = note })
  return true
end

handlers['alias'] = function(self, text)
  local name, rest = text:match '^([%w_.]+) (.+)$'
  if not name then return false end
  local alias = { name = name, type = rest }
  if rest:match "^'[%w_'|]+'$" then
    alias.words = {}
    for word in rest:gmatch "'([^']+)'" do alias.words[word] = true end
  end
  self.result.aliases[name] = alias
  return true
end

local ignored = { meta = true, generic = true, operator = true, overload = true, type = true, see = true }

--- A function of the class that its table stands for. Its parameters must be those declared above it.
function Reader:method(owner, separator, name, list)
  local class, names = self.of_variable[owner], {}
  for i, parameter in ipairs(self.parameters) do names[i] = parameter.name end
  if not class or table.concat(names, ', ') ~= list then return false end
  local method = { name = name, separator = separator, parameters = self.parameters, returns = self.returns,
    description = table.concat(self.description, '\n') }
  table.insert(class.methods, method)
  class.members[name] = method
  self:clear()
  return true
end

function Reader:line(line)
  local annotation, text = line:match '^%-%-%-@(%w+) ?(.*)$'
  if annotation then return ignored[annotation] or (handlers[annotation] and handlers[annotation](self, text)) end
  local variable = line:match '^local ([%w_]+) = {}$'
  local owner, separator, name, list = line:match '^function ([%w_]+)([.:])([%w_]+)%((.-)%) end$'
  if variable then
    self.class.variable, self.of_variable[variable] = variable, self.class
    self:clear()
    return true
  elseif owner then
    return self:method(owner, separator, name, list)
  elseif line:match '^%-%-%- ' then
    table.insert(self.description, line:sub(5))
    return true
  end
  return line == '' or line:match '^%-%- ' or line:match "^error '" or line:match '^return [%w_]+$'
end

--- Reads all files of lib/trinity/_meta. A line that is not understood is an error.
function declarations.read()
  local folder = core.home .. '/lib/trinity/_meta/'
  local self = setmetatable({ result = { classes = {}, order = {}, aliases = {} } }, Reader)
  for _, file in ipairs(core.list_folder(folder)) do
    self.file, self.of_variable, self.class = file, {}, nil
    self:clear()
    for line in io.lines(folder .. file) do
      if not self:line(line) then error(('%s: not understood: %s'):format(file, line), 0) end
    end
  end
  return self.result
end

return declarations
