#!/usr/bin/env trinity
-- Trinity's policy (Algorithms 2022, 15(4), 108; its equations are in the comments) spelled out on trinity.nn: a
-- network that draws a group for every unit, one that draws a device for every group, PPO. It runs beside the
-- ready-made policy (trinity.policies.trinity) and says how far the two are apart.
--
-- What "the same" means: both start from the same bits of weights and random streams. As long as their weights
-- agree, drawn groups and devices are equal and log-probabilities differ by rounding alone (below 1e-5). Every
-- update then adds rounding of its own: the two add up in another order.

local trinity = require 'trinity'
local nn, tensor = trinity.nn, trinity.tensor

local options = trinity.options {
  'Trains Trinity\'s policy as written in this script beside the ready-made one and compares their numbers.',
  model = { default = 'vgg16', help = 'a model in models/, or a file .lua .onnx .json .txt' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, or a Lua file' },
  batch_size = { default = 64, help = 'samples per training step', min = 1, integer = true },
  batches = { default = 5, help = 'policy updates', min = 1, integer = true },
  samples = { default = 16, help = 'placements per update', min = 1, max = 1000, integer = true },
  epochs = { default = 4, help = 'gradient steps per update', min = 1, max = 100, integer = true },
  groups = { default = 0, help = '0: min(256, 20 x devices, units)', min = 0, max = 4096, integer = true },
  hidden = { default = 96, help = "width of each direction of the encoder; the decoder's is twice that", min = 1,
    max = 4096, integer = true },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
}

-- The defaults of the engine's policy (engine/learn/agent.h).
local temperature, tanh_constant, clip, entropy_weight = 10, 5, 0.2, 1e-2
local learning_rate, gradient_norm, baseline_n = 2e-3, 1, 19
local contiguity, switch_probability = 6, 0.1

local graph = trinity.model(options.model, { batch_size = options.batch_size })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster(options.cluster),
  reward = trinity.rewards.mdpe {} }
local units, devices = graph.units, #problem.cluster.devices
local groups = math.min(options.groups > 0 and options.groups or math.min(256, 20 * devices), units)
local told = trinity.features(problem, { seed = options.seed, vocabulary = 'graph' })

-- Networks ----------------------------------------------------------------------------------------------------------

-- Logits that put units with neighbouring shares of the work into one group before anything is learned.
local function contiguous_prior()
  local place = tensor.new(told.position):to { dtype = 'float64' }:unsqueeze(2) * groups
  local middle = (tensor.arange(1, groups):to { dtype = 'float64' } - 0.5):unsqueeze(1)
  local away = place - middle
  return (away * away * -contiguity):to { dtype = 'float32' }
end

-- N_g: a unit's features to the logarithms of the groups' probabilities.
local Partition = nn.class 'partition'

function Partition:build()
  self.embedding = nn.embedding { count = told.type_count, size = 20 }
  self.first = nn.linear { inputs = 20 + told.width, outputs = 64 }
  self.second = nn.linear { inputs = 64, outputs = 128 }
  self.out = nn.linear { inputs = 128, outputs = groups }
end

function Partition:forward(prior)
  local x = tensor.cat({ self.embedding(told.types), told.values }, 2)
  return (self.out(self.second(self.first(x):relu()):relu()) + prior):log_softmax(-1)
end

-- N_s: embeddings of groups to the logarithms of the devices' probabilities, one group after the other.
local Schedule = nn.class 'schedule'

function Schedule:build(spec)
  local wide = 2 * options.hidden
  self.encoder = nn.lstm { inputs = spec.width, hidden = options.hidden, bidirectional = true }
  self.decoder = nn.lstm { inputs = 20, hidden = wide }
  self.device_embedding = nn.embedding { count = devices + 1, size = 20 } -- the last one begins
  self.memory = nn.linear { inputs = wide, outputs = wide, bias = false }
  self.query = nn.linear { inputs = wide, outputs = wide, bias = false }
  self.score = nn.linear { inputs = wide, outputs = 1, bias = false }
  self.out = nn.linear { inputs = 2 * wide, outputs = devices, bias = false }
  self.stay = nn.linear { inputs = 1, outputs = 1, bias = false } -- one number: how much the device before attracts
end

-- h_j = [forward; backward], m_j = W1 h_j; the decoder begins with the last states of both directions.
function Schedule:encode(x)
  local hidden, state = self.encoder(x:transpose(1, 2))
  local function joined(part) return tensor.cat({ part:select(1, 1), part:select(1, 2) }, 2):unsqueeze(1) end
  return { memory = self.memory(hidden:transpose(1, 2)), state = { joined(state[1]), joined(state[2]) } }
end

