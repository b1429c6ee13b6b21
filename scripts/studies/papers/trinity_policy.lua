-- What becomes of the Trinity policy alone, from nothing: figure 5 of the paper (how it converges), and its settings
-- read literally with the changes that make them learn, one at a time.

local model = require 'trinity.graph.model'
local page = require 'studies.papers.page'
local paper = require 'studies.papers.trinity'
local make_agent = require 'trinity.learn.agent'
local problems = require 'trinity.strategy.problem'
local rewards = require 'trinity.strategy.rewards'
local util = require 'trinity.base.util'

local function problem_of(name, cards, settings)
  local graph = paper.load(name, { batch_size = name:match '^nasnet' and 8 or 64 }, settings.quick and 'layer')
  return problems.new { graph = graph, cluster = model.cluster(('p100_paperx%d'):format(cards)),
    reward = rewards.mdpe() }
end

--- Trains an agent: { losses =, first = mean reward of the first batch, last =, best = largest reward drawn, one_card =
--- share of the last batch on one card }. frozen: the same draws budget without an update.
local function train(problem, options, updates, frozen)
  local agent = make_agent(problem, util.merged({ samples = paper.samples }, options))
  local found = { losses = {}, best = -math.huge }
  for update = 1, updates do
    local list, sum, single, placements = {}, 0, 0, agent:sample()
    for i, metrics in ipairs(problem:evaluate_batch(placements)) do
      list[i] = problem:score(metrics, placements[i])
      sum, found.best = sum + list[i], math.max(found.best, list[i])
      single = single + (metrics.peak_communication_bytes == 0 and 1 or 0)
    end
    found.first, found.last, found.one_card = found.first or sum / #list, sum / #list, single / #list
    found.losses[update] = frozen and 0 or agent:update(list).loss
  end
  agent:close()
  return found
end

local function runs_of(problem, options, settings, frozen)
  return util.listed(settings.seeds, function(i)
    return train(problem, util.merged(options, { seed = settings.seed + i - 1 }), settings.updates, frozen)
  end)
end

local function medians(runs, name) return util.median(util.map(runs, function(run) return run[name] end)) end

-- Changes from the paper's settings to those that work best here, each on top of those before.
local changes = {
  { 'literal', {} },
  { 'one LSTM layer', { layers = 1 } },
  { 'units act, not operators', { actions = 'units' } },
  { 'ratio by action', { ratio = 'action' } },
  { 'no dropout, no noise', { dropout = 0, noise_steps = 0 } },
  { 'learning rate 2e-3', { learning_rate = 2e-3 } },
  { 'min(256, 20 devices) groups, hidden 96', { groups = 0, hidden = 96 } },
  { 'features in logarithms, depth, both directions', { raw_time = false, raw_output = false, group_time = true,
    mean_output_size = false, adjacency = 'both', depth_feature = true } },
  { 'advantages to one scale, entropy 0.01', { normalize_advantage = true, entropy_weight = 1e-2 } },
  { 'groups in order of the graph', { order_groups = true } },
  { 'starts with few cuts (contiguity, switches)', { contiguity = 6, switch_probability = 0.1 } },
}

-- How a trained policy's last batch compares with one card.
local function verdict_of(run_means, single, one_card)
  local said = one_card > 0.5 and ('%.0f %% of the last batch is one card'):format(100 * one_card)
    or run_means > single and 'its last batch is better than one card' or 'its last batch is worse than one card'
  return { text = said }
end

-- What a section takes of its settings: rows whose steps take seconds have few updates and one seed.
local function shortened(settings, most)
  return util.merged(settings, { updates = math.min(settings.updates, most), seeds = 1 })
end

local function literal_rows(rows, settings)
  if settings.quick then settings = shortened(settings, 2) end
  for _, name in ipairs(settings.quick and { 'gnmt' } or { 'inception_v3', 'gnmt' }) do
    if not settings.models or settings.models[name] then
      local problem, options = problem_of(name, 2, settings), { preset = 'paper' }
      local single = problem:score(problem:evaluate(problem:placement()), problem:placement())
      for i, change in ipairs(changes) do
        options = util.merged(options, change[2])
        local own = i == 1 and shortened(settings, settings.quick and 1 or 2) or settings -- two layers take long
        local found = runs_of(problem, options, own)
        local frozen = i == #changes and runs_of(problem, options, own, true)
        local text = ('best %.3f, last batch %.3f'):format(medians(found, 'best'), medians(found, 'last'))
        rows:add { what = ('%s: %s%s'):format(name, i > 1 and '+ ' or '', change[1]), literal = i == 1 and text or nil,
          ours = i > 1 and text or nil, updates = own.updates, seeds = own.seeds,
          verdict = verdict_of(medians(found, 'last'), single, medians(found, 'one_card')) }
        if frozen then
          rows:add { what = name .. ': the same, never updated', ours = ('best %.3f, last batch %.3f'):format(
            medians(frozen, 'best'), medians(frozen, 'last')), updates = 0, seeds = own.seeds,
            verdict = { text = ('one card is %.3f'):format(single) } }
        end
      end
    end
  end
end

local literal = { name = 'literal', title = "The paper's settings, read literally, and what makes them learn",
  learns = true, run = literal_rows,
  quick = 'GNMT, layers for operators, at most 2 updates',
  about = 'The policy alone on two cards, from nothing, by MDPE (larger is better). Each row has the changes of those '
    .. 'above it. Literal: one ratio of all actions (eq. 14), 256 groups, two layers of 256 (on LibTorch: 2 updates at '
    .. 'most), operators as actions, sizes and times without logarithms, edges ahead alone, learning rate 0.1.' }

local function convergence_rows(rows, settings)
  for _, name in ipairs(settings.quick and { 'inception_v3' } or { 'nmt', 'nasnet_large', 'inception_v3' }) do
    if not settings.models or settings.models[name] then
      local problem = problem_of(name, 2, settings)
      for _, kind in ipairs { 'paper', 'ours' } do
        local options = kind == 'paper' and { preset = 'paper', layers = 1 } or {}
        local own = kind == 'paper' and shortened(settings, settings.quick and 2 or settings.updates) or settings
        local found = runs_of(problem, options, own)
        local at = math.min(25, own.updates)
        local early, late = {}, {}
        for _, run in ipairs(found) do
          early[#early + 1], late[#late + 1] = run.losses[at], run.losses[own.updates]
        end
        local text = ('%s, at last %s'):format(page.runs(early), page.runs(late))
        rows:add { what = ('%s, loss after %d updates'):format(name, at), claimed = at == 25 and 'below 10' or nil,
          literal = kind == 'paper' and text or nil, ours = kind == 'ours' and text or nil, updates = own.updates,
          seeds = own.seeds, verdict = { text = ('mean reward %.3f to %.3f'):format(medians(found, 'first'),
            medians(found, 'last')) } }
      end
    end
  end
end

local figure5 = { name = 'figure5', title = 'Figure 5: convergence', learns = true, run = convergence_rows,
  quick = 'InceptionV3 in layers',
  about = "The paper's loss falls below 10 after about 25 of 100 updates; of which loss, it does not say. Ours is "
    .. 'minus the clipped objective, which is near 0 by construction: the rewards say whether the policy learns.' }

return { literal, figure5 }
