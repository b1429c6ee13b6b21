-- Job files with nested keys: a client's declaration, and values checked by it. A declaration is a text with lines
-- 'SECTION: KEY KEY:KIND KEY{choices} KEY=DEFAULT', SECTION is a dotted path (empty for the outermost keys); KIND is
-- int, float, flag, list, any or table; a section that ends in '*' accepts undeclared keys. A line that begins with a
-- blank continues the previous one.

local util = require 'trinity.base.util'

local nested = {}

local function plain(text) return text end
local function any(text)
  if text == 'true' or text == 'false' then return text == 'true' end
  return tonumber(text) or text
end
local read_default = { int = tonumber, float = tonumber, flag = any, any = any }

local function read_key(word, path)
  local name, rest = word:match '^([%w_]+)(.*)$'
  local choices, kind, default = rest:match '{(.-)}', rest:match ':(%a+)' or 'text', rest:match '=(.*)$'
  local key = { path = path == '' and name or path .. '.' .. name, kind = kind, section = path, name = name }
  if choices then
    key.choices = {}
    for choice in choices:gmatch '[^|]+' do table.insert(key.choices, choice) end
  end
  if default then key.default = (read_default[kind] or plain)(default) end
  return key
end

--- Parses a declaration: keys by path, and sections { open } by path.
---@param text string
---@return table
function nested.declare(text)
  local declared = { keys = {}, sections = { [''] = { open = false } } }
  for line in text:gsub('\n%s+', ' '):gmatch '[^\n]+' do
    local path, words = line:match '^([%w_.]*%*?):%s*(.*)$'
    local open = path:sub(-1) == '*'
    path = path:gsub('%*$', '')
    declared.sections[path] = { open = open }
    local at = path
    while at:find '%.' do
      at = at:match '^(.*)%.[^.]*$'
      declared.sections[at] = declared.sections[at] or { open = false }
    end
    for word in words:gmatch '%S+' do
      local key = read_key(word, path)
      declared.keys[key.path] = key
    end
  end
  return declared
end

local function fits(kind, value)
  if kind == 'int' then return type(value) == 'number' and value % 1 == 0 end
  if kind == 'float' then return type(value) == 'number' end
  if kind == 'flag' then return type(value) == 'boolean' end
  if kind == 'list' or kind == 'table' then return type(value) == 'table' end
  if kind == 'text' then return type(value) == 'string' end
  return true
end

--- Reads a tree of values into a job: job.flat (values by path), job.faults. Calls on_unknown(path, section) for an
--- undeclared key, on_kind(path, key, value) for a value of the wrong type.
---@param job table
---@param declared table
---@param tree table
---@param on_unknown fun(path: string, section: string)
---@param on_kind fun(path: string, key: table, value: any)
function nested.read(job, declared, tree, on_unknown, on_kind)
  job.flat, job.declared = job.flat or {}, declared
  local function walk(map, path)
    for name, value in util.sorted_pairs(map) do
      local full = path == '' and tostring(name) or path .. '.' .. name
      local key, section = declared.keys[full], declared.sections[full]
      if section and type(value) == 'table' and #value == 0 then
        job.flat[full] = job.flat[full] or {}
        walk(value, full)
      elseif key then
        if not fits(key.kind, value) then on_kind(full, key, value) end
        job.flat[full] = value
      elseif section then
        if type(value) ~= 'table' then on_kind(full, { kind = 'table' }, value) end
        job.flat[full] = value
      elseif declared.sections[path].open then
        job.flat[full] = value
      else
        on_unknown(full, path)
      end
    end
  end
  walk(tree, '')
end

--- Returns the values for rules: a tree of given values and defaults with all sections.
function nested.space(job)
  local tree = { gpus = job.gpus, given = function(path) return job.flat[path] ~= nil end }
  local function table_at(path)
    local at = tree
    for name in path:gmatch '[^.]+' do
      if type(at[name]) ~= 'table' then at[name] = {} end
      at = at[name]
    end
    return at
  end
  for path in util.sorted_pairs(job.declared.sections) do table_at(path) end
  for _, key in util.sorted_pairs(job.declared.keys) do
    if key.default ~= nil then table_at(key.section)[key.name] = key.default end
  end
  for path, value in util.sorted_pairs(job.flat) do
    local section, name = path:match '^(.*)%.([^.]*)$'
    local key = job.declared.keys[path]
    local known = not job.declared.sections[path] and (not key or fits(key.kind, value)) -- other values are faults
    if known then
      local at = table_at(section or '')
      if type(at[name or path]) ~= 'table' or type(value) == 'table' then at[name or path] = value end
    end
  end
  return tree
end

--- Returns a path as an argument: { name, value, choices, given, several }, or nil if it is no argument.
function nested.argument(job, path)
  local key = job.declared.keys[path]
  if not key then return job.flat[path] ~= nil and { name = path, given = true, several = true } or nil end
  local value = job.flat[path]
  if value == nil then value = key.default end
  return { name = path, value = value, given = job.flat[path] ~= nil, choices = key.choices,
    several = key.kind == 'list' or key.kind == 'any' or key.kind == 'table' }
end

--- Returns the job with one value changed.
function nested.with(job, path, value)
  local copy = util.merged(job, { flat = util.merged(job.flat) })
  copy.flat[path] = value
  return copy
end

return nested
