-- CPU offload of the optimizer and of activations: bytes leave the device, updates take the host's time, layers wait for
-- copies, clients get it without loss.

local gpt2 = require('support.graphs').gpt2
local trinity = require 'trinity'

local on = trinity.cluster 'dgx_h100'

local function problem_on(cluster, dtype)
  return trinity.problem { cluster = cluster, check_memory = false, graph = gpt2(1, { layers = 4, hidden = 256,
    sequence = 64, positions = 64, dtype = dtype }) }
end

local function offloaded(plan, fraction) return merged(plan, { optimizer_offload_fraction = fraction }) end

describe('an optimizer on the host', function()
  it('leaves the device with its bytes, and takes no less time', function()
    local plans = { { mesh = { data = 4, tensor = 2 }, zero_stage = 1 }, { mesh = { data = 8 }, zero_stage = 3 },
      { mesh = { data = 2, pipeline = 4 }, micro_batches = 4 } }
    for _, dtype in ipairs { 'bfloat16', 'float32' } do
      local problem = problem_on(on, dtype)
      for _, plan in ipairs(plans) do
        local plain = problem:strategy(plan)
        local states, first = plain:breakdown().devices[1].optimizer_bytes, plain.metrics.step_time_s
        expect(problem:evaluate(offloaded(plan, 0)).step_time_s):equals(first)
        local last = first
        for _, fraction in ipairs { 0.25, 0.5, 1 } do
          local found = problem:strategy(offloaded(plan, fraction))
          local device, sum = found:breakdown().devices[1], 0
          expect(device.optimizer_bytes):near((1 - fraction) * states, problem.graph.operators)
          for _, bytes in trinity.system.sorted_pairs(device.peak_bytes) do sum = sum + bytes end
          expect(sum):equals(found.metrics:memory_bytes(1))
          expect(found.metrics.step_time_s >= last):truthy()
          last = found.metrics.step_time_s
        end
        expect(first):below(last)
      end
    end
  end)
  it('waits for the slower of the link and the memory of the host', function()
    local function step_s(link, memory)
      local own = trinity.devices.with('h100', { host_bandwidth_bytes_per_s = link,
        host_memory_bandwidth_bytes_per_s = memory })
      local problem = problem_on(trinity.cluster { name = 'one', devices = { { name = 'gpu', type = own } } })
      return problem:evaluate(offloaded({ mesh = {} }, 1)).step_time_s, problem.graph.parameters / 1e9
    end
    local free, billions = step_s(1e15, 1e15)
    -- gradients of 4 bytes; states of 12 bytes read and written, gradients read, weights read and written, 2 bytes each
    expect(step_s(1e9, 1e15) - free):near(4 * billions, 0.01 * billions)
    expect(step_s(1e15, 1e9) - free):near(30 * billions, 0.01 * billions)
    expect(step_s(1e9, 1e9)):equals((step_s(1e15, 1e9)))
  end)
  it('takes what Megatron-Core measured of Qwen3-0.6B on an H100', function() -- NVIDIA-NeMo/RL, pull request 3628
    local problem = trinity.problem { cluster = trinity.cluster 'dgx_h100:1', check_memory = false,
      graph = trinity.model('decoder', { layers = 28, hidden = 1024, heads = 16, num_kv_heads = 8, head_dim = 128,
        feed_forward = 3072, vocabulary = 151936, tied = true, gated = true, optimizer = 'adam', kernels = 'flash',
        gradient_dtype = 'float32', dtype = 'bfloat16', sequence = 512, batch_size = 1 }) }
    local function step_s(fraction) return problem:evaluate(offloaded({ mesh = {} }, fraction)).step_time_s end
    expect(step_s(1) - step_s(0)):near(1.678 - 0.752, 0.1)
    expect(step_s(0.5) - step_s(0)):near(1.216 - 0.752, 0.1)
  end)
  it('is refused where nothing is known of the host, beyond all of it, and where it would be executed', function()
    local bare = problem_on(trinity.cluster { name = 'bare', devices = { { name = 'cpu', type = 'cpu_core' } } }, 'float32')
    expect(function() bare:evaluate(offloaded({ mesh = {} }, 1)) end)
      :raises "optimizer_offload_fraction: expected a device type with host_bandwidth_bytes_per_s.*got 'cpu_core'"
    expect(function() bare:evaluate(offloaded({ mesh = {} }, 1.5)) end):raises 'from 0 to 1, got'
    local problem = problem_on(on, 'float32')
    expect(function() trinity.execute(problem, problem:strategy(offloaded({ mesh = {} }, 1))) end)
      :raises 'optimizer_offload_fraction can be simulated but not executed'
  end)
end)

