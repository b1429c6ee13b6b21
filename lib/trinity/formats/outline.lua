-- The outline of a plan in terms of other programs: degrees of a mesh, stages as ranges of whole layers, devices of
-- operators. Export formats use it (trinity.formats).

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

-- A stage of an outline:
--   first          integer: its first layer, from 1
--   last           integer: its last layer; first - 1 if it has none
--   embedding      boolean: true: it has the embedding (operators before the layers)
--   head           boolean: true: it has the head (operators after the layers)
--   rank           integer: pipeline rank, from 0
--   device         integer: first device of the first replica, from 1

-- An outline:
--   strategy       trinity.Strategy
--   graph          trinity.Graph
--   mesh           { data: integer, tensor: integer, pipeline: integer, context: integer, expert: integer,
--                    placement: integer }
--   layers         integer: number of repeated layers; 0: none
--   stem           string: prefix of operator names in a layer: 'layer_'
--   layer_of       integer[]: per operator: layer from 1; 0 before the layers, layers + 1 after them
--   stage_of?      integer[]: per operator of the graph: its stage, from 1; false: none, or a data source
--   stages?        list of stages if they are ranges of whole layers, in order
--   broken?        string: why they are not
--   pipeline       integer: ranks of the pipeline
--   virtual_stages integer: stages per rank
--   schedule       string
--   micro_batches  integer
--   batch_size     integer: samples per micro-batch and replica, at least 1
local Outline = {}
Outline.__index = Outline

local outline = {}

local axes = { 'data', 'tensor', 'pipeline', 'context', 'expert', 'placement' }

--- Returns whether an operator only provides data or weights, so that its stage does not matter.
local function is_source(op) return op.type == 'Input' or op.type == 'Constant' or op.type == 'Variable' end

-- Returns the layers of every virtual stage of a mesh.
local function layers_per_stage(strategy, stages, layers)
  if strategy.stages then return strategy.stages end
  return util.listed(stages, function() return layers / stages end)
end

