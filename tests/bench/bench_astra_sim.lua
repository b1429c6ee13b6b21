-- What a step costs to price here and in ASTRA-sim, whose analytical backend runs the trace of it that trinity writes:
--   build/trinity tests/bench/bench_astra_sim.lua [PROGRAM]
-- PROGRAM is ASTRA-sim's AstraSim_Analytical_Congestion_Unaware, by default what the environment variable ASTRA_SIM
-- names or PATH has; without one a line says so. It says no version: that is the commit of the checkout it lies in, or
-- ASTRA_SIM_VERSION. `bench_simulator` runs this as its last table.
-- Seconds of wall, medians of 3: ASTRA-sim's process (reading included), an evaluation here whose structure was not
-- seen before (another one was), lowering included. The two have other rules (ASTRA-sim's network is one ring of one
-- bandwidth and latency, its collectives and transfers are its own): their steps stand beside each other.

local core = require 'trinity.core'
local trinity = require 'trinity'

local system = [[{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
  "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
  "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
  "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0}]]
local cases = {
  { 'dgx_h100', { tensor = 2, pipeline = 2, data = 2 } },
  { 'dgx_h100x4', { tensor = 4, pipeline = 4, data = 2 } },
  { 'dgx_h100x8', { tensor = 8, pipeline = 4, data = 2 } },
  { 'dgx_h100x32', { tensor = 8, pipeline = 4, data = 8 } },
}

local function shell(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read '*a'
  pipe:close()
  return text
end

local function line(command) return (shell(command):gsub('%s+$', '')) end

local known = 'AstraSim_Analytical_Congestion_Unaware'
local program = arg[1] or os.getenv 'ASTRA_SIM' or line('command -v ' .. known)
if program == '' then
  print(('ASTRA-sim is not installed: no %s on PATH, and ASTRA_SIM names none'):format(known))
  return
end
program = line(("readlink -f '%s'"):format(program))

local function version()
  local said = os.getenv 'ASTRA_SIM_VERSION' or line(([[{ cd "$(dirname '%s')" && top=$(git rev-parse --show-toplevel) \
    && test -d "$top/astra-sim" && git log -1 --format='commit %%h'; } 2>/dev/null]]):format(program))
  return said ~= '' and said or 'of unknown version'
end

local folder = line 'mktemp -d'

local function write(name, text)
  local file = assert(io.open(folder .. '/' .. name, 'wb'))
  file:write(text)
  file:close()
end

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

-- Of the work that ready() gives, which is not counted itself.
local function wall_s(ready)
  local times = {}
  for i = 1, 3 do
    local work = ready()
    local start = core.clock_s()
    work()
    times[i] = core.clock_s() - start
  end
  return median(times)
end

local function bound(cluster)
  local graph = trinity.model('gpt2', { batch_size = 1, heads = 16, hidden = 1024, fused = false, dropout = 0 })
  return trinity.problem { graph = graph, cluster = trinity.cluster(cluster) }
end

-- ASTRA-sim's words for a number of ranks, and what it says: when the last rank finished.
local function astra_s(ranks)
  write('system.json', system)
  write('memory.json', '{"memory-type": "NO_MEMORY_EXPANSION"}')
  write('network.yml', ('topology: [ Ring ]\nnpus_count: [ %d ]\nbandwidth: [ 450.0 ]\nlatency: [ 2000.0 ]\n'):format(
    ranks))
  local said = shell(([[cd '%s' && '%s' --workload-configuration=trace --comm-group-configuration=groups.json \
    --system-configuration=system.json --remote-memory-configuration=memory.json \
    --network-configuration=network.yml 2>&1]]):format(folder, program))
  local finished, last = 0, 0
  for cycles in said:gmatch 'sys%[%d+%] finished, (%d+) cycles' do
    finished, last = finished + 1, math.max(last, tonumber(cycles))
  end
  if finished ~= ranks then error(('ASTRA-sim: %d of %d ranks finished: %s'):format(finished, ranks, said)) end
  return last * 1e-9
end

print(('gpt2, 12 layers, hidden 1024, 8 micro-batches; ASTRA-sim %s, analytical, congestion unaware'):format(version()))
print(('%-12s%6s%12s%15s%14s%12s%8s'):format('cluster', 'ranks', 'step ms', 'ASTRA step ms', 'ASTRA-sim s', 'trinity s',
  'ratio'))
for _, case in ipairs(cases) do
  local strategy, metrics
  local own_s = wall_s(function()
    local problem = bound(case[1])
    problem:evaluate(problem:strategy { mesh = { data = 2, pipeline = 2 }, micro_batches = 2 })
    return function()
      strategy = problem:strategy { mesh = case[2], micro_batches = 8, schedule = '1f1b' }
      metrics = problem:evaluate(strategy)
    end
  end)
  local ranks = 0
  for _, file in ipairs((trinity.formats.files(strategy, { format = 'chakra' }))) do
    write(file.name, file.text)
    if file.name:match '%.et$' then ranks = ranks + 1 end
  end
  local step_s
  local theirs_s = wall_s(function() return function() step_s = astra_s(ranks) end end)
  print(('%-12s%6d%12.2f%15.2f%14.3f%12.4f%8.0f'):format(case[1], ranks, metrics.step_time_s * 1e3, step_s * 1e3,
    theirs_s, own_s, theirs_s / own_s))
end
shell(("rm -r '%s'"):format(folder))
