-- trinity.stragglers: invariants of sampled steps, of their waits and of remedies.

local trinity = require 'trinity'

local graph = trinity.model('gpt2', { layers = 8, hidden = 512, heads = 8, batch_size = 1, sequence = 256,
  positions = 256, vocabulary = 1024, dtype = 'bfloat16' })

local function strategy(plan, slow, cluster)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster(cluster or 'dgx_a100x1', { slow = slow }) }
  return problem:strategy(plan)
end

local plans = {
  ['1f1b, ZeRO 1'] = { mesh = { data = 2, pipeline = 2, tensor = 2 }, micro_batches = 4, zero_stage = 1 },
  ['interleaved, ZeRO 3'] = { mesh = { data = 2, pipeline = 2 }, micro_batches = 4, schedule = 'interleaved',
    virtual_stages = 2, zero_stage = 3 },
  ['zb-h1, recomputed'] = { mesh = { data = 2, pipeline = 4 }, micro_batches = 8, schedule = 'zb-h1', recompute = 'full' },
}

describe('sampled steps', function()
  for name, plan in trinity.system.sorted_pairs(plans) do
    it('equal the simulated step without noise, and are no shorter on average with it: ' .. name, function()
      for _, cluster in ipairs { 'dgx_a100x1', 'p100x8' } do -- queues by route and by sender
        local found = strategy(plan, nil, cluster)
        local quiet = trinity.stragglers(found, { noise = 0, draws = 1 })
        expect(quiet.mean_s):near(found.metrics.step_time_s, 1e-9 * found.metrics.step_time_s)
        local noisy = trinity.stragglers(found, { noise = 0.1, draws = 200 })
        expect(found.metrics.step_time_s - 2 * noisy.error_s):below(noisy.mean_s)
        expect(noisy.mean_s):below(noisy.p95_s)
        expect(#noisy.draws_s):equals(200)
      end
    end)
  end
  it('are the simulated step where messages of tensor and data groups overlap on a link', function()
    local network = trinity.model('decoder', { layers = 4, hidden = 512, heads = 8, feed_forward = 1024, vocabulary = 1024,
      positions = 0, kernels = 'flash', sequence = 256, batch_size = 2, dtype = 'bfloat16' })
    local found = trinity.problem { graph = network, cluster = trinity.cluster 'dgx_a100x1' }:strategy {
      mesh = { data = 2, pipeline = 2, tensor = 2 }, micro_batches = 4, schedule = 'zb-v', virtual_stages = 2, zero_stage = 3,
      sequence_parallel = true }
    expect(trinity.stragglers(found, { noise = 0, draws = 1 }).mean_s):near(found.metrics.step_time_s, 1e-9)
    local noisy = trinity.stragglers(found, { noise = 0.1, draws = 200 })
    expect(found.metrics.step_time_s - 2 * noisy.error_s):below(noisy.mean_s)
  end)
  it('depend on the seed alone', function()
    local found = strategy(plans['1f1b, ZeRO 1'])
    local function mean(seed) return trinity.stragglers(found, { noise = 0.1, draws = 3, seed = seed }).mean_s end
    expect(mean(1)):equals(mean(1))
    expect(mean(1) ~= mean(2)):equals(true)
  end)
  it('wait for what adds up to them, most for the device that is slow', function()
    local found = strategy(plans['1f1b, ZeRO 1'], { ['n0/gpu5'] = 2 })
    local drawn, sum = trinity.stragglers(found, { noise = 0.02, draws = 20 }), 0
    for _, row in ipairs(drawn.waits) do sum = sum + row.time_s end
    expect(sum):near(drawn.mean_s, 1e-9)
    expect(drawn.waits[1].device):equals 'n0/gpu5'
    expect(drawn.waits[1].stage):equals(2)
    for k = 1, 4 do expect(drawn.replica_waits[k].time_s > 0):equals(k % 2 == 0) end -- replica 2, in both stages
  end)
  it('are sampled for placements, too', function()
    local problem = trinity.problem { graph = trinity.model('mlp', { batch_size = 4 }), cluster = trinity.cluster 'p100x2' }
    local found = trinity.methods.round_robin(problem, { quiet = true })
    expect(trinity.stragglers(found, { noise = 0, draws = 1 }).mean_s):near(found.metrics.step_time_s, 1e-9)
  end)
end)

describe('sequences of unequal length', function()
  local function of_sequence(sequence, plan)
    local network = trinity.model('gpt2', { layers = 4, hidden = 1024, heads = 16, batch_size = 1, sequence = sequence,
      positions = 4096, dtype = 'bfloat16', kernels = 'flash' })
    return trinity.problem { graph = network, cluster = trinity.cluster 'dgx_a100x1' }:strategy(plan
      or { mesh = { data = 2, pipeline = 2 }, micro_batches = 4 })
  end
  local full = of_sequence(4096)
  local function mean(options)
    return trinity.stragglers(full, { noise = 0, draws = options.draws or 10, lengths = options.lengths,
      fill = options.fill, deal = options.deal }).mean_s
  end
  local function skewed(stream) return math.max(1, math.min(4096, math.floor(math.exp(6.5 + 0.8 * stream:normal())))) end
  it('take the time of the network where all have its length, and of a shorter network where all are shorter', function()
    expect(mean { lengths = function() return 4096 end }):near(full.metrics.step_time_s, 1e-9)
    local half = mean { lengths = function() return 2048 end, draws = 1 }
    expect(half / of_sequence(2048).metrics.step_time_s):near(1, 0.05)
  end)
  it('take less where sorted or balanced by work, and less attention where packed', function()
    local drawn = mean { lengths = skewed }
    expect(mean { lengths = skewed, deal = 'balanced' }):below(drawn)
    expect(mean { lengths = skewed, deal = 'sorted' }):below(drawn)
    local packed = mean { lengths = skewed, fill = 'packed' }
    expect(packed):below(full.metrics.step_time_s)
    expect(mean { lengths = skewed, fill = 'packed', deal = 'balanced' }):below(packed)
  end)
  it('are sampled from the rows of a histogram', function()
    local path = temporary '.csv'
    trinity.files.write(path, 'length,count\n512,3\n4096,0\n')
    expect(mean { lengths = path, draws = 1 }):near(mean { lengths = function() return 512 end, draws = 1 }, 1e-12)
    trinity.files.write(path, 'length,count\n8192,3\n')
    expect(function() mean { lengths = path } end):raises "line 2: column 'length': expected at most 4096 %(the sequence length%), got 8192"
    expect(function() mean { lengths = function() return 0 end } end):raises 'expected integer lengths from 1 to 4096'
    expect(function() mean { lengths = 3 } end):raises "option 'lengths': expected a CSV file or a function, got number 3"
    expect(function() mean { lengths = skewed, fill = 'packed', deal = 'sorted' } end):raises "option 'deal'.*got 'sorted'"
    expect(function() mean { deal = 'sorted' } end):raises "option 'deal': expected option 'lengths' with it"
  end)
end)

describe('what helps against a slow device', function()
  local found = strategy(plans['1f1b, ZeRO 1'], { ['n0/gpu5'] = 1.5 })
  local by_name, best = {}, nil
  for _, row in ipairs(trinity.stragglers(found, { noise = 0, draws = 1 }).remedies) do
    by_name[row.what], best = row, best or row
  end
  it('is a spare, which gives the step of the healthy cluster', function()
    expect(by_name['spares for what is slow'].step_time_s):equals(strategy(plans['1f1b, ZeRO 1']).metrics.step_time_s)
    expect(best.what):equals 'spares for what is slow'
  end)
  it('are layers that move away from its stage, and replicas without it: plans whose simulated step is the predicted one', function()
    local moved, dropped = by_name['layers moved from slow stages'], by_name['replicas with slow devices dropped']
    expect(moved.stages[2]):below(moved.stages[1])
    local with = strategy({ mesh = plans['1f1b, ZeRO 1'].mesh, micro_batches = 4, zero_stage = 1,
      stages = moved.stages }, { ['n0/gpu5'] = 1.5 })
    expect(with.metrics.step_time_s):equals(moved.step_time_s)
    expect(moved.step_time_s):below(found.metrics.step_time_s)
    for _, device in ipairs(dropped.devices) do expect(device ~= 6):equals(true) end
    expect(dropped.micro_batches):equals(8)
    expect(dropped.gain):near(dropped.samples_per_s / found.metrics.samples_per_s - 1, 1e-12)
  end)
  it('drops the slowest replica alone, and moves layers to a stage that is less slow, where that gains most', function()
    local both = strategy({ mesh = { data = 4, pipeline = 2 }, micro_batches = 4, zero_stage = 1 },
      { ['n0/gpu0'] = 1.2, ['n0/gpu7'] = 3 }) -- replicas 1 and 4, stages 1 and 2
    local rows = {}
    for _, row in ipairs(trinity.stragglers(both, { noise = 0, draws = 1 }).remedies) do rows[row.what] = row end
    expect(#rows['replicas with slow devices dropped'].devices):equals(6)
    expect(rows['layers moved from slow stages'].stages[2]):below(rows['layers moved from slow stages'].stages[1])
    expect(0):below(rows['layers moved from slow stages'].gain)
  end)
  it('is listed by its gain; nothing where nothing is slow', function()
    expect(#trinity.stragglers(strategy(plans['1f1b, ZeRO 1']), { noise = 0, draws = 1 }).remedies):equals(0)
    local four = strategy({ mesh = { data = 4, pipeline = 2 }, micro_batches = 4 },
      { ['n0/gpu0'] = 2, ['n0/gpu2'] = 2, ['n0/gpu4'] = 1.1, ['n0/gpu6'] = 1.5 })
    local rows = trinity.stragglers(four, { noise = 0, draws = 1 }).remedies
    expect(#rows):equals(3)
    for i = 2, 3 do expect(rows[i].gain <= rows[i - 1].gain):equals(true) end
    expect(rows[2].what):equals 'replicas with slow devices dropped' -- found last
    expect(table.concat(rows[2].devices, ' ')):equals '2 4 6 8'
  end)
end)

it('trinity simulate --noise prints the spread and what helps', function()
  local words = "simulate --model mlp --cluster dgx_a100x1 --slow n0/gpu0=2 --noise 0.05 --draws 20 --run none"
  trinity_says(words, 0, 'sampled%s+[%d.e+-]+ s on average over 20 samples %(%+%- [%d.e+-]+%), median [%d.e+-]+ s, 95 %% within',
    'n0/gpu0%s+forward', 'spares for what is slow.*\nconstants: a100')
  trinity_says(words .. ' --json', 0, '"p95_s"', '"what": ?"spares for what is slow"')
  trinity_says('simulate --model mlp --cluster dgx_a100x1 --noise -1 --run none', 2, 'noise')
  trinity_says('simulate --model mlp --cluster dgx_a100x1 --draws 3 --run none', 2, "option '%-%-draws': belongs to %-%-noise")
  trinity_says('plan --model gpt2 --cluster dgx_a100x1 --draws 3 --run none', 2, "option '%-%-draws': belongs to %-%-reward p95")
  trinity_says(("simulate --model mlp --cluster dgx_a100x1 --lengths '%s' --run none"):format(file_with('length,count\n8,1\n', '.csv')), 2,
    "option '%-%-lengths': expected %-%-strategy with a mesh")
end)
