-- Own costs of operators: functions, rows and CSV files, what plans make of them, and what they do not cover.

local core = require 'trinity.core'
local trinity = require 'trinity'

local cluster = trinity.cluster 'dgx_a100'
local graph = trinity.model('gpt2', { layers = 2, hidden = 64, heads = 4, vocabulary = 256, sequence = 32, positions = 32,
  batch_size = 2, fused = false, dropout = 0 })

local function problem(cost) return trinity.problem { graph = graph, cluster = cluster, cost = cost } end
local function step_s(cost, plan) return problem(cost):evaluate(plan).step_time_s end
local function rows(list, head)
  local path = temporary '.csv'
  core.write_file(path, (head or 'type,device_type,time_s') .. '\n' .. table.concat(list, '\n') .. '\n')
  return path
end

describe('own costs', function()
  it('hold under a mesh: of replicas whole, of parts by their share', function()
    local function twice(_, _, default_s) return 2 * default_s end
    for _, plan in ipairs { { mesh = { data = 4 } }, { mesh = { tensor = 4 } }, { mesh = { pipeline = 2 }, micro_batches = 4 },
      { mesh = { tensor = 2, pipeline = 2 }, micro_batches = 4, schedule = 'zb-h1', recompute = 'full' },
      { mesh = { data = 2 }, zero_stage = 1 } } do
      local plain, own = problem(), problem(twice)
      local a, b = plain:evaluate(plan), own:evaluate(plan)
      for d = 1, a.device_count do
        expect(b:compute_busy_s(d)):near(2 * a:compute_busy_s(d), 1e-6) -- every time is whole nanoseconds
      end
    end
  end)
  it('are the same of one device, of a mesh of one and of one replica of several', function()
    local own = problem(function(op) if op.type == 'Gemm' or op.type == 'GemmGrad' then return 1e-3 end end)
    local one = own:evaluate(own:placement())
    expect(own:evaluate { mesh = {} }:compute_busy_s(1)):equals(one:compute_busy_s(1))
    expect(own:evaluate { mesh = { data = 8 } }:compute_busy_s(5)):equals(one:compute_busy_s(1))
  end)
  it('are asked for once an operator and kind of device, however many plans are evaluated', function()
    local asked = 0
    local own = problem(function() asked = asked + 1 end)
    expect(asked):equals(graph.operators)
    expect(own:evaluate(own:placement()).step_time_s):equals(problem():evaluate(own:placement()).step_time_s)
    own:evaluate_batch { { mesh = { data = 2 } }, { mesh = { tensor = 2 } }, { mesh = { pipeline = 2 }, micro_batches = 2 } }
    expect(asked):equals(graph.operators)
  end)
  it('are rows or a CSV file: by name before type, of a device type or of any', function()
    local list = { { type = 'Gemm', time_s = 2e-3 }, { type = 'Gemm', device_type = 'h100', time_s = 9 },
      { operator = 'block_1/feed_forward/inner', time_s = 7e-3 } }
    local of_rows = problem(list)
    local path = rows({ (',Gemm,,2e-3'), ',Gemm,h100,9', ('%s,,,7e-3'):format(list[3].operator) },
      'operator,type,device_type,time_s')
    local of_file = problem(path)
    local times = of_rows:operator_times(1)
    for i = 1, graph.operators do
      local op = graph:operator(i)
      expect(of_file:operator_times(1)[i]):equals(times[i])
      if op.name == list[3].operator then expect(times[i]):equals(7e-3)
      elseif op.type == 'Gemm' then expect(times[i]):equals(2e-3) end
    end
    expect(step_s(path, { mesh = { tensor = 2 } })):equals(step_s(list, { mesh = { tensor = 2 } }))
  end)
  it('say what they cover, and what the cost model says', function()
    local of = problem(rows { 'Gemm,a100,1e-3' })
    local coverage = of.cost_coverage.a100
    expect(coverage.covered > 0):truthy()
    expect(coverage.by_model.Gemm):equals(nil)
    expect(coverage.by_model.GemmGrad):equals(coverage.covered)
    expect(of:cost_text()):matches '^own times of %d+ of %d+ operators on a100; by the cost model: .*GemmGrad %d+.*, messages and'
    expect(problem():cost_text()):equals(nil)
  end)
  it('are refused where a row names no operator, is repeated or has no number', function()
    local function refused(list, message, head)
      expect(function() problem(rows(list, head)) end):raises('line %d: ' .. message)
    end
    refused({ 'Gem,a100,1' }, "graph 'gpt2_small': unknown type 'Gem', did you mean 'Gemm'")
    refused({ 'Gemm,a11,1' }, "device_type: unknown 'a11'")
    refused({ 'Gemm,a100,x' }, "column 'time_s': expected a number, got string 'x'")
    refused({ 'Gemm,a100,1', 'Gemm,a100,2' }, "expected one time of 'Gemm' on a100, got a second")
    refused({ ',a100,1' }, "expected either 'operator' or 'type'")
    expect(function() problem(rows({ 'Gemm,1' }, 'type,time')) end):raises "column 'time_s' is missing, did you mean 'time'"
    expect(function() problem(7) end):raises "option 'cost': expected a function, a list of rows or the path of a CSV file, got number 7"
    expect(function() problem(rows({}, 'type,time_s')) end):raises "no row applies: expected one with device_type "
    expect(function() problem { { type = 'Gemm', device_type = 'k80', time_s = 1 } } end):raises 'no row applies'
    expect(function() problem { { type = 'Gemm' } } end):raises "option 'cost': row 1: field 'time_s' is missing"
    expect(function() problem(rows({ 'Gemm,1,2' }, 'type,time_s,batch')) end):raises "unknown column 'batch'"
  end)
end)

describe('a plan with own costs', function()
  local function network(samples)
    return trinity.model('gpt2', { layers = 2, hidden = 64, heads = 4, vocabulary = 256, sequence = 32, positions = 32,
      batch_size = samples, fused = false, dropout = 0 })
  end
  it('is evaluated with them, and no bound is above a step', function()
    local found = trinity.plan { graph = network, cluster = trinity.cluster 'dgx_a100:4', global_batch = 8, quiet = true,
      cost = function(op, _, default_s) if op.phase == 'backward' then return 5 * default_s end end }
    local best = found.plans[1]
    local other = trinity.problem { graph = network(best.micro_batch), cluster = trinity.cluster 'dgx_a100:4',
      cost = function(op, _, default_s) if op.phase == 'backward' then return 5 * default_s end end }
    expect(other:evaluate(best.fields).step_time_s):equals(best.step_time_s)
    for _, plan in ipairs(found.simulated) do expect(plan.lower_bound_s <= plan.step_time_s):truthy() end
    expect(found.lower_bound_s <= best.step_time_s):truthy()
  end)
  it('takes rows for one micro-batch alone', function()
    local list = { { type = 'Gemm', time_s = 1e-3 } }
    local function plan(space)
      return trinity.plan { graph = network, cluster = trinity.cluster 'dgx_a100:4', global_batch = 8, quiet = true,
        cost = list, space = space }
    end
    expect(function() plan() end):raises "option 'cost': rows are seconds at one micro%-batch: expected dimension micro_batch"
    expect(plan { micro_batch = 2 }.plans[1].micro_batch):equals(2)
  end)
end)
