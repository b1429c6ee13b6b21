-- Layers without recurrent state. trinity.nn describes them.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'
local module = require 'trinity.nn.module'

local operations = require 'trinity.nn.operations'
local layers = {}

local max_size = 2 ^ 31

--- Common options of all layers.
layers.declared = options_of.declare('trinity.LayerOptions', { help = 'Options of every layer.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, late = true,
    help = 'random seed of the initial weights, unless the layer becomes part of a network with a seed' },
  { 'name', 'string', otherwise = "the layer's type", help = 'name of its random streams' },
})

--- Returns a required width or count for options.declare.
function layers.size(name, help)
  return { name, 'integer', least = 1, most = max_size, needed = true, help = help }
end

local size = layers.size

--- Returns a parameter: a tensor of zeros that requires gradients.
local function parameter(shape) return tensor.zeros(shape, { requires_grad = true }) end

--- Fills a matrix [outputs, inputs] with uniform numbers within sqrt(6 / (outputs + inputs)), from a stream.
local function glorot(weight, stream)
  local limit = math.sqrt(6 / (weight:size(1) + weight:size(2)))
  tensor.no_grad(weight.copy_, weight, tensor.uniform(weight:size(), stream, -limit, limit))
end

local function fill(weight, value) tensor.no_grad(weight.fill_, weight, value) end

layers.parameter, layers.glorot, layers.fill = parameter, glorot, fill

local linear_options = options_of.declare('trinity.LinearOptions', { extends = layers.declared,
  help = 'Options of nn.linear and nn.graph_convolution.',
  size('inputs', 'width of what comes in'), size('outputs', 'width of what goes out'),
  { 'bias', 'boolean', true, help = 'add a bias' },
})
local linear = module.class('linear', linear_options)
layers.linear = linear

local function build_linear(self, options)
  self.inputs, self.outputs = options.inputs, options.outputs
  self.weight = parameter { self.outputs, self.inputs }
  self.bias = options.bias and parameter { self.outputs } or nil
end

function linear:build(options) build_linear(self, options) end

function linear:reset(stream_of)
  glorot(self.weight, stream_of 'weight')
  if self.bias then fill(self.bias, 0) end
end

function linear:forward(x) return operations.linear(x, self.weight, self.bias) end

function linear:describe()
  module.checked(self, 'describe')
  return ('%d -> %d%s'):format(self.inputs, self.outputs, self.bias and '' or ', no bias')
end

local embedding = module.class('embedding', options_of.declare('trinity.EmbeddingOptions', {
  extends = layers.declared, help = 'Options of nn.embedding.', size('count', 'rows'), size('size', 'width') }))
layers.embedding = embedding

function embedding:build(options)
  self.count, self.size = options.count, options.size
  self.weight = parameter { self.count, self.size }
end

function embedding:reset(stream_of) glorot(self.weight, stream_of 'weight') end

function embedding:forward(indices) return operations.embedding(indices, self.weight) end

function embedding:describe()
  module.checked(self, 'describe')
  return ('%d of %d'):format(self.count, self.size)
end

local attention = module.class('attention', options_of.declare('trinity.NetworkAttentionOptions', {
  extends = layers.declared, help = 'Options of nn.attention.', size('size', 'width'),
  { 'heads', 'integer', 1, least = 1, most = 4096, help = 'number of heads, a divisor of the width' } }))
layers.attention = attention

function attention:build(options)
  self.size, self.heads = options.size, options.heads
  if self.size % self.heads ~= 0 then
    util.fail("nn.attention: option 'heads': got %d, expected a divisor of size = %d", self.heads, self.size)
  end
  for _, name in ipairs { 'query', 'key', 'value', 'out' } do
    self[name] = linear { inputs = self.size, outputs = self.size }
  end
end

-- [N, T, size] to [N, heads, T, size / heads].
local function split(x, heads)
  return x:reshape { x:size(1), x:size(2), heads, x:size(3) / heads }:transpose(2, 3)
end

