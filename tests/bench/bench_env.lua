-- Steps per second of environments of the improvement kind (actions = 'move') and the placements per second of
-- evaluate_batch on the very placements that the environments came to, in the same run:
--   build/trinity tests/bench/bench_env.lua [NUM_ENVS]
-- Medians of 7 rounds, each of both. Goals: 0.6 of evaluate_batch, 0.25 with the critical path observed.

local trinity = require 'trinity'

local num_envs, steps, rounds = assert(tonumber(arg[1] or 64), 'NUM_ENVS must be a number'), 48, 7

local subjects = {
  { 'inception_v3', { batch_size = 64 }, 'p100x4' },
  { 'gnmt', { batch_size = 64 }, 'p100x4' },
  { 'resnet50', { batch_size = 32 }, 'p100x2' },
}

local function problem_of(subject)
  return trinity.problem { graph = trinity.model(subject[1], subject[2]), cluster = trinity.cluster(subject[3]) }
end

--- Uniform moves of all environments, sampled before, so that agents take no time.
local function moves_of(stream, units, devices)
  local lists = {}
  for step = 1, steps do
    lists[step] = {}
    for i = 1, num_envs do lists[step][i] = (stream:integer(units) - 1) * devices + stream:integer(devices) end
  end
  return lists
end

--- Seconds per step of an environment, and of evaluate_batch on the placements that it comes to.
local function round(subject, number, critical_path)
  local problem, batches = problem_of(subject), {}
  local options = { actions = 'move', reward = 'difference', num_envs = num_envs, start = 'random', steps = 1e6,
    strict = false, critical_path = critical_path }
  local lists = moves_of(trinity.random(number, 'bench'), problem.graph.units, #problem.cluster.devices)
  local env = trinity.env(problem, options)
  env:reset(number)
  local start_s = trinity.system.clock_s()
  for step = 1, steps do env:step(lists[step]) end
  local env_s = trinity.system.clock_s() - start_s
  env = trinity.env(problem_of(subject), options) -- again, for the placements alone
  env:reset(number)
  for step = 1, steps do
    env:step(lists[step])
    batches[step] = env:placements()
  end
  local other = problem_of(subject) -- whose cache knows none of them
  start_s = trinity.system.clock_s()
  for step = 1, steps do other:evaluate_batch(batches[step]) end
  return env_s / (steps * num_envs), (trinity.system.clock_s() - start_s) / (steps * num_envs)
end

print(('%d environments, %d threads'):format(num_envs, trinity.system.threads()))
local rows = {}
for _, subject in ipairs(subjects) do
  for _, critical_path in ipairs { false, true } do
    local env, batch, ratio = {}, {}, {}
    for number = 1, rounds do
      env[number], batch[number] = round(subject, number, critical_path)
      ratio[number] = batch[number] / env[number]
    end
    rows[#rows + 1] = { subject[1], critical_path and 'yes' or 'no', ('%.0f'):format(1 / trinity.system.median(env)),
      ('%.0f'):format(1 / trinity.system.median(batch)), ('%.2f'):format(trinity.system.median(ratio)) }
  end
end
print(trinity.system.format_table({ 'network', 'critical path', 'env steps/s', 'evaluate_batch/s', 'ratio' }, rows))
