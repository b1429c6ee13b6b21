-- TAPP (Appl. Sci. 2021, 11(11), 4785; papers/notes.md "TAPP: what is stated"): a partition network puts the layers of
-- a model into groups, an allocation network with attention gives every group a node (trinity.learn.stage_policy). Both
-- learn by policy gradient from the time of a batch, averaged over several evaluations. The paper gives no sizes,
-- rates, models or clusters: the rest, above all the defaults, are proposals of ours (papers/notes.md "TAPP: what is
-- ours"). Moves of stages (trinity.search.stage_moves) then use the rest of the budget.

local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local env_of = require 'trinity.env'
local layer_chain = require 'trinity.search.layer_chain'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local stage_moves = require 'trinity.search.stage_moves'
local stage_policy = require 'trinity.learn.stage_policy'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local util = require 'trinity.base.util'

local setting = trained.option
local declared = options_of.declare('trinity.TappOptions', { extends = search.declared,
  help = 'Settings of methods.tapp; all defaults are proposals, the paper states none (lib/trinity/methods/tapp.lua).',
  { 'groups', 'integer', 0, least = 0, most = trained.units(4096),
    help = 'maximum number of groups of layers; 0: the number of devices' },
  setting('samples', 8),
  { 'hidden', 'integer', 64, least = 1, most = 8192, help = "width of the allocation network's LSTMs" },
  { 'repeats', 'integer', 5, least = 1, most = 1e6, help = 'evaluations of a placement that are averaged' },
  { 'noise', 'number', 0.02, least = 0, most = 10, help = 'deviation of the factor that each of them is off by' },
  { 'greedy_every', 'integer', 10, least = 1, most = 1e9,
    help = 'batches between evaluations of the most likely placement' },
  { 'refine', 'number', 0.5, least = 0, most = 1,
    help = "share of the budget that moves ends and nodes of the best placement's stages" },
  { 'learn', 'boolean', true, help = 'whether the policy is updated; false: its initial weights sample throughout' },
  { 'published_reward', 'boolean', true,
    help = "learn from minus the root of the step time, not the problem's reward" },
  setting('learning_rate', 6e-3), setting('entropy_weight', 1e-2, 'bonus per choice, at least'),
  setting('gradient_norm', 1), setting('baseline_n', 19), setting('normalize_advantage', true),
})

local infeasible = -10 -- a constant; its value is Hierarchical's: papers/notes.md "Hierarchical"
local entropy_start, entropy_decay = 0.1, 0.99 -- the bonus of the first batch, and its factor per batch

local function tapp(problem, given)
  local options = search.options('tapp', declared, given, problem)
  local share, nodes = 1 - options.refine, #problem.cluster.devices
  return trained.run('tapp', problem, options, function(run)
    local chain, last, noise = layer_chain.of(problem), math.max(1, math.ceil(share * options.evaluations)), nil
    local policy = stage_policy { chain = chain, nodes = nodes, hidden = options.hidden, seed = options.seed,
      groups = math.min(chain.layers, options.groups > 0 and options.groups or nodes) }
    local function placements(actions)
      return util.map(policy:schemes(actions), function(s) return layer_chain.placement(problem, chain, s) end)
    end
    local function try(count, stream)
      run:evaluate(placements((tensor.no_grad(policy.forward, policy, count, stream))))
    end
    local env = env_of(problem, { actions = 'joint', num_envs = options.samples, search = run, decode = placements,
      signal = function(metrics, reward)
        local off = 0
        for _ = 1, options.repeats do off = off + options.noise * noise:normal() / options.repeats end
        if not options.published_reward then return reward * (1 + off) end
        return metrics.feasible and -math.sqrt(metrics.step_time_s * math.max(1 + off, 0)) or infeasible
      end })
    local learner, play = trained.reinforce(policy, options), trained.player(env, policy, options.seed)
    run.stages = options.refine > 0 and { 'untrained policy', 'moves' } or nil
    return { policy = policy, notes = learner.notes,
      resume = function(notes)
        if notes.stage == 'refine' then last = 0 else learner.resume(notes) end
      end,
      play = function(number)
        if number == 1 and last < options.samples and last > 0 and share < 1 then -- too few to learn from
          return try(last, core.random(options.seed, 'policy', number))
        end
        local in_time = core.clock_s() - run.start < (share > 0 and share * options.seconds or 0)
        local goes_on = share == 1 or last > 0
          and (run.evaluations == 0 or in_time and run.evaluations + options.samples <= last)
        if not dist_search.goes_on(run, run.agrees, goes_on) then return nil end
        noise = core.random(options.seed, 'tapp noise', number)
        return play(number)
      end,
      learn = function(batch, number, step)
        local weight = math.max(options.entropy_weight, entropy_start * entropy_decay ^ (number - 1))
        local row = trained.row(learner.learn(batch, step, weight))
        if number % options.greedy_every == 0 and dist_search.more(run, run.agrees) then try(1) end
        return row
      end,
      finish = function(notes)
        if run.best and share < 1 then stage_moves.refine(run, chain, nodes, notes) end -- else its time was up before
      end }
  end)
end

return function(methods)
  methods.register('tapp', tapp, { help = 'layers into groups, groups to nodes with attention, by REINFORCE',
    budget = true, source = 'Appl. Sci. 2021, 11(11), 4785', options = declared })
end
