-- PyTorch's operators (ATen; torch/_refs and aten/src/ATen/native/native_functions.yaml name their arguments) as
-- operators of graphs: ONNX types, for which the engine has cost rules, and their attributes.

local util = require 'trinity.base.util'

local operators = {}

-- Types by operator, without overload. A type that only changes the view of its data costs nothing.
local types = {}

local function of_type(type, names)
  for name in names:gmatch '%S+' do types[name] = type end
end

of_type('Gemm', 'linear addmm')
of_type('MatMul', 'matmul mm bmm mv dot baddbmm')
of_type('Einsum', 'einsum')
of_type('Conv', 'conv1d conv2d conv3d convolution _convolution')
of_type('ConvTranspose', 'conv_transpose1d conv_transpose2d conv_transpose3d')
of_type('Attention', 'scaled_dot_product_attention _scaled_dot_product_flash_attention '
  .. '_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention_for_cpu')
of_type('LSTM', 'lstm lstm_cell')
of_type('GRU', 'gru gru_cell')
of_type('RNN', 'rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell')
of_type('Gather', 'embedding index_select')
of_type('GatherElements', 'gather')
of_type('GatherND', 'index')
of_type('ScatterElements', 'scatter scatter_add index_put index_add scatter_reduce slice_scatter select_scatter')
of_type('BatchNormalization',
  'batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training native_batch_norm')
of_type('LayerNormalization', 'layer_norm native_layer_norm')
of_type('GroupNormalization', 'group_norm native_group_norm')
of_type('InstanceNormalization', 'instance_norm')
of_type('RMSNormalization', 'rms_norm _fused_rms_norm')
of_type('MaxPool', 'max_pool1d max_pool2d max_pool3d max_pool2d_with_indices')
of_type('AveragePool', 'avg_pool1d avg_pool2d avg_pool3d')
of_type('AdaptiveAveragePool', 'adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d')
of_type('Dropout', 'dropout dropout_ feature_dropout native_dropout')
of_type('Softmax', 'softmax _softmax _safe_softmax')
of_type('LogSoftmax', 'log_softmax _log_softmax')
of_type('SoftmaxCrossEntropyLoss', 'cross_entropy_loss')
of_type('NegativeLogLikelihoodLoss', 'nll_loss nll_loss_forward nll_loss_nd')
of_type('Add', 'add add_')
of_type('Sub', 'sub sub_ rsub')
of_type('Mul', 'mul mul_')
of_type('Div', 'div div_ true_divide floor_divide')
of_type('Pow', 'pow')
of_type('Relu', 'relu relu_')
of_type('Gelu', 'gelu')
of_type('Swish', 'silu silu_')
of_type('Sigmoid', 'sigmoid')
of_type('Tanh', 'tanh')
of_type('Exp', 'exp')
of_type('Log', 'log log2 log1p')
of_type('Sqrt', 'sqrt rsqrt')
of_type('Reciprocal', 'reciprocal')
of_type('Erf', 'erf')
of_type('Neg', 'neg')
of_type('Abs', 'abs')
of_type('Sin', 'sin')
of_type('Cos', 'cos')
of_type('Softplus', 'softplus')
of_type('Elu', 'elu elu_')
of_type('Selu', 'selu')
of_type('LeakyRelu', 'leaky_relu leaky_relu_')
of_type('PRelu', 'prelu')
of_type('HardSwish', 'hardswish hardswish_')
of_type('HardSigmoid', 'hardsigmoid')
of_type('Mish', 'mish')
of_type('Clip', 'clamp clamp_min clamp_max hardtanh hardtanh_ relu6')
of_type('Max', 'maximum')
of_type('Min', 'minimum')
of_type('Where', 'where masked_fill masked_fill_')
of_type('Equal', 'eq ne')
of_type('Less', 'lt gt')
of_type('LessOrEqual', 'le ge')
of_type('Not', 'logical_not bitwise_not')
of_type('And', 'logical_and bitwise_and logical_or bitwise_or __and__ __or__')
of_type('Floor', 'floor')
of_type('Ceil', 'ceil')
of_type('Round', 'round')
of_type('ReduceMean', 'mean')
of_type('ReduceSum', 'sum')
of_type('ReduceMax', 'amax max')
of_type('ReduceMin', 'amin min')
of_type('ReduceL2', 'norm linalg_vector_norm')
of_type('ArgMax', 'argmax argmin')
of_type('TopK', 'topk sort')
of_type('CumSum', 'cumsum')
of_type('Concat', 'cat stack concat')
of_type('Split', 'split split_with_sizes chunk unbind tensor_split unsafe_split')
of_type('Slice', 'slice select narrow diagonal')
of_type('Transpose', 'permute transpose t movedim swapaxes numpy_T')
of_type('Expand', 'expand expand_as broadcast_to')
of_type('Tile', 'repeat repeat_interleave tile roll')
of_type('Pad', 'pad constant_pad_nd reflection_pad2d replication_pad2d')
of_type('Resize', 'upsample_nearest1d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d interpolate')
of_type('DepthToSpace', 'pixel_shuffle')
of_type('SpaceToDepth', 'pixel_unshuffle')
of_type('Trilu', 'tril triu')
of_type('OneHot', 'one_hot')
of_type('Cast', 'to _to_copy type_as')
of_type('Reshape', 'view reshape _unsafe_view flatten unflatten view_as reshape_as _reshape_alias')
of_type('Unsqueeze', 'unsqueeze')
of_type('Squeeze', 'squeeze')
of_type('Identity', 'contiguous clone alias detach detach_ lift_fresh_copy lift_fresh _assert_tensor_metadata')
of_type('Constant', 'full zeros ones empty scalar_tensor arange linspace full_like zeros_like ones_like new_zeros '
  .. 'new_ones new_full empty_like rand randn rand_like randn_like eye')

