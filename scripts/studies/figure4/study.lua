#!/usr/bin/env trinity
-- Figure 4 of the Trinity paper: the best placement of NMT on four GPUs, as a picture of the graph's layers, colored by
-- GPU. Graphviz renders it; the placement is next to it as CSV, one operator per row. The paper's strategy takes
-- 2.56 s on its machine; here a step is simulated.

local layers = require 'trinity.report.layers'
local plot = require 'trinity.base.plot'
local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = trinity.options(cli.declare('strategy reevaluate', {
  'Shows a found placement on the layers of its graph, colored by device.',
  model = { default = 'nmt', help = 'a model in models/, or a file .lua .onnx .json .txt' },
  batch_size = { default = 64, help = 'samples per step', min = 1, integer = true },
  hidden = { default = 1728, help = "units of nmt's layers (table 4 of the paper); 0: the model's own", min = 0,
    integer = true },
  cluster = { default = 'p100_paperx4', help = 'a cluster in models/clusters with a count, a Lua file, a profile' },
  set = settings.of_model,
  method_set = settings.of_method,
  method = { default = 'trinity', help = 'a method of trinity.methods' },
  evaluations = { default = 400, help = 'placements to simulate', min = 1, integer = true },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  output = { default = 'runs/figure4', writes = '.csv', help = 'where PATH.csv, PATH.svg and PATH.png go' },
}))

cli.complete(options)

local problem = trinity.problem { cluster = trinity.cluster(options.cluster), graph = cli.load_model(options, {
  hidden = options.hidden > 0 and options.model == 'nmt' and options.hidden or nil }) }
local found = options.strategy and cli.load_strategy(options, problem, true)
  or assert(cli.run_method(options, problem, { evaluations = options.evaluations, seed = options.seed }))

if found.stopped then
  print(('stopped by %s at a step of %.4g s; there is no picture'):format(trinity.system.stop_name(),
    found.metrics.step_time_s))
  os.exit(trinity.system.stop_status())
end

local names, layer_of, edges, _, about = layers.collapse(problem.graph)

--- How many operators of every layer each device runs.
local function counts_of()
  local counts = util.listed(#names, function() return {} end)
  for op, layer in ipairs(layer_of) do
    local device = found.placement[op]
    counts[layer][device] = (counts[layer][device] or 0) + 1
  end
  return counts
end

local function colour(device) return plot.colours[(device - 1) % #plot.colours + 1] end

local function in_quotes(text) return '"' .. text:gsub('[%c]', ' '):gsub('["\\]', '\\%0') .. '"' end

--- The fill of a node: stripes as wide as each device's share.
local function fill(counts)
  local devices, all, parts = {}, 0, {}
  for device = 1, #problem.cluster.devices do
    if counts[device] then devices[#devices + 1], all = device, all + counts[device] end
  end
  if #devices == 1 then return ('style="filled,rounded", fillcolor="%s"'):format(colour(devices[1])) end
  for i, device in ipairs(devices) do
    parts[i] = i < #devices and ('%s;%.4f'):format(colour(device), counts[device] / all) or colour(device)
  end
  return ('style=striped, fillcolor="%s"'):format(table.concat(parts, ':'))
end

local function dot_text(counts)
  local lines = { 'digraph {', 'graph [rankdir=LR, ranksep=0.5, nodesep=0.06, fontname="sans", bgcolor=white];',
    'node [shape=box, fontname="sans", fontsize=11, height=0.22, margin="0.06,0.01", color="#444444"];',
    'edge [arrowsize=0.4, color="#99999988"];' }
  for layer, name in ipairs(names) do
    lines[#lines + 1] = ('n%d [label=%s, %s];'):format(layer, in_quotes(name), fill(counts[layer]))
  end
  for i = 1, #edges.from do lines[#lines + 1] = ('n%d -> n%d;'):format(edges.from[i], edges.to[i]) end
  lines[#lines + 1] = 'subgraph cluster_legend { label="devices"; color="#CCCCCC";'
  for d, device in ipairs(problem.cluster.devices) do
    lines[#lines + 1] = ('d%d [label=%s, style=filled, fillcolor="%s"];'):format(d, in_quotes(device.name), colour(d))
  end
  lines[#lines + 1] = '}\n}\n'
  return table.concat(lines, '\n')
end

local cells = util.map(layer_of, function(layer, op)
  return { about[op].name, names[layer], about[op].phase, found.placement[op],
    problem.cluster.devices[found.placement[op]].name }
end)
plot.csv(options.output .. '.csv', { 'operator', 'layer', 'phase', 'device', 'name' }, cells)
local counts = counts_of()
trinity.files.write(options.output .. '.dot', dot_text(counts))

--- Draws the picture; says why where it cannot.
local function draw()
  local path = options.output:gsub("'", "'\\''")
  if os.execute 'command -v dot >/dev/null 2>&1' ~= 0 then
    return 'no picture: Graphviz is not installed (scripts/bootstrap installs it)'
  end
  for _, format in ipairs { 'svg', 'png' } do
    local status = os.execute(("timeout 60 dot -T%s '%s.dot' -o '%s.%s'"):format(format, path, path, format))
    if status ~= 0 then return ('no %s: dot ended with status %d'):format(format, status) end
  end
  return 'pictures next to it as .svg and .png'
end

local mixed = 0
for _, layer in ipairs(counts) do
  local devices = 0
  for _ in pairs(layer) do devices = devices + 1 end -- sorted or not, it is a number
  if devices > 1 then mixed = mixed + 1 end
end
print(('%s on %s by %s: step time %.4g s, %.2f times the lower bound; %d of %d layers on more than one device'):format(
  problem.graph.name, problem.cluster.name, found.method or options.method, found.metrics.step_time_s,
  found.metrics.step_time_s / found:bounds().step_time_s, mixed, #names))
local said = draw()
print(('in %s.csv; %s'):format(options.output, said))
print(('simulated, seed %d\nmade by: trinity study figure4 %s'):format(options.seed, cli.words()))
