-- Doppler (Yao et al. 2026; papers/notes.md "Doppler"): two policies place one node after the other, SEL picking the
-- node among those whose inputs are placed and PLC its device. First both imitate a list scheduler (the longest path
-- first, where it starts first) in the states that they come to, then they learn from the reward of whole placements by
-- REINFORCE. Networks and episodes: doppler_policy and doppler_graph. Weights depend on neither graph nor cluster.
--
-- Deviations of the authors' code from what the paper intends are not followed: path sums of other nodes, a device's
-- clock without transfers, t-levels with a node's own communication. Choices are sampled from the softmax, whose
-- probabilities the updates use, unless preset = 'paper' asks for epsilon-greedy ones.

local core = require 'trinity.core'
local doppler_graph = require 'trinity.methods.doppler_graph'
local doppler_policy = require 'trinity.methods.doppler_policy'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local util = require 'trinity.base.util'

local setting = trained.option
local most_nodes = 512
local declared = options_of.declare('trinity.DopplerOptions', { extends = search.declared,
  help = 'Settings of methods.doppler.',
  { 'groups', 'integer', 0, least = 0, most = trained.units(most_nodes), help = 'nodes; 0: min(units, 256)' },
  setting('samples', 4, 'episodes an update'),
  { 'hidden', 'integer', 32, least = 1, most = 256, help = 'width of the networks' },
  { 'rounds', 'integer', 6, least = 1, most = 100, help = 'of messages' },
  { 'imitation', 'integer', 30, least = 0, most = 1e9,
    help = 'updates that imitate a list scheduler first, at most a quarter of the budget' },
  setting('learning_rate', 1e-3), setting('entropy_weight', 1e-3), setting('gradient_norm', 1),
  setting('last_learning_rate', 0), setting('preset', 'default'), setting('learn', true), setting('load', ''),
  setting('save', ''),
  { 'discount', 'number', 1, above = 0, most = 1, help = 'of the reward, a decision before the last' },
  { 'baseline_episodes', 'integer', 40, least = 1, most = 1e9, help = 'over which the mean reward is the baseline' },
  { 'epsilon', 'number', 0, least = 0, most = 1,
    help = 'probability of a uniformly random choice while it learns from rewards; falls to 0 over the budget' },
  { 'greedy', 'boolean', false, help = 'other choices are the likeliest, instead of sampled by their probabilities' },
})

-- The settings of the paper and its code.
local published = { samples = 1, hidden = 128, imitation = 2000, learning_rate = 1e-4, last_learning_rate = 1e-7,
  entropy_weight = 1e-2, discount = 0.99, baseline_episodes = 1e9, epsilon = 0.2, greedy = true }
local imitation_rate = 1e-3

-- A choice of `count` by logits: uniform with probability epsilon, else the likeliest or sampled by softmax.
local function choose(self, logits, count, epsilon, stream)
  if epsilon > 0 and stream:uniform() < epsilon then return stream:integer(count) end
  local most, best = -math.huge, 1
  for i = 1, count do
    if not (math.abs(logits[i]) < math.huge) then
      util.fail('methods.doppler: the policy diverged: its logits are no finite numbers (learning_rate is %g)',
        self.options.learning_rate)
    end
    if logits[i] > most then most, best = logits[i], i end
  end
  if self.options.greedy then return best end
  local sum = 0
  for i = 1, count do sum = sum + math.exp(logits[i] - most) end
  local point = stream:uniform() * sum
  for i = 1, count do
    point = point - math.exp(logits[i] - most)
    if point < 0 then return i end
  end
  return count
end

