-- Shared code of the commands simulate, search, export and execute: the problem from the options, and the report.

local calibrate = require 'trinity.cluster.calibrate'
local core = require 'trinity.core'
local comparison = require 'trinity.methods.comparison'
local csv = require 'trinity.base.csv'
local given_of = require 'trinity.command.given'
local made_for = require 'trinity.strategy.made_for'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local cli = {}

--- Declares a command's options: shared ones by name (command/shared.lua), and its own.
cli.declare = require 'trinity.command.shared'

-- Bandwidths of the machines of published simulators: devices joined by links without latency, without a memory limit.
-- Placeto's buses carry 7600 bytes a microsecond (papers/notes.md "Trinity: the published simulator"); Doppler's files
-- state how long a link takes, which are bytes here, at a byte a nanosecond.
local published = { placeto = 7600e6, doppler = 1e9 }

-- The graphs contain operator times, so device speeds do not matter.
local function published_cluster(rules, devices)
  local spec = { name = ('%s_x%d'):format(rules, devices), devices = {}, links = {}, device_types = { any = {
    peak_flops_per_s = { float32 = 1 }, memory_bandwidth_bytes_per_s = 1, memory_bytes = 2 ^ 50 } } }
  for d = 1, devices do spec.devices[d] = { name = 'd' .. d - 1, type = 'any' } end
  for from = 0, devices - 1 do
    for to = from + 1, devices - 1 do
      spec.links[#spec.links + 1] = { from = 'd' .. from, to = 'd' .. to, latency_s = 0,
        bandwidth_bytes_per_s = published[rules] }
    end
  end
  return spec
end

--- Calls a function. Errors are raised again without the position in the command's source, which does not help its
--- user. A name of no model or cluster is a wrong option.
function cli.called(f, ...)
  local ok, result = pcall(f, ...)
  if ok then return result end
  if type(result) ~= 'string' then error(result, 0) end
  local message = util.unplaced(result)
  local option = message:match "^no (model) '" or message:match "^no (cluster) '"
  if option then util.fail_usage("option '--%s': %s", option, message) end
  error(message, 0)
end

function cli.cluster(name) return cli.called(model.cluster, name) end

local function is_given(options, name) return (given_of[options] or {})[name] == true end

--- Raises a usage error if one of the options was given; `why` is the reason.
function cli.refuse(options, names, why)
  for name in names:gmatch '%S+' do
    if is_given(options, name) then util.fail_usage("option '--%s': %s", name, why) end
  end
end

--- Returns options of trinity.stragglers by --lengths, --expert-load and what belongs to these.
function cli.uneven(options)
  if not options.lengths then cli.refuse(options, 'fill deal', 'belongs to --lengths') end
  for _, row in ipairs(options.lengths and csv.read(options.lengths, 'length', 'count') or {}) do -- before a search
    csv.whole(options.lengths, row, 'length')
    csv.whole(options.lengths, row, 'count', nil, 0)
  end
  if not options.expert_load then cli.refuse(options, 'capacity_factor dispatcher', 'belongs to --expert-load') end
  local load = options.expert_load
  local zipf = load and load:match '^zipf:(.*)$'
  local exponent = tonumber(zipf)
  if load and not load:find '%.json$' and not (exponent and exponent >= 0 and exponent <= 100) then
    util.fail_usage("option '--expert-load': expected a file .json, or zipf: and a number from 0 to 100, got %s",
      util.quoted(load))
  end
  return { lengths = options.lengths, fill = options.fill, deal = options.deal, experts = load and {
    load = exponent and { zipf = exponent } or load, capacity_factor = options.capacity_factor,
    dispatcher = options.dispatcher, seed = options.seed } }
end

local options_of_file = setmetatable({}, { __mode = 'k' }) -- options of trinity.model, by the command's options

local function of_strategy(message, ...)
  util.fail_usage("option '--strategy': " .. message, ...)
end

-- Removes the position in a Lua file from an error message.
local function sentence(message)
  return (util.unplaced(tostring(message)):gsub('^problem:[%w_]+: ', ''):gsub('^trinity%.read_file: ', ''))
end

local meanings = { model = 'model', batch_size = 'micro-batch', cluster = 'cluster' }

