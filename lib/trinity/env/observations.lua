-- Observations of environments: arrays of all of them, updated during episodes and converted to tensors once per step.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local mesh = require 'trinity.env.mesh'
local place = require 'trinity.env.place'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local observations = {}

local function float(values, shape) return tensor.new(values):to { dtype = 'float32' }:reshape(shape) end

-- Tensors that no step changes: features, types and times of nodes, and which nodes and devices there are.
local function fixed_tensors(self)
  local n, most, width = self.num_envs, self.max_nodes, self.max_devices
  local times, node_mask, device_mask = array.double(n * most * width), array.int32(n * most), array.int32(n * width)
  local types, rows = array.filled(n * most, 1), {}
  for i, s in ipairs(self.states) do
    local of = s.nodes
    for k = 1, of.count do
      local at = (i - 1) * most + k
      node_mask[at], types[at] = 1, of.types[k]
      for d = 1, of.devices do times[(at - 1) * width + d] = of.time_s[(k - 1) * of.devices + d] / of.bound_s end
    end
    for d = 1, of.devices do device_mask[(i - 1) * width + d] = 1 end
    local short = most - of.count
    rows[i] = short == 0 and of.features
      or tensor.cat({ of.features, tensor.zeros { short, of.features:size(2) } }, 1)
  end
  return { nodes = tensor.stack(rows), types = tensor.new(types):reshape { n, most },
    times = float(times, { n, most, width }), node_mask = tensor.new(node_mask):reshape { n, most }:gt(0),
    device_mask = tensor.new(device_mask):reshape { n, width }:gt(0) }
end

