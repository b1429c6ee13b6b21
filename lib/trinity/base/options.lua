-- Options of functions, each declared once: name, type or words, range, default and a help text. Checks of a caller's
-- table, defaults, editor types and the reference (lib/trinity/command/option_types.lua) are derived from the
-- declaration:
--
--   local declared = options.declare('trinity.PostOptions', { extends = search.declared, help = 'Of methods.post.',
--     { 'samples', 'integer', 12, least = 1, most = 65536, help = 'placements per update' },
--     { 'mode', { 'cuts', 'literal' }, 'cuts', help = 'how groups are sampled' } })
--
-- An option is { name, type, default or nil, ... } with
--   type       'integer', 'number', 'boolean', 'string', 'table', 'function', 'any', 'userdata', 'tensor', 'tensors';
--              a list of words, or what options.words returns; 'object' with `class`; 'list' with `of`, the entries'
--              Lua type; 'integers'; a declaration, of a table within the table
--   least, most, above (0)   the range, inclusive except `above`; `most` may be a result of options.bound
--   needed     true: it is required
--   late       true: its reader chooses the default (a preset's, the engine's); `default` is only shown
--   otherwise  text about the behaviour without it
--   off        true: `false` is allowed, too
--   check      function(owner, place, name, value), instead of the type's check: it raises an error for a wrong value
--   as         type for editors, if it differs from `type`
--   help       a text
--
-- A declaration has `name`, `own` (its options), `all` (including those that it extends), `by_name`, and the methods
-- below.

local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local options = {}

--- Declarations by class name and sets of words by alias, of all loaded modules.
options.declared, options.aliases = {}, {}

local Words = {}
Words.__index = Words

-- Returns the directory of the library ('methods') of the module that calls declare() or words().
local function room_of(level)
  return debug.getinfo(level + 1, 'S').source:match 'lib/trinity/([%w_]+)' or 'base'
end

local function words_of(alias, given)
  local list = #given > 0 and given or util.sorted_keys(given)
  return setmetatable({ alias = alias, list = list, set = util.set(list) }, Words)
end

--- Declares a named set of words, from a list or the keys of a table.
function options.words(alias, given)
  local words = words_of(alias, given)
  words.room = room_of(2)
  options.aliases[alias] = words
  return words
end

--- Declares a bound that depends on the context: of(context) returns it, `text` describes it.
function options.bound(text, of) return { text = text, of = of } end

local Declared = {}
Declared.__index = Declared

--- Returns whether a value is a declaration.
function options.is(value) return getmetatable(value) == Declared end

-- Returns the rule of an option for lib/trinity/base/check.lua.
local function rule_of(entry)
  local kind = entry[2]
  if entry.words then return { 'choice', entry.words.set } end
  if kind == 'integer' or kind == 'integers' then return { kind, entry.least, entry.most } end
  if kind == 'number' then
    if entry.above then return { 'positive', entry.most } end
    return (entry.least or entry.most) and { kind, entry.least, entry.most } or kind
  end
  if kind == 'object' then return { kind, entry.class } end
  if kind == 'list' then return { kind, entry.of } end
  if kind == 'tensor' or kind == 'tensors' then return { kind, entry.axes } end
  return options.is(kind) and 'table' or kind
end

local function complete(entry)
  local kind = entry[2]
  entry.name, entry.default = entry[1], entry[3]
  if type(kind) == 'table' and not options.is(kind) then
    entry.words = getmetatable(kind) == Words and kind or words_of(nil, kind)
  end
  entry.rule = rule_of(entry)
  return entry
end

