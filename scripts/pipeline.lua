#!/usr/bin/env trinity
-- Cuts a network into the stages of a pipeline. With --json, prints one object with the fields of trinity.pipeline's
-- result (trinity help PipelineResult, PipelineStage). Nodes of stages have the names of the file; max_load is null if
-- no cut fits.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local progress = require 'trinity.base.progress'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('set cluster method_set seconds seed json', {
  'Cuts a network into the stages of a pipeline: exact planners, peers and rules.',
  model = { type = 'string', position = true,
    help = 'a name, or a file (.lua .onnx .json .txt: trinity help models)' },
  method = { default = 'max_load_annealing', help = 'planner: ' .. table.concat(trinity.pipeline.methods(), ', ') },
  devices = { type = 'string', help = 'accelerators, or one number per network level, innermost first: 8,2 '
    .. "(default: the file's)" },
  bandwidth = { type = 'string', help = 'between devices: 25GB/s, 10Gbit/s; one, or one per level '
    .. "(default: the file's)" },
  memory = { type = 'number', help = "memory of a device (default: the file's, or no limit)",
    min = 1, unit = 'bytes' },
  cpus = { type = 'number', help = "number of CPUs that may hold operators, too (default: the file's)",
    min = 0, integer = true },
  micro_batches = { type = 'number', help = "micro-batches per batch, for --method piper (default: the file's, or 32)",
    min = 1, integer = true },
  cluster = { default = 'p100', help = 'device type of cost models; with a count (dgx_a100x2) also their number' },
  method_set = { help = "method's options: rounds=20; cost=paper (trinity help PipelineOptions)" },
}, 'cpus method_set seconds seed set'))

if not options.model then util.fail_usage "expected a model to cut (--help lists options)" end

local function numbers(option, unit)
  return options[option] and util.numbers(option, options[option], nil, nil, nil, unit)
end

local model_options, own = settings.read('set', options.set), settings.read('method_set', options.method_set)
local planner_options = util.merged({ method = options.method, devices = numbers 'devices', model = model_options,
  bandwidth_bytes_per_s = numbers('bandwidth', 'bytes/s'), memory_bytes = options.memory, cpus = options.cpus,
  micro_batches = options.micro_batches, seconds = options.seconds or math.huge, seed = options.seed,
  cluster = options.cluster }, own)
local found = cli.called(settings.checked, 'set', model_options, 'trinity%.model: (.*)', function()
  return settings.checked('method_set', own, 'trinity%.pipeline: (.*)', function()
    return trinity.pipeline(options.model, planner_options)
  end)
end)

--- The nodes of a stage as the file calls them.
local function named(stage) return util.map(stage.nodes, function(node) return found.nodes[node] end) end

--- The run keeps the stages.
local function keep()
  local stages = {}
  for i, stage in ipairs(found.stages) do
    local nodes = named(stage)
    stages[i] = { nodes = #nodes, devices = stage.devices, load = stage.load or stage.compute,
      first = tostring(nodes[1]), last = tostring(nodes[#nodes]), replicas = stage.replicas,
      memory_bytes = stage.memory_bytes }
  end
  trinity.run:result('pipeline', { network = found.network, method = found.method, unit = found.unit,
    max_load = found.max_load, feasible = found.feasible, optimal = found.optimal, seconds = found.seconds,
    stages = stages }, found.max_load
    and ('%s cuts %s into %d stages; the slowest takes %.6g %s.'):format(found.method, found.network, #stages,
      found.max_load, found.unit) or ('No cut of %s fits.'):format(found.network))
end
keep()
if found.stopped then
  progress.warn(('stopped by %s; this is the best cut so far. trinity pipeline cannot be resumed'):format(
    trinity.system.stop_name()))
end

if options.json then
  for _, stage in ipairs((found.least_infeasible or found).stages) do stage.nodes = named(stage) end
  local text = trinity.files.json.encode(found)
  if not found.max_load then text = text:gsub('^{', '{\n  "max_load": null,') end
  print(text)
  if found.stopped then os.exit(trinity.system.stop_status()) end
  return
end

local function load_text(value) return value and ('%.9g %s'):format(value, found.unit) or '' end

print(('%s (%s) by %s: %s%s'):format(found.network, found.format, found.method,
  found.max_load and 'max load ' .. load_text(found.max_load)
    or found.optimal and 'no cut fits' or 'no cut was found that fits',
  found.optimal and (found.feasible and ', optimal' or ', proved') or ''))
if found.infeasibility then
  print((found.max_load and 'it does not fit: ' or 'what limits it: ') .. found.infeasibility.text)
  if found.least_infeasible then print 'nearest to fitting:' end
end
local stages = (found.least_infeasible or found).stages
if #stages > 0 then
  local rows = {}
  for i, stage in ipairs(stages) do
    local nodes = named(stage)
    local shape = stage.replicas and table.concat(stage.replicas, ' x ')
      or stage.data_parallel and ('%d x %d'):format(stage.data_parallel, stage.tensor_parallel)
      or (stage.first_device < 1 and 'CPU' or '1')
    rows[i] = { tostring(i), shape, tostring(#nodes), load_text(stage.load or stage.compute),
      ('%s .. %s'):format(tostring(nodes[1]), tostring(nodes[#nodes])) }
  end
  print(trinity.system.format_table({ 'stage', 'devices', 'nodes', 'load', 'from .. to' }, rows))
end
print(('planned in %.3f s'):format(found.seconds))
if found.stopped then os.exit(trinity.system.stop_status()) end
