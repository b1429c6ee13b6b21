-- Layers for images [N, C, H, W]: methods of trinity.Layers.

local check = require 'trinity.base.check'
local declared = require 'trinity.graph.layers.options'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

---@class trinity.Layers
local Layers = {}

local window_options = options_of.declare('trinity.WindowOptions', { help = 'Options of convolutions and pooling; '
  .. 'sizes are numbers, or { height, width }.',
  { 'kernel', 'any', needed = true, as = 'integer|integer[]', help = 'size of the window' },
  { 'stride', 'any', 1, as = 'integer|integer[]', help = 'stride of the window' },
  { 'padding', 'any', 0, as = "integer|integer[]|'same'", help = "padding: one number, { height, width }, four sides "
    .. "{ top, left, bottom, right }, or 'same'" },
  { 'group', 'integer', 1, least = 1, help = 'groups of a convolution' },
  { 'ceil', 'boolean', false, help = 'pooling: the last window may exceed the edge' },
  { 'channels', 'integer', least = 1, most = 2 ^ 31, help = 'output channels of a convolution' },
  { 'bias', 'boolean', false, help = 'add a bias to a convolution' },
})

local function check_image(owner, x)
  if #x.shape ~= 4 then
    check.refuse(owner, 2, 'x', 'expected an image [N, C, H, W], got a tensor of %d axes', #x.shape)
  end
end

local function begin_window(owner, x, o)
  check_image(owner, x)
  return window_options:read(owner, 3, 'o', o)
end

local function is_integer(value, least)
  return type(value) == 'number' and value % 1 == 0 and value >= least and value <= 2 ^ 31
end

--- Reads a height and a width: a number for both, or { height, width }.
local function pair(owner, name, field, value, default)
  if value == nil then value = default end
  local height, width = value, value
  if type(value) == 'table' then height, width = value[1], value[2] end
  if not is_integer(height, 1) or not is_integer(width, 1) then
    util.fail("%s '%s': %s: expected an integer from 1 or { height, width }, got %s", owner, name, field,
      util.describe(value))
  end
  return height, width
end

--- TensorFlow's SAME padding: output extent = ceil(extent / stride), with an odd element of padding at the end.
local function same_padding(input, kernel, stride)
  local total = math.max((math.ceil(input / stride) - 1) * stride + kernel - input, 0)
  return math.floor(total / 2), math.ceil(total / 2)
end

--- Converts padding to ONNX's { top, left, bottom, right }.
local function padding_of(owner, name, x, value, kernel, stride)
  if value == 'same' then
    local top, bottom = same_padding(x.shape[3], kernel[1], stride[1])
    local left, right = same_padding(x.shape[4], kernel[2], stride[2])
    return { top, left, bottom, right }
  end
  local given = value or 0
  if type(given) ~= 'table' then given = { given, given } end
  local pads = #given == 2 and { given[1], given[2], given[1], given[2] } or given
  local fits = #pads == 4
  for i = 1, 4 do fits = fits and is_integer(pads[i], 0) end
  if not fits then
    util.fail("%s '%s': padding: expected an integer from 0, { height, width }, { top, left, bottom, right } or "
      .. "'same', got %s", owner, name, util.describe(value))
  end
  return pads
end

--- Returns the number of window positions. With ceil, the last window only has to start inside of the image or its
--- first padding.
local function extent(input, kernel, stride, before, after, ceil)
  local room = input + before + after - kernel
  local count = math.floor(room / stride) + 1
  if ceil and room % stride ~= 0 and count * stride < input + before then count = count + 1 end
  return count
end

--- Returns output extents and ONNX attributes of a moving window.
local function window(owner, name, x, o)
  local kernel, stride = { pair(owner, name, 'kernel', o.kernel) }, { pair(owner, name, 'stride', o.stride) }
  local pads = padding_of(owner, name, x, o.padding, kernel, stride)
  local height = extent(x.shape[3], kernel[1], stride[1], pads[1], pads[3], o.ceil)
  local width = extent(x.shape[4], kernel[2], stride[2], pads[2], pads[4], o.ceil)
  if height < 1 or width < 1 then
    util.fail("%s '%s': expected a kernel that fits the image, got %dx%d on %dx%d", owner, name, kernel[1], kernel[2],
      x.shape[3], x.shape[4])
  end
  return height, width, { kernel_shape = kernel, strides = stride, pads = pads }
end

--- Convolution. o: channels, kernel, stride, padding, bias, group. kernel and stride: a number or
--- { height, width }. padding: those, { top, left, bottom, right }, or 'same' (TensorFlow's SAME: extent / stride,
--- rounded up). group: number of independent channel groups; weights are [channels, input channels / group, kh, kw].
--- Transposed convolutions: `net:operator('ConvTranspose', ...)`.
--- Example: `net:conv('c', image, { channels = 4, kernel = 3, padding = 'same' })`
---@param o trinity.WindowOptions
function Layers:conv(name, x, o)
  o = begin_window('layers:conv', x, o)
  local height, width, attributes = window('conv', name, x, o)
  local kernel, group, inputs = attributes.kernel_shape, o.group, x.shape[2]
  if not is_integer(o.channels, 1) then
    util.fail("conv '%s': channels: expected an integer from 1, got %s", name, util.describe(o.channels))
  end
  if not is_integer(group, 1) or inputs % group ~= 0 or o.channels % group ~= 0 then
    util.fail("conv '%s': group: expected a divisor of %d input and %d output channels, got %s", name, inputs,
      o.channels, util.describe(group))
  end
  if group > 1 then attributes.group = group end
  local parameters = { self:weight('weight', { o.channels, inputs / group, kernel[1], kernel[2] }) }
  if o.bias then parameters[2] = self:weight('bias', { o.channels }) end
  return (self:operator('Conv', name, { inputs = { x }, attributes = attributes, parameters = parameters,
    shapes = { { x.shape[1], o.channels, height, width } } }))
end

--- Depthwise convolution: every channel has its own kernel. o: kernel, stride, padding, bias.
--- Example: `net:depthwise_conv('c', image, { kernel = 3 })`
---@param o trinity.WindowOptions
function Layers:depthwise_conv(name, x, o)
  o = begin_window('layers:depthwise_conv', x, o)
  return self:conv(name, x, { channels = x.shape[2], group = x.shape[2], kernel = o.kernel, stride = o.stride,
    padding = o.padding, bias = o.bias })
end

--- Separable convolution: NAME/depthwise, then a 1 x 1 convolution NAME/pointwise. o: channels, and
--- kernel, stride, padding of the first. Example: `net:separable_conv('c', image, { channels = 4, kernel = 3 })`
---@param o trinity.WindowOptions
function Layers:separable_conv(name, x, o)
  o = begin_window('layers:separable_conv', x, o)
  local y = self:depthwise_conv(name .. '/depthwise', x, { kernel = o.kernel, stride = o.stride, padding = o.padding })
  return self:conv(name .. '/pointwise', y, { channels = o.channels, kernel = 1 })
end

--- Batch normalization over channels, with shift, scale and moving statistics (not trainable).
--- Example: `net:batch_norm('n', image)`
---@param o? trinity.BatchNormOptions
function Layers:batch_norm(name, x, o)
  check_image('layers:batch_norm', x)
  o = declared.batch_norm:read('layers:batch_norm', 3, 'o', o)
  local channels = { x.shape[2] }
  local parameters = { self:weight('bias', channels), self:weight('mean', channels, false),
    self:weight('variance', channels, false) }
  if o.scale then table.insert(parameters, 1, self:weight('scale', channels)) end
  return (self:operator('BatchNormalization', name, { inputs = { x }, shapes = { x.shape }, parameters = parameters,
    attributes = { epsilon = o.epsilon, fused = o.fused } }))
end

---@return fun(self: trinity.Layers, name: string, x: trinity.Tensor, o: trinity.WindowOptions): trinity.Tensor
local function pool(method, type, own)
  local owner = 'layers:' .. method
  return function(self, name, x, o)
    o = begin_window(owner, x, o)
    local height, width, attributes = window(type, name, x, o)
    if o.ceil then attributes.ceil_mode = 1 end
    return (self:operator(type, name, { inputs = { x }, attributes = util.merged(attributes, own),
      shapes = { { x.shape[1], x.shape[2], height, width } } }))
  end
end

--- Maximum of a window. o: kernel, stride (default 1), padding as of convolutions; ceil = true: the last window may be
--- partly outside (as in Caffe). Example: `net:max_pool('p', image, { kernel = 2 })`
Layers.max_pool = pool('max_pool', 'MaxPool')
--- Mean of a window, o as of max_pool. Padding does not count, as in TensorFlow.
--- Example: `net:average_pool('p', image, { kernel = 2 })`
Layers.average_pool = pool('average_pool', 'AveragePool', { count_include_pad = 0 })

--- Example: `net:global_average_pool('p', image)`
function Layers:global_average_pool(name, x)
  check_image('layers:global_average_pool', x)
  return (self:operator('GlobalAveragePool', name, { inputs = { x }, shapes = { { x.shape[1], x.shape[2], 1, 1 } } }))
end

local function sides_of(owner, sides)
  local fits = type(sides) == 'table' and #sides == 4
  for i = 1, 4 do fits = fits and is_integer(sides[i], 0) end
  if not fits then
    check.wrong(owner, 3, 'sides', sides, '{ top, left, bottom, right }, integers from 0')
  end
  return unpack(sides)
end

--- Pads an image with zeros: sides = { top, left, bottom, right }. Example: `net:zero_pad('p', image, { 1, 1, 1, 1 })`
---@param sides integer[]
function Layers:zero_pad(name, x, sides)
  check_image('layers:zero_pad', x)
  local top, left, bottom, right = sides_of('layers:zero_pad', sides)
  local n, c, h, w = unpack(x.shape)
  return (self:operator('Pad', name, { inputs = { x }, shapes = { { n, c, h + top + bottom, w + left + right } },
    attributes = { mode = 'constant', pads = { 0, 0, top, left, 0, 0, bottom, right } } }))
end

--- Crops rows and columns of an image: sides = { top, left, bottom, right }. Raises an error if nothing is left.
--- Example: `net:crop('p', image, { 1, 1, 1, 1 })`
---@param sides integer[]
function Layers:crop(name, x, sides)
  check_image('layers:crop', x)
  local top, left, bottom, right = sides_of('layers:crop', sides)
  local n, c, h, w = unpack(x.shape)
  if top + bottom >= h or left + right >= w then
    util.fail("crop '%s': expected sides smaller than the image of %dx%d", name, h, w)
  end
  return (self:operator('Slice', name, { inputs = { x }, shapes = { { n, c, h - top - bottom, w - left - right } },
    attributes = { axes = { 2, 3 }, starts = { top, left }, ends = { h - bottom, w - right } } }))
end

return Layers
