-- The network of a plan at every micro-batch: graphs, problems, profiles of their units, FLOP of products.

local bounds = require 'trinity.plan.bounds'
local check = require 'trinity.base.check'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'

local networks = {}

local Networks = {}
Networks.__index = Networks

-- The first device of every kind, and how many there are of it.
local function kinds_of(cluster)
  local list, by_key = {}, {}
  for d, device in ipairs(cluster.devices) do
    local key = ('%s %.17g'):format(device.type, device.speed)
    if not by_key[key] then
      by_key[key] = { device = d, type = device.type, speed = device.speed, count = 0 }
      list[#list + 1] = by_key[key]
    end
    by_key[key].count = by_key[key].count + 1
  end
  return list
end

--- Samples of a step of a graph: the first extent of its first input of whole numbers (tokens), or its batch where
--- there is none.
function networks.batch_of(graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local out = op.type == 'Input' and op.outputs[1]
    if out and #out.shape > 0 and out.dtype:match '^int' then return out.shape[1] end
  end
  return graph.batch_size
end

--- graph: a graph, whose batch is the one micro-batch, or a function of the micro-batch.
function networks.new(owner, graph, cluster)
  return setmetatable({ owner = owner, source = graph, cluster = cluster, kinds = kinds_of(cluster), made = {},
    base = {} }, Networks)
end

--- The problem of a micro-batch.
---@return trinity.Problem
function Networks:problem(micro_batch)
  if not self.made[micro_batch] then
    local graph = self.source
    if type(graph) == 'function' then graph = graph(micro_batch) end
    if util.class_of(graph) ~= 'graph' then check.wrong(self.owner, 'option', 'graph', graph, 'a graph of the function') end
    if networks.batch_of(graph) ~= micro_batch then
      check.refuse(self.owner, 'option', 'graph', 'the graph of micro-batch %d has a batch of %g', micro_batch,
        networks.batch_of(graph))
    end
    self.made[micro_batch] = problems.simulator { graph = graph, cluster = self.cluster }
  end
  return self.made[micro_batch]
end

--- Units of a family's profile on a kind of device, the first of whose devices make the stage.
function Networks:units(family, device)
  local mesh = { tensor = family.tensor, context = family.context, expert = family.expert, data = family.expert }
  local count, devices = family.tensor * family.context * family.expert, nil
  if device > 1 then
    local first = math.max(1, math.min(device, #self.cluster.devices - count + 1))
    devices = util.listed(count, function(i) return first + i - 1 end)
  end
  return self:problem(family.micro_batch).handle:mesh_units({ mesh = mesh, recompute = family.recompute,
    sequence_parallel = family.sequence_parallel, devices = devices }, 1)
end

--- Sums over the units of a family of points, least over the kinds of devices. known: of its own profile, in place of
--- what follows from that of one device. Throws what lowering throws.
---@return trinity.PlanTotals
function Networks:totals(family, known)
  local one = util.merged(family, { tensor = 1, context = 1, sequence_parallel = false })
  local key = ('%d %d %s'):format(family.micro_batch, family.expert, family.recompute)
  if not known then
    if not self.base[key] then
      self.base[key] = util.map(self.kinds, function(kind) return self:units(one, kind.device) end)
    end
    return bounds.least(util.map(self.base[key], function(units)
      return bounds.totals(units, family.tensor * family.context)
    end))
  end
  return bounds.least(util.map(self.kinds, function(kind) return bounds.totals(self:units(family, kind.device)) end))
end

local products = { MatMul = true, Gemm = true, Conv = true, ConvTranspose = true, Einsum = true, Attention = true,
  LSTM = true, GRU = true, RNN = true, LSTMCell = true }

--- FLOP of a sample's products forwards and backwards, without what is computed again; and the peak of a device for the
--- type that most of them are computed in.
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
