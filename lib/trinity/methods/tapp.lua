-- TAPP (Appl. Sci. 2021, 11(11), 4785; papers/notes.md "TAPP: what is stated"): a partition network puts the layers of
-- a model into groups, an allocation network with attention gives every group a node, both learn by policy gradient
-- from the time of a batch.
--
-- The paper gives no sizes, rates, models or clusters. What is its own: groups by layers, one network for the
-- groups and one with attention for the nodes, joint policy gradient on the time of one batch, several evaluations of
-- a scheme averaged. Everything else is a proposal of ours (papers/notes.md "TAPP: what is ours"), above all the
-- defaults of all options:
--   mode       'cuts': the partition network scores where groups end, so that they are contiguous, and a node that
--              has been left is not taken again: every scheme is a pipeline. 'isotonic': a group for every layer by
--              itself, then the running maximum along the layers. 'literal': a group for every layer, no repair;
--              stages are the runs of layers on one node. There a scheme that is no pipeline counts as not fitting.
-- The others: trinity.TappOptions. A policy that has settled still tries its neighbours (explore), and settles later by
-- an entropy bonus that falls from batch to batch.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local dist_search = require 'trinity.search.shared'
local layer_chain = require 'trinity.tapp.layer_chain'
local learner = require 'trinity.learn.learner'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local tapp_moves = require 'trinity.tapp.moves'
local tapp_policy = require 'trinity.tapp.policy'
local util = require 'trinity.base.util'

local setting = learner.option
local declared = options_of.declare('trinity.TappOptions', { extends = search.declared,
  help = 'Settings of methods.tapp; all defaults are proposals, the paper states none (lib/trinity/methods/tapp.lua).',
  { 'groups', 'integer', 0, least = 0, most = learner.units(4096),
    help = 'the most groups of layers; 0: as many as there are devices' },
  { 'mode', options_of.words('trinity.TappMode', { 'cuts', 'isotonic', 'literal' }), 'cuts',
    help = 'contiguous groups by their ends, or a group a layer, repaired or not' },
  setting('samples', 8),
  { 'hidden', 'integer', 64, least = 1, most = 8192, help = "width of the allocation network's LSTMs" },
  { 'explore', 'number', 0.1, least = 0, most = 1, help = 'share of choices that are drawn uniformly' },
  { 'repeats', 'integer', 5, least = 1, most = 1e6, help = 'evaluations of a placement that are averaged' },
  { 'noise', 'number', 0.02, least = 0, most = 10, help = 'deviation of the factor that each of them is off by' },
  { 'greedy_every', 'integer', 10, least = 1, most = 1e9,
    help = 'batches between evaluations of the most likely placement' },
  { 'refine', 'number', 0.5, least = 0, most = 1,
    help = "share of the budget that moves ends and nodes of the best placement's stages" },
  { 'learn', 'boolean', true, help = 'whether the policy is updated; false: its first state draws all along' },
  { 'published_reward', 'boolean', true,
    help = "learn from minus the root of the step time, not the problem's reward" },
  setting('learning_rate', 6e-3), setting('entropy_weight', 1e-2, 'bonus per choice, at least'),
  { 'entropy_start', 'number', 0.1, least = 0, most = 1e6, help = 'bonus per choice at first' },
  { 'entropy_decay', 'number', 0.99, least = 0, most = 1, help = 'factor per batch in between' },
  setting('gradient_norm', 1), setting('baseline_n', 19), setting('normalize_advantage', true),
})

local infeasible = -10 -- a constant; its value is Hierarchical's: papers/notes.md "Hierarchical"

