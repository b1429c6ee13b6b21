-- config.json of Hugging Face's decoders as networks: trinity.model 'config.json'.

local check = require 'trinity.base.check'
local families = require 'trinity.graph.decoder.families'
local fields = require 'trinity.graph.decoder.fields'
local json = require 'trinity.base.json'
local network = require 'trinity.graph.decoder.network'
local options = require 'trinity.base.options'
local published = require 'trinity.graph.decoder.published'
local util = require 'trinity.base.util'

local config = {}

local declared = options.declare('trinity.DecoderOptions', { extends = require('trinity.graph.options').model,
  help = 'What trinity.model takes of a config.json.',
  { 'batch_size', 'integer', 1, least = 1, most = 2 ^ 31, help = 'sequences of a step' },
  { 'sequence', 'integer', least = 1, most = 2 ^ 24, otherwise = 'the longest, of at most 4,096',
    help = 'tokens of each' },
  { 'layers', 'integer', least = 1, most = 10000, otherwise = "the file's", help = 'of the network' },
  { 'kernels', { 'onnx', 'megatron', 'flash' }, 'flash', help = 'what is one operator, and so what is kept' },
  { 'dropout', 'number', least = 0, most = 1, otherwise = "the file's", help = 'ratio of all dropouts' },
})

--- Names of the options, for messages and help.
config.options = declared

local dtypes = { float32 = 'float32', float16 = 'float16', bfloat16 = 'bfloat16',
  ['torch.float32'] = 'float32', ['torch.float16'] = 'float16', ['torch.bfloat16'] = 'bfloat16' }

--- Whether a JSON text may be a config.json: names that its first part has.
function config.is(text)
  local head = text:sub(1, 65536)
  return head:find('"model_type"%s*:') ~= nil or head:find('"architectures"%s*:') ~= nil
    or head:find('"num_hidden_layers"%s*:') ~= nil
end

local angles = { default = true, linear = true, dynamic = true, yarn = true, longrope = true, llama3 = true, su = true,
  proportional = true }

--- What stretches positions changes angles alone.
local function check_rope(f)
  for _, name in ipairs { 'rope_scaling', 'rope_parameters' } do
    local rope = f.values[name]
    if rope ~= nil and type(rope) ~= 'table' then
      f:fail("field '%s': expected an object, got %s", name, util.describe(rope))
    end
    local kind = rope and (rope.rope_type or rope.type)
    if kind ~= nil and type(kind) ~= 'string' then
      f:fail("field '%s': expected a word as its type, got %s", name, util.describe(kind))
    end
    if kind and not angles[kind] then
      f:fail("field '%s': unknown type %s", name, util.unknown(kind, util.sorted_keys(angles)))
    end
    if kind and kind ~= 'default' then
      f:warn("%s '%s' changes the angles by which queries and keys are turned, and no weight, FLOP or byte", name, kind)
    end
  end
end

--- Quantised weights are read, not trained.
local function check_quantisation(f)
  local of = f.values.quantization_config
  if of == nil then return end
  if type(of) ~= 'table' then f:fail("field 'quantization_config': expected an object, got %s", util.describe(of)) end
  local method = tostring(of.quant_method or of.quantization_method or 'an unnamed method')
  if method:lower():find('fp8', 1, true) then
    f:warn("quantization_config '%s' is of weights that are stored: training keeps them in 16 bits with a float32 "
      .. "copy; dtype = 'float8' computes products in FP8", method)
  else
    f:warn("quantization_config '%s' is of weights that are stored for inference: the network is the one before it, "
      .. 'which is trained', method)
  end
end

--- What a config.json says (text: in which a null is told from what is absent): the network's description, and its
--- fields with warnings.
local function understand(path, text, values)
  if type(values) ~= 'table' then
    util.fail('%s: expected a JSON object, got %s', util.shortened(path), util.describe(values))
  end
  local f = fields.new(path, values, text)
  local kind = values.model_type
  if kind == nil then f:missing 'model_type' end
  if type(kind) ~= 'string' then f:fail("field 'model_type': expected a word, got %s", util.describe(kind)) end
  if not families[kind] then
    f:fail('no network of model_type %s%s', util.unknown(kind, util.sorted_keys(families)),
      type(values.text_config) == 'table'
        and "; its language model stands in 'text_config', which by itself may be one" or '')
  end
  local about = families[kind](f)
  check_rope(f)
  check_quantisation(f)
  if about.top_k and about.top_k > about.experts then
    f:fail('num_experts_per_tok %d is more than the %d experts', about.top_k, about.experts)
  end
  return about, f
end

local function run_of(about, f, given, dtype, otherwise)
  local owner = ('trinity.model: %s'):format(util.shortened(f.path))
  util.refuse_unknown(owner, given, declared.by_name)
  local o = declared:read(owner, 'option', 'options', given)
  local longest = f:integer('max_position_embeddings|n_positions', 4096, { quiet = true })
  local sequence = o.sequence or math.min(longest, 4096)
  if about.positions > 0 and sequence > about.positions then
    f:fail('a sequence of %d tokens needs as many positions, it has %d', sequence, about.positions)
  elseif sequence > longest then
    f:warn('a sequence of %d tokens is longer than max_position_embeddings = %d', sequence, longest)
  end
  about.layers, about.dropout = o.layers or about.layers, o.dropout or about.dropout
  return { batch_size = o.batch_size, sequence = sequence, kernels = o.kernels,
    dtype = dtype or f:word('dtype|torch_dtype', otherwise or 'bfloat16', dtypes) }
end

local function made(path, text, values, given, dtype, otherwise)
  local about, f = understand(path, text, values)
  local run = run_of(about, f, given, dtype, otherwise)
  local graph = network.build(about, run)
  graph.source = { format = ('Hugging Face config.json, %s'):format(about.name), whole_step = false,
    warnings = f.warnings, unknown_types = {} }
  local half = run.dtype ~= 'float32' and run.dtype ~= 'float64'
  return graph, { optimizer = 'adam', gradient_dtype = half and 'float32' or nil }, run.dtype
end

--- The forward graph of a config.json, with graph.source, and how it is trained where nothing is said: by Adam, with
--- float32 gradients of 16-bit weights (mixed precision as Megatron-LM has it).
---@param path string
---@param given table<string, any> options of trinity.DecoderOptions
---@param dtype? string otherwise the file's
---@param otherwise? string where the file says none: bfloat16
---@return trinity.Graph
---@return trinity.TrainingOptions
---@return string dtype
function config.load(path, given, dtype, otherwise)
  check.path('trinity.model', 1, 'name', path)
  local text = util.read_file(path)
  return made(path, text, json.decode(text, path), given, dtype, otherwise)
end

--- The same of a published network (trinity.graph.decoder.published).
---@param name string
---@param given table<string, any> options of trinity.DecoderOptions
---@param dtype? string otherwise `otherwise`
---@param otherwise? string bfloat16
---@return trinity.Graph
---@return trinity.TrainingOptions
---@return string dtype
function config.published(name, given, dtype, otherwise)
  return made(name, '', published[name].config, given, dtype, otherwise)
end

return config
