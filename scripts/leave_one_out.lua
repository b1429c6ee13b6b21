#!/usr/bin/env trinity
-- Whether a trained policy helps on a graph that it has not seen: leave-one-out over a folder of profiles. The policy
-- is trained on all graphs but one, in turns, its weights going from graph to graph through files; then it draws
-- placements of the one left out, untrained there (start), and after some updates on it (fine-tuned), beside a fresh
-- policy and uniform random placements.

local trinity = require 'trinity'
local plot = require 'trinity.base.plot'

local options = trinity.options {
  'Pre-trains the Trinity policy on all profiles of a folder but one, and starts on that one.',
  folder = { default = '../shared/data/pipedream', help = 'a folder with files NAME.graph.txt' },
  cluster = { default = 'p100x4', help = 'a cluster in models/clusters with a count' },
  rounds = { default = 2, help = 'turns of pre-training over the other graphs', min = 1, integer = true },
  updates = { default = 10, help = 'policy updates on a graph a turn', min = 1, integer = true },
  tuning = { default = 10, help = 'updates of fine-tuning', min = 0, integer = true },
  seeds = { default = 3, help = 'draws of the start; the table has means', min = 1, integer = true },
  only = { default = '', help = "graphs to leave out, with commas; '': each in turn" },
  output = { default = 'runs/leave_one_out', writes = '.csv', help = 'PATH.csv, and where the weights are kept' },
}

local problems, names = {}, {}
for _, file in ipairs(trinity.files.list(options.folder)) do
  local name = file:match '^(.*)%.graph%.txt$'
  if name then
    names[#names + 1] = name
    problems[name] = trinity.problem { graph = trinity.model(('%s/%s'):format(options.folder, file)),
      cluster = trinity.cluster(options.cluster) }
  end
end
if #names < 2 then error(('expected two profiles NAME.graph.txt or more in %s'):format(options.folder), 0) end

-- The logarithm of the step time over the bound: graphs of all sizes teach with rewards of one size.
local function score(problem, metrics)
  return -math.log(metrics.step_time_s / problem.lower_bound_s) - (metrics.feasible and 0 or 3)
end

--- The mean and the best step time over the bound of a list of placements.
local function judge(problem, placements)
  local sum, best, rewards = 0, math.huge, {}
  for i, metrics in ipairs(problem:evaluate_batch(placements)) do
    local over = metrics.step_time_s / problem.lower_bound_s
    sum, best = sum + over, math.min(best, metrics.feasible and over or math.huge)
    rewards[i] = score(problem, metrics)
  end
  return sum / #placements, best, rewards
end

--- Trains on `problem` from the weights in `from` (nil: fresh) and keeps them in `to` (nil: not). Returns the mean and
--- the best of the first batch, and of all.
local function train(problem, seed, updates, from, to)
  local agent = trinity.policies.trinity(problem, { seed = seed, load = from })
  local start, first, best, last = nil, nil, math.huge, nil
  for update = 1, math.max(1, updates) do
    local mean, good, rewards = judge(problem, agent:sample())
    if update == 1 then start, first = mean, good end
    last, best = mean, math.min(best, good)
    if updates > 0 then agent:update(rewards) end
  end
  if to then agent:save(to) end
  agent:close()
  return { start = start, first = first, last = last, best = best }
end

local function random_mean(problem, seed, count)
  local list, devices = {}, #problem.cluster.devices
  for i = 1, count do
    local stream = trinity.random(seed, 'uniform placements', i)
    list[i] = problem:placement_by_unit(function() return stream:integer(devices) end)
  end
  return (judge(problem, list))
end

--- Trains on all graphs but `left_out`; returns the file of the weights.
local function pretrain(left_out)
  local file, known = ('%s-without-%s.policy'):format(options.output, left_out), nil
  for round = 1, options.rounds do
    for _, name in ipairs(names) do
      if name ~= left_out then
        train(problems[name], round, options.updates, known, file)
        known = file
      end
    end
  end
  return file
end

local wanted = options.only ~= '' and ',' .. options.only .. ',' or nil
local rows, cells, better, sums = {}, {}, 0, { 0, 0, 0, 0, 0 }
for _, name in ipairs(names) do
  if not wanted or wanted:find(',' .. name .. ',', 1, true) then
    local problem, file = problems[name], pretrain(name)
    local mean = { 0, 0, 0, 0, 0 }
    for seed = 1, options.seeds do
      local fresh = train(problem, 100 + seed, options.tuning)
      local loaded = train(problem, 100 + seed, options.tuning, file)
      local values = { random_mean(problem, seed, 16), fresh.start, loaded.start, fresh.best, loaded.best }
      for i, value in ipairs(values) do mean[i] = mean[i] + value / options.seeds end
      cells[#cells + 1] = { name, seed, unpack(values) }
    end
    better = better + (mean[3] < mean[2] and mean[3] < mean[1] and 1 or 0)
    rows[#rows + 1] = { name }
    for i, value in ipairs(mean) do
      rows[#rows][i + 1] = ('%.3f'):format(value)
      sums[i] = sums[i] + math.log(value)
    end
    io.stderr:write(table.concat(rows[#rows], '  '), '\n')
  end
end
if #rows == 0 then error(("no graph of --only '%s' in %s"):format(options.only, options.folder), 0) end
local total = { 'geometric mean' }
for i, sum in ipairs(sums) do total[i + 1] = ('%.3f'):format(math.exp(sum / #rows)) end
rows[#rows + 1] = total
print(trinity.format_table({ 'left out', 'random, mean', 'fresh policy, start', 'pre-trained, start',
  'fresh, tuned best', 'pre-trained, tuned best' }, rows))
plot.csv(options.output .. '.csv', { 'left_out', 'seed', 'random_mean', 'fresh_start', 'pretrained_start', 'fresh_best',
  'pretrained_best' }, cells)
print(('\nstep time over the lower bound, simulated, on %s: mean of the first batch (start), best of %d updates; '
  .. 'means of %d seeds'):format(options.cluster, math.max(1, options.tuning), options.seeds))
print(('the pre-trained policy starts better than a fresh one and than random placements on %d of %d graphs')
  :format(better, #rows - 1))
print(('pre-trained with %d updates on each other graph, %d turns; in %s.csv\n'
  .. 'made by: trinity scripts/leave_one_out.lua %s')
  :format(options.updates, options.rounds, options.output, table.concat(arg, ' ')))
