-- Graphs that several specs and fuzz targets search on.

local trinity = require 'trinity'

local graphs = {}

--- Operators op1, op2, ... in a row, 1,000 bytes between neighbours where `bytes` does not say otherwise. about(i) gives
--- the fields of builder:add_operator in addition to the name.
function graphs.chain(count, about, bytes)
  local builder = trinity.graph.new { name = 'chain' }
  for i = 1, count do
    local spec = about(i)
    spec.name = 'op' .. i
    builder:add_operator(spec)
    if i > 1 then builder:add_edge('op' .. i - 1, spec.name, bytes or 1000) end
  end
  return builder:build()
end

--- Operators of 1 ms that each need `memory_bytes` (10 GB): a P100 has 16.6 GB for a step.
function graphs.heavy(count, memory_bytes)
  return graphs.chain(count, function() return { time_s = 1e-3, memory_bytes = memory_bytes or 10e9 } end)
end

--- A training step of `count` small matmuls, block_1/linear, block_2/linear, ...
function graphs.blocks(count)
  local net = trinity.graph.layers.new('blocks', { batch_size = 2 })
  local x = net:input('x', { 2, 4 })
  for i = 1, count do x = net:linear(('block_%d/linear'):format(i), x, 4) end
  net:softmax_cross_entropy('loss', x, net:input('y', { 2 }, 'int64'))
  return net:build():to_training()
end

--- A training step of a small GPT-2 in bfloat16, by Adam; `changes`: other options.
function graphs.gpt2(micro_batch, changes)
  local options = { layers = 6, hidden = 512, heads = 8, sequence = 256, positions = 256, vocabulary = 2048,
    batch_size = micro_batch, dropout = 0, fused = false, kernels = 'flash', dtype = 'bfloat16',
    gradient_dtype = 'float32', optimizer = 'adam' }
  for name, value in pairs(changes or {}) do options[name] = value end -- in any order
  return trinity.model('gpt2', options)
end

--- A training step of two branches a block, for images of `size` pixels: 64 units and fewer are refined by local search,
--- more by annealing.
function graphs.branches(blocks, batch_size, channels, size)
  local net = trinity.graph.layers.new 'branches'
  local x = net:input('image', { batch_size, 3, size, size })
  for i = 1, blocks do
    local a = net:relu('a_relu' .. i, net:conv('a' .. i, x, { channels = channels, kernel = 3, padding = 1 }))
    local b = net:relu('b_relu' .. i, net:conv('b' .. i, x, { channels = channels, kernel = 3, padding = 1 }))
    x = net:concat('join' .. i, { a, b })
  end
  local labels = net:input('labels', { batch_size }, 'int64')
  net:softmax_cross_entropy('loss', net:linear('classifier', net:flatten('flat', x), 10), labels)
  return net:build():to_training()
end

return graphs
