-- What the reward, in LuaJIT, adds to a batch of evaluations, and what a batch costs beside simulating:
--   build/trinity [--threads N] tests/bench/bench_reward.lua
-- Every repetition draws new placements, so that the simulator's cache of results does not answer; the
-- ways of evaluating take turns in being first.

local core = require 'trinity.core'
local trinity = require 'trinity'

local placements, repetitions, warm_up = 64, 41, 5 -- in a batch, of which the median counts, before that

local problem = trinity.problem {
  graph = trinity.model('inception_v3', { batch_size = 64 }),
  cluster = trinity.cluster 'p100x4',
  reward = trinity.rewards.mdpe(),
}
local devices = #problem.cluster.devices

local drawn = 0
local function draw()
  local batch = {}
  for i = 1, placements do
    drawn = drawn + 1
    local stream = trinity.random(1, 'bench', drawn)
    batch[i] = problem:placement_by_unit(function() return stream:integer(devices) end)
  end
  return batch
end

local function score(metrics)
  local sum = 0
  for i = 1, #metrics do sum = sum + problem:score(metrics[i]) end
  return sum
end

local times = { alone = {}, rewarded = {}, reward = {}, again = {} }
local function note(name, seconds) table.insert(times[name], seconds) end

local ways = {
  function(batch)
    local start = core.clock_s()
    problem:evaluate_batch(batch)
    note('alone', core.clock_s() - start)
  end,
  function(batch)
    local start = core.clock_s()
    local metrics = problem:evaluate_batch(batch)
    local middle = core.clock_s()
    score(metrics)
    local stop = core.clock_s()
    note('rewarded', stop - start)
    note('reward', stop - middle)
  end,
}

local function repetition(number)
  local first, second = draw(), draw()
  ways[number % 2 + 1](first)
  ways[(number + 1) % 2 + 1](second)
  -- Known by now: copied, checked, hashed, looked up and written back, but not simulated.
  local start = core.clock_s()
  problem:evaluate_batch(second)
  note('again', core.clock_s() - start)
end

for i = 1, warm_up do repetition(i) end
for name in trinity.sorted_pairs(times) do times[name] = {} end
collectgarbage()
for i = 1, repetitions do repetition(i) end

local alone, rewarded = trinity.median(times.alone), trinity.median(times.rewarded)
local reward, again = trinity.median(times.reward), trinity.median(times.again)
local function line(what, seconds)
  print(('%-42s %9.3f ms a batch %8.3f us each %8.3f %% of simulating'):format(what, 1e3 * seconds,
    1e6 * seconds / placements, 100 * seconds / alone))
end
print(('%s, %d operators, %d edges, on %s: batches of %d placements, %d threads, median of %d\n'):format(
  problem.graph.name, problem.graph.operators, problem.graph.edges, problem.cluster.name, placements,
  trinity.threads(), repetitions))
line('evaluate_batch', alone)
line('evaluate_batch and the reward of each', rewarded)
line('  the reward alone, timed within', reward)
line('evaluate_batch, all results known', again)
print(('\nreward overhead %.3f %% (difference of the two medians %+.2f %%)'):format(100 * reward / alone,
  100 * (rewarded / alone - 1)))
