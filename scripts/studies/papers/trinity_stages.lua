-- The contribution of each stage of the Trinity search under equal placements, and the value of a policy that was
-- trained on other graphs on one that it has not seen.

local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local page = require 'studies.papers.page'
local paper = require 'studies.papers.trinity'
local make_agent = require 'trinity.learn.agent'
local problems = require 'trinity.strategy.problem'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

-- All combinations but none, in the order of bits: warm start, policy, annealing.
local combinations = {}
for bits = 1, 7 do
  combinations[bits] = { warm_start = bits % 2 == 1, policy = math.floor(bits / 2) % 2 == 1, refine = bits >= 4,
    rank = false }
end

local function name_of(stages)
  local names = {}
  if stages.warm_start then names[1] = 'warm start' end
  if stages.policy then names[#names + 1] = 'policy' end
  if stages.refine then names[#names + 1] = 'annealing' end
  return table.concat(names, ' + ')
end

--- Step times over the lower bound of every combination on a problem, by seed; and the updates of its policy.
local function measure(problem, stages, settings)
  local over, updates = {}, 0
  for i = 1, settings.seeds do
    local found = page.unless_stopped(methods.trinity(problem, util.merged(stages, { seed = settings.seed + i - 1,
      quiet = true, samples = paper.samples, evaluations = settings.updates * paper.samples })))
    over[i], updates = found.metrics.step_time_s / problem:bounds().step_time_s, updates + (found.updates or 0)
  end
  return over, updates / settings.seeds
end

local function stage_rows(rows, settings)
  local all = util.listed(#combinations, function() return { over = {}, updates = 0, cells = 0 } end)
  for _, problem in paper.rows(paper.cells(settings, 'gnmt'), rewards.step_time()) do
    for c, stages in ipairs(combinations) do
      local over, updates = measure(problem, stages, settings)
      for _, value in ipairs(over) do table.insert(all[c].over, value) end
      all[c].updates, all[c].cells = all[c].updates + updates, all[c].cells + 1
    end
  end
  for c, stages in ipairs(combinations) do
    local without = stages.policy and combinations[c - 2] and all[c - 2] or nil
    rows:add { what = name_of(stages), ours = page.runs(all[c].over), seeds = settings.seeds,
      updates = stages.policy and ('%.0f'):format(all[c].updates / all[c].cells) or nil,
      verdict = without and #without.over == #all[c].over and c > 2 and { text = ('the policy: %s'):format(
        page.against(all[c].over, without.over).text) } or nil }
  end
end

local stages = { name = 'stages', title = 'What each stage of our search adds', learns = true, run = stage_rows,
  quick = 'in layers on two GPUs, GNMT where --models names none', heads = { ours = 'step over bound' },
  about = 'Medians over networks, GPUs and seeds of the step time over the lower bound, for every combination of '
    .. 'stages with equally many placements; the last column compares each with a policy to the one without, run by '
    .. 'run. The paper has no such table.' }

-- The logarithm of the step time over the bound: graphs of all sizes teach with rewards of one size.
local function score(problem, metrics)
  return -math.log(metrics.step_time_s / problem:bounds().step_time_s) - (metrics.feasible and 0 or 3)
end

--- Trains on a problem from the weights in `from` (nil: fresh), and keeps them in `to` (nil: not). Returns the mean of
--- the first batch over the bound.
local function train(problem, seed, updates, from, to)
  local agent, start = make_agent(problem, { seed = seed, load = from }), nil
  for update = 1, math.max(1, updates) do
    local list, sum, placements = {}, 0, agent:sample()
    for i, metrics in ipairs(problem:evaluate_batch(placements)) do
      list[i] = score(problem, metrics)
      sum = sum + metrics.step_time_s / problem:bounds().step_time_s
    end
    start = start or sum / #placements
    if update <= updates then agent:update(list) end
  end
  if to then agent:save(to) end
  agent:close()
  return start
end

local function unseen_rows(rows, settings)
  local names = settings.quick and { 'alexnet', 'vgg16', 'rnnlm' }
    or { 'alexnet', 'vgg16', 'resnet50', 'inception_v3', 'rnnlm', 'gnmt', 'transformer' }
  local all = util.map(names, function(name)
    return problems.new { graph = model.load(name, { batch_size = 16 }), cluster = model.cluster 'p100x4' }
  end)
  local updates = math.max(1, math.floor(settings.updates / 10))
  for left, name in ipairs(names) do
    local fresh, known = {}, {}
    local file = ('%s/without-%s.policy'):format(settings.output, name)
    for i = 1, settings.seeds do
      local seed, from = settings.seed + i - 1, nil
      for other, problem in ipairs(all) do
        if other ~= left then
          train(problem, seed, updates, from, file)
          from = file
        end
      end
      fresh[i], known[i] = train(all[left], 100 + seed, 0), train(all[left], 100 + seed, 0, file)
    end
    local single = all[left]:evaluate(all[left]:placement()).step_time_s / all[left]:bounds().step_time_s
    local ratio = util.median(util.map(known, function(value) return value end)) / single
    local said = ratio < 0.99 and 'better than one GPU' or ratio < 1.01 and 'it samples one GPU'
      or 'worse than one GPU'
    rows:add { what = name, literal = page.runs(fresh), ours = page.runs(known), seeds = settings.seeds,
      updates = updates * (#names - 1), verdict = { text = ('one GPU is %.3f: %s'):format(single, said) } }
  end
end

local unseen = { name = 'unseen', title = 'A policy on a graph that it has not seen', learns = true, run = unseen_rows,
  quick = 'three networks', heads = { literal = 'fresh policy', ours = 'trained on the others' },
  about = 'Mean step time over the lower bound of the first batch that a policy samples on four GPUs, before any '
    .. 'update there. The updates were on the other networks. For comparison, one GPU: a policy that learned "use '
    .. 'one GPU" carries that over.' }

return { stages, unseen }
