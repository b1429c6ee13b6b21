-- Laws that every mesh must keep, on random networks, clusters and strategies.

local core = require 'trinity.core'
local nodes = require 'trinity.cluster.nodes'
local trinity = require 'trinity'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')

local clusters = { trinity.cluster 'dgx_a100', trinity.cluster 'p100x4', trinity.cluster 'juwels_boosterx2',
  trinity.cluster 'dgx_h100:6x3+dgx_a100x1', trinity.cluster('h100_pcie_8x3', { constants = 'data_sheet' }) }

local function experts(random)
  return mixture({ layers = random:pick { 2, 4 }, heads = 4, num_kv_heads = random:pick { 2, 4 }, hidden = 32,
    feed_forward = 16, experts = random:pick { 4, 6 }, top_k = random:pick { 1, 2 }, vocabulary = random:pick { 50, 96 },
    batch_size = random:pick { 1, 2 }, sequence = 24, dtype = random:pick { 'float32', 'bfloat16' } })
    :to_training { optimizer = 'adam' }
end

local function dense(random)
  local heads = random:pick { 2, 4, 6 }
  return trinity.model('gpt2', { layers = random:pick { 2, 4, 6 }, heads = heads, hidden = heads * random:pick { 4, 8 },
    sequence = random:pick { 8, 16 }, positions = 16, vocabulary = random:pick { 50, 96 }, batch_size = random:pick { 1, 2 },
    dropout = random:pick { 0, 0.1 }, fused = false, kernels = random:pick { 'onnx', 'megatron', 'flash' },
    optimizer = 'adam', dtype = random:pick { 'float32', 'bfloat16' } })
end

local function network(random) return random:pick { dense, dense, experts }(random) end

