-- Real trainings for DASO's page: jobs of several processes on this machine.

local core = require 'trinity.core'
local devices = require 'trinity.cluster.devices'
local dist = require 'trinity.dist'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local topology = require 'trinity.cluster.topology'
local util = require 'trinity.base.util'

local jobs = {}

--- The machine on which a job with an injected link finds its order of operators: nodes of cores.
function jobs.cluster(nodes, per_node, mbit_s, latency_ms)
  local net = topology.new { queue = 'sender' }
  net:device_type('core', devices.cpu_core)
  for node = 0, nodes - 1 do
    local memory = ('n%d/memory'):format(node)
    net:link(net:devices('n' .. node, per_node, 'core', { name = 'core' }), memory,
      { bandwidth_bytes_per_s = 5e9, latency_s = 1e-6 })
    net:link(memory, 'network', { latency_s = math.max(latency_ms * 1e-3 / 2, 1e-6),
      bandwidth_bytes_per_s = mbit_s > 0 and mbit_s * 1e6 / 8 or 5e9 })
  end
  return model.cluster(util.merged({ name = 'nodes' }, net:spec()))
end

--- What a job of `processes` ranks on two nodes writes: JSON, in the file that is its script's last argument.
function jobs.run(processes, script, words)
  local path = os.tmpname()
  local arguments = { script }
  for _, word in ipairs(words) do arguments[#arguments + 1] = tostring(word) end
  arguments[#arguments + 1] = path
  local status = dist.launch(arguments, { processes = processes, per_node = processes / 2, threads = 1 })
  local text = status == 0 and core.read_file(path)
  core.remove_tree(path)
  if not text then util.fail('%s: a job of it ended with exit status %d', script, status) end
  return json.decode(text)
end

--- The rows of a job: what train_distributed says of each training (method, seed, seconds, waited_s, loss, accuracy).
--- given: its options by name.
function jobs.train(processes, given)
  local words = { 'train_distributed', '--run', 'none' }
  for name, value in util.sorted_pairs(given) do
    words[#words + 1], words[#words + 2] = '--' .. name, value
  end
  words[#words + 1] = '--output'
  return jobs.run(processes, core.home .. '/scripts/study.lua', words).rows
end

--- Values of a field in the rows of a method, in order of seeds.
function jobs.values(rows, method, field)
  local values = {}
  for _, row in ipairs(rows) do
    if row.method == method then values[#values + 1] = row[field] end
  end
  return values
end

return jobs
