-- The reference of all functions and types for scripts, as Markdown, made from the editor types in lib/trinity
-- (trinity.command.declarations). `trinity help --markdown` prints it.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local declarations = require 'trinity.command.declarations'
local util = require 'trinity.base.util'

local reference, first_version = {}, declarations.first_version

--- Returns what a class is in a script: a module ('trinity.methods'), an object ('problem') or a table of fields
--- ('PlanSpec'), and the prefix of its functions.
local function kind_of(class, modules)
  if class.name == 'trinity' then return 'module', 'trinity' end
  if modules[class.name] then return 'module', modules[class.name] end
  local short = class.name:gsub('^trinity%.', '')
  if #class.methods > 0 then
    return 'object', (short:gsub('(%l)(%u)', '%1_%2'):lower())
  end
  return 'table', short
end

--- Returns the modules by class, as scripts name them: { ['trinity.MethodsModule'] = 'trinity.methods' }.
local function modules_of(declared)
  local modules = {}
  local function add(class, path)
    for _, field in ipairs(declared.classes[class].fields) do
      if field.type:match 'Module$' then
        modules[field.type] = path .. field.name
        add(field.type, modules[field.type] .. '.')
      end
    end
  end
  add('trinity', 'trinity.')
  return modules
end

--- Returns a function with its types: 'graph:unit(u: integer): integer[] operators'.
local function signature(owner, method)
  local names = util.map(method.parameters, function(parameter)
    return ('%s%s: %s'):format(parameter.name, parameter.optional and '?' or '', parameter.type)
  end)
  local values = util.map(method.returns, function(value)
    return value.type .. (value.text ~= '' and ' ' .. value.text or '')
  end)
  return ('%s%s%s(%s)%s'):format(owner, method.separator, method.name, table.concat(names, ', '),
    #values > 0 and ': ' .. table.concat(values, ', ') or '')
end

local function item(label, type_text, optional, text)
  return ('`%s`: `%s`%s%s'):format(label, type_text, optional and ', optional' or '', text ~= '' and '. ' .. text or '')
end

--- Returns the text of comments as paragraphs of one line each.
local function paragraph(text)
  return (text:gsub('\n([^\n%s-])', ' %1'))
end

local function since_text(since) return since and since ~= first_version and (' (since %s)'):format(since) or '' end

--- Adds a function: its types, what it does, what is said of its parameters.
local function describe_method(lines, owner, method, class_since)
  local head = ('### `%s`%s'):format(signature(owner, method),
    method.since ~= class_since and since_text(method.since) or '')
  local about = paragraph(method.description)
  local short = about ~= '' and #head + #about < 116
  lines[#lines + 1] = short and ('%s: %s'):format(head, about) or head
  if about ~= '' and not short then lines[#lines + 1] = about end
  for _, parameter in ipairs(method.parameters) do
    if parameter.text ~= '' then lines[#lines + 1] = ('- `%s`: %s'):format(parameter.name, parameter.text) end
  end
end

--- Adds fields; consecutive fields without a text share a line.
local function describe_fields(lines, fields)
  local bare = {}
  local function flush()
    if #bare > 0 then lines[#lines + 1] = '- ' .. table.concat(bare, '; ') end
    bare = {}
  end
  for _, field in ipairs(fields) do
    if field.text == '' then
      bare[#bare + 1] = item(field.name, field.type, field.optional, '')
    else
      flush()
      lines[#lines + 1] = '- ' .. item(field.name, field.type, field.optional, field.text)
    end
  end
  flush()
end

--- Adds a class. A table of fields begins with one line: its name and what it is.
local function describe_class(lines, class, owner)
  local about = paragraph(class.description)
  if class.parent then
    about = ('%s%sIt has the fields of `%s`, too.'):format(about, about ~= '' and ' ' or '', class.parent)
  end
  local head = ('## %s%s'):format(owner, since_text(class.since))
  if #class.methods == 0 then
    lines[#lines + 1] = about ~= '' and ('%s: %s'):format(head, about) or head
  else
    lines[#lines + 1] = '\n' .. head
    if about ~= '' then lines[#lines + 1] = about end
  end
  describe_fields(lines, class.fields)
  for _, method in ipairs(class.methods) do describe_method(lines, owner, method, class.since) end
end

local function describe_alias(alias) return ('- `%s`: `%s`'):format(alias.name, alias.type) end

local parts = { { 'module', 'Modules' }, { 'object', 'Objects' }, { 'table', 'Tables that functions take or give' } }

--- Returns the classes in the order of the reference: the library itself, then in order of declaration.
local function ordered(declared)
  local names = { 'trinity' }
  for _, name in ipairs(declared.order) do
    if name ~= 'trinity' then names[#names + 1] = name end
  end
  return names
end

function reference.markdown()
  local declared = declarations.read()
  local modules = modules_of(declared)
  local lines = { ('# Reference of trinity %s'):format(core.version), '',
    ('Made of lib/trinity by `trinity help --markdown`. A parameter with a question mark may be left out. All of it is '
      .. 'there since %s where nothing else is said.'):format(first_version) }
  for _, part in ipairs(parts) do
    lines[#lines + 1] = ('\n# %s'):format(part[2])
    for _, name in ipairs(ordered(declared)) do
      local kind, owner = kind_of(declared.classes[name], modules)
      if kind == part[1] then describe_class(lines, declared.classes[name], owner) end
    end
  end
  lines[#lines + 1] = '\n# Names of types'
  for _, alias in util.sorted_pairs(declared.aliases) do lines[#lines + 1] = describe_alias(alias) end
  return table.concat(lines, '\n') .. '\n'
end

--- Returns the entries: functions that write them, by all names of the entry.
local function entries_of(declared)
  local modules, entries = modules_of(declared), {}
  local function add(name, write)
    entries[name] = entries[name] or {}
    table.insert(entries[name], write)
  end
  for _, class_name in ipairs(ordered(declared)) do
    local class = declared.classes[class_name]
    local _, owner = kind_of(class, modules)
    local function write_class(lines) describe_class(lines, class, owner) end
    add(owner, write_class)
    if class_name ~= owner then add(class_name, write_class) end
    for _, method in ipairs(class.methods) do
      local function write(lines) describe_method(lines, owner, method) end
      add(owner .. method.separator .. method.name, write)
      if owner:match '%.' then add(owner:gsub('^trinity%.', '') .. method.separator .. method.name, write) end
      add(method.name, write)
    end
    for _, field in ipairs(class.fields) do
      local function write(lines)
        lines[#lines + 1] = '- ' .. item(('%s.%s'):format(owner, field.name), field.type, field.optional, field.text)
      end
      add(('%s.%s'):format(owner, field.name), write)
      add(field.name, write)
    end
  end
  for name, alias in util.sorted_pairs(declared.aliases) do
    add(name, function(lines) lines[#lines + 1] = describe_alias(alias) end)
  end
  return entries
end

--- Returns the set of names that entry() accepts.
function reference.names(declared) return entries_of(declared) end

--- Returns the entry of a class, function, field or type ('problem:evaluate', 'PlanSpec', 'evaluate'). If several have
--- the name, returns all of them.
function reference.entry(name)
  check.argument('reference.entry', 1, 'name', name, 'string')
  local entries, lines = entries_of(declarations.read()), {}
  if not entries[name] then
    util.fail_usage('the reference has no entry %s%s', util.quoted(name),
      core.suggestion(name, util.sorted_keys(entries)))
  end
  for _, write in ipairs(entries[name]) do write(lines) end
  return (table.concat(lines, '\n'):gsub('^\n+', '')) .. '\n'
end

return reference