--- Scaled dot-product attention (Vaswani et al. 2017). Key and value [N, S, size] are by default the query and the key;
--- options.mask must allow at least one position per row.
function attention:forward(query, key, value, options)
  key = key or query
  value = value or key
  for i, x in ipairs { query, key, value } do
    if not tensor.is(x) or x:dim() ~= 3 or x:size(3) ~= self.size then
      check.wrong('nn.attention', i, ({ 'query', 'key', 'value' })[i], x, ('a tensor [N x T x %d]'):format(self.size))
    end
  end
  options = check.options('nn.attention', 4, 'options', options, { mask = 'userdata' })
  local q, k = split(self.query(query), self.heads), split(self.key(key), self.heads)
  local scores = q:matmul(k:transpose(3, 4)) * (1 / math.sqrt(self.size / self.heads))
  if options.mask then scores = tensor.where(options.mask, scores, -math.huge) end
  local context = scores:softmax(-1):matmul(split(self.value(value), self.heads))
  return self.out(context:transpose(2, 3):reshape { query:size(1), query:size(2), self.size })
end

function attention:describe()
  module.checked(self, 'describe')
  return ('%d, %d heads'):format(self.size, self.heads)
end

local graph_convolution = module.class('graph_convolution', linear_options)
layers.graph_convolution = graph_convolution

graph_convolution.reset = linear.reset
graph_convolution.describe = linear.describe

function graph_convolution:build(options) build_linear(self, options) end

--- Kipf and Welling 2017: x [nodes, inputs] to D^-1/2 (A + I) D^-1/2 x W + b, [nodes, outputs]. `edges`: result of
--- nn.graph_edges.
function graph_convolution:forward(x, edges)
  check.argument('nn.graph_convolution', 2, 'edges', edges, 'table')
  for _, name in ipairs { 'from', 'to', 'weight' } do
    if not tensor.is(edges[name]) then
      check.refuse('nn.graph_convolution', 2, 'edges', "field '%s': expected a tensor, got %s (see nn.graph_edges)",
        name, util.describe(edges[name]))
    end
  end
  local y = operations.linear(x, self.weight)
  local messages = y:index_select(1, edges.from) * edges.weight:unsqueeze(2):to { dtype = y.dtype, device = y.device }
  local sum = tensor.zeros(y:size(), { dtype = y.dtype, device = y.device }):index_add(1, edges.to, messages)
  return self.bias and sum + self.bias or sum
end

--- Returns edges for nn.graph_convolution: pairs { {from, to}, ... } of `nodes` nodes, in both directions and each
--- once, with self-loops; weight 1 / sqrt(degree of both). Example: `trinity.nn.normalised_edges(3, { { 1, 2 }, { 2, 3
--- } })`
---@param nodes integer
---@param pairs_list integer[][]
---@return trinity.GraphEdges
function layers.normalised_edges(nodes, pairs_list)
  check.integer('nn.normalised_edges', 1, 'nodes', nodes, 1, 2 ^ 31)
  check.argument('nn.normalised_edges', 2, 'pairs_list', pairs_list, 'table')
  local from, to, degree, seen = {}, {}, {}, {}
  local function add(a, b)
    local key = a * (nodes + 1) + b
    if seen[key] then return end
    seen[key] = true
    from[#from + 1], to[#to + 1] = a, b
    degree[b] = (degree[b] or 0) + 1
  end
  for i = 1, nodes do add(i, i) end
  for i, pair in ipairs(pairs_list) do
    for k = 1, 2 do
      local node = type(pair) == 'table' and pair[k]
      if type(node) ~= 'number' or node % 1 ~= 0 or node < 1 or node > nodes then
        check.refuse('nn.normalised_edges', 2, 'pairs_list', 'entry %d: expected two nodes from 1 to %d', i, nodes)
      end
    end
    add(pair[1], pair[2])
    add(pair[2], pair[1])
  end
  local weight = util.listed(#from, function(i) return 1 / math.sqrt(degree[from[i]] * degree[to[i]]) end)
  return { from = tensor.new(from, { dtype = 'int64' }), to = tensor.new(to, { dtype = 'int64' }),
    weight = tensor.new(weight) }
end

--- Returns the operators of a graph with edges for its tensors, for nn.graph_convolution. Example:
--- `trinity.nn.graph_edges(graph)`
---@param graph trinity.Graph
---@return trinity.GraphEdges
function layers.graph_edges(graph)
  check.object('nn.graph_edges', 1, 'graph', graph, 'graph')
  local list, producer = {}, {}
  local operators = {}
  for i = 1, graph.operators do
    operators[i] = graph:operator(i)
    for _, output in ipairs(operators[i].outputs) do producer[output.name] = i end
  end
  for i = 1, graph.operators do
    for _, input in ipairs(operators[i].inputs) do
      if producer[input.name] then list[#list + 1] = { producer[input.name], i } end
    end
  end
  return layers.normalised_edges(graph.operators, list)
end

return layers
