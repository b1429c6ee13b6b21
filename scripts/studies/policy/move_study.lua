-- The gain of a ranker of moves on networks of families that it was not trained on: every family is held out in turn.
-- `trinity study policy study` prints it.

local comparison = require 'studies.policy.comparison'
local rankers = require 'trinity.search.rankers'
local training = require 'trinity.methods.move_training'
local util = require 'trinity.base.util'

local study = {}

--- Families of networks: the problems they are judged on, MODEL:BATCH with clusters, and the graphs that
--- stand for the others while one is held out. Training knows p100x2 and p100x4 alone.
study.families = {
  { name = 'cells', trained_on = 'inception_v3:64,resnet50:32,gpt2:4,gnmt:64',
    { 'nasnet_large:8', 'p100x2,p100x4,heterogeneous' }, { 'pnasnet_large:8', 'p100x4' } },
  { name = 'recurrent', trained_on = 'inception_v3:64,resnet50:32,gpt2:4,pnasnet_large:8',
    { 'gnmt:64', 'p100x2,p100x4,p100x8' }, { 'nmt:64', 'p100x4' }, { 'rnnlm:64', 'p100x4' } },
  { name = 'images', trained_on = 'gnmt:64,rnnlm:64,gpt2:4,nasnet_large:8',
    { 'inception_v3:64', 'p100x2,p100x4,heterogeneous,v100_ethernet' }, { 'inception_v3@tensorflow:64', 'p100x4' },
    { 'hrnet_w48:16', 'p100x4' }, { 'resnet50:32', 'p100x4' } },
  { name = 'attention', trained_on = 'inception_v3:64,resnet50:32,gnmt:64,nmt:64',
    { 'gpt2:4', 'p100x4' }, { 'transformer:16', 'p100x4' }, { 'bert_base:8', 'p100x4' },
    { 'moe_transformer:1', 'dgx1_v100' } },
}
study.train_clusters, study.rounds = 'p100x2,p100x4', 24

--- Other trainings of weights: the number of imitation rounds, and the learner of the other rounds. Each but the first
--- has the same number of episodes as the training above, which begins with 4 of imitation (416; imitation 408).
study.trainings = {
  { name = 'start', rounds = 4 },
  { name = 'imitation', rounds = 17, imitation = 17 },
  { name = 'REINFORCE', rounds = study.rounds, clip = 0 },
  { name = 'PPO alone', rounds = 26, imitation = 0 },
  { name = 'REINFORCE alone', rounds = 26, imitation = 0, clip = 0 },
}

--- Trainings for rewards of time and memory whose weights are sampled per episode and are inputs of the ranker or not.
study.of_fronts = {
  { name = 'with memory features', rounds = study.rounds, memory_features = true, reward = training.front_reward },
  { name = 'without memory features', rounds = study.rounds, reward = training.front_reward },
}
local most_of_oracle = 100 -- evaluations, each with some 50 simulations
local front_evaluations = 400 -- of an episode by such a reward

--- A hand-made score of the same features: the part of the critical path that a move takes along, less the work that it
--- collides with and the waiting that it exposes.
function study.by_hand(candidates)
  local scores = {}
  for i = 1, candidates.count do
    scores[i] = candidates:get(i, 'blame_less_collision') + candidates:get(i, 'critical_saved_less_largest')
      + candidates:get(i, 'time_gain') - candidates:get(i, 'exposed_added')
  end
  return scores
end

