-- Properties of every network that models build, of images and of sequences.

local trinity = require 'trinity'

local experts = { kernels = 'onnx', fused = true, layers = 2, hidden = 64, heads = 4, num_kv_heads = 2, feed_forward = 96,
  experts = 4, top_k = 2, vocabulary = 500, batch_size = 2, sequence = 32 }
-- Attention in ONNX's parts, of which the backward pass has twice the FLOP; a fused kernel computes some again.
local networks = {
  { 'bert_base', { kernels = 'onnx', batch_size = 2 } }, { 'gnmt' }, { 'gpt2', { kernels = 'onnx', fused = true, batch_size = 1 } },
  { 'inception_v3', { batch_size = 1 } }, { 'inception_v3', { batch_size = 1, auxiliary = true } },
  { 'moe_transformer', experts }, { 'nasnet_large', { batch_size = 1 } }, { 'nasnet_large', { batch_size = 1, auxiliary = true } },
  { 'nmt' }, { 'pnasnet_large', { batch_size = 1 } }, { 'pnasnet_large', { batch_size = 1, auxiliary = true } },
  { 'resnet50', { batch_size = 1 } }, { 'vgg16', { batch_size = 1 } }, { 'vit_b16', { kernels = 'onnx', fused = true, batch_size = 2 } },
}

describe('every network', function()
  for _, row in ipairs(networks) do
    local name, options = row[1], row[2] or {}
    local title = name .. (options.auxiliary and ' with its auxiliary head' or '')
    local function forward(more) return trinity.model(name, merged(options, { training = false }, more or {})) end
    it(title .. ' becomes a training step: backward about twice forward, an update per weighted operator', function()
      local before, graph = forward(), trinity.model(name, options)
      local updates, weighted, flops = 0, 0, { forward = 0, backward = 0, update = 0 }
      for i = 1, graph.operators do
        local op = graph:operator(i)
        flops[op.phase] = flops[op.phase] + op.flops
        if op.phase == 'update' then updates = updates + 1 end
        if op.parameter_bytes > 0 then weighted = weighted + 1 end
      end
      expect(flops.forward):equals(before.flops)
      expect(flops.backward / flops.forward):near(2, 0.05)
      expect(updates):equals(weighted)
      expect(graph.parameters):equals(before.parameters)
      expect(graph.units):equals(before.operators)
    end)
    it(title .. ' has half of the bytes in float16 and bfloat16', function()
      local single = forward()
      for _, dtype in ipairs { 'float16', 'bfloat16' } do
        local half = forward { dtype = dtype }
        expect(2 * half.parameter_bytes):equals(single.parameter_bytes)
        expect(half.parameters):equals(single.parameters)
        expect(half.flops):equals(single.flops)
        for i = 1, single.operators do
          local a, b = single:operator(i), half:operator(i)
          expect(b.name):equals(a.name)
          for o, output in ipairs(a.outputs) do
            expect(b.outputs[o].bytes):equals(output.dtype == 'float32' and output.bytes / 2 or output.bytes)
          end
        end
      end
    end)
    it(title .. ' is the same graph every time', function()
      expect(forward().fingerprint):equals(forward().fingerprint)
    end)
  end
end)
