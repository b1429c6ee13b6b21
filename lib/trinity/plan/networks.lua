-- The network of a plan at every micro-batch: graphs, problems, profiles of their units, FLOP of matmuls.

local bounds = require 'trinity.plan.bounds'
local check = require 'trinity.base.check'
local parallelism = require 'trinity.strategy.parallelism'
local problems = require 'trinity.strategy.problem'
local simulator = require 'trinity.strategy.simulator'
local util = require 'trinity.base.util'

local networks = {}

local Networks = {}
Networks.__index = Networks

-- The first device of every kind, and how many there are of it.
local function kinds_of(cluster)
  local devices = cluster.devices
  local groups = util.grouped(util.listed(#devices, function(d) return d end), function(d)
    return ('%s %.17g'):format(devices[d].type, devices[d].speed)
  end)
  return util.map(groups, function(list)
    return { device = list[1], type = devices[list[1]].type, speed = devices[list[1]].speed, count = #list }
  end)
end

--- Samples of a step of a graph, and tokens of a sample: the extents of its first input of whole numbers; without one,
--- the batch of the graph and 1.
---@param graph trinity.Graph
---@return integer samples
---@return integer tokens
function networks.samples(graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local out = op.type == 'Input' and op.outputs[1]
    local shape = out and out.dtype:match '^int' and out.shape or {}
    if shape[1] then return shape[1], #shape == 2 and shape[2] or 1 end
  end
  return graph.batch_size, 1
end

--- graph: a graph, whose batch is the one micro-batch, or a function of the micro-batch. cost: as of trinity.problem.
function networks.new(owner, graph, cluster, cost)
  return setmetatable({ owner = owner, source = graph, cluster = cluster, cost = cost, kinds = kinds_of(cluster),
    made = {}, base = {}, stands = {} }, Networks)
end

--- The problem of a micro-batch. layers: of the same network with so few.
function Networks:problem(micro_batch, layers)
  local key = layers and ('%d %d'):format(micro_batch, layers) or micro_batch
  if not self.made[key] then
    local graph = self.source
    if type(graph) == 'function' then graph = graph(micro_batch, layers) end
    if util.class_of(graph) ~= 'graph' then
      check.wrong(self.owner, 'option', 'graph', graph,
        ('a graph from the function for micro_batch = %s'):format(micro_batch))
    end
    local batch = networks.samples(graph)
    if batch ~= micro_batch then
      check.refuse(self.owner, 'option', 'graph', 'the graph of micro-batch %d has a batch of %g', micro_batch, batch)
    end
    self.made[key] = problems.simulator { graph = graph, cluster = self.cluster, cost = self.cost }
  end
  return self.made[key]
end

--- Units of a family's profile on a kind of device, the first of whose devices make the stage.
function Networks:units(family, device, layers)
  local mesh = { tensor = family.tensor, context = family.context, expert = family.expert, data = family.expert }
  local count, devices = family.tensor * family.context * family.expert, nil
  if device > 1 then
    local first = math.max(1, math.min(device, #self.cluster.devices - count + 1))
    devices = util.listed(count, function(i) return first + i - 1 end)
  end
  return simulator.mesh_units(self:problem(family.micro_batch, layers), { mesh = mesh, recompute = family.recompute,
    sequence_parallel = family.sequence_parallel, devices = devices }, 1)
end

local least, most = 3, 12 -- layers of a network that stands for one of many, of which the last but one repeats

local function same(a, b)
  for name, value in pairs(a) do -- in any order: whether all are equal
    if b[name] ~= value then return false end
  end
  return true
end

--- Units of many layers from the units of few: the last layer but one as often as there are more.
local function stretched(units, layers)
  local few = #units - 2
  local list = {}
  for i = 1, few do list[i] = units[i] end
  for i = few, layers - 1 do list[i + 1] = units[few] end
  list[layers + 1], list[layers + 2] = units[few + 1], units[few + 2]
  return list
end

local function alone(micro_batch, expert, recompute)
  return { micro_batch = micro_batch, tensor = 1, context = 1, expert = expert, recompute = recompute,
    sequence_parallel = false }
end

--- The number of layers of a shortened network whose units represent all (the last but one repeats; 6 where the first
--- three differ), and the number of all; false where none has, or the function of the graph takes no number of layers.
--- Units of one device are compared exactly, without and with recomputation. A layer's operators decide its units
--- whatever the mesh is: units that are equal here are equal under sharding of experts or tensors, too.
function Networks:few(micro_batch)
  if self.stands[micro_batch] == nil then
    self.stands[micro_batch] = { false }
    if type(self.source) == 'function' and debug.getinfo(self.source, 'u').nparams > 1 then
      local families = { alone(micro_batch, 1, 'none'), alone(micro_batch, 1, 'full') }
      local whole = util.map(families, function(family) return self:units(family, 1) end)
      local few, layers = least, #whole[1] - 2
      while few <= most and layers > 2 * few and not self.stands[micro_batch][1] do
        if self:stand_for(few, whole[1], families[1]) and self:stand_for(few, whole[2], families[2]) then
          self.stands[micro_batch] = { few, layers }
        end
        few = 2 * few
      end
    end
  end
  return unpack(self.stands[micro_batch])
end

--- Whether the units of `few` layers represent the units of `whole`.
function Networks:stand_for(few, whole, family)
  local ok, short = pcall(self.units, self, family, 1, few)
  if not ok or #short ~= few + 2 then return false end -- of a network of another kind
  short = stretched(short, #whole - 2)
  for i = 1, #whole do
    if not same(whole[i], short[i]) then return false end
  end
  return true
end

--- Units of a family on a kind of device, from a few layers where these stand for all.
function Networks:all_units(family, device)
  local few, layers = self:few(family.micro_batch)
  local units = self:units(family, device, few or nil)
  return few and stretched(units, layers) or units
end

--- The problem for the bounds of a point (not of one whose layers differ, or may run on other places): the shortened
--- network's if few layers represent all, and the number of all layers.
function Networks:bounder(point)
  if point.recompute == 'by_layer' or point.operators or (point.placement or 1) > 1 then
    return self:problem(point.micro_batch)
  end
  local few, layers = self:few(point.micro_batch)
  if few then return self:problem(point.micro_batch, few), layers end
  return self:problem(point.micro_batch)
end

--- The same of one device alone, on every kind.
function Networks:base_units(micro_batch, expert, recompute)
  local key = ('%d %d %s'):format(micro_batch, expert, recompute)
  if not self.base[key] then
    self.base[key] = util.map(self.kinds, function(kind)
      return self:all_units(alone(micro_batch, expert, recompute), kind.device)
    end)
  end
  return self.base[key]
end

--- Sums over the units of one device alone: bytes that are kept of a micro-batch, and seconds of work.
local function kept_and_work(units)
  local bytes, work_s = 0, 0
  for _, unit in ipairs(units) do
    bytes, work_s = bytes + unit.kept_bytes, work_s + unit.forward_work_s + unit.backward_work_s
  end
  return bytes, work_s
end

--- Modules that recomputation may take, as words: of those that free anything the one that takes least time for its
--- bytes, then it and the next, and so on.
function Networks:modules(micro_batch)
  if self.cheapest then return self.cheapest end
  local kept, work_s = kept_and_work(self:base_units(micro_batch, 1, 'none')[1])
  local list, chosen = {}, {}
  for _, name in ipairs(parallelism.recompute_modules) do
    local ok, units = pcall(self.base_units, self, micro_batch, 1, name)
    local bytes, longer_s = 0, 0
    if ok then bytes, longer_s = kept_and_work(units[1]) end
    if ok and kept - bytes > 0.01 * kept then
      list[#list + 1] = { name = name, cost = (longer_s - work_s) / (kept - bytes) }
    end
  end
  table.sort(list, function(a, b)
    if a.cost ~= b.cost then return a.cost < b.cost end
    return a.name < b.name
  end)
  self.cheapest = util.map(list, function(module)
    chosen[#chosen + 1] = module.name
    table.sort(chosen) -- as the engine writes them
    return table.concat(chosen, '+')
  end)
  return self.cheapest
end

--- Share of saved activations that selective recomputation frees: next to nothing where attention is one operator; nil
--- without attention.
function Networks:selective_frees(family)
  local b, e = family.micro_batch, family.expert
  local ok, units = pcall(self.base_units, self, b, e, 'selective')
  return ok and 1 - kept_and_work(units[1]) / kept_and_work(self:base_units(b, e, 'none')[1]) or nil
end

--- Sums over the units of a family of points, least over the kinds of devices. known: of its own profile (of few layers
--- where these represent all), instead of one derived from one device's profile. Throws what lowering throws.
function Networks:totals(family, known)
  if family.recompute == 'by_layer' then return self:between(family, known) end
  local parts = not known and family.tensor * family.context or nil
  local units = known and util.map(self.kinds, function(kind) return self:all_units(family, kind.device) end)
    or self:base_units(family.micro_batch, family.expert, family.recompute)
  local list = util.map(units, function(one) return bounds.totals(one, parts) end)
  return util.merged(bounds.least(list), { slower = units[2] and bounds.slower(units, list, parts) or nil })
end

--- The same of recomputation by layer: it takes no less time than none and keeps no less than all layers.
function Networks:between(family, known)
  local function of(word) return self:totals(util.merged(family, { recompute = word }), known) end
  local plain, full = of 'none', of 'full'
  return util.merged(plain, { full = full, gap_s = math.max(plain.gap_s, full.gap_s),
    after_s = math.max(plain.after_s, full.after_s) })
end

local products = { MatMul = true, Gemm = true, Conv = true, ConvTranspose = true, Einsum = true, Attention = true,
  LSTM = true, GRU = true, RNN = true, LSTMCell = true }

--- FLOP of a sample's matmuls forwards and backwards, without recomputation; and the peak of a device for the
--- dtype of most of them.
function Networks:model_flop(micro_batch)
  if not self.flop then
    local graph, flop = self:problem(micro_batch).graph, 0
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if op.phase ~= 'update' and products[(op.type:gsub('Grad$', ''))] then flop = flop + op.flops end
    end
    self.flop = flop / micro_batch
  end
  return self.flop
end

return networks
