#!/usr/bin/env trinity
-- One search over the whole strategy of a network on a cluster. With --json one object with the fields
--   plans      best first: dollars, joules or p95_s of a step (--reward), mean_s (--lengths, --expert-load),
--              step_time_s, lower_bound_s, tokens_per_s, mfu, memory_bytes (of the fullest device), tensor, pipeline,
--              virtual_stages, data, expert, context, placement, micro_batch, schedule, recompute, zero_stage,
--              optimizer_offload_fraction, activation_offload_fraction; by layer recomputed_layers, of every virtual
--              stage; rank;
--              variants: simulated plans that differ in less; included: by --include;
--              rank_order, if not the default; segment_size, if devices are idle so that no machine divides that many
--              ranks; straddles: groups of ranks that straddle machines whose number of GPUs is no power of two
--   refused    { reason =, points = }: why points cannot be simulated, and how many
--   pareto     simulated plans that no other beats in both time and memory, with the same fields
--   counts, pruned, left, lower_bound_s   numbers of points by outcome, which add up, and a lower bound of every plan
--   constants, runtime   basis of the numbers: { name, kinds = { kind, rows, mean_error } }; the training software
--   nearest    if nothing fits: point, excess_bytes, memory_bytes (a bound), helps (what would help)
-- Exit status: 1 if no plan fits, 130 after Ctrl-C (143 after SIGTERM).

local trinity = require 'trinity'
local calibrate = require 'trinity.cluster.calibrate'
local cli = require 'trinity.command.cli'
local dimensions = require 'trinity.plan.dimensions'
local networks = require 'trinity.plan.networks'
local replan = require 'trinity.job.replan'
local made_for = require 'trinity.strategy.made_for'
local model = require 'trinity.graph.model'
local plan_picture = require 'trinity.report.plan_picture'
local prices = require 'trinity.cluster.prices'
local progress = require 'trinity.base.progress'
local settings = require 'trinity.command.settings'
local shown = require 'trinity.report.shown'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local straddling = require('trinity.strategy.rank_order').straddling
local text = require 'trinity.plan.text'
local util = require 'trinity.base.util'

local rare = { rare = true }
local uneven_options = 'lengths fill deal expert_load dispatcher capacity_factor'
local options = trinity.options(cli.declare('set cluster cost seconds seed json ' .. uneven_options, util.merged({
  'Searches how to train a network on a cluster. A dimension takes several values: --tensor 1,2,4.',
  set = rare, cost = rare,
  model = { type = 'string', position = true,
    help = "a decoder's config.json or its folder, a model in models/, or a .lua file" },
  cluster = { default = 'dgx_h100', help = "a cluster, or machines: 'dgx_a100x4', 'dgx_h100:4x2+dgx_a100'" },
  global_batch = { default = 256, help = 'samples of a step, of all replicas', min = 1, integer = true },
  sequence = { type = 'number', help = "tokens of a sample (default: the model's; config.json: at most 4096)",
    min = 1, max = 2 ^ 24, integer = true },
  plans = { default = 5, help = 'plans shown, which differ in mesh, schedule, recomputation or sharding',
    min = 1, max = 1000, integer = true },
  include = { type = 'string', rare = true, help = 'saved plans (JSON), with commas, that are ranked among the found' },
  compare = { type = 'string', rare = true,
    help = 'two saved plans side by side, each on what it was made for: A.json B.json' },
  reward = { default = 'time', help = 'minimized: time, p95, or dollars or joules of the GPUs in use' },
  noise = { default = 0.02, rare = true, min = 0, max = 10,
    help = "with --reward p95: coefficient of variation of a device's pass of one micro-batch" },
  draws = { default = 50, rare = true, min = 1, integer = true,
    help = 'with --reward p95 or --lengths: steps that are sampled of one plan' },
  prices = { type = 'string', rare = true, help = 'with --reward dollars or joules: a CSV file with columns kind, '
    .. 'dollars_per_hour, watts in place of list prices and board power' },
  simulations = { default = 96, rare = true, help = 'strategies that are simulated at most', min = 1, integer = true },
  tasks = { default = 20000000, rare = true, min = 1, integer = true,
    help = 'operators that one simulation runs at most, in all micro-batches; what has more is left' },
  seconds = { rare = true, help = 'wall-clock limit: the best by then, with its bound' },
  methods = { default = 'annealing', rare = true,
    help = 'with --placement: methods that place operators inside stages' },
  evaluations = { default = 1000, rare = true, help = 'with --placement: of a method, a stage', min = 1,
    integer = true },
  seed = { rare = true, help = 'of methods of placement and of --reward p95; the rest of the search is deterministic' },
  output = { type = 'string', writes = '', help = 'a file for the best plan: simulate, execute, export read it' },
  export = { type = 'string', help = 'prints the best plan for megatron, torchtitan, deepspeed, rank_file, ... alone' },
  picture = { type = 'string', rare = true, writes = '', help = 'a file for a picture of the best plan (SVG)' },
  from = { type = 'string', help = 'a job file of Megatron-LM or torchtitan: faster degrees for it' },
  diff = { default = false, rare = true, help = 'with --from: a patch of the file, with the seconds that each line '
    .. 'saves' },
  keep = { type = 'string', rare = true, help = 'with --from: what stays, with commas: tensor, pipeline, context, '
    .. 'expert, micro_batch, recompute, zero_stage' },
  explain = { default = false, rare = true, help = 'also what the best plan costs, device by device' },
}, dimensions.options()), uneven_options))

