-- A perceptron of fully connected layers (Rumelhart, Hinton and Williams 1986) with ReLU between them, started as He et
-- al. 2015 do ("Delving Deep into Rectifiers", equation 10): normal weights of variance 2 / inputs, biases of 0.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

return {
  help = 'perceptron: fully connected layers with ReLU',
  optimizer = 'sgd', -- unless the caller names another
  options = {
    batch_size = { default = 50, help = 'samples per step', min = 1, integer = true },
    inputs = { default = 64, help = 'numbers of a sample', min = 1, integer = true },
    hidden = { default = { 128 }, help = 'widths of the layers between' },
    classes = { default = 10, help = 'width of the last layer', min = 1, integer = true },
  },
  build = function(o)
    for i, width in ipairs(o.hidden) do
      if type(width) ~= 'number' then
        util.fail("trinity.model: model 'mlp': option 'hidden'[%d]: expected a number, got %s", i, util.describe(width))
      end
    end
    local net = layers.new('mlp', o)
    local x = net:input('inputs', { o.batch_size, o.inputs })
    for i, width in ipairs(o.hidden) do
      local name = 'layer_' .. i
      x = net:relu(name .. '/relu', net:linear(name .. '/linear', x, width, { start = 'he' }))
    end
    x = net:linear(('layer_%d/linear'):format(#o.hidden + 1), x, o.classes, { start = 'he' })
    net:softmax_cross_entropy('loss', x, net:input('labels', { o.batch_size }, 'int64'))
    return net:build()
  end,
}
