-- ViT-B/16 (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words"): 86,567,656 parameters and 17.56 G
-- multiply-adds an image at 224 x 224 with 1000 classes, as torchvision's vit_b_16.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

--- Patches as a sequence, after the class token and with the positions added.
local function embed(net, o)
  local side = o.image_size / o.patch
  local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
  x = net:conv('patches/conv', x, { channels = o.hidden, kernel = o.patch, stride = o.patch, bias = true })
  x = net:reshape('patches/rows', x, { o.batch_size, o.hidden, side * side })
  x = net:transpose('patches/transpose', x, { 1, 3, 2 })
  local class = net:expand('class_token/expand', net:variable('class_token', { 1, 1, o.hidden }),
    { o.batch_size, 1, o.hidden })
  x = net:concat('embed/concat', { class, x }, 2)
  x = net:add('embed/sum', x, net:variable('positions', { 1, side * side + 1, o.hidden }))
  return net:drop('embed/dropout', x, o.dropout)
end

return {
  help = 'ViT-B/16, 224 x 224 images',
  optimizer = 'adam',
  mixed_precision = true,
  options = {
    batch_size = { default = 64, help = 'images per step', min = 1, integer = true },
    image_size = { default = 224, help = 'height and width of an image', min = 1, integer = true },
    patch = { default = 16, help = 'height and width of a patch', min = 1, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
    layers = { default = 12, help = 'blocks', min = 1, max = 1000, integer = true },
    hidden = { default = 768, help = 'hidden size', min = 1, integer = true },
    heads = { default = 12, help = 'attention heads', min = 1, integer = true },
    feed_forward = { default = 3072, help = 'inner width of a block', min = 1, integer = true },
    kernels = { default = 'flash', help = 'onnx, megatron or flash: what is one operator, and so what is kept' },
    fused = { default = false, help = 'one matmul for queries, keys and values; separate ones can be split by heads' },
    dropout = { default = 0, help = 'ratio of all dropouts (0: none)', min = 0, max = 1 },
  },
  build = function(o)
    if o.image_size % o.patch ~= 0 then
      util.fail("model 'vit_b16': patches of %d do not tile an image of %d", o.patch, o.image_size)
    end
    layers.choice('vit_b16', 'kernels', o.kernels, { onnx = true, megatron = true, flash = true })
    local net = layers.new('vit_b16', o)
    local block = { heads = o.heads, fused = o.fused, kernels = o.kernels, norm_first = true,
      feed_forward = o.feed_forward,
      dropout = o.dropout, epsilon = 1e-6 }
    local x = embed(net, o)
    for i = 1, o.layers do x = net:transformer_block('block_' .. i, x, block) end
    x = net:layer_norm('norm', x, { epsilon = 1e-6 })
    x = net:reshape('class_row', net:slice('class_first', x, 2, 1, 1), { o.batch_size, o.hidden })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
    return net:build()
  end,
}
