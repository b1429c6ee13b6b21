---@meta _
-- trinity.tensor (LuaLS annotations); nothing runs it. Dimensions, indices and categories count from 1, dimensions
-- also from -1, the last.
error 'this file is for editors'

---@alias trinity.Dtype 'float32'|'float64'|'int64'|'bool'

---@class trinity.TensorOptions
---@field dtype? trinity.Dtype default 'float32', for data of arrays and booleans theirs
---@field device? string 'cpu' (default), 'cuda', 'cuda:0', 'cuda:1', ...
---@field requires_grad? boolean default false

---@class trinity.TensorTarget
---@field dtype? trinity.Dtype
---@field device? string

---@class trinity.GradOptions
---@field create_graph? boolean so that the result can be differentiated again; default false
---@field gradient? trinity.TorchTensor weights of the elements of y; needed unless y has one element

---@class trinity.TensorModule
local tensor = {}

--- From nested lists of numbers (or booleans), a number, or an int32 or double array, copied.
---@param data any
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.new(data, options) end

--- Filled with 0.
---@param shape integer|integer[]
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.zeros(shape, options) end

--- Filled with 1.
---@param shape integer|integer[]
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.ones(shape, options) end

--- Filled with a value.
---@param shape integer|integer[]
---@param value number|boolean
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.full(shape, value, options) end

--- first, first + step, ... up to last, which is included.
---@param first number
---@param last number
---@param step? number
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.arange(first, last, step, options) end

--- The unit matrix.
---@param n integer
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.eye(n, options) end

--- Uniform in [low, high), by default [0, 1).
---@param shape integer|integer[]
---@param stream trinity.RandomStream
---@param low? number
---@param high? number
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.uniform(shape, stream, low, high, options) end

--- Of mean 0 and variance 1.
---@param shape integer|integer[]
---@param stream trinity.RandomStream
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.normal(shape, stream, options) end

--- Draws a category for every row of logits (or log-probabilities) along the last dimension.
---@param logits trinity.TorchTensor
---@param stream trinity.RandomStream
---@return trinity.TorchTensor int64, from 1; the last dimension is gone
function tensor.categorical(logits, stream) end

--- One behind the other along a dimension, by default the first.
---@param tensors trinity.TorchTensor[]
---@param dimension? integer
---@return trinity.TorchTensor
function tensor.cat(tensors, dimension) end

--- Side by side along a new dimension, by default the first.
---@param tensors trinity.TorchTensor[]
---@param dimension? integer
---@return trinity.TorchTensor
function tensor.stack(tensors, dimension) end

--- a where the condition (bool) holds, else b.
---@param condition trinity.TorchTensor
---@param a trinity.TorchTensor|number
---@param b trinity.TorchTensor|number
---@return trinity.TorchTensor
function tensor.where(condition, a, b) end

--- Calls f(...) without recording for gradients.
---@param f function
---@param ... any
---@return any ... what f returns
function tensor.no_grad(f, ...) end

--- Derivatives of y by inputs.
---@param y trinity.TorchTensor
---@param inputs trinity.TorchTensor[]
---@param options? trinity.GradOptions
---@return trinity.TorchTensor[]
function tensor.grad(y, inputs, options) end

--- Bytes of all live tensors outside GPUs.
---@return number
function tensor.live_bytes() end

---@class trinity.TorchTensor
local Tensor = {}

--- All extents, or one.
---@param dimension? integer
---@return integer|integer[]
function Tensor:size(dimension) end

--- Number of dimensions.
---@return integer
function Tensor:dim() end

--- Number of elements.
---@return integer
function Tensor:numel() end

--- The value of a tensor with one element.
---@return number|boolean
function Tensor:item() end

--- Nested lists.
---@return any
function Tensor:totable() end

--- A copy.
---@return trinity.TorchTensor
function Tensor:clone() end

--- The same elements, without what gradients need.
---@return trinity.TorchTensor
function Tensor:detach() end

--- The same elements in order of rows in memory.
---@return trinity.TorchTensor
function Tensor:contiguous() end

--- With another dtype, on another device.
---@param options trinity.TensorTarget
---@return trinity.TorchTensor
function Tensor:to(options) end

--- Frees the handle at once; safe to repeat.
function Tensor:close() end

--- Sum.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:add(other) end

--- Difference.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:sub(other) end

--- Product of elements.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:mul(other) end

--- Quotient.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:div(other) end

--- Power.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:pow(other) end

--- The smaller.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:minimum(other) end

--- The larger.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:maximum(other) end

--- bool: equal.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:eq(other) end

--- bool: different.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:ne(other) end

--- bool: less.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:lt(other) end

--- bool: less or equal.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:le(other) end

--- bool: greater.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:gt(other) end

--- bool: greater or equal.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor
function Tensor:ge(other) end

--- Minus x.
---@return trinity.TorchTensor
function Tensor:neg() end

--- Exponential.
---@return trinity.TorchTensor
function Tensor:exp() end

--- Natural logarithm.
---@return trinity.TorchTensor
function Tensor:log() end

--- Square root.
---@return trinity.TorchTensor
function Tensor:sqrt() end

--- Absolute value.
---@return trinity.TorchTensor
function Tensor:abs() end

--- Hyperbolic tangent.
---@return trinity.TorchTensor
function Tensor:tanh() end

--- 1 / (1 + exp(-x)).
---@return trinity.TorchTensor
function Tensor:sigmoid() end

--- max(x, 0).
---@return trinity.TorchTensor
function Tensor:relu() end

--- x times the normal distribution at x.
---@return trinity.TorchTensor
function Tensor:gelu() end

--- Sine.
---@return trinity.TorchTensor
function Tensor:sin() end