local function warn_early(why)
  progress.warn(('stopped early (%s); these are the best plans so far. trinity plan cannot be resumed'):format(
    why))
end

-- Returns the plan of a file on its own network, cluster and batch, in the form of a search result.
local function read_plan(path)
  local made = made_for.read(path)
  if not (made.model and made.cluster and made.micro_batch) then
    util.fail('%s: expected a plan with model, cluster and micro-batch, as trinity plan --output writes, got none of '
      .. 'them', path)
  end
  local nets = networks.new('trinity plan', function(micro_batch, layers)
    return made_for.network(path, made.model, function()
      return model.load(made.model, util.merged(made.options, { batch_size = micro_batch, layers = layers }))
    end)
  end, model.cluster(made.cluster, made.cluster_options), made.cost)
  local problem = nets:problem(made.micro_batch)
  local found = problem:load(path)
  if not found.mesh then util.fail('%s: expected a plan with a mesh, got a placement of operators', path) end
  local point = space.point_of(found, made.micro_batch)
  local fields = space.strategy(point)
  return util.merged({ path = path, made = made, point = point, fields = fields, metrics = found.metrics,
    step_time_s = found.metrics.step_time_s, networks = nets, problem = problem,
    bounds = simulator.mesh_bounds(problem, { fields })[1],
    tokens = select(2, networks.samples(problem.graph)) }, point)
end

local function seconds(value) return ('%.4g s'):format(value) end

