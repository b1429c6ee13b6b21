-- CPU time and memory to simulate a step of a network on a thousand or ten thousand GPUs, from nothing and again:
--   build/trinity tests/bench/bench_meshes.lua
-- CPU time of one thread, medians of 5 fresh graphs each: the graph, its cluster and the problem; a strategy
-- whose structure was not seen before (another one was); the same again. Before them this process's memory with one.
-- At last evaluations a second of GPT-2 large on 16 GPUs, where the structure was seen but the strategy was not.

local trinity = require 'trinity'
local median = trinity.system.median

local networks = {
  { name = 'gpt2, 128 layers, hidden 16384', make = function()
    return trinity.model('gpt2', { layers = 128, hidden = 16384, heads = 128, batch_size = 1, fused = false,
      dropout = 0 })
  end },
  { name = 'llama, 128 layers, hidden 16384', make = function()
    return trinity.model('llama-3.1-405b', { layers = 128, sequence = 4096 })
  end },
  { name = 'mixtral, 56 layers, hidden 6144', experts = true, rows = 'of_experts', make = function()
    return trinity.model('mixtral-8x22b', { sequence = 4096 })
  end },
  { name = 'deepseek_v3, 61 layers', experts = true, rows = 'of_dense_and_experts', halves = { 30, 31 },
    make = function() return trinity.model('deepseek-v3', { sequence = 4096 }) end },
}

local strategies = {
  { 'tensor 8 x pipeline 16 x data 128' },
  { 'full recomputation', recompute = 'full' },
  { 'sequence_parallel', sequence_parallel = true },
  { 'zero_stage 3', zero_stage = 3 },
  { 'zb-h1', schedule = 'zb-h1' },
  { 'two virtual stages', schedule = 'interleaved', virtual_stages = 2 },
  { 'the same, sequence_parallel', schedule = 'interleaved', virtual_stages = 2, sequence_parallel = true },
  { 'zb-v', schedule = 'zb-v', virtual_stages = 2 },
  { 'zb-v, ZeRO 3', schedule = 'zb-v', virtual_stages = 2, zero_stage = 3 },
  { 'context 2, data 64', mesh = { tensor = 8, pipeline = 16, data = 64, context = 2 } },
  { 'pipeline 32, data 64', mesh = { tensor = 8, pipeline = 32, data = 64 } },
  { 'the same, ZeRO 3', mesh = { tensor = 8, pipeline = 32, data = 64 }, zero_stage = 3 },
  { 'pipeline 64, data 32', mesh = { tensor = 8, pipeline = 64, data = 32 } },
  { 'tensor 4, data 256', mesh = { tensor = 4, pipeline = 16, data = 256 } },
  { 'the same, ZeRO 3', mesh = { tensor = 4, pipeline = 16, data = 256 }, zero_stage = 3 },
  { 'tensor 2, data 512', mesh = { tensor = 2, pipeline = 16, data = 512 } },
}

local of_thousand = {
  { 'tensor 8 x pipeline 16 x data 8', zero_stage = 0 },
  { 'zero_stage 1', zero_stage = 1 },
  { 'zero_stage 2', zero_stage = 2 },
  { 'zero_stage 3', zero_stage = 3 },
  { 'sequence_parallel', zero_stage = 0, sequence_parallel = true },
}

local of_experts = {
  { 'pipeline 8, data 2048, expert 8', mesh = { pipeline = 8, data = 2048, expert = 8 } },
  { 'the same, ZeRO 3', mesh = { pipeline = 8, data = 2048, expert = 8 }, zero_stage = 3 },
  { 'tensor 2, data 1024, expert 8', mesh = { tensor = 2, pipeline = 8, data = 1024, expert = 8 },
    sequence_parallel = true },
  { 'tensor 8, data 256, expert 4', mesh = { tensor = 8, pipeline = 8, data = 256, expert = 4 },
    sequence_parallel = true },
}

local of_experts_on_thousand = {
  { 'pipeline 8, data 128, expert 8', mesh = { pipeline = 8, data = 128, expert = 8 } },
  { 'the same, ZeRO 3', mesh = { pipeline = 8, data = 128, expert = 8 }, zero_stage = 3 },
}

