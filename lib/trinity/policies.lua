-- Policies: distributions over placements with parameters to learn. The learners (trinity.ppo,
-- trinity.reinforce, trinity.cross_entropy) ask four things of one; write your own with them, or give
-- one of the constructors here a network:
--   policy:parameters()              list of tensors that are learned
--   policy:sample(count, stream)     actions, an int64 tensor [count, choices], each from 1
--   policy:evaluate(actions)         their log-probabilities [count, choices] and the mean entropy of a
--                                    choice (a scalar), both with gradients
--   policy:placements(actions)       a list of placements, one a row

local array = require 'trinity.array'
local core = require 'trinity.core'
local nn = require 'trinity.nn'
local tensor = require 'trinity.tensor'
local util = require 'trinity.util'

local policies = {}

local Policy = {}
Policy.__index = Policy

function Policy:parameters() return self.learned end

--- Row by row the device of every choice, spread over the operators by `choice_of`.
function Policy:placements(actions)
  local rows, device = {}, actions:to_array()
  local choices, choice_of = self.choices, self.choice_of
  for s = 1, actions:size(1) do
    local placement, first = self.problem:placement(), (s - 1) * choices
    for op = 1, #placement do placement[op] = device[first + choice_of[op]] end
    rows[s] = placement
  end
  return rows
end

-- The choice of every operator from that of every unit.
local function spread(problem, choice_of_unit, choices)
  local unit_of, choice_of = problem.graph.unit_of, array.int32(problem.graph.operators)
  for op = 1, #choice_of do
    local choice = choice_of_unit and choice_of_unit[unit_of[op]] or unit_of[op]
    if not (choice >= 1 and choice <= choices) then
      util.fail("policies: field 'choice_of_unit': unit %d has choice %s, expected 1 to %d", unit_of[op],
        tostring(choice), choices)
    end
    choice_of[op] = choice
  end
  return choice_of
end

