-- trinity study fidelity vtrain: rows become strategies on a cluster, whose evaluation is the prediction.

local calibrate = require 'trinity.cluster.calibrate'
local case = require 'studies.fidelity.case'
local core = require 'trinity.core'
local errors = require 'studies.fidelity.errors'
local json = require 'trinity.base.json'
local nodes = require 'trinity.cluster.nodes'
local runtimes = require 'trinity.cluster.runtimes'
local statistics = require 'studies.statistics'
local trinity = require 'trinity'
local util = require 'trinity.base.util'
local vtrain = require 'studies.fidelity.vtrain'

local head = '# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,'
  .. 'data parallelism,pipeline parallelism,iteration time (ms)'

local function file_of(lines, ends)
  local path = temporary '.csv'
  core.write_file(path, table.concat(lines, ends or '\n') .. (ends or '\n'))
  return path
end

local function told(path)
  return json.decode(trinity_says(("study fidelity vtrain --json --rows '%s'"):format(path), 0):match '{.*}').rows
end

local function refused(line, words)
  expect(trinity_says(("study fidelity vtrain --rows '%s'"):format(file_of { head, line }), 1)):matches(words)
end

-- A network of four narrow layers: GPUs, batch, micro-batch, tensor, data, pipeline.
local function small(gpus, batch, micro_batch, tensor, data, pipeline, time_ms)
  return ('%d,%d,%d,64,16,4,32,%d,%d,%d,%s'):format(gpus, batch, micro_batch, tensor, data, pipeline, time_ms or '')
end

local function rows_of(path) return vtrain.read { rows = path, cluster = '' } end

--- An A100 whose host needs 100 us for a kernel.
local function slow_host(gpus)
  local spec = nodes.spec(('dgx_a100_80gb:%d'):format(gpus))
  spec.device_types = { a100_80gb = trinity.devices.with('a100_80gb', { dispatch_s = 100e-6, fuses_elementwise = true,
    joins_products = true, overlap = 0, compute_efficiency = 0.8, memory_efficiency = 0.85 }) }
  return spec
end

describe('where the host sets the pace', function()
  -- Evaluated and on a timeline, layer by layer in both: tensor, data, pipeline, and what a plan says more.
  local function same(tensor, data, pipeline, says)
    local gpus = tensor * data * pipeline
    local graph = trinity.model('gpt2', { layers = 4, hidden = 1024, heads = 16, sequence = 512, batch_size = 1, fused = false,
      kernels = 'megatron', dtype = 'float16', gradient_dtype = 'float16', optimizer = 'adam' })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster(slow_host(gpus)) }
    local plan = util.merged({ mesh = { tensor = tensor, data = data, pipeline = pipeline }, micro_batches = 2,
      scatter_gather = true, bucket_bytes = 2 ^ 50 }, says)
    local seen = problem:timeline(problem:strategy(plan)).metrics.step_time_s
    expect(problem:evaluate(plan).step_time_s):equals(seen)
  end
  it('a step with parts of layers is evaluated as its timeline is', function() same(2, 1, 1) end)
  it('a step of several replicas is', function()
    same(1, 2, 1)
    same(2, 2, 2)
    same(2, 2, 1, { recompute = 'full' })
  end)
  it('a step that shards states is', function()
    for zero_stage = 1, 3 do same(1, 4, 1, { zero_stage = zero_stage }) end
    same(2, 2, 1, { zero_stage = 3 })
  end)
  it('a step with parts of sequences is', function()
    same(2, 2, 1, { sequence_parallel = true, scatter_gather = false })
    same(1, 2, 1, { mesh = { tensor = 1, data = 1, context = 2 } })
  end)
end)

