---@meta _
-- trinity.tensor and trinity.nn. Dimensions, indices and categories count from 1, dimensions also from -1, the last.
-- See trinity.lua.
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
---@since 0.1.0
---@field new fun(data: any, options?: trinity.TensorOptions): trinity.TorchTensor From nested lists of numbers (or booleans), a number, or an int32 or double array, copied. Example: `trinity.tensor.new { { 1, 2 }, { 3, 4 } }`
---@field zeros fun(shape: integer|integer[], options?: trinity.TensorOptions): trinity.TorchTensor Filled with 0. Example: `trinity.tensor.zeros { 2, 3 }`
---@field ones fun(shape: integer|integer[], options?: trinity.TensorOptions): trinity.TorchTensor Filled with 1. Example: `trinity.tensor.ones { 2, 3 }`
---@field full fun(shape: integer|integer[], value: number|boolean, options?: trinity.TensorOptions): trinity.TorchTensor Filled with a value. Example: `trinity.tensor.full({ 2 }, 7)`
---@field arange fun(first: number, last: number, step?: number, options?: trinity.TensorOptions): trinity.TorchTensor first, first + step, ... up to last, which is included. Example: `trinity.tensor.arange(1, 4)`
---@field eye fun(n: integer, options?: trinity.TensorOptions): trinity.TorchTensor The unit matrix. Example: `trinity.tensor.eye(3)`
---@field normal fun(shape: integer|integer[], stream: trinity.RandomStream, options?: trinity.TensorOptions): trinity.TorchTensor Of mean 0 and variance 1. Example: `trinity.tensor.normal({ 2, 3 }, stream)`
---@field cat fun(tensors: trinity.TorchTensor[], dimension?: integer): trinity.TorchTensor Concatenates along a dimension, by default the first. Example: `trinity.tensor.cat({ x, x }, 2)`
---@field stack fun(tensors: trinity.TorchTensor[], dimension?: integer): trinity.TorchTensor Side by side along a new dimension, by default the first. Example: `trinity.tensor.stack { x, x }`
---@field where fun(condition: trinity.TorchTensor, a: trinity.TorchTensor|number, b: trinity.TorchTensor|number): trinity.TorchTensor a where the condition (bool) holds, else b. Example: `trinity.tensor.where(x:gt(2), x, 0)`
---@field grad fun(y: trinity.TorchTensor, inputs: trinity.TorchTensor[], options?: trinity.GradOptions): trinity.TorchTensor[] Derivatives of y by inputs. Example: `trinity.tensor.grad(w:pow(2):sum(), { w })[1]`
---@field live_bytes fun(): number Bytes of all live tensors outside GPUs. Example: `trinity.tensor.live_bytes()`
local tensor = {}

--- Uniform in [low, high), by default [0, 1). Example: `trinity.tensor.uniform({ 2, 3 }, stream)`
---@param shape integer|integer[]
---@param stream trinity.RandomStream
---@param low? number
---@param high? number
---@param options? trinity.TensorOptions
---@return trinity.TorchTensor
function tensor.uniform(shape, stream, low, high, options) end

--- Samples a category for every row of logits (or log-probabilities) along the last dimension.
--- Example: `trinity.tensor.categorical(x:log_softmax(), stream)`
---@param logits trinity.TorchTensor
---@param stream trinity.RandomStream
---@return trinity.TorchTensor int64, from 1; the last dimension is gone
function tensor.categorical(logits, stream) end

--- Calls f(...) without recording for gradients. Example: `trinity.tensor.no_grad(function() return x:mul(2) end)`
---@param f function
---@param ... any
---@return any ... what f returns
function tensor.no_grad(f, ...) end

