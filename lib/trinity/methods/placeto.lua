-- Placeto (Addanki et al. 2019; papers/notes.md "Placeto"): improves a placement node by node. Its network passes
-- messages along the graph, both ways. Every episode of trinity.env visits all nodes, from everything on device 1; the
-- reward of a step is what it changes. REINFORCE with a baseline per step. With features = 'paper' all inputs mean the
-- same in every graph, so that weights go from one to the next (load, save).

local actor_critic = require 'trinity.learn.actor_critic'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local env_of = require 'trinity.env'
local features = require 'trinity.learn.features'
local groups_of = require 'trinity.learn.groups'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local returns = require 'trinity.learn.returns'
local rollout = require 'trinity.learn.rollout'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local util = require 'trinity.base.util'

local setting = trained.option
local declared = options_of.declare('trinity.PlacetoOptions', { extends = search.declared,
  help = 'Settings of methods.placeto.',
  { 'groups', 'integer', 0, least = 0, most = trained.units(1024), help = 'nodes; 0: min(units, 20 x devices, 64)' },
  setting('samples', 4, 'episodes at once'),
  { 'hidden', 'integer', 32, least = 1, most = 8192, help = 'width of the network' },
  { 'rounds', 'integer', 4, least = 1, most = 100, help = 'of messages' },
  { 'baseline_episodes', 'integer', 10, least = 1, most = 1e6,
    help = 'updates over which the baseline of a step is the mean' },
  setting('learning_rate', 1e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  setting('preset', 'default'), setting('last_learning_rate', 0), setting('learn', true),
  { 'episodes', 'integer', 0, least = 0, most = 1e9,
    help = 'after which the search ends, and evaluations where they are not given are what these take; 0: no bound' },
  { 'features', { 'node2vec', 'paper' }, 'node2vec',
    help = "'paper': time, bytes of outputs and weights over the largest, which mean the same in every graph" },
  setting('load', '', "weights of another search to begin with; features = 'paper'"),
  setting('save', '', "where the weights go; features = 'paper'"),
})

local published = { rounds = 8, baseline_episodes = 10, learning_rate = 1e-3, last_learning_rate = 1e-4,
  features = 'paper' } -- what the paper and its code say

-- Matrices [nodes, nodes] that average over parents, children, ancestors, descendants and parallel nodes.
local function relations(told, group_of, n)
  local edge = array.double(n * n)
  for e = 1, told.edges do
    local a, b = group_of[told.from[e]], group_of[told.to[e]]
    if a ~= b then edge[(math.min(a, b) - 1) * n + math.max(a, b)] = 1 end
  end
  local child = tensor.new(edge):to { dtype = 'float32' }:reshape { n, n }
  local below = child
  for _ = 1, math.ceil(math.log(n + 1) / math.log(2)) do below = (below + below:matmul(below)):clamp(0, 1) end
  local function averaging(reach) return reach / reach:sum(2, true):clamp(1) end
  return { children = averaging(child), parents = averaging(child:transpose(1, 2)), descendants = averaging(below),
    ancestors = averaging(below:transpose(1, 2)),
    parallel = averaging(1 - (below + below:transpose(1, 2) + tensor.eye(n)):clamp(0, 1)) }
end

local Network = nn.class 'placeto'

function Network:build(spec)
  local hidden = spec.hidden
  self.spec, self.unmasked = spec, true
  self.first = nn.linear { inputs = spec.fixed:size(2) + 2 + spec.devices, outputs = hidden }
  for _, name in ipairs { 'message_down', 'update_down', 'message_up', 'update_up' } do
    self[name] = nn.linear { inputs = hidden, outputs = hidden }
  end
  self.mixed = nn.linear { inputs = 8 * hidden, outputs = hidden }
  self.device = nn.linear { inputs = hidden, outputs = spec.devices }
end

-- Rows [states, nodes, ...]: the fixed features of every node, whether it is done or current, its device.
local function rows_of(spec, observation, current)
  local device, states = observation.placement, current:size(1)
  local is_placed = device:le(spec.devices):to { dtype = 'int64' }
  device = (device * is_placed + 1 - is_placed):one_hot(spec.devices):to { dtype = 'float32' }
  return tensor.cat({ spec.fixed:unsqueeze(1):expand { states, spec.n, spec.fixed:size(2) },
    tensor.stack({ 1 - current:cumsum(2), current }, 3), device }, 3)
end

--- Logits [states, devices] of the current nodes, and no values.
function Network:forward(observation)
  local spec, relation = self.spec, self.spec.relation
  local current = observation.current:one_hot(spec.n):to { dtype = 'float32' }
  local down = self.first(rows_of(spec, observation, current)):relu()
  local up, start = down, down
  for _ = 1, spec.rounds do
    down = start + self.update_down(relation.parents:matmul(self.message_down(down):relu())):relu()
    up = start + self.update_up(relation.children:matmul(self.message_up(up):relu())):relu()
  end
  local nodes = tensor.cat({ down, up }, 3)
  current = current:unsqueeze(2)
  local seen = { current:matmul(nodes) }
  for i, name in ipairs { 'ancestors', 'descendants', 'parallel' } do
    seen[i + 1] = current:matmul(relation[name]):matmul(nodes)
  end
  return self.device(self.mixed(tensor.cat(seen, 3)):relu()):squeeze(2), tensor.zeros { current:size(1) }
end

local function group_count(problem, options)
  return options.groups > 0 and options.groups or math.min(problem.graph.units, 20 * #problem.cluster.devices, 64)
end

-- Rows of nodes as Placeto's code has them, each column over its largest: time, bytes of outputs, bytes of weights.
local function paper_rows(problem, told, group_of, n)
  local units, unit_of = {}, problem.graph.unit_of
  for unit = 1, told.units do units[unit] = { told.time_s[unit], told.output_bytes[unit], 0 } end
  for op = 1, problem.graph.operators do
    units[unit_of[op]][3] = units[unit_of[op]][3] + problem.graph.parameter_bytes_of[op]
  end
  local sums = tensor.zeros({ n, 3 }):index_add(1, tensor.new(group_of), tensor.new(units))
  return sums / sums:max(1, true):clamp(1e-30)
end

local function make_network(problem, options)
  local n, is_paper = group_count(problem, options), options.features == 'paper'
  local told = features(problem, { seed = options.seed, vocabulary = 'graph', node2vec = not is_paper and nil })
  local group_of = groups_of.contiguous(problem, n)
  return Network { n = n, hidden = options.hidden, rounds = options.rounds, devices = #problem.cluster.devices,
    seed = options.seed, relation = relations(told, group_of, n), fixed = is_paper
      and paper_rows(problem, told, group_of, n) or groups_of.rows(groups_of.unit_rows(told), group_of, n) }
end

-- Rewards still to come minus their mean at the same step in the latest updates, over their root mean square.
local function advantages(past, batch, options)
  local to_come = returns.returns(batch.rewards, batch.dones)
  past[#past + 1] = to_come:mean(2, true)
  if #past > options.baseline_episodes then table.remove(past, 1) end
  local off = to_come - tensor.cat(past, 2):mean(2, true)
  return (off / (off * off):mean():sqrt():clamp(1e-12)):flatten()
end

-- The options, complete: the given ones, then the preset's; evaluations default to what the episodes need.
local function read_options(problem, given)
  local options = trained.preset('placeto', declared, problem, given, published)
  for _, name in ipairs { 'load', 'save' } do
    if options[name] ~= '' and options.features ~= 'paper' then
      check.refuse('methods.placeto', 'option', name,
        "weights that other graphs can take need features = 'paper', got '%s'", options.features)
    end
  end
  if options.episodes > 0 and not (given or {}).evaluations then
    options.evaluations = 1 + options.episodes * group_count(problem, options)
  end
  return options
end

-- How many episodes update `number` has: 0 where there were enough.
local function episodes_of(options, number)
  if options.episodes == 0 then return options.samples end
  return math.max(0, math.min(options.samples, options.episodes - (number - 1) * options.samples))
end

local function placeto(problem, given)
  local options = read_options(problem, given)
  return trained.run('placeto', problem, options, function(run)
    local network, past, envs, start_score = make_network(problem, options), {}, {}, nil
    local policy, n = actor_critic.new(network), network.spec.n
    local self = { policy = policy }
    function self.play(number, stream)
      local count = episodes_of(options, number)
      if count == 0 then return end
      envs[count] = envs[count] or env_of(problem, { num_envs = count, groups = n, reward = 'difference',
        strict = false, search = run, start_score = start_score, signal = function(_, reward) return reward end })
      return rollout.play(rollout.begin(envs[count], policy, options.seed, stream), n)
    end
    function self.learn(batch, _, step)
      local count = batch.actions:size(2)
      local take = rollout.flatten(util.map(batch.observations, function(o)
        return { placement = o.placement, current = o.current }
      end), count)
      local log_probs, entropies = policy:evaluate(take(tensor.arange(1, n * count, 1, { dtype = 'int64' })),
        batch.actions:flatten())
      local entropy = entropies:mean()
      local loss = -((log_probs * advantages(past, batch, options)):mean() + entropy * options.entropy_weight)
      step(loss)
      return { loss = loss:item(), entropy = entropy:item() }
    end
    function self.notes()
      return { start_reward = start_score, past = tensor.cat(past, 1):totable() }
    end
    function self.resume(notes)
      start_score = notes.start_reward or run:evaluate({ problem:placement() })[1]
      local rows = notes.past or {}
      for i = 1, #rows / n do past[i] = tensor.new({ unpack(rows, (i - 1) * n + 1, i * n) }):unsqueeze(2) end
    end
    return self
  end)
end

return function(methods)
  methods.register('placeto', placeto, { help = 'messages along the graph, one node after the other, by REINFORCE',
    budget = true, source = 'Addanki et al. 2019', options = declared })
end
