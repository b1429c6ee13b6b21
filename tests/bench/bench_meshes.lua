-- What a step of a network on ten thousand GPUs costs to price, from nothing and again:
--   build/trinity tests/bench/bench_meshes.lua
-- Processor time of one thread, medians of 5 fresh graphs each: the graph, its cluster and the problem; a strategy
-- whose structure was not seen before (another one was); the same again. Before them this process's memory with one.

local trinity = require 'trinity'

local networks = {
  { name = 'gpt2, 128 layers, hidden 16384', make = function()
    return trinity.model('gpt2', { layers = 128, hidden = 16384, heads = 128, batch_size = 1, fused = false,
      dropout = 0 })
  end },
  { name = 'llama, 128 layers, hidden 16384', make = function()
    local taken = os.tmpname()
    local path = taken .. '.json'
    local file = assert(io.open(path, 'w'))
    file:write [[{ "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 128,
      "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16" }]]
    file:close()
    local graph = trinity.model(path, { sequence = 4096 })
    os.remove(path)
    os.remove(taken)
    return graph
  end },
}

local strategies = {
  { 'tensor 8 x pipeline 16 x data 128' },
  { 'full recomputation', recompute = 'full' },
  { 'sequence_parallel', sequence_parallel = true },
  { 'shard 3', shard = 3 },
  { 'zb-h1', schedule = 'zb-h1' },
  { 'two virtual stages', schedule = 'interleaved', virtual_stages = 2 },
  { 'the same, sequence_parallel', schedule = 'interleaved', virtual_stages = 2, sequence_parallel = true },
  { 'zb-v', schedule = 'zb-v', virtual_stages = 2 },
  { 'zb-v, shard 3', schedule = 'zb-v', virtual_stages = 2, shard = 3 },
  { 'context 2, data 64', mesh = { tensor = 8, pipeline = 16, data = 64, context = 2 } },
  { 'pipeline 32, data 64', mesh = { tensor = 8, pipeline = 32, data = 64 } },
  { 'the same, shard 3', mesh = { tensor = 8, pipeline = 32, data = 64 }, shard = 3 },
  { 'pipeline 64, data 32', mesh = { tensor = 8, pipeline = 64, data = 32 } },
  { 'tensor 4, data 256', mesh = { tensor = 4, pipeline = 16, data = 256 } },
  { 'the same, shard 3', mesh = { tensor = 4, pipeline = 16, data = 256 }, shard = 3 },
  { 'tensor 2, data 512', mesh = { tensor = 2, pipeline = 16, data = 512 } },
}

local function strategy(problem, options)
  local all = { mesh = { tensor = 8, pipeline = 16, data = 128 }, micro_batches = 128, shard = 1, schedule = '1f1b' }
  for name, value in pairs(options) do  -- in any order
    if type(name) == 'string' then all[name] = value end
  end
  return problem:strategy(all)
end

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

local function seconds(work)
  local start = os.clock()
  local result = work()
  return os.clock() - start, result
end

local function peak_mb()
  for line in io.lines '/proc/self/status' do
    local kb = line:match 'VmHWM:%s*(%d+)'
    if kb then return tonumber(kb) * 1024 / 1e6 end -- the kernel's kB are 1,024 bytes
  end
end

local function bound(network)
  return trinity.problem { graph = network.make(), cluster = trinity.cluster 'dgx_h100x2048' }
end

print(('16,384 GPUs (dgx_h100x2048); processor time, medians of 5\n%-34s%-34s%10s%12s%12s'):format(
  'network', 'strategy', 'bind s', 'unseen ms', 'again ms'))
for _, network in ipairs(networks) do
  for i, options in ipairs(strategies) do
    local bind, unseen, again = {}, {}, {}
    for _ = 1, 5 do
      local problem
      bind[#bind + 1], problem = seconds(function() return bound(network) end)
      if i == 1 and #bind == 1 then print(('%-34speak %.0f MB'):format(network.name, peak_mb())) end
      problem:evaluate(strategy(problem, { mesh = { tensor = 2, pipeline = 2, data = 4096 }, micro_batches = 4,
        shard = 0 }))
      unseen[#unseen + 1] = seconds(function() return problem:evaluate(strategy(problem, options)) end)
      again[#again + 1] = seconds(function() return problem:evaluate(strategy(problem, options)) end)
    end
    print(('%-34s%-34s%10.2f%12.1f%12.1f'):format(network.name, options[1], median(bind), median(unseen) * 1e3,
      median(again) * 1e3))
  end
end
