-- LSTM and GRU over sequences, time first. Gates in LibTorch's order: LSTM input, forget, cell, output;
-- GRU reset, update, new. Forget gates start with bias 1.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local layers = require 'trinity.nn.layers'
local module = require 'trinity.nn.module'

local operations = require 'trinity.nn.operations'
local recurrent = {}

-- Numbers of gates and names of state tensors.
local kinds = { lstm = { gates = 4, states = { 'hidden', 'cell' } }, gru = { gates = 3, states = { 'hidden' } } }

local function build(self, options)
  self.inputs, self.hidden = options.inputs, options.hidden
  self.layers, self.bidirectional = options.layers, options.bidirectional
  self.directions = self.bidirectional and 2 or 1
  local width, rows, names = self.inputs, kinds[self.kind].gates * self.hidden, {}
  for layer = 1, self.layers do
    for direction = 1, self.directions do
      local suffix = layer .. (direction == 2 and '_reverse' or '')
      local shapes = { { rows, width }, { rows, self.hidden }, { rows }, { rows } }
      for i, part in ipairs { 'input_weight_', 'hidden_weight_', 'input_bias_', 'hidden_bias_' } do
        names[#names + 1] = part .. suffix
        self[part .. suffix] = layers.parameter(shapes[i])
      end
    end
    width = self.hidden * self.directions
  end
  self.weight_names = names
end

local function reset(self, stream_of)
  for _, name in ipairs(self.weight_names) do
    local weight = self[name]
    if weight:dim() == 2 then
      layers.glorot(weight, stream_of(name))
    else
      layers.fill(weight, 0)
      if self.kind == 'lstm' and name:match '^input' then
        layers.fill(weight:detach():narrow(1, self.hidden + 1, self.hidden), 1)
      end
    end
  end
end

-- Returns the given state, or zeros [layers * directions, N, hidden].
local function start(self, x, state)
  local owner, names = 'nn.' .. self.kind, kinds[self.kind].states
  local list = #names == 1 and state ~= nil and { state } or state or {}
  check.argument(owner, 2, 'state', list, 'table')
  local shape, result = { self.layers * self.directions, x:size(2), self.hidden }, {}
  local want = table.concat(shape, ' x ')
  for i, name in ipairs(names) do
    local part = list[i]
    if state == nil then part = tensor.zeros(shape, { dtype = x.dtype, device = x.device }) end
    if not tensor.is(part) or table.concat(part:size(), ' x ') ~= want then
      check.refuse(owner, 2, 'state', 'expected a tensor %s [%s]', name, want)
    end
    result[i] = part
  end
  return result
end

local function forward(self, x, state)
  local kind = self.kind
  if not tensor.is(x) or x:dim() ~= 3 then
    check.wrong('nn.' .. kind, 1, 'x', x, 'a tensor [steps x samples x inputs]')
  end
  local first, weights = start(self, x, state), {}
  for i, name in ipairs(self.weight_names) do weights[i] = self[name] end
  if kind == 'gru' then return operations.gru(x, first[1], weights, self.layers, self.bidirectional) end
  local output, hidden, cell = operations.lstm(x, first[1], first[2], weights, self.layers, self.bidirectional)
  return output, { hidden, cell }
end

local declared = options_of.declare('trinity.RecurrentOptions', { extends = layers.declared,
  help = 'Options of nn.lstm and nn.gru.',
  layers.size('inputs', 'width of what comes in'), layers.size('hidden', 'width of the state'),
  { 'layers', 'integer', 1, least = 1, most = 1000, help = 'number of stacked layers' },
  { 'bidirectional', 'boolean', false, help = 'run each layer in both directions' },
})

local function recurrent_class(kind)
  local class = module.class(kind, declared)
  class.kind, class.build, class.reset, class.forward = kind, build, reset, forward
  return class
end

recurrent.lstm = recurrent_class 'lstm'
recurrent.gru = recurrent_class 'gru'

return recurrent
