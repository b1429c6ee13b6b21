---@meta trinity
-- What editors know about trinity.layers: the vocabulary of model builders.
error 'this file is for editors'

---@class trinity.LayersModule
local layers = {}

--- Layers over a new graph called `name`. options.dtype: that of activations and weights.
---@param name string
---@param options? table<string, any>
---@return trinity.Layers
function layers.new(name, options) end

--- The entry of `choices` that an option names; refuses other names.
---@param model string
---@param option string
---@param value string
---@param choices table<string, any>
---@return any
function layers.choice(model, option, value, choices) end

---@class trinity.Layers
---@field builder trinity.Builder
---@field dtype string of activations and weights
local Layers = {}

--- An output of the network's dtype with this shape, as graph builders take it.
---@param shape integer[]
---@return trinity.TensorSpec
function Layers:output(shape) end

--- A weight of the network's dtype, as graph builders take it.
---@param name string
---@param shape integer[]
---@param trainable? boolean
---@return trinity.ParameterSpec
function Layers:weight(name, shape, trainable) end

--- Adds an operator and returns its outputs, of the network's dtype unless o.dtype names another:
--- { inputs = { tensors }, shapes = { one per output }, dtype =, attributes =, parameters = }.
---@param type string
---@param name string
---@param o table<string, any>
---@return trinity.Tensor ...
function Layers:operator(type, name, o) end

--- A source of data: an image batch, token numbers. No gradient flows into it.
---@param name string
---@param shape integer[]
---@param dtype? string
---@return trinity.Tensor
function Layers:input(name, shape, dtype) end

--- A tensor filled with one number; no gradient flows into it.
---@param name string
---@param value number
---@param shape integer[]
---@param dtype? string
---@return trinity.Tensor
function Layers:constant(name, value, shape, dtype) end

--- Weights that several layers read (tied embeddings, the cells of an LSTM): give the tensor to
--- them as o.weight.
---@param name string
---@param shape integer[]
---@return trinity.Tensor
function Layers:variable(name, shape) end

---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:relu(name, x, attributes) end

---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:sigmoid(name, x, attributes) end

---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:tanh(name, x, attributes) end

--- Attributes: approximate = 'tanh' for the approximation (default 'none').
---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:gelu(name, x, attributes) end

--- x sigmoid(x), also called SiLU.
---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:swish(name, x, attributes) end

--- Dropout; attributes: ratio.
---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:dropout(name, x, attributes) end

--- Softmax; attributes: axis (default the last).
---@param name string
---@param x trinity.Tensor
---@param attributes? table<string, any>
---@return trinity.Tensor
function Layers:softmax(name, x, attributes) end

--- Element-wise, with broadcasting.
---@param name string
---@param a trinity.Tensor
---@param b trinity.Tensor
---@return trinity.Tensor
function Layers:add(name, a, b) end

--- Element-wise, with broadcasting.
---@param name string
---@param a trinity.Tensor
---@param b trinity.Tensor
---@return trinity.Tensor
function Layers:mul(name, a, b) end

--- Element-wise, with broadcasting.
---@param name string
---@param a trinity.Tensor
---@param b trinity.Tensor
---@return trinity.Tensor
function Layers:div(name, a, b) end

--- Joins tensors along an axis, counted from 1 (default: the channels of images, 2).
---@param name string
---@param tensors trinity.Tensor[]
---@param axis? integer
---@return trinity.Tensor
function Layers:concat(name, tensors, axis) end

--- The same elements in another shape. One extent may be -1: what is left.
---@param name string
---@param x trinity.Tensor
---@param shape integer[]
---@return trinity.Tensor
function Layers:reshape(name, x, shape) end

--- Axes in another order, counted from 1: { 1, 3, 2 } swaps the last two of three.
---@param name string
---@param x trinity.Tensor
---@param order integer[]
---@return trinity.Tensor
function Layers:transpose(name, x, order) end

--- [N, ...] to [N, product].
---@param name string
---@param x trinity.Tensor
---@return trinity.Tensor
function Layers:flatten(name, x) end

--- Fully connected layer over the last axis: [..., K] to [..., features], one Gemm with its bias
--- (o.bias = false: without). o.weight: a variable [features, K] instead of weights of its own.
---@param name string
---@param x trinity.Tensor
---@param features integer
---@param o? { bias?: boolean, weight?: trinity.Tensor }
---@return trinity.Tensor
function Layers:linear(name, x, features, o) end

