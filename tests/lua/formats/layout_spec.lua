-- Megatron-LM's layouts: any stages to text and back, and what its own parser and rules say of layouts of all kinds
-- (tests/clients/megatron_arguments.py).

local core = require 'trinity.core'
local trinity = require 'trinity'
local layout = require 'trinity.strategy.layout'

local function random_stages(random)
  local count, stages = random:integer(12), {}
  for s = 1, count do
    stages[s] = { embedding = s == 1, layers = random:integer(10) - 1, ahead = 0, head = s == count }
    if random:integer(3) == 1 and s > 1 then stages[s].layers = stages[s - 1].layers end
  end
  return stages
end

describe('layouts of stages', function()
  it('say the same stages when they are read', function()
    local random = trinity.random(1, 'layouts')
    for _ = 1, 500 do
      local stages = random_stages(random)
      local text = layout.text(stages)
      local back = layout.read(text)
      expect(#back):equals(#stages, text)
      for s, stage in ipairs(stages) do
        expect(back[s].layers):equals(stage.layers, text)
        expect(back[s].embedding == 1):equals(stage.embedding, text)
        expect(back[s].head == 1):equals(stage.head, text)
      end
    end
  end)
  it('are short', function()
    local stages = { { embedding = true, layers = 3, head = false } }
    for s = 2, 30 do stages[s] = { layers = 2 } end
    stages[31] = { layers = 0, head = true }
    expect(layout.text(stages)):equals 'Ettt|(tt|)*29L'
  end)
  it("are read, taken and refused as by Megatron-LM's parser and rules", function()
    local record = trinity.files.json.decode(trinity.files.read(core.home .. '/tests/data/clients/megatron_layouts.json'))
    local names, taken = { E = 'embedding', t = 'decoder', m = 'mtp', L = 'loss' }, 0
    for _, row in ipairs(record.layouts) do
      local what = ('%s on %d, %d layers, %d ahead'):format(row.text, row.pipeline, row.layers, row.ahead)
      local ok, stages = pcall(layout.read, row.text)
      local why = ok and layout.refusal(stages, row.pipeline, row.layers, row.ahead, true) or not ok and stages
      expect(why == nil or why == false):equals(row.taken, what)
      taken = taken + (row.taken and 1 or 0)
      for s, units in ipairs(row.stages or {}) do
        expect(#units):equals(#stages[s].order, what)
        for k, unit in ipairs(units) do expect(names[stages[s].order:sub(k, k)]):equals(unit, what) end
      end
    end
    expect(10):below(taken)
  end)
  it('of contiguous plans are those that Megatron-LM parsed to the same stages', function()
    local record = trinity.files.json.decode(trinity.files.read(core.home .. '/tests/data/clients/megatron_layouts.json'))
    local plans = dofile(core.home .. '/tests/clients/cases.lua').layouts()
    expect(#record.plans):equals(#plans)
    for i, plan in ipairs(plans) do expect(plan.text):equals(record.plans[i]) end
  end)
  it('of stages without a layer are refused, though it takes them: users saw them hang', function()
    expect(layout.refusal(layout.read 'Ett|tt||ttL', 4, 6)):equals 'stage 3 is empty'
    expect(layout.refusal(layout.read 'Ett|tt||ttL', 4, 6, 0, true)):equals(nil)
  end)
  it('name what is wrong', function()
    local function refused(text, pipeline, layers, message)
      expect(layout.refusal(layout.read(text), pipeline, layers)):equals(message)
    end
    refused('Ett|tt|ttL', 2, 6, '3 stages, expected a multiple of pipeline-model-parallel-size = 2')
    refused('tt|ttL', 2, 4, 'the first unit is not E (the embedding)')
    refused('Ett|tt', 2, 4, 'the last unit is not L (head and loss)')
    refused('Ett|ttL', 2, 5, '4 t, expected num-layers = 5')
    refused('Etm|ttL', 2, 3, 'stage 2 has layers after the first m')
    expect(function() layout.read('Etx|L', 'plan.txt') end):raises "plan.txt: stage 1 %('Etx'%): expected E, t, m or L, got 'x'"
    expect(function() layout.read('Et*9999999|L', 'plan.txt') end):raises 'at most 65536 units'
  end)
end)

describe('a layout of a strategy', function()
  local problem = trinity.problem { cluster = trinity.cluster 'p100x4',
    graph = trinity.model(core.home .. '/tests/data/clients/models/llama.json', { sequence = 32, layers = 6 }) }
  local function with(fields)
    return problem:strategy(merged({ mesh = { pipeline = 2 }, micro_batches = 4, layout = 'Et|(tt|)*2tL' }, fields))
  end
  it('is its stages, uneven virtual ones, too, and is written as it was read', function()
    local found = with()
    expect(found == problem:strategy { mesh = { pipeline = 2 }, micro_batches = 4, schedule = 'interleaved',
      virtual_stages = 2, stages = { 1, 2, 2, 1 } }):equals(true)
    expect((found:export { format = 'megatron' })):matches "layout 'Et|tt|tt|tL'"
  end)
  it('may have the embedding or the loss alone in a stage', function()
    local found = with { layout = 'E|ttttttL' }
    expect(found:breakdown().stages[1].layers):equals(0)
    expect((found:export { format = 'megatron' })):matches "layout 'E|t%*6L'"
  end)
  it('is refused where Megatron-LM refuses it, or the strategy says something else', function()
    local function refused(fields, message) expect(function() with(fields) end):raises(message) end
    refused({ layout = 'Et|ttL' }, 'layout: 3 t, expected num%-layers = 6')
    refused({ layout = 'Ett|tt|ttL' }, 'layout: 3 stages, expected a multiple of pipeline%-model%-parallel%-size = 2')
    refused({ layout = 'Ettt|tttmL' }, 'layout: 1 m, expected mtp%-num%-layers = 0')
    refused({ layout = 'Ettx|tttL' }, "layout: stage 1 %('Ettx'%): expected E, t, m or L, got 'x'")
    refused({ stages = { 1, 2, 2, 1 } }, "layout: cannot be combined with 'stages'")
    refused({ virtual_stages = 3 }, 'layout: expected virtual_stages = 2 as in the layout, got 3')
    refused({ schedule = 'zb-v' }, "layout: expected a schedule that assigns virtual stages round%-robin %(not V%-shaped%), got 'zb%-v'")
  end)
  it('has layers that predict further tokens next to the loss', function()
    local graph = trinity.model('decoder', { sequence = 32, layers = 4, hidden = 64, heads = 4, vocabulary = 128,
      further = 1 })
    local ahead = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4' }
    local found = ahead:strategy { mesh = { pipeline = 2 }, micro_batches = 2, layout = 'Ett|ttmL' }
    expect((found:export { format = 'megatron' })):matches "layout 'Ett|ttmL'"
    expect(function() ahead:strategy { mesh = { pipeline = 2 }, micro_batches = 2, layout = 'Ett|ttL' } end)
      :raises 'layout: 0 m, expected mtp%-num%-layers = 1'
    expect(function() ahead:strategy { mesh = { pipeline = 4 }, micro_batches = 2, layout = 'Ett|tt|m|L' } end)
      :raises 'layout: expected m in the last stage'
  end)
  it('restricts a search to its stages', function()
    local found = trinity.plan { graph = problem.graph, cluster = problem.cluster, global_batch = 8, simulations = 8,
      space = { layout = 'Et|(tt|)*2tL', micro_batch = 1 }, quiet = true }
    expect(#found.simulated > 0):equals(true)
    for _, plan in ipairs(found.simulated) do
      expect(table.concat(plan.stages, ' ')):equals '1 2 2 1'
      expect(plan.pipeline * plan.virtual_stages):equals(4)
    end
  end)
end)
