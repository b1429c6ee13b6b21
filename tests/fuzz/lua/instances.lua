-- Research formats: profiles of PipeDream and DAPPLE, graphs of Doppler, instances of dnn-partitioning and Piper.
-- What is read can be trained or simulated, and cut.

local core = require 'trinity.core'
local frame = require 'frame'
local instances = require 'trinity.graph.instances'
local trinity = require 'trinity'

local seeds = {}
for i, name in ipairs { 'profiles/small.graph.txt', 'doppler/ties.txt', 'pipeline/training.json',
  'pipeline/piper.json' } do
  seeds[i] = core.read_file(('%s/tests/data/%s'):format(core.home, name))
end

local two

-- All on one device takes the sum of all times; two devices do not beat the bound.
local function simulate(graph)
  two = two or trinity.cluster { name = 'two', device_types = { any = { peak_flops_per_s = { float32 = 1e12 },
    memory_bandwidth_bytes_per_s = 1e12, memory_bytes = 2 ^ 40 } }, devices = { { name = 'a', type = 'any' },
    { name = 'b', type = 'any' } }, links = { { from = 'a', to = 'b', bandwidth_bytes_per_s = 1e9, latency_s = 0 } } }
  local problem, work_s = trinity.problem { graph = graph, cluster = two, rules = 'doppler' }, 0
  for op = 1, graph.operators do work_s = work_s + graph:operator(op).measured_time_s end
  local placement = problem:placement()
  local alone_s = problem:evaluate(placement).step_time_s
  if math.abs(alone_s - work_s) > 1e-9 * work_s then
    frame.finding('one device took %.17g s for %.17g s of work', alone_s, work_s)
  end
  for op = 1, graph.operators, 2 do placement[op] = 2 end
  if problem:evaluate(placement).step_time_s < problem:bounds().step_time_s then frame.finding 'below the bound' end
end

return {
  seeds = seeds,
  run = function(text)
    local path = frame.file(text:find '^%s*{' and 'input.json' or 'input.txt', text)
    local ok, graph = frame.try(trinity.model, path)
    if ok then
      if (graph.source or {}).format == 'Doppler graph' and graph.operators <= 1000 then frame.try(simulate, graph) end
      graph:close()
    end
    local read, _, _, network = frame.try(instances.read, path)
    if read and network then frame.try(function() core.pipeline_network((network())) end) end
  end,
}