-- Stages of a mesh are whole layers.
local function of_mesh(self, strategy)
  for _, axis in ipairs(axes) do self.mesh[axis] = strategy.mesh[axis] or 1 end
  self.pipeline, self.virtual_stages = self.mesh.pipeline, strategy.virtual_stages or 1
  self.schedule, self.micro_batches = strategy.schedule or '1f1b', strategy.micro_batches or 1
  local count, first = self.pipeline * self.virtual_stages, 1
  local low = count > 1 and util.listed(count, function(s) return s end) or { 1 }
  self.stages = {}
  for s, layers in ipairs(layers_per_stage(strategy, #low, self.layers)) do
    local rank = parallelism.place_of(s, self.pipeline, parallelism.is_v_shaped(strategy)) - 1
    self.stages[s] = { first = first, last = first + layers - 1, embedding = s == 1, head = s == count, rank = rank }
    first = first + layers
  end
  local stage_of_layer = { [0] = 1, [self.layers + 1] = count }
  for s, stage in ipairs(self.stages) do
    for layer = stage.first, stage.last do stage_of_layer[layer] = s end
  end
  self.stage_of = util.map(self.layer_of, function(layer) return stage_of_layer[layer] end)
end

-- Returns the stage and the device of every operator of a placement with a pipeline.
local function stages_of_placement(self, strategy)
  local listed, stage_of = json.decode(strategy.problem:placement_json(strategy)).stages, {}
  if not listed then return nil end
  local number, devices = {}, {}
  for i = 1, self.graph.operators do number[self.graph:operator(i).name] = i end
  for d, device in ipairs(strategy.problem.cluster.devices) do devices[device.name] = d end
  for i = 1, self.graph.operators do stage_of[i] = false end
  local of_stage = {}
  for s, stage in ipairs(listed) do
    of_stage[s] = devices[stage.device]
    for _, name in ipairs(stage.operators) do stage_of[number[name]] = s end
  end
  return stage_of, of_stage
end

-- Returns the first and last stage of every layer.
local function span_of_layers(self, stage_of)
  local low, high = {}, {}
  for i, stage in ipairs(stage_of) do
    local op = stage and self.graph:operator(i)
    if op and not is_source(op) then
      local layer = self.layer_of[i]
      low[layer] = math.min(low[layer] or stage, stage)
      high[layer] = math.max(high[layer] or stage, stage)
    end
  end
  return low, high
end

-- Returns why stages are no ranges of whole layers in order, or nil if they are.
local function why_broken(self, low, high, count)
  if self.layers == 0 then return 'the network repeats no layers' end
  for layer = 0, self.layers + 1 do
    local what = layer == 0 and 'the embedding' or layer > self.layers
      and 'the head' or ('layer %d'):format(layer)
    if low[layer] ~= high[layer] then
      return ('%s is cut: in stages %d and %d'):format(what, low[layer], high[layer])
    end
    if layer > 0 and low[layer] and low[layer - 1] and low[layer] < low[layer - 1] then
      return ('%s is in stage %d, after a layer in stage %d'):format(what, low[layer], low[layer - 1])
    end
  end
  if low[0] and low[0] ~= 1 then return ('the embedding is in stage %d'):format(low[0]) end
  local last = low[self.layers + 1]
  if last and last ~= count then return ('the head is in stage %d of %d'):format(last, count) end
end

-- Returns the stages of a placement if they are ranges of whole layers.
local function of_placement(self, strategy)
  local stage_of, device_of = stages_of_placement(self, strategy)
  self.schedule, self.micro_batches = strategy.schedule or 'fifo', strategy.micro_batches or 1
  if not stage_of then return end
  self.stage_of = stage_of
  local seen, ranks = {}, 0
  for _, device in ipairs(device_of) do
    if not seen[device] then
      seen[device], ranks = ranks, ranks + 1
    end
  end
  self.pipeline, self.virtual_stages, self.mesh.pipeline = ranks, #device_of / ranks, ranks
  local low, high = span_of_layers(self, stage_of)
  self.broken = why_broken(self, low, high, #device_of)
  if self.broken then return end
  self.stages = util.map(device_of, function(device)
    return { first = 1, last = 0, rank = seen[device], device = device }
  end)
  local layer = 1
  for s, stage in ipairs(self.stages) do
    stage.first, stage.embedding, stage.head = layer, s == 1, s == #device_of
    while layer <= self.layers and low[layer] == s do layer = layer + 1 end
    stage.last = layer - 1
  end
end

-- Returns the samples per micro-batch, by the tokens if there are any (other inputs may be RoPE tables).
local function batch_size(graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local tensor = op.type == 'Input' and op.outputs[1]
    if tensor and tensor.dtype == 'int64' and #tensor.shape > 1 then return math.max(tensor.shape[1], 1) end
  end
  return math.max(graph.batch_size, 1)
end

--- Returns the outline of a strategy. It is fast for a mesh of any size, because nothing is lowered.
function outline.of(strategy)
  local graph = strategy.problem.graph
  local layers, stem, layer_of = core.repeated_layers(graph.handle)
  local self = setmetatable({ strategy = strategy, graph = graph, layers = layers, stem = stem, layer_of = layer_of,
    mesh = {}, pipeline = 1, virtual_stages = 1, batch_size = batch_size(graph) }, Outline)
  for _, axis in ipairs(axes) do self.mesh[axis] = 1 end
  if parallelism.is(strategy) then of_mesh(self, strategy) else of_placement(self, strategy) end
  return self
end

--- Returns whether stages are assigned to ranks round-robin, as in Megatron-LM and looped schedules.
function Outline:in_turn()
  for s, stage in ipairs(self.stages or {}) do
    if stage.rank ~= (s - 1) % self.pipeline then return false end
  end
  return true
end

--- Returns the number of devices of the mesh.
function Outline:device_count()
  return self.mesh.data * self.mesh.tensor * self.mesh.pipeline * self.mesh.context * self.mesh.placement
end

--- Calls body(number, operator) for forward operators that are no sources, in order.
function Outline:each_operator(body)
  for i = 1, self.graph.operators do
    local op = self.graph:operator(i)
    if op.phase == 'forward' and not is_source(op) then body(i, op) end
  end
end

return outline