-- a_tj = softmax_j(v . tanh(W2 h_t + m_j)); c_t = sum a_tj m_j; u_t = W [h_t; c_t]; p = softmax(C tanh(u_t / T)).
-- previous [samples, steps]; returns [samples, steps, devices] and the decoder's state.
function Schedule:decode(encoded, state, previous)
  local hidden, after = self.decoder(self.device_embedding(previous):transpose(1, 2), state)
  hidden = hidden:transpose(1, 2)
  local mixed = (self.query(hidden):unsqueeze(3) + encoded.memory:unsqueeze(2)):tanh()
  local weights = self.score(mixed):squeeze(4):softmax(-1)
  local logits = self.out(tensor.cat({ hidden, weights:bmm(encoded.memory) }, 3))
  local before = previous:one_hot(devices + 1):to { dtype = 'float32' }:narrow(3, 1, devices)
  logits = logits + before * self.stay.weight:reshape {}
  return ((logits / temperature):tanh() * tanh_constant):log_softmax(-1), after
end

-- Weights -----------------------------------------------------------------------------------------------------------

-- In the engine's order. An LSTM of the engine has one bias where LibTorch's has two: the second stays 0.
local function partition_weights(net)
  return { net.embedding.weight, net.first.weight, net.first.bias, net.second.weight, net.second.bias, net.out.weight,
    net.out.bias }
end

local function schedule_weights(net)
  local e, d = net.encoder, net.decoder
  return { net.stay.weight, e.hidden_weight_1, e.input_weight_1, e.input_bias_1, e.hidden_weight_1_reverse,
    e.input_weight_1_reverse, e.input_bias_1_reverse, d.hidden_weight_1, d.input_weight_1, d.input_bias_1,
    net.device_embedding.weight, net.memory.weight, net.query.weight, net.score.weight, net.out.weight }
end

local function set(weight, values) tensor.no_grad(weight.copy_, weight, values) end

-- Matrices uniform as Glorot has it, number `index` of a network's weights from the stream (seed, network, index);
-- biases 0, those of forget gates 1.
local function fill(network, list)
  for index, weight in ipairs(list) do
    local shape = weight:size()
    if #shape == 2 then
      local limit = math.sqrt(6 / (shape[1] + shape[2]))
      local stream = trinity.random(options.seed, network, index - 1)
      set(weight, (tensor.uniform(shape, stream, -1, 1, { dtype = 'float64' }) * limit):to { dtype = 'float32' })
    else
      set(weight, tensor.zeros(shape))
    end
  end
end

local function initialise(partition, schedule)
  fill('partition', partition_weights(partition))
  fill('schedule', schedule_weights(schedule))
  for _, bias in ipairs { schedule.encoder.input_bias_1, schedule.encoder.input_bias_1_reverse,
    schedule.decoder.input_bias_1 } do
    local width = bias:size(1) / 4
    set(bias, tensor.cat({ tensor.zeros { width }, tensor.ones { width }, tensor.zeros { 2 * width } }, 1))
  end
  -- The logit with which the device before is left with probability switch_probability.
  local odds = math.log((1 - switch_probability) * math.max(1, devices - 1) / switch_probability)
  local reach = math.max(-0.999, math.min(0.999, odds / tanh_constant))
  local logit = temperature * 0.5 * math.log((1 + reach) / (1 - reach))
  set(schedule.stay.weight, tensor.full({ 1, 1 }, logit))
end

-- Sampling ----------------------------------------------------------------------------------------------------------

-- The place of an operator's unit in the graph: its first operator.
local first_operator = {}
for op = graph.operators, 1, -1 do first_operator[graph.unit_of[op]] = op end

-- An index drawn from probabilities row[first], ..., row[first + count - 1] (their sum is about 1).
local function draw(row, first, count, stream)
  local at, sum, last = stream:uniform(), 0, 1
  for i = 1, count do
    local p = row[first + i - 1]
    if p > 0 then
      last, sum = i, sum + p
      if sum > at then break end
    end
  end
  return last
end

-- The same from logarithms.
local function draw_log(row, first, count, stream)
  local sum, cumulative = 0, {}
  for i = 1, count do
    sum = sum + math.exp(row[first + i - 1])
    cumulative[i] = sum
  end
  local at = stream:uniform() * sum
  for i = 1, count - 1 do
    if cumulative[i] > at then return i end
  end
  return count
end

-- Numbers groups by the mean place of their members, empty ones last.
local function ordered(group_of)
  local place, members, order, rank = {}, {}, {}, {}
  for g = 1, groups do place[g], members[g], order[g] = 0, 0, g end
  for u = 1, units do
    local g = group_of[u]
    place[g], members[g] = place[g] + first_operator[u] - 1, members[g] + 1
  end
  for g = 1, groups do place[g] = members[g] > 0 and place[g] / members[g] or math.huge end
  table.sort(order, function(a, b)
    if place[a] ~= place[b] then return place[a] < place[b] end
    return a < b
  end)
  for i, g in ipairs(order) do rank[g] = i end
  local result = {}
  for u = 1, units do result[u] = rank[group_of[u]] end
  return result
