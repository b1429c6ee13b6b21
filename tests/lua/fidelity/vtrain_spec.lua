-- trinity fidelity vtrain: rows become strategies on a cluster, whose evaluation is all that is told.

local calibration = require 'trinity.cluster.calibration'
local core = require 'trinity.core'
local errors = require 'trinity.fidelity.errors'
local json = require 'trinity.base.json'
local rows_of = require 'trinity.fidelity.vtrain_rows'
local trinity = require 'trinity'
local util = require 'trinity.base.util'
local vtrain = require 'trinity.fidelity.vtrain'

local head = '# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,'
  .. 'data parallelism,pipeline parallelism,iteration time (ms)'

local function file_of(lines, ends)
  local path = temporary '.csv'
  core.write_file(path, table.concat(lines, ends or '\n') .. (ends or '\n'))
  return path
end

local function told(path)
  return json.decode(trinity_says(("fidelity vtrain --json --rows '%s'"):format(path), 0):match '{.*}').rows
end

local function refused(line, words)
  expect(trinity_says(("fidelity vtrain --rows '%s'"):format(file_of { head, line }), 1)):matches(words)
end

-- A network of four narrow layers: GPUs, batch, micro-batch, tensor, data, pipeline.
local function small(gpus, batch, micro_batch, tensor, data, pipeline, time_ms)
  return ('%d,%d,%d,64,16,4,32,%d,%d,%d,%s'):format(gpus, batch, micro_batch, tensor, data, pipeline, time_ms or '')
end

describe('where the host sets the pace', function()
  local values = util.merged(calibration.starts(), { dispatch_s = 100e-6 })
  -- Priced and on a timeline, layer by layer in both: tensor, data, pipeline, and what a plan says beside.
  local function same(tensor, data, pipeline, says)
    local gpus = tensor * data * pipeline
    local row = { gpus = gpus, batch = 2 * data, micro_batch = 1, hidden = 1024, heads = 16, layers = 4, sequence = 512,
      tensor = tensor, data = data, pipeline = pipeline, recompute = 'none' }
    local cluster = trinity.cluster(calibration.apply(rows_of.cluster_spec(gpus), values))
    local problem = trinity.problem { graph = rows_of.graph(row), cluster = cluster }
    local plan = util.merged(rows_of.plan(row), says)
    local seen = problem:timeline(problem:strategy(plan)).metrics.step_time_s
    expect(problem:evaluate(plan).step_time_s):equals(seen)
  end
  it('a step with parts of layers is priced as its timeline is', function() same(2, 1, 1) end)
  it('a step of several replicas is', function()
    same(1, 2, 1)
    same(2, 2, 2)
    same(2, 2, 1, { recompute = 'full' })
  end)
  it('a step that shares states out is', function()
    for shard = 1, 3 do same(1, 4, 1, { shard = shard }) end
    same(2, 2, 1, { shard = 3 })
  end)
  it('a step with parts of sequences is', function()
    same(2, 2, 1, { sequence_parallel = true, scatter_gather = false })
    same(1, 2, 1, { mesh = { tensor = 1, data = 1, context = 2 } })
  end)
end)

describe('heads of a device times its micro-batch that are no multiple of 4', function()
  local function seconds(tensor, micro_batch, heads)
    local values = util.merged(calibration.starts(), { dispatch_s = 100e-6 })
    local row = { gpus = 8, batch = micro_batch, micro_batch = micro_batch, hidden = 1024, heads = heads, layers = 8, sequence = 256,
      tensor = tensor, data = 8 / tensor, pipeline = 1, recompute = 'none' }
    return rows_of.teller()({ row }, values)[1], rows_of.graph(row):find 'block_1/attention/softmax/scaled' ~= nil
  end
  it('have a softmax of several kernels, as in Megatron-LM', function()
    local taken, apart = seconds(8, 1, 32)
    expect(apart):equals(false)
    local several, now_apart = seconds(8, 1, 16)
    expect(now_apart):equals(true)
    -- Four kernels more a layer, and backward three: the gradient of the cast behind them is joined with the dropout's.
    expect((several - taken) / 8):near(7 * 100e-6, 1e-6)
    expect(select(2, seconds(8, 2, 16))):equals(false)
  end)
end)

