-- Training rankers of moves (lib/trinity/search/rankers.lua), and holding them against the same search without one:
-- what `trinity train` and `trinity policy` do.

local fronts = require 'trinity.methods.move_fronts'
local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local statistics = require 'trinity.base.statistics'
local study_options = require 'trinity.methods.study_options'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local training = {}

training.rounds_of_imitation = 4
local episodes_of_imitation, episodes_of_ppo = 3, 2 -- a problem
local ppo_learning_rate = 3e-4
local most_episodes = 96 -- of a round, which keeps what every move of theirs was chosen from until it has learned
local most_starts = 5
local most_memory = 0.95 -- share of a drawn reward

--- The graph that text NAME[:batch[:granularity]] says, and its label.
local function graph_of(text)
  local name, batch, granularity = text:match '^([^:]+):?(%d*):?(%a*)$'
  if not name then util.fail_usage("'%s': expected MODEL, MODEL:BATCH or MODEL:BATCH:GRANULARITY", text) end
  local options = { batch_size = tonumber(batch), granularity = granularity ~= '' and granularity or nil }
  return model.load(name, util.merged(options, study_options[name]))
end

--- Placements of heuristics that fit, the best first.
local function starts_of(problem)
  local list = {}
  for i, name in ipairs(warm_start.portfolio) do
    local found = methods.get(name)(problem, { quiet = true })
    if found and found.metrics.feasible then
      list[#list + 1] = { placement = found.placement, step_time_s = found.metrics.step_time_s, order = i, name = name,
        reward = found.reward }
    end
  end
  table.sort(list, function(a, b)
    if a.reward ~= b.reward then return a.reward > b.reward end
    return a.order < b.order
  end)
  return list
end

--- Every graph of a list with every cluster of another (texts with commas): { label, problem, starts }, but for those
--- on which no heuristic fits, whose labels come second. reward: nil for the step time alone.
function training.cases(graphs, clusters, reward)
  local cases, left_out = {}, {}
  for _, text in ipairs(util.words(graphs)) do
    local graph = graph_of(text)
    for _, name in ipairs(util.words(clusters)) do
      local problem = problems.new { graph = graph, cluster = model.cluster(name), reward = reward }
      local label, starts = ('%s on %s'):format(text, name), starts_of(problem)
      if #starts > 0 then
        cases[#cases + 1] = { label = label, problem = problem, starts = starts }
      else
        left_out[#left_out + 1] = label
      end
    end
  end
  return cases, left_out
end

--- The reward of an episode: a share of memory, drawn evenly, the rest of it the step time.
function training.front_reward(start, random) return fronts.reward(start, most_memory * random:uniform()) end

--- Adds the cases to a trainer. reward: nil, or what draws that of each episode.
function training.add(trainer, cases, reward)
  for _, case in ipairs(cases) do
    local starts = {}
    for i = 1, math.min(most_starts, #case.starts) do starts[i] = case.starts[i].placement end
    trainer:add(case.problem, starts, reward)
  end
end

-- Of a round; beyond `most_episodes` the problems take turns in rounds that follow.
local function episodes(of_problem, count) return math.min(most_episodes, of_problem * count) end

--- Round number `round` (from 1) on `count` problems: the moves that help, `imitation` times (4), then the choice among
--- candidates. Returns its name and report. What it needs beside the problems does not grow with rounds, nor with
--- problems beyond 32 (imitation) or 48.
function training.round(trainer, round, count, imitation)
  if round <= (imitation or training.rounds_of_imitation) then
    return 'imitate', trainer:imitate(episodes(episodes_of_imitation, count))
  end
  trainer:set { learning_rate = ppo_learning_rate }
  return trainer.options.clip > 0 and 'ppo' or 'reinforce', trainer:reinforce(episodes(episodes_of_ppo, count))
end

--- What a method finds from the best heuristic, whose price is in the budget { evaluations = } or { seconds = }: its
--- step time, and what a ranker came to. rank: option of method trinity.
function training.run(method, case, budget, seed, rank)
  local start, options = case.starts[1].placement, util.merged(budget, { seed = seed, quiet = true })
  if method == 'annealing' or method == 'local_search' then
    options.starts = { start }
  else
    options.warm_start, options.rank = { start }, rank
  end
  local found = methods[method](case.problem, options)
  if found.stopped then util.fail 'interrupted' end
  return found.metrics.step_time_s, found.ranking
end

--- Step times of the search with a ranker over those of another method, a seed each: a list. budget: { evaluations = }
--- or { seconds = }. known: what others came to, by method, which this fills.
function training.ratios(case, rank, other, budget, seeds, known)
  local ratios, ranking = {}, nil
  known[other] = known[other] or {}
  for seed = 1, seeds do
    known[other][seed] = known[other][seed] or training.run(other, case, budget, seed)
    local own_s
    own_s, ranking = training.run('trinity', case, budget, seed, rank)
    ratios[seed] = own_s / known[other][seed]
  end
  return ratios, ranking
end

--- The geometric mean of ratios, the bounds of its 95 % interval by the t distribution over rows, and the chance of
--- such a difference if there is none (signed ranks, Wilcoxon).
function training.summary(ratios)
  local logs = util.map(ratios, function(ratio) return math.log(ratio) end)
  local mean, half = statistics.mean(logs), 0
  if #logs > 1 then
    half = statistics.student(#logs - 1) * statistics.deviation(logs) / math.sqrt(#logs)
  end
  return math.exp(mean), math.exp(mean - half), math.exp(mean + half), statistics.signed_rank(logs).p
end

return training
