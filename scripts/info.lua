#!/usr/bin/env trinity
-- Describes a model: operators, parameters, FLOP, inputs and outputs.

local trinity = require 'trinity'
local calibrate = require 'trinity.cluster.calibrate'
local cli = require 'trinity.command.cli'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('model set batch_size cluster json', {
  'Prints the operators, weights and FLOP of a model, and its step on one device.',
  'keeps no run',
  training = { default = false, help = 'the training step instead of the forward pass, in the simulated time too' },
  cluster = { default = 'p100x1', help = 'cluster whose first device the step is simulated on' },
}))

local function load_graph()
  return cli.load_model(options, { training = options.training })
end

--- Operators, FLOP and weights by type, the most FLOP first; inputs and outputs.
local function survey(graph)
  local types, inputs, outputs, unknown = {}, {}, {}, {}
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local entry = types[op.type] or { type = op.type, operators = 0, flop = 0, parameter_bytes = 0 }
    types[op.type] = entry
    entry.operators = entry.operators + 1
    entry.flop = entry.flop + op.flops
    entry.parameter_bytes = entry.parameter_bytes + op.parameter_bytes
    if not op.known then unknown[op.type] = true end
    if op.type == 'Input' then inputs[#inputs + 1] = { name = op.name, shape = op.outputs[1].shape } end
    for _, tensor in ipairs(op.outputs) do
      if tensor.readers == 0 and op.phase == 'forward' then
        outputs[#outputs + 1] = { name = tensor.name ~= '' and tensor.name or op.name, shape = tensor.shape }
      end
    end
  end
  local by_type, unknown_types = {}, {}
  for _, entry in trinity.system.sorted_pairs(types) do by_type[#by_type + 1] = entry end
  table.sort(by_type, util.by('-flop', 'type'))
  for name in trinity.system.sorted_pairs(unknown) do unknown_types[#unknown_types + 1] = name end
  return by_type, inputs, outputs, unknown_types
end

--- Time and memory of one step with everything on the cluster's first device.
local function simulate(graph, cluster)
  local problem = trinity.problem { check_memory = false, graph = graph, cluster = cluster }
  local metrics = problem:evaluate(problem:placement())
  local device = cluster.devices[1]
  return { basis = cluster.basis, cluster = cluster.name, device = device.type, step_time_s = metrics.step_time_s,
    peak_memory_bytes = metrics.peak_memory_bytes, capacity_bytes = device.capacity_bytes,
    fits = metrics.feasible }
end

--- The pass that a graph describes: training where operators are not all of the forward phase.
local function step_text(graph)
  for i = 1, graph.operators do
    if graph:operator(i).phase ~= 'forward' then return 'training step' end
  end
  return 'forward pass'
end

local function describe(graph)
  local by_type, inputs, outputs, unknown_types = survey(graph)
  local source = graph.source
  return { name = graph.name, format = source and source.format or 'builder', operators = graph.operators,
    edges = graph.edges, parameters = graph.parameters, active_parameters = graph.active_parameters,
    parameter_bytes = graph.parameter_bytes, flop = graph.flops,
    types = by_type, inputs = inputs, outputs = outputs, unknown_types = unknown_types,
    warnings = source and source.warnings or {},
    one_device = simulate(graph, cli.cluster(options.cluster)) }
end

local function shape_text(shape) return #shape > 0 and '[' .. table.concat(shape, ', ') .. ']' or '[?]' end

--- Values as lines: values of one shape whose names differ in numbers only share a line.
local function lines_of(list)
  local lines, by_key = {}, {}
  for _, value in ipairs(list) do
    local shape = shape_text(value.shape)
    local key = value.name:gsub('%d+', '0') .. shape
    local line = by_key[key]
    if line then
      line.count, line.last = line.count + 1, value.name
    else
      by_key[key] = { first = value.name, count = 1, shape = shape }
      lines[#lines + 1] = by_key[key]
    end
  end
  return util.map(lines, function(line)
    local name = util.shortened(line.first)
    if line.count > 1 then name = ('%s ... %s (%d)'):format(name, util.shortened(line.last), line.count) end
    return name .. ' ' .. line.shape
  end)
end

local function print_values(title, list)
  local lines = lines_of(list)
  for i = 1, math.min(8, #lines) do print(('%-12s %s'):format(i == 1 and title or '', lines[i])) end
  if #lines > 8 then print(('%-12s and %d more'):format('', #lines - 8)) end
end

local function print_text(about, step)
  print(('%s (%s)'):format(about.name, about.format))
  print(('operators    %d'):format(about.operators))
  print(('edges        %d'):format(about.edges))
  print(('parameters   %d (%s)'):format(about.parameters, trinity.system.format_bytes(about.parameter_bytes)))
  if about.active_parameters < about.parameters then
    print(('active       %d of them a token'):format(about.active_parameters))
  end
  print(('flop         %.6g'):format(about.flop))
  print_values('inputs', about.inputs)
  print_values('outputs', about.outputs)
  if #about.unknown_types > 0 then print('unknown      ' .. util.shortened(table.concat(about.unknown_types, ', '))) end
  local one = about.one_device
  print(('simulated    one %s on one %s: %.6g s, %s of %s%s\n'):format(step, one.device, one.step_time_s,
    trinity.system.format_bytes(one.peak_memory_bytes), trinity.system.format_bytes(one.capacity_bytes),
    one.fits and '' or ' (out of memory)'))
  local rows = util.map(about.types, function(entry)
    return { util.shortened(entry.type, 64), tostring(entry.operators), ('%.4g'):format(entry.flop),
      ('%.1f %%'):format(about.flop > 0 and 100 * entry.flop / about.flop or 0),
      trinity.system.format_bytes(entry.parameter_bytes) }
  end)
  print(trinity.system.format_table({ 'type', 'operators', 'flop', 'of all', 'weights' }, rows))
  print(calibrate.text(one.basis))
end

local graph = load_graph()
local about = describe(graph)
if options.json then
  about.one_device = util.merged(about.one_device, calibrate.data(about.one_device.basis))
  about.one_device.basis = nil
end
if options.json then print(trinity.files.json.encode(about)) else print_text(about, step_text(graph)) end