--- Cosine.
---@return trinity.TorchTensor
function Tensor:cos() end

--- Not below low, not above high; one may be left out.
---@param low? number
---@param high? number
---@return trinity.TorchTensor
function Tensor:clamp(low, high) end

--- With a value where a bool tensor holds.
---@param mask trinity.TorchTensor
---@param value number
---@return trinity.TorchTensor
function Tensor:masked_fill(mask, value) end

--- In place, not while gradients are recorded (see no_grad): every element becomes a value.
---@param value number
---@return trinity.TorchTensor itself
function Tensor:fill_(value) end

--- In place, as above: takes over values.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor itself
function Tensor:copy_(other) end

--- In place, as above: adds.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor itself
function Tensor:add_(other) end

--- In place, as above: multiplies.
---@param other trinity.TorchTensor|number
---@return trinity.TorchTensor itself
function Tensor:mul_(other) end

--- Sum of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:sum(dimension, keep) end

--- Mean of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:mean(dimension, keep) end

--- Variance by n - 1 of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:var(dimension, keep) end

--- Square root of the variance of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:std(dimension, keep) end

--- Euclidean norm of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:norm(dimension, keep) end

--- log(sum(exp(x))) of all elements or along dimensions, which stay with extent 1 if `keep`.
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:logsumexp(dimension, keep) end

--- Product of all elements or along a dimension.
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:prod(dimension, keep) end

--- Largest of all elements, or along a dimension.
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor? indices along the dimension
function Tensor:max(dimension, keep) end

--- Smallest of all elements, or along a dimension.
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor? indices along the dimension
function Tensor:min(dimension, keep) end

--- Place of the largest element, of all (counted row by row) or along a dimension.
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor int64
function Tensor:argmax(dimension, keep) end

--- Place of the smallest element, of all (counted row by row) or along a dimension.
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor int64
function Tensor:argmin(dimension, keep) end

--- exp(x) / sum(exp(x)) along a dimension, by default the last.
---@param dimension? integer
---@return trinity.TorchTensor
function Tensor:softmax(dimension) end

--- x - log(sum(exp(x))) along a dimension, by default the last.
---@param dimension? integer
---@return trinity.TorchTensor
function Tensor:log_softmax(dimension) end

--- Running sum along a dimension, by default the last.
---@param dimension? integer
---@return trinity.TorchTensor
function Tensor:cumsum(dimension) end

--- Matrix product; earlier dimensions broadcast.
---@param other trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:matmul(other) end

--- Products of the matrices of two batches [N x a x b], [N x b x c].
---@param other trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:bmm(other) end

--- Exchanges two dimensions, by default those of a matrix.
---@param first? integer
---@param second? integer
---@return trinity.TorchTensor
function Tensor:transpose(first, second) end

--- Dimensions in another order.
---@param order integer[]
---@return trinity.TorchTensor
function Tensor:permute(order) end

--- The same elements in another shape; one extent may be -1.
---@param shape integer|integer[]
---@return trinity.TorchTensor
function Tensor:reshape(shape) end

--- One dimension.
---@return trinity.TorchTensor
function Tensor:flatten() end

--- Repeats dimensions of extent 1, without copies.
---@param shape integer|integer[]
---@return trinity.TorchTensor
function Tensor:expand(shape) end

--- Without a dimension of extent 1, or without all such.
---@param dimension? integer
---@return trinity.TorchTensor
function Tensor:squeeze(dimension) end

--- With a new dimension of extent 1.
---@param dimension integer
---@return trinity.TorchTensor
function Tensor:unsqueeze(dimension) end

--- A view of `count` entries of a dimension.
---@param dimension integer
---@param first integer
---@param count integer
---@return trinity.TorchTensor
function Tensor:narrow(dimension, first, count) end

--- A view of one entry (-1: the last); the dimension is gone.
---@param dimension integer
---@param index integer
---@return trinity.TorchTensor
function Tensor:select(dimension, index) end

--- Entries of a dimension, in any order.
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@return trinity.TorchTensor
function Tensor:index_select(dimension, index) end

--- Elements whose place along the dimension `index` holds.
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@return trinity.TorchTensor
function Tensor:gather(dimension, index) end

--- Adds elements of `source` at the places that `index` holds.
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@param source trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:scatter_add(dimension, index, source) end

--- Adds entries of `source` to entries of a dimension.
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@param source trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:index_add(dimension, index, source) end

--- In `count` parts along a dimension, by default the first.
---@param count integer
---@param dimension? integer
---@return trinity.TorchTensor[]
function Tensor:chunk(count, dimension) end

--- In order along a dimension, by default the last.
---@param dimension? integer
---@param descending? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor indices
function Tensor:sort(dimension, descending) end

--- The k largest along a dimension, by default the last.
---@param k integer
---@param dimension? integer
---@return trinity.TorchTensor values
---@return trinity.TorchTensor indices
function Tensor:topk(k, dimension) end

--- From categories, a new last dimension that is 1 at the category.
---@param count integer
---@return trinity.TorchTensor float32
function Tensor:one_hot(count) end

--- Zero above a diagonal of the last two dimensions.
---@param diagonal? integer
---@return trinity.TorchTensor
function Tensor:tril(diagonal) end

--- Adds derivatives to the grad of every leaf; `gradient` weighs the elements, `retain` allows a second time.
---@param gradient? trinity.TorchTensor
---@param retain? boolean
function Tensor:backward(gradient, retain) end

--- Whether gradients are wanted (default true).
---@param on? boolean
---@return trinity.TorchTensor itself
function Tensor:requires_grad_(on) end

--- Forgets grad.
function Tensor:zero_grad() end
