-- The inputs of Doppler's policies, and one of their episodes: nodes placed one after the other, each once
-- all that it reads from are placed (papers/notes.md "Doppler"). Nodes are contiguous groups of colocation units; an
-- edge that points back in their order is left out. Times are in multiples of the mean time of a node.

local nodes_of = require 'trinity.env.nodes'

local doppler_graph = {}

local most_pairs = 256 -- of devices, over whose links the mean is taken

doppler_graph.node_features, doppler_graph.device_features = 5, 6

-- Mean latency and mean seconds a byte between two devices.
local function mean_wire(cluster)
  local latency_s, s_per_byte, pairs = 0, 0, 0
  for from = 1, #cluster.devices do
    for to = 1, #cluster.devices do
      if from ~= to and pairs < most_pairs then
        local latency, bandwidth = cluster:wire(from, to)
        latency_s, s_per_byte, pairs = latency_s + latency, s_per_byte + 1 / bandwidth, pairs + 1
      end
    end
  end
  if pairs == 0 then return 0, 0 end
  return latency_s / pairs, s_per_byte / pairs
end

-- Divides all times by the mean time of a node.
local function scale(self)
  local sum = 0
  for i = 1, self.n do sum = sum + self.mean[i] / self.n end
  local by = sum > 0 and 1 / sum or 1
  for i = 1, self.n do
    self.mean[i], self.communication[i] = self.mean[i] * by, self.communication[i] * by
    for _, on in ipairs(self.compute) do on[i] = on[i] * by end
  end
end

-- Longest paths through a node to an exit (b-level) and from an entry (t-level), transfers included; which neighbour
-- each goes on with.
local function levels(self)
  local b, t, next_of, before = {}, {}, {}, {}
  for i = self.n, 1, -1 do
    b[i] = 0
    for _, child in ipairs(self.children[i]) do
      if not next_of[i] or b[child] > b[i] then b[i], next_of[i] = b[child], child end
    end
    b[i] = b[i] + self.mean[i] + (next_of[i] and self.communication[i] or 0)
  end
  for i = 1, self.n do
    t[i] = 0
    for _, parent in ipairs(self.parents[i]) do
      local arrival = t[parent] + self.communication[parent]
      if not before[i] or arrival > t[i] then t[i], before[i] = arrival, parent end
    end
    t[i] = t[i] + self.mean[i]
  end
  self.b_level, self.t_level = b, t
  self.to_exit, self.from_entry = next_of, before
end

-- Rows [node][feature]: compute, b-level, t-level, sums of communication of in-edges and of out-edges.
local function rows_of(self)
  local rows = {}
  for i = 1, self.n do
    local into = 0
    for _, parent in ipairs(self.parents[i]) do into = into + self.communication[parent] end
    rows[i] = { self.mean[i], self.b_level[i], self.t_level[i], into, self.communication[i] * #self.children[i] }
  end
  return rows
end

--- { n =, devices =, node_of = by unit, compute[d][node], mean =, communication = of a node's output, parents =,
--- children =, b_level =, t_level =, to_exit and from_entry = the next node of the longest path, rows = }.
function doppler_graph.new(problem, groups, seed)
  local nodes = nodes_of.new(problem, groups, { seed = seed, vocabulary = 'graph', node2vec = false })
  local latency_s, s_per_byte = mean_wire(problem.cluster)
  local told, devices, n = nodes.told, nodes.devices, groups
  local self = { n = n, devices = devices, node_of = nodes.node_of, children = nodes.children, parents = {},
    communication = {}, compute = {}, mean = {} }
  for d = 1, devices do self.compute[d] = {} end
  for i = 1, n do
    self.communication[i], self.mean[i], self.parents[i] = 0, 0, {}
    for d = 1, devices do
      self.compute[d][i] = nodes.time_s[(i - 1) * devices + d]
      self.mean[i] = self.mean[i] + self.compute[d][i] / devices
    end
  end
  for e, to in ipairs(nodes.to) do table.insert(self.parents[to], nodes.from[e]) end
  for unit = 1, told.units do
    local node, bytes = self.node_of[unit], told.output_bytes[unit]
    local time_s = bytes > 0 and latency_s + s_per_byte * bytes or 0
    self.communication[node] = self.communication[node] + time_s
  end
  scale(self)
  levels(self)
  self.rows = rows_of(self)
  return self
end

local Episode = {}
Episode.__index = Episode

--- An episode that has placed nothing.
function doppler_graph.episode(graph)
  local self = setmetatable({ graph = graph, device = {}, start = {}, ends = {}, missing = {}, candidates = {},
    free = {}, load = {} }, Episode)
  for i = 1, graph.n do
    self.missing[i] = #graph.parents[i]
    if self.missing[i] == 0 then table.insert(self.candidates, i) end
  end
  for d = 1, graph.devices do self.free[d], self.load[d] = 0, 0 end
  return self
end

--- Rows [device][feature] of where `node` may go: compute placed there; compute of the node's inputs there, least start
--- and greatest end of these; earliest start of the node there; its time there, which the paper's equal devices do not
--- need.
function Episode:device_rows(node)
  local graph, rows = self.graph, {}
  for d = 1, graph.devices do
    local there, first, last, earliest = 0, nil, 0, self.free[d]
    for _, parent in ipairs(graph.parents[node]) do
      local arrival = self.ends[parent]
      if self.device[parent] == d then
        there = there + graph.compute[d][parent]
        first = math.min(first or math.huge, self.start[parent])
        last = math.max(last, arrival)
      else
        arrival = arrival + graph.communication[parent]
      end
      earliest = math.max(earliest, arrival)
    end
    rows[d] = { self.load[d], there, first or 0, last, earliest, graph.compute[d][node] }
  end
  return rows
end

--- Places candidate number `choice` on a device, of which `rows` tell.
function Episode:place(choice, d, rows)
  local graph, node = self.graph, table.remove(self.candidates, choice)
  self.device[node], self.start[node] = d, rows[d][5]
  self.ends[node] = rows[d][5] + rows[d][6]
  self.free[d], self.load[d] = self.ends[node], self.load[d] + rows[d][6]
  for _, child in ipairs(graph.children[node]) do
    self.missing[child] = self.missing[child] - 1
    if self.missing[child] == 0 then table.insert(self.candidates, child) end
  end
  return node
end

local function best_of(count, value)
  local best, list = -math.huge, {}
  for i = 1, count do best = math.max(best, value(i)) end
  for i = 1, count do list[i] = value(i) == best and 1 or 0 end
  return list
end

--- Which candidates the teacher would take, as 0 and 1: the ones with the longest path to an exit.
function Episode:teacher_nodes()
  return best_of(#self.candidates, function(i) return self.graph.b_level[self.candidates[i]] end)
end

--- Which devices it would: those where the node starts first.
function Episode:teacher_devices(rows)
  return best_of(#rows, function(d) return -rows[d][5] end)
end

return doppler_graph
