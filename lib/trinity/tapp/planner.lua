-- `trinity pipeline --method tapp`: TAPP (trinity.methods.tapp) on a network of a file, where a scheme is worth its
-- largest load on equal devices instead of a simulated batch. Every option that matters is a proposal, as there; a
-- quarter of the rounds are the policy's, the rest move ends and devices of the best scheme's stages. Layers stand in
-- the order of the file: where branches could stand otherwise, max_load_dp may have better contiguous splits.

local core = require 'trinity.core'
local learner = require 'trinity.learn.learner'
local progress = require 'trinity.base.progress'
local tapp_moves = require 'trinity.tapp.moves'
local tapp_policy = require 'trinity.tapp.policy'
local util = require 'trinity.base.util'

local settings = { samples = 8, learning_rate = 6e-3, entropy_weight = 1e-2, entropy_start = 0.1,
  entropy_decay = 0.99, gradient_norm = 1, baseline_n = 19, normalise_advantage = true, hidden = 64, groups = 0,
  mode = 'cuts', explore = 0.1 }
local default_rounds = 800 -- batches
local policy_share = 0.25 -- of the rounds, or of the seconds
local infeasible = -10

local most_layers = 1024 -- as many as planners take devices

-- Loads of the parts that the rule 'equal' makes when every layer may have a device of its own, and the part of every
-- node. In longer networks neighbours share a part.
local function parts_of(plan, bandwidth_bytes_per_s)
  local all = util.merged(plan.machine, { devices = math.max(1, math.min(#plan.about.nodes, most_layers)), cpus = 0,
    memory_bytes = 0, bandwidth_bytes_per_s = bandwidth_bytes_per_s })
  local split = plan.network:cuts(all, 'equal', {})
  return split.loads, split.assignment
end

--- The nodes of a network as a row of layers (trinity.tapp.layer_chain): those parts, their times without transfers,
--- and the time of their transfers for what a cut behind them sends. Returns the row and the layer of every node.
local function row_of(plan)
  local loads, layer_of = parts_of(plan)
  local times = parts_of(plan, 1e30)
  local layers = 0
  for node = 1, #layer_of do layers = math.max(layers, layer_of[node]) end
  local row = { layers = layers, type = {}, parameter_bytes = {}, activation_bytes = {}, forward_bytes = {},
    backward_bytes = {} }
  local time, none = {}, {}
  for l = 1, layers do
    row.type[l], row.parameter_bytes[l], row.activation_bytes[l], row.backward_bytes[l] = 'layer', 0, 0, 0
    row.forward_bytes[l] = math.max(0, loads[l] - times[l]) * plan.machine.bandwidth_bytes_per_s
    time[l], none[l] = times[l], 0
  end
  row.kinds = { { device = 1, forward_s = time, backward_s = none } }
  return row, layer_of
end

-- What the search has: prices schemes and keeps the best split.
local Search = {}
Search.__index = Search

--- Prices the node of every layer: a split. Returns its largest load, 1e300 where it does not fit.
function Search:price(node_of)
  local assignment, best = {}, self.best
  for node = 1, #self.layer_of do assignment[node] = node_of[self.layer_of[node]] end
  local split = self.plan.network:price(self.plan.machine, assignment)
  if not best or (split.feasible and (not best.feasible or split.max_load < best.max_load)) then
    self.best, self.node_of = split, node_of
  end
  return split.feasible and split.max_load or 1e300
end

-- Whether a batch may follow within `share` of rounds and seconds; and how far along the search is.
function Search:goes_on(share)
  local passed_s = self.limited and (core.clock_s() - self.start) / self.plan.options.seconds or 0
  self.passed = math.min(1, math.max(self.round / self.rounds, passed_s))
  if self.best and (core.stop_requested() or self.passed >= share) then return false end
  self.round = self.round + 1
  local best = self.best
  self.shown.label = best and best.feasible and ('tapp  best %.9g %s'):format(best.max_load, self.plan.about.unit)
    or 'tapp'
  local items = self.limited and 100 or self.rounds
  self.shown:update { items = items, done = math.floor(items * self.passed), share = self.passed }
  return true
end

local function learn(self, policy, own)
  local trained, scale = learner.new('trinity.pipeline', policy, nil, own), nil
  while self:goes_on(policy_share) do
    local actions = learner.sample(trained, own.samples, core.random(own.seed, 'pipeline tapp', self.round))
    local rewards = {}
    for i, node_of in ipairs(policy:schemes(actions)) do
      local load = self:price(node_of)
      scale = scale or (load > 0 and load < 1e300 and load or nil)
      rewards[i] = load < 1e300 and -math.sqrt(load / (scale or 1)) or infeasible
    end
    own.entropy_weight = math.max(settings.entropy_weight, own.entropy_start * own.entropy_decay ^ (self.round - 1))
    learner.reinforce(trained, actions, rewards)
  end
end

local function refine(self, row, own)
  local at, first = tapp_moves.of(row, self.plan.machine.devices), self.passed
  local node_of, present = self.node_of, self.best.feasible and self.best.max_load or 1e300
  while self:goes_on(1) do
    local stream, chosen, least = core.random(own.seed, 'pipeline tapp moves', self.round), nil, math.huge
    for _ = 1, own.samples do
      local scheme = tapp_moves.neighbour(at, node_of, stream)
      local load = self:price(scheme)
      if load < least then chosen, least = scheme, load end
    end
    if tapp_moves.accepts(least, present, (self.passed - first) / math.max(1e-9, 1 - first)) then
      node_of, present = chosen, least
    end
  end
end

--- Learns and moves for so many batches or seconds; returns the best split that was priced.
local function run(plan)
  local options = plan.options
  local own = util.merged({ seed = options.seed }, settings)
  local row, layer_of = row_of(plan)
  local limited = options.seconds < math.huge
  local self = setmetatable({ plan = plan, layer_of = layer_of, start = core.clock_s(), round = 0, limited = limited,
    rounds = options.rounds or (limited and 1e6 or default_rounds), shown = progress.new('tapp', options.quiet) },
    Search)
  learn(self, tapp_policy.new(row, plan.machine.devices, own), own)
  refine(self, row, own)
  self.shown:finish()
  self.best.optimal = false
  return self.best
end

return run
