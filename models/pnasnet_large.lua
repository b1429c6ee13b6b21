-- PNASNet-5 (N = 4, F = 216), PNASNet-Large (Liu et al. 2018, "Progressive Neural Architecture
-- Search"): 86.1 M parameters and 25.0 G multiply-adds an image at 331 x 331 with 1000 classes.
-- 86,057,668 are trained, 90,643,884 with the auxiliary head.

local nasnet = require 'trinity.graph.layers.nasnet'

-- One cell for everything: with stride 2 it reduces. Operations are in the order of slim's pnasnet.py.
local cell = {
  blocks = {
    { { 'separable_5x5', 'previous' }, { 'max_pool', 'previous' } },
    { { 'separable_7x7', 'current' }, { 'max_pool', 'current' } },
    { { 'separable_5x5', 'current' }, { 'separable_3x3', 'current' } },
    { { 'separable_3x3', 3 }, { 'max_pool', 'current' } },
    { { 'separable_3x3', 'previous' }, { 'none', 'current' } },
  },
  output = { 1, 2, 3, 4, 5 },
}

return {
  help = 'PNASNet-Large (PNASNet-5, N = 4, F = 216), 331 x 331 images',
  options = nasnet.options(8),
  build = function(o)
    return nasnet.build({ name = 'pnasnet_large', filters = 216, normal_cells = { 4, 3, 3 }, normal = cell,
      reduction = cell, keep_path = 0.6 }, o)
  end,
}
