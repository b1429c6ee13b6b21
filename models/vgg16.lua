-- VGG-16 (Simonyan and Zisserman 2015, "Very Deep Convolutional Networks for Large-Scale Image
-- Recognition", configuration D), without batch normalisation: 138,357,544 parameters and 15.47 G
-- multiply-adds an image at 224 x 224 with 1000 classes. The first fully connected layer reads the whole
-- last map (7 x 7 at 224), so its width follows image_size.

local layers = require 'trinity.graph.layers'

return {
  help = 'VGG-16, 224 x 224 images',
  options = {
    batch_size = { default = 64, help = 'images per step', min = 1, integer = true },
    image_size = { default = 224, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'width of the classifier', min = 1, integer = true },
  },
  build = function(o)
    local net = layers.new('vgg16', o)
    local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
    local labels = net:input('labels', { o.batch_size }, 'int64')
    for stage, widths in ipairs { { 64, 64 }, { 128, 128 }, { 256, 256, 256 }, { 512, 512, 512 }, { 512, 512, 512 } } do
      for i, channels in ipairs(widths) do
        local name = ('stage_%d/%d'):format(stage, i)
        x = net:conv(name .. '/conv', x, { channels = channels, kernel = 3, padding = 1, bias = true })
        x = net:relu(name .. '/relu', x)
      end
      x = net:max_pool(('stage_%d/pool'):format(stage), x, { kernel = 2, stride = 2 })
    end
    x = net:flatten('flatten', x)
    for i = 1, 2 do
      local name = 'full_' .. i
      x = net:relu(name .. '/relu', net:linear(name .. '/linear', x, 4096))
      x = net:dropout(name .. '/dropout', x, { ratio = 0.5 })
    end
    net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
    return net:build()
  end,
}
