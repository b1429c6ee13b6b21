-- The network of a decoder description, which config.json files and model 'decoder' are converted to
-- (trinity.graph.decoder.families, models/decoder.lua).
--
-- A description has name, layers, hidden, vocabulary, tied, norm ('rms' or 'layer'), epsilon, positions (rows of a
-- learned table; 0: none), dropout, parallel (both sublayers read the layer's input), post_norms (results of both
-- sublayers are normalized, too), final_softcap, attention (a function of the layer's number from 1 that returns
-- options of layers:self_attention or, with `kv_lora_rank`, of layers:latent_attention), feed_forward (a function that
-- returns options of layers:gated_feed_forward, of layers:mixture_of_experts (with `experts`) or, with `plain`, of
-- layers:feed_forward), qk_rope_head_dim (0: none), and further (number of tokens predicted beyond the next one; nil:
-- none).

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local network = {}

--- Returns whether dropouts keep masks (all kernels except ONNX's).
local function masked(run) return run.kernels ~= 'onnx' end

local function normalise(net, name, x, about)
  local o = { epsilon = about.epsilon }
  if about.norm == 'rms' then return net:rms_norm(name, x, o) end
  return net:layer_norm(name, x, o)
end

local function attend(net, name, x, about, run, i)
  local o = util.merged({ causal = true, epsilon = about.epsilon }, about.attention(i), { kernels = run.kernels,
    rotary = run.rotary })
  if o.kv_lora_rank then
    o.causal = nil
    return net:latent_attention(name, x, o)
  end
  o.dropout = about.dropout
  return net:self_attention(name, x, o)
end

local function feed(net, name, x, about, run, i)
  local o = util.merged(about.feed_forward(i), { kernels = run.kernels })
  if o.plain then
    o.plain = nil
    return net:feed_forward(name, x, o)
  end
  return o.experts and net:mixture_of_experts(name, x, o) or net:gated_feed_forward(name, x, o)
end

-- Adds one layer: attention and a feed-forward network, each with a residual connection.
local function add_layer(net, x, about, run, i, at)
  local function result(part, norm, layer, of)
    local y = layer(net, at .. part, normalise(net, at .. norm, of, about), about, run, i)
    if about.post_norms then y = normalise(net, at .. norm .. '_post', y, about) end
    return net:drop(at .. part .. '/output_dropout', y, about.dropout, masked(run))
  end
  if about.parallel then
    local both = net:add(at .. '/sum', result('/attention', '/norm_1', attend, x),
      result('/feed_forward', '/norm_2', feed, x))
    return net:add(at .. '/residual', x, both)
  end
  x = net:add(at .. '/attention/residual', x, result('/attention', '/norm_1', attend, x))
  return net:add(at .. '/feed_forward/residual', x, result('/feed_forward', '/norm_2', feed, x))
end

-- Adds the embeddings of tokens (and positions) [N, T, H]. Returns also the table if the logits share it.
local function embed(net, about, run)
  local shape = { run.batch_size, run.sequence }
  local tokens, table_of = net:input('tokens', shape, 'int64'), nil
  local o = { rows = about.vocabulary, features = about.hidden }
  if about.tied or (about.further or 0) > 0 then
    table_of = net:variable('embedding', { about.vocabulary, about.hidden })
    o = { weight = table_of }
  end
  local x = net:embedding(about.positions > 0 and 'embed/token' or 'embed', tokens, o)
  if about.positions > 0 then
    local places = net:input('positions', { 1, run.sequence }, 'int64')
    x = net:add('embed/sum', x, net:embedding('embed/position', places, { rows = about.positions,
      features = about.hidden }))
  end
  return net:drop('embed/dropout', x, about.dropout, masked(run)), table_of
end

-- Adds the loss of the logits of x. In half precision it is computed in float32, except with ONNX's kernels and with a
-- fused kernel that reads the logits directly.
local function loss_of(net, at, x, about, run, table_of)
  local logits = net:linear(at .. 'logits', x, about.vocabulary, { bias = false, weight = table_of })
  if about.final_softcap then logits = net:tanh(at .. 'logits/softcap', logits) end
  if run.kernels ~= 'onnx' and not run.fused_loss and (net.dtype == 'float16' or net.dtype == 'bfloat16') then
    logits = net:operator('Cast', at .. 'logits/float32', { inputs = { logits }, shapes = { logits.shape },
      dtype = 'float32' })
  end
  -- The losses of Megatron-LM and Transformer Engine write probabilities and gradients in place of the logits
  -- (core/tensor_parallel/cross_entropy.py; transformer_engine/common/triton/cross_entropy.py).
  return (net:operator('SoftmaxCrossEntropyLoss', at .. 'loss', { inputs = { logits, net:input(at .. 'labels',
    { run.batch_size, run.sequence }, 'int64') }, shapes = { { 1 } },
    attributes = run.kernels ~= 'onnx' and { in_place = 1 } or nil,
    workspace_bytes = (run.logit_bytes or 0) * run.batch_size * run.sequence * about.vocabulary }))
end

-- Adds losses of multi-token prediction (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, 2.2): a layer that reads
-- the previous hidden states and the next token's embedding, and logits with the shared weights.
local function add_further(net, loss, x, about, run, table_of, weight)
  for k = 1, about.further or 0 do
    local at = ('further_%d'):format(k)
    local next_token = net:embedding(at .. '/embed', net:input(at .. '/tokens', { run.batch_size, run.sequence },
      'int64'), { weight = table_of })
    local both = net:concat(at .. '/both', { normalise(net, at .. '/norm_embedding', next_token, about),
      normalise(net, at .. '/norm_input', x, about) }, 3)
    x = net:linear(at .. '/project', net:operand(at .. '/project/input', both), about.hidden, { bias = false })
    x = add_layer(net, x, about, run, about.layers, at)
    loss = net:add_loss(at .. '/sum', loss,
      loss_of(net, at .. '/', normalise(net, at .. '/norm', x, about), about, run, weight), 0.1)
  end
end

--- Returns the forward graph. run: batch_size, sequence, dtype, kernels, fused_loss (no copy of the logits in float32),
--- logit_bytes (see models/decoder.lua).
---  logit_bytes?: integer }
function network.build(about, run)
  local net = layers.new(about.name, { dtype = run.dtype })
  run = util.merged(run)
  local x, table_of = embed(net, about, run) -- tokens are the first input, whose first axis is the batch
  if about.qk_rope_head_dim > 0 then
    local angles = { run.sequence, about.qk_rope_head_dim / 2 }
    run.rotary = { net:input('rotary/cos', angles), net:input('rotary/sin', angles) }
  end
  for i = 1, about.layers do x = add_layer(net, x, about, run, i, 'layer_' .. i) end
  local weight = about.tied and table_of or (about.further or 0) > 0
    and net:variable('logits/weight', { about.vocabulary, about.hidden }) or nil
  local loss = loss_of(net, '', normalise(net, 'norm', x, about), about, run, weight)
  add_further(net, loss, x, about, run, table_of, weight)
  return net:build()
end

return network
