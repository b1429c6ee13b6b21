-- The networks of TAPP (papers/notes.md "TAPP: what is stated"): a partition network that divides a row of layers into
-- groups, and an allocation network with attention (trinity.learn.placer) that assigns a node to every group. It is a
-- policy of an environment with 'joint' actions; schemes() decodes them to the node of every layer. Sizes follow
-- papers/notes.md "TAPP: what is ours": type embedding 20, two hidden layers of 64. Our additional features are the
-- bytes sent by a cut after a layer, the fraction of time up to it, and an embedding of its position; without them, the
-- network cannot distinguish neighbouring layers of equal type.

local array = require 'trinity.base.array'
local nn = require 'trinity.nn'
local placer = require 'trinity.learn.placer'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local tapp_policy = {}

local type_size, place_size, layer_hidden = 20, 16, 64
local never = -1e9 -- logit of invalid choices

-- Normalizes numbers to mean 0 and standard deviation 1, or to 0 if they are equal.
local function standardised(values)
  local mean, squares = 0, 0
  for _, value in ipairs(values) do mean = mean + value / #values end
  for _, value in ipairs(values) do squares = squares + (value - mean) ^ 2 / #values end
  local scale, result = squares > 1e-24 and 1 / math.sqrt(squares) or 0, {}
  for i, value in ipairs(values) do result[i] = (value - mean) * scale end
  return result
end

