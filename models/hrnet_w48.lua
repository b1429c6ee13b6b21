-- HRNetV2-W48 for segmentation (Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition",
-- 2019; Sun et al., arXiv 1904.04514): four streams of 48, 96, 192 and 384 channels at 1/4 to 1/32 of the image, fused
-- after every module, and a head over all of them. 65.9 M parameters with 19 classes (CityScapes). It is the trunk of
-- the hierarchical multi-scale attention networks for segmentation.

local layers = require 'trinity.graph.layers'

local width = 48

return {
  help = 'HRNetV2-W48, segmentation of CityScapes crops',
  options = {
    batch_size = { default = 2, help = 'images per step', min = 1, integer = true },
    height = { default = 512, help = 'of a crop; a multiple of 32', min = 32, integer = true },
    width = { default = 1024, help = 'of a crop; a multiple of 32', min = 32, integer = true },
    classes = { default = 19, help = 'of a pixel', min = 1, integer = true },
  },
  build = function(o)
    local net = layers.new('hrnet_w48', o)

    local function unit(name, x, channels, kernel, stride)
      x = net:conv(name .. '/conv', x, { channels = channels, kernel = kernel, stride = stride or 1,
        padding = (kernel - 1) / 2 })
      return net:batch_norm(name .. '/bn', x, { epsilon = 1e-5 })
    end
    local function relu_unit(name, ...) return net:relu(name .. '/relu', unit(name, ...)) end
    local function residual(name, x, y) return net:relu(name .. '/relu', net:add(name .. '/add', y, x)) end
    local function bottleneck(name, x, projected)
      local y = relu_unit(name .. '/2', relu_unit(name .. '/1', x, 64, 1), 64, 3)
      return residual(name, projected and unit(name .. '/projection', x, 256, 1) or x, unit(name .. '/3', y, 256, 1))
    end
    local function basic(name, x, channels)
      return residual(name, x, unit(name .. '/2', relu_unit(name .. '/1', x, channels, 3), channels, 3))
    end
    local function resize(name, x, like)
      local shape = { x.shape[1], x.shape[2], like.shape[3], like.shape[4] }
      return (net:operator('Resize', name, { inputs = { x }, shapes = { shape } }))
    end
    local function channels_of(stream) return width * 2 ^ (stream - 1) end

    -- The contribution of stream `from` to stream `to`: upsampled after a 1 x 1 convolution, or strided down.
    local function path(name, streams, from, to)
      local x = streams[from]
      if from == to then return x end
      if from > to then return resize(name .. '/resize', unit(name, x, channels_of(to), 1), streams[to]) end
      for step = 1, to - from - 1 do x = relu_unit(('%s/%d'):format(name, step), x, channels_of(from), 3, 2) end
      return unit(('%s/%d'):format(name, to - from), x, channels_of(to), 3, 2)
    end
    local function exchange(name, streams)
      local fused = {}
      for to = 1, #streams do
        local sum
        for from = 1, #streams do
          local part = path(('%s/%d_to_%d'):format(name, from, to), streams, from, to)
          sum = sum and net:add(('%s/sum_%d_%d'):format(name, from, to), sum, part) or part
        end
        fused[to] = net:relu(('%s/relu_%d'):format(name, to), sum)
      end
      return fused
    end
    local function stage(name, streams, modules)
      for m = 1, modules do
        for s = 1, #streams do
          for block = 1, 4 do
            local block_name = ('%s/module_%d/stream_%d/block_%d'):format(name, m, s, block)
            streams[s] = basic(block_name, streams[s], channels_of(s))
          end
        end
        streams = exchange(('%s/module_%d/exchange'):format(name, m), streams)
      end
      return streams
    end

    local x = net:input('image', { o.batch_size, 3, o.height, o.width })
    local labels = net:input('labels', { o.batch_size, o.height * o.width }, 'int64')
    x = relu_unit('stem/2', relu_unit('stem/1', x, 64, 3, 2), 64, 3, 2)
    for block = 1, 4 do x = bottleneck('stage_1/block_' .. block, x, block == 1) end
    local streams = { relu_unit('transition_1/1', x, channels_of(1), 3),
      relu_unit('transition_1/2', x, channels_of(2), 3, 2) }
    streams = stage('stage_2', streams, 1)
    for s, modules in ipairs { 4, 3 } do
      streams[#streams + 1] = relu_unit('transition_' .. s + 1, streams[#streams], channels_of(#streams + 1), 3, 2)
      streams = stage('stage_' .. s + 2, streams, modules)
    end
    for s = 2, 4 do streams[s] = resize('head/resize_' .. s, streams[s], streams[1]) end
    local all = net:concat('head/concat', streams, 2)
    all = net:relu('head/relu', net:batch_norm('head/bn', net:conv('head/conv', all, { channels = all.shape[2],
      kernel = 1, bias = true }), { epsilon = 1e-5 }))
    local scores = net:conv('head/scores', all, { channels = o.classes, kernel = 1, bias = true })
    scores = resize('head/resize', scores, { shape = { 0, 0, o.height, o.width } })
    local pixels = net:transpose('head/pixels', net:reshape('head/rows', scores,
      { o.batch_size, o.classes, o.height * o.width }), { 1, 3, 2 })
    net:softmax_cross_entropy('loss', pixels, labels)
    return net:build()
  end,
}
