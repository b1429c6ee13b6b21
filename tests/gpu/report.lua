#!/usr/bin/env trinity
-- Runs the parts that need GPUs: the executor, strategies compared with one CPU core, collectives over
-- NCCL, a policy that trains there, the profile, and Figure 9 of the Trinity paper, each a part of a report with what
-- it printed. No test of the suite runs it on a GPU:
--   build/trinity tests/gpu/report.lua --out FILE
-- With --devices cpu:0,cpu:1 the same runs on CPUs over Gloo, which is what a test does. A GPU that is alone is
-- joined by a CPU core where a strategy wants two devices. The exit status is 1 where a part fails, or where
-- there is no such device.

local trinity = require 'trinity'
package.path = trinity.system.home .. '/scripts/?.lua;' .. package.path
local page = require 'studies.papers.page'
local run_list = require 'trinity.runs.list'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Runs what trinity has for GPUs on them and writes a report.',
  devices = { default = '', help = 'with commas; default: all CUDA devices that LibTorch sees' },
  quick = { default = false, help = 'small networks and few steps' },
  networks = { default = '', help = 'of Figure 9, with commas; default: all that its page has' },
  seconds = { default = 60, help = 'of rounds for each of them', min = 1 },
  out = { default = 'runs/gpu-report.md', writes = '', help = 'where the report goes' },
}

