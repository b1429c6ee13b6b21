-- Bounds of meshes: no simulation is below them, in time or in memory, on random networks, clusters and strategies; and
-- where nothing queues they are close.

local trinity = require 'trinity'
local bounds = require 'trinity.plan.bounds'
local gpt2 = require('support.graphs').gpt2
local networks = require 'trinity.plan.networks'
local space = require 'trinity.plan.space'

local function gpt(micro_batch, layers, kernels)
  return gpt2(micro_batch, { layers = layers, hidden = 256, sequence = 128, positions = 128, kernels = kernels })
end

local function llama(micro_batch)
  local folder = temporary()
  os.execute(("mkdir -p '%s'"):format(folder))
  local path = folder .. "/config.json"
  trinity.files.write(path, trinity.files.json.encode { model_type = 'llama', hidden_size = 512, intermediate_size = 1376,
    num_hidden_layers = 8, num_attention_heads = 8, num_key_value_heads = 4, vocab_size = 4096, rms_norm_eps = 1e-5,
    hidden_act = 'silu', max_position_embeddings = 512, tie_word_embeddings = false, rope_theta = 10000.0 })
  return trinity.model(path, { batch_size = micro_batch, sequence = 512 })
end

--- A mixture of 8 experts, whose first layers are like the others.
local function mixture(micro_batch, layers)
  local folder = temporary()
  os.execute(("mkdir -p '%s'"):format(folder))
  local path = folder .. "/config.json"
  trinity.files.write(path, trinity.files.json.encode { model_type = 'mixtral', hidden_size = 256, intermediate_size = 1024,
    num_hidden_layers = layers or 4, num_attention_heads = 8, num_key_value_heads = 4, vocab_size = 2048, rms_norm_eps = 1e-5,
    hidden_act = 'silu', max_position_embeddings = 512, tie_word_embeddings = false, rope_theta = 10000.0,
    num_local_experts = 8, num_experts_per_tok = 2 })
  return trinity.model(path, { batch_size = micro_batch, sequence = 128 })
end

local sheet = { constants = 'data_sheet' } -- without a host that dispatches experts' kernels
local slow = { name = 'slow', devices = {}, links = {}, queue = 'sender' }
for i = 1, 8 do slow.devices[i] = { name = 'd' .. i, type = 'v100', node = 'n' .. math.ceil(i / 4) } end
for i = 1, 8 do
  slow.links[i] = { from = 'd' .. i, to = 'bus', bandwidth_bytes_per_s = 2e9, latency_s = 1e-5 }
end

local function between(random, low, high) return low + random:integer(high - low + 1) - 1 end

