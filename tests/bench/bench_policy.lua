-- Policy steps of the main networks against the search times of the paper's table 5, and against the same networks
-- on LibTorch's operators with autograd, in one run:
--   build/trinity tests/bench/bench_policy.lua [--steps 5] [--only inception_v3] [--hidden 128]
-- A step draws 20 placements, simulates them and learns from them in 5 epochs. The paper's time is per 1000 steps;
-- ours is to be a quarter of it.

local core = require 'trinity.core'
local trinity = require 'trinity'

local options = trinity.options {
  'Seconds of a policy step on the networks of the paper, beside its own and a plain LibTorch reference.',
  steps = { default = 5, help = 'policy steps to take the median of', min = 1, integer = true },
  only = { default = '', help = "one model; '': all" },
}

-- Thousands of seconds for 1000 steps (manual/papers.md "Trinity: experiments").
local paper = {
  { model = 'inception_v3', gpus = 2, search = 0.7 }, { model = 'inception_v3', gpus = 4, search = 2.0 },
  { model = 'gnmt', sequence = 15, gpus = 2, search = 8.9 }, { model = 'gnmt', sequence = 15, gpus = 4, search = 9.8 },
  { model = 'nmt', sequence = 32, gpus = 2, search = 10.3 }, { model = 'nmt', sequence = 32, gpus = 4, search = 17.1 },
  { model = 'nasnet_large', gpus = 2, search = 9.8 }, { model = 'nasnet_large', gpus = 4, search = 9.1 },
  { model = 'nasnet_large', gpus = 4, batch_size = 32, search = 16.6 },
  { model = 'pnasnet_large', gpus = 2, search = 18.7 }, { model = 'pnasnet_large', gpus = 4, search = 20.1 },
}

-- The median seconds of a step and of its simulation, and the sums of the policy's own clocks.
local function measure(problem, steps, plain)
  local settings = { samples = 20, epochs = 5, plain_torch = plain,
    node2vec = { epochs = 1, walks_per_node = 1 } }
  local agent = trinity.policies.trinity(problem, settings)
  local whole, simulation = {}, {}
  for step = 1, steps do
    local start = core.clock_s()
    local placements = agent:sample()
    local sampled, rewards = core.clock_s(), {}
    for i, metrics in ipairs(problem:evaluate_batch(placements)) do rewards[i] = problem:score(metrics) end
    simulation[step] = core.clock_s() - sampled
    agent:update(rewards)
    whole[step] = core.clock_s() - start
  end
  local profile = agent:profile()
  local groups = agent.groups
  agent:close()
  return trinity.median(whole), trinity.median(simulation), profile, groups
end

local rows = {}
for _, row in ipairs(paper) do
  if options.only == '' or options.only == row.model then
    local graph = trinity.model(row.model, { sequence = row.sequence, batch_size = row.batch_size,
      granularity = 'framework' })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. row.gpus),
      reward = trinity.rewards.mdpe {} }
    local step, simulation, profile, groups = measure(problem, options.steps, false)
    local plain = measure(problem, 2, true)
    local goal = row.search / 4
    local function ms(seconds) return ('%.0f'):format(seconds / options.steps * 1e3) end
    rows[#rows + 1] = { row.model, tostring(row.gpus), tostring(graph.units), tostring(groups), ('%.3f'):format(goal),
      ('%.3f'):format(step), ('%.2f'):format(step / goal), ms(profile.sample_s), ('%.0f'):format(simulation * 1e3),
      ms(profile.forward_s), ms(profile.objective_s), ms(profile.backward_s), ms(profile.optimise_s),
      ('%.1f'):format(plain / step) }
  end
end
print(('%s; medians of %d steps; parts in ms'):format(core.describe_torch(), options.steps))
print(trinity.format_table({ 'network', 'GPUs', 'units', 'groups', 'goal s', 'step s', 'of goal', 'sample', 'simulate',
  'forward', 'objective', 'backward', 'optimise', 'plain / ours' }, rows))
