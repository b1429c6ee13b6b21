-- ResNet-101 (He et al. 2016, "Deep Residual Learning for Image Recognition"), version 1.5: the 3 x 3
-- convolution of a block has the stride. 44,549,160 parameters with 1000 classes. Images of 227 x 227 by
-- default, as in PaSE's graphs.

local resnet = require 'trinity.graph.layers.resnet'

return {
  help = 'ResNet-101 version 1.5, 227 x 227 images',
  options = {
    batch_size = { default = 128, help = 'images per step', min = 1, integer = true },
    image_size = { default = 227, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
  },
  build = function(o)
    return resnet('resnet101', { 3, 4, 23, 3 }, o)
  end,
}
