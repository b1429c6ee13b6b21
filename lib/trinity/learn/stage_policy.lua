-- A policy of an environment with 'joint' actions that cuts a row of layers (trinity.search.layer_chain) into pipeline
-- stages: where each group of layers ends, then the node of every group. It makes its choices in turn, each knowing
-- those before. Ends rise and every group has a layer; a node serves consecutive groups. So every scheme is a pipeline.

local learn_placer = require 'trinity.learn.placer'
local nn = require 'trinity.nn'
local tensor = require 'trinity.nn.tensor'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local type_size, place_size, layer_hidden = 20, 16, 64
local explore = 0.1 -- share of uniform choices: a policy that has settled still tries its neighbours
local never = -1e9 -- the logit of an invalid choice

-- Inputs: types of layers and features [layers, ...]; what adds up over the layers of a group. Without the bytes that a
-- cut sends and the share of time up to a layer, neighbouring layers of one type would look the same.
local function describe(chain)
  local number_of, count = {}, 0
  local function column(values) return tensor.new(values):unsqueeze(2) end
  local function logs(values) return (column(values) + 1):log() end
  local types = util.map(chain.type, function(name)
    if not number_of[name] then number_of[name], count = count + 1, count + 1 end
    return number_of[name]
  end)
  local places = tensor.arange(1, chain.layers, 1, { dtype = 'int64' })
  local features = { logs(chain.parameter_bytes) * 0.05, logs(chain.activation_bytes) * 0.05,
    (places:unsqueeze(2) - 1) * (1 / math.max(1, chain.layers - 1)),
    training.normalised((column(chain.forward_bytes) + column(chain.backward_bytes) + 1):log()) }
  local function shares(values) return values / (values:sum() + 1e-30) end
  local summed = { shares(column(chain.parameter_bytes)) }
  for _, kind in ipairs(chain.kinds) do
    local time_s = column(kind.forward_s) + column(kind.backward_s)
    summed[#summed + 1] = shares(time_s)
    features[#features + 1], features[#features + 2] = training.normalised(time_s), shares(time_s):cumsum(1)
  end
  return { types = tensor.new(types, { dtype = 'int64' }), type_count = count, places = places,
    features = tensor.cat(features, 2), summed = tensor.cat(summed, 2) }
end

local Policy = nn.class 'stage_policy'

--- { chain, nodes, groups = at most the layers, hidden, seed }.
function Policy:build(spec)
  self.layers, self.groups, self.inputs = spec.chain.layers, spec.groups, describe(spec.chain)
  local width = type_size + self.inputs.features:size(2)
  self.type = nn.embedding { count = self.inputs.type_count, size = type_size }
  self.place = nn.embedding { count = self.layers, size = place_size }
  self.scores = nn.sequential { nn.linear { inputs = width + place_size, outputs = layer_hidden }, nn.relu,
    nn.linear { inputs = layer_hidden, outputs = layer_hidden }, nn.relu,
    nn.linear { inputs = layer_hidden, outputs = spec.groups } }
  self.placer = learn_placer.class { features = width + self.inputs.summed:size(2) + spec.groups, hidden = spec.hidden,
    devices = spec.nodes }
end

--- The group of every layer by a row of choices.
function Policy:groups_of(row)
  local group = 1
  return util.listed(self.layers, function(layer)
    if group < self.groups and layer - 1 == row[group] then group = group + 1 end
    return group
  end)
end

--- The node of every layer, one list per row of actions.
function Policy:schemes(actions)
  return util.map(actions:totable(), function(row)
    return util.map(self:groups_of(row), function(group) return row[self.groups - 1 + group] end)
  end)
end

--- Makes choices for `count` rows by a stream (nil: the most likely), or judges `given` actions. Returns actions, their
--- log-probabilities [count, choices] and the mean entropy of a choice.
function Policy:forward(count, stream, given)
  local made, columns, log_probs, entropy = util.listed(count, function() return {} end), {}, {}, 0
  local function choose(logits, is_allowed)
    training.check_finite('stage_policy', logits)
    local mask = tensor.new(util.map(made, function(row)
      return util.listed(logits:size(2), function(i) return is_allowed(row, i) and 1 or 0 end)
    end))
    local learned = logits:masked_fill(mask:eq(0), never):softmax(-1)
    local rows = (learned * (1 - explore) + mask / mask:sum(2, true) * explore + 1e-30):log()
    local column = given and given:narrow(2, #columns + 1, 1)
      or (stream and tensor.categorical(rows, stream) or rows:argmax(-1)):unsqueeze(2)
    columns[#columns + 1], log_probs[#log_probs + 1] = column, rows:gather(2, column)
    entropy = entropy - (rows:exp() * rows):sum(-1):mean()
    for s, value in ipairs(column:flatten():totable()) do table.insert(made[s], value) end
    return column
  end
  local rows = tensor.cat({ self.type(self.inputs.types), self.inputs.features }, 2)
  local scores = self.scores(tensor.cat({ rows, self.place(self.inputs.places) }, 2)):transpose(1, 2)
  for k = 1, self.groups - 1 do
    choose(scores:narrow(1, k, 1):expand { count, self.layers }, function(row, layer)
      return layer > (row[k - 1] or 0) and layer <= self.layers - self.groups + k
    end)
  end
  local groups = tensor.new(util.map(made, function(row) return self:groups_of(row) end), { dtype = 'int64' })
  local member = groups:one_hot(self.groups):to { dtype = 'float32' }:transpose(2, 3)
  local number = tensor.eye(self.groups):unsqueeze(1):expand { count, self.groups, self.groups }
  local encoded = self.placer:encode(tensor.cat({ member:matmul(rows) / member:sum(3, true),
    member:matmul(self.inputs.summed), number }, 3))
  local previous, state = self.placer:start(count), nil
  for k = 1, self.groups do
    local logits
    logits, state = self.placer:decode(encoded, k, previous, state)
    previous = choose(logits:squeeze(2), function(row, node)
      for at = self.groups, #row - 1 do
        if row[at] == node and row[#row] ~= node then return false end
      end
      return true
    end)
  end
  return tensor.cat(columns, 2), tensor.cat(log_probs, 2), entropy * (1 / #columns)
end

function Policy:act(observation, stream) return (self(observation.mask:size(1), stream)) end

function Policy:evaluate(_, actions) return select(2, self(actions:size(1), nil, actions)) end

return Policy
