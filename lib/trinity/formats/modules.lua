-- Module names of networks in the libraries that run them: transformers 5.23.0 (Hugging Face,
-- src/transformers/models/KIND/modeling_KIND.py) and torchtitan (torchtitan/models/common/decoder.py). Other networks
-- have the paths of their file (attribute `module`, scopes of PyTorch's ONNX exporter), or else the names of operators
-- with dots.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

-- Names of modules:
--   library        string: 'transformers', 'torchtitan' or 'own'
--   block_class?   string: with transformers: class of a layer, which is never cut
--   before         string[]: modules before the layers
--   after          string[]: modules after the layers
--   plain          string[]: modules without weights that are on the device of the first layer
--   block          fun(layer: integer): string: the module of a layer, from 1
--   tied?          string[]: modules that share a weight

local modules = {}

-- Common names of decoders in transformers.
local function decoder(class, further)
  return util.merged({ library = 'transformers', block_class = class, before = { 'model.embed_tokens' },
    after = { 'model.norm', 'lm_head' }, plain = { 'model.rotary_emb' },
    block = function(layer) return ('model.layers.%d'):format(layer - 1) end }, further)
end

local families = {
  llama = decoder 'LlamaDecoderLayer',
  mistral = decoder 'MistralDecoderLayer',
  mixtral = decoder 'MixtralDecoderLayer',
  qwen2 = decoder 'Qwen2DecoderLayer',
  qwen3 = decoder 'Qwen3DecoderLayer',
  qwen3_moe = decoder 'Qwen3MoeDecoderLayer',
  deepseek_v2 = decoder 'DeepseekV2DecoderLayer',
  deepseek_v3 = decoder 'DeepseekV3DecoderLayer',
  phi3 = decoder 'Phi3DecoderLayer',
  gemma2 = decoder 'Gemma2DecoderLayer',
  gpt2 = decoder('GPT2Block', { before = { 'transformer.wte', 'transformer.wpe' },
    after = { 'transformer.ln_f', 'lm_head' }, plain = { 'transformer.drop' },
    block = function(layer) return ('transformer.h.%d'):format(layer - 1) end }),
  gpt_neox = decoder('GPTNeoXLayer', { before = { 'gpt_neox.embed_in' },
    after = { 'gpt_neox.final_layer_norm', 'lm_head' }, plain = { 'gpt_neox.emb_dropout', 'gpt_neox.rotary_emb' },
    block = function(layer) return ('gpt_neox.layers.%d'):format(layer - 1) end }),
}

local torchtitan = { library = 'torchtitan', before = { 'tok_embeddings' }, after = { 'norm', 'lm_head' }, plain = {},
  inner = {}, block = function(layer) return ('layers.%d'):format(layer - 1) end }

--- Returns the embedding operator and the logits operator, which a decoder of a config.json has.
local function is_decoder(outline)
  local seen = {}
  outline:each_operator(function(_, op) seen[op.name] = true end)
  return outline.stem == 'layer_' and seen.logits and seen.norm and (seen.embed or seen['embed/token'])
end

--- Returns whether the embeddings are tied.
function modules.is_tied(graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    if op.name == 'embedding' and op.type == 'Variable' then return true end
  end
  return false
end

-- Returns the model type of a decoder in transformers, or nil for other networks.
local function family_of(outline)
  local family = families[outline.graph.name]
  return family and is_decoder(outline) and family or nil
end

--- Returns the module of every forward operator that is no source, by number: from the file's paths or operator names.
function modules.paths(outline)
  local given, paths = core.module_paths(outline.graph.handle), {}
  outline:each_operator(function(i, op)
    paths[i] = given[i] ~= '' and given[i] or op.name:gsub('^/', ''):gsub('/', '.')
  end)
  return paths
end

-- Returns the prefix of a path up to the number of a layer: its block.
local function block_prefix(path, stem)
  local own = stem:gsub('^/', ''):gsub('/', '.')
  local at, to = path:find(own, 1, true)
  local number = at and path:match('^%d+', to + 1)
  return number and path:sub(1, to) .. number
end

-- Returns the first list item in a path: 'layers.0', 'encoder_layer_3'; or nil.
local function list_item(path)
  for at in (path .. '.'):gmatch '()%.' do
    if ('.' .. path:sub(1, at - 1)):find '[._]%d+$' then return path:sub(1, at - 1) end
  end
end

-- Calls body(path) for a module path and all its parents, innermost first.
local function each_outer(path, body)
  while path do
    body(path)
    path = path:match '^(.*)%.'
  end
end

-- Modules that add up several tables, such as BERT's embeddings, and contain no list of modules.
local function sums_of_tables(outline, given)
  local tables, adds, lists = {}, {}, {}
  outline:each_operator(function(i, op)
    local outer = given[i]:match '^(.*)%.'
    if op.type == 'Gather' and outer then tables[outer] = (tables[outer] or 0) + 1 end
    if op.type == 'Add' then adds[given[i]] = true end
    each_outer(list_item(given[i]), function(path) lists[path] = true end)
  end)
  return function(path)
    local found
    each_outer(path, function(module)
      if (tables[module] or 0) > 1 and adds[module] and not lists[module] then found = module end
    end)
    return found
  end
end

--- Returns the block of every forward operator in a block, by number: from the modules of a file, or else the repeated
--- layer of the network. Blocks contain an addition, around which a residual connection may lead.
function modules.blocks(outline)
  local given, blocks, adds = core.module_paths(outline.graph.handle), {}, {}
  local sum_of = sums_of_tables(outline, given)
  outline:each_operator(function(i, op)
    local layer = outline.layer_of[i]
    if given[i] ~= '' then
      blocks[i] = list_item(given[i]) or sum_of(given[i])
    elseif layer > 0 and layer <= outline.layers then
      blocks[i] = outline.stem .. layer
    end
    if blocks[i] and op.type == 'Add' and #op.inputs > 1 then adds[blocks[i]] = true end
  end)
  return util.listed(outline.graph.operators, function(i) return adds[blocks[i]] and blocks[i] or false end)
end

--- Calls body(parameter, i, weight) for every weight and buffer that a forward operator i has or reads, in order.
--- `weight` is the separate operator of a weight that several operators may read, or nil.
function modules.each_weight(outline, body)
  local parameter_of = {}
  local function read(source)
    if parameter_of[source] == nil then
      local producer = outline.graph:operator(source)
      parameter_of[source] = producer.type == 'Variable' and producer.parameters[1] or false
    end
    return parameter_of[source]
  end
  outline:each_operator(function(i, op)
    for _, parameter in ipairs(op.parameters) do body(parameter, i) end
    for _, input in ipairs(op.inputs) do
      local parameter = input.producer and read(input.producer)
      if parameter then body(parameter, i, input.producer) end
    end
  end)
end

--- Returns whether a network is a program exported by PyTorch, whose weights have the names of its state.
function modules.is_exported(outline)
  local found = false
  outline:each_operator(function(_, op) found = found or op.attributes.target ~= nil end)
  return found
end

local function add_once(list, seen, path)
  if not seen[path] then
    seen[path], list[#list + 1] = true, path
  end
end

-- Returns the names of a network that no library has.
local function own_names(outline)
  local self = { library = 'own', before = {}, after = {}, plain = {}, inner = {} }
  local blocks, seen, paths = {}, {}, modules.paths(outline)
  outline:each_operator(function(i)
    local layer = outline.layer_of[i]
    if layer > 0 and layer <= outline.layers then
      blocks[layer] = blocks[layer] or block_prefix(paths[i], outline.stem)
    else
      add_once(layer == 0 and self.before or self.after, seen, paths[i])
    end
  end)
  self.block = function(layer) return blocks[layer] or (outline.stem .. layer) end
  return self
end

--- Returns the module names of a network. library: 'torchtitan', or nil: transformers if it has the network, else its
--- own paths.
function modules.of(outline, library)
  local family = family_of(outline)
  if library == 'torchtitan' then return torchtitan end
  if not family then return own_names(outline) end
  return util.merged(family, { tied = modules.is_tied(outline.graph) and { family.before[1], family.after[2] } or nil })
end

--- Returns whether a network is a decoder with layers after one embedding table, as torchtitan's models.
function modules.is_decoder(outline) return is_decoder(outline) end

--- Returns the module of an operator of a decoder in transformers that is in no layer; nil if unknown (reductions, the
--- loss).
function modules.outside_layers(names, outline, i)
  local top = { embed = names.before[1], ['embed/token'] = names.before[1], ['embed/position'] = names.before[2],
    norm = names.after[1], logits = names.after[2] }
  return top[outline.graph:operator(i).name]
end

return modules
