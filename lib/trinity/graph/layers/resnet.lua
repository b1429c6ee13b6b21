-- The residual networks of bottlenecks (He et al. 2016, "Deep Residual Learning for Image Recognition").

local layers = require 'trinity.graph.layers'

--- Builds a network called `name` with the given number of blocks in each of its four stages. o: batch_size,
--- image_size, classes, v1 (a block's stride in its first 1 x 1 convolution, as in the paper, instead of the 3 x 3
--- one).
return function(name, depths, o)
  local net = layers.new(name, o)

  -- Convolution and batch normalization.
  local function unit(place, x, channels, kernel, stride)
    x = net:conv(place .. '/conv', x,
      { channels = channels, kernel = kernel, stride = stride, padding = (kernel - 1) / 2 })
    return net:batch_norm(place .. '/bn', x, { epsilon = 1e-5 })
  end
  local function bottleneck(place, x, channels, stride, projected)
    local first, second = 1, stride
    if o.v1 then first, second = stride, 1 end
    local y = net:relu(place .. '/relu_1', unit(place .. '/1', x, channels, 1, first))
    y = net:relu(place .. '/relu_2', unit(place .. '/2', y, channels, 3, second))
    y = unit(place .. '/3', y, 4 * channels, 1, 1)
    local short = projected and unit(place .. '/projection', x, 4 * channels, 1, stride) or x
    return net:relu(place .. '/relu_3', net:add(place .. '/add', y, short))
  end

  local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
  local labels = net:input('labels', { o.batch_size }, 'int64')
  x = net:relu('stem/relu', unit('stem', x, 64, 7, 2))
  x = net:max_pool('stem/pool', x, { kernel = 3, stride = 2, padding = 1 })
  for stage, blocks in ipairs(depths) do
    for i = 1, blocks do
      local stride = i == 1 and stage > 1 and 2 or 1
      x = bottleneck(('stage_%d/block_%d'):format(stage, i), x, 32 * 2 ^ stage, stride, i == 1)
    end
  end
  x = net:flatten('flatten', net:global_average_pool('pool', x))
  net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
  return net:build()
end