local function sums(a, b) return util.listed(#a, function(i) return a[i] + b[i] end) end

local function shares(values)
  local sum, result = 0, {}
  for _, value in ipairs(values) do sum = sum + value end
  for i, value in ipairs(values) do result[i] = sum > 0 and value / sum or 0 end
  return result
end

-- Returns the prefix sums of a list.
local function running(values)
  local sum, result = 0, {}
  for i, value in ipairs(values) do
    sum = sum + value
    result[i] = sum
  end
  return result
end

-- Converts a list of columns to rows [layers, columns].
local function matrix(columns)
  local rows = {}
  for l = 1, #columns[1] do
    rows[l] = {}
    for c = 1, #columns do rows[l][c] = columns[c][l] end
  end
  return tensor.new(rows)
end

local function logs(values) return util.map(values, function(value) return math.log(1 + value) / 20 end) end

-- Returns the inputs for layers: types as numbers, features [layers, ...], and fractions that are summed over groups.
local function describe(chain)
  local names, number_of = {}, {}
  for _, name in ipairs(chain.type) do names[name] = true end
  for i, name in ipairs(util.sorted_keys(names)) do number_of[name] = i end
  local types, places, depth, crossing = array.int32(chain.layers), array.int32(chain.layers), {}, {}
  for l = 1, chain.layers do
    types[l], places[l] = number_of[chain.type[l]], l
    crossing[l] = math.log(1 + chain.forward_bytes[l] + chain.backward_bytes[l])
    depth[l] = chain.layers > 1 and (l - 1) / (chain.layers - 1) or 0
  end
  local features = { logs(chain.parameter_bytes), logs(chain.activation_bytes), depth, standardised(crossing) }
  local summed = { shares(chain.parameter_bytes) }
  for _, kind in ipairs(chain.kinds) do
    local time_s = sums(kind.forward_s, kind.backward_s)
    local share = shares(time_s)
    features[#features + 1] = standardised(time_s)
    features[#features + 1], summed[#summed + 1] = running(share), share
  end
  return { types = tensor.new(types), type_count = #util.sorted_keys(names), places = tensor.new(places),
    features = matrix(features), width = #features, shares = matrix(summed), share_width = #summed }
end

local Tapp = {}
Tapp.__index = Tapp

--- The trainable tensors.
function Tapp:parameters() return self.learned end

-- Returns embeddings of layers [layers, width] and scores [layers, groups], with gradients.
function Tapp:layer_rows()
  local rows = tensor.cat({ self.embedding(self.told.types), self.told.features }, 2)
  return rows, self.scores(tensor.cat({ rows, self.place(self.told.places) }, 2))
end

-- Returns whether group k may end with layer l after the previous group ended with `previous`: later groups need a
-- layer each.
local function mask_cuts(self, cuts, first, last)
  local count, layers = cuts.count, self.chain.layers
  local mask = array.double(count * (last - first + 1) * layers)
  local at = 0
  for s = 1, count do
    for k = first, last do
      local previous = k > 1 and cuts[s][k - 1] or 0
      for l = 1, layers do
        at = at + 1
        mask[at] = l > previous and l <= layers - (self.groups - k) and 0 or never
      end
    end
  end
  return tensor.new(mask):to { dtype = 'float32' }:reshape { count, last - first + 1, layers }
end

-- Returns the rows of an int64 tensor [count, width] as lists.
local function rows_of(actions)
  local values, width, rows = actions:to_array(), actions:size(2), { count = actions:size(1) }
  for s = 1, rows.count do
    rows[s] = {}
    for i = 1, width do rows[s][i] = values[(s - 1) * width + i] end
  end
  return rows
end

-- Returns log-probabilities of logits under a mask (0 or `never`; nil: none). With probability `explore` a choice is
-- uniform over valid choices, so that no choice ever gets probability 0.
function Tapp:log_rows(logits, mask)
  local learned = (mask and logits + mask or logits):softmax(-1)
  local allowed = mask and mask:gt(never / 2):to { dtype = 'float32' } or tensor.ones(logits:size())
  local uniform = allowed / allowed:sum(-1, true)
  return (learned * (1 - self.explore) + uniform * self.explore + 1e-30):log()
end

-- Samples from logits [count, width, n], or takes the most likely choices.
function Tapp:choose(logits, mask, stream)
  if stream then return tensor.categorical(self:log_rows(logits, mask), stream) end
  return (mask and logits + mask or logits):argmax(-1)
end

-- Returns the choices of the partition network: ends of all groups except the last, or a group for every layer.
function Tapp:draw_partition(scores, count, stream)
  local layers, groups = self.chain.layers, self.groups
  if self.mode ~= 'cuts' then
    return self:choose(scores:unsqueeze(1):expand { count, layers, groups }, nil, stream)
  end
  local cuts, drawn = { count = count }, {}
  for s = 1, count do cuts[s] = {} end
  for k = 1, groups - 1 do
    local row = scores:narrow(2, k, 1):transpose(1, 2):unsqueeze(1):expand { count, 1, layers }
    drawn[k] = self:choose(row, mask_cuts(self, cuts, k, k), stream)
    local values = drawn[k]:to_array()
    for s = 1, count do cuts[s][k] = values[s] end
  end
  return drawn[1] and tensor.cat(drawn, 2)
end

-- Returns log-probabilities [count, choices] of the partition's choices and their mean entropy.
function Tapp:judge_partition(scores, partition)
  local count, layers, groups = partition:size(1), self.chain.layers, self.groups
  local rows
  if self.mode == 'cuts' then
    local ends = scores:narrow(2, 1, groups - 1):transpose(1, 2):unsqueeze(1):expand { count, groups - 1, layers }
    rows = self:log_rows(ends, mask_cuts(self, rows_of(partition), 1, groups - 1))
  else
    rows = self:log_rows(scores:unsqueeze(1):expand { count, layers, groups })
  end
  return rows:gather(3, partition:unsqueeze(3)):squeeze(3), -(rows:exp() * rows):sum(-1):mean()
end

-- Returns the group of every layer, by sample, as lists.
function Tapp:groups_of(partition, count)
  local choices, layers, list = partition and rows_of(partition), self.chain.layers, {}
  for s = 1, count do
    local group_of, group, highest = {}, 1, 0
    for l = 1, layers do
      if self.mode == 'cuts' then
        group_of[l] = group
        if group < self.groups and choices[s][group] == l then group = group + 1 end
      elseif self.mode == 'literal' then
        group_of[l] = choices[s][l]
      else -- the running maximum, its steps numbered through
        if choices[s][l] > highest then
          group, highest = l > 1 and group + 1 or 1, choices[s][l]
        end
        group_of[l] = group
      end
    end
    list[s] = group_of
  end
  return list
end

-- Returns features of groups [count, groups, ...]: means of their layers' embeddings, sums of fractions, the next
-- group.
function Tapp:group_rows(rows, group_lists)
  local count, layers, groups = #group_lists, self.chain.layers, self.groups
  local member, following = array.double(count * groups * layers), array.double(count * groups * groups)
  for s, group_of in ipairs(group_lists) do
    for l = 1, layers do
      local row = (s - 1) * groups + group_of[l] - 1
      member[row * layers + l] = 1
      if l < layers and group_of[l + 1] ~= group_of[l] then following[row * groups + group_of[l + 1]] = 1 end
    end
  end
  local function as(values, width)
    return tensor.new(values):to { dtype = 'float32' }:reshape { count, groups, width }
  end
  member, following = as(member, layers), as(following, groups)
  local means = member:matmul(rows) / member:sum(3, true):clamp(1)
  return tensor.cat({ means, member:matmul(self.told.shares), following }, 3)
end

-- Returns masks of the nodes for group k, as logits to add [count, last - first + 1, nodes]: in a repaired scheme the
-- last node, or an unused one.
function Tapp:mask_nodes(chosen, first, last)
  local count, nodes = chosen.count, self.nodes
  local mask = array.double(count * (last - first + 1) * nodes)
  for s = 1, self.mode ~= 'literal' and count or 0 do
    for k = math.max(first, 2), last do
      local base = ((s - 1) * (last - first + 1) + k - first) * nodes
      for before = 1, k - 1 do
        if chosen[s][before] ~= chosen[s][k - 1] then mask[base + chosen[s][before]] = never end
      end
    end
  end
  return tensor.new(mask):to { dtype = 'float32' }:reshape { count, last - first + 1, nodes }
end

-- Samples a node for every group: int64 [count, groups].
function Tapp:draw_nodes(encoded, stream)
  local count = encoded.samples
  local previous, state, drawn = self.network:start(count), nil, {}
  local chosen = { count = count }
  for s = 1, count do chosen[s] = {} end
  for k = 1, self.groups do
    local logits
    logits, state = self.network:decode(encoded, k, previous, state)
    previous = self:choose(logits, self:mask_nodes(chosen, k, k), stream)
    drawn[k] = previous
    local values = previous:to_array()
    for s = 1, count do chosen[s][k] = values[s] end
  end
  return tensor.cat(drawn, 2)
end

-- Returns log-probabilities [count, groups] of nodes and the mean entropy of a choice.
function Tapp:judge_nodes(encoded, chosen)
  local count, groups = chosen:size(1), self.groups
  local previous = self.network:start(count)
  if groups > 1 then previous = tensor.cat({ previous, chosen:narrow(2, 1, groups - 1) }, 2) end
  local logits = self.network:decode(encoded, 1, previous)
  local rows = self:log_rows(logits, self:mask_nodes(rows_of(chosen), 1, groups))
  return rows:gather(3, chosen:unsqueeze(3)):squeeze(3), -(rows:exp() * rows):sum(-1):mean()
end

-- Returns actions [count, choices of the partition + groups]; without a random stream the most likely ones.
function Tapp:draw(count, stream)
  return tensor.no_grad(function()
    local rows, scores = self:layer_rows()
    local partition = self:draw_partition(scores, count, stream)
    local encoded = self.network:encode(self:group_rows(rows, self:groups_of(partition, count)))
    local nodes = self:draw_nodes(encoded, stream)
    return partition and tensor.cat({ partition, nodes }, 2) or nodes
  end)
end

--- Samples actions for every environment.
function Tapp:act(observation, stream) return self:draw(observation.mask:size(1), stream) end

-- Splits actions into the partition's (nil with one group) and the nodes'.
function Tapp:cut(actions)
  local own = actions:size(2) - self.groups
  return own > 0 and actions:narrow(2, 1, own) or nil, actions:narrow(2, own + 1, self.groups)
end

--- Returns log-probabilities [count, choices] and the mean entropy of a choice.
function Tapp:evaluate(_, actions)
  local partition, nodes = self:cut(actions)
  local rows, scores = self:layer_rows()
  local lists = self:groups_of(partition, actions:size(1))
  local of_nodes, node_spread = self:judge_nodes(self.network:encode(self:group_rows(rows, lists)), nodes)
  if not partition then return of_nodes, node_spread end
  local of_partition, spread = self:judge_partition(scores, partition)
  local own, groups = partition:size(2), self.groups
  return tensor.cat({ of_partition, of_nodes }, 2), (spread * own + node_spread * groups) * (1 / (own + groups))
end

--- Returns the node of every layer, one list per row of actions.
function Tapp:schemes(actions)
  local partition, nodes = self:cut(actions)
  local count = actions:size(1)
  local lists, node_of, schemes = self:groups_of(partition, count), rows_of(nodes), {}
  for s = 1, count do
    schemes[s] = {}
    for l = 1, self.chain.layers do schemes[s][l] = node_of[s][lists[s][l]] end
  end
  return schemes
end

--- Makes a policy over `chain` (layers, type, parameter_bytes, activation_bytes, forward_bytes, backward_bytes and
--- kinds of layer_chain.of()) for a number of nodes. options: groups (0: the number of nodes), mode ('cuts',
--- 'isotonic', 'literal'; see trinity.methods.tapp), explore, hidden, seed.
function tapp_policy.new(chain, nodes, options)
  local groups = options.groups > 0 and options.groups or nodes
  if options.mode == 'cuts' then groups = math.min(groups, chain.layers) end
  local told = describe(chain)
  local width = type_size + told.width
  local self = setmetatable({ chain = chain, told = told, nodes = nodes, groups = groups, mode = options.mode,
    explore = options.explore }, Tapp)
  self.embedding = nn.embedding { count = told.type_count, size = type_size, seed = options.seed }
  self.place = nn.embedding { count = chain.layers, size = place_size, seed = options.seed }
  self.scores = nn.sequential { nn.linear { inputs = width + place_size, outputs = layer_hidden }, nn.relu,
    nn.linear { inputs = layer_hidden, outputs = layer_hidden }, nn.relu,
    nn.linear { inputs = layer_hidden, outputs = groups }, seed = options.seed }
  self.network = placer.class { features = width + told.share_width + groups, hidden = options.hidden,
    devices = nodes, seed = options.seed }
  self.learned = {}
  for _, part in ipairs { self.embedding, self.place, self.scores, self.network } do
    for _, weight in ipairs(part:parameters()) do self.learned[#self.learned + 1] = weight end
  end
  return self
end

return tapp_policy
