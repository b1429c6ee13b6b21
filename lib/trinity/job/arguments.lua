-- Arguments of clients: a client's declaration, and the values of a job by it. A declaration is a file of lines
-- 'SECTION KIND: KEY KEY:KIND KEY{choices} KEY=DEFAULT', read by the reader of files, the rules, and the writer of
-- changes:
--
--   SECTION   a dotted path, '.' for the outermost keys; one that ends in '*' accepts undeclared keys (a line may have
--             several sections without keys); '--' for
--             arguments of a command line, whose paths have _ for - (KEY>PATH: another path)
--   KIND      int, float, text (default), flag, off (a flag that turns PATH off), layers, list, table, any, or lax
--             (any, but a truth value as Pydantic reads it where the default is one)
--   + ?       after a key: it takes several words, or none
--
-- A line that begins with a blank continues the previous one.

local core = require 'trinity.core'
local patterns = require 'trinity.job.patterns'
local util = require 'trinity.base.util'

local arguments = {}

local function number(text)
  return not text:match '^0[xX]' and tonumber((text:gsub('(%d)_', '%1'))) or nil -- 300_000, as in Python
end

--- Readers of words by kind: nil for a word of another kind.
arguments.readers = {
  int = function(text) return text:match '^[+-]?[%d_]+$' and number(text) or nil end,
  float = number,
  text = function(text) return text end,
  layers = patterns.layers,
  any = function(text)
    if text == 'true' or text == 'false' then return text == 'true' end
    return tonumber(text) or text
  end,
}
arguments.readers.flag, arguments.readers.lax = arguments.readers.any, arguments.readers.any

local kinds = util.merged(arguments.readers, { off = true, list = true, table = true })

local function read_key(word, section, kind, command_line)
  local name, rest = word:match '^([%w_-]+)(.*)$'
  local choices, default = rest:match '{(.-)}', rest:match '=([^{}]*)$'
  rest = rest:gsub('[{=].*$', '')
  local key = { section = section, kind = rest:match ':(%a+)' or kind, several = rest:find('+', 1, true) ~= nil,
    optional = rest:find('?', 1, true) ~= nil, name = command_line and '--' .. name or name }
  key.several = key.several or key.kind == 'list' or key.kind == 'table'
  local read = arguments.readers[key.kind]
  if command_line then
    local plain = key.kind == 'off' and name:gsub('^%a+%-', '', 1) or name
    key.path = rest:match '>([%w_]+)' or plain:gsub('%-', '_')
    if not read or key.kind == 'flag' then key.default = key.kind == 'off' end
  else
    key.path = section == '' and name or section .. '.' .. name
  end
  if choices then
    key.choices = {}
    for choice in choices:gmatch '[^|]+' do table.insert(key.choices, (read(choice))) end
  end
  if default then key.default = read(default) end
  return key
end

--- Returns the text of records/NAME.txt, without its comments.
function arguments.records(name)
  local text = util.read_file(core.home .. '/lib/trinity/job/records/' .. name .. '.txt')
  return (('\n' .. text):gsub('\n#[^\n]*', ''):sub(2))
end

--- Parses a declaration (records/CLIENT_arguments.txt): keys by path, arguments of the command line by word, and
--- sections { open } by path.
function arguments.declare(client)
  local declared = { keys = {}, words = {}, sections = { [''] = { open = false } } }
  local text = arguments.records(client .. '_arguments'):gsub('|\n%s+', '|'):gsub('\n%s+', ' ')
  for line in text:gmatch '[^\n]+' do
    local head, words = line:match '^(.-):%s*(.*)$'
    local kind, path, command_line = 'text', nil, false
    for name in head:gmatch '%S+' do
      local section = name:gsub('%*$', ''):gsub('^%.$', '')
      if kinds[name] then
        kind = name
      elseif name == '--' then
        path, command_line = '', true
      else
        path = path or section
        declared.sections[section] = { open = name:sub(-1) == '*' }
        for outer in section:gmatch '()%.' do
          outer = section:sub(1, outer - 1)
          declared.sections[outer] = declared.sections[outer] or { open = false }
        end
      end
    end
    for word in words:gmatch '%S+' do
      local key = read_key(word, path, kind, command_line)
      declared.words[key.name] = key
      local first = declared.keys[key.path]
      local own = key.name == '--' .. key.path:gsub('_', '-')
      if not first or own then declared.keys[key.path] = key end
    end
  end
  return declared
end

--- Adds a finding of the parser: the client does not accept an argument, or ignores it.
function arguments.fault(job, code, text, path, effect, source)
  job.faults[#job.faults + 1] = { code = code, effect = effect or 'refused', text = text, paths = { path },
    source = source or job.reader.parser, release = job.reader.release }
end