--- Product of matrices [..., M, K] and [..., K, N]; leading axes must be equal.
---@param name string
---@param a trinity.Tensor
---@param b trinity.Tensor
---@return trinity.Tensor
function Layers:matmul(name, a, b) end

--- Mean cross-entropy of logits [..., classes] against labels [...]: a scalar.
---@param name string
---@param logits trinity.Tensor
---@param labels trinity.Tensor
---@return trinity.Tensor
function Layers:softmax_cross_entropy(name, logits, labels) end

--- loss + weight * other, a loss beside the network's own: that of an auxiliary head.
---@param name string
---@param loss trinity.Tensor
---@param other trinity.Tensor
---@param weight number
---@return trinity.Tensor
function Layers:add_loss(name, loss, other, weight) end

--- Finishes and returns the graph.
---@return trinity.Graph
function Layers:build() end

--- Convolution. o: channels, kernel, stride, padding, bias, group. kernel and stride: a number or
--- { height, width }. padding: those, { top, left, bottom, right }, or 'same' (TensorFlow's SAME:
--- the image's extent over the stride, rounded up). group: channels are convolved in as many groups
--- apart from each other; weights are [channels, input channels / group, kh, kw].
---@param name string
---@param x trinity.Tensor
---@param o trinity.WindowOptions
---@return trinity.Tensor
function Layers:conv(name, x, o) end

--- Depthwise convolution: every channel with a kernel of its own. o: kernel, stride, padding, bias.
---@param name string
---@param x trinity.Tensor
---@param o trinity.WindowOptions
---@return trinity.Tensor
function Layers:depthwise_conv(name, x, o) end

--- Separable convolution: NAME/depthwise, then a 1 x 1 convolution NAME/pointwise. o: channels, and
--- kernel, stride, padding of the first.
---@param name string
---@param x trinity.Tensor
---@param o trinity.WindowOptions
---@return trinity.Tensor
function Layers:separable_conv(name, x, o) end

--- Batch normalisation over channels, with shift, scale (unless o.scale is false) and moving
--- statistics, which are no trainable parameters. o.fused = 0: without a fused kernel, which graphs
--- of framework granularity show.
---@param name string
---@param x trinity.Tensor
---@param o? { epsilon?: number, scale?: boolean, fused?: integer }
---@return trinity.Tensor
function Layers:batch_norm(name, x, o) end

--- Pooling. o: kernel, stride (default 1), padding as of convolutions; ceil = true: a last window
--- that is only partly inside counts too (Caffe's pooling). Means leave padding out of the count,
--- as TensorFlow's do, unless o.include_padding (PyTorch's default).
---@param name string
---@param x trinity.Tensor
---@param o trinity.WindowOptions
---@return trinity.Tensor
function Layers:max_pool(name, x, o) end

--- Pooling. o: kernel, stride (default 1), padding as of convolutions; ceil = true: a last window
--- that is only partly inside counts too (Caffe's pooling). Means leave padding out of the count,
--- as TensorFlow's do, unless o.include_padding (PyTorch's default).
---@param name string
---@param x trinity.Tensor
---@param o trinity.WindowOptions
---@return trinity.Tensor
function Layers:average_pool(name, x, o) end

---@param name string
---@param x trinity.Tensor
---@return trinity.Tensor
function Layers:global_average_pool(name, x) end

--- Local response normalisation over o.size channels (AlexNet, GoogLeNet); o: size, alpha, beta, bias.
---@param name string
---@param x trinity.Tensor
---@param o { size: integer, alpha?: number, beta?: number, bias?: number }
---@return trinity.Tensor
function Layers:lrn(name, x, o) end

--- Zeros around an image: sides = { top, left, bottom, right }.
---@param name string
---@param x trinity.Tensor
---@param sides integer[]
---@return trinity.Tensor
function Layers:zero_pad(name, x, sides) end

--- An image without so many rows and columns at its sides = { top, left, bottom, right }.
---@param name string
---@param x trinity.Tensor
---@param sides integer[]
---@return trinity.Tensor
function Layers:crop(name, x, sides) end

--- Rows of x [rows, ...] by number: numbers [...] to [..., the rest of x's shape].
---@param name string
---@param x trinity.Tensor
---@param numbers trinity.Tensor
---@return trinity.Tensor
function Layers:gather(name, x, numbers) end

--- Rows of a table by number: [...] to [..., features], from weights [rows, features]. o.weight: a
--- variable instead of weights of its own.
---@param name string
---@param numbers trinity.Tensor
---@param o { rows?: integer, features?: integer, weight?: trinity.Tensor }
---@return trinity.Tensor
function Layers:embedding(name, numbers, o) end

--- Layer normalisation over the last axis, with scale and shift. o.epsilon: 1e-5.
---@param name string
---@param x trinity.Tensor
---@param o? { epsilon?: number }
---@return trinity.Tensor
function Layers:layer_norm(name, x, o) end

--- Root-mean-square normalisation over the last axis, with a scale. o.epsilon: 1e-5.
---@param name string
---@param x trinity.Tensor
---@param o? { epsilon?: number }
---@return trinity.Tensor
function Layers:rms_norm(name, x, o) end

--- Cuts an axis into parts of these sizes; returns a list of tensors.
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@param sizes integer[]
---@return trinity.Tensor[]
function Layers:split(name, x, axis, sizes) end

--- Cuts an axis into its elements and drops it: [N, T, H] along 2 to a list of T tensors [N, H]
--- (keepdims as of ONNX's SplitToSequence).
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@return trinity.Tensor[]
function Layers:unstack(name, x, axis) end

--- Joins equal tensors along a new axis: T tensors [N, H] along 2 to [N, T, H] (new_axis as of ONNX's
--- ConcatFromSequence).
---@param name string
---@param tensors trinity.Tensor[]
---@param axis integer
---@return trinity.Tensor
function Layers:stack(name, tensors, axis) end

--- `count` elements of an axis from element `first` on.
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@param first integer
---@param count integer
---@return trinity.Tensor
function Layers:slice(name, x, axis, first, count) end

--- The same elements again along the axes of extent 1 that `shape` makes longer.
---@param name string
---@param x trinity.Tensor
---@param shape integer[]
---@return trinity.Tensor
function Layers:expand(name, x, shape) end

--- The k largest of the last axis, falling, and where they stand (no gradient flows into that).
---@param name string
---@param x trinity.Tensor
---@param k integer
---@return trinity.Tensor values
---@return trinity.Tensor numbers
function Layers:top_k(name, x, k) end

--- Ones where a number stands, zeros elsewhere, along a new axis of `depth` elements.
---@param name string
---@param numbers trinity.Tensor
---@param depth integer
---@param axis integer
---@return trinity.Tensor
function Layers:one_hot(name, numbers, depth, axis) end

--- Adds rows to those of x [rows, ...] with these numbers.
---@param name string
---@param x trinity.Tensor
---@param numbers trinity.Tensor
---@param rows trinity.Tensor
---@return trinity.Tensor
function Layers:scatter_add(name, x, numbers, rows) end

--- Reductions of one axis to a single element.
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@return trinity.Tensor
function Layers:reduce_sum(name, x, axis) end

--- Reductions of one axis to a single element.
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@return trinity.Tensor
function Layers:reduce_mean(name, x, axis) end

--- Reductions of one axis to a single element.
---@param name string
---@param x trinity.Tensor
---@param axis integer
---@return trinity.Tensor
function Layers:reduce_l2(name, x, axis) end

--- Element-wise over any number of tensors of one shape.
---@param name string
---@param tensors trinity.Tensor[]
---@return trinity.Tensor
function Layers:sum(name, tensors) end

--- Element-wise over any number of tensors of one shape.
---@param name string
---@param tensors trinity.Tensor[]
---@return trinity.Tensor
function Layers:mean(name, tensors) end

--- One step of an LSTM: x [N, I], h and c [N, H] to the next h and c. o.weight: a variable
--- [I + H, 4 H], o.bias: a variable [4 H], shared by the steps (TensorFlow's BasicLSTMCell).
---@param name string
---@param x trinity.Tensor
---@param h trinity.Tensor
---@param c trinity.Tensor
---@param o { weight: trinity.Tensor, bias: trinity.Tensor }
---@return trinity.Tensor h
---@return trinity.Tensor c
function Layers:lstm_cell(name, x, h, c, o) end

--- An LSTM layer unrolled over time: a function that takes the input [N, o.inputs] of the next step
--- and returns the states h and c after it, one operator a call. o.hidden; o.h, o.c: the states
--- [N, hidden] before the first step (default zero, then o.batch_size).
---@param name string
---@param o table<string, any>
---@return fun(x: trinity.Tensor): trinity.Tensor, trinity.Tensor
function Layers:lstm_steps(name, o) end

--- A whole LSTM layer as one operator, with ONNX's weights (both biases): [N, T, I] to the outputs
--- [N, T, D, H] and the last h and c [N, D, H]; D is 2 if o.bidirectional, else 1. o.hidden = H;
--- o.time_major: [T, N, I] to [T, D, N, H] and [D, N, H].
---@param name string
---@param x trinity.Tensor
---@param o? table<string, any>
---@return trinity.Tensor outputs
---@return trinity.Tensor h
---@return trinity.Tensor c
function Layers:lstm(name, x, o) end

--- Dropout where the ratio is above zero.
---@param name string
---@param x trinity.Tensor
---@param ratio? number
---@return trinity.Tensor
function Layers:drop(name, x, ratio) end

--- Scaled dot-product attention in its ONNX parts: queries [N, T, H], keys and values [N, S, K H / heads]
--- to [N, T, H]. Queries are scaled before the product, which is less than scaling its result. o: heads,
--- key_heads (K; default heads), mask (added to the scores [N, K, heads / K T, S]), dropout (of the
--- probabilities), causal (each position sees those before it: an attribute of the Softmax; all products
--- are computed).
---@param name string
---@param q trinity.Tensor
---@param k trinity.Tensor
---@param v trinity.Tensor
---@param o trinity.AttentionOptions
---@return trinity.Tensor
function Layers:attention(name, q, k, v, o) end

--- Attention of x [N, T, H] to itself between its projections. o: as for attention; bias (default
--- true), fused: one product for queries, keys and values; rotary = { cos, sin }: tables [T, width / 2]
--- by which queries and keys are turned (Su et al. 2021).
---@param name string
---@param x trinity.Tensor
---@param o trinity.AttentionOptions
---@return trinity.Tensor
function Layers:self_attention(name, x, o) end

--- Turns the heads of x [N, T, H] by angles that grow with the position: tables = { cos, sin }.
---@param name string
---@param x trinity.Tensor
---@param tables trinity.Tensor[]
---@param heads integer
---@return trinity.Tensor
function Layers:rotary(name, x, tables, heads) end

--- Two linear layers with a GELU between them. o: feed_forward (width between), approximate.
---@param name string
---@param x trinity.Tensor
---@param o trinity.AttentionOptions
---@return trinity.Tensor
function Layers:feed_forward(name, x, o) end

--- A block of a transformer: self-attention and a feed-forward network, each with a residual
--- connection. o: as for self_attention and feed_forward; norm_first: layers are normalised before
--- them (GPT-2, ViT) instead of after the sum (BERT); epsilon; dropout: of shares and of both results.
---@param name string
---@param x trinity.Tensor
---@param o trinity.AttentionOptions
---@return trinity.Tensor
function Layers:transformer_block(name, x, o) end

--- Attention of one step after the other to memory [N, S, W]: a function that takes the next query
--- [N, units] and returns the context [N, W]. Additive and normalised (Bahdanau et al. 2015; Salimans
--- and Kingma 2016): scores g v / |v| . tanh(keys + query + b), as GNMT has it.
---@param name string
---@param memory trinity.Tensor
---@param units integer
---@return fun(query: trinity.Tensor): trinity.Tensor
function Layers:additive_attention(name, memory, units) end

--- The same with scores query . (W memory): Luong et al. 2015, 'general'.
---@param name string
---@param memory trinity.Tensor
---@param units integer
---@return fun(query: trinity.Tensor): trinity.Tensor
function Layers:multiplicative_attention(name, memory, units) end

--- Of attention and the blocks around it; see the methods for which they take.
---@class trinity.AttentionOptions
---@field heads integer
---@field key_heads? integer heads of keys and values (default heads)
---@field mask? trinity.Tensor added to the scores
---@field dropout? number
---@field causal? boolean
---@field bias? boolean of the projections (default true)
---@field fused? boolean one product for queries, keys and values
---@field rotary? trinity.Tensor[] tables of cosines and sines
---@field feed_forward? integer width between the two linear layers
---@field approximate? string of the GELU
---@field norm_first? boolean normalise before the sublayers
---@field epsilon? number of the normalisations