-- The learned tensors of a module, or of a list of modules and tensors.
local function learned_of(source)
  if source.parameters then return source:parameters() end
  local list = {}
  for _, part in ipairs(source) do
    if tensor.is(part) then
      list[#list + 1] = part
    else
      for _, weight in ipairs(part:parameters()) do list[#list + 1] = weight end
    end
  end
  return list
end

local function new(owner, spec, class, known)
  util.expect(owner, 'description', spec, 'table')
  util.refuse_unknown(owner, spec, known)
  util.expect(owner, 'problem', spec.problem, 'table')
  util.expect(owner, 'learned', spec.learned, 'table')
  util.expect(owner, 'logits', spec.logits, 'function')
  local choices = spec.choices or spec.problem.graph.units
  return setmetatable({ problem = spec.problem, choices = choices, devices = #spec.problem.cluster.devices,
    logits = spec.logits, learned = learned_of(spec.learned),
    choice_of = spread(spec.problem, spec.choice_of_unit, choices) }, class)
end

local function entropy_of(rows) return rows:exp():mul(rows):sum(-1):mean():neg() end

local Independent = setmetatable({}, Policy)
Independent.__index = Independent

function Independent:sample(count, stream)
  return tensor.no_grad(function()
    local rows = self.logits():log_softmax(-1)
    return tensor.categorical(rows:unsqueeze(1):expand { count, self.choices, self.devices }, stream)
  end)
end

function Independent:evaluate(actions)
  local rows = self.logits():log_softmax(-1)
  local taken = rows:gather(2, actions:transpose(1, 2)):transpose(1, 2)
  return taken, entropy_of(rows)
end

--- Choices that know nothing of each other: { problem =, logits = function() -> tensor [choices,
--- devices], learned = module or list of modules and tensors, choices = units, choice_of_unit = the
--- choice of every unit (default: one each) }.
function policies.independent(spec)
  return new('policies.independent', spec, Independent,
    { problem = true, logits = true, learned = true, choices = true, choice_of_unit = true })
end

local Chain = setmetatable({}, Policy)
Chain.__index = Chain

function Chain:sample(count, stream)
  return tensor.no_grad(function()
    local previous, actions = tensor.full({ count, 1 }, self.devices + 1, { dtype = 'int64' }), {}
    for k = 1, self.choices do
      previous = tensor.categorical(self.logits(k, k, previous):log_softmax(-1), stream)
      actions[k] = previous
    end
    return tensor.cat(actions, 2)
  end)
end

function Chain:evaluate(actions)
  local start = tensor.full({ actions:size(1), 1 }, self.devices + 1, { dtype = 'int64' })
  local previous = tensor.cat({ start, actions:narrow(2, 1, self.choices - 1) }, 2)
  local rows = self.logits(1, self.choices, previous):log_softmax(-1)
  return rows:gather(3, actions:unsqueeze(3)):squeeze(3), entropy_of(rows)
end

--- Choices one after the other, each knowing the one before: { problem =, logits = function(first, last,
--- previous) -> tensor [count, last - first + 1, devices], ... } for choices `first` to `last`, `previous` an
--- int64 tensor [count, last - first + 1] of the devices chosen just before them (devices + 1 before the first). The
--- other fields are those of policies.independent.
function policies.chain(spec)
  return new('policies.chain', spec, Chain,
    { problem = true, logits = true, learned = true, choices = true, choice_of_unit = true })
end

--- A table of free logits, no network (Post, papers.md 5.4): { groups = min(units, 20 x devices) }. The
--- groups are contiguous parts of equal work.
function policies.table(problem, options)
  options = options or {}
  util.refuse_unknown('policies.table', options, { groups = true })
  local groups = options.groups or math.min(problem.graph.units, 20 * #problem.cluster.devices)
  local logits = tensor.zeros { groups, #problem.cluster.devices }
  logits:requires_grad_(true)
  return policies.independent { problem = problem, learned = { logits }, logits = function() return logits end,
    choices = groups, choice_of_unit = policies.contiguous_groups(problem, groups) }
end

--- A hidden layer over the features of every unit: { hidden = 64, seed = 1, features = options of trinity.features }.
function policies.network(problem, options)
  options = options or {}
  util.refuse_unknown('policies.network', options, { hidden = true, seed = true, features = true })
  local seed, hidden = options.seed or 1, options.hidden or 64
  local features = require 'trinity.features'(problem, options.features)
  local embedding = nn.embedding { count = features.type_count, size = 20, seed = seed }
  local layers = nn.sequential { nn.linear { inputs = features.width + 20, outputs = hidden, seed = seed }, nn.relu,
    nn.linear { inputs = hidden, outputs = #problem.cluster.devices, seed = seed + 1 } }
  return policies.independent { problem = problem, learned = { embedding, layers },
    logits = function() return layers(tensor.cat({ embedding(features.types), features.values }, 2)) end }
end

--- The group of every unit, from 1: contiguous parts of equal work along the graph, none empty where units
--- suffice. An int32 array.
function policies.contiguous_groups(problem, groups)
  local handle = core.features(problem.handle, { node2vec = { walks_per_node = 1, epochs = 1, dimensions = 1 } })
  local position, group_of = array.double(problem.graph.units), array.int32(problem.graph.units)
  handle:position(position)
  handle:close()
  for unit = 1, #position do
    group_of[unit] = math.min(groups, math.floor(position[unit] * groups) + 1)
  end
  return group_of
end

local Agent = {}
Agent.__index = Agent

--- Draws a batch: a list of placements.
function Agent:sample()
  self.handle:sample(self.batch)
  return self.batch
end

--- Learns from the rewards (a double array) of the latest batch: a table of what the update did.
function Agent:update(rewards) return self.handle:update(rewards) end

--- The most likely placement.
function Agent:greedy()
  local list = self.problem:placements(1)
  self.handle:greedy(list)
  return list[1]
end

function Agent:close() self.handle:close() end

--- Trinity's own policy with its own PPO in the engine (engine/learn/agent.h): object with sample(),
--- update(rewards), greedy(), close(); fields groups, samples, parameters. options: those of the method.
function policies.trinity(problem, options)
  util.expect('policies.trinity', 'problem', problem, 'table')
  local handle = core.agent(problem.handle, options or {})
  local self = handle:summary()
  self.handle, self.problem, self.batch = handle, problem, problem:placements(self.samples)
  return setmetatable(self, Agent)
end

return policies