local types = { int = 'number', float = 'number', flag = 'boolean', off = 'boolean', text = 'string' }
local kind_texts = { int = 'a whole number', float = 'a number', flag = 'true or false', lax = 'true or false',
  text = 'a text', list = 'a list', table = 'a table' }

local truths = util.set 'true 1 yes on t y'
for word in ('false 0 no off f n'):gmatch '%S+' do truths[word] = false end

-- Returns a value as the client reads it, or nil if it has another type.
local function read_value(key, value)
  if key.kind == 'lax' and type(key.default) == 'boolean' then return truths[tostring(value):lower()] end
  return value
end

local function fits(key, value)
  if read_value(key, value) == nil then return false end
  if key.several then return type(value) == 'table' end
  return not types[key.kind] or type(value) == types[key.kind] and (key.kind ~= 'int' or value % 1 == 0)
end

--- Reads a tree of values into a job: job.values and job.given by path, job.faults, job.unread. An undeclared key of
--- section `section` has the effect reader.undeclared(job, section), with its source: refused, ignored or nil.
function arguments.read(job, tree)
  local declared = job.reader.declared
  job.values, job.given = {}, {}
  local function wrong_kind(path, key, value)
    arguments.fault(job, 'value-kind', ('%s: expected %s, got %s.'):format(path, kind_texts[key.kind],
      util.describe(value)), path)
  end
  local function walk(map, section)
    for name, value in util.sorted_pairs(map) do
      local path = section == '' and tostring(name) or section .. '.' .. name
      local key, inner = declared.keys[path], declared.sections[path]
      local open = type(value) == 'string' and (job.reader.auto and value == 'auto' or value:find '^%${')
      if open then -- filled in by another program
        job.unread[#job.unread + 1], job.unclear[path] = path .. ': ' .. value, true
      elseif inner and type(value) == 'table' and #value == 0 then
        job.given[path], job.values[path] = path, {}
        walk(value, path)
      elseif key or inner or declared.sections[section].open then
        key = key or inner and not inner.open and { kind = 'table', several = true } or { kind = 'any' }
        if not fits(key, value) then wrong_kind(path, key, value) end
        job.given[path], job.values[path] = path, value
      else
        job.unread[#job.unread + 1] = path
        local effect, source = job.reader.undeclared(job, section)
        local known = {}
        for full, other in util.sorted_pairs(declared.keys) do
          if other.section == section then known[#known + 1] = full end
        end
        if not effect then
          job.values[path], job.given[path] = value, path
        else
          arguments.fault(job, 'key-unknown', ('An unknown key is %s: %s.'):format(effect, util.unknown(path, known)),
            path, effect, source)
        end
      end
    end
  end
  walk(tree, '')
end

function arguments.put(tree, path, value)
  local outer, name = path:match '^(.*)%.([^.]*)$'
  for part in (outer or ''):gmatch '[^.]+' do
    if type(tree[part]) ~= 'table' then tree[part] = {} end
    tree = tree[part]
  end
  if type(tree[name or path]) ~= 'table' or type(value) == 'table' then tree[name or path] = value end
end

--- Returns the values for rules: a tree of given values and defaults with all sections, and given(path).
function arguments.space(job)
  local tree, declared = { gpus = job.gpus, capability = job.capability }, job.reader.declared
  for path in util.sorted_pairs(declared.sections) do if path ~= '' then arguments.put(tree, path, {}) end end
  for path, key in util.sorted_pairs(declared.keys) do
    if key.default ~= nil and not job.unclear[path] then arguments.put(tree, path, key.default) end
  end
  for path, value in util.sorted_pairs(job.values) do
    local key = declared.keys[path]
    if not declared.sections[path] and (not key or fits(key, value)) then -- other values are faults
      if key then value = read_value(key, value) end
      arguments.put(tree, path, value)
    end
  end
  tree.given = function(path) return job.given[path] ~= nil end
  return tree
end

--- Returns a path as an argument: { name, value, choices, given, several, kind }, or nil if it is no argument.
function arguments.of(job, path)
  local key = job.reader.declared.keys[path]
  local value = job.values[path]
  if path == '--launch' and job.source.launch then
    return { name = path, value = job.source.launch, given = true, several = true }
  end
  if not key then return value ~= nil and { name = path, given = true, several = true } or nil end
  if value == nil then value = key.default end
  return { name = job.given[path] or arguments.label(job.reader, path), value = value, choices = key.choices,
    given = job.given[path] ~= nil, kind = key.kind, several = key.several or key.kind == 'any' }
end

--- Returns the name of a path in the client's files.
function arguments.label(reader, path)
  local key = reader.declared.keys[path]
  return key and key.name:match '^%-%-' and key.name or path
end

function arguments.with(job, path, value)
  local copy = util.merged(job, { values = util.merged(job.values), given = util.merged(job.given) })
  copy.values[path] = value
  copy.given[path] = value ~= nil and (job.given[path] or arguments.label(job.reader, path)) or nil
  return copy
end

return arguments
