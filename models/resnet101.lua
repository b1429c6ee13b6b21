-- ResNet-101 (He et al. 2016, "Deep Residual Learning for Image Recognition"), version 1.5: the 3 x 3
-- convolution of a block has the stride. 44,549,160 parameters with 1000 classes. Images of 227 x 227 by
-- default, as in PaSE's graphs.

local layers = require 'trinity.layers'

return {
  help = 'ResNet-101 version 1.5, 227 x 227 images',
  options = {
    batch_size = { default = 128, help = 'images per step', min = 1, integer = true },
    image_size = { default = 227, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
  },
  build = function(o)
    local net = layers.new('resnet101', o)
    local function unit(name, x, channels, kernel, stride)
      x = net:conv(name .. '/conv', x,
        { channels = channels, kernel = kernel, stride = stride, padding = (kernel - 1) / 2 })
      return net:batch_norm(name .. '/bn', x, { epsilon = 1e-5 })
    end
    local function bottleneck(name, x, channels, stride, projected)
      local y = net:relu(name .. '/relu_1', unit(name .. '/1', x, channels, 1, 1))
      y = net:relu(name .. '/relu_2', unit(name .. '/2', y, channels, 3, stride))
      y = unit(name .. '/3', y, 4 * channels, 1, 1)
      local short = projected and unit(name .. '/projection', x, 4 * channels, 1, stride) or x
      return net:relu(name .. '/relu_3', net:add(name .. '/add', y, short))
    end

    local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    x = net:relu('stem/relu', unit('stem', x, 64, 7, 2))
    x = net:max_pool('stem/pool', x, { kernel = 3, stride = 2, padding = 1 })
    for stage, blocks in ipairs { 3, 4, 23, 3 } do
      for i = 1, blocks do
        local stride = i == 1 and stage > 1 and 2 or 1
        x = bottleneck(('stage_%d/block_%d'):format(stage, i), x, 32 * 2 ^ stage, stride, i == 1)
      end
    end
    x = net:flatten('flatten', net:global_average_pool('pool', x))
    net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
    return net:build()
  end,
}
