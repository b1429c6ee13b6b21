-- ResNet-50 (He et al. 2016, "Deep Residual Learning for Image Recognition"): 25,557,032 parameters.
-- By default version 1.5 as in torchvision, where the 3 x 3 convolution of a block has the stride: 4.09 G
-- multiply-adds an image at 224 x 224 with 1000 classes. With v1 = true the first 1 x 1 convolution has
-- it, as in the paper: 3.8 G.

local layers = require 'trinity.layers'

return {
  help = 'ResNet-50 version 1.5 (torchvision), 224 x 224 images',
  options = {
    batch_size = { default = 64, help = 'images per step', min = 1, integer = true },
    image_size = { default = 224, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
    v1 = { default = false, help = "the paper's version 1: strides in the 1 x 1 convolutions" },
  },
  build = function(o)
    local net = layers.new('resnet50', o)

    -- Convolution and batch normalisation.
    local function unit(name, x, channels, kernel, stride)
      x = net:conv(name .. '/conv', x,
        { channels = channels, kernel = kernel, stride = stride, padding = (kernel - 1) / 2 })
      return net:batch_norm(name .. '/bn', x, { epsilon = 1e-5 })
    end
    local function bottleneck(name, x, channels, stride, projected)
      local first, second = 1, stride
      if o.v1 then first, second = stride, 1 end
      local y = net:relu(name .. '/relu_1', unit(name .. '/1', x, channels, 1, first))
      y = net:relu(name .. '/relu_2', unit(name .. '/2', y, channels, 3, second))
      y = unit(name .. '/3', y, 4 * channels, 1, 1)
      local short = projected and unit(name .. '/projection', x, 4 * channels, 1, stride) or x
      return net:relu(name .. '/relu_3', net:add(name .. '/add', y, short))
    end

    local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    x = net:relu('stem/relu', unit('stem', x, 64, 7, 2))
    x = net:max_pool('stem/pool', x, { kernel = 3, stride = 2, padding = 1 })
    for stage, blocks in ipairs { 3, 4, 6, 3 } do
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
