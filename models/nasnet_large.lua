-- NASNet-A (6 @ 4032), NASNet-Large (Zoph et al. 2018, "Learning Transferable Architectures for
-- Scalable Image Recognition"): 88.9 M parameters and 23.8 G multiply-adds an image at 331 x 331 with
-- 1000 classes. 88,753,150 are trained; Keras counts 196,668 moving statistics of batch normalisation
-- too, which makes its 88,949,818. With the auxiliary head 93,320,934 are trained.

local nasnet = require 'trinity.graph.layers.nasnet'

-- Figure 4 of the paper; operations are in the order of slim's nasnet_utils.py.
local normal = {
  blocks = {
    { { 'separable_5x5', 'current' }, { 'separable_3x3', 'previous' } },
    { { 'separable_5x5', 'previous' }, { 'separable_3x3', 'previous' } },
    { { 'average_pool', 'current' }, { 'none', 'previous' } },
    { { 'average_pool', 'previous' }, { 'average_pool', 'previous' } },
    { { 'separable_3x3', 'current' }, { 'none', 'current' } },
  },
  output = { 'previous', 1, 2, 3, 4, 5 },
}

local reduction = {
  blocks = {
    { { 'separable_5x5', 'current' }, { 'separable_7x7', 'previous' } },
    { { 'max_pool', 'current' }, { 'separable_7x7', 'previous' } },
    { { 'average_pool', 'current' }, { 'separable_5x5', 'previous' } },
    { { 'none', 2 }, { 'average_pool', 1 } },
    { { 'separable_3x3', 1 }, { 'max_pool', 'current' } },
  },
  output = { 2, 3, 4, 5 },
}

return {
  help = 'NASNet-Large (NASNet-A 6 @ 4032), 331 x 331 images',
  options = nasnet.options(8),
  build = function(o)
    return nasnet.build({ name = 'nasnet_large', filters = 168, normal_cells = { 6, 6, 6 }, normal = normal,
      reduction = reduction, keep_path = 0.7, skips_reduction = true }, o)
  end,
}
