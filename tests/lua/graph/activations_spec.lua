-- Bytes that a training step keeps for its backward pass, and its FLOP, compared with what PyTorch keeps and counts of the same
-- networks: torch 2.13.0, transformers 5.23.0, in float32 and bfloat16, without dropout, GPT-2 with activation_function
-- 'gelu_pytorch_tanh'; figures of networks too large for this in torch._subclasses.FakeTensorMode:
--   model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype).train()
--   tokens, kept = torch.randint(0, config.vocab_size, (batch, sequence)), {}
--   given = {t.untyped_storage()._cdata for t in [tokens, *model.parameters(), *model.buffers()]}
--   def pack(t):
--       storage = t.untyped_storage()
--       if storage._cdata not in given: kept[storage._cdata] = storage
--       return t
--   with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
--       logits = model(input_ids=tokens, use_cache=False).logits.float()
--       torch.nn.functional.cross_entropy(logits.view(-1, config.vocab_size), tokens.view(-1))
--   print(sum(storage.nbytes() for storage in kept.values()))
--   with FlopCounterMode(display=False) as flops: model(input_ids=tokens).logits.float().sum().backward()
--   print(flops.get_total_flops())

local core = require 'trinity.core'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local path = temporary '.json'
local kernels_of = { eager = 'megatron', sdpa = 'flash' } -- attention of PyTorch, and kernels of a network here

local function gpt2(hidden, layers, heads, vocabulary, positions)
  return { model_type = 'gpt2', n_embd = hidden, n_layer = layers, n_head = heads, vocab_size = vocabulary,
    n_positions = positions }
end

local function llama(changes)
  return util.merged({ model_type = 'llama', hidden_size = 64, intermediate_size = 96, num_hidden_layers = 2,
    num_attention_heads = 4, num_key_value_heads = 2, vocab_size = 100, max_position_embeddings = 64 }, changes)
end

local mixtral = llama { model_type = 'mixtral', num_local_experts = 4, num_experts_per_tok = 2 }
local llama_1b = llama { hidden_size = 2048, intermediate_size = 8192, num_hidden_layers = 16,
  num_attention_heads = 32, num_key_value_heads = 8, vocab_size = 128256, head_dim = 64, tie_word_embeddings = true,
  max_position_embeddings = 131072 }

local function network(config, options)
  core.write_file(path, trinity.files.json.encode(config))
  return trinity.model(path, util.merged({ dropout = 0 }, options))
end

local function kept_here(case)
  local graph = network(case.config, { batch_size = case.batch, sequence = case.sequence, dtype = case.dtype,
    kernels = kernels_of[case.attention] })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'dgx_a100' }
  return problem:strategy({ mesh = {} }):breakdown().stages[1].activation_bytes
end

--- Bytes that PyTorch keeps of GPT-2 in addition: mean and standard deviation of every LayerNorm's rows, the positions that
--- it looks up, and the loss in float32.
local function beside_gpt2(case)
  local c, rows = case.config, case.batch * case.sequence
  local bytes = case.dtype == 'float32' and 4 or 2
  return (2 * c.n_layer + 1) * 2 * bytes * rows + 8 * case.sequence + 4 - bytes
end

--- Bytes of operations that are several operators in Python and one kernel here: silu(gate) in addition to
--- gate, up and gate * up, for the rows of a layer's experts.
local function silu(c, rows, bytes) return bytes * rows * c.intermediate_size end

--- Bytes of experts: a token's rows before they are weighted (Megatron-LM weights them before the second matmul),
--- five lists of rows (their experts, order, order back, where experts begin), and the router in float32.
local function experts(c, tokens, bytes)
  local rows = tokens * c.num_experts_per_tok
  local lists = 4 * 8 * rows + 4 * c.num_local_experts
  local router = (4 - bytes) * (tokens * c.num_local_experts + tokens + 2 * rows)
  return bytes * rows * c.hidden_size + lists + router
end