-- Lists of different lengths as rows of one, filled up with `rest`.
local function padded(lists, rest)
  local longest, rows = 1, {}
  for _, list in ipairs(lists) do longest = math.max(longest, #list) end
  for i, list in ipairs(lists) do
    rows[i] = {}
    for k = 1, longest do rows[i][k] = list[k] or rest end
  end
  return rows
end

local function ones(list) return util.map(list, function() return 1 end) end

-- Indices and mask of candidates [decisions, choices].
local function candidates_of(lists)
  return tensor.new(padded(lists, 1), { dtype = 'int64' }), tensor.new(padded(util.map(lists, ones), 0))
end

-- Every episode's next decision; appends what it was made on to `made`.
local function decide(self, episodes, seen, sums, made, epsilon, stream)
  local lists = util.map(episodes, function(episode) return util.merged(episode.candidates) end)
  local indices, mask = candidates_of(lists)
  local node_logits, nodes, rows = self.policy:node_logits(seen, indices, mask):totable(), {}, {}
  local choices = {}
  for s, episode in ipairs(episodes) do
    choices[s] = choose(self, node_logits[s], #lists[s], epsilon, stream)
    nodes[s] = lists[s][choices[s]]
    rows[s] = episode:device_rows(nodes[s])
  end
  local at = tensor.new(nodes, { dtype = 'int64' })
  local logits = self.policy:device_logits(seen, at, tensor.new(rows), sums):totable()
  local placed = {}
  for s, episode in ipairs(episodes) do
    local device = choose(self, logits[s], self.graph.devices, epsilon, stream)
    made[s][#made[s] + 1] = { candidates = lists[s], choice = choices[s], node = nodes[s], rows = rows[s],
      device = device, teacher_nodes = episode:teacher_nodes(), teacher_devices = episode:teacher_devices(rows[s]) }
    episode:place(choices[s], device, rows[s])
    placed[s] = device
  end
  local devices = tensor.new(placed, { dtype = 'int64' }):one_hot(self.graph.devices):unsqueeze(3)
  return sums + devices * seen.places:index_select(1, at):unsqueeze(2)
end

-- `count` episodes at once: their decisions, by episode.
local function walk(self, count, epsilon, stream)
  return tensor.no_grad(function()
    local seen, episodes, made = self.policy:encode(self.told), {}, {}
    for s = 1, count do episodes[s], made[s] = doppler_graph.episode(self.graph), {} end
    local sums = tensor.zeros { count, self.graph.devices, self.policy.hidden }
    for _ = 1, self.graph.n do sums = decide(self, episodes, seen, sums, made, epsilon, stream) end
    return made
  end)
end

local function placement_of(self, decisions)
  local placement, unit_of, device = self.problem:placement(), self.problem.graph.unit_of, {}
  for _, decision in ipairs(decisions) do device[decision.node] = decision.device end
  for op = 1, #placement do placement[op] = device[self.graph.node_of[unit_of[op]]] end
  return placement
end

local names = { 'candidates', 'choice', 'node', 'rows', 'device', 'teacher_nodes', 'teacher_devices' }

-- All decisions of episodes, one after the other, as columns.
local function columns(made)
  local all = {}
  for _, name in ipairs(names) do
    local list = {}
    for _, decisions in ipairs(made) do
      for _, decision in ipairs(decisions) do list[#list + 1] = decision[name] end
    end
    all[name] = list
  end
  return all
end

-- Sums of the encodings of the nodes on every device before each decision [decisions, devices, hidden].
local function sums_before(self, seen, all, count)
  local n, devices, hidden = self.graph.n, self.graph.devices, self.policy.hidden
  local placed = seen.places:index_select(1, all.nodes):unsqueeze(2)
    * tensor.new(all.device, { dtype = 'int64' }):one_hot(devices):unsqueeze(3)
  placed = placed:reshape { count, n, devices, hidden }
  return (placed:cumsum(2) - placed):reshape { count * n, devices, hidden }
end

-- Log-probabilities of all choices of decisions, nodes and devices, and which nodes there were to choose from.
local function judge(self, made, all)
  local seen = self.policy:encode(self.told)
  local indices, mask = candidates_of(all.candidates)
  all.nodes = tensor.new(all.node, { dtype = 'int64' })
  local by_node = self.policy:node_logits(seen, indices, mask):log_softmax(-1)
  local by_device = self.policy:device_logits(seen, all.nodes, tensor.new(all.rows),
    sums_before(self, seen, all, #made)):log_softmax(-1)
  return by_node, by_device
end

local function chosen(rows, choices)
  return rows:gather(2, tensor.new(choices, { dtype = 'int64' }):unsqueeze(2)):squeeze(2)
end

-- Minus the teacher's log-probabilities; the probabilities of equally good choices are added.
local function imitation_loss(by_node, by_device, all)
  local nodes = (by_node * tensor.new(padded(all.teacher_nodes, 0))):sum(-1)
  return -(nodes + (by_device * tensor.new(all.teacher_devices)):sum(-1)):mean()
end

-- Rewards minus their mean over the latest episodes, over their root mean square, at every decision.
local function advantages(self, rewards)
  local o, list, offs = self.options, {}, {}
  for s = 1, #rewards do
    self.episodes = self.episodes + 1
    local share = 1 / math.min(self.episodes, o.baseline_episodes)
    self.mean = self.mean + (rewards[s] - self.mean) * share
    offs[s] = rewards[s] - self.mean
    self.square = self.square + (offs[s] * offs[s] - self.square) * share
  end
  local scale = self.square > 1e-300 and 1 / math.sqrt(self.square) or 0
  for s = 1, #rewards do
    for i = 1, self.graph.n do
      list[#list + 1] = offs[s] * scale * o.discount ^ (self.graph.n - i)
    end
  end
  return tensor.new(list)
end

-- One update: by the teacher, or by what the episodes were worth.
local function learn(self, made, rewards, imitates)
  local all = columns(made)
  local by_node, by_device = judge(self, made, all)
  local advantage = advantages(self, rewards)
  local loss = imitates and imitation_loss(by_node, by_device, all)
    or -((chosen(by_node, all.choice) + chosen(by_device, all.device)) * advantage):mean()
  local entropy = -(by_node:exp() * by_node):sum(-1):mean() - (by_device:exp() * by_device):sum(-1):mean()
  return loss - entropy * self.options.entropy_weight, { loss = loss:item(), entropy = entropy:item() }
end

-- How many updates imitate: those asked for, but no more than a quarter of the budget.
local function imitations(options)
  if options.load ~= '' then return 0 end
  return math.min(options.imitation, math.floor(options.evaluations / options.samples / 4))
end

-- How far the search is, 0 to 1, by evaluations or seconds, whichever is further.
local function progress(run)
  local o = run.options
  return math.max(math.min(1, run.evaluations / o.evaluations), math.min(1, (core.clock_s() - run.start) / o.seconds))
end

local function doppler(problem, given)
  local options = trained.preset('doppler', declared, problem, given, published)
  return trained.run('doppler', problem, options, function(run)
    local nodes = options.groups > 0 and options.groups or math.min(problem.graph.units, 256)
    local graph = doppler_graph.new(problem, nodes, options.seed)
    local policy = doppler_policy.class { hidden = options.hidden, rounds = options.rounds, seed = options.seed }
    local self = { problem = problem, options = options, graph = graph, told = doppler_policy.told(graph),
      policy = policy }
    local imitated = options.learn and imitations(options) or 0
    function self.rate(number)
      self.used = progress(run)
      if number <= imitated then return math.max(imitation_rate, options.learning_rate) end
      local last = options.last_learning_rate > 0 and options.last_learning_rate or options.learning_rate
      return options.learning_rate + (last - options.learning_rate) * self.used
    end
    function self.play(number, stream)
      if not run:more() then return nil end
      local epsilon = options.learn and (number <= imitated and 1 - (number - 1) / imitated
        or options.epsilon * (1 - self.used)) or 0
      local made = walk(self, run:allowance(options.samples), epsilon, stream)
      made.rewards = run:evaluate(util.map(made, function(decisions) return placement_of(self, decisions) end))
      return made
    end
    function self.learn(made, number, step)
      local loss, row = learn(self, made, made.rewards, number <= imitated)
      step(loss)
      return row
    end
    function self.notes() return { episodes = self.episodes, mean = self.mean, square = self.square } end
    function self.resume(notes)
      for _, name in ipairs { 'episodes', 'mean', 'square' } do self[name] = tonumber(notes[name]) or 0 end
    end
    return self
  end)
end

return function(methods)
  methods.register('doppler', doppler, { help = 'two policies that imitate a list scheduler, then learn by REINFORCE',
    budget = true, source = 'Yao et al. 2026', options = declared })
end