local function make_policy(problem, options)
  local policy = tapp_policy.new(layer_chain.of(problem), #problem.cluster.devices, options)
  --- Every layer on the node of its group.
  function policy:placements(actions)
    local placements = self:schemes(actions)
    for s, node_of in ipairs(placements) do placements[s] = layer_chain.placement(problem, self.chain, node_of) end
    return placements
  end
  return policy
end

-- What a scheme's evaluations tell, averaged: minus the square root of its time. And a part of checkpoints: how many
-- were told, so that the noise goes on where it was.
local function signal_of(options)
  local stream, told = core.random(options.seed, 'tapp noise', 1), 0
  local own = { notes = function() return { told = told } end, resume = function(notes)
    told = tonumber(notes.told) or 0
    for _ = 1, told * options.repeats do stream:normal() end
  end }
  return function(metrics, reward)
    local off = 0
    told = told + 1
    for _ = 1, options.repeats do off = off + options.noise * stream:normal() / options.repeats end
    if not options.published_reward then return reward * (1 + off) end
    return metrics.feasible and -math.sqrt(metrics.step_time_s * math.max(1 + off, 0)) or infeasible
  end, own
end

-- A search whose budget ends at a share of it, at least one evaluation.
local function shortened(run, share)
  local last = math.max(1, math.ceil(share * run.options.evaluations))
  local most_s = share < 1 and share * run.options.seconds or math.huge
  return setmetatable({ whole = run,
    more = function()
      return run:more() and run.evaluations < last and (run.evaluations == 0 or core.clock_s() - run.start < most_s)
    end,
    allowance = function(_, wanted) return math.min(run:allowance(wanted), last - run.evaluations) end,
    evaluate = function(_, ...) return run:evaluate(...) end,
  }, { __index = run })
end

-- Spends what is left of the budget on neighbours of the best scheme so far, a batch at a time; the ranks of a job
-- share it. `resumed`: the notes of a checkpoint of this, or nil.
local function refine(problem, policy, run, job, resumed)
  local options, chain, first, batch = run.options, policy.chain, run.evaluations, 0
  local at, start_s = tapp_moves.of(chain, policy.nodes), core.clock_s()
  local node_of, cost = layer_chain.device_of(chain, run.placement), -run.best.reward
  if resumed then
    first, batch, cost = tonumber(resumed.first), tonumber(resumed.moves), tonumber(resumed.cost)
    node_of = checkpoints.unpack(resumed.nodes)
  end
  while dist_search.more(run, job) do
    batch = batch + 1
    local stream, schemes, placements = core.random(options.seed, 'tapp moves', batch), {}, {}
    local count = run:allowance(options.samples)
    local from, to = dist_search.range(job, count)
    for i = 1, count do schemes[i] = tapp_moves.neighbour(at, node_of, stream) end
    for i = from, to do placements[i - from + 1] = layer_chain.placement(problem, chain, schemes[i]) end
    local rewards, best = dist_search.evaluate(run, job, placements, from, count), 1
    for i = 2, #rewards do best = rewards[i] > rewards[best] and i or best end
    local share = math.max((run.evaluations - first) / math.max(1, options.evaluations - first),
      (core.clock_s() - start_s) / math.max(1e-9, options.seconds - (start_s - run.start)))
    if tapp_moves.accepts(-rewards[best], cost, dist_search.of_rank_0(job, math.min(1, share))) then
      node_of, cost = schemes[best], -rewards[best]
    end
    if checkpoints.due(run) then
      checkpoints.write(run.checkpoint, run, { stage = 'refine', first = first, moves = batch, cost = cost,
        nodes = checkpoints.pack(node_of) })
    end
  end
end

local function tapp(problem, options)
  options = search.options('tapp', declared, options, problem)
  return search.run('tapp', problem, options, function(run)
    local policy = make_policy(problem, options)
    local self, floor = learner.new('methods.tapp', policy, problem, util.merged(options)), options.entropy_weight
    local notes = learner.begin(self, run) or false
    run.stages = options.refine > 0 and { 'untrained policy', 'moves' } or nil
    local refining = notes and notes.stage == 'refine' and notes or nil
    if not refining then
      local signal, kept = signal_of(options)
      kept.begun = notes
      learner.train(self, shortened(run, 1 - options.refine), function(_, actions, rewards, batch)
        self.options.entropy_weight = math.max(floor, options.entropy_start * options.entropy_decay ^ (batch - 1))
        if options.learn then learner.reinforce(self, actions, rewards) end
        if batch % options.greedy_every == 0 and learner.more(self, run) then
          run:evaluate(policy:placements(policy:act(1)))
        end
      end, signal, kept)
    end
    if run.best then refine(problem, policy, run, self.job, refining) end -- else its time was up before
  end)
end

return function(methods)
  methods.register('tapp', tapp, { help = 'layers into groups, groups to nodes with attention, by REINFORCE',
    budget = true, source = 'Appl. Sci. 2021, 11(11), 4785', options = declared })
end
