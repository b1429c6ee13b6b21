-- LibTorch's optimizers as objects with a changeable learning rate, and files of their state.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local core = require 'trinity.core'
local module = require 'trinity.nn.module'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local operations = require 'trinity.nn.operations'
---@class trinity.NetworkOptimiser
---@field learning_rate number may be assigned
local Optimiser = {}
local optimisers = { methods = Optimiser }
local class = { __name = 'optimiser' }

local function verify(self, method)
  if type(self) == 'table' and getmetatable(self) == class then return end
  util.fail("optimiser:%s: the object before ':' ('self'): expected an optimiser, got %s", method, util.describe(self))
end

--- Updates the parameters by their gradients. Example: `optimiser:step()`
function Optimiser:step() self.handle:step() end

--- Clears gradients. Example: `optimiser:zero_grad()`
function Optimiser:zero_grad() self.handle:zero_grad() end

--- Returns the state: for every parameter a table of tensors (and Adam's step), empty before the first step.
--- Example: `optimiser:state()`
---@return table[]
function Optimiser:state() return self.handle:state() end

--- Restores a result of state(). Example: `optimiser:load_state(optimiser:state())`
---@param state table[]
function Optimiser:load_state(state) self.handle:load_state(state) end

function optimisers.pack(self, prefix, tensors)
  for i, entry in ipairs(self:state()) do
    for name, value in util.sorted_pairs(entry) do
      tensors[('%s%d.%s'):format(prefix, i, name)] = tensor.is(value) and value
        or tensor.new(value, { dtype = 'float64' })
    end
  end
  tensors[prefix .. 'learning_rate'] = tensor.new(self.learning_rate, { dtype = 'float64' })
  return tensors
end

--- Restores both from the `tensors` of a file with this prefix; `place` (owner and file) begins messages.
function optimisers.unpack(self, prefix, tensors, place)
  local state, rate = self:state(), nil
  for i = 1, #state do state[i] = {} end
  for key, value in util.sorted_pairs(tensors) do
    local own = key:sub(1, #prefix) == prefix and key:sub(#prefix + 1)
    local i, name = (own or ''):match '^(%d+)%.(.+)$'
    if own == 'learning_rate' and value:numel() == 1 then
      rate = value:item()
    elseif state[tonumber(i)] then
      state[tonumber(i)][name] = name == 'step' and value:numel() == 1 and value:item() or value
    elseif own then
      util.fail("%s: entry '%s' is unknown to this optimiser", place, key)
    end
  end
  if not rate then util.fail("%s: no entry '%slearning_rate'", place, prefix) end
  self:load_state(state)
  self.learning_rate = rate
end

--- Saves state and learning rate (safetensors). Example: `optimiser:save 'optimiser.safetensors'`
---@param path string
function Optimiser:save(path)
  check.path('optimiser:save', 1, 'path', path)
  tensor.save(path, optimisers.pack(self, '', {}))
end

--- Loads state and learning rate from a file of save(). Raises an error if it belongs to other parameters. Example:
--- `optimiser:load 'optimiser.safetensors'`
---@param path string
function Optimiser:load(path)
  check.path('optimiser:load', 1, 'path', path)
  optimisers.unpack(self, '', tensor.load(path), 'optimiser:load: ' .. path)
end

--- Example: `optimiser:close()`
function Optimiser:close()
  verify(self, 'close')
  self.handle:close()
end

check.guard(Optimiser, 'optimiser', verify)

function class.__index(self, name)
  if name == 'learning_rate' then return rawget(self, 'rate') end
  local method = Optimiser[name]
  if method then return method end
  local names = util.sorted_keys(Optimiser)
  names[#names + 1] = 'learning_rate'
  util.fail('an optimiser has no field %s%s', util.quoted(tostring(name)), core.suggestion(tostring(name), names))
end

function class.__newindex(self, name, value)
  if name ~= 'learning_rate' then
    util.fail("an optimiser's field %s cannot be assigned (only learning_rate)", util.quoted(tostring(name)))
  end
  check.number('optimiser', 'field', 'learning_rate', value, 0)
  self.handle:set_learning_rate(value)
  rawset(self, 'rate', value)
end

function class.__tostring(self)
  return ('%s(learning rate %g, %d tensors)'):format(rawget(self, 'kind'), rawget(self, 'rate'), rawget(self, 'count'))
end

local function new(kind, options, made, rate)
  return setmetatable({ handle = made, kind = kind, rate = rate, count = #options.parameters }, class)
end

local common = { { 'parameters', 'table', needed = true, as = 'trinity.TorchTensor[]',
  help = 'parameters to optimize' },
  { 'weight_decay', 'number', 0, least = 0, help = 'fraction of a weight that is added to its gradient' } }

local adam_options = options_of.declare('trinity.AdamOptions', { help = 'Options of nn.adam.', common[1],
  { 'learning_rate', 'number', 1e-3, least = 0, help = 'learning rate' },
  { 'betas', 'table', { 0.9, 0.999 }, as = 'number[]', help = 'decay rates of the moments' },
  { 'epsilon', 'number', 1e-8, least = 0, help = 'added to the root of the second moment' }, common[2],
})

local sgd_options = options_of.declare('trinity.SgdOptions', { help = 'Options of nn.sgd.', common[1],
  { 'learning_rate', 'number', least = 0, needed = true, help = 'learning rate' },
  { 'momentum', 'number', 0, help = 'momentum: fraction of the previous step that is added' }, common[2],
})

-- Raises an error for a network or a list of parameters instead of options.
local function check_options(owner, options)
  if module.is(options) then
    check.refuse(owner, 1, 'options', 'expected { parameters = network:parameters(), ... }, got a network')
  elseif type(options) == 'table' and tensor.is(options[1]) then
    check.refuse(owner, 1, 'options', 'expected { parameters = list, ... }, got the list alone')
  end
end

--- Makes an Adam optimizer (Kingma and Ba 2015). Example: `trinity.nn.adam { parameters = network:parameters(),
--- learning_rate = 1e-3 }`
---@param options trinity.AdamOptions
---@return trinity.NetworkOptimiser
function optimisers.adam(options)
  check_options('nn.adam', options)
  options = adam_options:read('nn.adam', 1, 'options', options)
  local betas, rate = options.betas, options.learning_rate
  for i = 1, 2 do
    if type(betas[i]) ~= 'number' or not (betas[i] >= 0 and betas[i] < 1) then
      util.fail("nn.adam: option 'betas': expected two numbers from 0 to below 1, got %s", util.describe(betas[i]))
    end
  end
  return new('adam', options, operations.adam(options.parameters, rate, betas[1], betas[2], options.epsilon,
    options.weight_decay), rate)
end

--- Makes an optimizer for stochastic gradient descent. Example: `trinity.nn.sgd { parameters = network:parameters(),
--- learning_rate = 0.1 }`
---@param options trinity.SgdOptions
---@return trinity.NetworkOptimiser
function optimisers.sgd(options)
  check_options('nn.sgd', options)
  options = sgd_options:read('nn.sgd', 1, 'options', options)
  local rate = options.learning_rate
  local made = operations.sgd(options.parameters, rate, options.momentum, options.weight_decay)
  return new('sgd', options, made, rate)
end

return optimisers
