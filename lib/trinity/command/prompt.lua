-- Extensions of the interactive prompt: help(x), display of functions and arrays, completion of names that only the
-- library knows. The engine's prompt (engine/lua/repl.cpp) calls show and complete.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local prompt = {}

--- Returns the loaded functions of the library, keyed by the function: { 'trinity.model', 'trinity.model(name,
--- options?)' }.
local function known_functions()
  local declared = require('trinity.command.declarations').read()
  local known, library = {}, require 'trinity'
  local function add(class, owner, values)
    for _, method in ipairs(class.methods) do
      local value = method.separator == '.' and rawget(values, method.name)
      if type(value) == 'function' then
        local names = util.map(method.parameters, function(p) return p.name .. (p.optional and '?' or '') end)
        local name = ('%s.%s'):format(owner, method.name)
        known[value] = { name, ('%s(%s)'):format(name, table.concat(names, ', ')) }
      end
    end
  end
  add(declared.classes.trinity, 'trinity', library)
  for _, field in ipairs(declared.classes.trinity.fields) do
    local values, class = rawget(library, field.name), declared.classes[field.type]
    if type(values) == 'table' and class then add(class, 'trinity.' .. field.name, values) end
    local name = 'trinity.' .. field.name
    if type(values) == 'function' then known[values] = { name, name .. '(...)' } end
  end
  return known
end

local most_elements = 16

--- Returns the text for a value: the signature of a library function, or the elements of an array. Returns nil for
--- other values, which the prompt shows with tostring.
function prompt.show(value)
  if type(value) == 'function' then
    local about = known_functions()[value]
    return about and ('function %s  -- help(%s)'):format(about[2], about[1])
  elseif type(value) == 'cdata' and array.is(value) then
    local parts = util.listed(math.min(#value, most_elements), function(i) return tostring(value[i]) end)
    if #value > most_elements then parts[#parts + 1] = ('... %d more'):format(#value - most_elements) end
    return ('%s { %s }'):format(tostring(value), table.concat(parts, ', '))
  end
end

--- Returns the name of the reference entry for a value, or nil.
local function topic_of(value)
  if type(value) == 'function' then
    local about = known_functions()[value]
    return about and about[1]
  elseif type(value) == 'cdata' then
    return array.is_metrics(value) and 'Metrics' or array.is_int32(value) and 'Placement' or nil
  end
  local library = require 'trinity'
  if value == library then return 'trinity' end
  local class = util.class_of(value)
  if class then -- 'trinity.Problem' of an object 'problem'
    local name = 'trinity.' .. ('_' .. class):gsub('_(%l)', string.upper)
    return require('trinity.command.declarations').read().classes[name] and name or class
  end
  if type(value) ~= 'table' then return nil end
  for _, field in ipairs(require('trinity.command.declarations').read().classes.trinity.fields) do
    if rawget(library, field.name) == value then return field.type end
  end
end

local usage = [[
help 'NAME'   a chapter of the manual, a command, a model, a function: help 'searching', help 'problem:evaluate'
help(VALUE)   a function or an object of the library: help(trinity.compare), help(problem)
Tab completes names, fields, and names in quotes: trinity.model 'res<Tab>]]

--- Shows the help on a name (a string) or on a value of the library.
function prompt.help(...)
  if select('#', ...) == 0 then return print(usage) end
  local value = ...
  local topic = value
  if type(value) ~= 'string' then topic = topic_of(value) end
  if not topic then return print(('no help about %s'):format(util.describe(value))) end
  if type(value) ~= 'string' then
    local ok, entry = pcall(require('trinity.command.reference').entry, topic)
    if not ok then return print(('no help about %s'):format(util.describe(value))) end
    io.write(require('trinity.command.manual').plain(entry))
    return
  end
  local ok, message = pcall(require('trinity.command.help').show, topic)
  if ok then return end
  print((core.printable(tostring(message)):gsub("%('trinity help' lists[^)]*%)", '(help() shows the usage)')))
end

--- Names that can follow a word in quotes.
local quoted = {
  model = function() return require('trinity.graph.model').names() end,
  cluster = function() return require('trinity.graph.model').cluster_names() end,
  compare = function() return require('trinity.methods').names() end,
  methods = function() return require('trinity.methods').names() end,
  devices = function() return require('trinity.cluster.devices').names() end,
  help = function() return require('trinity.command.help').topics() end,
}

--- Returns the names for a quoted argument, by the last known word before it.
local function names_in_quotes(before)
  local names
  for word in before:gmatch '[%a_]+' do names = quoted[word] or names end
  return names and names()
end

--- Returns the fields of metrics if a path of globals ('found.metrics') leads to metrics.
local function fields_of(path, globals)
  local value = globals
  for name in path:gmatch '[^.:]+' do
    if type(value) ~= 'table' then return nil end
    value = rawget(value, name)
  end
  return array.is_metrics(value) and array.metrics_fields or nil
end

--- Returns completions of `word` at the end of `line` (up to the cursor) that only the library knows, or nil.
function prompt.complete(line, word, globals)
  local before, found = line:sub(1, #line - #word), {}
  local owner, sign, begun = word:match '^(.*)([.:])([%w_]*)$'
  local names, stem = nil, ''
  if before:match '["\']$' then
    names, begun = names_in_quotes(before), word
  elseif owner then
    names, stem = fields_of(owner, globals), owner .. sign
  end
  if not names then return nil end
  for _, name in ipairs(names) do
    if name:sub(1, #begun) == begun then found[#found + 1] = stem .. name end
  end
  return found
end

return prompt