describe('rows of vTrain', function()
  it('are told in their order, with a mark at the start, line ends of Windows, and no times', function()
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
  it('are what problem:evaluate says of their strategy on a cluster', function()
    local path = file_of { head, small(16, 32, 1, 2, 4, 2) }
    local row = rows_of.read(path)[1]
    local spec = calibration.apply(rows_of.cluster_spec(16), (calibration.fitted 'a100_vtrain'))
    local problem = trinity.simulator { graph = rows_of.graph(row), cluster = trinity.cluster(spec) }
    local metrics = problem:evaluate { mesh = { tensor = 2, data = 4, pipeline = 2 }, schedule = '1f1b', micro_batches = 8,
      order = { 'tensor', 'pipeline', 'data' }, recompute = 'full', scatter_gather = true, bucket_bytes = 2 ^ 50 }
    expect(told(path)[1].predicted_s):near(metrics.step_time_s, 1e-9)
  end)
  it('move with the links: half of a network, half of the switches', function()
    local list = rows_of.read(file_of { head, small(16, 32, 1, 1, 16, 1), small(8, 8, 4, 8, 1, 1) })
    local function seconds(changed)
      return rows_of.teller(false, function(gpus)
        local spec = rows_of.cluster_spec(gpus)
        for _, link in ipairs(spec.links) do
          local network = link.to == 'infiniband' or link.from == 'infiniband'
          local switch = link.to:find('nvswitch', 1, true) ~= nil
          if changed == 'network' and network or changed == 'switches' and switch then
            link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s / 2
          end
        end
        return spec
      end)({ list[changed == 'switches' and 2 or 1] }, (calibration.fitted 'a100_vtrain'))[1]
    end
    expect(seconds 'network' > seconds 'none'):equals(true)
    local whole = rows_of.teller()({ list[2] }, (calibration.fitted 'a100_vtrain'))[1]
    expect(seconds 'switches' > whole):equals(true)
  end)
  it('that are malformed are named', function()
    refused('8,8,1,64,4,4,32,2,2,1,', 'line 2: tensor x data x pipeline parallelism: expected 8 GPUs, got 2 x 2 x 1')
    refused('8,9,1,64,4,4,32,2,2,2,', "line 2: column 'global batch': expected a multiple of 2 %(data x micro batch%), got 9")
    refused('8,8,1,64,4,4,32,2,2,2,fast', "line 2: column 'iteration time %(ms%)': expected a number")
    refused('8,8,1,64,4,4,32,2,2,2,-1', "line 2: column 'iteration time %(ms%)': expected more than 0, got %-1")
    refused('8,8,0.5,64,4,4,32,2,2,2,', "line 2: column 'micro batch': expected a whole number from 1 to 4096, got 0.5")
    refused('8,8,1,64,5,4,32,1,4,2,', "line 2: column 'hidden size': expected a multiple of 5 %(attention heads%), got 64")
    refused('12,12,1,64,4,4,32,2,3,2,', 'expected up to 8, or whole machines of 8, got 12')
    refused('8,8,1,64,4,4,32,2,2', 'line 2: expected 11 fields, got 9')
    local path = file_of { (head:gsub('# layers', 'layer')), '8,8,1,64,4,4,32,2,2,2,' }
    expect(trinity_says(("fidelity vtrain --rows '%s'"):format(path), 1)):matches "column '# layers' is missing"
    expect(trinity_says('fidelity vtrain', 2)):matches "option '%-%-rows' is missing"
  end)
  it('have micro-batches of 1 where the cell is empty', function()
    local found = told(file_of { head, '8,8,,64,4,4,32,2,2,2,', '8,8,1,64,4,4,32,2,2,2,' })
    expect(found[1].predicted_s):equals(found[2].predicted_s)
  end)
  it('that are all refused have a sentence each', function()
    local path = file_of { head, '8,8,x,64,4,4,32,2,2,2,', '8,8,1,64,4,0,32,2,2,2,' }
    trinity_says(("fidelity vtrain --rows '%s'"):format(path), 1,
      "line 2: column 'micro batch': .*line 3: column '# layers': .*no row is left: all 2 are refused")
    local found = json.decode(trinity_says(("fidelity vtrain --json --rows '%s'"):format(path), 1, 'no row is left'):match '{.*}').rows
    expect(#found):equals(2)
    expect(found[1].refused):matches "line 2: column 'micro batch'"
    expect(found[2].refused):matches "line 3: column '# layers'"
  end)
  it('that are refused are named by their line in the file, below empty lines and fields of several lines', function()
    local path = file_of({ 'note,' .. head, '', '"two\nlines",' .. small(16, 32, 1, 2, 8, 1), ',8,8,1,64,4,0,32,2,2,2,' }, '\r\n')
    trinity_says(("fidelity vtrain --rows '%s'"):format(path), 0, "line 5: column '# layers': expected")
  end)
  it('that are refused cost none of the others, whose order stays', function()
    local lines = { head, small(16, 32, 1, 2, 8, 1), '8,8,1,64,4,4,32,2,2,1,', small(8, 8, 1, 2, 2, 2) }
    local out = trinity_says(("fidelity vtrain --json --rows '%s'"):format(file_of(lines)), 0, 'warning: .*line 3: tensor x data')
    local found = json.decode(out:match '{.*}').rows
    expect(found[1].predicted_s > 0 and found[3].predicted_s > 0):truthy()
    expect(found[2].predicted_s):equals(nil)
    expect(found[2].refused):matches 'line 3: tensor x data x pipeline parallelism: expected 8 GPUs'
    local other = told(file_of { head, lines[4], lines[2] })
    expect(other[1].predicted_s):equals(found[3].predicted_s)
    expect(other[2].predicted_s):equals(found[1].predicted_s)
  end)
  it('whose layers do not divide have stages as equal as they can be, embedding and head a layer each', function()
    local function stages(layers, count) return table.concat(rows_of.stages(layers, count), ' ') end
    expect(rows_of.stages(12, 4)):equals(nil)
    expect(stages(10, 4)):equals '2 3 3 2'
    expect(stages(11, 4)):equals '2 4 3 2'
    expect(stages(5, 2)):equals '3 2'
    expect(stages(7, 3)):equals '2 3 2'
  end)
end)

describe('constants of training', function()
  it('are at most eight a set, within their bounds, with the rows that they were fitted to', function()
    for _, name in ipairs(calibration.names()) do
      local values, rows = calibration.fitted(name)
      local count = 0
      for _, one in ipairs(calibration.constants(values)) do
        count = count + 1
        expect(values[one.name] >= one.least and values[one.name] <= one.most):equals(true)
        expect(one.unit ~= '' and one.meaning ~= ''):equals(true)
      end
      expect(count <= 8 and count >= 7):equals(true)
      expect(#rows > 0):equals(true)
    end
    expect(#vtrain.constants() <= 16):equals(true)
    expect(trinity_says('fidelity vtrain --constants', 0)):matches 'a100_vtrain.compute_efficiency'
  end)
  it('are fields of a description, of few machines and of many', function()
    local values = { compute_efficiency = 0.5, half_width = 30, memory_efficiency = 0.6, launch_s = 1e-6, dispatch_s = 2e-6,
      inside_share = 0.5, shared_bandwidth = 0.7, network_share = 0.25, loss_share = 0.5, call_s = 33e-6 }
    for _, name in ipairs { 'dgx_a100x2', 'dgx_a100x100' } do
      local spec = require('trinity.cluster.nodes').spec(name)
      local plain, made = trinity.cluster(spec), trinity.cluster(calibration.apply(spec, values))
      expect(select(2, made:wire(1, 2))):near(0.5 * select(2, plain:wire(1, 2)), 1)
      expect(select(2, made:wire(1, 9))):near(0.25 * select(2, plain:wire(1, 9)), 1)
      local type = calibration.apply(spec, values).device_types.a100
      expect(type.half_width):equals(30)
      expect(type.fuses_elementwise and type.joins_products):equals(true)
      expect(type.operators.SoftmaxCrossEntropyLoss.memory_efficiency):near(0.3, 1e-12)
      local collectives = calibration.apply(spec, values).collectives
      expect(collectives.call_s):equals(33e-6)
      expect(collectives.shared_bandwidth):equals(0.7)
      values.call_s = nil -- not of every set
      expect(calibration.apply(spec, values).collectives.call_s):equals(spec.collectives.call_s)
      values.call_s = 33e-6
    end
    expect(select(2, pcall(calibration.fitted, 'a100_vtrian'))):matches "did you mean 'a100_vtrain'"
  end)
  -- A file of five composed times by the fitted constants but for the dispatch, and these times; the last row's is so
  -- many times what it is told.
  local function times_made(dispatch_s, last)
    local lines, list = { head }, {}
    for _, plan in ipairs { { 1, 1, 2, 1 }, { 4, 1, 2, 1 }, { 2, 2, 1, 1 }, { 2, 1, 1, 2 }, { 8, 2, 1, 1 } } do
      list[#list + 1] = ('2,16,%d,128,4,4,64,%d,%d,%d'):format(unpack(plan))
    end
    for i, line in ipairs(list) do lines[i + 1] = line .. ',' end
    local truth = util.merged(calibration.fitted 'a100_vtrain_composed', { dispatch_s = dispatch_s })
    local seconds = rows_of.teller()(rows_of.read(file_of(lines)), truth)
    seconds[#seconds] = seconds[#seconds] * last
    for i, line in ipairs(list) do lines[i + 1] = ('%s,%.6f'):format(line, 1000 * seconds[i]) end
    return file_of(lines), seconds
  end
  it('are not moved by a composed time that is out of line', function()
    local path, seconds = times_made(calibration.fitted('a100_vtrain_composed').dispatch_s, 1.5)
    local saved = temporary '.lua'
    trinity_says(("fidelity vtrain --fit --steps 6 --rows '%s' --save '%s'"):format(path, saved), 0)
    local again = rows_of.teller()(rows_of.read(path), dofile(saved).a100_vtrain_composed.values)
    for i = 1, 4 do expect(again[i] / seconds[i]):near(1, 0.02) end
    expect(again[5] / seconds[5]):near(1 / 1.5, 0.02)
  end)
  it('come back from times that they made', function()
    local before = calibration.fitted 'a100_vtrain_composed'
    local path, seconds = times_made(40e-6, 1)
    local saved = temporary '.lua'
    local said = trinity_says(("fidelity vtrain --fit --steps 6 --rows '%s' --save '%s'"):format(path, saved), 0)
    local fitted = dofile(saved).a100_vtrain_composed
    expect(fitted.rows[1]):equals '2 GPUs, batch 16, hidden 128, 4 layers: 5 rows'
    expect(fitted.values.dispatch_s):near(40e-6, 10e-6)
    local function error_of(values)
      local told_rows = rows_of.teller()(rows_of.read(path), values)
      return errors.summary(util.map(seconds, function(s, i) return told_rows[i] / s - 1 end)).mean
    end
    expect(error_of(fitted.values)):below(0.2 * error_of(before))
    expect(tonumber(said:match '(%d+%.%d) %%')):near(100 * error_of(fitted.values), 0.06)
  end)
end)

describe('errors of predictions', function()
  it('have mean, median and worst', function()
    local all = errors.summary { 0.1, -0.3, 0.2 }
    expect(all.mean):near(0.2, 1e-12)
    expect(all.median):equals(0.2)
    expect(all.worst):equals(0.3)
  end)
  it('rank: tau with ties, and what the named plan costs', function()
    expect(errors.tau { { 1, 10 }, { 2, 20 }, { 3, 30 } }):equals(1)
    expect(errors.tau { { 1, 30 }, { 2, 20 }, { 3, 10 } }):equals(-1)
    expect(errors.tau { { 1, 10 }, { 2, 10 }, { 3, 30 } }):near(2 / math.sqrt(6), 1e-12)
    expect(errors.tau { { 1, 10 }, { 1, 20 } }):equals(nil)
    expect(errors.choice { { 1, 12 }, { 2, 10 }, { 3, 30 } }):near(0.2, 1e-12)
    local ranking = errors.ranking({ { group = 'a', told_s = 1, measured_s = 2 }, { group = 'a', told_s = 2, measured_s = 1 },
      { group = 'b', told_s = 1, measured_s = 1 }, { group = 'a', told_s = 3 } }, 2)
    expect(ranking.groups):equals(1)
    expect(ranking.choice):equals(1)
  end)
end)

describe('measured runs of vTrain', function()
  all_only()
  --- Mean error of what the command says of a file's rows.
  local function mean_of(name, layers)
    local path = shared('vtrain/' .. name)
    local found, off = told(path), {}
    for i, row in ipairs(rows_of.read(path)) do
      if row.layers ~= layers then off[#off + 1] = found[i].predicted_s / row.measured_s - 1 end
    end
    return errors.summary(off).mean
  end
  it_shared('of whole clusters are within 5 % in the mean', function() expect(mean_of 'multi.csv' <= 0.05):truthy() end)
  it_shared('put together of kernels are within 6 %, but for those of 16 layers', function()
    expect(mean_of('single.csv', 16) <= 0.06):truthy()
  end)
end)
