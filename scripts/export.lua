#!/usr/bin/env trinity
-- A model, or a plan for it, as a file for other programs ('trinity help formats' lists them).

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = trinity.options(util.merged(cli.strategy_options, {
  'Writes a model, where its operators go, or a plan for it, for other programs.',
  model = { default = 'inception_v3', position = true,
    help = 'a model in models/, or a file .lua .onnx .pt2 .et .json .txt' },
  format = { default = 'json', help = "json (trinity's graph), dot (a picture for Graphviz), placement (devices for "
    .. "PyTorch), or a program's: " .. table.concat(trinity.formats.names(), ', ') },
  output = { default = '', writes = '', help = "file; '': to standard output" },
  out = { default = '', writes = '/groups.json', help = 'folder, for formats of several files' },
  training = { default = false, help = 'json and dot: of the training step instead of the forward pass' },
  batch_size = { default = 0, help = "samples a step (0: the model's own)", min = 0, integer = true },
  set = settings.of_model,
  cluster = { default = '', help = 'all but json: devices, as p100x2' },
  method = { default = 'contiguous', help = 'what makes the placement: a method of trinity.methods' },
  method_set = settings.of_method,
  evaluations = { default = 320, help = 'budget of a method that searches', min = 1, integer = true },
  seconds = { default = math.huge, help = 'wall-clock limit of that; results then depend on the machine', min = 0 },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  cost = cli.problem_options.cost,
  device = { default = '', help = "placement, accelerate: names devices DEVICE:0, DEVICE:1, ...; '': the cluster's "
    .. 'names, numbers' },
  units = { default = false, help = 'dot: a node per colocation unit, for large graphs' },
  lossless = { default = false, help = 'refuse what a format cannot say, instead of naming it on standard error' },
  cut_blocks = { default = false, help = 'accelerate: layers may be on several devices' },
  nodes = { default = '', help = "autoparallel: the file of get_json(), whose nodes get placements" },
}))

cli.complete(options)

local own = { json = true, dot = true, placement = true }
local known = { 'dot', 'json', 'placement' }
for _, name in ipairs(trinity.formats.names()) do known[#known + 1] = name end

local function check_format(format)
  for _, name in ipairs(known) do
    if name == format then return end
  end
  util.fail_usage("option '--format': unknown format %s", util.unknown(format, known))
end

check_format(options.format)
if options.out ~= '' and options.output ~= '' then
  util.fail_usage "options '--out' and '--output': expected one of them, a folder or a file"
end
if options.out ~= '' and own[options.format] then
  util.fail_usage("option '--out': format '%s' is one file (--output)", options.format)
end

local function load_graph(training)
  return cli.load_model(options, { training = training or false })
end

--- Devices and where everything goes: a strategy's or a method's placement of the training step.
local function find_plan()
  local name = options.cluster ~= '' and options.cluster or 'p100x2'
  local problem = trinity.problem { graph = load_graph(true), cluster = trinity.cluster(name),
    cost = cli.cost(options) }
  if options.strategy ~= '' then
    local found = cli.load_strategy(options, problem, options.format == 'placement')
    cli.keep(found)
    return problem, found
  end
  return problem, cli.run_method(options, problem, { seed = options.seed, evaluations = options.evaluations,
    seconds = options.seconds })
end

local function device_names(cluster)
  if options.device == '' then return nil end
  return util.listed(#cluster.devices, function(i) return ('%s:%d'):format(options.device, i - 1) end)
end

local function given(text) return text ~= '' and text or nil end

--- A plan as another program's: its text, nil where files were written to --out.
local function export_plan()
  local problem, plan = find_plan()
  local result = plan:export { format = options.format, folder = given(options.out), lossless = options.lossless,
    cut_blocks = options.cut_blocks, nodes = given(options.nodes), device_names = device_names(problem.cluster) }
  if type(result) == 'string' then return result end
  for _, path in ipairs(result) do print('wrote ' .. path) end
end

local function make_text()
  if not own[options.format] then return export_plan() end
  if options.format == 'json' then return load_graph(options.training):to_json() end
  if options.format == 'dot' and options.cluster == '' and options.strategy == '' then
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
if text and options.output == '' then
  io.write(text)
elseif text then
  trinity.files.write(options.output, text)
  print(('wrote %s (%s)'):format(options.output, trinity.format_bytes(#text)))
end