--- The weights of a family that were trained without it, from a folder, or trained now. from: { folder =,
-- training_seed = nil for 1 }; how: nil, or another training.
local function weights_of(family, from, hidden, suffix, say, how)
  local rounds, seed = how and how.rounds or study.rounds, from.training_seed or 1
  if seed ~= 1 then suffix = ('%s-seed-%d'):format(suffix, seed) end
  local path = ('%s/%s%s.safetensors'):format(from.folder, family.name, suffix)
  if util.exists(path) then return rankers.load(path) end
  local reward = how and how.reward
  local ranker = rankers.new { hidden = hidden, seed = seed, memory_features = how and how.memory_features }
  local trainer = rankers.trainer(ranker, { seed = seed, clip = how and how.clip,
    evaluations = reward and front_evaluations, first_temperature = reward and 1 })
  local cases = training.cases(family.trained_on, study.train_clusters)
  training.add(trainer, cases, reward)
  for round = 1, rounds do
    training.round(trainer, round, #cases, how and how.imitation)
    say(('%s%s: round %d of %d'):format(family.name, suffix, round, rounds))
  end
  ranker:save(path, { trained_on = family.trained_on .. ' on ' .. study.train_clusters, rounds = tostring(rounds),
    seed = tostring(seed) })
  return ranker
end

local function weights_by(how, family, from, say)
  return weights_of(family, from, { 32, 32 }, '-' .. how.name:gsub(' ', '-'):lower(), say, how)
end

--- Returns the ranker of a family, trained without it where the folder of `from` has none.
function study.ranker(name, from, say)
  for _, family in ipairs(study.families) do
    if family.name == name then return weights_of(family, from, { 32, 32 }, '', say) end
  end
end

-- Who searches: { name, method, rank, of_case = rank of a case, most = evaluations of its largest budget }. First the
-- methods without a ranker, then the trained one, random moves and the oracle of moves.
local function searches_of(family, options, say)
  local list = { { 'annealing' }, { 'best' }, { 'local_search' }, { 'plain annealing' },
    { 'trained', 'trinity', weights_of(family, options, { 32, 32 }, '', say) },
    { 'random moves', 'trinity', comparison.uniform } }
  if options.budgets[1].evaluations <= most_of_oracle then
    list[#list + 1] = { 'oracle', 'trinity', of_case = comparison.oracle, most = most_of_oracle }
  end
  if options.variants then
    list[#list + 1] = { 'untrained', 'trinity', rankers.new { seed = 7 } }
    list[#list + 1] = { 'linear', 'trinity', weights_of(family, options, {}, '-linear', say) }
    list[#list + 1] = { 'by hand', 'trinity', study.by_hand }
  end
  for _, how in ipairs(options.trainings and study.trainings or {}) do
    list[#list + 1] = { how.name, 'trinity', weights_by(how, family, options, say) }
  end
  return list
end

local function of_budget(searches, budget)
  return util.filtered(searches, function(search) return not search.most or budget.evaluations <= search.most end)
end

--- Runs it: options { folder =, training_seed =, budgets = list of { evaluations = } or { seconds = }, seeds =,
--- variants =, trainings = whether, families = nil or set of names }. Adds rows { label, family, times = {
--- [budget][search] = step times, one a seed }, best_s = of all, bound_s, heuristics = { { name, step_time_s } }, the
--- best first } as they are done; returns the names of searches.
function study.run(options, say, rows)
  local names = {}
  for _, family in ipairs(study.families) do
    if not options.families or options.families[family.name] then
      local searches = searches_of(family, options, say)
      names = util.map(searches, function(search) return search[1] end)
      for _, entry in ipairs(family) do
        for _, case in ipairs((comparison.cases(entry[1], entry[2]))) do
          local row = { label = case.label, family = family.name, times = {}, best_s = case.starts[1].step_time_s,
            bound_s = case.problem:bounds().step_time_s, heuristics = util.map(case.starts, function(start)
              return util.picked(start, { 'name', 'step_time_s' })
            end) }
          for b, budget in ipairs(options.budgets) do
            row.times[b] = {}
            for _, search in ipairs(of_budget(searches, budget)) do
              local times, rank = {}, search.of_case and search.of_case(case.problem) or search[3]
              for seed = 1, options.seeds do
                times[seed] = comparison.run(search[2] or search[1], case, budget, seed, rank)
                row.best_s = math.min(row.best_s, times[seed])
              end
              row.times[b][search[1]] = times
            end
            say(('%s: %d of %d budgets'):format(case.label, b, #options.budgets))
          end
          rows[#rows + 1] = row
        end
      end
    end
  end
  return names
end

--- Calls body(case, rankers) for every row of the families (nil: all), with the weights trained without its family: a
--- list { name, ranker } of those by the step time, `ranked`, and of others that `hows` say, as study.of_fronts does.
--- from: { folder =, training_seed = }.
function study.each_case(from, families, hows, say, body)
  for _, family in ipairs(study.families) do
    if not families or families[family.name] then
      local list = { { 'ranked', weights_of(family, from, { 32, 32 }, '', say) } }
      for _, how in ipairs(hows) do list[#list + 1] = { how.name, weights_by(how, family, from, say) } end
      for _, entry in ipairs(family) do
        for _, case in ipairs((comparison.cases(entry[1], entry[2]))) do body(case, list) end
      end
    end
  end
end

--- The geometric mean over seeds of a search's step time, in a row under a budget.
function study.mean_s(row, budget, search)
  local times = row.times[budget][search]
  return math.exp(util.sum(times, math.log) / #times)
end

--- The ratio of one search to another's.
function study.ratio(row, budget, search, other)
  return study.mean_s(row, budget, search) / study.mean_s(row, budget, other)
end

--- Whether the best heuristic is more than 3 % above the best known step of any search and budget of the row.
function study.has_headroom(row) return row.heuristics[1].step_time_s / row.best_s > 1.03 end

return study
