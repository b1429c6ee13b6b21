-- Doppler's two policies (papers/notes.md "Doppler"): SEL picks the next node, PLC its device. Each has an encoder of
-- its own, which passes messages along the edges of the graph once an episode, and a head of two layers over what is
-- known of every choice. Neither depends on the numbers of nodes and devices.

local doppler_graph = require 'trinity.methods.doppler_graph'
local nn = require 'trinity.nn'
local tensor = require 'trinity.nn.tensor'

local doppler_policy = {}

local slope, never = 0.1, -1e9 -- of LeakyReLU; a logit of what is no choice

local function leaky(x) return x:relu() - x:neg():relu() * slope end

-- Mean 0 and deviation 1 along a dimension, of the entries that `mask` (1 or 0, or nil: all) keeps.
local function normalised(x, dimension, mask)
  local count = mask and mask:sum(dimension, true) or x:size(dimension)
  local off = x - (mask and x * mask or x):sum(dimension, true) / count
  if mask then off = off * mask end
  return off / ((off * off):sum(dimension, true) / count + 1e-12):sqrt()
end

-- Edges of the graph in both directions, by what their message is: a list of { value, from, to }. The value is the
-- communication of the producer, over all edges with mean 0 and deviation 1.
local function edge_classes(graph)
  local by_value, values, list, sum, squares, count = {}, {}, {}, 0, 0, 0
  for a = 1, graph.n do
    for _, b in ipairs(graph.children[a]) do
      local value = graph.communication[a]
      if not by_value[value] then
        by_value[value] = { from = {}, to = {} }
        values[#values + 1] = value
      end
      local class = by_value[value]
      local i = #class.from
      class.from[i + 1], class.to[i + 1], class.from[i + 2], class.to[i + 2] = a, b, b, a
      sum, squares, count = sum + value, squares + value * value, count + 1
    end
  end
  table.sort(values)
  local mean = sum / math.max(1, count)
  local deviation = math.sqrt(math.max(0, squares / math.max(1, count) - mean * mean)) + 1e-6
  for i, value in ipairs(values) do
    local class = by_value[value]
    list[i] = { value = (value - mean) / deviation, from = tensor.new(class.from, { dtype = 'int64' }),
      to = tensor.new(class.to, { dtype = 'int64' }) }
  end
  return list
end

-- [n, n]: row i is 1 at the nodes of the path that begins at i and goes on with next_of.
local function paths(next_of, n)
  local rows = {}
  for i = 1, n do
    local row, at = {}, i
    for j = 1, n do row[j] = 0 end
    while at do
      row[at] = 1
      at = next_of[at]
    end
    rows[i] = row
  end
  return tensor.new(rows)
end

--- The inputs of both policies from a graph, as tensors.
function doppler_policy.told(graph)
  local rows = tensor.new(graph.rows)
  local classes, values = edge_classes(graph), {}
  for i, class in ipairs(classes) do values[i] = { class.value } end
  return { n = graph.n, rows = rows, nodes = normalised(rows, 1), classes = classes,
    values = #values > 0 and tensor.new(values) or nil, to_exit = paths(graph.to_exit, graph.n),
    from_entry = paths(graph.from_entry, graph.n) }
end

local Encoder = nn.class 'doppler_encoder'

function Encoder:build(spec)
  self.hidden, self.rounds = spec.hidden, spec.rounds
  self.first = nn.linear { inputs = doppler_graph.node_features, outputs = spec.hidden }
  self.edge = nn.linear { inputs = 1, outputs = spec.hidden }
  self.matrix = nn.linear { inputs = spec.hidden, outputs = spec.hidden * spec.hidden }
  self.update = nn.gru { inputs = spec.hidden, hidden = spec.hidden }
end

--- Rows of nodes [n, hidden]: rounds of messages, one matrix for all edges of equal communication.
function Encoder:forward(told)
  local x = self.first(told.nodes):relu()
  local state = x:unsqueeze(1)
  local matrices = told.values and self.matrix(self.edge(told.values):relu())
    :reshape { #told.classes, self.hidden, self.hidden }
  for _ = 1, self.rounds do
    local sum = tensor.zeros { told.n, self.hidden }
    for k, class in ipairs(told.classes) do
      sum = sum:index_add(1, class.to, x:index_select(1, class.from):matmul(matrices:select(1, k)))
    end
    local out
    out, state = self.update(sum:relu():unsqueeze(1), state)
    x = out:squeeze(1)
  end
  return leaky(x)
end

local Head = nn.class 'doppler_head'

function Head:build(spec)
  self.own = nn.linear { inputs = spec.features, outputs = spec.hidden }
  self.mixed = nn.linear { inputs = 4 * spec.hidden, outputs = spec.head }
  self.score = nn.linear { inputs = spec.head, outputs = 1 }
end

function Head:forward(own, others)
  local x = tensor.cat({ self.own(own), others[1], others[2], others[3] }, 3)
  return self.score(leaky(self.mixed(x))):squeeze(3)
end

local Policy = nn.class 'doppler'

--- { hidden =, rounds =, seed = }.
function Policy:build(spec)
  local head = math.max(8, math.floor(spec.hidden / 2))
  local encoder = { hidden = spec.hidden, rounds = spec.rounds }
  self.hidden = spec.hidden
  self.select_encoder, self.place_encoder = Encoder(encoder), Encoder(encoder)
  self.node = Head { features = doppler_graph.node_features, hidden = spec.hidden, head = head }
  self.device = Head { features = doppler_graph.device_features, hidden = spec.hidden, head = head }
  self.placed = nn.linear { inputs = doppler_graph.node_features, outputs = spec.hidden }
end

--- The encoded graph that an episode's decisions read, with gradients to the encoders.
function Policy:encode(told)
  local nodes, places = self.select_encoder(told), self.place_encoder(told)
  return { told = told, nodes = nodes, places = places, own = self.placed(told.nodes),
    to_exit = normalised(told.to_exit:matmul(nodes), 1), from_entry = normalised(told.from_entry:matmul(nodes), 1) }
end

-- Rows of x at indices [decisions, choices].
local function taken(x, indices)
  local count, choices = indices:size(1), indices:size(2)
  return x:index_select(1, indices:flatten()):reshape { count, choices, x:size(2) }
end

--- Logits of candidates: indices [decisions, choices] of nodes, mask the same with 1 for a choice and 0 beyond.
function Policy:node_logits(seen, candidates, mask)
  local kept = mask:unsqueeze(3)
  local own = normalised(taken(seen.told.rows, candidates), 2, kept)
  local logits = self.node(own, { taken(seen.nodes, candidates),
    normalised(taken(seen.to_exit, candidates), 2, kept), normalised(taken(seen.from_entry, candidates), 2, kept) })
  return logits:masked_fill(mask:lt(0.5), never)
end

--- Logits of devices: nodes [decisions], rows [decisions, devices, features], sums of what is encoded of the nodes on
--- every device [decisions, devices, hidden].
function Policy:device_logits(seen, nodes, rows, sums)
  local count, devices = rows:size(1), rows:size(2)
  local function of_node(x) return x:index_select(1, nodes):unsqueeze(2):expand { count, devices, x:size(2) } end
  return self.device(normalised(rows, 2), { of_node(seen.own), of_node(seen.places), normalised(sums, 2) })
end

doppler_policy.class = Policy

return doppler_policy
