-- Argument checks. For a wrong argument, a function of the library raises one error with the script's line, the
-- function, the argument, the expected and the given value:
--
--   exp.lua:12: problem:placements: argument 1 ('count'): expected an integer from 0, got number 1.5
--
-- Every check takes the function's name, the place (a number: of an argument; a word: 'option',
-- 'field'), the name there, and the value, which it returns. The fast path makes no strings and no closures, so that a
-- checked method compiles to a few instructions.

local fields = require 'trinity.base.fields'
local util = require 'trinity.base.util'

local check = {}

local type_texts = { ['nil'] = 'nil', boolean = 'true or false', number = 'a number', string = 'a string',
  table = 'a table', ['function'] = 'a function' }

local function place_text(place, name)
  if type(place) == 'number' then return ("argument %d ('%s')"):format(place, name) end
  return ("%s '%s'"):format(place, name)
end

--- Raises the error about a wrong value.
function check.wrong(owner, place, name, value, expected)
  util.fail('%s: %s: expected %s, got %s', owner, place_text(place, name), expected, util.describe(value))
end

--- Raises an error about an argument with a custom message.
function check.refuse(owner, place, name, message, ...)
  util.fail('%s: %s: %s', owner, place_text(place, name), message:format(...))
end

--- Checks for a value of Lua type `expected`.
function check.argument(owner, place, name, value, expected)
  if type(value) ~= expected then check.wrong(owner, place, name, value, type_texts[expected] or expected) end
  return value
end

--- Checks for a file or folder name. (An empty one is refused, because names such as PATH.svg are derived from it.)
function check.path(owner, place, name, value)
  check.argument(owner, place, name, value, 'string')
  if value == '' then check.wrong(owner, place, name, value, 'the name of a file or folder') end
  return value
end

local function range_text(kind, low, high)
  return kind .. (low and (' from %.16g'):format(low) or '') .. (high and (' to %.16g'):format(high) or '')
end

--- Checks for a number from low to high (each optional, inclusive); not NaN.
function check.number(owner, place, name, value, low, high)
  if type(value) ~= 'number' or not (value >= (low or -math.huge) and value <= (high or math.huge)) then
    check.wrong(owner, place, name, value, range_text('a number', low, high))
  end
  return value
end

--- Checks for a number above zero and, optionally, at most `high`.
function check.positive(owner, place, name, value, high)
  if type(value) ~= 'number' or not (value > 0 and value <= (high or value)) then
    local expected = high and ('a number above 0, at most %g'):format(high) or 'a positive number'
    check.wrong(owner, place, name, value, expected)
  end
  return value
end

--- Checks for an integer from low to high (each optional, inclusive), with absolute value at most 2^53.
function check.integer(owner, place, name, value, low, high)
  if type(value) ~= 'number' or value % 1 ~= 0 or value < (low or -2 ^ 53) or value > (high or 2 ^ 53) then
    if type(value) == 'number' and value > 2 ^ 53 then high = high or 2 ^ 53 end -- the largest exact integer
    check.wrong(owner, place, name, value, range_text('an integer', low, high))
  end
  return value
end

--- Checks for a key of `choices`, all of which are strings.
function check.choice(owner, place, name, value, choices)
  if type(value) ~= 'string' then check.wrong(owner, place, name, value, 'a string') end
  if choices[value] == nil then
    check.refuse(owner, place, name, 'unknown value %s', util.unknown(value, util.sorted_keys(choices)))
  end
  return value
end

-- Returns 'an env', 'a graph'.
local function with_article(class) return (class:find '^[aeiou]' and 'an ' or 'a ') .. class end

-- Functions that make an object of a name.
local makers = { cluster = 'trinity.cluster', graph = 'trinity.model' }

--- Checks for an open object of class `class` (the __name of its metatable).
function check.object(owner, place, name, value, class)
  if type(value) ~= 'table' or util.class_of(value) ~= class then
    local make = type(value) == 'string' and makers[class]
    check.wrong(owner, place, name, value,
      with_article(class) .. (make and (' (%s %s)'):format(make, util.quoted(value)) or ''))
  end
  if rawget(value, 'closed') then
    check.refuse(owner, place, name, 'this %s is closed', class)
  end
  return value
end

local function refuse_self(owner, self, class)
  if type(self) ~= 'table' or util.class_of(self) ~= class then
    util.fail("%s: the object before ':' ('self'): expected %s, got %s (methods are called with ':')", owner,
      with_article(class), util.describe(self))
  end
  util.fail("%s: the object before ':' ('self'): this %s is closed", owner, class)
end

--- Calls verify(self, name), which checks `self`, before every existing method of `class` except close(). Excess
--- arguments of a method raise an error in the name of `prefix`; results have editor class `declared`.
function check.guard(class, prefix, verify, declared)
  for name, method in util.sorted_pairs(class) do
    if type(method) == 'function' and not name:match '^__' and name ~= 'close' then
      local what, most = ('%s:%s'):format(prefix, name), fields.arity(method) - 1
      local give = declared and fields.giver(('%s.%s'):format(declared, name))
      class[name] = function(self, ...)
        verify(self, name)
        if select('#', ...) > most then fields.refuse_more(what, method, 2, most, ...) end
        if give then return give(method(self, ...)) end
        return method(self, ...)
      end
      fields.original[class[name]] = fields.original[method] or method
    end
  end
