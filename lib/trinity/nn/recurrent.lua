-- LSTM and GRU over sequences, time first. Gates in LibTorch's order: LSTM input, forget, cell, output;
-- GRU reset, update, new. Forget gates start with bias 1.

local check = require 'trinity.check'
local core = require 'trinity.core'
local tensor = require 'trinity.tensor'
local layers = require 'trinity.nn.layers'
local module = require 'trinity.nn.module'

local operations = core.tensor.layers
local recurrent = {}

-- A class with `gates` gates and state tensors named `states`.
local function recurrent_class(kind, gates, states)
  local class = module.class(kind, layers.rules { inputs = layers.size_rule, hidden = layers.size_rule,
    layers = { 'integer', 1, 1000 }, bidirectional = 'boolean' })
  local owner = 'nn.' .. kind

  function class:build(options)
    self.inputs, self.hidden = layers.needed(owner, options, 'inputs'), layers.needed(owner, options, 'hidden')
    self.layers, self.bidirectional = options.layers or 1, options.bidirectional or false
    self.directions = self.bidirectional and 2 or 1
    local width, names = self.inputs, {}
    for layer = 1, self.layers do
      for direction = 1, self.directions do
        local suffix = layer .. (direction == 2 and '_reverse' or '')
        local shapes = { { gates * self.hidden, width }, { gates * self.hidden, self.hidden }, { gates * self.hidden },
          { gates * self.hidden } }
        for i, part in ipairs { 'input_weight_', 'hidden_weight_', 'input_bias_', 'hidden_bias_' } do
          names[#names + 1] = part .. suffix
          self[part .. suffix] = layers.parameter(shapes[i])
        end
      end
      width = self.hidden * self.directions
    end
    self.weight_names = names
  end

  function class:reset(stream_of)
    for _, name in ipairs(self.weight_names) do
      local weight = self[name]
      if weight:dim() == 2 then
        layers.glorot(weight, stream_of(name))
      else
        layers.fill(weight, 0)
        if kind == 'lstm' and name:match '^input' then
          layers.fill(weight:detach():narrow(1, self.hidden + 1, self.hidden), 1)
        end
      end
    end
  end

  -- The state given, or zeros [layers * directions, N, hidden].
  local function start(self, x, state)
    local list = #states == 1 and state ~= nil and { state } or state or {}
    check.argument(owner, 2, 'state', list, 'table')
    local shape = { self.layers * self.directions, x:size(2), self.hidden }
    local want = table.concat(shape, ' x ')
    local result = {}
    for i, name in ipairs(states) do
      local part = list[i]
      if state == nil then part = tensor.zeros(shape, { dtype = x.dtype, device = x.device }) end
      if not tensor.is(part) or table.concat(part:size(), ' x ') ~= want then
        check.refuse(owner, 2, 'state', 'expected a tensor %s [%s]', name, want)
      end
      result[i] = part
    end
    return result
  end

  function class:forward(x, state)
    if not tensor.is(x) or x:dim() ~= 3 then check.wrong(owner, 1, 'x', x, 'a tensor [steps x samples x inputs]') end
    local first, weights = start(self, x, state), {}
    for i, name in ipairs(self.weight_names) do weights[i] = self[name] end
    if #states == 1 then return operations[kind](x, first[1], weights, self.layers, self.bidirectional) end
    local output, hidden, cell = operations[kind](x, first[1], first[2], weights, self.layers, self.bidirectional)
    return output, { hidden, cell }
  end

  function class:describe()
    local more = self.layers > 1 and (', %d layers'):format(self.layers) or ''
    return ('%d -> %d%s%s'):format(self.inputs, self.hidden, more, self.bidirectional and ', bidirectional' or '')
  end
  return class
end

--- x [T, N, inputs], state {h, c} or nil -> output [T, N, hidden * directions], {h, c}.
recurrent.lstm = recurrent_class('lstm', 4, { 'hidden', 'cell' })
--- x [T, N, inputs], state h or nil -> output, h.
recurrent.gru = recurrent_class('gru', 3, { 'hidden' })

return recurrent
