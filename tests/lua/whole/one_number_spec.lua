-- One plan, one number: what a saved strategy was made for is in its file, and every command that takes it says the same
-- step, to the last digit, or refuses.

local core = require 'trinity.core'
local trinity = require 'trinity'

local folder = temporary()
os.execute(('mkdir -p %q'):format(folder))

local function shell(words)
  return output_of(("cd '%s' && TRINITY_RUNS=runs '%s' %s 2>&1; echo status=$?"):format(folder, program, words))
end
local function json_of(words)
  local text = shell(words)
  return trinity.files.json.decode(text:match '{.*}' or error(words .. text))
end

local function draws_of(seed)
  local stream = trinity.random(seed, 'plans that are saved')
  return { pick = function(_, list) return list[1 + math.floor(stream:uniform() * #list)] end, stream = stream }
end

local clusters = { 'dgx_a100:4', 'p100x2', 'dgx_h100:2x2', 'A100', 'dgx_a100:2+p100_4:2', '4xH100' }

local function options_of(random)
  return { layers = random:pick { 2, 4 }, heads = 4, hidden = random:pick { 16, 32 }, sequence = random:pick { 8, 16 },
    positions = 16, vocabulary = random:pick { 50, 96 }, batch_size = random:pick { 1, 2, 6 }, fused = false,
    dropout = random:pick { 0, 0.1 }, kernels = random:pick { 'onnx', 'flash' }, optimizer = random:pick { 'adam', 'sgd' },
    dtype = random:pick { 'float32', 'bfloat16' } }
end

-- Own costs as a file, of types that every network here has.
local costs = folder .. '/costs.csv'
core.write_file(costs, 'type,device_type,time_s\nGemm,a100,2e-5\nGemm,,1e-5\nUpdate,h100,3e-6\n')

local function mesh(random)
  local way = random:pick { 'all_reduce', 'all_reduce', 'local_sgd' }
  return { mesh = { data = random:pick { 1, 2, 4 }, tensor = random:pick { 1, 1, 2 }, pipeline = random:pick { 1, 1, 2 } },
    micro_batches = random:pick { 1, 2, 4 }, schedule = random:pick { '1f1b', 'gpipe', 'zb-h1' },
    recompute = random:pick { 'none', 'full', 'selective' }, zero_stage = random:pick { 0, 0, 1, 2, 3 },
    sequence_parallel = random:pick { false, true }, sync = { kind = way, every = way == 'local_sgd' and 4 or nil } }
end

local function placed(random, problem)
  local devices = #problem.cluster.devices
  return { placement = problem:placement_by_unit(function() return 1 + math.floor(random.stream:uniform() * devices) end),
    schedule = random:pick { 'fifo', 'lifo', 'critical_path' }, micro_batches = random:pick { 1, 1, 3 } }
end

-- A random plan that can be evaluated.
local function draw(seed)
  local random = draws_of(seed)
  while true do
    local problem = trinity.problem { graph = trinity.model('gpt2', options_of(random)),
      cluster = trinity.cluster(random:pick(clusters)), cost = random:pick { false, false, costs } or nil }
    local plan = random:pick { mesh, mesh, placed }(random, problem)
    local ok, found = pcall(problem.strategy, problem, plan, { method = 'drawn' })
    if ok then return problem, found end
  end
end

local function kept_step_s(run)
  local results = core.list_folder(('%s/runs/%s/results'):format(folder, run))
  return trinity.files.json.decode(core.read_file(('%s/runs/%s/results/%s'):format(folder, run, results[1]))).data.step_time_s
end

describe('a random plan', function()
  it('is loaded again with the same step, and every command says it', function()
    for case = 1, draws(200) do
      local seed = law_seed() + case
      local problem, found = draw(seed)
      local file, expected = ('%s/%d.json'):format(folder, case), found.metrics.step_time_s
      found:save(file)
      local loaded = problem:load(file)
      expect(('%d: %.17g'):format(seed, loaded.metrics.step_time_s)):equals(('%d: %.17g'):format(seed, expected))
      expect(loaded.reevaluated):equals(nil)
      local made_for = trinity.files.json.decode(core.read_file(file)).made_for
      expect(made_for.micro_batch):equals(problem.graph.batch_size)
      expect(made_for.global_batch):equals(problem.graph.batch_size * (found.micro_batches or 1)
        * (found.mesh and found.mesh.data or 1))
      expect(made_for.cluster):equals(problem.cluster.name == 'dgx_a100_80gb:1' and 'A100'
        or problem.cluster.name == 'dgx_h100:4' and '4xH100' or problem.cluster.name)

      local said = json_of(('simulate --json --run s%d --strategy %d.json'):format(case, case))
      expect(('%d: %.17g'):format(seed, said.step_time_s)):equals(('%d: %.17g'):format(seed, expected))
      expect((said.cost ~= nil)):equals(problem.cost ~= nil)
      local text = shell(('simulate --run t%d --trace t.json --strategy %d.json'):format(case, case))
      expect(('%d %s'):format(seed, text:match 'step time       [^\n,]+')):equals(('%d step time       %.6g s'):format(seed, expected))
      expect(('%d: %.17g'):format(seed, kept_step_s('t' .. case))):equals(('%d: %.17g'):format(seed, expected))
      shell(('export --run e%d --output e.dot --format dot --strategy %d.json'):format(case, case))
      expect(('%d: %.17g'):format(seed, kept_step_s('e' .. case))):equals(('%d: %.17g'):format(seed, expected))
      if case % 10 == 1 then
        local both = json_of(('runs compare s%d t%d --json'):format(case, case)).searches[1]
        expect(both.method):equals 'drawn'
        expect(both.a):equals(expected)
        expect(both.b):equals(expected)
        shell(('runs report s%d --output page.html'):format(case))
        expect(core.read_file(folder .. '/page.html'):find(('%.6g'):format(expected), 1, true) ~= nil):equals(true)
      end
    end
  end)
end)

describe('a saved plan', function()
  local small = 'layers=2,heads=4,hidden=32,sequence=16,positions=16,vocabulary=96,dropout=0'
  it('of trinity plan is the number of all commands, executed too', function()
    local planned = json_of(('plan gpt2 --set %s --cluster p100x2 --global_batch 8 --micro_batch 2 --tensor 1 --json --run p '
      .. '--output best.json'):format(small)).plans[1]
    expect(json_of('simulate --json --run s --strategy best.json').step_time_s):equals(planned.step_time_s)
    local both = json_of('runs compare p s --json').searches
    expect(both[1].method):equals 'plan'
    expect(both[1].a):equals(planned.step_time_s)
    expect(both[1].b):equals(planned.step_time_s)
    expect(shell 'export --format megatron --strategy best.json --run none'):matches '%-%-micro%-batch%-size 2\n +%-%-global%-batch%-size 8'
    with_torch()
    local executed = json_of 'execute --json --strategy best.json --devices cpu:0,cpu:0 --steps 1 --warm_up 0 --run x'
    expect(executed.simulated_step_time_s):equals(planned.step_time_s)
  end)
  it('with states on the host is simulated, compared and exported where the devices alone could not hold them', function()
    core.write_file(folder .. '/tight.lua', [[
      local trinity = require 'trinity'
      local tight = trinity.devices.with(trinity.devices.h100, { memory_bytes = 2e7, reserved_memory_bytes = 0, framework_bytes = 0 })
      return { device_types = { tight = tight }, devices = { { name = 'a', type = 'tight' } }, links = {} }]])
    local planned = json_of('plan gpt2 --set layers=8,heads=4,hidden=128,sequence=16,positions=16,vocabulary=96,dropout=0 '
      .. '--cluster tight.lua --global_batch 8 --recompute by_layer --json --run none --output tight.json').plans[1]
    expect(planned.optimizer_offload_fraction > 0):truthy()
    local simulated = json_of 'simulate --json --run none --strategy tight.json'
    expect(simulated.step_time_s):equals(planned.step_time_s)
    expect(simulated.peak_memory_bytes[1]):equals(planned.memory_bytes)
    expect(shell 'plan --compare tight.json tight.json'):matches 'as fast.*status=0'
    expect(shell 'export --format megatron --strategy tight.json --run none'):matches 'optimizer%-cpu%-offload.*status=0'
  end)
  it('is refused for anything else, in a sentence, or evaluated again and says so', function()
    local problem = trinity.problem { graph = trinity.model('gpt2', { layers = 2, hidden = 32, heads = 4, sequence = 16,
      positions = 16, vocabulary = 96, batch_size = 2 }), cluster = trinity.cluster 'dgx_a100:2' }
    problem:strategy({ mesh = { data = 2 } }, { method = 'hand' }):save(folder .. '/made.json')
    local made = "trinity: option '%-%-strategy': made%.json: made for gpt2, micro%-batch 2 of a global batch of 4, on dgx_a100:2; "
      .. 'this is %s; use %-%-reevaluate to evaluate it here\nstatus=2\n$'
    for words, differs in trinity.system.sorted_pairs { ['--cluster dgx_h100:2'] = "another cluster %('dgx_h100:2'%)",
      ['--batch_size 4'] = 'a micro%-batch of 4', ['--set layers=4'] = "another network %('gpt2_small'%)",
      ['--model vgg16 --cluster p100x2'] = "another network %('vgg16'%) and another cluster %('p100x2'%)",
      ['--cost costs.csv'] = 'other operator costs' } do
      for _, command in ipairs { 'simulate', 'export --format dot --output e.dot' } do
        expect(shell(('%s --strategy made.json --run none %s'):format(command, words))):matches((made:gsub('%%s', (differs:gsub('%%', '%%%%')))))
      end
    end
    local words = 'simulate --strategy made.json --run none --cluster dgx_h100:2 --reevaluate'
    expect(shell(words)):matches 'reevaluated     made for gpt2, [^\n]* %(step time [%d.e-]+ s%); re%-evaluated for gpt2_small on dgx_h100:2\n'
    expect(json_of(words .. ' --json').reevaluated):matches '^made for gpt2'
    expect(shell 'simulate --reevaluate --run none'):matches "option '%-%-reevaluate' needs %-%-strategy"
  end)
  it('has the constants and the runtime of its cluster', function()
    local graph = trinity.model('gpt2', { layers = 2, hidden = 64, heads = 4, sequence = 32, positions = 32, batch_size = 2 })
    for _, options in ipairs { { runtime = 'torchtitan' }, { constants = 'data_sheet' } } do
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster('dgx_h100', options) }
      local saved = problem:strategy { mesh = { data = 8 }, micro_batches = 2 }
      saved:save(folder .. '/own.json')
      expect(json_of('simulate --strategy own.json --run none --json').step_time_s):equals(saved.metrics.step_time_s)
    end
  end)
  it('of a program that simulates another step is refused', function()
    local path = folder .. '/changed.json'
    local problem = trinity.problem { graph = trinity.model('mlp', { batch_size = 2 }), cluster = trinity.cluster 'p100x2' }
    local step_s = problem:strategy(problem:placement()):save(path) and problem:load(path).metrics.step_time_s
    core.write_file(path, (core.read_file(path):gsub('"step_time_s": [%d.e-]+', '"step_time_s": 0.5')))
    expect(function() problem:load(path) end):raises(('this is a version of trinity that predicts %.10g s instead of 0.5 s for it'):format(step_s)
      :gsub('[%-]', '%%-'))
  end)
  it('of an earlier version is refused by the options that say what it lacks', function()
    local text = core.read_file(folder .. '/made.json'):gsub('"version": 3', '"version": 2'):gsub(' "made_for".-\n },\n', '')
    core.write_file(folder .. '/old.json', text)
    expect(shell 'simulate --run none --strategy old.json'):matches
      "old%.json %(version 2%) does not contain its model, micro%-batch and cluster: give %-%-model, %-%-batch_size and %-%-cluster\n"
    expect(shell 'simulate --run none --strategy old.json --model gpt2 --cluster dgx_a100:2'):matches
      'does not contain its micro%-batch: give %-%-batch_size\n'
    expect(shell('simulate --run none --strategy old.json --model gpt2 --cluster dgx_a100:2 --batch_size 2 --set layers=2,'
      .. 'hidden=32,heads=4,sequence=16,positions=16,vocabulary=96,dtype=float32')):matches '\nstep time  '
  end)
end)
