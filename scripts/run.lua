#!/usr/bin/env trinity
-- Executes training steps of a model as a strategy places it, for real, on LibTorch: device i of the strategy is worker
-- i, a thread of one processor core. Losses are the same under every placement; times and bytes are measured.
-- With --json one object with the fields
--   model, devices, steps
--   losses                  by step
--   step_time_s             median of the steps after the warm-up
--   simulated_step_time_s   on --cluster
--   transferred_bytes       copied between devices in a step
--   peak_memory_bytes       a list, one number a device
--   busy_s                  a list: of the last step

local trinity = require 'trinity'
local core = require 'trinity.core'

local options = trinity.options {
  'Runs a placed training graph on this machine and measures it.',
  model = { default = 'inception_v3', help = 'a model in models/, or a file .lua .onnx .json' },
  batch_size = { default = 4, help = 'samples per step; 0: what the model has', min = 0, integer = true },
  devices = { default = 'cpu:0', help = 'workers, one for each device of the strategy: cpu:0,cpu:1' },
  strategy = { default = '', help = 'a strategy that was saved as JSON; default: everything on the first device' },
  cluster = { default = 'p100', help = 'a cluster in models/clusters that takes a count, to simulate on' },
  steps = { default = 15, help = 'training steps', min = 1, integer = true },
  warm_up = { default = 5, help = 'steps that are not measured', min = 0, integer = true },
  learning_rate = { default = 0.01, help = 'of stochastic gradient descent', min = 0 },
  seed = { default = 1, help = 'of weights and data', min = 0, integer = true },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local function usage(message, ...) error { usage = true, message = message:format(...) } end

local devices = {}
for name in options.devices:gmatch '[^,%s]+' do
  if name:match '^cuda' then usage("option '--devices': %s: expected cpu:0, cpu:1, ...: no GPUs yet", name) end
  if not name:match '^cpu:%d+$' then usage("option '--devices': expected cpu:0, cpu:1, ..., got '%s'", name) end
  devices[#devices + 1] = name
end
if #devices == 0 then usage "option '--devices': expected at least one device" end

local problem = trinity.problem { cluster = trinity.cluster(('%sx%d'):format(options.cluster, #devices)),
  graph = trinity.model(options.model, { batch_size = options.batch_size > 0 and options.batch_size or nil }) }
local strategy = options.strategy ~= '' and problem:load(options.strategy)
  or problem:strategy(problem:placement(), { method = 'given', evaluations = 1 })
local found = trinity.execute(problem, strategy, { steps = options.steps,
  warm_up = math.min(options.warm_up, options.steps - 1), seed = options.seed, learning_rate = options.learning_rate })

if options.json then
  print(core.to_json { model = problem.graph.name, devices = devices, steps = found.steps, losses = found.losses,
    step_time_s = found.step_time_s, simulated_step_time_s = strategy.metrics.step_time_s,
    transferred_bytes = found.transferred_bytes, peak_memory_bytes = found.peak_memory_bytes,
    busy_s = found.last.busy_s })
  return
end
local rows = {}
for d, name in ipairs(devices) do
  rows[d] = { name, ('%.4f s'):format(found.last.busy_s[d]), trinity.format_bytes(found.peak_memory_bytes[d]) }
end
print(trinity.format_table({ 'device', 'busy', 'peak memory' }, rows))
print(('\nmeasured: step time %.4f s (median of %d steps after %d), %s copied between devices, loss %.6g to %.6g')
  :format(found.step_time_s, found.steps - found.warm_up, found.warm_up, trinity.format_bytes(found.transferred_bytes),
    found.losses[1], found.losses[#found.losses]))
print(('simulated on %s: %.4f s'):format(problem.cluster.name, strategy.metrics.step_time_s))