-- All CUDA devices that LibTorch opens.
local function cuda_devices()
  local found = {}
  while pcall(function() return trinity.tensor.zeros(1, { device = ('cuda:%d'):format(#found) }) end) do
    found[#found + 1] = ('cuda:%d'):format(#found)
  end
  return found
end

local devices = options.devices ~= '' and util.words(options.devices) or cuda_devices()
if #devices == 0 then
  io.stderr:write 'trinity: LibTorch sees no CUDA device here: nothing was run, and there is no report\n'
  os.exit(1)
end
for _, name in ipairs(devices) do
  if not name:match '^cpu:%d+$' and not name:match '^cuda:%d+$' then
    util.fail_usage("option '--devices': expected cpu:0, cpu:1, ... or cuda:0, ..., got '%s'", name)
  end
  if name:match '^cuda' and not pcall(function() return trinity.tensor.zeros(1, { device = name }) end) then
    util.fail_usage("option '--devices': LibTorch sees no '%s' here", name)
  end
end
local is_cuda = devices[1]:match '^cuda' ~= nil
local two = { devices[1], devices[2] or 'cpu:0' }

local parts, failed = {}, 0

local function note(title, what, ok, text, seconds)
  failed = failed + (ok and 0 or 1)
  parts[#parts + 1] = ('## %s: %s\n\n`%s`, %.1f s\n\n```\n%s\n```\n'):format(title, ok and 'passed' or 'FAILED',
    what, seconds, (text:gsub('%s+$', '')))
  print(('%-10s %s'):format(title, ok and 'passed' or 'FAILED'))
end

local function quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- A part that is a shell command; what it prints has to contain `pattern`.
local function shell(title, what, line, pattern)
  local begun = trinity.system.clock_s()
  local pipe = io.popen(line .. ' 2>&1; echo "status=$?"')
  local text = pipe:read '*a'
  pipe:close()
  local ok = text:match 'status=0\n$' ~= nil and text:find(pattern) ~= nil
  note(title, what, ok, text, trinity.system.clock_s() - begun)
end

-- A part that is a command of the program.
local function command(title, words, pattern)
  shell(title, 'trinity ' .. table.concat(words, ' '),
    table.concat(util.map({ run_list.program(), unpack(words) }, quoted), ' '), pattern)
end

-- A part that is a function, which says whether it went well, and what it found.
local function call(title, what, body)
  local begun = trinity.system.clock_s()
  local ran, ok, text = pcall(body)
  note(title, what, ran and ok, tostring(ran and text or ok), trinity.system.clock_s() - begun)
end

local list = table.concat(devices, ',')
local network = options.quick and { '--model', 'alexnet', '--batch_size', '1' }
  or { '--model', 'inception_v3', '--batch_size', '16' }
local steps = options.quick and '2' or '20'

command('executor', { 'execute', network[1], network[2], network[3], network[4], '--devices', list, '--method',
  #devices > 1 and 'contiguous' or 'single_device', '--steps', steps, '--warm_up', '1', '--run', 'none' }, 'step')

-- Losses of steps in float64, dropout included, on these devices and on one core that trains the same samples.
local networks = {
  { 'gpt2', { batch_size = 2, sequence = 16, layers = 4, hidden = 32, heads = 4, vocabulary = 64, positions = 16,
    fused = false, dropout = 0.1, optimizer = 'adam' } },
  { 'rnnlm', { batch_size = 2, sequence = 4, hidden = 16, vocabulary = 40 } },
  not options.quick and { 'alexnet', { batch_size = 2 } } or nil,
  not options.quick and { 'inception_v3', { batch_size = 2, image_size = 139 } } or nil,
}
local on_one, on_two = { mesh = {} }, {
  { 'data 2', { mesh = { data = 2 } } }, { 'data 2, ZeRO 3', { mesh = { data = 2 }, zero_stage = 3 } },
  { 'tensor 2', { mesh = { tensor = 2 } } }, { 'context 2', { mesh = { context = 2 } } },
  { 'pipeline 2, 1f1b', { mesh = { pipeline = 2 }, micro_batches = 4, schedule = '1f1b' } },
  { 'pipeline 2, zb-h2', { mesh = { pipeline = 2 }, micro_batches = 4, schedule = 'zb-h2' } },
  { 'placement 2', { mesh = { placement = 2 }, inside = function(op) return 1 + #op.name % 2 end } },
  { 'pipeline 2, zb-h1, recompute', { mesh = { pipeline = 2 }, micro_batches = 4, schedule = 'zb-h1',
    recompute = 'full' } },
}

local function losses(graph, strategy, names)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. #names) }
  return trinity.execute(problem, problem:strategy(strategy), { steps = 3, warm_up = 0, double_precision = true,
    quiet = true, devices = names }).losses
end

-- The largest relative difference of two lists of losses.
local function difference(list_a, list_b)
  local worst = 0
  for i, loss in ipairs(list_a) do worst = math.max(worst, math.abs(loss - list_b[i]) / math.abs(loss)) end
  return worst
end

call('strategies', 'trinity.execute in float64 compared with cpu:0', function()
  local rows, ok = {}, true
  local function compare(name, graph, label, strategy, names)
    local mesh = strategy.mesh
    local alone = losses(graph, { mesh = {}, micro_batches = (strategy.micro_batches or 1) * (mesh.data or 1) },
      { 'cpu:0' })
    local off = difference(alone, losses(graph, strategy, names))
    ok = ok and off <= 1e-9
    rows[#rows + 1] = { name, label, table.concat(names, ','), ('%.1e'):format(off) }
  end
  for i, of in ipairs(networks) do
    local graph = trinity.model(of[1], of[2])
    compare(of[1], graph, 'one device', on_one, { devices[1] })
    for _, about in ipairs(i == 1 and on_two or {}) do compare(of[1], graph, about[1], about[2], two) end
  end
  return ok, trinity.system.format_table({ 'network', 'strategy', 'devices', 'losses differ by' }, rows)
end)

-- Two steps of the same seed give the same bytes.
call('same bytes', 'trinity.execute twice', function()
  local graph = trinity.model(network[2], { batch_size = tonumber(network[4]) })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x1' }
  local function run()
    return trinity.execute(problem, problem:strategy(on_one), { steps = 3, warm_up = 0, quiet = true,
      devices = { devices[1] } }).losses
  end
  local first, second = run(), run()
  return difference(first, second) == 0, ('losses %.17g and %.17g'):format(first[3], second[3])
end)

-- Ranks over NCCL: one a GPU; on a single GPU two, which NCCL takes where they seem to be on two hosts (NCCL_HOSTID).
local ranks, alone = math.max(2, #devices), #devices == 1
local sum = os.tmpname()
trinity.files.write(sum, ([[
  local trinity = require 'trinity'
  local job = trinity.dist.init()
  local gpu = %s and 'cuda:' .. job.local_rank or 'cpu'
  local expected, wrong, begun = job.size * (job.size + 1) / 2, 0
  for _, device in ipairs { 'cpu', gpu } do
    local x = trinity.tensor.full({ 2 ^ 20 }, job.rank + 1, { device = device })
    wrong = math.max(wrong, (job:all_reduce(x) - expected):abs():max():item())
    local y = job:broadcast(trinity.tensor.full({ 1000 }, job.rank + 1, { device = device }), { root = 1 })
    wrong = math.max(wrong, (y - 2):abs():max():item())
  end
  job:print(wrong == 0 and 'sums and broadcasts are right' or 'a sum or broadcast is wrong')
  local x = trinity.tensor.full({ 2 ^ 26 }, 1, { device = gpu })
  for i = 1, 6 do
    if i == 2 then begun = trinity.system.clock_s() end
    x = job:all_reduce(x)
    wrong = x:max():item() -- waits until it is there
  end
  local took_s = (trinity.system.clock_s() - begun) / 5
  job:print(('%%.4f s for all-reducing 256 MiB over %%d ranks'):format(took_s, job.size))
]]):format(tostring(is_cuda)))
local lines = util.listed(ranks, function(i)
  return ('RANK=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d GROUP_RANK=%d %s %s %s & pids="$pids $!"'):format(i - 1,
    alone and 0 or i - 1, alone and 1 or ranks, alone and i - 1 or 0, alone and 'NCCL_HOSTID=' .. i or '',
    quoted(run_list.program()), quoted(sum))
end)
shell(is_cuda and 'NCCL' or 'Gloo', ('%d ranks with variables as torchrun sets them'):format(ranks),
  ('(export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ %% 20000)) WORLD_SIZE=%d TRINITY_BACKEND=%s\nstatus=0\n'
    .. '%s\nfor p in $pids; do wait $p || status=1; done; exit $status)'):format(ranks, is_cuda and 'nccl' or 'gloo',
      table.concat(lines, '\n')), 'sums and broadcasts are right')
os.remove(sum)

-- A policy of placements that trains on the first device, compared with the same one on the CPU.
call('policy', 'trinity.learn.agent', function()
  local graph = trinity.model(network[2], { batch_size = tonumber(network[4]) })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4',
    reward = trinity.rewards.mdpe {} }
  local rows = {}
  local function learn(device)
    local agent = trinity.learn.agent(problem, { device = device, samples = 20,
      node2vec = { epochs = 1, walks_per_node = 1 } })
    local times, reward = {}
    for step = 1, options.quick and 2 or 6 do
      local begun, rewards = trinity.system.clock_s(), {}
      for i, metrics in ipairs(problem:evaluate_batch(agent:sample())) do rewards[i] = problem:score(metrics) end
      agent:update(rewards)
      times[step], reward = trinity.system.clock_s() - begun, trinity.system.median(rewards)
    end
    agent:close()
    rows[#rows + 1] = { device, ('%.3f s'):format(trinity.system.median(times)), ('%.6g'):format(reward) }
    return reward
  end
  local on_cpu = learn 'cpu'
  local on_gpu = is_cuda and learn(devices[1]) or on_cpu
  return on_cpu == on_cpu and on_gpu == on_gpu,
    trinity.system.format_table({ 'device', 'policy step', 'median reward at the end' }, rows)
end)

local profile = os.tmpname()
command('profile', { 'execute', network[1], network[2], network[3], network[4], '--devices',
  list, '--steps', steps, '--warm_up', '1', '--largest_copy', options.quick and '4096' or '268435456', '--copies',
  options.quick and '1' or '7', '--profile', profile, '--run', 'none' }, '')
os.remove(profile)

-- Figure 9 as its page has it, on two devices.
call('Figure 9', 'studies.papers.trinity_measured', function()
  local section = require 'studies.papers.trinity_measured'
  local settings = { quick = options.quick, seed = 1, seeds = 1, devices = two, seconds = options.seconds,
    output = 'runs/gpu', format = 'text', models = options.networks ~= '' and {} or nil }
  for _, name in ipairs(util.words(options.networks)) do settings.models[name] = true end
  local rows, notes = page.run(section, settings)
  local text = page.text(section, rows, notes, settings)
  return text:find 'largest error' ~= nil, text -- of no network: --networks names none of the page's
end)

local machine = trinity.system.describe_machine()
trinity.files.write(options.out, ('# On %s\n\n%s, %s\n\n%s'):format(list, machine.processor,
  trinity.system.describe_torch(), table.concat(parts, '\n')))
print(('the report is in %s'):format(options.out))
os.exit(failed == 0 and 0 or 1)
