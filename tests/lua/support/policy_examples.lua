-- Valid arguments for trinity.learn, trinity.env and trinity.learn.features: see examples.lua, whose tables this fills.

local trinity = require 'trinity'
local array = require 'trinity.base.array'

return function(examples)
  local objects, values, arguments = examples.objects, examples.values, examples.arguments

  local function problem() return examples.shared().problem end
  local function agent()
    local made = trinity.learn.agent(problem(), { samples = 2, groups = 2, hidden = 2, epochs = 1 })
    made:sample()
    return made
  end
  local function small_features() return { node2vec = { dimensions = 2, walks_per_node = 1, epochs = 1 } } end

  local function ranker() return trinity.search.rankers.new { hidden = { 2 } } end
  -- A chain long enough that moves seldom lead to a placement that is known.
  local chain
  local function long_problem()
    if chain then return chain end
    local builder, last = trinity.graph.new { name = 'long' }, nil
    for i = 1, 12 do
      last = builder:add { name = 'work' .. i, type = 'Work', inputs = { last }, outputs = { { bytes = 8 } },
        measured_time_s = i * 1e-3 }
    end
    chain = trinity.problem { graph = builder:build(), cluster = examples.shared().cluster }
    return chain
  end
  local function trainer()
    local made = trinity.search.rankers.trainer(ranker(), { evaluations = 16 })
    made:add(long_problem(), { long_problem():placement() })
    return made
  end
  local function candidates()
    local p, seen = problem(), nil
    local searcher = require 'trinity.search.ranked'.searcher(p, 'annealing', {}, function(given)
      seen = given
      local scores = {}
      for i = 1, given.count do scores[i] = 0 end
      return scores
    end)
    local room, scores, excess = p:placements(8), array.double(8), array.double(8)
    for turn = 1, 2 do
      for i = 1, searcher:ask(room, 8) do scores[i] = turn + i end
      searcher:tell(scores, excess)
    end
    return seen
  end
  objects['trinity.RankersModule'] = function() return trinity.search.rankers end
  objects['trinity.Ranker'] = ranker
  objects['trinity.MoveTrainer'] = trainer
  objects['trinity.MoveCandidates'] = candidates
  local function env()
    local made = trinity.env(problem(), { num_envs = 1 })
    made:reset(1)
    return made
  end
  objects['trinity.Env'] = env
  local function actor_critic() return trinity.learn.scorer(env(), { hidden = 2 }) end
  objects['trinity.LearnModule'], objects['trinity.ActorCritic'] = function() return trinity.learn end, actor_critic
  local short = { total_timesteps = 4, num_steps = 2 }
  for _, name in ipairs { 'ppo', 'reinforce', 'cross_entropy' } do
    arguments['trinity.LearnModule.' .. name] = function() return { env(), actor_critic(), short } end
  end
  arguments['trinity.LearnModule.evolution'] = function()
    return { env(), actor_critic(), { generations = 1, population = 1 } }
  end
  arguments['trinity.LearnModule.clone'] = function()
    return { env(), actor_critic(), function() return { 1 } end, { updates = 1, num_steps = 1 } }
  end
  local function rows() return trinity.tensor.zeros { 2, 2 } end
  arguments['trinity.LearnModule.returns'] = function() return { rows(), rows(), 1, trinity.tensor.zeros { 2 } } end
  arguments['trinity.LearnModule.gae'] = function() return { rows(), rows(), rows(), trinity.tensor.zeros { 2 } } end
  arguments['trinity.LearnModule.scorer'] = function() return { env(), { hidden = 2 } } end
  arguments['trinity.LearnModule.policy'] = function() return { actor_critic().network } end
  for _, name in ipairs { 'act', 'value' } do
    arguments['trinity.ActorCritic.' .. name] = function() return { env():observation() } end
  end
  arguments['trinity.ActorCritic.evaluate'] = function()
    return { env():observation(), trinity.tensor.ones({ 1 }, { dtype = 'int64' }) }
  end
  arguments['trinity.env'] = function() return { problem(), { num_envs = 1 } } end
  arguments['trinity.Env.step'] = function() return { { 1 } } end
  objects['trinity.Agent'] = agent

  values['trinity.FeatureOptions'] = small_features

  local function of(class, name, make) arguments[('trinity.%s.%s'):format(class, name)] = make end
  of('LearnModule', 'agent', function() return { problem(), { samples = 2, groups = 2, hidden = 2 } } end)
  local quick = { post = {}, colocrl = { hidden = 2 }, hierarchical = { hidden = 2 }, placeto = { hidden = 2 },
    doppler = { hidden = 2 } }
  for name, own in trinity.system.sorted_pairs(quick) do
    of('MethodsModule', name, function()
      own.samples, own.groups, own.evaluations, own.quiet = 2, 2, 3, true
      return { problem(), own }
    end)
  end
  of('RankersModule', 'load', function()
    local path = examples.path()
    ranker():save(path)
    return { path }
  end)
  of('RankersModule', 'new', function() return { { hidden = { 2 } } } end)
  of('RankersModule', 'trainer', function() return { ranker(), { evaluations = 32 } } end)
  of('Ranker', 'save', function() return { examples.path(), { seed = '1' } } end)
  of('MoveTrainer', 'add', function() return { problem(), { examples.shared().placement } } end)
  of('MoveTrainer', 'set', function() return { { clip = 0 } } end)
  of('MoveTrainer', 'imitate', function() return { 1 } end)
  of('MoveTrainer', 'reinforce', function() return { 1 } end)
  of('MoveTrainer', 'save', function() return { examples.path(), { seed = '1' } } end)
  of('MoveTrainer', 'resume', function()
    local path = examples.path()
    trainer():save(path)
    return { path }
  end)
  local function moves() return problem():moves {} end
  objects['trinity.Moves'] = moves
  objects['trinity.TaskGraph'] = function() return problem():task_graph() end
  of('TaskGraph', 'missing_followers', function(self) return { self.unit, 1 } end)
  objects['trinity.DrawnMoves'] = function() return moves():draw(examples.shared().placement, 4) end
  of('Moves', 'look', function() return { examples.shared().placement } end)
  of('Moves', 'draw', function() return { examples.shared().placement, 4, 0.1 } end)
  of('DrawnMoves', 'move', function() return { 1 } end)
  of('DrawnMoves', 'apply', function() return { 1, problem():placement() } end)
  of('DrawnMoves', 'get', function() return { 1, 'wait' } end)
  of('Ranker', 'score', function() return { candidates() } end)
  of('Problem', 'step_state', function() return { examples.shared().placement } end)
  of('Problem', 'operator_times', function() return { 1 } end)
  of('MoveCandidates', 'get', function() return { 1, 'wait' } end)
  of('MoveCandidates', 'move', function() return { 1 } end)
  of('Agent', 'update', function() return { { 1, 2 } } end)
  of('Agent', 'save', function() return { examples.path() } end)
  of('Agent', 'imitate', function() return { { examples.shared().placement }, { steps = 1 } } end)
end