local function prepare_mesh(self)
  local devices = 0
  for _, of in ipairs(self.about) do devices = math.max(devices, of.devices) end
  self.words, self.num_actions = mesh.words('trinity.env', self.options.words, devices), 0
  for _, word in ipairs(self.words) do self.num_actions = math.max(self.num_actions, #word[2]) end
  self.max_steps = #self.words
  self.chosen = array.int32(self.num_envs * #self.words)
  local facts = {}
  for i, s in ipairs(self.states) do
    local graph, cluster = s.about.problem.graph, s.about.problem.cluster
    facts[i] = { math.log(graph.parameters + 1), math.log(graph.flops + 1), math.log(s.about.devices),
      math.log(cluster.devices[1].capacity_bytes) }
  end
  self.fixed = { facts = tensor.new(facts) }
end

-- With option decode, observations only say which environments there are.
local function prepare_decoded(self)
  self.max_steps, self.num_actions, self.fixed = 1, self.about[1].devices, {}
  for _, s in ipairs(self.states) do s.placement = s.about.problem:placement() end
end

local function prepare_nodes(self)
  local o, n = self.options, self.num_envs
  self.max_nodes, self.max_devices = 0, 0
  for _, of in ipairs(self.about) do
    self.max_nodes, self.max_devices = math.max(self.max_nodes, of.count), math.max(self.max_devices, of.devices)
    if o.critical_path then
      local units, arrays = of.problem.graph.units, {}
      of.critical = core.critical_units(of.problem.handle)
      function of.critical_s(count)
        arrays[count] = arrays[count] or array.double(count * units)
        of.critical_row_s = arrays[count]
        return arrays[count]
      end
    end
  end
  self.max_steps = self.is_joint and 1 or o.actions == 'move' and o.steps or self.max_nodes
  self.num_actions = (self.is_joint or o.actions == 'place') and self.max_devices or self.max_nodes * self.max_devices
  self.placement = array.filled(n * self.max_nodes, self.max_devices + 1)
  self.load, self.memory = array.double(n * self.max_devices), array.double(n * self.max_devices)
  self.step_time, self.critical = array.double(n), array.double(n * self.max_nodes)
  for _, s in ipairs(self.states) do
    s.placement, s.device, s.placed, s.missing, s.load, s.used = s.nodes.problem:placement(), {}, {}, {}, {}, {}
  end
  self.fixed = fixed_tensors(self)
end

--- Makes the states of all environments, and the arrays of what is observed.
function observations.prepare(self)
  for i = 1, self.num_envs do
    local number = (i - 1) % #self.problems + 1
    self.states[i] = { index = i, number = number, about = self.about[number], nodes = self.about[number] }
  end
  local prepare = self.is_mesh and prepare_mesh or self.options.decode and prepare_decoded or prepare_nodes
  prepare(self)
  self.mask, self.current = array.int32(self.num_envs * self.num_actions), array.int32(self.num_envs)
end

local function write_mesh(self, s)
  local word, at = self.words[s.step + 1], (s.index - 1) * self.num_actions
  self.current[s.index] = s.step + 1
  for a = 1, self.num_actions do
    local value = word[2][a]
    self.mask[at + a] = value ~= nil and mesh.allows(s.about, s.chosen, word[1], value) and 1 or 0
  end
  for w, other in ipairs(self.words) do
    local number = 0
    for a, value in ipairs(other[2]) do
      if s.chosen[other[1]] == value then number = a end
    end
    self.chosen[(s.index - 1) * #self.words + w] = number
  end
end

-- Loads and memory of the devices of an incomplete placement.
local function write_partial(self, s)
  local of, first = s.nodes, (s.index - 1) * self.max_devices
  for d = 1, of.devices do
    self.load[first + d], self.memory[first + d] = s.load[d] / of.bound_s, s.used[d] / of.capacity[d]
  end
end

--- Writes what is observed of an episode that has just begun, or in which node k went from a device to another.
function observations.write(self, s, k, from)
  if self.is_mesh then return write_mesh(self, s) end
  if self.is_joint then
    for d = 1, s.nodes.devices do self.mask[(s.index - 1) * self.num_actions + d] = 1 end
    return
  end
  local kind, first, none = self.options.actions, (s.index - 1) * self.max_nodes, self.max_devices + 1
  for node = k or 1, k or s.nodes.count do
    self.placement[first + node] = s.placed[node] and s.device[node] or none
  end
  self.current[s.index] = math.min(s.step + 1, s.nodes.count)
  place.mask(s, kind, self.max_devices, self.mask, (s.index - 1) * self.num_actions, k, from)
  if not self.simulates then write_partial(self, s) end
end

-- Shares of the step that nodes have on the critical path, from seconds of units.
local function write_critical(self, s, row)
  local of, first = s.nodes, (s.index - 1) * self.max_nodes
  local units, step_s = of.problem.graph.units, s.metrics.step_time_s
  for node = 1, of.count do self.critical[first + node] = 0 end
  for unit = 1, units do
    local at = first + of.node_of[unit]
    self.critical[at] = self.critical[at] + of.critical_row_s[(row - 1) * units + unit] / step_s
  end
end

--- Writes what the simulation of an episode's placement says; `row`: of the batch, whose critical paths are at hand.
function observations.simulated(self, s, row)
  if self.is_mesh then return end
  local of, first, m = s.nodes, (s.index - 1) * self.max_devices, s.metrics
  self.step_time[s.index] = m.step_time_s / of.bound_s
  for d = 1, of.devices do
    self.load[first + d] = m:compute_busy_s(d) / of.bound_s
    self.memory[first + d] = m:memory_bytes(d) / of.capacity[d]
  end
  if of.critical and row then write_critical(self, s, row) end
end

--- The result of an episode's placement for those that begin with the same one.
function observations.kept(self, s)
  local first, critical = (s.index - 1) * (self.max_nodes or 0), {}
  if s.nodes.critical then
    for node = 1, s.nodes.count do critical[node] = self.critical[first + node] end
  end
  return { score = s.score, metrics = s.metrics, critical = critical }
end

--- Writes such a result.
function observations.write_kept(self, s, known)
  s.score, s.metrics = known.score, known.metrics
  if s.metrics then observations.simulated(self, s) end
  local first = (s.index - 1) * self.max_nodes
  for node, share in ipairs(known.critical) do self.critical[first + node] = share end
end

function observations.make(self)
  local n, o = self.num_envs, util.merged(self.fixed)
  o.mask = tensor.new(self.mask):reshape { n, self.num_actions }:gt(0)
  if self.options.decode then return o end
  if self.is_mesh then
    o.words, o.current = tensor.new(self.chosen):reshape { n, #self.words }, tensor.new(self.current)
    return o
  end
  local most, width, actions = self.max_nodes, self.max_devices, self.options.actions
  o.placement = tensor.new(self.placement):reshape { n, most }
  o.current = actions == 'place' and tensor.new(self.current) or nil
  o.load, o.memory = float(self.load, { n, width }), float(self.memory, { n, width })
  o.step_time = self.simulates and float(self.step_time, { n }) or nil
  o.critical = self.options.critical_path and float(self.critical, { n, most }) or nil
  return o
end

--- The constant data of a problem, for networks that pass messages.
function observations.graph(of)
  if (of.count or 0) == 0 then return { nodes = 0, from = {}, to = {}, bytes = {}, node_of = array.int32(0) } end
  return { nodes = of.count, from = util.merged(of.from), to = util.merged(of.to), bytes = util.merged(of.edge_bytes),
    node_of = array.copy(of.node_of) }
end

return observations