describe('heads of a device times its micro-batch that are no multiple of 4', function()
  local function seconds(tensor, micro_batch, heads)
    local path = file_of { head .. ',recompute', ('8,%d,%d,1024,%d,8,256,%d,%d,1,,none'):format(micro_batch * 8 / tensor, micro_batch,
      heads, tensor, 8 / tensor) }
    local one = util.merged(rows_of(path)[1].case, { cluster = slow_host(8) })
    local graph = trinity.model(one.model, one.model_options)
    return case.evaluate(one).step_time_s, graph:find 'block_1/attention/softmax/scaled' ~= nil
  end
  it('have a softmax of several kernels, as in Megatron-LM', function()
    local taken, apart = seconds(8, 1, 32)
    expect(apart):equals(false)
    local several, now_apart = seconds(8, 1, 16)
    expect(now_apart):equals(true)
    -- Four more kernels per layer, and backward three: the gradient of the cast after them is joined with the dropout's.
    expect((several - taken) / 8):near(7 * 100e-6, 1e-6)
    expect(select(2, seconds(8, 2, 16))):equals(false)
  end)
end)

describe('rows of vTrain', function()
  it('are predicted in their order, with a mark at the start, line ends of Windows, and no times', function()
    local lines = { '\239\187\191' .. head, small(16, 32, 1, 2, 8, 1), small(8, 8, 1, 2, 2, 2), small(16, 32, 2, 1, 8, 2, '7.5') }
    local found = told(file_of(lines, '\r\n'))
    expect(#found):equals(3)
    local without = {}
    for i, line in ipairs(lines) do without[i] = line:gsub(',[^,]*$', '') end
    without[1] = (head:gsub(',[^,]*$', ''))
    local again = told(file_of(without))
    for i = 1, 3 do
      expect(found[i].predicted_s > 0):equals(true)
      expect(again[i].predicted_s):equals(found[i].predicted_s)
    end
  end)
  it('that are malformed are named', function()
    refused('8,8,1,64,4,4,32,2,2,1,', 'line 2: tensor x data x pipeline parallelism: expected 8 GPUs, got 2 x 2 x 1')
    refused('8,9,1,64,4,4,32,2,2,2,', "line 2: column 'global batch': expected a multiple of 2 %(data x micro batch%), got 9")
    refused('8,8,1,64,4,4,32,2,2,2,fast', "line 2: column 'iteration time %(ms%)': expected a number")
    refused('8,8,1,64,4,4,32,2,2,2,-1', "line 2: column 'iteration time %(ms%)': expected more than 0, got %-1")
    refused('8,8,0.5,64,4,4,32,2,2,2,', "line 2: column 'micro batch': expected a whole number from 1 to 4096, got 0.5")
    refused('8,8,1,64,5,4,32,1,4,2,', "line 2: attention 'block_1/attention': expected a width divisible by heads .*, got width 64, 5 heads")
    refused('8,8,1,64,4,4,32,1,1,8,', "line 2: column 'pipeline parallelism': expected at most 4 %(layers%), got 8")
    refused('12,12,1,64,4,4,32,2,3,2,', 'expected whole machines of 8, got 12')
    refused('8,8,1,64,4,4,32,2,2', 'line 2: expected 11 fields, got 9')
    local path = file_of { (head:gsub('# layers', 'layer')), '8,8,1,64,4,4,32,2,2,2,' }
    expect(trinity_says(("study fidelity vtrain --rows '%s'"):format(path), 1)):matches "column '# layers' is missing"
  end)
  it('have micro-batches of 1 where the cell is empty', function()
    local found = told(file_of { head, '8,8,,64,4,4,32,2,2,2,', '8,8,1,64,4,4,32,2,2,2,' })
    expect(found[1].predicted_s):equals(found[2].predicted_s)
  end)
  it('that are all refused have a sentence each', function()
    local path = file_of { head, '8,8,x,64,4,4,32,2,2,2,', '8,8,1,64,4,0,32,2,2,2,' }
    trinity_says(("study fidelity vtrain --rows '%s'"):format(path), 1,
      "line 2: column 'micro batch': .*line 3: column '# layers': .*no row is left: all 2 are refused")
    local found = json.decode(trinity_says(("study fidelity vtrain --json --rows '%s'"):format(path), 1, 'no row is left'):match '{.*}').rows
    expect(#found == 2 and found[2].refused):matches "line 3: column '# layers'"
  end)
  it('that are refused are named by their line in the file, below empty lines and fields of several lines', function()
    local path = file_of({ 'note,' .. head, '', '"two\nlines",' .. small(16, 32, 1, 2, 8, 1), ',8,8,1,64,4,0,32,2,2,2,' }, '\r\n')
    trinity_says(("study fidelity vtrain --rows '%s'"):format(path), 0, "line 5: column '# layers': expected")
  end)
  it('that are refused cost none of the others, whose order stays', function()
    local lines = { head, small(16, 32, 1, 2, 8, 1), '8,8,1,64,4,4,32,2,2,1,', small(8, 8, 1, 2, 2, 2) }
    local out = trinity_says(("study fidelity vtrain --json --rows '%s'"):format(file_of(lines)), 0, 'warning: .*line 3: tensor x data')
    local found = json.decode(out:match '{.*}').rows
    expect(found[1].predicted_s > 0 and found[3].predicted_s > 0):truthy()
    expect(found[2].predicted_s):equals(nil)
    expect(found[2].refused):matches 'line 3: tensor x data x pipeline parallelism: expected 8 GPUs'
    local other = told(file_of { head, lines[4], lines[2] })
    expect(other[1].predicted_s):equals(found[3].predicted_s)
    expect(other[2].predicted_s):equals(found[1].predicted_s)
  end)
  it('whose layers do not divide have stages as equal as they can be, embedding and head a layer each', function()
    local function stages(layers, count) return table.concat(case.stages(layers, count), ' ') end
    expect(case.stages(12, 4)):equals(nil)
    expect(stages(10, 4)):equals '2 3 3 2'
    expect(stages(11, 4)):equals '2 4 3 2'
    expect(stages(5, 2)):equals '3 2'
    expect(stages(7, 3)):equals '2 3 2'
  end)
end)

describe('constants of training', function()
  it('are in steps alone where they are of links, and fields of device types, of few machines and of many', function()
    local choice = { name = 'mine.lua', kinds = { a100 = { compute_efficiency = 0.5, half_width = 30, inside_share = 0.5,
      network_share = 0.25, launch_s = 1e-6 } } }
    for _, name in ipairs { 'dgx_a100x2', 'dgx_a100x100' } do
      local spec = nodes.spec(name)
      local sheet = calibrate.apply(spec, choice, runtimes.read 'megatron', true)
      local step, basis = calibrate.apply(spec, choice, runtimes.read 'megatron', true, {})
      local plain, made = trinity.cluster(sheet), trinity.cluster(step)
      expect(select(2, made:wire(1, 2))):near(0.5 * select(2, plain:wire(1, 2)), 1)
      expect(select(2, made:wire(1, 9))):near(0.25 * select(2, plain:wire(1, 9)), 1)
      expect(select(2, plain:wire(1, 2))):equals(select(2, trinity.cluster(name):wire(1, 2)))
      local type = step.device_types.a100
      expect(type.half_width == 30 and type.launch_s == 1e-6 and type.compute_efficiency == 0.5):truthy()
      expect(type.fuses_elementwise and type.joins_products):equals(true)
      expect(calibrate.text(basis)):equals 'constants: a100: own (mine.lua); runtime: megatron'
    end
  end)
  it('of a run of mine come back from times that they made, and serve other commands', function()
    local folder = temporary()
    core.write_file(folder .. '/mine.lua', "return function(gpus) return require('trinity.cluster.nodes').spec('dgx_a100_80gb:' .. gpus) end")
    core.write_file(folder .. '/truth.lua', 'return { a100_80gb = { compute_efficiency = 0.6, memory_efficiency = 0.8 } }')
    local lines = { head }
    for i, plan in ipairs { { 8, 1, 4, 1 }, { 4, 1, 4, 1 }, { 8, 2, 2, 1 }, { 8, 4, 1, 1 }, { 4, 1, 2, 2 } } do
      lines[i + 1] = ('4,64,%d,4096,32,8,1024,%d,%d,%d,'):format(unpack(plan))
    end
    local words = ("study fidelity vtrain --rows '%s' --cluster '%s/mine.lua'"):format(file_of(lines), folder)
    local seconds = json.decode(trinity_says(('%s --constants %s/truth.lua --json'):format(words, folder), 0)).rows
    for i, row in ipairs(seconds) do lines[i + 1] = ('%s%.6f'):format(lines[i + 1], 1000 * row.predicted_s) end
    words = ("study fidelity vtrain --rows '%s' --cluster '%s/mine.lua'"):format(file_of(lines), folder)
    local fit = trinity_says(('%s --fit --save %s/fitted.lua'):format(words, folder), 0)
    local again = json.decode(trinity_says(('%s --constants %s/fitted.lua --json'):format(words, folder), 0)).rows
    for i, row in ipairs(again) do expect(row.predicted_s / seconds[i].predicted_s):near(1, 0.03) end
    trinity_says(('info gpt2 --cluster dgx_a100_80gb --constants %s/fitted.lua'):format(folder), 0,
      (('constants: a100_80gb: own (%s/fitted.lua); runtime: megatron'):format(folder):gsub('%p', '%%%0')))
    -- The fit moves a field of the runtime too: the file predicts what the fit printed.
    local moved = dofile(folder .. '/fitted.lua').runtimes['megatron-2021'].launch_share
    expect(moved ~= require('trinity.cluster.calibrated').runtimes['megatron-2021'].launch_share):truthy()
    local function table_of(said) return said:match 'rows that the constants were fitted to\n.-\n\n' end
    local shown = trinity_says(('%s --constants %s/fitted.lua'):format(words, folder), 0)
    expect(table_of(shown) ~= nil):truthy()
    expect(table_of(shown)):equals(table_of(fit))
  end)
  it('of a source hold for its rows where the file of a fit has them', function()
    local path, rows = temporary '.lua', file_of { head, small(16, 32, 1, 1, 16, 1) }
    core.write_file(path, 'return { kinds = {}, sources = { vtrain = { cluster = { network_share = 0.1 } } } }')
    local slow = trinity_says(("study fidelity vtrain --json --rows '%s' --constants '%s'"):format(rows, path), 0)
    expect(json.decode(slow:match '{.*}').rows[1].predicted_s > told(rows)[1].predicted_s):truthy()
    local fit = ("study fidelity vtrain --fit --rows '%s'"):format(rows)
    trinity_says(fit .. ' --cross-validate', 2, "'%-%-cross%-validate': cannot be combined with %-%-fit")
    trinity_says(fit .. ' --constants data_sheet', 2, "'%-%-constants': cannot be combined with a fit")
    for text, message in pairs { ['sources = 3'] = 'sources.*table', ['source = {}'] = "did you mean 'sources'" } do
      core.write_file(path, ('return { kinds = {}, %s }'):format(text))
      trinity_says(("study fidelity vtrain --rows '%s' --constants '%s'"):format(rows, path), 1, message)
    end
  end)
end)

describe('errors of predictions', function()
  it('have mean, median and worst', function()
    local all = statistics.summary { 0.1, -0.3, 0.2 }
    expect(all.mean):near(0.2, 1e-12)
    expect(all.median):equals(0.2)
    expect(all.worst):equals(0.3)
  end)
  it('rank: tau with ties, and what the named plan costs', function()
    expect(statistics.tau { { 1, 10 }, { 2, 20 }, { 3, 30 } }):equals(1)
    expect(statistics.tau { { 1, 30 }, { 2, 20 }, { 3, 10 } }):equals(-1)
    expect(statistics.tau { { 1, 10 }, { 2, 10 }, { 3, 30 } }):near(2 / math.sqrt(6), 1e-12)
    expect(statistics.tau { { 1, 10 }, { 1, 20 } }):equals(nil)
    expect(errors.choice { { 1, 12 }, { 2, 10 }, { 3, 30 } }):near(0.2, 1e-12)
    local ranking = errors.ranking({ { 1, 2, group = 'a' }, { 2, 1, group = 'a' }, { 1, 1, group = 'b' } }, 2)
    expect(ranking.groups):equals(1)
    expect(ranking.choice):equals(1)
  end)
end)
