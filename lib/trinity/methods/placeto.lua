-- Placeto (Addanki et al. 2019; papers/notes.md "Placeto"): improves a placement node by node. A network that passes
-- messages along the graph, both ways, looks at the nodes with their devices and places the current one anew; the
-- reward of a step is what it changes. Nodes are contiguous groups of colocation units; every episode visits all of
-- them, and all start with everything on device 1. REINFORCE with a baseline per step. An episode costs as many
-- evaluations as there are nodes: `episodes` is a budget in what Placeto counts. With features = 'paper' the network
-- knows nothing of the graph but what is the same in all, so that its weights go from one to the next (load, save).

local check = require 'trinity.base.check'
local checks = require 'trinity.learn.policy_checks'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local features = require 'trinity.learn.features'
local learner = require 'trinity.learn.learner'
local learner_checkpoint = require 'trinity.learn.learner_checkpoint'
local nn = require 'trinity.nn'
local options_of = require 'trinity.base.options'
local placer = require 'trinity.learn.placer'
local policies = require 'trinity.learn.policies'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local setting = learner.option
local declared = options_of.declare('trinity.PlacetoOptions', { extends = search.declared,
  help = 'Settings of methods.placeto.',
  { 'groups', 'integer', 0, least = 0, most = learner.units(1024), help = 'nodes; 0: min(units, 20 x devices, 64)' },
  setting('samples', 4, 'episodes at once'),
  { 'hidden', 'integer', 32, least = 1, most = 8192, help = 'width of the network' },
  { 'rounds', 'integer', 4, least = 1, most = 100, help = 'of messages' },
  { 'baseline_episodes', 'integer', 10, least = 1, most = 1e6,
    help = 'updates that the baseline of a step looks back' },
  setting('learning_rate', 1e-2), setting('entropy_weight', 1e-2), setting('gradient_norm', 1),
  { 'preset', { 'default', 'paper' }, 'default',
    help = "'paper': what its authors say, where no option says otherwise (papers/notes.md)" },
  { 'episodes', 'integer', 0, least = 0, most = 1e9,
    help = 'after which the search ends, and evaluations where they are not given are what these take; 0: no bound' },
  { 'last_learning_rate', 'number', 0, least = 0, most = 1000,
    help = 'what the learning rate falls to, evenly over the budget; 0: it stays' },
  { 'features', { 'node2vec', 'paper' }, 'node2vec',
    help = "'paper': time, bytes of outputs and weights over the largest, which mean the same in every graph" },
  { 'learn', 'boolean', true, help = 'false: the policy draws and stays as it is' },
  { 'load', 'string', '', help = "weights of another search to begin with; features = 'paper'" },
  { 'save', 'string', '', help = "where the weights go; features = 'paper'" },
})

-- What the paper and its code say.
local published = { rounds = 8, baseline_episodes = 10, learning_rate = 1e-3, last_learning_rate = 1e-4,
  features = 'paper' }

-- Rows divided by their sums, [n, n]; reach[i][j] says whether j counts for i.
local function averaging(reach, n)
  local rows = {}
  for i = 1, n do
    local count, row = 0, {}
    for j = 1, n do count = count + (reach[i][j] and 1 or 0) end
    for j = 1, n do row[j] = reach[i][j] and 1 / count or 0 end
    rows[i] = row
  end
  return tensor.new(rows)
end

local function table_of(n, f)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, n do rows[i][j] = f(i, j) end
  end
  return rows
end

--- Matrices that average over parents, children, ancestors, descendants and parallel nodes. Edges between groups
--- point onwards in the order of the groups.
local function relations(told, group_of, n)
  local child = table_of(n, function() return false end)
  for e = 1, told.edges do
    local a, b = group_of[told.from[e]], group_of[told.to[e]]
    if a ~= b then child[math.min(a, b)][math.max(a, b)] = true end
  end
  local below = table_of(n, function(i, j) return child[i][j] end)
  for i = n, 1, -1 do
    for j = i + 1, n do
      if child[i][j] then
        for k = j + 1, n do below[i][k] = below[i][k] or below[j][k] end
      end
    end
  end
  local function turned(matrix) return table_of(n, function(i, j) return matrix[j][i] end) end
  return { children = averaging(child, n), parents = averaging(turned(child), n), descendants = averaging(below, n),
    ancestors = averaging(turned(below), n),
    parallel = averaging(table_of(n, function(i, j) return i ~= j and not below[i][j] and not below[j][i] end), n) }
end

local Network = nn.class 'placeto'

function Network:build(spec)
  local hidden = spec.hidden
  self.first = nn.linear { inputs = spec.features, outputs = hidden }
  for _, name in ipairs { 'message_down', 'update_down', 'message_up', 'update_up' } do
    self[name] = nn.linear { inputs = hidden, outputs = hidden }
  end
  self.mixed = nn.linear { inputs = 8 * hidden, outputs = hidden }
  self.device = nn.linear { inputs = hidden, outputs = spec.devices }
end

