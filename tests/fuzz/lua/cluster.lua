-- trinity.cluster: a description as JSON, a file that trinity wrote, or a name; then a placement is simulated on it.

local trinity = require 'trinity'
local frame = require 'frame'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'

local most_devices = 64 -- on which a placement is simulated

local function description()
  local net = trinity.devices.topology.new { name = 'two', queue = 'route' }
  for m = 0, 1 do
    local name = 'n' .. m
    net:link(net:devices(name, 2, 'rtx2080ti'), name .. '/pcie', 'pcie3_x16')
    net:link(name .. '/pcie', 'ethernet', 'ethernet_10g')
  end
  net:switch('ethernet', 1e9)
  return json.encode(net:spec())
end

local own = [[{"name":"own","queue":"fair","device_types":{"small":{"peak_flops_per_s":{"float32":1e12},
"memory_bandwidth_bytes_per_s":1e11,"memory_bytes":1e9,"reserved_memory_bytes":1e6,"launch_s":1e-6,
"compute_efficiency":0.5,"memory_efficiency":0.75,"contention":1.5,
"operators":{"Conv":{"compute_efficiency":0.4,"memory_efficiency":0.5,"launch_s":2e-6,"contention":1.2}}}},
"devices":[{"name":"a","type":"small","speed":1,"node":"m"},{"name":"b","type":"p100","speed":0.5,"node":"m"}],
"switches":[{"name":"s","bandwidth_bytes_per_s":1e9}],
"links":[{"from":"a","to":"s","bandwidth_bytes_per_s":1e9,"latency_s":1e-6,"duplex":"half"},
{"from":"s","to":"b","bandwidth_bytes_per_s":1e9,"latency_s":1e-6,"duplex":"full"}]}]]

local builder = trinity.graph.new { name = 'pair' }
local x = builder:add { name = 'a', type = 'MatMul', outputs = { { shape = { 64, 64 } } }, flops = 1e9 }
builder:add { name = 'b', type = 'Relu', inputs = { x }, outputs = { { shape = { 64, 64 } } } }
local graph = builder:build()

local function use(cluster)
  local devices = #cluster.devices
  if devices > most_devices then return end
  frame.try(cluster.wire, cluster, 1, devices)
  frame.try(cluster.route, cluster, 1, devices)
  frame.try(cluster.collective, cluster, { kind = 'all_reduce', devices = { 1, devices }, bytes = 1e6 })
  local ok, problem = frame.try(trinity.problem, { graph = graph, cluster = cluster })
  if not ok then return end
  local placement = problem:placement()
  placement[2] = devices
  local evaluated, metrics = frame.try(problem.evaluate, problem, placement)
  if evaluated and not (metrics.step_time_s >= 0) then frame.finding('step time %.17g', metrics.step_time_s) end
end

local function read_back(cluster)
  local text = model.cluster_json(cluster)
  local again = trinity.cluster(frame.file('kept.json', text))
  if again.fingerprint ~= cluster.fingerprint then frame.finding 'another cluster came back from its file' end
end

local kept = frame.file('seed.json', model.cluster_json(trinity.cluster 'p100x2'))

return {
  seeds = { description(), own, 'p100x4', 'dgx_a100x2', 'p100x0', 'p100x99999999999', 'nothing', 'x2', '',
    io.open(kept):read '*a' },
  run = function(text)
    local ok, cluster
    if not text:find '[{%[]' then
      if text:find '%.lua%z?$' then return end -- a program, not a description
      ok, cluster = frame.try(trinity.cluster, text)
    elseif text:find('trinity cluster', 1, true) then
      ok, cluster = frame.try(trinity.cluster, frame.file('cluster.json', text))
    else
      local parsed, value = frame.try(json.decode, text, 'the description')
      if not parsed then return end
      ok, cluster = frame.try(trinity.cluster, value)
    end
    if not ok then return end
    read_back(cluster)
    use(cluster)
    cluster:close()
  end,
}
