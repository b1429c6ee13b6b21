-- AlexNet (Krizhevsky, Sutskever, Hinton 2012, "ImageNet Classification with Deep Convolutional Neural
-- Networks") without groups and local response normalisation, as PaSE's graphs have it: images of
-- 227 x 227, convolutions of 96, 256, 384, 384 and 256 channels, dense layers of 4096, 4096 and `classes`.

local layers = require 'trinity.graph.layers'

return {
  help = 'AlexNet in one tower, 227 x 227 images',
  options = {
    batch_size = { default = 128, help = 'images per step', min = 1, integer = true },
    image_size = { default = 227, help = 'height and width of an image', min = 67, integer = true },
    classes = { default = 1024, help = 'width of the classifier', min = 1, integer = true },
    dropout = { default = false, help = 'dropout of 0.5 after the dense layers' },
  },
  build = function(o)
    local net = layers.new('alexnet', o)
    local function conv(name, x, channels, kernel, stride, padding)
      x = net:conv(name, x, { channels = channels, kernel = kernel, stride = stride, padding = padding, bias = true })
      return net:relu(name .. '/relu', x)
    end
    local function pool(name, x) return net:max_pool(name, x, { kernel = 3, stride = 2 }) end
    local function dense(name, x)
      x = net:relu(name .. '/relu', net:linear(name, x, 4096))
      return net:drop(name .. '/dropout', x, o.dropout and 0.5 or 0)
    end

    local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    x = pool('pool_1', conv('conv_1', x, 96, 11, 4))
    x = pool('pool_2', conv('conv_2', x, 256, 5, 1, 2))
    x = conv('conv_4', conv('conv_3', x, 384, 3, 1, 1), 384, 3, 1, 1)
    x = pool('pool_5', conv('conv_5', x, 256, 3, 1, 1))
    x = dense('fc_7', dense('fc_6', net:flatten('flatten', x)))
    net:softmax_cross_entropy('loss', net:linear('fc_8', x, o.classes), labels)
    return net:build()
  end,
}
