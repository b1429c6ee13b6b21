-- Checks of arguments. A function of the library refuses what it cannot take with one message: the
-- script's line, the function, the argument, what was expected and what came:
--
--   exp.lua:12: problem:placements: argument 1 ('count'): expected an integer from 0, got number 1.5
--
-- Every check takes the function's name, the place (a number: of an argument; a word: 'option',
-- 'field'), the name there, and the value, which it returns. The good path makes no strings and no
-- closures, so that a checked method still compiles to a few instructions.

local fields = require 'trinity.base.fields'
local util = require 'trinity.base.util'

local check = {}

local type_texts = { ['nil'] = 'nil', boolean = 'true or false', number = 'a number', string = 'a string',
  table = 'a table', ['function'] = 'a function' }

local function place_text(place, name)
  if type(place) == 'number' then return ("argument %d ('%s')"):format(place, name) end
  return ("%s '%s'"):format(place, name)
end

--- Raises the error about a value that is not what it should be.
function check.wrong(owner, place, name, value, expected)
  util.fail('%s: %s: expected %s, got %s', owner, place_text(place, name), expected, util.describe(value))
end

--- Raises an error about an argument in words of its own.
function check.refuse(owner, place, name, message, ...)
  util.fail('%s: %s: %s', owner, place_text(place, name), message:format(...))
end

--- A value of Lua type `expected`.
function check.argument(owner, place, name, value, expected)
  if type(value) ~= expected then check.wrong(owner, place, name, value, type_texts[expected] or expected) end
  return value
end

--- The name of a file or folder. (Where names are made of it, as PATH.svg, an empty one would stand for another.)
function check.path(owner, place, name, value)
  check.argument(owner, place, name, value, 'string')
  if value == '' then check.wrong(owner, place, name, value, 'the name of a file or folder') end
  return value
end

local function range_text(kind, low, high)
  return kind .. (low and (' from %.16g'):format(low) or '') .. (high and (' to %.16g'):format(high) or '')
end

--- A number from low to high (each optional, both included); never NaN.
function check.number(owner, place, name, value, low, high)
  if type(value) ~= 'number' or not (value >= (low or -math.huge) and value <= (high or math.huge)) then
    check.wrong(owner, place, name, value, range_text('a number', low, high))
  end
  return value
end

--- A number above zero, at most `high` where that is given.
function check.positive(owner, place, name, value, high)
  if type(value) ~= 'number' or not (value > 0 and value <= (high or value)) then
    local expected = high and ('a number above 0, at most %g'):format(high) or 'a positive number'
    check.wrong(owner, place, name, value, expected)
  end
  return value
end

--- An integer from low to high (each optional, both included), at most 2^53 from zero.
function check.integer(owner, place, name, value, low, high)
  if type(value) ~= 'number' or value % 1 ~= 0 or value < (low or -2 ^ 53) or value > (high or 2 ^ 53) then
    if type(value) == 'number' and value > 2 ^ 53 then high = high or 2 ^ 53 end -- what a number counts exactly
    check.wrong(owner, place, name, value, range_text('an integer', low, high))
  end
  return value
end

--- A key of `choices`, all of which are strings.
function check.choice(owner, place, name, value, choices)
  if type(value) ~= 'string' then check.wrong(owner, place, name, value, 'a string') end
  if choices[value] == nil then
    check.refuse(owner, place, name, 'unknown value %s', util.unknown(value, util.sorted_keys(choices)))
  end
  return value
end

--- An object of class `class` (the __name of its metatable), not closed.
function check.object(owner, place, name, value, class)
  if type(value) ~= 'table' or util.class_of(value) ~= class then
    check.wrong(owner, place, name, value, 'a ' .. class)
  end
  if rawget(value, 'closed') then
    check.refuse(owner, place, name, 'this %s is closed', class)
  end
  return value
end

local function refuse_self(owner, self, class)
  if type(self) ~= 'table' or util.class_of(self) ~= class then
    util.fail("%s: the object before ':' ('self'): expected a %s, got %s (methods are called with ':')", owner, class,
      util.describe(self))
  end
  util.fail("%s: the object before ':' ('self'): this %s is closed", owner, class)
end

--- Has verify(self, name) called before every method of `class`, all of which are there by now. It raises what is wrong
--- with `self`; close() is left to itself. Arguments that a method does not take are refused in the name of `prefix`;
--- results are those of editor class `declared`.
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
      fields.original[class[name]] = method
    end
  end
end

--- Makes the methods of `class` refuse what is no open object of it, and its objects refuse fields that they do not
--- have: `declared` and `internal` as in fields.class(). `prefix`: what messages call such an object.
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

--- The object that close() is called on, which may be closed already; marks it as closed.
function check.closing(owner, self, class)
  if type(self) ~= 'table' or util.class_of(self) ~= class then refuse_self(owner, self, class) end
  return rawset(self, 'closed', true)
end

--- The name, argument `label`, under which a script registers something of its own: none of `builtin`, a set. It may
--- register its own anew.
function check.own_name(owner, label, name, builtin)
  check.argument(owner, 1, label, name, 'string')
  if not name:match '^[%w_]+$' or #name > 64 then
    check.wrong(owner, 1, label, name, 'up to 64 letters, digits and _')
  end
  if builtin[name] ~= nil then check.refuse(owner, 1, label, '%s is built in, take another name', util.quoted(name)) end
  return name
end

--- A list whose entries are all of Lua type `expected`.
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

--- A list of integers from low to high.
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

--- A tensor of a graph builder with a shape, of `axes` axes where that is given.
function check.tensor(owner, place, name, value, axes)
  if type(value) ~= 'table' or type(value.shape) ~= 'table' or type(value.number) ~= 'number' then
    check.wrong(owner, place, name, value, 'a tensor with a shape')
  end
  if axes and #value.shape ~= axes then
    check.refuse(owner, place, name, 'expected a tensor of %d axes, got one of %d', axes, #value.shape)
  end
  return value
end

--- A list of at least one tensor.
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

--- A value against a rule of an option table: the name of a check above with its further parameters, or of
--- a Lua type.
function check.value(owner, place, name, value, rule)
  if type(rule) == 'string' then
    if rule ~= 'any' then check.argument(owner, place, name, value, rule) end
  else
    check[rule[1]](owner, place, name, value, rule[2], rule[3])
  end
end

-- Whether a value is plainly what a rule asks for, without a call.
local function passes(value, rule)
  if type(rule) == 'string' then return rule == 'any' or type(value) == rule end
  if type(value) ~= 'number' or rule[1] ~= 'number' and rule[1] ~= 'integer' then return false end
  return value >= (rule[2] or -2 ^ 53) and value <= (rule[3] or 2 ^ 53) and (rule[1] == 'number' or value % 1 == 0)
end

--- Fields of a table against rules { name = 'boolean' | { 'integer', 1, 10 } | { 'choice', words } |
--- { 'object', 'graph' } | 'any', ... }. Names without a rule are refused with a suggestion. `kind` is
--- what a message calls a field (default 'option').
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

--- An argument that is a table of options, or nil: then an empty one comes back.
function check.options(owner, place, name, given, rules)
  if given == nil then return {} end
  check.argument(owner, place, name, given, 'table')
  return check.fields(owner, given, rules)
end

--- Refuses options that lack one of those named.
function check.needed(owner, given, ...)
  for _, name in ipairs { ... } do
    if given[name] == nil then util.fail("%s: option '%s' is missing", owner, name) end
  end
  return given
end

return check
