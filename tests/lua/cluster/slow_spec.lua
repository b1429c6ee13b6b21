-- Clusters with slow devices and links (option `slow`).

local trinity = require 'trinity'

local graph = trinity.model('gpt2', { layers = 8, hidden = 512, heads = 8, batch_size = 1, sequence = 256,
  positions = 256, vocabulary = 1024, dtype = 'bfloat16' })
local mesh = { mesh = { data = 2, pipeline = 2, tensor = 4 }, micro_batches = 8, zero_stage = 1 }

local function problem(slow)
  return trinity.problem { graph = graph, cluster = trinity.cluster('dgx_a100x2', { slow = slow }) }
end

describe('what is slow', function()
  it('simulates classes of equal devices with the result of simulating all devices', function()
    for name, at_least in trinity.system.sorted_pairs { ['n1/gpu0'] = 1.05, ['n0/gpu3'] = 1.05, ['n1/nic0'] = 1 } do
      local slow = problem { [name] = 1.5 }
      local metrics, all = slow:evaluate(mesh), slow:timeline(mesh).metrics
      expect(metrics.step_time_s):equals(all.step_time_s)
      expect(slow:simulated_devices(mesh)):below(16)
      expect(at_least * problem():evaluate(mesh).step_time_s):below(metrics.step_time_s)
    end
  end)
  it('leaves on 8,192 GPUs as few simulated devices as differ', function()
    local large = trinity.model('gpt2', { layers = 8, hidden = 512, heads = 8, batch_size = 1, sequence = 256, positions = 256,
      vocabulary = 1024 })
    local function on(slow)
      return trinity.problem { graph = large, cluster = trinity.cluster('dgx_h100x1024', { slow = slow }) }
    end
    local quiet, slow = on(), on { ['n7/gpu3'] = 1.3 }
    -- its own pipeline group, groups that share its collectives, and groups of replicas that wait for these
    for _, case in ipairs {
      { { data = 128, pipeline = 8, tensor = 8 }, 4 },
      { { data = 1024, pipeline = 8 }, 2 },
      { { data = 128, pipeline = 4, tensor = 4, context = 4 }, 6 },
      { { data = 64, pipeline = 2, tensor = 8, context = 8 }, 6 },
    } do
      local plan = { mesh = case[1], micro_batches = 16, zero_stage = 1, sequence_parallel = (case[1].tensor or 1) > 1 }
      expect(slow:simulated_devices(plan)):equals(case[2] * quiet:simulated_devices(plan))
    end
  end)
  it('multiplies the times of the named device, however machines are listed', function()
    for _, name in ipairs { 'dgx_a100x2', 'dgx_a100x80' } do -- machines one by one, and as one that is repeated
      local cluster = trinity.cluster(name, { slow = { ['n1/gpu2'] = 2 } })
      local plain = trinity.cluster(name)
      for i, device in ipairs(cluster.devices) do
        expect(device.name):equals(plain.devices[i].name)
        expect(device.speed):equals(i == 11 and 0.5 or 1)
      end
    end
  end)
  it('is all devices of a machine by its name', function()
    for _, name in ipairs { 'dgx_a100x2', 'dgx_a100x80' } do
      for i, device in ipairs(trinity.cluster(name, { slow = { n1 = 2 } }).devices) do
        expect(device.speed):equals(i > 8 and i <= 16 and 0.5 or 1)
      end
    end
  end)
  it('is a link by its name, or all links of an end that is no device', function()
    local plain = select(2, trinity.cluster 'dgx_a100x2':wire(1, 9))
    for _, name in ipairs { 'n1/nic0', 'n1/nic0 -> infiniband', 'infiniband -> n1/nic0' } do
      local cluster = trinity.cluster('dgx_a100x2', { slow = { [name] = 2 } })
      expect(select(2, cluster:wire(1, 9))):equals(plain / 2)
    end
    expect(select(2, trinity.cluster('dgx_a100x2', { slow = { ['n1/gpu0'] = 2 } }):wire(1, 9))):equals(plain)
  end)
  it('is refused where nothing has the name, and where a factor is none', function()
    expect(function() problem { ['n1/gpu9'] = 2 } end):raises "no device, machine, end of a link or link 'n1/gpu9', did you mean 'n1/gpu"
    expect(function() problem { ['n1/gpu0'] = 0 } end):raises 'a factor above 0, got n1/gpu0 = number 0'
    trinity_says('info mlp --cluster dgx_a100x2 --slow n1/gpu0', 2, "option '%-%-slow': expected names with factors as "
      .. "n7/gpu3=1.3,n1=2, got 'n1/gpu0'")
  end)
end)

it('commands simulate slow devices where --slow names them', function()
  local slow = trinity_says("simulate --model mlp --cluster dgx_a100x1 --slow 'n0/gpu0=3,n0/gpu0 -> n0/nic0=2' --json --run none", 0)
  local plain = trinity_says('simulate --model mlp --cluster dgx_a100x1 --json --run none', 0)
  local function step(text) return tonumber(text:match '"step_time_s": ?([%d.e+-]+)') end
  expect(step(slow)):near(3 * step(plain), 1e-6)
end)
