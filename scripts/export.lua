#!/usr/bin/env trinity
-- Exports a model, or a strategy for it, to the format of another program ('trinity help formats' lists them).

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('model set batch_size cost strategy reevaluate method method_set '
    .. 'evaluations seconds seed', {
  'Exports a model, its placement or its whole strategy to the formats of other programs.',
  method = { default = 'contiguous' },
  evaluations = { default = 320 },
  format = { type = 'string', help = 'json (the graph), dot (Graphviz), placement (devices for PyTorch), or a '
    .. "program's: " .. table.concat(trinity.formats.names(), ', ') .. ' (default: json; needed with --strategy)' },
  output = { type = 'string', writes = '', help = 'write to this file (default: standard output)' },
  output_dir = { type = 'string', writes = '/groups.json', help = 'folder, for formats of several files' },
  training = { default = false, help = 'for json and dot: the training step instead of the forward pass' },
  cluster = { type = 'string', help = 'cluster of the placement (default: p100x2, with dot none; json takes none)' },
  device = { type = 'string', help = "for placement, accelerate: device names cuda:0, ... with 'cuda' "
    .. "(default: the cluster's)" },
  units = { default = false, help = 'for dot: one node per colocation unit, for large graphs' },
  lossless = { default = false, help = 'fail if the format cannot express everything (otherwise a warning)' },
}, 'cost device evaluations method_set reevaluate seconds seed units'))

local own = { json = true, dot = true, placement = true }
local known = { 'dot', 'json', 'placement' }
for _, name in ipairs(trinity.formats.names()) do known[#known + 1] = name end

local function check_format(format)
  for _, name in ipairs(known) do
    if name == format then return end
  end
  util.fail_usage("option '--format': unknown format %s", util.unknown(format, known))
end

if options.strategy and not options.format then
  util.fail_usage("option '--format': required with --strategy; one of %s", table.concat(known, ', '))
end
options.format = options.format or 'json'
check_format(options.format)
local of_meshes = { deepspeed = true, megatron = true, rank_file = true, torchtitan = true }
if of_meshes[options.format] and not options.strategy then
  util.fail_usage("option '--strategy': required with --format %s; 'trinity plan --output FILE' writes one",
    options.format)
end
cli.complete(options)
if options.output_dir and options.output then
  util.fail_usage "options '--output-dir' and '--output': expected one of them, a directory or a file"
end
if options.output_dir and own[options.format] then
  util.fail_usage("option '--output-dir': format '%s' is one file; use --output", options.format)
end

local function load_graph(training)
  return cli.load_model(options, { training = training or false })
end

--- Devices and where everything goes: a strategy's or a method's placement of the training step.
local function find_plan()
  local problem = trinity.problem { graph = load_graph(true), cluster = cli.cluster(options.cluster or 'p100x2'),
    cost = options.cost, check_memory = not options.strategy }
  if options.strategy then
    local found = cli.load_strategy(options, problem, options.format == 'placement')
    cli.keep(found)
    return problem, found
  end
  return problem, cli.run_method(options, problem, { seed = options.seed, evaluations = options.evaluations,
    seconds = options.seconds })
end

local function device_names(cluster)
  if not options.device then return nil end
  return util.listed(#cluster.devices, function(i) return ('%s:%d'):format(options.device, i - 1) end)
end

--- A plan as another program's: its text, nil where files were written to --output-dir.
local function export_plan()
  local problem, plan = find_plan()
  local result = plan:export { format = options.format, folder = options.output_dir, lossless = options.lossless,
    device_names = device_names(problem.cluster) }
  if type(result) == 'string' then return result end
  for _, path in ipairs(result) do print('wrote ' .. path) end
end

local function make_text()
  if not own[options.format] then return export_plan() end
  if options.format == 'json' then return load_graph(options.training):to_json() end
  if options.format == 'dot' and not options.cluster and not options.strategy then
    return load_graph(options.training):to_dot { units = options.units }
  end
  local problem, plan = find_plan()
  if options.format == 'dot' then return problem:to_dot(plan, { units = options.units }) end
  return problem:placement_json(plan, device_names(problem.cluster))
end

local ok, text = pcall(make_text)
if not ok then -- what cannot be written is one sentence
  error(type(text) == 'string' and text:gsub('^%S-scripts/export%.lua:%d+: ', '') or text, 0)
end
if text and not options.output then
  io.write(text)
elseif text then
  trinity.files.write(options.output, text)
  print(('wrote %s (%s)'):format(options.output, trinity.system.format_bytes(#text)))
end