--- Stages with given numbers of layers: { how many, layers, ... }.
local function stages(runs)
  local list = {}
  for i = 1, #runs, 2 do
    for _ = 1, runs[i] do list[#list + 1] = runs[i + 1] end
  end
  return list
end

local on_16, on_8 = stages { 1, 3, 14, 4, 1, 2 }, stages { 1, 7, 6, 8, 1, 6 }

local of_dense_and_experts = {
  { 'pipeline 16, data 1024, expert 64', mesh = { pipeline = 16, data = 1024, expert = 64 }, stages = on_16 },
  { 'the same, expert 256', mesh = { pipeline = 16, data = 1024, expert = 256 }, stages = on_16 },
  { 'pipeline 8, data 2048, expert 64', mesh = { pipeline = 8, data = 2048, expert = 64 }, stages = on_8 },
  { 'tensor 8, data 128, expert 8', mesh = { tensor = 8, pipeline = 16, data = 128, expert = 8 }, zero_stage = 2,
    sequence_parallel = true, stages = on_16 },
  { 'zb-v, data 1024, expert 64', mesh = { pipeline = 16, data = 1024, expert = 64 }, schedule = 'zb-v',
    virtual_stages = 2, stages = stages { 1, 1, 29, 2, 2, 1 } },
}

local of_dense_and_experts_on_thousand = {
  { 'pipeline 16, data 64, expert 64', mesh = { pipeline = 16, data = 64, expert = 64 }, stages = on_16 },
}

local clusters = {
  { name = 'dgx_h100x2048', gpus = '16,384', data = 128, strategies = strategies, of_experts = of_experts,
    of_dense_and_experts = of_dense_and_experts },
  { name = 'dgx_h100x128', gpus = '1,024', data = 8, strategies = of_thousand, of_experts = of_experts_on_thousand,
    of_dense_and_experts = of_dense_and_experts_on_thousand },
}

local function strategy(problem, data, options)
  local all = { mesh = { tensor = 8, pipeline = 16, data = data }, micro_batches = 128, zero_stage = 1,
    schedule = '1f1b' }
  for name, value in pairs(options) do  -- in any order
    if type(name) == 'string' then all[name] = value end
  end
  return problem:strategy(all)
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

local function bound(network, cluster)
  return trinity.problem { graph = network.make(), cluster = trinity.cluster(cluster.name) }
end

--- A row: medians of 5.
local function measure(network, cluster, options, first)
  local bind, unseen, again = {}, {}, {}
  for _ = 1, 5 do
    local problem
    bind[#bind + 1], problem = seconds(function() return bound(network, cluster) end)
    if first and #bind == 1 then print(('%-34speak %.0f MB'):format(network.name, peak_mb())) end
    problem:evaluate(strategy(problem, cluster.data, { mesh = { tensor = 2, pipeline = 2, data = cluster.data * 32 },
      micro_batches = 4, zero_stage = 0, sequence_parallel = network.experts, stages = network.halves }))
    unseen[#unseen + 1] = seconds(function()
      return problem:evaluate(strategy(problem, cluster.data, options))
    end)
    again[#again + 1] = seconds(function() return problem:evaluate(strategy(problem, cluster.data, options)) end)
  end
  print(('%-34s%-34s%10.2f%12.1f%12.1f'):format(network.name, options[1], median(bind), median(unseen) * 1e3,
    median(again) * 1e3))
end

for _, cluster in ipairs(clusters) do
  print(('%s GPUs (%s); CPU time, medians of 5\n%-34s%-34s%10s%12s%12s'):format(cluster.gpus, cluster.name,
    'network', 'strategy', 'bind s', 'unseen ms', 'again ms'))
  for _, network in ipairs(networks) do
    for i, options in ipairs(cluster[network.rows or 'strategies']) do measure(network, cluster, options, i == 1) end
  end
  print()
end

local seen = {
  { '8 to 23 micro-batches, gpipe or 1f1b', function(i)
    return { micro_batches = 8 + math.floor(i / 2), schedule = i % 2 == 0 and 'gpipe' or '1f1b' }
  end },
  { '8 micro-batches, the next machine or the next GPUs first', function(i)
    local list = {}
    for d = 0, 15 do list[d + 1] = (d + i) % 16 + 1 end
    return { devices = list }
  end },
}

--- Evaluations per second of strategies of one structure, none of which was simulated before.
local function rate(of, count)
  local problem = trinity.problem { cluster = trinity.cluster 'dgx_h100x2', graph = trinity.model('gpt2',
    { size = 'large', batch_size = 1, dropout = 0, fused = false }) }
  local plans, simulated = {}, 0
  for i = 1, count do
    plans[i] = of(i - 1)
    plans[i].mesh, plans[i].micro_batches = { pipeline = 4, tensor = 2, data = 2 }, plans[i].micro_batches or 8
  end
  problem:evaluate { mesh = plans[1].mesh, micro_batches = 2 }
  local spent_s = seconds(function()
    for _, plan in ipairs(plans) do problem:evaluate(plan) end
  end)
  for _, plan in ipairs(plans) do simulated = simulated + problem:simulated_devices(plan) end
  return count / spent_s, simulated / count
end

print(('GPT-2 large, pipeline 4 x tensor 2 x data 2 on dgx_h100x2; a structure that was seen, 15 or 32 strategies; '
  .. 'CPU time, medians of 5\n%-68s%12s%16s'):format('strategies', 'simulated', 'evaluations/s'))
for n, row in ipairs(seen) do
  local rates, simulated = {}, nil
  for i = 1, 5 do rates[i], simulated = rate(row[2], n == 2 and 15 or 32) end
  print(('%-68s%12.1f%16.0f'):format(row[1], simulated, median(rates)))
end

--- CPU seconds of evaluations on 8,192 GPUs, medians of 5: of the first of a problem, and of later ones with other
--- numbers of micro-batches.
local function on_8192(graph, cluster, plan)
  local first, later = {}, {}
  for i = 1, 5 do
    local problem = trinity.problem { graph = graph, cluster = cluster }
    local function evaluation_s(micro_batches)
      plan.micro_batches = micro_batches
      return (seconds(function() return problem:evaluate(plan) end))
    end
    first[i] = evaluation_s(16)
    evaluation_s(24)
    later[i] = (evaluation_s(32) + evaluation_s(40)) / 2
  end
  return median(first), median(later)
end

print '\non dgx_h100x1024: an evaluation with one GPU 1.3 times as slow over one without; a first one, a later one'
local large = trinity.model('gpt2', { layers = 32, hidden = 4096, heads = 32, batch_size = 1 })
local mixture = trinity.model('mixtral-8x7b', { layers = 16, sequence = 8192, batch_size = 1 })
local equal, slow = trinity.cluster 'dgx_h100x1024', trinity.cluster('dgx_h100x1024', { slow = { ['n7/gpu3'] = 1.3 } })
for _, row in ipairs {
  { 'gpt2, tensor 8, pipeline 8, data 128', large, { mesh = { tensor = 8, pipeline = 8, data = 128 } } },
  { 'gpt2, tensor 4, context 2, pipeline 4, data 256', large, { mesh = { tensor = 4, context = 2, pipeline = 4,
    data = 256 } } },
  { 'gpt2, tensor 8, context 8, pipeline 4, data 32', large, { mesh = { tensor = 8, context = 8, pipeline = 4,
    data = 32 } } },
  { 'gpt2, pipeline 8, data 1024', large, { mesh = { pipeline = 8, data = 1024 } } },
  { 'mixtral, context 8, pipeline 4, data 256, expert 8, ZeRO 3', mixture, { mesh = { context = 8, pipeline = 4,
    data = 256, expert = 8 }, zero_stage = 3 } },
  { 'mixtral, tensor 2, context 4, pipeline 4, data 256, expert 8, ZeRO 3', mixture, { mesh = { tensor = 2,
    context = 4, pipeline = 4, data = 256, expert = 8 }, sequence_parallel = true, zero_stage = 3 } },
  { 'mixtral, tensor 2, context 4, data 1024, expert 8, ZeRO 3', mixture, { mesh = { tensor = 2, context = 4,
    data = 1024, expert = 8 }, sequence_parallel = true, zero_stage = 3 } },
} do
  local plan = row[3]
  plan.zero_stage = plan.zero_stage or 1
  local slow_first, slow_later = on_8192(row[2], slow, plan)
  local first, later = on_8192(row[2], equal, plan)
  print(('%-76s%8.1f%8.1f'):format(row[1], slow_first / first, slow_later / later))
end
