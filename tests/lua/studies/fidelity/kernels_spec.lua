-- trinity study fidelity kernels: measured matmuls and all-to-alls of experts against single operators and collectives.

local core = require 'trinity.core'
local dispatcher = require 'trinity.stragglers.dispatcher'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local matmuls = 'system,dtype,kernel,m,n,k,time_us\n'
local exchanges = 'system,library,release,mode,nodes,ep,hidden,tokens_per_gpu,top_k,experts,dtype,sms,dispatch_us,combine_us\n'

local function written(text)
  local path = temporary '.csv'
  core.write_file(path, text)
  return path
end

local function says(rows, all_to_alls, status, pattern)
  return trinity_says(("study fidelity kernels --json --every 1 --rows '%s' --exchanges '%s'"):format(
    written(matmuls .. rows), written(exchanges .. all_to_alls)), status, pattern)
end

local exchange = 'h100_sxm,deepep,1,normal,%d,%d,7168,4096,8,256,bf16,20,%.17g,%.17g\n'

describe('measured kernels', function()
  it('are compared with one operator on one GPU, by size and dtype; FP8 with the copy of its input', function()
    local net = trinity.graph.layers.new('one', { dtype = 'float8' })
    net:linear('product', net:operand('copy', net:input('x', { 4096, 2048 })), 1024)
    local graph = net:build()
    local problem = trinity.problem { graph = graph, check_memory = false,
      cluster = trinity.cluster { devices = { { name = 'gpu', type = 'h100' } } } }
    local times, predicted_s = problem:operator_times(1), 0
    for op = 1, graph.operators do predicted_s = predicted_s + times[op] end
    local list = json.decode(says(('h100_sxm,fp8,k,4096,1024,2048,%.17g\n'):format(1e6 * predicted_s / 1.25)
      .. 'h100_sxm,bfloat16,k,512,512,512,1e9\nh100_sxm,bfloat16,k,8192,8192,8192,1e9\nunknown,fp8,k,512,512,512,1\n', '', 0)).kernels
    expect(#list):equals(3)
    expect(list[1].group == 'h100, bfloat16' and list[1].class == 'below 10 GFLOP' and list[2].class == 'above 1 TFLOP'):truthy()
    expect(list[1].signed < -0.99 and list[1].form > 0):truthy()
    expect(list[3].group):equals 'h100, float8'
    expect(list[3].signed):near(0.25, 1e-9)
    expect(list[3].form):near(0, 1e-9)
  end)
  it('of experts are compared with a message of DeepEP, which dispatches in FP8', function()
    local members, slow = {}, {} -- AIConfigurator's H100 nodes: adapters of half a DGX's rate
    for i = 1, 16 do
      members[i] = i
      slow[('n%d/nic%d'):format((i - 1) / 8, (i - 1) % 8)] = 2
    end
    local cluster = trinity.cluster('dgx_h100x2', { slow = slow })
    expect(select(2, cluster:wire(1, 9))):equals(select(2, trinity.cluster('dgx_h100x2'):wire(1, 9)) / 2)
    local function time_s(bytes)
      return dispatcher.message_s('deepep', cluster, members, { tokens = 4096, top_k = 8, experts = 256,
        token_bytes = bytes, multiprocessors = 20 })
    end
    local list = json.decode(says('', exchange:format(2, 16, 2e6 * time_s(7168 + 4 * 7168 / 128), 0.5e6 * time_s(2 * 7168)), 0)).kernels
    expect(#list == 2 and list[1].group == 'h100, dispatch' and list[2].group == 'h100, combine'):truthy()
    expect(list[1].signed):near(-0.5, 1e-9)
    expect(list[2].signed):near(1, 1e-9)
  end)
  it('refuses what it cannot read, in one line', function()
    says('h100_sxm,fp8,k,0,512,512,1\n', '', 1, "column 'm': expected a whole number from 1, got string '0'")
    says('', exchange:format(1, 0, 1, 1), 1, "column 'ep': expected a whole number from 1")
  end)
end)
