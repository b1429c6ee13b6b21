-- The base of all modules of nn: parameters are found among the fields in order of assignment, initial weights come
-- from named random streams; files.
--
--   local Policy = nn.class 'policy'
--   function Policy:build(options)
--     self.body = nn.linear { inputs = options.inputs, outputs = 64 }
--     self.head = nn.linear { inputs = 64, outputs = options.devices }
--   end
--   function Policy:forward(x) return self.head(self.body(x):tanh()) end
--   local policy = Policy { inputs = 8, devices = 4, seed = 7 }
--
-- A field is a parameter when it is a tensor that requires gradients as it is assigned, and a child when
-- it is a module or a list of modules.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local late = require 'trinity.base.late'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local internal = late.table('trinity.nn.internal', function() return core.tensor.internal end)

--- A module of a network: m(...) calls forward(...).
---@class trinity.Module
---@field forward (fun(self: trinity.Module, ...: any): any) computation of m(...)
local Module = {}

-- Names of the fields that may have parameters or modules, in order of assignment. They are stored outside of modules,
-- so that classes can use any field names.
local orders = setmetatable({}, { __mode = 'k' })
-- Names of all assigned fields (also with nil), by module; no other field may be read.
local assigned = setmetatable({}, { __mode = 'k' })
-- { tensor, version, explicit }: initial weights of a module, as long as they are unchanged.
local origins = setmetatable({}, { __mode = 'k' })

local function is_module(value) return type(value) == 'table' and orders[value] ~= nil end

