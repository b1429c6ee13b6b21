-- Constants and runtimes of clusters: what a script gets by default, what it asks for, and what messages say about both.

local calibrate = require 'trinity.cluster.calibrate'
local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local runtimes = require 'trinity.cluster.runtimes'
local simulator = require 'trinity.strategy.simulator'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local function network(changes)
  return trinity.model('decoder', util.merged({ layers = 2, hidden = 1024, heads = 8, feed_forward = 2816, vocabulary = 4096,
    sequence = 512, dtype = 'bfloat16' }, changes))
end

local graph = network()
local function step_s(cluster, of, bucket_bytes)
  return trinity.problem { check_memory = false, graph = of or graph, cluster = cluster }
    :evaluate({ mesh = { data = 4 }, bucket_bytes = bucket_bytes }).step_time_s
end

local function plain(text, path) return (text:format(path):gsub('%p', '%%%0')) end

describe('constants of a cluster', function()
  it('are the calibrated ones where nothing is said, and say what they rest on', function()
    local cluster = trinity.cluster 'dgx_h100'
    local values, about = constants.calibrated 'h100'
    expect(model.device_type(cluster, 'h100').compute_efficiency):equals(values.compute_efficiency)
    expect(cluster.basis.name .. cluster.basis.runtime .. cluster.basis.kinds[1].kind):equals 'calibratedmegatronh100'
    expect(cluster.basis.kinds[1].rows):equals(about.rows)
    expect(calibrate.text(cluster.basis)):matches '^constants: h100: fitted to %d+ runs, mean error %d+%.%d %% left out; runtime: megatron$'
    expect(calibrate.text(trinity.cluster('dgx_h200').basis)):matches 'h200: as h100, fitted to'
    expect(step_s(cluster) ~= step_s(trinity.cluster('dgx_h100', { constants = 'data_sheet' }))):truthy()
  end)
  it('of links count in steps alone: a cluster says what they carry', function()
    local sheet, cluster = trinity.cluster('dgx_h100x2', { constants = 'data_sheet' }), trinity.cluster 'dgx_h100x2'
    for to = 2, 16, 7 do expect(select(2, cluster:wire(1, to))):equals(select(2, sheet:wire(1, to))) end
    local slow = { h100 = { inside_share = 0.1, network_share = 0.1 } }
    expect(step_s(trinity.cluster('dgx_h100x2', { constants = slow })) > 1.5 * step_s(cluster)):truthy()
  end)
  it('of a table or a file are its own, with the calibrated ones where it says nothing', function()
    local own = { h100 = { compute_efficiency = 0.3 } }
    local cluster = trinity.cluster('dgx_h100', { constants = own })
    expect(model.device_type(cluster, 'h100').compute_efficiency):equals(0.3)
    expect(model.device_type(cluster, 'h100').memory_efficiency):equals((constants.calibrated 'h100').memory_efficiency)
    local path = temporary '.lua'
    core.write_file(path, 'return { h100 = { compute_efficiency = 0.3 } }')
    expect(trinity.cluster('dgx_h100', { constants = path }).fingerprint):equals(cluster.fingerprint)
    expect(trinity_says(("info gpt2 --cluster dgx_h100 --constants '%s'"):format(path), 0)):matches(plain('constants: h100: own (%s); runtime: megatron', path))
    core.write_file(path, 'return { kinds = {}, runtimes = { megatron = { memory_share = 0.5 } } }')
    local read = constants.read(path)
    expect(runtimes.read('megatron-core-0.8', read.runtimes).memory_share):equals(0.5)
    core.write_file(path, 'return { kinds = {}, runtimes = { megatrom = {} } }')
    expect(select(2, pcall(constants.read, path))):matches "unknown runtime 'megatrom', did you mean 'megatron'"
    expect(cluster.fingerprint ~= trinity.cluster('dgx_h100').fingerprint):truthy()
  end)
  it('are not of kinds that a description defines, nor of those that were never compared, which warn once', function()
    local spec = require('trinity.cluster.nodes').spec 'dgx_h100'
    spec.device_types = { h100 = trinity.devices.h100 }
    local cluster = trinity.cluster(spec)
    expect(cluster.basis.runtime):equals(nil)
    expect(model.device_type(cluster, 'h100').compute_efficiency):equals(0.5)
    local said = trinity_says('info gpt2 --cluster dgx1_v100', 0, 'constants: v100: data sheet, never compared with a run')
    expect(select(2, said:gsub('warning: v100 has the numbers of its data sheet', ''))):equals(1)
    expect(trinity_says('info gpt2 --cluster dgx1_v100 --constants data_sheet', 0):find 'warning'):equals(nil)
    expect(trinity_says('info gpt2 --cluster p100x1', 0):find 'warning'):equals(nil)
  end)
  it('of a GPU variant with less power are the constants of its base type, scaled to its clock', function()
    local cluster = trinity.cluster 'hgx_h100_96gb'
    local reached = model.device_type(cluster, 'h100_96gb').compute_efficiency
    expect(reached):near((500 / 700) ^ (1 / 3) * constants.calibrated('h100').compute_efficiency, 1e-4)
    expect(calibrate.text(cluster.basis)):matches 'h100_96gb: as h100, fitted to'
    local own = trinity.cluster('hgx_h100_96gb', { constants = { h100_96gb = { clock = 1 } } })
    expect(model.device_type(own, 'h100_96gb').compute_efficiency):equals(constants.calibrated('h100').compute_efficiency)
  end)
  it('are kept with a cluster', function()
    local path = temporary '.json'
    for _, options in ipairs { {}, { runtime = 'eager' }, { constants = { h100 = { attention = 0.5 } } }, { constants = 'data_sheet' } } do
      local cluster = trinity.cluster('dgx_h100', options)
      core.write_file(path, model.cluster_json(cluster))
      local again = trinity.cluster(path)
      expect(again.fingerprint):equals(cluster.fingerprint)
      expect(again.basis.runtime):equals(cluster.basis.runtime)
      expect(step_s(again)):equals(step_s(cluster))
    end
  end)
  it('are named in JSON', function()
    local about = json.decode(trinity_says('info gpt2 --cluster dgx_a100 --json', 0)).one_device
    expect(about.runtime .. about.constants.name .. about.constants.kinds[1].like):equals 'megatroncalibrateda100_80gb'
  end)
  it('that are none are refused in a sentence', function()
    local function refused(options, words) expect(function() trinity.cluster('dgx_h100', options) end):raises(words) end
    refused({ constants = 'calibrate' }, "expected 'calibrated', 'data_sheet' or a file of Lua, got 'calibrate'")
    refused({ constants = { h10 = {} } }, "unknown kind of GPU 'h10', did you mean 'h100'")
    refused({ constants = { h100 = { atention = 1 } } }, "unknown constant 'atention', did you mean 'attention'")
    refused({ constants = { h100 = { attention = 0 } } }, "field 'attention': expected a number above 0, got number 0")
    refused({ constants = { h100 = { clock = 'fast' } } }, "field 'clock': expected a number above 0, got string 'fast'")
    refused({ runtime = 'megatrn' }, "unknown runtime 'megatrn', did you mean 'megatron'")
    trinity_says('info gpt2 --cluster dgx_h100 --runtime megatrn', 2, "did you mean 'megatron'")
  end)
end)