---@class trinity.TorchTensor
---@since 0.1.0
---@field size fun(self: trinity.TorchTensor, dimension?: integer): integer|integer[] All extents, or one. Example: `x:size(1)`
---@field dim fun(self: trinity.TorchTensor): integer Number of dimensions. Example: `x:dim()`
---@field numel fun(self: trinity.TorchTensor): integer Number of elements. Example: `x:numel()`
---@field item fun(self: trinity.TorchTensor): number|boolean The value of a tensor with one element. Example: `x:sum():item()`
---@field totable fun(self: trinity.TorchTensor): any Nested lists. Example: `x:totable()`
---@field clone fun(self: trinity.TorchTensor): trinity.TorchTensor A copy. Example: `x:clone()`
---@field detach fun(self: trinity.TorchTensor): trinity.TorchTensor The same elements, without what gradients need. Example: `x:detach()`
---@field contiguous fun(self: trinity.TorchTensor): trinity.TorchTensor The same elements in order of rows in memory. Example: `x:contiguous()`
---@field to fun(self: trinity.TorchTensor, options: trinity.TensorTarget): trinity.TorchTensor With another dtype, on another device. Example: `x:to { dtype = 'float64' }`
---@field close fun(self: trinity.TorchTensor) Frees the handle at once; safe to repeat. Example: `x:close()`
---@field add fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor Sum. Example: `x:add(2)`
---@field sub fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor Difference. Example: `x:sub(2)`
---@field mul fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor Product of elements. Example: `x:mul(2)`
---@field div fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor Ratio. Example: `x:div(2)`
---@field pow fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor Power. Example: `x:pow(2)`
---@field minimum fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor The smaller. Example: `x:minimum(2)`
---@field maximum fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor The larger. Example: `x:maximum(2)`
---@field eq fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: equal. Example: `x:eq(2)`
---@field ne fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: different. Example: `x:ne(2)`
---@field lt fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: less. Example: `x:lt(2)`
---@field le fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: less or equal. Example: `x:le(2)`
---@field gt fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: greater. Example: `x:gt(2)`
---@field ge fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): trinity.TorchTensor bool: greater or equal. Example: `x:ge(2)`
---@field neg fun(self: trinity.TorchTensor): trinity.TorchTensor Minus x. Example: `x:neg()`
---@field exp fun(self: trinity.TorchTensor): trinity.TorchTensor Exponential. Example: `x:exp()`
---@field log fun(self: trinity.TorchTensor): trinity.TorchTensor Natural logarithm. Example: `x:log()`
---@field sqrt fun(self: trinity.TorchTensor): trinity.TorchTensor Square root. Example: `x:sqrt()`
---@field abs fun(self: trinity.TorchTensor): trinity.TorchTensor Absolute value. Example: `x:abs()`
---@field tanh fun(self: trinity.TorchTensor): trinity.TorchTensor Hyperbolic tangent. Example: `x:tanh()`
---@field sigmoid fun(self: trinity.TorchTensor): trinity.TorchTensor 1 / (1 + exp(-x)). Example: `x:sigmoid()`
---@field relu fun(self: trinity.TorchTensor): trinity.TorchTensor max(x, 0). Example: `x:relu()`
---@field gelu fun(self: trinity.TorchTensor): trinity.TorchTensor x times the normal distribution at x. Example: `x:gelu()`
---@field silu fun(self: trinity.TorchTensor): trinity.TorchTensor x times the sigmoid of x. Example: `x:silu()`
---@field softplus fun(self: trinity.TorchTensor): trinity.TorchTensor log(1 + exp(x)). Example: `x:softplus()`
---@field log_sigmoid fun(self: trinity.TorchTensor): trinity.TorchTensor log(1 / (1 + exp(-x))). Example: `x:log_sigmoid()`
---@field sin fun(self: trinity.TorchTensor): trinity.TorchTensor Sine. Example: `x:sin()`
---@field cos fun(self: trinity.TorchTensor): trinity.TorchTensor Cosine. Example: `x:cos()`
---@field clamp fun(self: trinity.TorchTensor, low?: number, high?: number): trinity.TorchTensor Not below low, not above high; one may be left out. Example: `x:clamp(0, 3)`
---@field masked_fill fun(self: trinity.TorchTensor, mask: trinity.TorchTensor, value: number): trinity.TorchTensor With a value where a bool tensor holds. Example: `x:masked_fill(x:gt(2), 0)`
---@field fill_ fun(self: trinity.TorchTensor, value: number): itself: trinity.TorchTensor In place, not while gradients are recorded (see no_grad): every element becomes a value. Example: `x:fill_(2)`
---@field copy_ fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): itself: trinity.TorchTensor In place, as above: takes over values. Example: `x:copy_(x)`
---@field add_ fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): itself: trinity.TorchTensor In place, as above: adds. Example: `x:add_(2)`
---@field mul_ fun(self: trinity.TorchTensor, other: trinity.TorchTensor|number): itself: trinity.TorchTensor In place, as above: multiplies. Example: `x:mul_(2)`
---@field sum fun(self: trinity.TorchTensor, dimension?: integer|integer[], keep?: boolean): trinity.TorchTensor Sum of all elements or along dimensions, which stay with extent 1 if `keep`. Example: `x:sum()`
---@field prod fun(self: trinity.TorchTensor, dimension?: integer, keep?: boolean): trinity.TorchTensor Product of all elements or along a dimension. Example: `x:prod()`
---@field softmax fun(self: trinity.TorchTensor, dimension?: integer): trinity.TorchTensor exp(x) / sum(exp(x)) along a dimension, by default the last. Example: `x:softmax()`
---@field log_softmax fun(self: trinity.TorchTensor, dimension?: integer): trinity.TorchTensor x - log(sum(exp(x))) along a dimension, by default the last. Example: `x:log_softmax()`
---@field cumsum fun(self: trinity.TorchTensor, dimension?: integer): trinity.TorchTensor Running sum along a dimension, by default the last. Example: `x:cumsum()`
---@field matmul fun(self: trinity.TorchTensor, other: trinity.TorchTensor): trinity.TorchTensor Matmul; earlier dimensions broadcast. Example: `x:matmul(x)`
---@field bmm fun(self: trinity.TorchTensor, other: trinity.TorchTensor): trinity.TorchTensor Matmul of two batches [N x a x b], [N x b x c]. Example: `x:unsqueeze(1):bmm(x:unsqueeze(1))`
---@field transpose fun(self: trinity.TorchTensor, first?: integer, second?: integer): trinity.TorchTensor Exchanges two dimensions, by default the last two. Example: `x:transpose()`
---@field permute fun(self: trinity.TorchTensor, order: integer[]): trinity.TorchTensor Dimensions in another order. Example: `x:permute { 2, 1 }`
---@field reshape fun(self: trinity.TorchTensor, shape: integer|integer[]): trinity.TorchTensor The same elements in another shape; one extent may be -1. Example: `x:reshape { 4 }`
---@field flatten fun(self: trinity.TorchTensor): trinity.TorchTensor One dimension. Example: `x:flatten()`
---@field expand fun(self: trinity.TorchTensor, shape: integer|integer[]): trinity.TorchTensor Repeats dimensions of extent 1, without copies. Example: `x:unsqueeze(1):expand { 3, 2, 2 }`
---@field squeeze fun(self: trinity.TorchTensor, dimension?: integer): trinity.TorchTensor Without a dimension of extent 1, or without all such. Example: `x:squeeze()`
---@field unsqueeze fun(self: trinity.TorchTensor, dimension: integer): trinity.TorchTensor With a new dimension of extent 1. Example: `x:unsqueeze(1)`
---@field narrow fun(self: trinity.TorchTensor, dimension: integer, first: integer, count: integer): trinity.TorchTensor A view of `count` entries of a dimension. Example: `x:narrow(1, 1, 1)`
---@field select fun(self: trinity.TorchTensor, dimension: integer, index: integer): trinity.TorchTensor A view of one entry (-1: the last); the dimension is gone. Example: `x:select(1, 2)`
---@field index_select fun(self: trinity.TorchTensor, dimension: integer, index: trinity.TorchTensor|integer[]): trinity.TorchTensor Entries of a dimension, in any order. Example: `x:index_select(1, { 2, 1 })`
---@field gather fun(self: trinity.TorchTensor, dimension: integer, index: trinity.TorchTensor|integer[]): trinity.TorchTensor Elements whose place along the dimension `index` holds. Example: `x:gather(2, trinity.tensor.new({ { 1 }, { 2 } }, { dtype = 'int64' }))`
---@field chunk fun(self: trinity.TorchTensor, count: integer, dimension?: integer): trinity.TorchTensor[] In `count` parts along a dimension, by default the first. Example: `x:chunk(2)[1]`
---@field one_hot fun(self: trinity.TorchTensor, count: integer): float32: trinity.TorchTensor From categories, a new last dimension that is 1 at the category. Example: `trinity.tensor.new({ 1, 3 }, { dtype = "int64" }):one_hot(3)`
---@field tril fun(self: trinity.TorchTensor, diagonal?: integer): trinity.TorchTensor Zero above a diagonal of the last two dimensions. Example: `x:tril()`
---@field requires_grad_ fun(self: trinity.TorchTensor, on?: boolean): itself: trinity.TorchTensor Whether gradients are wanted (default true). Example: `x:requires_grad_()`
---@field zero_grad fun(self: trinity.TorchTensor) Forgets grad. Example: `x:zero_grad()`
local Tensor = {}

