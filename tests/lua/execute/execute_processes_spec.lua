-- Strategies executed by processes over c10d, what goes wrong with workers, and `trinity execute` as users start it.
-- Starting a process costs half a second, so tests share runs.

local core = require 'trinity.core'
local trinity = require 'trinity'

with_torch()

local processes = dofile(root .. '/tests/lua/support/processes.lua')
local stopping = assert(loadfile(root .. '/tests/lua/support/stopping.lua'))()
local folder = temporary()
os.execute("mkdir '" .. folder .. "'")

local function shell(command) return processes.shell(command, ("F='%s' TRINITY_RUNS=none"):format(folder)) end

local network = [[
local trinity = require 'trinity'
local net = trinity.graph.layers.new('rows', { batch_size = 4 })
local x = net:input('x', { 4, 6 })
for i = 1, 4 do x = net:relu('relu' .. i, net:linear('layer' .. i, x, 5 + i)) end
net:softmax_cross_entropy('loss', net:linear('out', x, 4), net:input('labels', { 4 }, 'int64'))
local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
local units, i = problem.graph.units, 0
local placement = problem:placement_by_unit(function() i = i + 1 return i <= units / 2 and 1 or 2 end)
]]

--- Prints losses, and this process's weights with what they belong to.
local report = network .. [[
local plan = { placement = placement, schedule = '1f1b', micro_batches = 3 }
local found = trinity.execute(problem, plan, { steps = 3, warm_up = 0, quiet = true })
for _, loss in ipairs(found.losses) do print(('%.17g'):format(loss)) end
print(found.transferred_bytes, #found.last.copies, found.peak_memory_bytes[1] > 0, found.peak_memory_bytes[2] > 0,
  found.last.busy_s[1] > 0, found.last.busy_s[2] > 0)
for task = 1, 3 * problem.graph.operators do
  local m = math.ceil(task / problem.graph.operators)
  local about = problem.graph:operator((task - 1) % problem.graph.operators + 1)
  assert((found.last.end_s[task] > 0) == (about.phase ~= 'update' or m == 3))
end
if trinity.dist.current() then
  local small = trinity.problem { graph = problem.graph, cluster = trinity.cluster 'p100x1' }
  local _, message = pcall(trinity.execute, small, small:placement())
  print(message:match 'expected a device.*')
end
]]

local function write(name, text)
  core.write_file(folder .. '/' .. name, text)
  return folder .. '/' .. name
end

local rows = {}
for i = 1, 40 do rows[i] = ('%d,%d,%d'):format(i * 37 % 101, i * 53 % 97, i % 3) end
write('rows.csv', table.concat(rows, '\n') .. '\n')