--- Declares the options of a function, as class `name` for editors (nil: internal). spec: a list of options with
--- `extends`, a declaration whose options are included (overridden by equal names); `help`, a text about the class;
--- `kind`, name of an option in messages (default 'option'); `open`, a text about other names, which are then accepted.
--- Do not call it in a `return`, which hides the calling module.
function options.declare(name, spec)
  local self = setmetatable({ name = name, room = room_of(2), parent = spec.extends, help = spec.help, open = spec.open,
    kind = spec.kind or 'option', own = {}, all = {}, by_name = {}, rules = {} }, Declared)
  for i = 1, #spec do
    self.own[i] = complete(spec[i])
    self.by_name[spec[i].name] = spec[i]
  end
  for _, entry in ipairs(spec.extends and spec.extends.all or {}) do
    if not self.by_name[entry.name] then
      self.by_name[entry.name] = entry
      self.all[#self.all + 1] = entry
    end
  end
  for i = 1, #self.own do self.all[#self.all + 1] = self.own[i] end
  for i = 1, #self.all do self.rules[self.all[i].name] = self.all[i].rule end
  if name then options.declared[name] = self end
  return self
end

--- Appends options that the engine lists (engine/lua/bind/option_list.h) and for which it fills in defaults to
--- `entries`, for declare(): those with `prefix`, without it; without a prefix, those without a dot.
function options.of_engine(entries, list, prefix)
  for _, option in ipairs(list) do
    local before, name = option.name:match '^(.-)([%w_]+)$'
    if before == (prefix or '') then
      local kind = option.type == 'choice' and option.words or option.type
      entries[#entries + 1] = { name, kind, option.default, least = option.least, most = option.most,
        otherwise = option.otherwise, help = option.help, late = true }
    end
  end
  return entries
end

local function check_bound(owner, kind, entry, value, context)
  if context == nil then return check.integer(owner, kind, entry.name, value, entry.least) end
  check.integer(owner, kind, entry.name, value, entry.least, entry.most.of(context))
end

--- Checks a value of an option.
local function check_one(owner, kind, entry, value, context)
  if value == false and entry.off then return end
  if entry.check then return entry.check(owner, kind, entry.name, value) end
  if entry.off and type(value) ~= 'table' then check.wrong(owner, kind, entry.name, value, 'a table or false') end
  if type(entry.most) == 'table' then return check_bound(owner, kind, entry, value, context) end
  check.value(owner, kind, entry.name, value, entry.rule)
  if options.is(entry[2]) then entry[2]:check(('%s: %s'):format(owner, entry.name), value) end
end

--- Checks `given` for unknown names, wrong values and missing options. context: for bounds that depend on it; without
--- it they are not checked.
function Declared:check(owner, given, context)
  local by_name, all = self.by_name, self.all
  for key in pairs(given) do -- in any order: the refusal is by name
    if not by_name[key] and not self.open then
      util.refuse_unknown(owner, given, by_name, self.kind)
      break -- it may have renamed some
    end
  end
  self:check_some(owner, given, context)
  for i = 1, #all do
    local entry = all[i]
    if entry.needed and given[entry.name] == nil then
      util.fail("%s: %s '%s' is missing", owner, self.kind, entry.name)
    end
  end
  return given
end

--- Checks values of the options declared here; others are ignored.
function Declared:check_some(owner, given, context)
  local all = self.all
  for i = 1, #all do
    local value = given[all[i].name]
    if value ~= nil then check_one(owner, self.kind, all[i], value, context) end
  end
end

--- Returns a new table with the given options of an argument and defaults of the others, except late ones. Argument
--- `place`, called `name`, is a table, or nil if no option is required.
function Declared:read(owner, place, name, given, context)
  if given == nil then
    for i = 1, #self.all do
      if self.all[i].needed then check.argument(owner, place, name, given, 'table') end
    end
    given = {}
  end
  self:check(owner, check.argument(owner, place, name, given, 'table'), context)
  return self:filled(given)
end

--- Returns a copy of checked options with defaults.
function Declared:filled(given)
  local values = {}
  for key, value in pairs(given) do values[key] = value end -- copied: in any order
  for i = 1, #self.all do
    local entry = self.all[i]
    local value = values[entry.name]
    if value == nil and not entry.late then values[entry.name] = entry.default end
    if value and options.is(entry[2]) then values[entry.name] = entry[2]:filled(value) end
  end
  return values
end

function Declared:defaults() return self:filled {} end

-- Code that runs once per declaration is not compiled, because compilation would take a third of the loading time.
for _, once in ipairs { options.declare, options.of_engine, complete, rule_of, words_of } do jit.off(once) end

return options
