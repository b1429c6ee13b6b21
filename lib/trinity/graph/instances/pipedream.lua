-- Profiles of PipeDream (graph.txt), forward graphs; DAPPLE's are of the same format. Node lines:
-- `ID -- DESCRIPTION -- forward_compute_time=F, backward_compute_time=B, activation_size=A, parameter_size=P[ --
-- stage_id=S]` (milliseconds, bytes; A is a number, or `[a; b]`, whose sum is one tensor). Edge lines:
-- `TAB SOURCE -- TARGET`, indented by any white space.
--
-- The time of sources called Input, which load data, is dropped, as PipeDream does before it plans; attribute
-- `loader_time_s` keeps it. Attribute `file_position` counts node lines from 1, `stage` keeps a stage_id.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local pipedream = { format = 'PipeDream profile', network_format = 'PipeDream profile', whole_step = false }

-- ONNX types by layer names of PyTorch and TensorFlow, in lower case without numbers.
local types = {}
for type, names in util.sorted_pairs { Conv = 'conv2d 1x1 prev_1x1', BatchNormalization = 'batchnorm2d', Relu = 'relu',
  Gemm = 'linear fc classifier prediction', AveragePool = 'avgpool2d', GlobalAveragePool = 'adaptiveavgpool2d',
  MaxPool = 'maxpool2d', Gather = 'embedding embed-token', Dropout = 'embed-token-dropout dropout',
  OneHot = 'embed-segment-one_hot', Reshape = 'view reshape_input', Shape = 'size',
  LSTM = 'lstm emubidirlstm recurrentattention', Add = 'add', Concat = 'concat', Identity = '__getitem__',
  SoftmaxCrossEntropyLoss = 'softmax_loss' } do
  for layer in names:gmatch '%S+' do types[layer] = type end
end

-- Returns the type of a layer: the last part of a path ("cell_3/Relu_1") without counters ("layer_17", "Conv2d_1_2").
local function type_of(description)
  local layer = description:match '^[^(]*'
  if layer:find '^Input' then return 'Input' end
  layer = layer:match '^[^ ]*':match '[^/]*$'
  local plain = layer:sub(1, layer:find '[^%d_][%d_]*$' or 0)
  return types[layer:lower()] or types[plain:lower()] or plain ~= '' and plain or 'Operator'
end

local function fail(message, ...) error(message:format(...), 0) end
local function clip(text) return util.shortened(text, 60) end

