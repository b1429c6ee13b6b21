-- The reference of all functions and types for scripts, as Markdown, made from the editor types in lib/trinity
-- (trinity.command.declarations). `trinity help --markdown` prints it.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local declarations = require 'trinity.command.declarations'
local util = require 'trinity.base.util'

local reference = {}

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
  for _, field in ipairs(declared.classes.trinity.fields) do
    if field.type:match 'Module$' then modules[field.type] = 'trinity.' .. field.name end
  end
  return modules
end

local function signature(owner, method)
  local names = util.map(method.parameters, function(parameter)
    return parameter.name .. (parameter.optional and '?' or '')
  end)
  return ('%s%s%s(%s)'):format(owner, method.separator, method.name, table.concat(names, ', '))
end

local function item(label, type_text, optional, text)
  return ('- %s: `%s`%s%s'):format(label, type_text, optional and ', optional' or '', text ~= '' and '. ' .. text or '')
end

local function describe_method(lines, owner, method, class_since)
  lines[#lines + 1] = ('### `%s`'):format(signature(owner, method))
  lines[#lines + 1] = ''
  if method.description ~= '' then
    lines[#lines + 1] = method.description
    lines[#lines + 1] = ''
  end
  if method.since ~= class_since then lines[#lines + 1] = ('Since %s.\n'):format(method.since) end
  for _, parameter in ipairs(method.parameters) do
    lines[#lines + 1] = item(('`%s`'):format(parameter.name), parameter.type, parameter.optional, parameter.text)
  end
  for _, value in ipairs(method.returns) do lines[#lines + 1] = item('returns', value.type, false, value.text) end
  if #method.parameters + #method.returns > 0 then lines[#lines + 1] = '' end
end

local function describe_fields(lines, class)
  for _, field in ipairs(class.fields) do
    lines[#lines + 1] = item(('`%s`'):format(field.name), field.type, field.optional, field.text)
  end
  if #class.fields > 0 then lines[#lines + 1] = '' end
end

local function describe_class(lines, class, owner)
  lines[#lines + 1] = ('## %s'):format(owner)
  lines[#lines + 1] = ''
  if class.description ~= '' then lines[#lines + 1] = class.description .. '\n' end
  if class.since then lines[#lines + 1] = ('Since %s.\n'):format(class.since) end
  if class.parent then lines[#lines + 1] = ('Has the fields of `%s` too.\n'):format(class.parent) end
  describe_fields(lines, class)
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

--- Returns the whole reference as Markdown.
function reference.markdown()
  local declared = declarations.read()
  local modules = modules_of(declared)
  local lines = { ('# Reference of trinity %s'):format(core.version), '',
    'Made of lib/trinity by `trinity help --markdown`. A parameter with a question mark may be left out.', '' }
  for _, part in ipairs(parts) do
    lines[#lines + 1] = ('# %s\n'):format(part[2])
    for _, name in ipairs(ordered(declared)) do
      local kind, owner = kind_of(declared.classes[name], modules)
      if kind == part[1] then describe_class(lines, declared.classes[name], owner) end
    end
  end
  lines[#lines + 1] = '# Names of types\n'
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
        lines[#lines + 1] = item(('`%s.%s`'):format(owner, field.name), field.type, field.optional, field.text)
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
  return (table.concat(lines, '\n'):gsub('\n+$', '')) .. '\n'
end

return reference
