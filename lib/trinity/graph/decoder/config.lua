-- Networks from a decoder's config.json (Hugging Face): trinity.model 'config.json'.

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
  help = 'Options of trinity.model for a config.json.',
  { 'batch_size', 'integer', 1, least = 1, most = 2 ^ 31, help = 'sequences per step' },
  { 'sequence', 'integer', least = 1, most = 2 ^ 24, otherwise = 'the longest, of at most 4,096',
    help = 'tokens per sequence' },
  { 'layers', 'integer', least = 1, most = 10000, otherwise = "the file's", help = 'number of layers' },
  { 'kernels', { 'onnx', 'megatron', 'flash' }, 'flash', help = 'which kernels are fused into one operator, and so '
    .. 'which activations are kept' },
  { 'dropout', 'number', least = 0, most = 1, otherwise = "the file's", help = 'dropout probability of all dropouts' },
})

--- Returns the names of the options, for messages and help.
config.options = declared

local dtypes = { float32 = 'float32', float16 = 'float16', bfloat16 = 'bfloat16',
  ['torch.float32'] = 'float32', ['torch.float16'] = 'float16', ['torch.bfloat16'] = 'bfloat16' }

--- Returns whether a JSON text may be a config.json, by names in its first part.
function config.is(text)
  local head = text:sub(1, 65536)
  return head:find('"model_type"%s*:') ~= nil or head:find('"architectures"%s*:') ~= nil
    or head:find('"num_hidden_layers"%s*:') ~= nil
end

local angles = util.set 'default linear dynamic yarn longrope llama3 su proportional'

--- Position scaling only changes rotation angles.
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
      f:warn("%s '%s' changes the rotation angles of queries and keys (RoPE), but no weight, FLOP or byte", name, kind)
    end
  end
end

--- Quantized weights are for inference, not for training.
local function check_quantisation(f)
  local of = f.values.quantization_config
  if of == nil then return end
  if type(of) ~= 'table' then f:fail("field 'quantization_config': expected an object, got %s", util.describe(of)) end
  local method = tostring(of.quant_method or of.quantization_method or 'an unnamed method')
  if method:lower():find('fp8', 1, true) then
    f:warn("quantization_config '%s' is about stored weights: training keeps them in 16 bits with a float32 copy; use "
      .. "dtype = 'float8' for matmuls in FP8", method)
  else
    f:warn("quantization_config '%s' is about weights stored for inference: the network is the one before "
      .. 'quantization, which is trained', method)
  end
end

--- Reads a config.json (text: distinguishes null from an absent field). Returns the description of the network and its
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
    f:fail('unknown model_type %s%s', util.unknown(kind, util.sorted_keys(families)),
      type(values.text_config) == 'table'
        and "; use its field 'text_config' as a config.json of its own" or '')
  end
  local about = families[kind](f)
  check_rope(f)
  check_quantisation(f)
  if about.top_k and about.top_k > about.experts then
    f:fail("field 'num_experts_per_tok': expected at most %d (the number of experts), got %d", about.experts,
      about.top_k)
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
    f:fail('expected a sequence of at most %d tokens (positions of the network), got %d', about.positions, sequence)
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

--- Returns the forward graph of a config.json, with graph.source, and its default training: Adam with float32 gradients
--- of 16-bit weights (mixed precision as in Megatron-LM); and the dtype: the given one, the file's, or `otherwise`
--- (bfloat16). given: options of trinity.DecoderOptions.
function config.load(path, given, dtype, otherwise)
  check.path('trinity.model', 1, 'name', path)
  local text = util.read_file(path)
  return made(path, text, json.decode(text, path), given, dtype, otherwise)
end

--- The same of a published network (trinity.graph.decoder.published).
function config.published(name, given, dtype, otherwise)
  return made(name, '', published[name].config, given, dtype, otherwise)
end

return config