--- Mean of all elements or along dimensions, which stay with extent 1 if `keep`. Example: `x:mean()`
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:mean(dimension, keep) end

--- Variance by n - 1 of all elements or along dimensions, which stay with extent 1 if `keep`. Example: `x:var()`
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:var(dimension, keep) end

--- Square root of the variance of all elements or along dimensions, which stay with extent 1 if `keep`.
--- Example: `x:std()`
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:std(dimension, keep) end

--- Euclidean norm of all elements or along dimensions, which stay with extent 1 if `keep`. Example: `x:norm()`
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:norm(dimension, keep) end

--- log(sum(exp(x))) of all elements or along dimensions, which stay with extent 1 if `keep`. Example: `x:logsumexp()`
---@param dimension? integer|integer[]
---@param keep? boolean
---@return trinity.TorchTensor
function Tensor:logsumexp(dimension, keep) end

--- Largest of all elements, or along a dimension. Example: `x:max()`
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor? indices along the dimension
function Tensor:max(dimension, keep) end

--- Smallest of all elements, or along a dimension. Example: `x:min()`
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor? indices along the dimension
function Tensor:min(dimension, keep) end

--- Place of the largest element, of all (counted row by row) or along a dimension. Example: `x:argmax()`
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor int64
function Tensor:argmax(dimension, keep) end