end

local types, all_time_us, all_bytes = told.types:to_array(), 0, 0
for u = 1, units do
  all_time_us, all_bytes = all_time_us + told.time_s[u] * 1e6, all_bytes + told.output_bytes[u]
end
local width = told.type_count + 2 + 2 * groups

local function log1p_share(value, all) return all > 0 and math.log(1 + value) / math.log(1 + all) or 0 end

-- Embeddings [groups, width]: shares of types, output size, time, which groups edges go to and come from.
local function embed(group_of)
  local rows, members, time_us, bytes = {}, {}, {}, {}
  for g = 1, groups do
    rows[g], members[g], time_us[g], bytes[g] = {}, 0, 0, 0
    for column = 1, width do rows[g][column] = 0 end
  end
  for u = 1, units do
    local g = group_of[u]
    members[g], rows[g][types[u]] = members[g] + 1, rows[g][types[u]] + 1
    time_us[g], bytes[g] = time_us[g] + told.time_s[u] * 1e6, bytes[g] + told.output_bytes[u]
  end
  local kinds = told.type_count
  for g = 1, groups do
    if members[g] > 0 then
      for t = 1, kinds do rows[g][t] = rows[g][t] / members[g] end
      rows[g][kinds + 1] = log1p_share(bytes[g], all_bytes)
      rows[g][kinds + 2] = log1p_share(time_us[g], all_time_us)
    end
  end
  for e = 1, told.edges do
    local from, to = group_of[told.from[e]], group_of[told.to[e]]
    if from ~= to then
      rows[from][kinds + 2 + to] = 1
      rows[to][kinds + 2 + groups + from] = 1
    end
  end
  return rows
end

local Policy = {}
Policy.__index = Policy

