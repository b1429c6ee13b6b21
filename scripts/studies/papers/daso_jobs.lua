-- Real trainings for DASO's page: jobs of several processes on this machine.

local core = require 'trinity.core'
local devices = require 'trinity.cluster.devices'
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

-- One shell command per rank, with torchrun's variables, as a launcher sets them.
local rank_line = 'RANK=%d WORLD_SIZE=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=%d GROUP_RANK=%d MASTER_ADDR=127.0.0.1 '
  .. 'MASTER_PORT=$((20000 + $$ %% 10000)) TRINITY_JOIN=1 %s & ranks="$ranks $!"'

--- The output of a job of `processes` ranks on two nodes: JSON, in the file that is its script's last argument.
function jobs.run(processes, script, words)
  local path, per_node = os.tmpname(), processes / 2
  local command = util.map({ core.program(), '--threads', '1', script, unpack(words) }, tostring)
  command[#command + 1] = path
  command = table.concat(util.map(command, function(word) return "'" .. word:gsub("'", "'\\''") .. "'" end), ' ')
  local lines = {}
  for rank = 0, processes - 1 do
    lines[rank + 1] = rank_line:format(rank, processes, rank % per_node, per_node, math.floor(rank / per_node), command)
  end
  lines[#lines + 1] = 'for rank in $ranks; do wait $rank || exit 1; done'
  local ended_well = os.execute(table.concat(lines, '\n')) == 0
  local text = ended_well and core.read_file(path)
  core.remove_tree(path)
  if not text then util.fail('%s: a job of it failed', script) end
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

function jobs.values(rows, method, field)
  local values = {}
  for _, row in ipairs(rows) do
    if row.method == method then values[#values + 1] = row[field] end
  end
  return values
end

return jobs
