-- Batches of several graphs as one disconnected graph, for one pass of a network over all of them.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local fields = require 'trinity.base.fields'
local layers = require 'trinity.nn.layers'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

--- Nodes of several graphs, one graph after the other, and their edges.
---@class trinity.GraphBatch
---@field count integer number of graphs
---@field nodes integer number of nodes of all graphs
---@field first integer[] per graph: its first node
---@field sizes integer[] per graph: its number of nodes
---@field graph trinity.TorchTensor int64, per node: its graph, from 1
---@field values trinity.TorchTensor [nodes x width]
---@field types? trinity.TorchTensor int64, per node, if all parts have types
---@field edges trinity.GraphEdges for nn.graph_convolution

local Batch = { __name = 'graph batch', __index = fields.results['trinity.GraphBatch'].__index }

local graph_batch = {}

local function refuse(i, field, expected, got)
  check.refuse('nn.graph_batch', 1, 'parts', "entry %d: field '%s': expected %s, got %s", i, field, expected,
    util.describe(got))
end

local function check_part(i, part, width)
  if type(part) ~= 'table' then
    check.refuse('nn.graph_batch', 1, 'parts', 'entry %d: expected features (trinity.features) or { values =, from =, '
      .. 'to = }, got %s', i, util.describe(part))
  end
  local values = part.values
  if not tensor.is(values) or values:dim() ~= 2 then refuse(i, 'values', 'a tensor [nodes x width]', values) end
  if width and values:size(2) ~= width then
    check.refuse('nn.graph_batch', 1, 'parts', "entry %d: field 'values': expected width %d as before, got %d", i,
      width, values:size(2))
  end
  for _, name in ipairs { 'from', 'to' } do
    if not array.is_int32(part[name]) and type(part[name]) ~= 'table' then
      refuse(i, name, 'an int32 array or a list', part[name])
    end
  end
  if #part.from ~= #part.to then
    check.refuse('nn.graph_batch', 1, 'parts', "entry %d: field 'to': expected %d nodes as in 'from', got %d", i,
      #part.from, #part.to)
  end
end

local function add_pairs(i, part, first, size, list)
  for e = 1, #part.from do
    local from, to = part.from[e], part.to[e]
    if not (from >= 1 and from <= size and to >= 1 and to <= size) then
      check.refuse('nn.graph_batch', 1, 'parts', 'entry %d: edge %d: expected nodes from 1 to %d, got %s and %s', i, e,
        size, tostring(from), tostring(to))
    end
    list[#list + 1] = { from + first - 1, to + first - 1 }
  end
end

function graph_batch.new(parts)
  check.argument('nn.graph_batch', 1, 'parts', parts, 'table')
  if #parts == 0 then check.refuse('nn.graph_batch', 1, 'parts', 'expected at least one graph') end
  local batch = { count = #parts, nodes = 0, first = {}, sizes = {} }
  local values, types, of, list = {}, {}, {}, {}
  for i, part in ipairs(parts) do
    check_part(i, part, values[1] and values[1]:size(2))
    local size = part.values:size(1)
    batch.first[i], batch.sizes[i] = batch.nodes + 1, size
    add_pairs(i, part, batch.first[i], size, list)
    values[i], types[#types + 1] = part.values, part.types
    for _ = 1, size do of[#of + 1] = i end
    batch.nodes = batch.nodes + size
  end
  batch.values, batch.graph = tensor.cat(values), tensor.new(of, { dtype = 'int64' })
  if #types == #parts then batch.types = tensor.cat(types) end
  batch.edges = layers.normalised_edges(batch.nodes, list)
  return setmetatable(batch, Batch)
end

local function check_batch(owner, x, batch)
  if getmetatable(batch) ~= Batch then check.wrong(owner, 2, 'batch', batch, 'a result of nn.graph_batch') end
  if not tensor.is(x) or x:dim() == 0 or x:size(1) ~= batch.nodes then
    check.wrong(owner, 1, 'x', x, ('a tensor [%d x ...]'):format(batch.nodes))
  end
end

function graph_batch.split(x, batch)
  check_batch('nn.graph_split', x, batch)
  local list = {}
  for i = 1, batch.count do list[i] = x:narrow(1, batch.first[i], batch.sizes[i]) end
  return list
end

function graph_batch.sum(owner, x, batch)
  check_batch(owner, x, batch)
  local shape = x:size()
  shape[1] = batch.count
  return tensor.zeros(shape, { dtype = x.dtype, device = x.device }):index_add(1, batch.graph, x)
end

function graph_batch.mean(x, batch)
  local sum, shape = graph_batch.sum('nn.graph_mean', x, batch), { batch.count }
  for i = 2, x:dim() do shape[i] = 1 end
  return sum / tensor.new(batch.sizes, { dtype = x.dtype, device = x.device }):reshape(shape)
end

return graph_batch