-- Arguments that are weights, by operator; other tensors are data.
local weights = { embedding = 'weight' }

--- Returns the type of an operator (without overload: 'conv2d'), or nil if it is unknown.
function operators.type(operator) return types[operator] end

--- Returns whether an operator returns a view of its first input. A view of a weight counts as the weight.
function operators.is_view(operator)
  local type = types[operator]
  return type == 'Transpose' or type == 'Reshape' or type == 'Unsqueeze' or type == 'Squeeze'
    or type == 'Identity' and operator ~= 'clone'
end

--- Returns whether an argument is a moving statistic (no trainable weight), by its name.
function operators.is_statistic(argument) return argument == 'running_mean' or argument == 'running_var' end

--- Returns the order of inputs for cost rules: names of the first arguments, or nil for the given order.
function operators.order(operator)
  if operator == 'addmm' then return { 'mat1', 'mat2', 'self' } end
  if operator == 'baddbmm' then return { 'batch1', 'batch2', 'self' } end
  if weights[operator] then return { 'weight', 'indices' } end
end

local function product(list, from)
  local total = 1
  for i = from or 1, #list do total = total * list[i] end
  return total
end

--- Returns one integer per axis of the window; PyTorch repeats a single one.
local function window(value, axes)
  if type(value) == 'number' then value = { value } end
  if type(value) ~= 'table' or #value == 0 then return nil end
  return util.listed(axes, function(i) return value[i] or value[1] end)
end

local function of_convolution(node, weight)
  local attributes = { group = node.values.groups or 1 }
  if weight and #weight.shape > 2 then
    attributes.kernel_shape = { unpack(weight.shape, 3) }
    attributes.strides = window(node.values.stride, #weight.shape - 2)
  end
  return attributes
end

local function of_pool(node, input)
  local axes = input and math.max(1, #input.shape - 2) or 2
  local kernel = window(node.values.kernel_size, axes)
  return { kernel_shape = kernel, strides = window(node.values.stride, axes) or kernel }
end

--- Adaptive average pooling with the given output size; global pooling for size 1.
local function of_adaptive_pool(input, output)
  local axes = {}
  for i = 3, #input.shape do axes[#axes + 1] = math.ceil(input.shape[i] / math.max(1, output.shape[i] or 1)) end
  if product(output.shape, 3) == 1 then return 'GlobalAveragePool', {} end
  return 'AveragePool', { kernel_shape = axes, strides = axes }
end

--- Returns the FLOP of a recurrent layer: every position is multiplied by every weight matrix.
local function of_recurrence(input, parameters)
  local width = input.shape[#input.shape]
  local positions, matrices = width and width > 0 and product(input.shape) / width or 0, 0
  for _, parameter in ipairs(parameters) do
    if #parameter.shape == 2 then matrices = matrices + product(parameter.shape) end
  end
  return 2 * positions * matrices
end

local gates = { lstm_cell = 4, gru_cell = 3, rnn_tanh_cell = 1, rnn_relu_cell = 1 }

--- Returns the FLOP of one position of a recurrent cell, whose weights may be shared: every gate reads the input and
--- the state.
local function of_cell(input, state, count)
  local width, hidden = input.shape[#input.shape] or 1, state.shape[#state.shape] or 1
  return 2 * product(state.shape) * count * (width + hidden)
end

--- Returns the type and attributes of a node, and its FLOP if the type's cost rule cannot compute them. tensors: lists
--- `inputs`, `outputs` and `parameters` of tables with a shape.
function operators.describe(node, tensors)
  local type = types[node.operator] or node.operator
  local input, output = tensors.inputs[1], tensors.outputs[1]
  if type == 'Conv' or type == 'ConvTranspose' then
    if node.operator:find 'convolution$' and node.values.transposed then type = 'ConvTranspose' end
    return type, of_convolution(node, tensors.parameters[1])
  end
  if type == 'Gemm' and node.operator == 'linear' then return type, { transB = 1 } end
  if type == 'MaxPool' or type == 'AveragePool' then return type, of_pool(node, input) end
  if type == 'AdaptiveAveragePool' and input and output then return of_adaptive_pool(input, output) end
  if type == 'Einsum' then return type, { equation = node.values.equation } end
  if gates[node.operator] and input and output then return type, {}, of_cell(input, output, gates[node.operator]) end
  if type == 'LSTM' or type == 'GRU' or type == 'RNN' then
    return type, {}, input and of_recurrence(input, tensors.parameters) or 0
  end
  local draws = node.values.train == true or node.values.training == true
  if type == 'Dropout' and not draws then return 'Identity', {} end
  return type, {}
end

return operators