local function record(self, name, value)
  rawset(self, name, value)
  assigned[self][name] = true
  if value == nil or type(name) ~= 'string' then return end
  local kind = type(value)
  local order = orders[self]
  if not order[name] and (kind == 'table' or tensor.is(value) and value.requires_grad) then
    order[#order + 1], order[name] = name, true
  end
end

local function checked(self, method)
  if not is_module(self) then
    util.fail("module:%s: the object before ':' ('self'): expected a module, got %s", method, util.describe(self))
  end
  if rawget(self, 'closed') then
    util.fail("module:%s: the object before ':' ('self'): this module is closed", method)
  end
end

-- Calls found(path, owner, name, value) for every parameter, each once, and visit(path, module) for every
-- module before its parameters.
local function walk(self, path, found, visit, seen)
  if seen[self] then return end
  seen[self] = true
  if visit then visit(path, self) end
  local below = path == '' and '' or path .. '.'
  for _, name in ipairs(orders[self]) do
    local value = rawget(self, name)
    if tensor.is(value) then
      if not seen[value] then
        seen[value] = true
        found(below .. name, value)
      end
    elseif is_module(value) then
      walk(value, below .. name, found, visit, seen)
    elseif type(value) == 'table' then
      for i, child in ipairs(value) do
        if is_module(child) then walk(child, below .. name .. '.' .. i, found, visit, seen) end
      end
    end
  end
end

local function nothing() end

--- Returns every parameter as { name, tensor }, in order; names are paths of fields. Example:
--- `network:named_parameters()`
---@return any[][]
function Module:named_parameters()
  local list = {}
  walk(self, '', function(name, value) list[#list + 1] = { name, value } end, nil, {})
  return list
end

--- Returns every parameter once, in order of assignment. Example: `#network:parameters()`
---@return trinity.TorchTensor[]
function Module:parameters()
  local list = {}
  walk(self, '', function(_, value) list[#list + 1] = value end, nil, {})
  return list
end

--- Clears gradients. Example: `network:zero_grad()`
function Module:zero_grad()
  for _, parameter in ipairs(self:parameters()) do parameter:zero_grad() end
end

-- Initializes the weights of `self`, which has a reset(stream_of), from random streams named by `path`.
local function reset(self, seed, path, explicit)
  self:reset(function(name) return core.random(seed, path == '' and name or path .. '.' .. name) end)
  local versions = {}
  walk(self, '', function(_, value) versions[value] = internal.version(value) end, nil, {})
  origins[self] = { versions = versions, explicit = explicit }
end

local function untouched(module)
  local origin = origins[module]
  if not origin or origin.explicit then return false end
  for value, version in pairs(origin.versions) do -- all must match: the order does not matter
    if internal.version(value) ~= version then return false end
  end
  return true
end

--- Initializes all weights again, each from the random stream of `seed` and the parameter's path. Example:
--- `network:initialise(7)`
---@param seed integer
---@return trinity.Module itself
function Module:initialise(seed)
  check.integer('module:initialise', 1, 'seed', seed, 0, 2 ^ 53)
  walk(self, '', nothing, function(path, module)
    if module.reset then reset(module, seed, path, false) end
  end, {})
  return self
end

-- After construction: with a seed, initializes all weights by path; without one, only unchanged weights of children, so
-- that two layers of a network never start equal.
local function settle(self, seed)
  if seed ~= nil then
    self:initialise(seed)
    walk(self, '', nothing, function(_, module)
      if origins[module] then origins[module].explicit = true end
    end, {})
  else
    walk(self, '', nothing, function(path, module)
      if untouched(module) then reset(module, 1, path, false) end
    end, {})
  end
end

--- Converts all parameters to another dtype or device and drops gradients. Make optimizers afterwards. Example:
--- `network:to { dtype = 'float64' }`
---@param options trinity.TensorTarget
---@return trinity.Module itself
function Module:to(options)
  check.options('module:to', 1, 'options', check.argument('module:to', 1, 'options', options, 'table'),
    { dtype = 'string', device = 'string' })
  for _, parameter in ipairs(self:parameters()) do
    parameter:zero_grad()
    internal.set_data(parameter, parameter:detach():to(options))
  end
  return self
end

--- Saves all parameters by path (safetensors). Raises an error if there are none. Example: `network:save
--- 'network.safetensors'`
---@param path string
function Module:save(path)
  check.path('module:save', 1, 'path', path)
  local tensors = {}
  for _, item in ipairs(self:named_parameters()) do tensors[item[1]] = item[2] end
  if not next(tensors) then util.fail('module:save: this module has no parameters') end
  tensor.save(path, tensors)
end

local function check_file(path, named, tensors)
  local wanted = {}
  for _, item in ipairs(named) do
    local name, parameter = item[1], item[2]
    local found = tensors[name]
    wanted[name] = true
    if not found then
      util.fail("module:load: %s: no parameter '%s'%s", path, name, core.suggestion(name, util.sorted_keys(tensors)))
    end
    local have, need = table.concat(found:size(), ' x '), table.concat(parameter:size(), ' x ')
    if have ~= need then
      util.fail("module:load: %s: parameter '%s': expected shape [%s], got [%s]", path, name, need, have)
    end
  end
  for name in util.sorted_pairs(tensors) do
    if not wanted[name] then util.fail("module:load: %s: parameter '%s' is unknown to this module", path, name) end
  end
end

--- Loads all parameters from a file of save(). Raises an error if names or shapes differ. Example: `network:load
--- 'network.safetensors'`
---@param path string
---@return trinity.Module itself
function Module:load(path)
  local named = self:named_parameters()
  check.path('module:load', 1, 'path', path)
  local tensors = tensor.load(path)
  check_file(path, named, tensors)
  tensor.no_grad(function()
    for _, item in ipairs(named) do
      item[2]:copy_(tensors[item[1]])
      tensors[item[1]]:close()
    end
  end)
  return self
end

--- Frees all parameters; the module cannot be used afterwards. May be called again. Example: `network:close()`
function Module:close()
  if is_module(self) and rawget(self, 'closed') then return end
  checked(self, 'close')
  local parameters = self:parameters()
  walk(self, '', nothing, function(_, module) rawset(module, 'closed', true) end, {})
  for _, parameter in ipairs(parameters) do parameter:close() end
end

--- The computation of a call of the module; classes define it.
function Module:forward(...) -- luacheck: no unused args
  util.fail('%s: expected a method forward() in this class, got none', getmetatable(self).__name)
end

check.guard(Module, 'module', checked)

-- The class, and the parameters with their shapes.
local function text(self)
  if rawget(self, 'closed') then return getmetatable(self).__name .. ' (closed)' end
  local parameters = self:named_parameters()
  local lines = util.map(parameters, function(item)
    return ('  %s [%s]'):format(item[1], table.concat(item[2]:size(), ' x '))
  end)
  local weights = util.sum(parameters, function(item) return item[2]:numel() end)
  return ('%s, %d weights\n%s'):format(getmetatable(self).__name, weights, table.concat(lines, '\n'))
end

local function call(self, ...)
  if rawget(self, 'closed') then util.fail('%s: this module is closed', getmetatable(self).__name) end
  return self:forward(...)
end

--- Makes a class of modules: a table for build(options), forward(...) and other methods. A call with options makes a
--- module. Option `seed` initializes all weights by path. `declared`: declaration of the options, for classes of the
--- library (lib/trinity/base/options.lua).
local function class(name, declared)
  check.argument('nn.class', 1, 'name', name, 'string')
  local methods = { build = nothing }
  local instance = { __name = name, __call = call, __tostring = text, __newindex = record }
  function instance.__index(self, key)
    local value = methods[key]
    if value == nil then value = Module[key] end
    if value == nil and key ~= 'reset' and not assigned[self][key] then -- some have no weights to initialize
      return fields.unknown(name, key, util.merged(Module, methods), assigned[self])
    end
    return value
  end
  return setmetatable(methods, { __call = function(_, options)
    if declared then options = declared:read('nn.' .. name, 1, 'options', options) end
    if options == nil then options = {} end
    check.argument(name, 1, 'options', options, 'table')
    local self = {}
    orders[self], assigned[self] = {}, {}
    setmetatable(self, instance)
    self:build(options)
    if methods.reset then reset(self, options.seed or 1, options.name or name, options.seed ~= nil) end
    if not methods.reset or not declared then settle(self, options.seed) end
    return self
  end })
end

return { methods = Module, class = class, is = is_module }