describe('activations on the host', function()
  it('leave the device with their bytes, and layers wait for them', function()
    local problem = problem_on(on, 'bfloat16')
    for _, plan in ipairs { { mesh = { data = 4, tensor = 2 }, zero_stage = 1 }, { mesh = { data = 8 }, recompute = 'full' },
      { mesh = { data = 2, pipeline = 4 }, micro_batches = 4, zero_stage = 1 } } do
      local plain = problem:strategy(plan)
      local kept, last = plain:breakdown().devices[1].activations.layers, plain.metrics.step_time_s
      expect(problem:evaluate(merged(plan, { activation_offload_fraction = 0 })).step_time_s):equals(last)
      for _, fraction in ipairs { 0.25, 0.5, 1 } do
        local found = problem:strategy(merged(plan, { activation_offload_fraction = fraction }))
        local account, sum = found:breakdown(), 0
        for _, bytes in trinity.system.sorted_pairs(account.devices[1].peak_bytes) do sum = sum + bytes end
        expect(sum):equals(found.metrics:memory_bytes(1))
        expect(account.devices[1].activations.layers):near((1 - fraction) * kept, problem.graph.operators)
        expect(found.metrics.step_time_s >= last and account.devices[1].host_wait_s >= 0):truthy()
        last = found.metrics.step_time_s
      end
    end
  end)
  it('are copied by the link in either direction', function()
    local function step_s(link)
      local own = trinity.devices.with('h100', { host_bandwidth_bytes_per_s = link })
      local problem = problem_on(trinity.cluster { name = 'one', devices = { { name = 'gpu', type = own } } })
      local function found(fraction) return problem:strategy { mesh = {}, activation_offload_fraction = fraction } end
      local half = found(0.5)
      return half.metrics.step_time_s, half:breakdown().devices[1].host_wait_s, found(0):breakdown().devices[1], half
    end
    local free_s, none_s, plain = step_s(1e15)
    local slow_s, wait_s, _, found = step_s(1e7)
    expect(none_s):equals(0)
    expect(slow_s - free_s):near(wait_s, 1e-6)
    expect(wait_s + plain.computation_s):near(plain.activations.layers / 1e7, 0.05 * wait_s) -- half of it, twice
    expect(found:explain()):matches 'activation offload: 50 %% of what layers keep.-of it waiting for the host'
  end)
  it('are refused where nothing is known of the host, and where they would be executed', function()
    local bare = problem_on(trinity.cluster { name = 'bare', devices = { { name = 'cpu', type = 'cpu_core' } } }, 'float32')
    expect(function() bare:evaluate { mesh = {}, activation_offload_fraction = 1 } end)
      :raises "activation_offload_fraction: expected a device type with host_bandwidth_bytes_per_s"
    local problem = problem_on(on, 'float32')
    expect(function() trinity.execute(problem, problem:strategy { mesh = {}, activation_offload_fraction = 1 }) end)
      :raises 'activation_offload_fraction can be simulated but not executed'
  end)
  it('are written for clients and read back', function()
    local problem = problem_on(on, 'bfloat16')
    local function found(changes)
      return problem:strategy(merged({ mesh = { data = 8 }, zero_stage = 1, activation_offload_fraction = 0.25 }, changes))
    end
    local again = problem:load(found():save(temporary '.json'))
    expect(again.activation_offload_fraction):equals(0.25)
    expect(again.metrics.step_time_s):equals(found().metrics.step_time_s)
    expect(found():export { format = 'megatron', lossless = true }):matches '%-%-cpu%-offloading%-num%-layers 1\n'
    for _, changes in ipairs { { recompute = 'full' }, { activation_offload_fraction = 0.3 },
      { mesh = { data = 4, pipeline = 2 }, micro_batches = 2 } } do
      expect(function() found(changes):export { format = 'megatron', lossless = true } end)
        :raises 'it needs a whole number of layers, fewer than all, and no pipeline or recomputation'
    end
    local whole = found { activation_offload_fraction = 1, recompute = 'full' }
    local folder = temporary '.deepspeed'
    whole:export { format = 'deepspeed', lossless = true, folder = folder }
    local path = folder .. '/deepspeed.json'
    expect(trinity.files.json.read(path).activation_checkpointing.cpu_checkpointing):equals(true)
    expect(trinity.job(path).offload.checkpoints):equals(1)
    expect(function() found():export { format = 'deepspeed', lossless = true } end)
      :raises "it has 1, with recompute = 'full'"
    expect(function() found():export { format = 'accelerate', lossless = true } end)
      :raises 'activation_offload_fraction = 0.25'
  end)
end)

