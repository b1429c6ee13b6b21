-- The vocabulary of model builders: layers over a graph builder, with ONNX's operator types and
-- attributes. Images are NCHW. Shapes of outputs and parameters are computed here, FLOP and
-- gradients by the engine from type, shapes and parameters.

local graph = require 'trinity.graph'
local util = require 'trinity.util'

local Layers = {}
Layers.__index = Layers

local function pair(value, default)
  if value == nil then value = default end
  if type(value) == 'table' then return value[1], value[2] end
  return value, value
end

local function extent(input, kernel, stride, padding)
  return math.floor((input + 2 * padding - kernel) / stride) + 1
end

local function window(owner, name, x, o)
  local kh, kw = pair(o.kernel)
  local sh, sw = pair(o.stride, 1)
  local ph, pw = pair(o.padding, 0)
  if #x.shape ~= 4 then util.fail("%s '%s': expected an image [N, C, H, W]", owner, name) end
  local height, width = extent(x.shape[3], kh, sh, ph), extent(x.shape[4], kw, sw, pw)
  if height < 1 or width < 1 then
    util.fail("%s '%s': kernel %dx%d does not fit an image of %dx%d", owner, name, kh, kw,
      x.shape[3], x.shape[4])
  end
  return height, width,
    { kernel_shape = { kh, kw }, strides = { sh, sw }, pads = { ph, pw, ph, pw } }
end

--- A source of data: an image batch, token numbers. No gradient flows into it.
function Layers:input(name, shape, dtype)
  return (self.builder:add { name = name, type = 'Input',
    outputs = { { shape = shape, dtype = dtype or 'float32', gradient = false } } })
end

--- Convolution. o: channels, kernel, stride, padding (numbers or { height, width }), bias.
function Layers:conv(name, x, o)
  local height, width, attributes = window('conv', name, x, o)
  local kernel = attributes.kernel_shape
  local parameters = { { name = 'weight', shape = { o.channels, x.shape[2], kernel[1], kernel[2] } } }
  if o.bias then parameters[2] = { name = 'bias', shape = { o.channels } } end
  return (self.builder:add { name = name, type = 'Conv', inputs = { x }, attributes = attributes,
    parameters = parameters, outputs = { { shape = { x.shape[1], o.channels, height, width } } } })
end

local function same_shape(type)
  return function(self, name, x, attributes)
    return (self.builder:add { name = name, type = type, inputs = { x }, attributes = attributes,
      outputs = { { shape = x.shape } } })
  end
end

Layers.relu = same_shape 'Relu'
--- Dropout; attributes: ratio.
Layers.dropout = same_shape 'Dropout'

--- Batch normalisation over channels, with scale and shift.
function Layers:batch_norm(name, x, o)
  local channels = x.shape[2]
  return (self.builder:add { name = name, type = 'BatchNormalization', inputs = { x },
    attributes = { epsilon = o and o.epsilon or 1e-3 },
    parameters = { { name = 'scale', shape = { channels } }, { name = 'bias', shape = { channels } } },
    outputs = { { shape = x.shape } } })
end

local function pool(type)
  return function(self, name, x, o)
    local height, width, attributes = window(type, name, x, o)
    return (self.builder:add { name = name, type = type, inputs = { x }, attributes = attributes,
      outputs = { { shape = { x.shape[1], x.shape[2], height, width } } } })
  end
end

--- Pooling. o: kernel, stride, padding.
Layers.max_pool = pool 'MaxPool'
Layers.average_pool = pool 'AveragePool'

function Layers:global_average_pool(name, x)
  return (self.builder:add { name = name, type = 'GlobalAveragePool', inputs = { x },
    outputs = { { shape = { x.shape[1], x.shape[2], 1, 1 } } } })
end

--- Joins tensors along the channels.
function Layers:concat(name, tensors)
  local first, channels = tensors[1].shape, 0
  for _, tensor in ipairs(tensors) do channels = channels + tensor.shape[2] end
  return (self.builder:add { name = name, type = 'Concat', inputs = tensors,
    attributes = { axis = 1 }, outputs = { { shape = { first[1], channels, first[3], first[4] } } } })
end

--- [N, ...] to [N, product].
function Layers:flatten(name, x)
  local features = 1
  for i = 2, #x.shape do features = features * x.shape[i] end
  return (self.builder:add { name = name, type = 'Flatten', inputs = { x },
    attributes = { axis = 1 }, outputs = { { shape = { x.shape[1], features } } } })
end

--- Fully connected layer [N, K] to [N, features], with bias unless o.bias is false.
function Layers:linear(name, x, features, o)
  local parameters = { { name = 'weight', shape = { features, x.shape[2] } } }
  if not o or o.bias ~= false then parameters[2] = { name = 'bias', shape = { features } } end
  return (self.builder:add { name = name, type = 'Gemm', inputs = { x },
    attributes = { transB = 1 }, parameters = parameters,
    outputs = { { shape = { x.shape[1], features } } } })
end

--- Mean cross-entropy of logits [N, classes] against labels [N]: a scalar.
function Layers:softmax_cross_entropy(name, logits, labels)
  return (self.builder:add { name = name, type = 'SoftmaxCrossEntropyLoss',
    inputs = { logits, labels }, outputs = { { shape = { 1 } } } })
end

--- Finishes and returns the graph.
function Layers:build() return self.builder:build() end

local layers = {}

--- Layers over a new graph called `name`.
function layers.new(name)
  return setmetatable({ builder = graph.new { name = name } }, Layers)
end

return layers
