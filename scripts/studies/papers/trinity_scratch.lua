-- Trinity's policy from nothing: no warm start, refinement, contiguity or other prior on placements. What it takes to
-- end better than one GPU, and how that compares with the expert and Hierarchical.

local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local page = require 'studies.papers.page'
local paper = require 'studies.papers.trinity'
local make_agent = require 'trinity.learn.agent'
local problems = require 'trinity.strategy.problem'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local updates = 1000 -- in which the entropy weight falls: 20,000 placements; --quick has fewer
local most_hierarchical = 1000 -- placements of Hierarchical, which take half a second each

--- Preset 'scratch' with a group per GPU: every action learns from its own contribution; each group starts on one
--- device and stays there, so that the partition network alone learns; and the entropy weight falls from 1.
local function scratch_options(cards, seed, count)
  return { preset = 'scratch', seed = seed, samples = paper.samples, groups = cards, entropy_updates = count }
end

--- Trains or, frozen, only samples: the largest reward of count updates' placements.
local function best_of(problem, seed, count, frozen)
  local agent = make_agent(problem, scratch_options(#problem.cluster.devices, seed, count))
  local best = -math.huge
  for _ = 1, count do
    local placements, list = agent:sample(), {}
    local metrics = problem:evaluate_batch(placements)
    for i = 1, #metrics do
      list[i] = problem:score(metrics[i], placements[i])
      best = math.max(best, list[i])
    end
    if not frozen then agent:update(list, nil, metrics) end
  end
  agent:close()
  return best
end

local function over_seeds(settings, run)
  return util.listed(settings.seeds, function(i) return run(settings.seed + i - 1) end)
end

-- The number of runs that end above every run of a baseline.
local function above(runs, rival)
  local most, count = math.max(unpack(rival)), 0
  for _, reward in ipairs(runs) do count = count + (reward > most and 1 or 0) end
  return count
end

local function cell(rows, settings, problem, label)
  local count = settings.quick and settings.updates or updates
  local function method(name, seed, options)
    local given = util.merged({ quiet = true, seed = seed }, options)
    local found = page.unless_stopped(methods[name](problem, given))
    return found.reward, found.updates
  end
  local placements = math.min(count * paper.samples, most_hierarchical)
  local hierarchical = settings.quick and 'Hierarchical'
    or ("Hierarchical, its authors' settings, %d placements"):format(placements)
  local reward, hierarchical_updates = method('hierarchical', settings.seed,
    { preset = not settings.quick and 'paper' or nil, evaluations = placements })
  local rivals = { { 'one GPU', { (method('single_device', settings.seed)) } },
    { 'expert', { (method('expert', settings.seed)) } }, { hierarchical, { reward }, 1, hierarchical_updates },
    { 'never updated', over_seeds(settings, function(seed) return best_of(problem, seed, count, true) end),
      settings.seeds, 0 } }
  local learned = over_seeds(settings, function(seed) return best_of(problem, seed, count) end)
  for _, rival in ipairs(rivals) do
    rows:add { what = label .. ', ' .. rival[1], ours = page.runs(rival[2]), seeds = rival[3], updates = rival[4],
      verdict = { text = ('the policy is above it in %d of %d'):format(above(learned, rival[2]), #learned) } }
  end
  rows:add { what = label .. ', learned', ours = page.runs(learned), updates = count, seeds = settings.seeds }
end

local function run(rows, settings)
  for _, name in ipairs { 'inception_v3', 'gnmt' } do
    if not settings.models or settings.models[name] then
      local graph = paper.load(name, { batch_size = 64 }, settings.quick and 'layer')
      for _, cards in ipairs(settings.quick and { 2 } or { 2, 4 }) do
        local problem = problems.new { graph = graph, cluster = model.cluster(('p100_paperx%d'):format(cards)),
          reward = rewards.mdpe() }
        cell(rows, settings, problem, ('%s x%d'):format(name, cards))
      end
    end
  end
end

return { name = 'scratch', title = 'The policy from nothing', learns = true, run = run,
  quick = 'layers for operators, two GPUs', heads = { ours = 'largest reward' },
  about = 'The policy alone, without warm start, refinement, contiguity or another prior, by MDPE (larger is better). '
    .. 'Three changes: every action has its own advantage, read off the timeline of its sample (credit = "action"); '
    .. 'one group per GPU, each on its own GPU, while the schedule network is not trained; and an entropy weight '
    .. 'that falls. Operators in colocation units act.' }
