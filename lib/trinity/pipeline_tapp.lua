-- `trinity pipeline --method tapp`: TAPP (trinity.methods.tapp) on a network of a file, where a scheme is worth its
-- largest load on equal devices instead of a simulated batch. Every option that matters is a proposal, as there.

local check = require 'trinity.check'
local core = require 'trinity.core'
local learner = require 'trinity.learner'
local progress = require 'trinity.progress'
local tapp_policy = require 'trinity.tapp_policy'

local settings = { samples = 8, learning_rate = 3e-3, entropy_weight = 1e-2, entropy_start = 0.3,
  entropy_decay = 0.99, gradient_norm = 1, baseline_n = 19, normalise_advantage = true, hidden = 64, groups = 0,
  mode = 'cuts', explore = 0.25 }
local default_rounds = 250 -- batches
local infeasible = -10

--- The nodes of a network as a row of layers: the parts that the rule 'equal' makes when every layer may have a device
--- of its own, and their loads. Returns the row and the layer of every node.
local function row_of(plan)
  local all = {}
  for key, value in pairs(plan.machine) do all[key] = value end -- a copy: needs no sorted order
  all.devices, all.cpus, all.memory_bytes = math.max(1, math.min(#plan.about.nodes, 65536)), 0, 0
  local split = plan.network:cuts(all, 'equal', {})
  local layers, time = 0, {}
  for node = 1, #split.assignment do layers = math.max(layers, split.assignment[node]) end
  local row = { layers = layers, type = {}, parameter_bytes = {}, activation_bytes = {} }
  for l = 1, layers do
    row.type[l], row.parameter_bytes[l], row.activation_bytes[l], time[l] = 'layer', 0, 0, split.loads[l]
  end
  local none = {}
  for l = 1, layers do none[l] = 0 end
  row.kinds = { { device = 1, forward_s = time, backward_s = none } }
  return row, split.assignment
end

local function price(plan, node_of, layer_of)
  local assignment = {}
  for node = 1, #layer_of do assignment[node] = node_of[layer_of[node]] end
  return plan.network:price(plan.machine, assignment)
end

--- Learns for so many batches or seconds; returns the best split that was priced.
local function run(plan)
  local options, start = plan.options, core.clock_s()
  if plan.machine.devices < 1 then
    check.refuse('trinity.pipeline', 'option', 'devices', 'tapp: expected at least 1 device, got 0')
  end
  local own = { seed = options.seed }
  for key, value in pairs(settings) do own[key] = value end -- a copy: needs no sorted order
  local row, layer_of = row_of(plan)
  local policy = tapp_policy.new(row, plan.machine.devices, own)
  local self = learner.new('trinity.pipeline', policy, nil, own)
  local limited = options.seconds < math.huge
  local rounds = options.rounds or (limited and 1e6 or default_rounds)
  local shown, best, scale = progress.new('tapp', options.quiet), nil, nil
  for round = 1, rounds do
    local share = math.max(round / rounds, limited and (core.clock_s() - start) / options.seconds or 0)
    if core.stop_requested() or (best and share > 1) then break end
    local actions = learner.sample(self, own.samples, core.random(options.seed, 'pipeline tapp', round))
    local rewards = {}
    for i, node_of in ipairs(policy:schemes(actions)) do
      local split = price(plan, node_of, layer_of)
      scale = scale or (split.feasible and split.max_load > 0 and split.max_load or nil)
      rewards[i] = split.feasible and -math.sqrt(split.max_load / (scale or 1)) or infeasible
      if not best or (split.feasible and (not best.feasible or split.max_load < best.max_load)) then best = split end
    end
    own.entropy_weight = math.max(settings.entropy_weight, own.entropy_start * own.entropy_decay ^ (round - 1))
    learner.reinforce(self, actions, rewards)
    shown:update { items = rounds, done = round, share = math.min(1, share) }
  end
  shown:finish()
  best.optimal = false
  return best
end

return run
