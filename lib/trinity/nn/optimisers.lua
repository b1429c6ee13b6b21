-- LibTorch's optimisers as objects with a learning rate that can be changed, and files of their state.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local operations = require 'trinity.nn.operations'
---@class trinity.NetworkOptimiser
---@field learning_rate number may be assigned
local Optimiser = {}
local optimisers = { methods = Optimiser }
local class = { __name = 'optimiser' }

local function handle(self, method)
  local found = type(self) == 'table' and getmetatable(self) == class and rawget(self, 'handle')
  if not found then
    util.fail("optimiser:%s: the object before ':' ('self'): expected an optimiser, got %s", method,
      util.describe(self))
  end
  return found
end

--- Changes the parameters by their gradients.
function Optimiser:step() handle(self, 'step'):step() end

--- Forgets gradients.
function Optimiser:zero_grad() handle(self, 'zero_grad'):zero_grad() end

--- What was gathered: for every parameter a table of tensors (and Adam's step), empty before the first step.
---@return table[]
function Optimiser:state() return handle(self, 'state'):state() end

--- Takes back what state() gave.
---@param state table[]
function Optimiser:load_state(state) handle(self, 'load_state'):load_state(state) end

--- State and learning rate as tensors by name, each name with `prefix` before it: what files hold of an optimiser.
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

--- Takes both from those `tensors` of a file whose names begin so; `place` (owner and file) begins messages.
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

--- Saves state and learning rate (safetensors).
---@param path string
function Optimiser:save(path)
  handle(self, 'save')
  check.argument('optimiser:save', 1, 'path', path, 'string')
  tensor.save(path, optimisers.pack(self, '', {}))
end

--- Takes both from such a file.
---@param path string
function Optimiser:load(path)
  handle(self, 'load')
  check.argument('optimiser:load', 1, 'path', path, 'string')
  optimisers.unpack(self, '', tensor.load(path), 'optimiser:load: ' .. path)
end

function Optimiser:close() handle(self, 'close'):close() end

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
  handle(self, 'learning_rate'):set_learning_rate(value)
  rawset(self, 'rate', value)
end

function class.__tostring(self)
  return ('%s(learning rate %g, %d tensors)'):format(rawget(self, 'kind'), rawget(self, 'rate'), rawget(self, 'count'))
end

local function new(kind, options, made, rate)
  return setmetatable({ handle = made, kind = kind, rate = rate, count = #options.parameters }, class)
end

-- Checks the options of an optimiser, of which `parameters` and those that follow `rules` must be there.
local function check_options(owner, options, rules, ...)
  rules.parameters, rules.learning_rate, rules.weight_decay = 'table', { 'number', 0 }, { 'number', 0 }
  check.table(owner, 1, 'options', options, rules, 'parameters', ...)
end

--- Adam (Kingma and Ba 2015).
---@param options trinity.AdamOptions
---@return trinity.NetworkOptimiser
function optimisers.adam(options)
  check_options('nn.adam', options, { betas = 'table', epsilon = { 'number', 0 } })
  local betas, rate = options.betas or { 0.9, 0.999 }, options.learning_rate or 1e-3
  for i = 1, 2 do
    if type(betas[i]) ~= 'number' or not (betas[i] >= 0 and betas[i] < 1) then
      util.fail("nn.adam: option 'betas': expected two numbers from 0 to below 1, got %s", util.describe(betas[i]))
    end
  end
  return new('adam', options, operations.adam(options.parameters, rate, betas[1], betas[2], options.epsilon or 1e-8,
    options.weight_decay or 0), rate)
end

--- Stochastic gradient descent.
---@param options trinity.SgdOptions
---@return trinity.NetworkOptimiser
function optimisers.sgd(options)
  check_options('nn.sgd', options, { momentum = 'number' }, 'learning_rate')
  local rate = options.learning_rate
  local made = operations.sgd(options.parameters, rate, options.momentum or 0, options.weight_decay or 0)
  return new('sgd', options, made, rate)
end

return optimisers