describe('workers as processes', function()
  it('compute and copy what threads do', function()
    write('report.lua', report)
    local status, threads = shell '"$T" "$F/report.lua"'
    expect(status):equals(0)
    local launched, shared = shell(processes.ranks(2) .. ' "$F/report.lua"')
    local told = 'expected a device for each of 2 processes of the job, got 1\n'
    expect(shared):equals(threads .. told)
    expect(launched):equals(0)
    expect(threads):matches 'true\ttrue\ttrue\ttrue'
  end)
  it('run what strategies lower to', function()
    write('lowered.lua', [[
local trinity = require 'trinity'
local function run(strategy)
  local problem = trinity.problem { cluster = trinity.cluster 'p100x2', graph = trinity.model('gpt2', { batch_size = 2,
    sequence = 8, layers = 2, hidden = 16, heads = 4, vocabulary = 32, positions = 8, fused = false, optimizer = 'adam',
    kernels = strategy.cp_comm_type and 'flash' or 'onnx' }) }
  return trinity.execute(problem, problem:strategy(strategy), { steps = 3, warm_up = 0, double_precision = true, quiet = true })
end
for _, strategy in ipairs { { mesh = { data = 2 } }, { mesh = { tensor = 2 } }, { mesh = { context = 2 } },
  { mesh = { data = 2 }, zero_stage = 2, micro_batches = 2 }, { mesh = { data = 2 }, zero_stage = 3, micro_batches = 2 },
  { mesh = { pipeline = 2 }, schedule = 'zb-h1', micro_batches = 2, recompute = 'full' },
  { mesh = { context = 2 }, cp_comm_type = 'ring', recompute = 'full' } } do
  for _, loss in ipairs(run(strategy).losses) do print(('%.17g'):format(loss)) end
end
]])
    local status, threads = shell '"$T" "$F/lowered.lua"'
    expect(status):equals(0)
    local launched, shared = shell(processes.ranks(2) .. ' "$F/lowered.lua"')
    expect(launched):equals(0)
    expect(shared):equals(threads)
  end)
  --- Losses and weights of a script are the same under threads and under the same number of processes.
  local function expect_same(name, text, workers)
    write(name, text)
    local status, threads = shell(('"$T" "$F/%s" %d'):format(name, workers))
    expect(status):equals(0)
    local launched, shared = shell(('%s "$F/%s" %d'):format(processes.ranks(workers), name, workers))
    expect(launched):equals(0)
    expect(shared):equals(threads)
    expect(#threads > 1000):equals(true)
  end
  local meetings = [[
local trinity = require 'trinity'
local n = tonumber(arg[1])
local graph = trinity.model('mlp', { inputs = 6, hidden = { 5 }, classes = 3, batch_size = 4, optimizer = 'adam' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. n) }
local cycling = { warmup_epochs = 1, cooldown_epochs = 1, patience = 0, max_global_skips = 8 }
for _, case in ipairs(n == 2 and { { { kind = 'local_sgd', every = 3 } } }
  or { { { kind = 'daso', inner = 2, every = 2 } }, { { kind = 'daso', inner = 2 }, cycling } }) do
  local run = trinity.execute(problem, problem:strategy { mesh = { data = n }, sync = case[1] }, { steps = 60,
    epochs = 6, warm_up = 0, quiet = true, double_precision = true, daso = case[2], keep_weights = true })
  for _, loss in ipairs(run.losses) do print(('%.17g'):format(loss)) end
  for _, weight in ipairs(run.weights) do
    for _, value in ipairs(weight.values) do print(('%s %.17g'):format(weight.name, value)) end
  end
end
]]
  it('with periodic synchronization end bit-identical to threads', function()
    expect_same('meetings.lua', meetings, 2)
    expect_same('meetings.lua', meetings, 4)
  end)
  it('compute while gradients travel over a slow link, and wait for it', function()
    write('link.lua', [[
local trinity = require 'trinity'
package.path = trinity.system.home .. '/scripts/?.lua;' .. package.path
local jobs = require 'studies.papers.daso_jobs'
local mbit_s = 8 -- a byte in a microsecond
local job = trinity.dist.init { link = { bandwidth_bytes_per_s = mbit_s * 1e6 / 8, latency_s = 1e-3 } }
local graph = trinity.model('mlp', { inputs = 50, hidden = { 50, 50 }, classes = 50, batch_size = 4 })
local losses = {}
for i, bucket_bytes in ipairs { 1, 2 ^ 30 } do
  local problem = trinity.problem { graph = graph, cluster = jobs.cluster(2, 1, mbit_s, 1) }
  local run = trinity.execute(problem, problem:strategy { mesh = { data = 2 }, bucket_bytes = bucket_bytes },
    { steps = 3, warm_up = 1, quiet = true })
  local first_sum, last_gradient, sums = math.huge, 0, 0
  for op = 1, run.graph.operators do
    local about, start_s = run.graph:operator(op), run.last.start_s[op]
    if run.placement[op] == 1 and about.type == 'AllReduce' then
      first_sum, sums = math.min(first_sum, start_s), sums + 1
    elseif run.placement[op] == 1 and about.phase == 'backward' then
      last_gradient = math.max(last_gradient, start_s)
    end
  end
  job:print(('%d %s %s'):format(sums, tostring(first_sum > last_gradient),
    tostring(run.step_time_s > graph.parameter_bytes / (mbit_s * 1e6 / 8))))
  losses[i] = run.losses[3]
end
job:print(tostring(losses[1] == losses[2]))
]])
    local status, output = shell(processes.ranks(2, 1) .. ' "$F/link.lua"')
    expect(output):equals '3 true true\n1 true true\ntrue\n'
    expect(status):equals(0)
  end)
  it_all('train on data, put shares of weights together and go on from a checkpoint as threads do', function()
    expect_same('data.lua', [[
local trinity = require 'trinity'
local folder = debug.getinfo(1, 'S').source:match '^@(.*)/'
local graph = trinity.model('mlp', { inputs = 2, hidden = { 30 }, classes = 3, batch_size = 2, optimizer = 'adam' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
for k, strategy in ipairs { { mesh = { data = 2 }, zero_stage = 3 }, { mesh = { tensor = 2 }, micro_batches = 2 },
  { mesh = { pipeline = 2 }, micro_batches = 2 } } do
  for part = 1, 2 do
    local run = trinity.execute(problem, problem:strategy(strategy), { data = folder .. '/rows.csv', scale = 1 / 100,
      train_rows = 32, epochs = 2 * part, learning_rate = 0.1, quiet = true, keep_weights = true,
      checkpoint = ('%s/%s-%d'):format(folder, trinity.dist.current() and 'processes' or 'threads', k) })
    print(#run.losses, run.accuracy, run.steps_done)
    for _, loss in ipairs(run.losses) do print(('%.9g'):format(loss)) end
    for _, weight in ipairs(run.weights) do
      for _, value in ipairs(weight.values) do print(('%s %.9g'):format(weight.name, value)) end
    end
  end
end
]], 2)
  end)
  it_all('keep the last epoch of DASO where one is killed or interrupted, and go on from it to the same bytes', function()
    write('daso.lua', [[
local trinity = require 'trinity'
local folder, killed, signal = arg[1], arg[2], arg[3]
local job = trinity.dist.init { silence_s = 3 }
local graph = trinity.model('mlp', { inputs = 2, hidden = { 30 }, classes = 3, batch_size = 2, optimizer = 'adam' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4' }
local plan = problem:strategy { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2 } }
if killed and job.rank == 1 then
  os.execute(("(until [ -s '%s/kept' ]; do sleep 0.01; done; sleep %s; kill -%s %d) &"):format(folder, killed, signal,
    io.open '/proc/self/stat':read '*n'))
end
local run = trinity.execute(problem, plan, { data = folder .. '/rows.csv', scale = 1 / 100, epochs = 20, quiet = true,
  daso = { warmup_epochs = 2, cooldown_epochs = 2, patience = 0 }, rate = { decay = 'plateau', patience = 0 },
  learning_rate = 0.1, checkpoint = folder .. '/kept', save = folder .. '/weights' })
if job.rank == 0 then print(#run.losses < run.steps_done) end
]])
    local status, output = shell(processes.ranks(4) .. ' "$F/daso.lua" "$F"')
    expect(output):equals 'false\n'
    expect(status):equals(0)
    local whole, killed = core.read_file(folder .. '/weights'), 0
    for _, blow in ipairs { '0.13 KILL', '0.07 TERM' } do
      os.execute(("rm -f '%s/kept' '%s/weights'"):format(folder, folder))
      local ended = shell(('%s "$F/daso.lua" "$F" %s'):format(processes.ranks(4), blow))
      if ended == 1 or ended == 143 then
        killed = killed + 1
        expect(core.read_file(folder .. '/kept')):matches '"course.daso.batch":"0"'
        local again, text = shell(processes.ranks(4) .. ' "$F/daso.lua" "$F"')
        expect(text):equals 'true\n'
        expect(again):equals(0)
      end
      expect(core.read_file(folder .. '/weights') == whole):equals(true)
    end
    expect(killed > 0):equals(true)
  end)
  it('end with one message when one of them dies', function()
    write('die.lua', network .. [[
      local array, core = require 'trinity.base.array', require 'trinity.core'
      local job = trinity.dist.init { silence_s = 3 }
      local executor = core.executor(problem.graph.handle, placement, 2, nil, { job = job.handle })
      for step = 1, 2000 do
        if step == 20 and job.rank == 1 then os.execute('kill -9 ' .. io.open '/proc/self/stat':read '*n') end
        executor:step()
      end
    ]])
    local status, output, seconds = shell(processes.ranks(2) .. ' "$F/die.lua"')
    expect(output):matches '^trinity: rank 1 has not answered for %d s: it was killed or stopped[^\n]*\n$'
    expect(status):equals(1)
    expect(seconds):below(30)
  end)
end)

--- Says that it is ready after a number of steps, however long they take.
local function ready_behind(steps)
  return ([[
local line, done = {}, 0
function line:update()
  done = done + 1
  if done == %d then ready() end
end
function line:finish() end
require('trinity.base.progress').new = function() return line end
]]):format(steps)
end

describe('an execution', function()
  local problem, placement = assert(loadstring(network .. ' return problem, placement'))()
  local function execute(options)
    options.steps, options.warm_up = 2, 0
    return trinity.execute(problem, placement, options)
  end
  it('refuses devices that are not there, and runs on cores that are not, unbound', function()
    for name, expected in trinity.system.sorted_pairs { ['gpu:0'] = "device 'gpu:0': expected cpu:0, cpu:1, %.%.%. or cuda:0",
      ['cpu:-1'] = "device 'cpu:%-1'", ['cpu:1x'] = "device 'cpu:1x'",
      ['cuda:0'] = "device 'cuda:0': this LibTorch has no CUDA devices" } do
      expect(function() execute { devices = { 'cpu:0', name } } end):raises(expected)
    end
    expect(function() execute { devices = { 'cpu:0' } } end):raises 'expected a name for each of 2 devices, got 1'
    local found = execute { devices = { 'cpu:0', 'cpu:999' } }
    expect(found.cores[1]):equals(-1)
    expect(found.cores[2]):equals(-1)
    expect(#found.losses):equals(2)
  end)
  it('names the operator that finds no memory, whether for weights or later', function()
    local most = execute { memory_limit_bytes = 1e9 }.peak_memory_bytes
    local bytes = math.max(most[1], most[2])
    execute { memory_limit_bytes = bytes }
    for _, limit in ipairs { 100, bytes - 1 } do
      expect(function() execute { memory_limit_bytes = limit } end)
        :raises 'operator [%w/_]+ %(%w+%) on cpu:%d: out of memory: .* limit'
    end
  end)
  it('names the operator whose kernel fails, and ends the workers that wait for it', function()
    local builder = trinity.graph.new { name = 'broken' }
    local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 2, 3 } } } }
    local y = builder:add { name = 'y', type = 'MatMul', inputs = { x, x }, outputs = { { shape = { 2, 3 } } } }
    builder:add { name = 'z', type = 'Relu', inputs = { y }, outputs = { { shape = { 2, 3 } } } }
    local broken = trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
    local apart = broken:placement_by_unit(function(unit) return unit < 3 and 1 or 2 end)
    expect(function() trinity.execute(broken, apart, { steps = 1, warm_up = 0 }) end)
      :raises 'operator y %(MatMul%) on cpu:0: mat1 and mat2 shapes cannot be multiplied'
  end)
  it_all('keeps weights of whole steps when it is stopped in the middle of one', function()
    local wide = [[
local trinity = require 'trinity'
local graph = trinity.model('mlp', { inputs = 2000, hidden = { 500, 500, 500 }, classes = 10, batch_size = 1,
  optimizer = 'adam' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x1' }
local function train(steps, path)
  return trinity.execute(problem, problem:placement(), { steps = steps, warm_up = 0, quiet = true, save = path })
end
]]
    local path = temporary()
    local result = stopping.run({ 'execution', wide .. ready_behind(1) .. ([[
      print('steps', train(1000000, %q).steps)
    ]]):format(path) }, '', 0.13, 'INT')
    local steps = tonumber(result.output:match 'steps%s+(%d+)')
    write('whole.lua', wide .. 'train(tonumber(arg[1]), arg[2])')
    expect(shell(('"$T" "$F/whole.lua" %d "$F/whole"'):format(steps))):equals(0)
    expect(core.read_file(path) == core.read_file(folder .. '/whole')):equals(true)
  end)
end)