describe('runtimes', function()
  it('have a source each, and values of all fields', function()
    for name, one in util.sorted_pairs(runtimes.list) do
      expect(#one.source > 20):truthy()
      local values = runtimes.read(name)
      for _, entry in ipairs(runtimes.declared.all) do
        local open = entry.name == 'base' or entry.name == 'float8' or entry.name == 'matmul_workspace_bytes'
        if not open and values[entry.name] == nil then error(('%s: %s'):format(name, entry.name)) end
      end
    end
  end)
  it('change what they say, by name or by a table, and nothing where a network has no such kernels', function()
    local default_s = step_s(trinity.cluster 'dgx_h100')
    expect(step_s(trinity.cluster('dgx_h100', { runtime = 'eager' })) > 1.2 * default_s):truthy()
    local own = { base = 'megatron', memory_share = 0.5 }
    local cluster = trinity.cluster('dgx_h100', { runtime = own })
    expect(step_s(cluster) > 1.1 * default_s):truthy()
    expect(cluster.basis.runtime):equals 'megatron with memory_share = 0.5'
    for _, changes in ipairs { { cuda_graphs = 'none' }, { float8 = 'fp8_rowwise' }, { cast_share = 0.1 } } do
      expect(step_s(trinity.cluster('dgx_h100', { runtime = util.merged({ base = 'megatron' }, changes) }))):equals(default_s)
    end
    local asked = trinity.cluster('dgx1_v100', { runtime = 'megatron' })
    expect(step_s(asked, graph, 25000000) < step_s(trinity.cluster 'dgx1_v100')):truthy()
  end)
  it('pass over logits in float32 as often as they say', function()
    local function seconds(name, fused_loss)
      return step_s(trinity.cluster('dgx_h100', { runtime = name }), network { vocabulary = 65536, fused_loss = fused_loss }, 80000000)
    end
    local values = constants.calibrated 'h100'
    local moved = 28 * 512 * 65536 / (values.memory_efficiency * trinity.devices.h100.memory_bandwidth_bytes_per_s)
    expect(seconds 'megatron-core-0.8' - seconds 'megatron'):near(moved, 0.01 * moved)
    expect(seconds('megatron-core-0.8', true)):equals(seconds('megatron', true))
  end)
  it('give the size of gradient buckets where a strategy does not', function()
    local function bytes(name, strategy) return runtimes.bucket_bytes(runtimes.read(name), strategy) end
    expect(bytes('megatron', { mesh = { data = 8 } })):equals(80e6)
    expect(bytes('megatron', { mesh = { data = 64, context = 2, pipeline = 4 }, zero_stage = 1 })):equals(128e6)
    expect(bytes('megatron-2021', { mesh = { data = 8 } })):equals(2 ^ 50)
    for _, name in ipairs { 'torchtitan', 'eager', 'composer-2023' } do
      expect(bytes(name, { mesh = { data = 8 } })):equals(25000000)
      expect(bytes(name, { mesh = { data = 8, pipeline = 2 }, zero_stage = 1 })):equals(2 ^ 50)
    end
    expect(bytes('megatron', { mesh = { data = 8 }, zero_stage = 3 })):equals(25000000)
    for level = 1, 3 do expect(bytes('deepspeed', { mesh = { data = 512 }, zero_stage = level })):equals(1e9) end
    local cluster = trinity.cluster 'dgx_h100'
    expect(step_s(cluster)):equals(step_s(cluster, graph, 80000000))
    expect(step_s(cluster) ~= step_s(cluster, graph, 4000000)):truthy()
    local sheet = trinity.cluster('dgx_h100', { constants = 'data_sheet' }) -- without a runtime
    expect(step_s(sheet)):equals(step_s(sheet, graph, 25000000))
    local own = trinity.cluster('dgx_h100', { runtime = { base = 'megatron', bucket_elements = 2e6, replica_bucket_elements = 0 } })
    expect(step_s(own)):equals(step_s(cluster, graph, 4000000))
  end)
  it('overlap reductions of input gradients where a strategy does not say, also in bounds', function()
    local function step_and_bound(runtime, overlap)
      local problem = trinity.problem { check_memory = false, graph = graph, cluster = trinity.cluster('dgx_a100', { runtime = runtime }) }
      local strategy = { mesh = { tensor = 4 }, overlap_tp_grad_allreduce = overlap, bucket_bytes = 2 ^ 50 }
      local found = problem:evaluate(strategy).step_time_s
      expect(simulator.mesh_bounds(problem, { strategy })[1].step_time_s <= found):truthy()
      return found
    end
    expect(step_and_bound 'megatron-2022'):equals(step_and_bound('megatron-2021', true))
    expect(step_and_bound('megatron-2022', false)):equals(step_and_bound 'megatron-2021')
    expect(step_and_bound 'megatron-2022' < step_and_bound 'megatron-2021'):truthy()
  end)
  it('of networks with experts go by what CUDA graphs hold, expert by expert', function()
    local function seconds(experts, cuda_graphs)
      local of = network { experts = experts, experts_per_token = 2, expert_feed_forward = 128 }
      return step_s(trinity.cluster('dgx_h100', { runtime = { base = 'megatron', cuda_graphs = cuda_graphs } }), of)
    end
    expect(seconds(16, 'none') > seconds(16, 'attention') and seconds(16, 'attention') > seconds(16, 'all')):truthy()
    expect(seconds(32, 'attention') > 1.6 * seconds(16, 'attention')):truthy()
  end)
  it('send a token once to a node that has several of its experts, where their dispatcher does', function()
    local of = network { experts = 16, experts_per_token = 8, expert_feed_forward = 128, sequence = 4096 }
    local function seconds(nodes, dispatcher)
      local cluster = trinity.cluster('dgx_h100x' .. nodes, { runtime = { base = 'megatron', dispatcher = dispatcher } })
      return trinity.problem { check_memory = false, graph = of, cluster = cluster }
        :evaluate({ mesh = { data = 8 * nodes, expert = 8 * nodes } }).step_time_s
    end
    expect(seconds(2, 'flex')):below(seconds(2, 'alltoall'))
    expect(seconds(1, 'flex')):equals(seconds(1, 'alltoall'))
  end)
  it('say how operands of FP8 are scaled', function()
    local wide = network { hidden = 8192, heads = 64, feed_forward = 28672, dtype = 'float8' }
    local function seconds(machine, float8) return step_s(trinity.cluster(machine, { runtime = { base = 'megatron', float8 = float8 } }), wide) end
    expect(seconds('dgx_b200', 'nvfp4') < seconds('dgx_b200', 'mxfp8')):truthy()
    expect(seconds('dgx_b200', nil)):equals(seconds('dgx_b200', 'mxfp8'))
    expect(seconds('dgx_h100', nil)):equals(seconds('dgx_h100', 'fp8'))
  end)
end)
