-- Argument checks of layers; see trinity.base.check.

local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local util = require 'trinity.base.util'

local arguments = {}

-- Rules for arguments of layers by name, as for check.value(). Arguments of other names are checked by the
-- layer itself. The name of an argument is also its type for editors (arguments.typed): annotations of layers have the
-- others.
local rules = { name = 'string', attributes = 'table', dtype = 'string', trainable = 'boolean', masked = 'boolean',
  memory = { 'tensor', 3 }, tensors = { 'tensors' }, tables = { 'tensors' }, sizes = { 'integers', 1 },
  value = 'number', weight = 'number', count = { 'integer', 1 }, first = { 'integer', 1 }, heads = { 'integer', 1 },
  shape = { 'integers', 1 }, ['layers:reshape shape'] = { 'integers', -1 } }
for name in ('q v'):gmatch '%S' do rules[name] = { 'tensor', 3 } end
for name in ('depth features units'):gmatch '%S+' do rules[name] = { 'integer', 1, 2 ^ 31 } end
for name in ('x a b h c numbers rows logits labels loss other'):gmatch '%S+' do rules[name] = { 'tensor' } end
local optional = { attributes = true, dtype = true, trainable = true, masked = true }

local types = { tensor = 'trinity.Tensor', tensors = 'trinity.Tensor[]', integers = 'integer[]', integer = 'integer',
  table = 'table<string, any>' }

--- Returns the declared parameters (as in trinity.command.declarations) of a layer with arguments `names`, of which
--- `given` are annotated; nil for one that neither is annotated nor has a rule.
function arguments.typed(names, given)
  local of = {}
  for _, parameter in ipairs(given) do of[parameter.name] = parameter end
  return util.map(names, function(name)
    local rule = rules[name]
    local kind = type(rule) == 'table' and rule[1] or rule
    return of[name] or kind and { name = name, optional = optional[name] or false, type = types[kind] or kind,
      text = '' }
  end)
end

--- Returns the layer `method`, called `owner`, with checks of its arguments by their names.
function arguments.checked(owner, method)
  local names = fields.parameters(method, 2)
  local rule_of = util.map(names, function(name) return rules[owner .. ' ' .. name] or rules[name] or false end)
  local function checked(self, ...)
    for place, name in ipairs(names) do
      local rule, value = rule_of[place], (select(place, ...))
      if rule and (value ~= nil or not optional[name]) then check.value(owner, place, name, value, rule) end
    end
    return method(self, ...)
  end
  fields.original[checked] = method
  return checked
end

--- Checks for a permutation of the numbers from 1 to count.
function arguments.permutation(owner, place, name, order, count)
  check.integers(owner, place, name, order, 1, count)
  local seen = util.set(order)
  for axis = 1, count do
    if #order ~= count or not seen[axis] then
      check.refuse(owner, place, name, 'expected the axes from 1 to %d, each once', count)
    end
  end
end

return arguments
