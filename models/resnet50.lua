-- ResNet-50 (He et al. 2016, "Deep Residual Learning for Image Recognition"): 25,557,032 parameters.
-- By default version 1.5 as in torchvision, where the 3 x 3 convolution of a block has the stride: 4.09 G
-- multiply-adds an image at 224 x 224 with 1000 classes. With v1 = true the first 1 x 1 convolution has
-- it, as in the paper: 3.8 G.

local resnet = require 'trinity.graph.layers.resnet'

return {
  help = 'ResNet-50 version 1.5 (torchvision), 224 x 224 images',
  options = {
    batch_size = { default = 64, help = 'images per step', min = 1, integer = true },
    image_size = { default = 224, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
    v1 = { default = false, help = "the paper's version 1: strides in the 1 x 1 convolutions" },
  },
  build = function(o)
    return resnet('resnet50', { 3, 4, 6, 3 }, o)
  end,
}
