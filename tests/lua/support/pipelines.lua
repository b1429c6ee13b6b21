-- Chains of layers on nodes around a switch, as pipelines.

local trinity = require 'trinity'
local util = require 'trinity.base.util'

local pipelines = {}

local ms = 1e-3

--- Nodes around a switch, of the given speeds; 1 MB takes 1 ms. `more`: other fields of the cluster.
function pipelines.cluster(speeds, memory_bytes, more)
  local spec = { name = 'nodes', devices = {}, links = {}, device_types = { unit = {
    peak_flops_per_s = { float32 = 1e12 }, memory_bandwidth_bytes_per_s = 1e15, memory_bytes = memory_bytes or 1e9 } } }
  for d, speed in ipairs(speeds) do
    spec.devices[d] = { name = 'd' .. d, type = 'unit', speed = speed }
    spec.links[d] = { from = 'd' .. d, to = 'hub', bandwidth_bytes_per_s = 1e9 }
  end
  return trinity.cluster(util.merged(spec, more))
end

--- A chain of layers { forward ms, output bytes }, backward twice as long, weights of 1 MB each.
function pipelines.chain(layers)
  local builder = trinity.graph.new { name = 'chain' }
  local x
  for i, layer in ipairs(layers) do
    x = builder:add { name = 'layer' .. i, type = 'Work', inputs = { x }, outputs = { { bytes = layer[2] } },
      parameters = { { name = 'w', shape = { 250000 } } }, measured_time_s = layer[1] * ms,
      measured_backward_time_s = 2 * layer[1] * ms }
  end
  return builder:build():to_training()
end

--- Layers of 0.5 to 4 ms and tensors of up to 2 MB.
function pipelines.uneven(count)
  local stream, layers = trinity.random(5, 'layers', count), {}
  for i = 1, count do layers[i] = { 0.5 + 3.5 * stream:uniform(), 1000 * stream:integer(2000) } end
  return pipelines.chain(layers)
end

--- A problem on a pipeline, by default 1F1B with 8 micro-batches.
function pipelines.problem(graph, nodes, schedule, micro_batches)
  return trinity.problem { graph = graph, cluster = nodes, schedule = schedule or '1f1b',
    micro_batches = micro_batches or 8 }
end

return pipelines