local function pick(random, list) return list[between(random, 1, #list)] end

--- A random strategy on a number of devices. experts: some strategies use expert parallelism.
local function drawn(random, layers, devices, experts)
  local schedule = pick(random, { '1f1b', '1f1b', 'gpipe', 'interleaved', 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v',
    'dualpipe-v' })
  local mesh = { tensor = pick(random, { 1, 2, 4 }), context = pick(random, { 1, 1, 2 }), pipeline = pick(random, { 1, 2, 4 }),
    data = pick(random, { 1, 2, 4, 8 }) }
  if mesh.tensor * mesh.context * mesh.pipeline * mesh.data > devices then return nil end
  local v = (schedule == 'interleaved' or schedule == 'zb-interleaved') and pick(random, { 1, 2, 4 })
    or (schedule == 'zb-v' or schedule == 'dualpipe-v') and 2 or 1
  if mesh.pipeline == 1 then v = 1 end
  if experts then
    local ranks = pick(random, { 1, 2, 4, 8 })
    if mesh.data % ranks ~= 0 then return nil end
    mesh.expert = ranks
  end
  local stages
  if between(random, 1, 2) == 1 and mesh.pipeline > 1 then
    stages = {}
    for c = 1, mesh.pipeline * v do stages[c] = 0 end
    for _ = 1, layers do
      local c = between(random, 1, #stages)
      stages[c] = stages[c] + 1
    end
  elseif layers % (mesh.pipeline * v) ~= 0 then
    return nil
  end
  return { mesh = mesh, schedule = mesh.pipeline > 1 and schedule or '1f1b', virtual_stages = v, stages = stages,
    micro_batches = mesh.pipeline * between(random, 1, 4), recompute = pick(random, { 'none', 'selective', 'full' }),
    sequence_parallel = mesh.tensor > 1 and (experts or between(random, 1, 2) == 1), zero_stage = between(random, 0, 3),
    optimizer_offload_fraction = pick(random, { 0, 0, 0.3, 1 }),
    activation_offload_fraction = pick(random, { 0, 0, 0.4, 1 }),
    bucket_bytes = pick(random, { 100000, 1500000, 4000000, 25000000 }),
    scatter_gather = pick(random, { false, false, true }), overlap_tp_grad_allreduce = pick(random, { false, false, true }) }
end

local function most(list)
  local found = 0
  for _, value in ipairs(list) do found = math.max(found, value) end
  return found
end

describe('bounds of meshes', function()
  local graphs = { base = 'megatron', cuda_graphs = 'all' } -- a host that sets the pace leaves bounds far below
  local cases = {
    { 'a GPT on 16 H100', gpt(2, 8, 'megatron'), trinity.cluster 'dgx_h100x2', 8, 16 },
    { 'a GPT of one operator an attention on slow links', gpt(1, 4, 'flash'), trinity.cluster(slow), 4, 8 },
    { 'a Llama on V100', llama(1), trinity.cluster 'dgx1_v100x2', 8, 16 },
    { 'a mixture of experts on 16 H100', mixture(2), trinity.cluster('dgx_h100x2', { runtime = graphs }), 4, 16, true },
    { 'a mixture of experts on slow links', mixture(1), trinity.cluster(slow, sheet), 4, 8, true },
    { 'a mixture of experts whose host sets the pace', mixture(2), trinity.cluster 'dgx_h100x2', 4, 16, true },
  }
  for _, case in ipairs(cases) do
    it('no step and no fullest device is below them: ' .. case[1], function()
      local problem = trinity.problem { check_memory = false, graph = case[2], cluster = case[3] }
      local random, priced, ratio = trinity.random(law_seed(), case[1]), 0, 0
      for _ = 1, case[6] and 800 or 220 do -- experts agree with fewer meshes
        local strategy = drawn(random, case[4], case[5], case[6])
        local ok, metrics
        if strategy then ok, metrics = pcall(problem.evaluate, problem, strategy) end
        if ok then
          local bound = problem.handle:mesh_bounds({ strategy })[1]
          local text = trinity.files.json.encode(strategy)
          expect(bound.refused):equals(nil)
          if bound.step_time_s > metrics.step_time_s + 1e-12 then
            error(('bound %.9f of %.9f s: %s'):format(bound.step_time_s, metrics.step_time_s, text))
          end
          if most(bound.memory_bytes) > metrics.peak_memory_bytes then
            error(('bound %.0f of %.0f bytes: %s'):format(most(bound.memory_bytes), metrics.peak_memory_bytes, text))
          end
          priced, ratio = priced + 1, ratio + bound.step_time_s / metrics.step_time_s
        end
      end
      expect(priced > 40):truthy()
      expect(ratio / priced > 0.6):truthy()
    end)
  end

  it('what a stage sends is reduced on it, while the next one recomputes: one layer a virtual stage', function()
    local cluster = trinity.cluster('dgx_b300x2', { runtime = 'megatron' })
    local problem = trinity.problem { check_memory = false, cluster = cluster,
      graph = trinity.model('llama-3-70b', { batch_size = 1, layers = 16, sequence = 8192, cluster = cluster }) }
    local strategy = { mesh = { tensor = 4, pipeline = 4 }, schedule = 'interleaved', virtual_stages = 4, micro_batches = 128,
      recompute = 'full', sequence_parallel = true }
    local step_time_s = problem:evaluate(strategy).step_time_s
    expect(problem.handle:mesh_bounds({ strategy })[1].step_time_s <= step_time_s):truthy()
  end)

  it('inputs of delayed weight gradients are held', function()
    local problem = trinity.problem { check_memory = false, graph = gpt(4, 8, 'flash'), cluster = trinity.cluster 'dgx_h100' }
    for _, schedule in ipairs { 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v' } do
      local strategy = { mesh = { pipeline = 4, data = 2 }, schedule = schedule, micro_batches = 16,
        virtual_stages = schedule:match '^zb%-h' and 1 or 2 }
      local bound, held = most(problem.handle:mesh_bounds({ strategy })[1].memory_bytes),
        problem:evaluate(strategy).peak_memory_bytes
      expect(bound <= held):truthy()
      expect(bound > 0.75 * held):truthy()
    end
  end)

  it('a simulation is as large as the devices that are not copies of each other', function()
    local problem = trinity.problem { check_memory = false, graph = gpt(1, 8, 'flash'), cluster = trinity.cluster 'dgx_h100x2' }
    local found = problem.handle:mesh_bounds { { mesh = { data = 16 }, micro_batches = 2 },
      { mesh = { data = 8, context = 2 }, micro_batches = 2 },
      { mesh = { data = 8, context = 2 }, micro_batches = 2, cp_comm_type = 'ring' },
      { mesh = { data = 16 }, micro_batches = 2, sync = { kind = 'hierarchical', inner = 4 } } }
    expect(found[1].tasks):equals(2 * problem.graph.operators)
    expect(found[2].tasks):equals(found[1].tasks)
    expect(found[3].tasks):equals(2 * found[1].tasks)
    expect(found[4].tasks):equals(16 * found[1].tasks)
  end)

  it('experts: the memory of an expert-parallel group, and its exchanges, are counted', function()
    local problem = trinity.problem { check_memory = false, graph = mixture(2), cluster = trinity.cluster(slow, sheet) }
    for _, zero_stage in ipairs { 0, 1, 2, 3 } do
      for _, ranks in ipairs { 2, 4, 8 } do
        local strategy = { mesh = { data = 8, expert = ranks }, micro_batches = 4, zero_stage = zero_stage, bucket_bytes = 25000000 }
        local bound, metrics = problem.handle:mesh_bounds({ strategy })[1], problem:evaluate(strategy)
        expect(most(bound.memory_bytes) <= metrics.peak_memory_bytes):truthy()
        expect(bound.step_time_s <= metrics.step_time_s):truthy()
        if zero_stage < 2 then -- else what is gathered and scattered of experts and of all else waits for each other
          expect(most(bound.memory_bytes) > 0.9 * metrics.peak_memory_bytes):truthy()
          expect(bound.step_time_s > 0.7 * metrics.step_time_s):truthy()
        end
      end
    end
  end)

  --- Holds the closed form to the engine's bound over a space on 16 H100.
  local function compare(graph, given, about)
    local cluster = trinity.cluster 'dgx_h100x2'
    local nets = networks.new('bounds_spec', graph, cluster)
    local points = space.new('bounds_spec', given, merged({ devices = 16, per_node = 8, batch = 64 }, about), {})
    local seen = 0
    for _, family in ipairs(points:families()) do
      local scaled, own = nets:totals(family, false), nets:totals(family, true)
      local list = {}
      points:each(family, function(point, reason)
        if not reason and point.stages == 'even' and point.bucket_bytes == 2e8 then list[#list + 1] = space.kept(point) end
      end)
      local strategies = {}
      for i, point in ipairs(list) do strategies[i] = space.strategy(point) end
      for i, found in ipairs(nets:problem(family.micro_batch).handle:mesh_bounds(strategies)) do
        local point = list[i]
        for _, totals in ipairs { scaled, own } do
          if bounds.step_time_s(point, totals) > found.step_time_s + 1e-9 then
            error(('%s: %.9f above %.9f s'):format(space.text(point), bounds.step_time_s(point, totals), found.step_time_s))
          end
          if bounds.memory_bytes(point, totals) > most(found.memory_bytes) then
            error(('%s: %.0f above %.0f bytes'):format(space.text(point), bounds.memory_bytes(point, totals),
              most(found.memory_bytes)))
          end
        end
        seen = seen + 1
      end
    end
    expect(seen > 100):truthy()
  end

  it('the closed form is below the bound of the engine, from the profile of one device and from its own', function()
    compare(function(b) return gpt(b, 8, 'megatron') end, { context = 1, tensor = { 1, 4 }, micro_batch = { 1, 2 },
      optimizer_offload_fraction = { 0, 0.7 }, activation_offload_fraction = { 0, 0.6 } },
      { layers = 8 })
  end)

  it('the same of experts, and of parts of the sequence', function()
    compare(mixture, { context = { 1, 2 }, tensor = 1, micro_batch = { 1, 2 }, expert = { 1, 2, 8 } },
      { layers = 4, experts = true })
  end)
end)