end

--- Makes the methods of `class` check for an open object, and its objects raise errors for unknown fields: `declared`
--- and `internal` as in fields.class(). `prefix`: name of such an object in messages.
function check.methods(class, declared, internal, prefix)
  local kind = class.__name
  prefix = prefix or kind
  class.__tostring = class.__tostring or function() return kind end
  fields.class(class, declared, internal)
  check.guard(class, prefix, function(self, name)
    if type(self) ~= 'table' or util.class_of(self) ~= kind or rawget(self, 'closed') then
      refuse_self(('%s:%s'):format(prefix, name), self, kind)
    end
  end, declared)
end

--- Checks the object of a close() call, which may be closed already, and marks it as closed.
function check.closing(owner, self, class)
  if type(self) ~= 'table' or util.class_of(self) ~= class then refuse_self(owner, self, class) end
  return rawset(self, 'closed', true)
end

--- Checks the name (argument `label`) of something that a script registers: it must not be in the set `builtin`. A
--- script may replace its own registrations.
function check.own_name(owner, label, name, builtin)
  check.argument(owner, 1, label, name, 'string')
  if not name:match '^[%w_]+$' or #name > 64 then
    check.wrong(owner, 1, label, name, 'up to 64 letters, digits and _')
  end
  if builtin[name] ~= nil then check.refuse(owner, 1, label, '%s is built in; use another name', util.quoted(name)) end
  return name
end

--- Checks for a list with entries of Lua type `expected`.
function check.list(owner, place, name, value, expected)
  check.argument(owner, place, name, value, 'table')
  for i = 1, #value do
    if type(value[i]) ~= expected then
      check.refuse(owner, place, name, 'entry %d: expected %s, got %s', i, type_texts[expected] or expected,
        util.describe(value[i]))
    end
  end
  return value
end

--- Checks for a list of integers from low to high.
function check.integers(owner, place, name, value, low, high)
  check.argument(owner, place, name, value, 'table')
  for i = 1, #value do
    local entry = value[i]
    if type(entry) ~= 'number' or entry % 1 ~= 0 or entry < (low or -2 ^ 53) or entry > (high or 2 ^ 53) then
      check.refuse(owner, place, name, 'entry %d: expected %s, got %s', i, range_text('an integer', low, high),
        util.describe(entry))
    end
  end
  return value
end

--- Checks for a tensor of a graph builder with a shape and, optionally, this number of axes.
function check.tensor(owner, place, name, value, axes)
  if type(value) ~= 'table' or type(value.shape) ~= 'table' or type(value.number) ~= 'number' then
    check.wrong(owner, place, name, value, 'a tensor with a shape')
  end
  if axes and #value.shape ~= axes then
    check.refuse(owner, place, name, 'expected a tensor of %d axes, got one of %d', axes, #value.shape)
  end
  return value
end

--- Checks for a list of at least one tensor.
function check.tensors(owner, place, name, value)
  check.argument(owner, place, name, value, 'table')
  if #value == 0 then check.refuse(owner, place, name, 'expected at least one tensor, got none') end
  for i = 1, #value do
    local tensor = value[i]
    if type(tensor) ~= 'table' or type(tensor.shape) ~= 'table' or type(tensor.number) ~= 'number' then
      check.refuse(owner, place, name, 'entry %d: expected a tensor with a shape, got %s', i, util.describe(tensor))
    end
  end
  return value
end

--- Checks a value by a rule of an option table: the name of a check above with its other parameters, or of a Lua type.
function check.value(owner, place, name, value, rule)
  if type(rule) == 'string' then
    if rule ~= 'any' then check.argument(owner, place, name, value, rule) end
  else
    check[rule[1]](owner, place, name, value, rule[2], rule[3])
  end
end

-- Returns whether a value obviously passes a rule, without a call.
local function passes(value, rule)
  if type(rule) == 'string' then return rule == 'any' or type(value) == rule end
  if type(value) ~= 'number' or rule[1] ~= 'number' and rule[1] ~= 'integer' then return false end
  return value >= (rule[2] or -2 ^ 53) and value <= (rule[3] or 2 ^ 53) and (rule[1] == 'number' or value % 1 == 0)
end

--- Checks fields of a table by rules { name = 'boolean' | { 'integer', 1, 10 } | { 'choice', words } | { 'object',
--- 'graph' } | 'any', ... }. Names without a rule raise an error with a suggestion. `kind`: name of a field in messages
--- (default 'option').
function check.fields(owner, given, rules, kind)
  kind = kind or 'option'
  util.refuse_unknown(owner, given, rules, kind)
  if not getmetatable(given) then
    local good = true
    for key, value in pairs(given) do good = good and passes(value, rules[key]) end -- in any order
    if good then return given end
  end
  for key, value in util.sorted_pairs(given) do check.value(owner, kind, key, value, rules[key]) end
  return given
end

--- Checks an argument with options; returns an empty table for nil.
function check.options(owner, place, name, given, rules)
  if given == nil then return {} end
  check.argument(owner, place, name, given, 'table')
  return check.fields(owner, given, rules)
end

--- Raises an error if one of the named options is missing.
function check.needed(owner, given, ...)
  for _, name in ipairs { ... } do
    if given[name] == nil then util.fail("%s: option '%s' is missing", owner, name) end
  end
  return given
end

return check
