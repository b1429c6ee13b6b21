-- What scripts cost: the reward callback, loops over operators against the same loops in C++, and calls of
-- methods, compiled and interpreted. Run with the C++ loops beside it:
--   ninja -C build bench_lua && build/bench_lua
-- Times are processor time of this process, so that others on the machine disturb them less.

local array = require 'trinity.array'
local trinity = require 'trinity'

local has_reference, reference = pcall(require, 'bench.reference')
if not has_reference then error('run build/bench_lua: it holds the C++ loops to compare with', 0) end

local options = trinity.options {
  'Measures rewards, loops over operators and method calls; each figure is the median of its rounds.',
  rounds = { default = 15, help = 'of which the median counts', min = 3, integer = true },
  calls = { default = 400000, help = 'in a round, compiled', min = 1000, integer = true },
}

local problem = trinity.problem {
  graph = trinity.model('inception_v3', { batch_size = 64 }),
  cluster = trinity.cluster 'p100x4',
  reward = trinity.rewards.mdpe(),
}
local graph, devices = problem.graph, #problem.cluster.devices
local operators = graph.operators
local depth, flops_of, total_flops = graph.depth, graph.flops_of, 0
for i = 1, operators do total_flops = total_flops + flops_of[i] end

-- Several results, so that no compiler answers from the last one.
local stream, placements = trinity.random(1, 'bench'), {}
for i = 1, 64 do
  placements[i] = problem:placement_by_unit(function() return stream:integer(devices) end)
end
local metrics = problem:evaluate_batch(placements)

-- Median nanoseconds of one of `count` things that body(count) does.
local function measure(count, body)
  body(count)
  local times = {}
  for round = 1, options.rounds do
    local start = os.clock()
    body(count)
    times[round] = 1e9 * (os.clock() - start) / count
  end
  return trinity.median(times)
end

local kept = 0
local random, reward, placement = trinity.random(1, 'calls'), problem.reward, problem:placement()

-- What is called, with what it may cost in ns.
local calls = {
  { 'reward(metrics), mdpe', 50, function(n)
    local sum = 0
    for i = 1, n do sum = sum + reward(metrics[i % 64 + 1]) end
    kept = kept + sum
  end },
  { 'problem:score(metrics)', 60, function(n)
    local sum = 0
    for i = 1, n do sum = sum + problem:score(metrics[i % 64 + 1]) end
    kept = kept + sum
  end },
  { 'metrics.step_time_s', 60, function(n)
    local sum = 0
    for i = 1, n do sum = sum + metrics[i % 64 + 1].step_time_s end
    kept = kept + sum
  end },
  { 'metrics:memory_bytes(d)', 60, function(n)
    local sum = 0
    for i = 1, n do sum = sum + metrics[i % 64 + 1]:memory_bytes(i % devices + 1) end
    kept = kept + sum
  end },
  { 'placement[i] = d', 60, function(n)
    for i = 1, n do placement[i % operators + 1] = i % devices + 1 end
  end },
  { 'placement[i]', 60, function(n)
    local sum = 0
    for i = 1, n do sum = sum + placement[i % operators + 1] end
    kept = kept + sum
  end },
  { '#placement', 60, function(n)
    local sum = 0
    for _ = 1, n do sum = sum + #placement end
    kept = kept + sum
  end },
  { 'graph.depth[i]', 60, function(n)
    local sum = 0
    for i = 1, n do sum = sum + graph.depth[i % operators + 1] end
    kept = kept + sum
  end },
  { 'random:uniform()', 60, function(n)
    local sum = 0
    for _ = 1, n do sum = sum + random:uniform() end
    kept = kept + sum
  end },
  { 'random:integer(8)', 60, function(n)
    local sum = 0
    for _ = 1, n do sum = sum + random:integer(8) end
    kept = kept + sum
  end },
  { 'random:normal()', 60, function(n)
    local sum = 0
    for _ = 1, n do sum = sum + random:normal() end
    kept = kept + sum
  end },
}

local load = array.double(devices)

-- The same loops as in bench_lua.cpp.
local loops = {
  { 'round robin by depth', 'round_robin', function()
    for i = 1, operators do placement[i] = depth[i] % devices + 1 end
  end, { placement, depth }, placement },
  { 'sum of FLOP by device', 'flops_by_device', function()
    for d = 1, devices do load[d] = 0 end
    for i = 1, operators do
      local d = placement[i]
      load[d] = load[d] + flops_of[i]
    end
  end, { placement, flops_of, load }, load },
  { 'greedy contiguous split', 'contiguous', function()
    local done, device = 0, 1
    for i = 1, operators do
      if device < devices and done >= total_flops * device / devices then device = device + 1 end
      placement[i] = device
      done = done + flops_of[i]
    end
  end, { placement, flops_of, total_flops }, placement },
}

-- Both sides must have done the same work.
local function check_equal(name, written, expected)
  for i = 1, #written do
    if written[i] ~= expected[i] then
      error(('%s: entry %d differs: %s against %s'):format(name, i, written[i], expected[i]))
    end
  end
end

local function median_ratio(loop)
  local name, call, body, arguments, written = unpack(loop)
  local repetitions = math.ceil(options.calls / operators)
  local ours, theirs, ratios = {}, {}, {}
  for _ = 1, repetitions do body() end
  local expected = written:totable()
  for round = 1, options.rounds do
    local start = os.clock()
    for _ = 1, repetitions do body() end
    ours[round] = os.clock() - start
    for i = 1, #written do written[i] = 1 end
    theirs[round] = reference[call](repetitions, operators, devices, unpack(arguments))
    ratios[round] = ours[round] / theirs[round]
    check_equal(name, written, expected)
  end
  local each = 1e9 / (repetitions * operators)
  return trinity.median(ours) * each, trinity.median(theirs) * each, trinity.median(ratios)
end

local function verdict(value, target) return value <= target and 'met' or 'MISSED' end

local call_rows, loop_rows = {}, {}
for i, call in ipairs(calls) do
  local ns = measure(options.calls, call[3])
  call_rows[i] = { call[1], ('%.1f'):format(ns), '', ('%d'):format(call[2]), verdict(ns, call[2]) }
end
for i, loop in ipairs(loops) do
  local ours, theirs, ratio = median_ratio(loop)
  loop_rows[i] = { loop[1], ('%.2f'):format(ours), ('%.2f'):format(theirs), ('%.2f x'):format(ratio), '',
    '2.00 x', verdict(ratio, 2) }
end

-- The same without the compiler.
jit.off()
jit.flush()
for i, call in ipairs(calls) do call_rows[i][3] = ('%.1f'):format(measure(math.ceil(options.calls / 10), call[3])) end
for i, loop in ipairs(loops) do
  local _, _, ratio = median_ratio(loop)
  loop_rows[i][5] = ('%.0f x'):format(ratio)
end
jit.on()

print(('%s, %d operators, on %s; medians of %d rounds\n'):format(graph.name, operators, problem.cluster.name,
  options.rounds))
print(trinity.format_table({ 'call', 'ns', 'ns, no JIT', 'target', '' }, call_rows))
print()
print(trinity.format_table({ 'loop over operators', 'ns each', 'C++', 'ratio', 'no JIT', 'target', '' }, loop_rows))
if kept == 0 then print 'nothing was computed' end