--- The same of transformers' Llama and Mixtral: of every RMSNorm's rows in float32 what is multiplied by weights (in
--- bfloat16 also the copy that it is made of) and 1 / root mean square; silu; angles of rotary embeddings; in eager
--- attention keys and values repeated for every head, and scores' softmax in float32 after the one in bfloat16.
local function beside_llama(case)
  local c, tokens = case.config, case.batch * case.sequence
  local bytes, width = case.dtype == 'float32' and 4 or 2, c.head_dim or c.hidden_size / c.num_attention_heads
  local layer = silu(c, tokens * (c.num_experts_per_tok or 1), bytes)
  if c.num_local_experts then layer = layer + experts(c, tokens, bytes) end
  if case.attention == 'eager' then
    layer = layer + 2 * bytes * tokens * (c.num_attention_heads - c.num_key_value_heads) * width
    if bytes == 2 then layer = layer + 4 * case.batch * c.num_attention_heads * case.sequence ^ 2 end
  end
  return (2 * c.num_hidden_layers + 1) * 4 * tokens * (c.hidden_size + 1) + 2 * bytes * case.sequence * width
    + c.num_hidden_layers * layer + 4 - bytes
end

describe('what a training step keeps', function()
  --- PyTorch's bytes by attention and type, of 2 sequences of 16 tokens and of 3 of 24.
  local function expect_all(config, beside, figures)
    for attention, by_type in trinity.system.sorted_pairs(figures) do
      for dtype, bytes in trinity.system.sorted_pairs(by_type) do
        for i, size in ipairs { { 2, 16 }, { 3, 24 } } do
          local case = { config = config, attention = attention, dtype = dtype, batch = size[1], sequence = size[2] }
          expect(('%s %s %d'):format(attention, dtype, kept_here(case) + beside(case))):equals(
            ('%s %s %d'):format(attention, dtype, bytes[i]))
        end
      end
    end
  end
  it('of GPT-2 is what PyTorch keeps, but for statistics of norms', function()
    expect_all(gpt2(64, 2, 4, 100, 64), beside_gpt2, {
      eager = { float32 = { 309124, 713860 }, bfloat16 = { 161028, 371428 } },
      sdpa = { float32 = { 293764, 660868 }, bfloat16 = { 153860, 346084 } } })
  end)
  it('of a Llama is what PyTorch keeps, but for what Python does in several operators', function()
    expect_all(llama(), beside_llama, {
      eager = { float32 = { 318596, 733732 }, bfloat16 = { 202884, 483364 } },
      sdpa = { float32 = { 286852, 643876 }, bfloat16 = { 171140, 384292 } } })
  end)
  it('of a mixture of experts is what PyTorch keeps, but for that, lists of rows and the weighting of experts', function()
    expect_all(mixtral, beside_llama, {
      eager = { float32 = { 488868, 1116804 }, bfloat16 = { 291236, 682116 } },
      sdpa = { float32 = { 457124, 1026948 }, bfloat16 = { 259492, 583044 } } })
  end)
  it('of GPT-2 with 124 M and a Llama with 1.2 B weights, too', function()
    local function expect_large(config, beside, figures)
      for dtype, bytes in trinity.system.sorted_pairs(figures) do
        local case = { config = config, attention = 'eager', dtype = dtype, batch = 1, sequence = 1024 }
        expect(kept_here(case) + beside(case)):equals(bytes)
      end
    end
    expect_large(gpt2(768, 12, 12, 50257, 1024), beside_gpt2, { float32 = 1420316676, bfloat16 = 813088772 })
    expect_large(llama_1b, beside_llama, { float32 = 6188306436, bfloat16 = 5642784772 })
  end)
end)

describe('FLOP of a training step', function()
  it('in matmuls is the number that PyTorch counts, for 124 M and 1.2 B weights', function()
    local function products(config)
      local graph, sum = network(config, { batch_size = 1, sequence = 1024, kernels = 'onnx' }), 0
      for i = 1, graph.operators do
        local op = graph:operator(i)
        local type = op.type:gsub('Grad$', '')
        if type == 'Gemm' or type == 'MatMul' then sum = sum + op.flops end
      end
      return sum
    end
    expect(products(gpt2(768, 12, 12, 50257, 1024))):equals(874944921600)
    expect(products(llama_1b)):equals(8004745297920)
  end)
end)