describe('a plan with it', function()
  it('is written for clients and read back', function()
    local problem, plan = problem_on(on, 'bfloat16'), { mesh = { data = 8 }, zero_stage = 1,
      optimizer_offload_fraction = 0.25 }
    local found = problem:strategy(plan)
    local again = problem:load(found:save(temporary '.json'))
    expect(again.optimizer_offload_fraction):equals(0.25)
    expect(again.metrics.step_time_s):equals(found.metrics.step_time_s)
    expect(found:export { format = 'megatron', lossless = true }):matches('%-%-use%-precision%-aware%-optimizer\n    '
      .. '%-%-optimizer%-cpu%-offload\n    %-%-optimizer%-offload%-fraction 0.25\n    %-%-overlap%-cpu%-optimizer%-d2h%-h2d\n')
    local function deepspeed(changes)
      local text = problem:strategy(merged(plan, changes)):export { format = 'deepspeed', lossless = true }
      return trinity.files.json.decode(text).zero_optimization.offload_optimizer
    end
    expect(deepspeed({ zero_stage = 3 }).ratio):equals(0.25)
    expect(deepspeed({ optimizer_offload_fraction = 1 }).device):equals 'cpu'
    expect(function() deepspeed {} end):raises 'ZeRO 3 has any, ZeRO 1 and 2 have 1'
  end)
  it('is found where nothing fits without, and only for runtimes that have it', function()
    local function plan(runtime, fraction)
      local cluster = trinity.cluster('dgx_h100:1', { runtime = runtime })
      return trinity.plan { cluster = cluster, global_batch = 2, runtime = runtime, quiet = true, simulations = 8,
        space = { optimizer_offload_fraction = fraction }, graph = function(micro_batch, layers)
          return trinity.model('llama-3-8b', { batch_size = micro_batch, layers = layers and math.min(layers, 24) or 24,
            sequence = 1024, cluster = cluster })
        end }
    end
    local found = plan 'megatron'
    expect(found.plans[1].optimizer_offload_fraction > 0):truthy()
    expect(tostring(found)):matches '%% of the optimizer on the host'
    expect(#plan('megatron', 0).plans + #plan('torchtitan').plans):equals(0)
    expect(function() plan('torchtitan', 1) end):raises 'CPU offload only with the weights'
  end)
  it('has activations on the host where nothing fits without, over NVLink-C2C or as an option says', function()
    local function plan(machine, sequence, fraction)
      local cluster = trinity.cluster(machine, { runtime = 'megatron' })
      return trinity.plan { cluster = cluster, global_batch = 1, runtime = 'megatron', quiet = true, simulations = 8,
        space = { recompute = 'none', optimizer_offload_fraction = 0, activation_offload_fraction = fraction },
        graph = function(micro_batch, layers)
          return trinity.model('decoder', { batch_size = micro_batch, layers = layers and math.min(layers, 16) or 16,
            hidden = 2048, heads = 16, feed_forward = 8192, gated = true, vocabulary = 16000, sequence = sequence,
            optimizer = 'adam', dtype = 'bfloat16', kernels = 'flash', gradient_dtype = 'float32' })
        end }
    end
    expect(#plan('gh200_4:1', 81920, 0).plans + #plan('dgx_h100:1', 65536).plans):equals(0)
    expect(plan('dgx_h100:1', 65536, 0.5).plans[1].activation_offload_fraction):equals(0.5)
    local found = plan('gh200_4:1', 81920).plans[1]
    expect(found.activation_offload_fraction > 0):truthy()
    expect(found.strategy:export { format = 'megatron', lossless = true }):matches '%-%-cpu%-offloading%-num%-layers'
    expect(tostring(found)):matches '%% of activations on the host'
    expect(found.lower_bound_s <= found.step_time_s):truthy()
  end)
end)
