-- Training rankers of moves (lib/trinity/search/rankers.lua): what `trinity train` does.

local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local training = {}

training.rounds_of_imitation = 4
local episodes_of_imitation, episodes_of_ppo = 3, 2 -- a problem
local ppo_learning_rate = 3e-4
local most_episodes = 96 -- of a round, which keeps what every move of theirs was chosen from until it has learned
local most_starts = 5
local most_memory = 0.95 -- weight of memory in a sampled reward

-- Attention in single operators, so that there is more to place.
local apart = { kernels = 'onnx', fused = true, optimizer = 'momentum' }
local model_options = { gpt2 = apart, vit_b16 = apart, moe_transformer = apart,
  bert_base = { kernels = 'onnx', optimizer = 'momentum' } }

--- The graph of a text MODEL or MODEL:BATCH. load: in place of trinity.model.
local function graph_of(text, load)
  local name, batch = text:match '^([^:]+):?(%d*)$'
  if not name then util.fail_usage("'%s': expected MODEL or MODEL:BATCH", text) end
  return load(name, util.merged({ batch_size = tonumber(batch) }, model_options[name]))
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
  table.sort(list, util.by('-reward', 'order'))
  return list
end

--- Every graph of a list with every cluster of another (texts with commas): { label, problem, starts }, but for those
--- on which no heuristic fits, whose labels come second. reward: nil for the step time alone. load: of graphs, in place
--- of trinity.model.
function training.cases(graphs, clusters, reward, load)
  local cases, left_out = {}, {}
  for _, text in ipairs(util.words(graphs)) do
    local graph = graph_of(text, load or model.load)
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

--- The reward with a share of memory, relative to the metrics of a start.
function training.memory_reward(start, share)
  return rewards.mdpe { alpha = 1 - share, beta = 0, mode = 'linear',
    gamma = share * start.step_time_s, memory_tolerance_bytes = start.peak_memory_bytes }
end

--- The reward of an episode: a share of memory, sampled uniformly, the rest of it the step time.
function training.front_reward(start, random)
  return training.memory_reward(start, most_memory * random:uniform())
end

--- Adds the cases to a trainer. reward: nil, or a function that samples the reward of each episode.
function training.add(trainer, cases, reward)
  for _, case in ipairs(cases) do
    local starts = util.listed(math.min(most_starts, #case.starts), function(i) return case.starts[i].placement end)
    trainer:add(case.problem, starts, reward)
  end
end

-- The episodes of a round; beyond `most_episodes` the problems take turns in rounds that follow.
local function episodes(of_problem, count) return math.min(most_episodes, of_problem * count) end

--- Round number `round` (from 1) on `count` problems: `imitation` times (4) the moves that help, then the choice among
--- candidates. Returns its name and report. Its memory in addition to the problems grows neither with rounds nor with
--- problems beyond 32 (imitation) or 48.
function training.round(trainer, round, count, imitation)
  if round <= (imitation or training.rounds_of_imitation) then
    return 'imitate', trainer:imitate(episodes(episodes_of_imitation, count))
  end
  trainer:set { learning_rate = ppo_learning_rate }
  return trainer.options.clip > 0 and 'ppo' or 'reinforce', trainer:reinforce(episodes(episodes_of_ppo, count))
end

return training