--- x [states, nodes, features] and the current node of every state, one-hot [states, 1, nodes], to logits
--- [states, devices].
function Network:forward(x, current, rounds, relation)
  local down = self.first(x):relu()
  local up, start = down, down
  for _ = 1, rounds do
    down = start + self.update_down(relation.parents:matmul(self.message_down(down):relu())):relu()
    up = start + self.update_up(relation.children:matmul(self.message_up(up):relu())):relu()
  end
  local nodes = tensor.cat({ down, up }, 3)
  local seen = { current:matmul(nodes) }
  for i, name in ipairs { 'ancestors', 'descendants', 'parallel' } do
    seen[i + 1] = current:matmul(relation[name]):matmul(nodes)
  end
  return self.device(self.mixed(tensor.cat(seen, 3)):relu()):squeeze(2)
end

local function group_count(problem, options)
  return options.groups > 0 and options.groups or math.min(problem.graph.units, 20 * #problem.cluster.devices, 64)
end

-- Rows of nodes as Placeto's code has them, each column over its largest: time, bytes of outputs, bytes of weights.
local function paper_rows(problem, told, group_of, n)
  local rows, most, unit_of = {}, { 0, 0, 0 }, problem.graph.unit_of
  for i = 1, n do rows[i] = { 0, 0, 0 } end
  local function add(group, column, value) rows[group][column] = rows[group][column] + value end
  for unit = 1, told.units do
    add(group_of[unit], 1, told.time_s[unit])
    add(group_of[unit], 2, told.output_bytes[unit])
  end
  for op = 1, problem.graph.operators do add(group_of[unit_of[op]], 3, problem.graph.parameter_bytes_of[op]) end
  for i = 1, n do
    for column = 1, 3 do most[column] = math.max(most[column], rows[i][column]) end
  end
  for i = 1, n do
    for column = 1, 3 do rows[i][column] = most[column] > 0 and rows[i][column] / most[column] or 0 end
  end
  return tensor.new(rows)
end

-- What an episode is about, made once: groups, fixed rows, relations, network, optimiser.
local function prepare(problem, options)
  local n, of_paper = group_count(problem, options), options.features == 'paper'
  local node2vec
  if of_paper then node2vec = false end
  local told = features(problem, { seed = options.seed, vocabulary = 'graph', node2vec = node2vec })
  local devices, group_of = #problem.cluster.devices, policies.contiguous_groups(problem, n)
  local fixed = of_paper and paper_rows(problem, told, group_of, n)
    or placer.group_rows(placer.unit_rows(told), group_of, n)
  local network = Network { features = fixed:size(2) + 2 + devices, hidden = options.hidden, devices = devices,
    seed = options.seed }
  local parameters = network:parameters()
  local self = { problem = problem, options = options, n = n, devices = devices, group_of = group_of, fixed = fixed,
    relation = relations(told, group_of, n), network = network, parameters = parameters, past = {},
    optimiser = nn.adam { parameters = parameters, learning_rate = options.learning_rate } }
  if options.load ~= '' then
    learner_checkpoint.load(options.load, parameters, self.optimiser)
    self.optimiser.learning_rate = options.learning_rate
  end
  return self
end

-- What changes of every node of a state: done, current, device one-hot.
local function changing_rows(self, device, step)
  local rows = {}
  for i = 1, self.n do
    local row = { i < step and 1 or 0, i == step and 1 or 0 }
    for d = 1, self.devices do row[2 + d] = device[i] == d and 1 or 0 end
    rows[i] = row
  end
  return rows
end

-- Logits of states: `changing` [states, nodes, 2 + devices], whose second column says which node is current.
local function logits_of(self, changing)
  local states = changing:size(1)
  local x = tensor.cat({ self.fixed:unsqueeze(1):expand { states, self.n, self.fixed:size(2) }, changing }, 3)
  return self.network(x, changing:narrow(3, 2, 1):transpose(2, 3), self.options.rounds, self.relation)
end

local function placement_of(self, device)
  local placement, unit_of = self.problem:placement(), self.problem.graph.unit_of
  for op = 1, #placement do placement[op] = device[self.group_of[unit_of[op]]] end
  return placement
end

-- `count` episodes at once: states, actions and rewards by step; nil when the budget ended them.
local function walk(self, run, stream, start_reward, count)
  local device, before = {}, {}
  local episode = { changing = {}, actions = {}, rewards = {}, count = count }
  for s = 1, count do
    device[s], before[s] = {}, start_reward
    for i = 1, self.n do device[s][i] = 1 end
  end
  for step = 1, self.n do
    if not run:more() or run:allowance(count) < count then return nil end
    local rows, placements, gained = {}, {}, {}
    for s = 1, count do rows[s] = changing_rows(self, device[s], step) end
    local changing = tensor.new(rows)
    local logits = tensor.no_grad(function() return logits_of(self, changing) end)
    if not checks.is_finite(logits) then
      util.fail('methods.placeto: the policy diverged: its logits are no finite numbers (learning_rate is %g)',
        self.options.learning_rate)
    end
    local actions = tensor.categorical(logits, stream)
    local chosen = actions:to_array()
    for s = 1, count do
      device[s][step] = chosen[s]
      placements[s] = placement_of(self, device[s])
    end
    local rewards = run:evaluate(placements)
    for s = 1, count do gained[s], before[s] = rewards[s] - before[s], rewards[s] end
    episode.changing[step], episode.actions[step], episode.rewards[step] = changing, actions, gained
  end
  return episode
end

-- Rewards still to come minus the mean of those at this step in the latest episodes, over their root mean square:
-- [steps x samples].
local function advantages(self, episode)
  local count, to_come, means, list, squares = episode.count, {}, {}, {}, 0
  for s = 1, count do to_come[s] = 0 end
  local by_step = {}
  for step = self.n, 1, -1 do
    means[step], by_step[step] = 0, {}
    for s = 1, count do
      to_come[s] = to_come[s] + episode.rewards[step][s]
      by_step[step][s] = to_come[s]
      means[step] = means[step] + to_come[s] / count
    end
  end
  table.insert(self.past, means)
  if #self.past > self.options.baseline_episodes then table.remove(self.past, 1) end
  for step = 1, self.n do
    local baseline = 0
    for _, past in ipairs(self.past) do baseline = baseline + past[step] / #self.past end
    for s = 1, count do
      local off = by_step[step][s] - baseline
      list[#list + 1], squares = off, squares + off * off
    end
  end
  local scale = math.sqrt(squares / #list)
  return tensor.new(list) * (scale > 1e-12 and 1 / scale or 1)
end

local function learn(self, episode)
  local rows = logits_of(self, tensor.cat(episode.changing, 1)):log_softmax(-1)
  local log_probability = rows:gather(2, tensor.cat(episode.actions, 1):unsqueeze(2)):squeeze(2)
  local entropy = -(rows:exp() * rows):sum(-1):mean()
  local loss = -((log_probability * advantages(self, episode)):mean() + entropy * self.options.entropy_weight)
  learner.step(self, loss)
  return { loss = loss:item(), entropy = entropy:item() }
end

-- Writes a checkpoint after episode `number`.
local function keep(self, run, number, start_reward)
  local past = {}
  for _, means in ipairs(self.past) do
    for step = 1, self.n do past[#past + 1] = means[step] end
  end
  learner_checkpoint.write(run, self.parameters, self.optimiser, { number = number, start_reward = start_reward,
    past = checkpoints.pack(past) })
end

-- The number of the last episode, and the reward that all begin with: of a checkpoint, or 0 and that placement's.
local function begin(self, run)
  checkpoints.begin(run)
  local trained = self.options.load ~= '' and not self.options.learn -- elsewhere
  run.updates = not trained and 0 or nil
  local notes = learner_checkpoint.restore('methods.placeto', run, self.parameters, self.optimiser)
  if not notes then return 0, run:evaluate({ self.problem:placement() })[1] end
  for i, mean in ipairs(checkpoints.unpack(notes.past)) do
    local episode, step = math.floor((i - 1) / self.n) + 1, (i - 1) % self.n + 1
    self.past[episode] = self.past[episode] or {}
    self.past[episode][step] = mean
  end
  return tonumber(notes.number), tonumber(notes.start_reward)
end

-- The options, complete: those given, else those of the preset; as many evaluations as the episodes take.
local function read_options(problem, given)
  local options = search.options('placeto', declared, given, problem)
  if options.preset == 'paper' then options = util.merged(options, published, given) end
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

-- How many episodes come next: 0 where there were enough.
local function next_episodes(options, number)
  if options.episodes == 0 then return options.samples end
  return math.max(0, math.min(options.samples, options.episodes - (number - 1) * options.samples))
end

-- The learning rate falls evenly with the evaluations of the budget that were used before an episode.
local function set_rate(self, used)
  local first, last = self.options.learning_rate, self.options.last_learning_rate
  if last == 0 then return end
  self.optimiser.learning_rate = first + (last - first) * used / self.options.evaluations
end

local function placeto(problem, given)
  local options = read_options(problem, given)
  return search.run('placeto', problem, options, function(run)
    local self = prepare(problem, options)
    local number, start_reward = begin(self, run)
    local episode
    repeat
      number = number + 1
      local count, used = next_episodes(options, number), run.evaluations
      episode = count > 0 and walk(self, run, core.random(options.seed, 'placeto', number), start_reward, count)
      if episode and options.learn then
        set_rate(self, used)
        run:learned(learn(self, episode))
        if checkpoints.due(run) then keep(self, run, number, start_reward) end
      end
    until not episode
    if options.save ~= '' then learner_checkpoint.save(options.save, self.parameters, self.optimiser) end
  end)
end

return function(methods)
  methods.register('placeto', placeto, { help = 'messages along the graph, one node after the other, by REINFORCE',
    budget = true, source = 'Addanki et al. 2019', options = declared })
end
