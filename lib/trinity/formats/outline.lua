-- What a plan says, in the words that other programs share: degrees of a mesh, stages as runs of whole layers, where
-- operators are. Formats write from this (trinity.formats).

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

-- A stage of an outline:
--   first          integer: its first layer, from 1
--   last           integer: its last; first - 1 where it has none
--   embedding      boolean: whether it has what stands before the layers
--   head           boolean: whether it has what stands behind them
--   rank           integer: where it is on the axis `pipeline`, from 0
--   device         integer: of the first replica's first part, from 1

-- An outline:
--   strategy       trinity.Strategy
--   graph          trinity.Graph
--   mesh           { data: integer, tensor: integer, pipeline: integer, context: integer, expert: integer,
--                    placement: integer }
--   layers         integer: that the network repeats; 0: none
--   stem           string: what names of operators of a layer begin with: 'layer_'
--   layer_of       integer[]: per operator: 0 before the layers, from 1, layers + 1 behind them
--   stage_of?      integer[]: per operator of the graph: its stage, from 1; false for data sources and what has none
--   stages?        list of stages: where they are runs of whole layers, in order
--   broken?        string: why they are not
--   pipeline       integer: ranks of the pipeline
--   virtual_stages integer: stages a rank
--   schedule       string
--   micro_batches  integer
--   batch_size     integer: samples of a micro-batch of one replica, at least 1
local Outline = {}
Outline.__index = Outline

local outline = {}

local axes = { 'data', 'tensor', 'pipeline', 'context', 'expert', 'placement' }

--- Whether an operator only brings data or weights: it may stand anywhere.
local function is_source(op) return op.type == 'Input' or op.type == 'Constant' or op.type == 'Variable' end

-- Layers of every virtual stage of a mesh.
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

-- The stage and the device of every operator of a placement that is a pipeline.
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

-- The first and last stage of every layer.
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

-- Why stages are no runs of whole layers in order; nil where they are.
local function why_broken(self, low, high, count)
  if self.layers == 0 then return 'the network repeats no layers' end
  for layer = 0, self.layers + 1 do
    local what = layer == 0 and 'what stands before the layers' or layer > self.layers
      and 'what stands behind the layers' or ('layer %d'):format(layer)
    if low[layer] ~= high[layer] then
      return ('%s is cut: in stages %d and %d'):format(what, low[layer], high[layer])
    end
    if layer > 0 and low[layer] and low[layer - 1] and low[layer] < low[layer - 1] then
      return ('%s is in stage %d, what comes before it in stage %d'):format(what, low[layer], low[layer - 1])
    end
  end
  if low[0] and low[0] ~= 1 then return ('the embedding is in stage %d'):format(low[0]) end
  local last = low[self.layers + 1]
  if last and last ~= count then return ('the head is in stage %d of %d'):format(last, count) end
end

-- Stages of a placement, as far as they are runs of whole layers.
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

-- Samples of a micro-batch: of the tokens where there are any (other inputs may be tables of angles).
local function batch_size(graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local tensor = op.type == 'Input' and op.outputs[1]
    if tensor and tensor.dtype == 'int64' and #tensor.shape > 1 then return math.max(tensor.shape[1], 1) end
  end
  return math.max(graph.batch_size, 1)
end

--- What a strategy says. Cheap for a mesh of any size: nothing is lowered.
---@param strategy trinity.Strategy
---@return table
function outline.of(strategy)
  local graph = strategy.problem.graph
  local layers, stem, layer_of = core.repeated_layers(graph.handle)
  local self = setmetatable({ strategy = strategy, graph = graph, layers = layers, stem = stem, layer_of = layer_of,
    mesh = {}, pipeline = 1, virtual_stages = 1, batch_size = batch_size(graph) }, Outline)
  for _, axis in ipairs(axes) do self.mesh[axis] = 1 end
  if parallelism.is(strategy) then of_mesh(self, strategy) else of_placement(self, strategy) end
  return self
end

--- Whether its stages go round the ranks in turn, as Megatron-LM and looped schedules have them.
---@return boolean
function Outline:in_turn()
  for s, stage in ipairs(self.stages or {}) do
    if stage.rank ~= (s - 1) % self.pipeline then return false end
  end
  return true
end

--- Devices of the mesh.
---@return integer
function Outline:device_count()
  return self.mesh.data * self.mesh.tensor * self.mesh.pipeline * self.mesh.context * self.mesh.placement
end

--- Forward operators that are no sources, in order: body(number, operator).
---@param body fun(i: integer, op: trinity.Operator)
function Outline:each_operator(body)
  for i = 1, self.graph.operators do
    local op = self.graph:operator(i)
    if op.phase == 'forward' and not is_source(op) then body(i, op) end
  end
end

return outline