local function draws(seed)
  local stream = trinity.random(seed, 'laws of meshes')
  return { pick = function(_, list) return list[1 + math.floor(stream:uniform() * #list)] end }
end

local function way_of(random)
  local kind = random:pick { 'all_reduce', 'all_reduce', 'all_reduce', 'all_reduce', 'hierarchical', 'local_sgd',
    'parameter_server', 'daso' }
  local way = { kind = kind, algorithm = random:pick { 'automatic', 'ring' } }
  if kind == 'hierarchical' or kind == 'daso' then way.inner = 2 end
  if kind == 'local_sgd' or kind == 'daso' then way.every = random:pick { 1, 2, 5 } end
  if kind == 'daso' then way.asynchronous = random:pick { true, false } end
  if kind == 'parameter_server' then way.servers, way.asynchronous = random:pick { 1, 2 }, random:pick { true, false } end
  return way
end

--- Places for operators inside stages, unit by unit.
local function places_of(random, graph, places)
  local of_unit, list = {}, {}
  for i = 1, graph.operators do
    local unit = graph.unit_of[i]
    of_unit[unit] = of_unit[unit] or random:pick { 1, places }
    list[i] = of_unit[unit]
  end
  return list
end

local function plan_of(random, graph)
  local of_experts = graph.name == 'mixture'
  local plan = { mesh = { data = random:pick { 1, 2, 3, 4 }, expert = random:pick { 1, of_experts and 2 or 1 },
    tensor = random:pick { 1, 2 }, pipeline = random:pick { 1, 2, 3 }, context = random:pick { 1, 1, 2 } }, micro_batches = random:pick { 1, 2, 4, 6 },
    schedule = random:pick { 'gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-h2', 'zb-v', 'dualpipe-v' },
    recompute = random:pick { 'none', 'selective', 'full' }, zero_stage = random:pick { 0, 1, 2, 3 },
    sequence_parallel = random:pick { true, of_experts }, scatter_gather = random:pick { true, false }, overlap_tp_grad_allreduce = random:pick { true, false },
    cp_comm_type = random:pick { 'all_gather', 'ring', 'all_to_all' },
    sync = way_of(random), bucket_bytes = random:pick { 1, 1000, 1e9 } }
  plan.optimizer_offload_fraction = plan.micro_batches == 4 and 0.7 or 0
  plan.activation_offload_fraction = plan.bucket_bytes == 1000 and 0.6 or 0
  if plan.schedule == 'interleaved' then plan.virtual_stages = random:pick { 1, 2 } end
  if plan.schedule == 'zb-v' or plan.schedule == 'dualpipe-v' then plan.virtual_stages = 2 end
  if plan.mesh.expert == 1 and random:pick { true, false, false } then
    plan.mesh.placement = 2
    plan.inside = places_of(random, graph, 2)
  end
  if random:pick { true, false } then plan.order = random:pick { { 'pipeline' }, { 'data', 'tensor' }, { 'context' } } end
  return plan
end

local function shown(plan)
  local brief = {}
  for key, value in trinity.system.sorted_pairs(plan) do
    brief[key] = value
    if key == 'inside' then brief[key] = #value end
  end
  return trinity.files.json.encode(brief):gsub('%s+', ' ')
end

--- Calls law(problem, found, plan) for random plans that lower; refused ones must say why in a sentence.
local function for_random(seed, count, law, cluster)
  local random, lowered = draws(seed), 0
  for _ = 1, count do
    local problem = trinity.problem { graph = network(random), cluster = cluster or random:pick(clusters) }
    for _ = 1, 6 do
      local plan = plan_of(random, problem.graph)
      local ok, found = pcall(problem.strategy, problem, plan)
      if ok then
        lowered = lowered + 1
        local kept, message = pcall(law, problem, found, plan)
        if not kept then error(('%s: %s'):format(shown(plan), tostring(message)), 0) end
      elseif not tostring(found):find('problem:strategy: ', 1, true) or #tostring(found) < 50
        or tostring(found):find('the order contradicts', 1, true) then
        error(('%s: %s'):format(shown(plan), tostring(found)), 0)
      end
    end
  end
  expect(count):below(2 * lowered)
end

describe('every mesh', function()
  it('costs no less than its lower bound, and sends what is received', function()
    for_random(1, 250, function(problem, found)
      expect(found:bounds().step_time_s <= found.metrics.step_time_s):truthy()
      local sent, received = 0, 0
      for d = 1, #problem.cluster.devices do
        sent, received = sent + found.metrics:sent_bytes(d), received + found.metrics:received_bytes(d)
      end
      expect(sent):equals(received)
      expect(found.metrics.samples):equals(problem.graph.batch_size * found.micro_batches * (found.mesh.data or 1))
    end)
  end)
  it('is written and read without a change', function()
    local path = os.tmpname()
    for_random(2, 100, function(problem, found)
      found:save(path)
      local text, loaded = core.read_file(path), problem:load(path)
      expect(loaded.metrics.step_time_s):equals(found.metrics.step_time_s)
      expect(loaded == found):truthy()
      loaded:save(path)
      expect(core.read_file(path)):equals(text)
    end)
  end)
  it('has the same metrics on the simulated classes of devices as on all devices', function()
    local folded = 0
    for_random(8, 120, function(problem, found, plan)
      local sync = plan.sync
      if sync.every or sync.asynchronous then return end -- a mean of several steps
      local whole, devices = problem:timeline(found).metrics, 0
      for d = 1, whole.device_count do
        for _, name in ipairs { 'compute_busy_s', 'memory_bytes', 'sent_bytes', 'received_bytes' } do
          expect(found.metrics[name](found.metrics, d)):equals(whole[name](whole, d))
        end
        devices = devices + (whole:memory_bytes(d) > 0 and 1 or 0)
      end
      for _, name in ipairs { 'step_time_s', 'peak_communication_bytes', 'excess_memory_bytes', 'transfers' } do
        expect(found.metrics[name]):equals(whole[name])
      end
      if problem:simulated_devices(found) < devices then folded = folded + 1 end
    end)
    expect(30):below(folded)
  end)
  it('does not change where replicas change places', function()
    local cluster, random, refused = trinity.cluster 'dgx_a100', draws(4), 0
    for _ = 1, 40 do
      local of_experts = random:pick { false, false, true }
      local problem = trinity.problem { graph = of_experts and experts(random) or dense(random), cluster = cluster }
      local inner = random:pick { { tensor = 2 }, { context = 2 } }
      local plan = { mesh = { data = 2, tensor = inner.tensor, context = inner.context, pipeline = random:pick { 1, 2 },
        expert = of_experts and random:pick { 1, 2 } or 1 }, micro_batches = 2, zero_stage = random:pick { 0, 1, 2, 3 },
        sequence_parallel = of_experts, cp_comm_type = random:pick { 'all_gather', 'all_to_all' } }
      local ok, there = pcall(problem.evaluate, problem, plan)
      refused = refused + (ok and 0 or 1)
      if ok then
        plan.devices = { 3, 4, 1, 2, 7, 8, 5, 6 }
        for i = 4 * plan.mesh.pipeline + 1, 8 do plan.devices[i] = nil end
        local swapped = problem:evaluate(plan)
        expect(swapped.step_time_s):equals(there.step_time_s)
        expect(swapped:memory_bytes(3)):equals(there:memory_bytes(1))
      end
    end
    expect(refused):below(20)
  end)
  it('is not slower with more bandwidth, where messages do not queue', function()
    local slow, fast = nodes.spec 'dgx_a100:4x4', nodes.spec 'dgx_a100:4x4'
    slow.queue, fast.queue = 'none', 'none'
    for _, link in ipairs(fast.links) do link.bandwidth_bytes_per_s = 3 * link.bandwidth_bytes_per_s end
    local faster, gained = trinity.cluster(fast), 0
    for_random(7, 80, function(problem, found, plan)
      local quick = trinity.problem { graph = problem.graph, cluster = faster }:evaluate(plan)
      expect(quick.step_time_s <= found.metrics.step_time_s):truthy()
      gained = gained + (quick.step_time_s < found.metrics.step_time_s and 1 or 0)
    end, trinity.cluster(slow))
    expect(gained > 40):truthy()
  end)
  it('holds a part of what is sharded', function()
    local random = draws(5)
    for _ = 1, 12 do
      local problem = trinity.problem { graph = dense(random), cluster = clusters[1] }
      local plan = { mesh = { data = random:pick { 2, 4 }, tensor = random:pick { 1, 2 } }, micro_batches = 2 }
      local function account(level)
        plan.zero_stage = level
        return problem:strategy(plan):breakdown().devices[1]
      end
      local whole, share = account(0), function(bytes) return bytes / plan.mesh.data end
      local function near(got, wanted) expect(math.abs(got - wanted) <= 1000):truthy() end -- rounded up by operator
      near(account(1).optimizer_bytes, share(whole.optimizer_bytes))
      expect(account(1).gradient_bytes):equals(whole.gradient_bytes)
      near(account(2).gradient_bytes, share(whole.gradient_bytes))
      expect(account(2).weight_bytes):equals(whole.weight_bytes)
      near(account(3).weight_bytes, share(whole.weight_bytes))
    end
  end)
end)
