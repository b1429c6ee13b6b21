-- LSTM over sequences, time first. Gates in LibTorch's order: input, forget, cell, output. Forget gates start with
-- bias 1.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local layers = require 'trinity.nn.layers'
local module = require 'trinity.nn.module'

local operations = require 'trinity.nn.operations'

local lstm = module.class('lstm', options_of.declare('trinity.RecurrentOptions', { extends = layers.declared,
  help = 'Options of nn.lstm.',
  layers.size('inputs', 'width of what comes in'), layers.size('hidden', 'width of the state'),
  { 'layers', 'integer', 1, least = 1, most = 1000, help = 'number of stacked layers' },
  { 'bidirectional', 'boolean', false, help = 'run each layer in both directions' },
}))

function lstm:build(options)
  self.inputs, self.hidden = options.inputs, options.hidden
  self.layers, self.bidirectional = options.layers, options.bidirectional
  self.directions = self.bidirectional and 2 or 1
  local width, rows, names = self.inputs, 4 * self.hidden, {}
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

function lstm:reset(stream_of)
  for _, name in ipairs(self.weight_names) do
    local weight = self[name]
    if weight:dim() == 2 then
      layers.glorot(weight, stream_of(name))
    else
      layers.fill(weight, 0)
      if name:match '^input' then layers.fill(weight:detach():narrow(1, self.hidden + 1, self.hidden), 1) end
    end
  end
end

-- Returns the given state, or zeros: hidden and cell, [layers * directions, N, hidden] each.
local function start(self, x, state)
  if state ~= nil then check.argument('nn.lstm', 2, 'state', state, 'table') end
  local shape, result = { self.layers * self.directions, x:size(2), self.hidden }, {}
  local want = table.concat(shape, ' x ')
  for i, name in ipairs { 'hidden', 'cell' } do
    local part = state and state[i]
    if state == nil then part = tensor.zeros(shape, { dtype = x.dtype, device = x.device }) end
    if not tensor.is(part) or table.concat(part:size(), ' x ') ~= want then
      check.refuse('nn.lstm', 2, 'state', 'expected a tensor %s [%s]', name, want)
    end
    result[i] = part
  end
  return result
end

function lstm:forward(x, state)
  if not tensor.is(x) or x:dim() ~= 3 then
    check.wrong('nn.lstm', 1, 'x', x, 'a tensor [steps x samples x inputs]')
  end
  local first, weights = start(self, x, state), {}
  for i, name in ipairs(self.weight_names) do weights[i] = self[name] end
  local output, hidden, cell = operations.lstm(x, first[1], first[2], weights, self.layers, self.bidirectional)
  return output, { hidden, cell }
end

function lstm:describe()
  local more = self.layers > 1 and (', %d layers'):format(self.layers) or ''
  return ('%d -> %d%s%s'):format(self.inputs, self.hidden, more, self.bidirectional and ', bidirectional' or '')
end

return { lstm = lstm }
