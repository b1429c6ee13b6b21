-- InceptionV3 (Szegedy et al. 2016, "Rethinking the Inception Architecture"): 5.71 G multiply-adds an
-- image at 299 x 299 with 1000 classes, and 23,834,568 parameters, with the auxiliary head 27,161,264, as
-- torchvision has it. Without the scale of batch normalisation, as in TensorFlow's slim and Keras,
-- 23,817,352.

local layers = require 'trinity.graph.layers'

return {
  help = 'InceptionV3, 299 x 299 images',
  options = {
    batch_size = { default = 64, help = 'images per step', min = 1, integer = true },
    image_size = { default = 299, help = 'height and width of an image', min = 75, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
    auxiliary = { default = false, help = 'with the auxiliary head, its loss weighted 0.4' },
    batch_norm_scale = { default = true, help = 'batch normalisation with a scale (torchvision)' },
    fused_batch_norm = { default = false, help = "batch normalisation as one kernel in TensorFlow's graphs" },
    nested_concat = { default = false, help = 'forked branches are joined first, as in torchvision and PaSE' },
  },
  build = function(o)
    local net = layers.new('inception_v3', o)
    local normalisation = { scale = o.batch_norm_scale, fused = o.fused_batch_norm and 1 or 0 }

    -- Convolution, batch normalisation, ReLU.
    local function unit(name, x, channels, kernel, stride, padding)
      x = net:conv(name .. '/conv', x,
        { channels = channels, kernel = kernel, stride = stride, padding = padding })
      return net:relu(name .. '/relu', net:batch_norm(name .. '/bn', x, normalisation))
    end
    local function chain(name, x, steps)
      for i, step in ipairs(steps) do x = unit(('%s_%d'):format(name, i), x, unpack(step)) end
      return x
    end
    local function pooled(name, x, channels)
      local y = net:average_pool(name .. '/pool', x, { kernel = 3, stride = 1, padding = 1 })
      return unit(name .. '/pool_proj', y, channels, 1)
    end
    local wide, tall = { { 1, 7 }, 1, { 0, 3 } }, { { 7, 1 }, 1, { 3, 0 } }
    local function long(channels, shape) return { channels, shape[1], shape[2], shape[3] } end

    local function module_a(name, x, pool_channels)
      return net:concat(name .. '/concat', {
        unit(name .. '/1x1', x, 64, 1),
        chain(name .. '/5x5', x, { { 48, 1 }, { 64, 5, 1, 2 } }),
        chain(name .. '/3x3dbl', x, { { 64, 1 }, { 96, 3, 1, 1 }, { 96, 3, 1, 1 } }),
        pooled(name, x, pool_channels),
      })
    end
    local function module_b(name, x)
      return net:concat(name .. '/concat', {
        unit(name .. '/3x3', x, 384, 3, 2),
        chain(name .. '/3x3dbl', x, { { 64, 1 }, { 96, 3, 1, 1 }, { 96, 3, 2 } }),
        net:max_pool(name .. '/pool', x, { kernel = 3, stride = 2 }),
      })
    end
    local function module_c(name, x, c)
      return net:concat(name .. '/concat', {
        unit(name .. '/1x1', x, 192, 1),
        chain(name .. '/7x7', x, { { c, 1 }, long(c, wide), long(192, tall) }),
        chain(name .. '/7x7dbl', x,
          { { c, 1 }, long(c, tall), long(c, wide), long(c, tall), long(192, wide) }),
        pooled(name, x, 192),
      })
    end
    local function module_d(name, x)
      return net:concat(name .. '/concat', {
        chain(name .. '/3x3', x, { { 192, 1 }, { 320, 3, 2 } }),
        chain(name .. '/7x7x3', x, { { 192, 1 }, long(192, wide), long(192, tall), { 192, 3, 2 } }),
        net:max_pool(name .. '/pool', x, { kernel = 3, stride = 2 }),
      })
    end
    local function fork(name, x)
      return unit(name .. 'a', x, 384, { 1, 3 }, 1, { 0, 1 }),
        unit(name .. 'b', x, 384, { 3, 1 }, 1, { 1, 0 })
    end
    local function module_e(name, x)
      local a, b = fork(name .. '/3x3_2', unit(name .. '/3x3_1', x, 384, 1))
      local c, d = fork(name .. '/3x3dbl_3',
        chain(name .. '/3x3dbl', x, { { 448, 1 }, { 384, 3, 1, 1 } }))
      return net:concat(name .. '/concat',
        { unit(name .. '/1x1', x, 320, 1), a, b, c, d, pooled(name, x, 192) })
    end
    local function module_e_nested(name, x)
      local single = unit(name .. '/1x1', x, 320, 1)
      local a, b = fork(name .. '/3x3_2', unit(name .. '/3x3_1', x, 384, 1))
      local short = net:concat(name .. '/3x3', { a, b })
      local c, d = fork(name .. '/3x3dbl_3', chain(name .. '/3x3dbl', x, { { 448, 1 }, { 384, 3, 1, 1 } }))
      local double = net:concat(name .. '/3x3dbl', { c, d })
      return net:concat(name .. '/concat', { single, short, double, pooled(name, x, 192) })
    end
    local function auxiliary_loss(x, labels)
      x = net:average_pool('auxiliary/pool', x, { kernel = 5, stride = 3 })
      x = unit('auxiliary/2', unit('auxiliary/1', x, 128, 1), 768, 5)
      x = net:flatten('auxiliary/flatten', net:global_average_pool('auxiliary/global_pool', x))
      return net:softmax_cross_entropy('auxiliary/loss', net:linear('auxiliary/classifier', x, o.classes), labels)
    end

    local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    x = chain('stem', x, { { 32, 3, 2 }, { 32, 3 }, { 64, 3, 1, 1 } })
    x = net:max_pool('stem/pool_1', x, { kernel = 3, stride = 2 })
    x = unit('stem_5', unit('stem_4', x, 80, 1), 192, 3)
    x = net:max_pool('stem/pool_2', x, { kernel = 3, stride = 2 })
    for i, channels in ipairs { 32, 64, 64 } do x = module_a('mixed_a' .. i, x, channels) end
    x = module_b('mixed_b', x)
    for i, channels in ipairs { 128, 160, 160, 192 } do x = module_c('mixed_c' .. i, x, channels) end
    local middle = x
    x = module_d('mixed_d', x)
    local last_module = o.nested_concat and module_e_nested or module_e
    for i = 1, 2 do x = last_module('mixed_e' .. i, x) end
    x = net:global_average_pool('pool', x)
    x = net:flatten('flatten', net:dropout('dropout', x, { ratio = 0.5 }))
    local loss = net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
    if o.auxiliary then net:add_loss('total_loss', loss, auxiliary_loss(middle, labels), 0.4) end
    return net:build()
  end,
}