local function listed(words)
  if #words < 2 then return words[1] end
  return table.concat(words, ', ', 1, #words - 1) .. ' and ' .. words[#words]
end

-- Raises a usage error if neither the file nor the command line gives the model, batch size or cluster.
local function check_complete(options, said, version)
  local lacks, needs = {}, {}
  for _, name in ipairs { 'model', 'batch_size', 'cluster' } do
    if said[name] == nil and not is_given(options, name) then
      lacks[#lacks + 1], needs[#needs + 1] = meanings[name], '--' .. name
    end
  end
  if #lacks == 0 then return end
  of_strategy('%s (version %s) does not contain its %s: give %s', util.shortened(options.strategy), tostring(version),
    listed(lacks), listed(needs))
end

--- Takes model, its options, micro-batch size, cluster and costs from the file of --strategy if the command line does
--- not give them. Options of the model are only taken if the file has the same model.
function cli.complete(options)
  if not options.strategy then
    if options.reevaluate then util.fail_usage "option '--reevaluate' needs --strategy" end
    return
  end
  cli.refuse(options, 'method method_set evaluations', 'cannot be combined with --strategy, which is already made')
  local ok, made, version = pcall(made_for.read, options.strategy)
  if not ok then of_strategy('%s', sentence(made)) end
  local own = made.model and (not is_given(options, 'model') or options.model == made.model)
  local said = { model = made.model, cluster = made.cluster, cost = made.cost,
    batch_size = own and (made.options.batch_size or false) or made.micro_batch } -- false: the model's own
  for name, value in util.sorted_pairs(made.cluster_options or {}) do said[name] = value end
  if published[options.rules] then said.cluster = options.cluster end
  check_complete(options, said, version)
  for name, value in util.sorted_pairs(said) do
    if not is_given(options, name) then options[name] = value or nil end
  end
  if made.cluster_options then model.set_cluster_options(options) end
  options_of_file[options] = own and util.merged(made.options) or nil
  if own then options_of_file[options].batch_size = nil end
end

-- The cluster of the options, or nil with the rules of a published simulator.
local function cluster_of(options)
  return not published[options.rules] and options.cluster or nil
end

--- The graph that options `model`, `batch_size` (nil: the model's own) and `set` name; `further`: additional options.
function cli.load_model(options, further)
  local given = util.merged(options_of_file[options] or {}, settings.read('set', options.set))
  local batch_size = options.batch_size
  return cli.called(settings.checked, 'set', given, 'trinity%.model: (.*)', function()
    local asked = is_given(options, 'batch_size')
    local function load()
      return model.load_by_default(options.model, util.merged({ batch_size = asked and batch_size or nil,
        cluster = cluster_of(options) }, further, given), not asked and batch_size or nil)
    end
    if not options.strategy or is_given(options, 'model') then return load() end
    return made_for.network(options.strategy, options.model, load)
  end)
end

--- Loads the strategy of --strategy. Warns if it is re-evaluated. plain: refuse a strategy with a mesh or splits, in
--- which an operator may be on several devices.
function cli.load_strategy(options, problem, plain)
  local ok, found = pcall(problem.load, problem, options.strategy, { reevaluate = options.reevaluate })
  if not ok then
    of_strategy('%s', (sentence(found):gsub('reevaluate = true %(%-%-reevaluate%)', '--reevaluate')))
  end
  if plain and (found.mesh or found.splits) then
    of_strategy('%s has %s; expected a strategy that puts every operator on one device', options.strategy,
      found.mesh and 'a mesh' or 'splits')
  end
  if found.reevaluated then progress.warn(('%s: %s'):format(options.strategy, found.reevaluated)) end
  return found
end

--- Applies --schedule and --micro_batches to a strategy if they are given.
function cli.rescheduled(options, problem, found)
  local own = options.schedule == nil
  if own and not options.micro_batches then return found end
  if found.mesh then
    util.fail_usage "option '--schedule', '--micro_batches': the strategy has a mesh, which fixes both"
  end
  if options.strategy and not options.reevaluate then
    util.fail_usage("option '--schedule', '--micro_batches': the strategy was made for '%s' and %d micro-batches; "
      .. 'use --reevaluate to change them', found.schedule or 'fifo', found.micro_batches or 1)
  end
  return problem:strategy({ placement = found.placement, priority = own and found.priority or nil,
    order = own and found.order or nil, stage = found.stage, splits = found.splits,
    schedule = own and found.schedule or options.schedule,
    micro_batches = options.micro_batches or found.micro_batches },
    { method = found.method, evaluations = found.evaluations or 1 })
end

function cli.run_method(options, problem, own)
  local given = settings.read('method_set', options.method_set)
  local methods = require 'trinity.methods'
  local known, message = pcall(methods.info, options.method)
  if not known then util.fail_usage("option '--method': %s", (tostring(message):gsub("^.*%('name'%): ", ''))) end
  return settings.checked('method_set', given, 'methods%.([%w_]+: .*)', function()
    return methods.get(options.method)(problem, util.merged(own, given))
  end)
end

function cli.options_by_method(options, names)
  local given = settings.read('method_set', options.method_set)
  for name, value in util.sorted_pairs(given) do
    if type(value) ~= 'table' or #value > 0 then
      util.fail_usage("option '--method_set': expected METHOD.NAME=VALUE, got '%s=...'", name)
    end
    local known
    for _, compared in ipairs(names) do known = known or compared == name end
    if not known then util.fail_usage("option '--method_set': unknown method %s", util.unknown(name, names)) end
  end
  return given
end

local rule_names = { 'doppler', 'placeto', 'standard' }

-- Returns the rules of the options: a name, or a table of deviations from the cluster's rules.
local function rules_of(options)
  local rules = options.rules
  if rules:find('=', 1, true) then return settings.read('rules', { rules }) end
  if not published[rules] and rules ~= 'standard' then
    util.fail_usage("option '--rules': unknown rules %s", util.unknown(rules, rule_names))
  end
  return rules
end

function cli.problem(options)
  local rules = rules_of(options)
  if not published[rules] then
    if is_given(options, 'devices') then
      util.fail_usage "option '--devices' needs --rules placeto or doppler; use --cluster"
    end
    return cli.called(problems.new, { graph = cli.load_model(options), cluster = cli.cluster(options.cluster),
      cost = options.cost, rules = rules ~= 'standard' and rules or nil,
      check_memory = not options.strategy }) -- a strategy may keep states on the host
  end
  if is_given(options, 'cluster') then
    util.fail_usage("option '--cluster': cannot be combined with --rules %s; use --devices", rules)
  end
  local graph = cli.load_model(options, rules == 'placeto' and { training = false } or nil)
  if rules == 'placeto' then
    graph = graph:fold_backward()
  elseif (graph.source or {}).format ~= 'Doppler graph' then
    util.fail_usage("option '--rules': doppler expects a graph of Doppler (.txt), got model %s",
      util.quoted(options.model))
  end
  return problems.new { graph = graph, rules = rules,
    cluster = model.cluster(published_cluster(rules, options.devices)) }
end

--- Returns operators in the order of their file, or in the order of the graph if they come from no file.
local function file_order(graph)
  local order = util.listed(graph.operators, function(op)
    return { op = op, at = graph:operator(op).attributes.file_position or op }
  end)
  table.sort(order, util.by('at', 'op'))
  for i = 1, #order do order[i] = order[i].op end
  return order
end

--- Parses a placement: devices from 0, separated by commas, one per operator in file order or one per colocation unit.
function cli.read_placement(problem, words)
  local devices, graph = {}, problem.graph
  for _, word in ipairs(util.words(words)) do
    local device = tonumber(word)
    if not device or device % 1 ~= 0 or device < 0 or device >= #problem.cluster.devices then
      util.fail_usage("option '--placement': entry %d: expected a device from 0 to %d, got '%s'", #devices + 1,
        #problem.cluster.devices - 1, word)
    end
    devices[#devices + 1] = device + 1
  end
  if #devices ~= graph.operators and #devices ~= graph.units then
    util.fail_usage("option '--placement': expected %d devices (one per operator)%s, got %d", graph.operators,
      graph.units ~= graph.operators and (' or %d (one per unit)'):format(graph.units) or '', #devices)
  end
  if #devices ~= graph.operators then
    return problem:placement_by_unit(function(unit) return devices[unit] end)
  end
  local placement = problem:placement()
  for i, op in ipairs(file_order(graph)) do placement[op] = devices[i] end
  return placement
end

--- Returns the devices (from 0) of all operators in file order.
function cli.placement_of(problem, placement)
  return util.map(file_order(problem.graph), function(op) return placement[op] - 1 end)
end

--- Returns the step time of a strategy under Doppler's rules in the integer units of its files.
function cli.makespan(found) return math.floor(found.metrics.step_time_s * 1e9 + 0.5) end

--- Saves a strategy in the run folder of --run, for commands without a search. Does nothing without --run.
function cli.keep(found)
  if not run_state.settings.name then return end
  local facts = comparison.facts(found)
  facts.model, facts.cluster, facts.method = found.problem.graph.name, found.problem.cluster.name, found.method
  run_state.keep_result('simulation', facts, nil, ('A step takes %.6g s.'):format(found.metrics.step_time_s),
    found.problem)
end

--- Prints the basis of the numbers: which costs --cost gives, what a re-evaluated strategy was made for, the
--- calibration.
function cli.print_basis(problem, found)
  local costs = problem:cost_text()
  if costs then print('costs           ' .. costs) end
  if found.reevaluated then print('reevaluated     ' .. found.reevaluated) end
  print(calibrate.text(problem.cluster.basis))
end

--- Prints what each device computes and keeps; 4 or more neighbors of equal numbers have one line.
local function print_devices(devices, m)
  local first = 1
  for d = 1, m.device_count do
    local function same(one, other)
      return m:compute_busy_s(one) == m:compute_busy_s(other) and m:memory_bytes(one) == m:memory_bytes(other)
    end
    if d == m.device_count or not same(d, d + 1) then
      local ends = d - first >= 3 and d or first
      for e = first, ends == d and first or d do
        local name = ends == d and d > first and ('%s to %s'):format(devices[e].name, devices[d].name)
          or devices[e].name
        print(('%-15s %scomputes %.6g s, peak memory %s'):format(name, ends == d and d > first and 'each ' or '',
          m:compute_busy_s(e), core.format_bytes(m:memory_bytes(e))))
      end
      first = d + 1
    end
  end
end

--- Prints a strategy as text, or as JSON with the fields of scripts/simulate.lua. print_more: prints what follows as
--- text; the basis of all numbers comes last.
function cli.report(options, found, further, print_more)
  local problem = found.problem
  local facts = comparison.facts(found)
  if options.json then
    facts.model, facts.cluster, facts.method = problem.graph.name, problem.cluster.name, found.method
    facts.placement = cli.placement_of(problem, found.placement)
    facts.schedule, facts.micro_batches = found.schedule, found.micro_batches
    facts.reevaluated, facts.cost = found.reevaluated, problem:cost_text()
    if problem.rules == 'doppler' then facts.makespan = cli.makespan(found) end
    for key, value in util.sorted_pairs(calibrate.data(problem.cluster.basis)) do facts[key] = value end
    for key, value in util.sorted_pairs(further or {}) do facts[key] = value end
    print(core.to_json(facts))
    return
  end
  local m = found.metrics
  print(('%s on %s: %d operators, %d devices (simulated)'):format(problem.graph.name, problem.cluster.name,
    problem.graph.operators, #problem.cluster.devices))
  print(('step time       %.6g s, %.2f times the lower bound of %.6g s%s'):format(m.step_time_s,
    m.step_time_s / facts.lower_bound_s, facts.lower_bound_s,
    found.mesh and ', of all placements of the graph that its mesh lowers to' or ''))
  if problem.rules == 'doppler' then print(('makespan        %.0f'):format(cli.makespan(found))) end
  print_devices(problem.cluster.devices, m)
  print(('communication   %s, the busiest device %s'):format(core.format_bytes(m.total_communication_bytes),
    core.format_bytes(m.peak_communication_bytes)))
  print(('fits            %s'):format(m.feasible and 'yes' or 'no: ' .. found:infeasibility().text))
  for key, value in util.sorted_pairs(further or {}) do print(('%-15s %s'):format(key, tostring(value))) end
  if print_more then print_more() end
  cli.print_basis(problem, found)
end

return cli