--- Place of the smallest element, of all (counted row by row) or along a dimension. Example: `x:argmin()`
---@param dimension? integer
---@param keep? boolean
---@return trinity.TorchTensor int64
function Tensor:argmin(dimension, keep) end

--- Adds elements of `source` at the places that `index` holds.
--- Example: `x:scatter_add(2, trinity.tensor.new({ { 1, 2 }, { 2, 1 } }, { dtype = 'int64' }), x)`
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@param source trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:scatter_add(dimension, index, source) end

--- Adds entries of `source` to entries of a dimension. Example: `x:index_add(1, { 2, 1 }, x)`
---@param dimension integer
---@param index trinity.TorchTensor|integer[]
---@param source trinity.TorchTensor
---@return trinity.TorchTensor
function Tensor:index_add(dimension, index, source) end

--- In order along a dimension, by default the last. Example: `x:sort()`
---@param dimension? integer
---@param descending? boolean
---@return trinity.TorchTensor values
---@return trinity.TorchTensor indices
function Tensor:sort(dimension, descending) end

--- The k largest along a dimension, by default the last. Example: `local values, indices = x:topk(1)`
---@param k integer
---@param dimension? integer
---@return trinity.TorchTensor values
---@return trinity.TorchTensor indices
function Tensor:topk(k, dimension) end

--- Adds derivatives to the grad of every leaf; `gradient` weighs the elements, `retain` allows a second time.
--- Example: `w:pow(2):sum():backward()`
---@param gradient? trinity.TorchTensor
---@param retain? boolean
function Tensor:backward(gradient, retain) end

---@alias trinity.LossReduction 'mean'|'sum'|'none'