local function new_policy()
  local self = setmetatable({ batch = 0, prior = contiguous_prior(), partition = Partition { seed = 1 },
    schedule = Schedule { seed = 1, width = width } }, Policy)
  initialise(self.partition, self.schedule)
  self.learned = partition_weights(self.partition)
  for _, weight in ipairs(schedule_weights(self.schedule)) do self.learned[#self.learned + 1] = weight end
  self.optimiser = nn.adam { parameters = self.learned, learning_rate = learning_rate }
  return self
end

-- A group for every unit of every sample.
function Policy:sample_groups()
  local logs = self.partition(self.prior)
  local chances, drawn, embeddings = logs:exp():to_array(), {}, {}
  self.ordered = {}
  for s = 1, options.samples do
    local stream = trinity.random(options.seed, 'groups', self.batch * options.samples + s - 1)
    drawn[s] = {}
    for u = 1, units do drawn[s][u] = draw(chances, (u - 1) * groups + 1, groups, stream) end
    self.ordered[s] = ordered(drawn[s])
    embeddings[s] = embed(self.ordered[s])
  end
  self.groups, self.embeddings = tensor.new(drawn, { dtype = 'int64' }), tensor.new(embeddings)
  self.old_groups = logs:gather(2, self.groups:transpose(1, 2)):transpose(1, 2)
end

-- A device for every group, step by step.
function Policy:sample_devices()
  local streams, drawn, taken = {}, {}, {}
  for s = 1, options.samples do
    streams[s] = trinity.random(options.seed, 'devices', self.batch * options.samples + s - 1)
  end
  local encoded = self.schedule:encode(self.embeddings)
  local state, previous = encoded.state, tensor.full({ options.samples, 1 }, devices + 1, { dtype = 'int64' })
  for k = 1, groups do
    local logs
    logs, state = self.schedule:decode(encoded, state, previous)
    local row, chosen = logs:to_array(), {}
    for s = 1, options.samples do chosen[s] = { draw_log(row, (s - 1) * devices + 1, devices, streams[s]) } end
    previous = tensor.new(chosen, { dtype = 'int64' })
    drawn[k], taken[k] = previous, logs:gather(3, previous:unsqueeze(3)):squeeze(3)
  end
  self.devices, self.old_devices = tensor.cat(drawn, 2), tensor.cat(taken, 2)
end

-- A batch of placements.
function Policy:sample()
  self.batch = self.batch + 1
  tensor.no_grad(function()
    self:sample_groups()
    self:sample_devices()
  end)
  local placements, device = problem:placements(options.samples), self.devices:to_array()
  for s, placement in ipairs(placements) do
    for op = 1, graph.operators do
      placement[op] = device[(s - 1) * groups + self.ordered[s][graph.unit_of[op]]]
    end
  end
  return placements
end

-- Learning ----------------------------------------------------------------------------------------------------------

-- R - b over its root mean square in the batch or its moving average, whichever is larger (eq. 15: decay (N-1)/(N+1)).
function Policy:advantages(rewards)
  local mean, squares = 0, 0
  for _, reward in ipairs(rewards) do mean = mean + reward / #rewards end
  self.baseline = self.baseline or mean
  for _, reward in ipairs(rewards) do squares = squares + (reward - self.baseline) ^ 2 / #rewards end
  local function average(old, new) return old and (2 * new + (baseline_n - 1) * old) / (baseline_n + 1) or new end
  self.squares = average(self.squares, squares)
  local scale = self.squares > 1e-24 and math.sqrt(math.max(squares, self.squares)) or 1
  local rows = {}
  for s, reward in ipairs(rewards) do rows[s] = { (reward - self.baseline) / scale } end
  self.baseline = average(self.baseline, mean)
  return tensor.new(rows)
end

-- Eq. 14 with a ratio for every action: the mean of min(r A, clip(r, 1 - eps, 1 + eps) A).
local function clipped_objective(logs, old, advantage)
  local ratio = (logs - old):clamp(-20, 20):exp()
  return (ratio * advantage):minimum(ratio:clamp(1 - clip, 1 + clip) * advantage):mean()
end

local function entropy(logs) return -(logs:exp() * logs):sum(-1):mean() end

-- Log-probabilities of the batch's actions under the present weights, and the entropies of what they were drawn from.
function Policy:evaluate()
  local by_unit = self.partition(self.prior)
  local start = tensor.full({ options.samples, 1 }, devices + 1, { dtype = 'int64' })
  local previous = groups == 1 and start or tensor.cat({ start, self.devices:narrow(2, 1, groups - 1) }, 2)
  local encoded = self.schedule:encode(self.embeddings)
  local by_group = self.schedule:decode(encoded, encoded.state, previous)
  return by_unit:gather(2, self.groups:transpose(1, 2)):transpose(1, 2),
    by_group:gather(3, self.devices:unsqueeze(3)):squeeze(3), entropy(by_unit) + entropy(by_group)
end

function Policy:update(rewards)
  local advantage, loss = self:advantages(rewards), nil
  for _ = 1, options.epochs do
    local by_unit, by_group, spread = self:evaluate()
    loss = -(clipped_objective(by_unit, self.old_groups, advantage)
      + clipped_objective(by_group, self.old_devices, advantage) + spread * entropy_weight)
    self.optimiser:zero_grad()
    loss:backward()
    nn.clip_grad_norm(self.learned, gradient_norm)
    self.optimiser:step()
  end
  return loss:item()
end

-- Beside the ready-made one -------------------------------------------------------------------------------------------

-- The share of equal actions, and the largest difference of the log-probabilities of those.
local function compare(actions, logs, other_actions, other_logs)
  local same = actions:eq(other_actions):to { dtype = 'float32' }
  local apart = (logs - other_logs:to { dtype = 'float32' }):abs() * same
  return same:mean():item(), apart:max():item()
end

local ready = trinity.policies.trinity(problem, { seed = options.seed, groups = groups, samples = options.samples,
  epochs = options.epochs, hidden = options.hidden })
local own, rows = new_policy(), {}

for batch = 1, options.batches do
  local placements, ready_placements = own:sample(), ready:sample()
  local actions = ready:actions()
  local same_groups, apart_groups = compare(own.groups, own.old_groups, actions.groups, actions.group_logs)
  local same_devices, apart_devices = compare(own.devices, own.old_devices, actions.devices, actions.device_logs)
  local function rewards_of(plans)
    local list, mean = {}, 0
    for s, metrics in ipairs(problem:evaluate_batch(plans)) do
      list[s] = problem:score(metrics, plans[s])
      mean = mean + list[s] / #plans
    end
    return list, mean
  end
  local rewards, mean = rewards_of(placements)
  local loss, report = own:update(rewards), ready:update((rewards_of(ready_placements)))
  rows[batch] = { tostring(batch), ('%.2f %%'):format(same_groups * 100), ('%.2f %%'):format(same_devices * 100),
    ('%.1e'):format(apart_groups), ('%.1e'):format(apart_devices), ('%.6f'):format(mean),
    ('%.6f'):format(report.mean_reward), ('%.6f'):format(loss), ('%.6f'):format(report.loss) }
end

print(('%s: %d units, %d groups, %d devices; %d samples a batch, %d epochs; %d weights'):format(graph.name, units,
  groups, devices, options.samples, options.epochs, ready.parameters))
print(trinity.format_table({ 'batch', 'equal groups', 'equal devices', 'logs apart', 'logs apart', 'mean reward',
  'ready-made', 'loss', 'ready-made' }, rows))