local function split(text, by)
  local parts, from = {}, 1
  while true do
    local at, last = text:find(by, from, true)
    parts[#parts + 1] = text:sub(from, at and at - 1)
    if not at then return parts end
    from = last + 1
  end
end

local function fields_of(text)
  local fields = {}
  for _, part in ipairs(split(text, ', ')) do
    local name, value = part:match '^([^=]*)=(.*)$'
    if not name then fail("expected 'name=value', got '%s'", clip(part)) end
    fields[name] = fields[name] or value
  end
  return fields
end

local function parse(text, name)
  local value = text:find '^-?[%d.][%d.eE+-]*$' and tonumber(text)
  if not value or value == math.huge then fail("field '%s': expected a number, got '%s'", name, clip(text)) end
  if value < 0 then fail("field '%s': must not be negative, got %s", name, clip(text)) end
  return value
end

-- Returns the number in a field, or the sum of its list.
local function number(fields, name)
  local text = fields[name]
  if not text then
    local names = clip(table.concat(util.sorted_keys(fields), ', '))
    fail("field '%s' is missing%s (the line may be cut short)", name, names ~= '' and '; there are: ' .. names or '')
  end
  if name ~= 'activation_size' or text:sub(1, 1) ~= '[' then return parse(text, name) end
  if text:sub(-1) ~= ']' then fail("field '%s': list without ']'", name) end
  return util.sum(split(text:sub(2, -2), '; '), function(part) return parse(part, name) end)
end

local function bytes_of(fields, name)
  local value = number(fields, name)
  if value > 1e15 then fail("field '%s': expected at most 1e15 bytes, got %.17g", name, value) end
  return math.floor(value + 0.5)
end

local function stage_of(text)
  local fields = fields_of(text or 'stage=none')
  if not fields.stage_id then return nil end
  local stage = number(fields, 'stage_id')
  if stage % 1 ~= 0 or stage > 1e6 then fail("field 'stage_id': expected a whole number, got %.17g", stage) end
  return stage
end

local function read_node(line, nodes, builder)
  local parts = split(line, ' -- ')
  if #parts < 3 or #parts > 4 then fail("expected '<id> -- <description> -- <fields>', got '%s'", clip(line)) end
  local id, description = parts[1], parts[2]
  if nodes[id] then fail("node '%s' appears twice", clip(id)) end
  local fields, type = fields_of(parts[3]), type_of(description)
  local node = { id = id, number = #nodes + 1, is_input = type == 'Input', description = description }
  local forward_ms, backward_ms = number(fields, 'forward_compute_time'), number(fields, 'backward_compute_time')
  node.forward_s = node.is_input and 0 or forward_ms * 1e-3
  node.backward_s = node.is_input and 0 or backward_ms * 1e-3
  node.parameter_bytes, node.output_bytes = bytes_of(fields, 'parameter_size'), bytes_of(fields, 'activation_size')
  node.output = builder:add_operator { name = id, type = type, measured_time_s = node.forward_s,
    measured_backward_time_s = node.backward_s, parameter_bytes = node.parameter_bytes, flops = 0,
    outputs = { { bytes = node.output_bytes } }, attributes = { description = description, file_position = node.number,
      stage = stage_of(parts[4]), loader_time_s = node.is_input and (forward_ms + backward_ms) * 1e-3 or nil } }
  nodes[id], nodes[node.number] = node, node
end

local function read_edge(line, nodes, edges, builder)
  local ends = split(line, ' -- ')
  if #ends ~= 2 then fail("expected '<source> -- <target>', got '%s'", clip(line)) end
  for _, id in ipairs(ends) do
    if not nodes[id] then fail("edge names node '%s', which no node line describes", clip(id)) end
  end
  local source, target = nodes[ends[1]], nodes[ends[2]]
  if source == target then fail("edge from node '%s' to itself", clip(source.id)) end
  source.readers = source.readers or {}
  if source.readers[target] then return end
  source.readers[target] = true
  target.reads = true
  builder:add_edge(source.output, target.id)
  edges[#edges + 1] = { source.number, target.number }
end

-- A layer needs memory for its weights and one micro-batch's outputs; inputs cost and send nothing, as in PipeDream.
local function network(nodes, edges)
  local rows = util.map(nodes, function(node)
    if node.is_input and not node.reads then return { planned = false } end
    local dropped = not node.readers and node.description:find '^__getitem__' ~= nil
    return { time = node.forward_s + node.backward_s, parameter_bytes = node.parameter_bytes, planned = not dropped,
      output_bytes = node.output_bytes, memory_bytes = node.parameter_bytes + node.output_bytes }
  end)
  return { nodes = rows, edges = edges }, { unit = 's',
    nodes = util.map(nodes, function(node) return node.id end) }
end

function pipedream.read(text, name, place)
  place.line = 1
  if text:find '^\255\254' or text:find '^\254\255' then
    fail 'the text is in UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)'
  end
  local builder, nodes, edges = core.graph_builder(name), {}, {}
  for line in text:gsub('^\239\187\191', ''):gmatch '([^\n]*)\n?' do
    local first, last = line:find '[^\t ]', line:find '[^ \r][ \r]*$'
    if first == 1 and last then
      read_node(line:sub(1, last), nodes, builder)
    elseif first and last and first <= last then
      read_edge(line:sub(first, last), nodes, edges, builder)
    end
    place.line = place.line + 1
  end
  place.line = nil
  if #nodes == 0 then fail 'no node lines; is this a PipeDream graph.txt?' end
  return builder:build(), function() return network(nodes, edges) end
end

return pipedream
