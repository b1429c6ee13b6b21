-- CPU offload of the optimizer: bytes leave the device, updates take the host's time, clients get it without loss.

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
end)