-- Rows that are shown if they differ, and rows that are always shown.
local facts = {
  { 'network', function(p) return p.problem.graph.name end },
  { 'cluster', function(p) return p.problem.cluster.name end },
  { 'prices', function(p) return calibrate.text(p.problem.cluster.basis) end },
  { 'global batch', function(p) return p.made.global_batch end },
  { 'tokens of a sample', function(p) return p.tokens end },
  { 'stages', function(p) return type(p.stages) == 'table' and table.concat(p.stages, ' ') or p.stages end },
}
for _, name in ipairs { 'tensor', 'context', 'expert', 'pipeline', 'data', 'micro_batch', 'micro_batches', 'schedule',
  'virtual_stages', 'recompute', 'zero_stage', 'optimizer_offload_fraction', 'activation_offload_fraction',
  'sequence_parallel', 'bucket_bytes', 'placement', 'algorithm' } do
  table.insert(facts, #facts, { (name:gsub('_', ' ')), function(p) return p[name] end })
end
local results = {
  { 'step', function(p) return seconds(p.step_time_s) end },
  { 'tokens/s', function(p) return ('%.5g'):format(p.made.global_batch * p.tokens / p.step_time_s) end },
  { 'memory', function(p) return trinity.system.format_bytes(p.metrics.peak_memory_bytes) end },
}
for _, part in ipairs(text.parts) do
  results[#results + 1] = { part[2], function(p) return seconds(p.shares[part[1]]) end }
end

-- Returns a table of two files and a sentence.
local function compared(a, b)
  local plans, rows = { read_plan(a), read_plan(b) }, {}
  for _, plan in ipairs(plans) do plan.shares = text.shares(plan) end
  local function add(row, always)
    local x, y = tostring(row[2](plans[1])), tostring(row[2](plans[2]))
    if always or x ~= y then rows[#rows + 1] = { row[1], x, y } end
  end
  for _, row in ipairs(facts) do add(row) end
  for _, row in ipairs(results) do add(row, true) end
  local best, other = 1, 2
  if plans[2].step_time_s < plans[1].step_time_s then best, other = 2, 1 end
  return ('%s\n%s: %s'):format(trinity.system.format_table({ '', a, b }, rows), plans[other].path,
    text.loses(plans[best], plans[other]))
end

if options.compare then
  local files = util.words(options.compare .. ',' .. (options.model or ''))
  if #files ~= 2 then util.fail_usage("option '--compare': expected two files, got %d", #files) end
  print(cli.called(compared, files[1], files[2]))
  return
end
if options.from then
  cli.refuse(options, uneven_options, 'cannot be combined with --from')
  local planned = cli.called(replan.run, options.from, { cluster = options.cluster,
    keep = util.words(options.keep or ''), simulations = options.simulations, output = options.output,
    quiet = progress.quiet })
  if options.json then print(trinity.files.json.encode(planned))
  elseif options.diff or not planned.step_time_s then print(table.concat(planned.lines, '\n'))
  else
    local function value(of) return of == nil and '' or of == false and 'off' or of == true and 'on' or tostring(of) end
    print(('%s: %s'):format(options.from, planned.before_s and ('%.4g s per step'):format(planned.before_s)
      or 'does not fit'))
    print(('plan: %.4g s per step'):format(planned.step_time_s))
    print(trinity.system.format_table({ 'argument', 'now', 'plan', 'saves' }, util.map(planned.changes, function(change)
      return { change.name, value(change.now), value(change.value), change.gives_s
        and ('%.3g s'):format(change.gives_s) or 'needed by the others' }
    end)))
    for _, name in ipairs(planned.missed) do print('change by hand: ' .. name) end
  end
  if not planned.step_time_s then os.exit(1) end
  return
end
if not options.model then util.fail_usage 'expected a model to plan for (--help lists options)' end
local model_options = settings.read('set', options.set)
model_options.sequence = options.sequence or model_options.sequence
local function graph(micro_batch, layers)
  local option = options.sequence and #options.set == 0 and 'sequence' or 'set'
  return settings.checked(option, model_options, 'trinity%.model: (.*)', function()
    return trinity.model(options.model, util.merged({ cluster = options.cluster }, model_options,
      { batch_size = micro_batch, layers = layers }))
  end)
end
local extension = options.model:match '%.(%w+)$' -- other files have a fixed batch size
local recorded = extension and extension ~= 'json' and extension ~= 'lua'

local cluster = cli.cluster(options.cluster)
-- Returns the point of a saved plan. It is simulated on this command's network, cluster and runtime.
local function included(path)
  local made = made_for.read(path)
  if made.global_batch ~= options.global_batch or not made.micro_batch then
    util.fail_usage("option '--include': %s: expected a plan of a global batch of %d, got %s", path,
      options.global_batch, tostring(made.global_batch))
  end
  local problem = trinity.problem { graph = graph(made.micro_batch), cluster = cluster, check_memory = false }
  return space.point_of(problem:load(path, { reevaluate = true }), made.micro_batch)
end

if options.export then
  local names = trinity.formats.names()
  if not util.set(names)[options.export] then
    util.fail_usage("option '--export': unknown format %s", util.unknown(options.export, names))
  end
  if options.export == 'chakra' then
    util.fail_usage("option '--export': format 'chakra' has several files; use --output FILE, then 'trinity export "
      .. "--strategy FILE --format chakra --output-dir DIR'")
  end
end
if options.reward ~= 'time' and not dimensions.rewards[options.reward] then
  util.fail_usage("option '--reward': unknown word %s", util.unknown(options.reward,
    { 'time', 'p95', 'dollars', 'joules' }))
end
local uneven = cli.uneven(options)
local is_uneven = uneven.lengths or uneven.experts
for _, name in ipairs { 'lengths', 'expert_load' } do -- before anything is computed
  if options[name] and not options[name]:find '^zipf:' then util.read_file(options[name]) end
end
if options.reward ~= 'p95' then
  cli.refuse(options, 'noise', 'belongs to --reward p95')
  if not options.lengths then cli.refuse(options, 'draws', 'belongs to --reward p95') end
  if is_uneven and options.reward ~= 'time' then
    util.fail_usage("option '--reward': expected time or p95 with --lengths and --expert-load, got %s", options.reward)
  end
end
if options.prices and not prices.set[options.reward] then
  util.fail_usage "option '--prices': expected --reward dollars or --reward joules with it"
end
-- Runs the search. Its dimensions are options of the command, so messages are changed to name options.
local function search(spec)
  local ok, made = pcall(trinity.plan, spec)
  if not ok then
    error((tostring(made):gsub("trinity%.plan: dimension '([%w_]+)'", function(name)
      return ("option '--%s'"):format((name:gsub('_', '-')))
    end)), 0)
  end
  return made
end

local found = cli.called(search, { graph = recorded and graph() or graph, cluster = cluster,
  runtime = cluster.basis.runtime or options.runtime or 'any', cost = options.cost,
  included = util.map(util.words(options.include or ''), included),
  reward = options.reward ~= 'time' and options.reward or nil, prices = options.prices,
  noise = options.noise, draws = options.draws, stragglers = is_uneven and uneven or nil,
  global_batch = options.global_batch, space = space.read(options),
  plans = options.plans, simulations = options.simulations, tasks = options.tasks,
  methods = util.words(options.methods), evaluations = options.evaluations, seed = options.seed,
  seconds = options.seconds or math.huge, quiet = progress.quiet })
local problem = found.networks:problem((found.plans[1] or { micro_batch = 1 }).micro_batch)
local tokens = select(2, networks.samples(problem.graph))

local function row(plan)
  return { step_time_s = plan.step_time_s, lower_bound_s = plan.lower_bound_s,
    [is_uneven and options.reward == 'time' and 'mean_s' or options.reward == 'p95' and 'p95_s' or options.reward] =
      found.cost_of and plan.cost or nil,
    tokens_per_s = plan.samples_per_s * tokens, mfu = plan.mfu,
    memory_bytes = plan.memory_bytes, tensor = plan.tensor, pipeline = plan.pipeline,
    virtual_stages = plan.virtual_stages, data = plan.data, expert = plan.expert, context = plan.context,
    placement = plan.placement,
    micro_batch = plan.micro_batch, schedule = plan.schedule, recompute = plan.recompute,
    recomputed_layers = plan.recomputed, zero_stage = plan.zero_stage, rank = plan.rank, variants = #plan.variants,
    optimizer_offload_fraction = plan.optimizer_offload_fraction,
    activation_offload_fraction = plan.activation_offload_fraction, included = plan.included,
    rank_order = plan.rank_order ~= 'default' and plan.rank_order or nil,
    segment_size = plan.segment_size,
    straddles = found.straddles and straddling(plan.fields, plan.problem.cluster) or nil }
end

local best = found.plans[1]
local kept = trinity.run.path and 2 or options.picture and 1 or 0 -- plans to show: the best and the next one
local drawn = util.map({ unpack(found.plans, 1, kept) }, function(plan)
  return shown.of(plan.strategy, plan.lower_bound_s)
end)
if options.picture and best then util.write_file('plan', options.picture, plan_picture.svg(drawn[1])) end
trinity.run:result('plan', { plans = util.map(found.plans, function(plan, i)
  return util.merged(row(plan), { shown = drawn[i] })
end), counts = found.counts, pruned = found.pruned,
  lower_bound_s = best and found.lower_bound_s or nil }, best
  and ('The best plan takes %.6g s a step: %s.'):format(best.step_time_s, space.text(best.point)) or 'No plan fits.')
if options.output and best then best.strategy:save(options.output) end
if options.export then -- standard output has nothing but the export
  if not best then error(table.concat(text.nothing(found), '\n'), 0) end
  io.write(cli.called(best.strategy.export, best.strategy, { format = options.export }))
elseif options.json then
  local nothing = not best and not (found.stopped and found.left > 0)
  print(trinity.files.json.encode(util.merged({ plans = util.map(found.plans, row), refused = found.refused,
    pareto = util.map(found.pareto, row), counts = found.counts, pruned = found.pruned, left = found.left,
    lower_bound_s = found.plans[1] and found.lower_bound_s or nil, stopped = found.stopped,
    cost = problem:cost_text(), prices = found.cost_of and found.cost_of.text or nil,
    nearest = nothing and found.nearest or nil },
    calibrate.data(problem.cluster.basis))))
else
  local graph_name = problem.graph.name
  print(('%s on %s: %d devices, %d samples%s per step'):format(graph_name, options.cluster,
    #found.cluster.devices, options.global_batch, tokens > 1 and (' of %d tokens'):format(tokens) or ''))
  if found.plans[1] then
    print(text.report(found, tokens))
    local costs = problem:cost_text()
    if costs then print('costs: ' .. costs) end
    if options.explain then print(found.plans[1].strategy:explain()) end
  else
    print(table.concat(text.nothing(found), '\n'))
  end
  print(calibrate.text(problem.cluster.basis))
end
if found.stopped then warn_early(found.stopped) end
if trinity.system.was_interrupted() then os.exit(trinity.system.stop_status()) end
if not found.plans[1] then os.exit(1) end
