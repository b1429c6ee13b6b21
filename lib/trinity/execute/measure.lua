-- trinity.profile.measure: measures a profile (trinity.profile describes it).

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local file = require 'trinity.profile.file'
local fit = require 'trinity.profile.fit'
local model = require 'trinity.graph.model'
local object = require 'trinity.profile.object'
local problems = require 'trinity.strategy.problem'
local random = require 'trinity.base.random'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local measure = {}

local function kind_of(name) return name:match '^(%a+):' or name end

--- Returns the description of a cluster of `devices` with default costs.
local function plain_cluster(devices)
  local spec = { name = 'profile', queue = 'receiver', device_types = { any = { peak_flops_per_s = { float32 = 1e9 },
    memory_bandwidth_bytes_per_s = 1e9, memory_bytes = 2 ^ 50 } }, devices = {}, links = {} }
  for d, name in ipairs(devices) do
    spec.devices[d] = { name = name, type = 'any' }
    for e = 1, d - 1 do
      spec.links[#spec.links + 1] = { from = devices[e], to = name, bandwidth_bytes_per_s = 1e9 }
    end
  end
  return spec
end

--- Adds the time from every operator's start, of every micro-batch, to the next start on the worker to spans[op], of a
--- step whose operators are all on one.
function measure.add_spans(spans, took)
  local tasks = {}
  for task = 1, #took.start_s do
    if took.end_s[task] > 0 then tasks[#tasks + 1] = { took.start_s[task], took.end_s[task], task } end
  end
  table.sort(tasks, util.by(1, 2, 3))
  for i, task in ipairs(tasks) do
    local after = tasks[i + 1] and tasks[i + 1][1] or math.max(task[2], took.step_time_s)
    table.insert(spans[(task[3] - 1) % #spans + 1], after - task[1])
  end
end

--- Returns operator times: medians, scaled so that a step of `steps` takes step_s. (Other processes disturb few
--- operators of a step, but some in every step, so the medians alone add up to less than a step.)
function measure.operator_times(spans, steps, step_s)
  local times, sum = {}, 0
  for op, list in ipairs(spans) do
    times[op] = #list > 0 and util.median(list) or 0
    sum = sum + times[op] * (#list / steps)
  end
  return util.map(times, function(time_s) return time_s * step_s / sum end)
end

--- Returns the simulated start of each operator of a placement, which is the order of execution. (By number, all
--- updates would come last, long after their gradients have left the caches.)
function measure.order_of(problem, placement)
  local timeline = problem:timeline(placement)
  local order = array.double(problem.graph.operators)
  for op = 1, problem.graph.operators do order[op] = timeline.start_s[op] end
  timeline:close()
  return order
end

--- Makes executors of the whole graph on one device each, in simulation order.
local function executors(graph, devices, seed)
  local problem = problems.new { graph = graph, cluster = model.cluster(plain_cluster(devices)) }
  local list = {}
  for d = 1, #devices do
    local placement = array.filled(graph.operators, d)
    list[d] = core.executor(graph.handle, placement, #devices, measure.order_of(problem, placement),
      { seed = seed, devices = devices })
  end
  return list
end

--- Steps of all devices of a type: `spans` per operator, and step times per device.
local function new_record(graph, devices)
  local function empty() return {} end
  return { spans = util.listed(graph.operators, empty), steps = util.listed(devices, empty) }
end

local function add_step(record, device, took)
  measure.add_spans(record.spans, took)
  table.insert(record.steps[device], took.step_time_s)
end

local function step_time_s(record, device) return util.median(record.steps[device]) end

--- Returns operator times, and the step time of the mean device, to which they are scaled.
local function operator_times(record)
  local mean = 0
  for d = 1, #record.steps do mean = mean + step_time_s(record, d) / #record.steps end
  return measure.operator_times(record.spans, #record.spans[1], mean), mean
end

local Kind = {}
Kind.__index = Kind

--- Measures the devices of a type: each alone, and all while each runs the whole graph. Both sorts of steps alternate,
--- so that other processes disturb both equally.
local function new_kind(graph, kind, devices, seed)
  return setmetatable({ graph = graph, kind = kind, devices = devices, executors = executors(graph, devices, seed),
    alone = new_record(graph, #devices), together = new_record(graph, #devices) }, Kind)
end

--- Before each counted step there is an uncounted one of the same sort, so that caches have the contents of consecutive
--- steps.
function Kind:visit(counted)
  local list = self.executors
  for d, executor in ipairs(list) do
    executor:step()
    local took = executor:step()
    if counted then add_step(self.alone, d, took) end
  end
  if #list == 1 then return end
  core.step_together(list)
  for d, took in ipairs(core.step_together(list)) do
    if counted then add_step(self.together, d, took) end
  end
end

--- Returns for the counted steps, per operator: times alone, times together, and the speed of every device.
function Kind:times()
  local alone, mean = operator_times(self.alone)
  local together, speeds = alone, {}
  if #self.executors > 1 then together = operator_times(self.together) end
  for d = 1, #self.devices do speeds[d] = mean / step_time_s(self.alone, d) end
  return alone, together, speeds
end

--- Returns the slowdown of operators together relative to alone: in total, and by cost key in `operators`.
local function contention(graph, alone, together, operators)
  local sums, all = {}, { alone = 0, together = 0 }
  for op = 1, graph.operators do
    local key = core.cost_key(graph.handle, op)
    sums[key or ''] = sums[key or ''] or { alone = 0, together = 0 }
    for _, sum in ipairs { sums[key or ''], all } do
      sum.alone, sum.together = sum.alone + alone[op], sum.together + together[op]
    end
  end
  for key, of in util.sorted_pairs(operators) do of.contention = math.max(1, sums[key].together / sums[key].alone) end
  return math.max(1, all.together / all.alone)
end

--- Returns samples for the fit: operators that the cost model covers, with its inputs.
local function samples_of(graph, times)
  local samples = {}
  local problem = problems.new { graph = graph, cluster = model.cluster(plain_cluster { 'cpu:0' }),
    cost = function(op, _, default_s)
      if default_s > 0 then samples[op.name] = op end
    end }
  problem:close()
  local list = {}
  for op = 1, graph.operators do
    local about = samples[graph:operator(op).name]
    local key = core.cost_key(graph.handle, op)
    if about and key and times[op] > 0 then
      list[#list + 1] = { key = key, flops = about.flops, bytes = about.traffic_bytes,
        time_s = times[op] }
    end
  end
  return list
end

--- Returns the profile entry of a device type from the counted steps, and the speeds of its devices.
function Kind:describe(gpu_memory_bytes)
  local graph, times, together, speeds = self.graph, self:times()
  local fitted, by_name = fit.operators(samples_of(graph, times), self.rates), {}
  for op = 1, graph.operators do by_name[graph:operator(op).name] = times[op] end
  local described = { operator_time_s = by_name,
    contention = contention(graph, times, together, fitted.operators),
    memory_bytes = self.kind == 'cpu' and math.floor(core.describe_machine().memory_bytes / #self.devices)
      or gpu_memory_bytes,
    peak_flops_per_s = self.rates.flops_per_s, memory_bandwidth_bytes_per_s = self.rates.memory_bytes_per_s,
    launch_s = fitted.launch_s, compute_efficiency = fitted.compute_efficiency or 1,
    memory_efficiency = fitted.memory_efficiency or 1, operators = fitted.operators, residuals = fitted.residuals }
  return described, speeds
end

local function measure_link(from, to, sizes, repeats)
  local times, points = core.measure_copies(from, to, sizes, repeats), {}
  for i, bytes in ipairs(sizes) do points[i] = { bytes = bytes, time_s = times[i] } end
  local fitted = fit.link(points)
  return { from = from, to = to, bytes = sizes, time_s = times, latency_s = fitted.latency_s,
    bandwidth_bytes_per_s = fitted.bandwidth_bytes_per_s, residuals = fitted.residuals }
end

-- Executes the graph with units on random devices and measures, per pair of devices, the time of copies minus bytes /
-- bandwidth. (Consecutive equal copies find everything in the caches; copies between kernels take several times as long
-- to start.)
local Copies = {}
Copies.__index = Copies

local function new_copies(graph, devices, seed)
  local problem = problems.new { graph = graph, cluster = model.cluster(plain_cluster(devices)) }
  local stream = random(seed, 'profile copies')
  local placement = problem:placement_by_unit(function() return stream:integer(#devices) end)
  return setmetatable({ devices = devices, extra_s = {}, executor = core.executor(graph.handle, placement, #devices,
    measure.order_of(problem, placement), { seed = seed, devices = devices }) }, Copies)
end

function Copies:visit(counted, links)
  self.executor:step()
  local took = self.executor:step()
  if not counted then return end
  local link_of = {}
  for _, link in ipairs(links) do link_of[link.from .. ' ' .. link.to] = link end
  for _, copy in ipairs(took.copies) do
    local name = self.devices[copy.from] .. ' ' .. self.devices[copy.to]
    local extra_s = copy.end_s - copy.start_s - copy.bytes / link_of[name].bandwidth_bytes_per_s
    self.extra_s[name] = self.extra_s[name] or {}
    table.insert(self.extra_s[name], extra_s)
  end
end

--- Returns the latency of a link: the median over copies within steps, or the previous value if there are none.
function Copies:latency_s(link)
  local list = self.extra_s[link.from .. ' ' .. link.to]
  return list and math.max(0, util.median(list)) or link.latency_s
end

--- Returns sizes of copies from 1 KiB to `largest`, each four times the previous one.
function measure.copy_sizes(largest)
  local sizes, bytes = {}, 1024
  while bytes <= largest do
    sizes[#sizes + 1] = bytes
    bytes = 4 * bytes
  end
  return sizes
end

local declared = options_of.declare('trinity.ProfileOptions', { help = 'Options of trinity.profile.measure.',
  { 'devices', 'table', { 'cpu:0' }, as = 'string[]', help = "devices to measure: 'cpu:0', 'cuda:0', ..." },
  { 'steps', 'integer', 10, least = 1, help = 'measured steps; the profile has their medians' },
  { 'warm_up', 'integer', 5, least = 0, help = 'first steps, which are not measured' },
  { 'sizes', 'table', as = 'number[]', otherwise = '1 KiB to 256 MiB, each four times the last',
    help = 'sizes of copies in bytes' },
  { 'copies', 'integer', 7, least = 1, most = 10000, help = 'copies per size' },
  { 'seed', 'integer', 1, least = 0, help = 'random seed of weights and data' },
  { 'gpu_memory_bytes', 'number', 2 ^ 34, above = 0, help = 'memory of one GPU' },
  { 'model', 'string', otherwise = "the graph's", help = 'name of the model in the profile' },
  { 'batch_size', 'integer', 0, least = 0, help = 'batch size in the profile' },
  { 'quiet', 'boolean', false, help = 'print nothing on standard error' },
  { 'seconds', 'number', above = 0, otherwise = 'no limit', help = 'time limit after which no step starts, but at '
    .. 'least one is measured' },
})

local function say(options, text, ...)
  if not options.quiet then progress.note(text:format(...)) end
end

--- Returns the checked options with defaults.
local function complete(owner, graph, options)
  local chosen = declared:read(owner, 2, 'options', options)
  chosen.model, chosen.sizes = chosen.model or graph.name, chosen.sizes or measure.copy_sizes(2 ^ 28)
  for _, key in ipairs { 'devices', 'sizes' } do
    check.list(owner, 'option', key, chosen[key], key == 'sizes' and 'number' or 'string')
    if #chosen[key] == 0 then check.refuse(owner, 'option', key, 'expected at least one') end
  end
  return chosen
end

local Session = {}
Session.__index = Session

--- Starts measuring (arguments of measure.run): rates and copies immediately, operators by session:visit().
function measure.start(owner, graph, options)
  check.object(owner, 1, 'graph', graph, 'graph')
  options = complete(owner, graph, options)
  local self = setmetatable({ graph = graph, options = options, devices = {}, kinds = {}, links = {}, counted = 0 },
    Session)
  local by_kind = {}
  for d, name in ipairs(options.devices) do
    local kind = kind_of(name)
    self.devices[d] = { name = name, kind = kind }
    by_kind[kind] = by_kind[kind] or {}
    table.insert(by_kind[kind], name)
  end
  for kind, names in util.sorted_pairs(by_kind) do
    say(options, 'profile: %d operators on %s', graph.operators, names[1])
    local rates = core.measure_rates(names[1])
    self.kinds[kind] = new_kind(graph, kind, names, options.seed)
    self.kinds[kind].rates = rates
  end
  for _, from in ipairs(options.devices) do
    for _, to in ipairs(options.devices) do
      if from ~= to then
        say(options, 'profile: copies from %s to %s', from, to)
        self.links[#self.links + 1] = measure_link(from, to, options.sizes, options.copies)
      end
    end
  end
  if #options.devices > 1 then self.copies = new_copies(graph, options.devices, options.seed) end
  return self
end

--- Executes the graph once on every device type, counted or as warm-up.
function Session:visit(counted)
  for _, kind in util.sorted_pairs(self.kinds) do kind:visit(counted) end
  if self.copies then self.copies:visit(counted, self.links) end
  if counted then self.counted = self.counted + 1 end
end

function Session:profile()
  local options, graph, kinds, speed_of = self.options, self.graph, {}, {}
  for name, kind in util.sorted_pairs(self.kinds) do
    local described, speeds = kind:describe(options.gpu_memory_bytes)
    kinds[name] = described
    for d, device in ipairs(kind.devices) do speed_of[device] = speeds[d] end
  end
  local devices = util.map(self.devices, function(device)
    return { name = device.name, kind = device.kind, speed = speed_of[device.name] }
  end)
  local links = {}
  for i, link in ipairs(self.links) do links[i] = util.merged(link, { latency_s = self.copies:latency_s(link) }) end
  return object.new('trinity.profile.measure', { format = file.format, version = file.version, trinity = core.version,
    date = os.date '!%Y-%m-%dT%H:%M:%SZ',
    machine = util.picked(core.describe_machine(), { 'processor', 'cores', 'memory_bytes' }),
    libraries = { torch = (core.describe_torch()), threads = 1 },
    model = { name = options.model, batch_size = options.batch_size, operators = graph.operators,
      fingerprint = graph.fingerprint },
    settings = { steps = self.counted, warm_up = options.warm_up, copies = options.copies },
    devices = devices, kinds = kinds, links = links })
end

function Session:close()
  for _, kind in util.sorted_pairs(self.kinds) do
    for _, executor in ipairs(kind.executors) do executor:close() end
  end
  if self.copies then self.copies.executor:close() end
end

--- Measures a training graph on devices of this machine: operator times on the first device of every type, copies
--- between every two devices, and the parameters of the cost model fitted to both. Ctrl-C ends it with the steps so
--- far, once one is measured (settings.steps is their number), and true as a second result. Example:
--- `trinity.profile.measure(graph, { devices = { 'cpu:0' }, steps = 3 })`
---@param graph trinity.Graph
---@param options? trinity.ProfileOptions
---@return trinity.Profile
---@return boolean stopped
function measure.run(graph, options)
  local session = measure.start('trinity.profile.measure', graph, options)
  local start_s, chosen = core.clock_s(), session.options
  local line = progress.new('profile', chosen.quiet)
  local function steps()
    for step = 1, chosen.warm_up + chosen.steps do
      if session.counted > 0 and chosen.seconds and core.clock_s() - start_s >= chosen.seconds then break end
      session:visit(step > chosen.warm_up)
      line:update { text = ('step %d/%d'):format(step, chosen.warm_up + chosen.steps) }
    end
  end
  core.begin_search()
  local ok, message = xpcall(steps, function(raised) return raised end)
  local stopped = core.stop_requested()
  core.end_search()
  line:finish()
  if not ok and not (stopped and session.counted > 0) then error(message, 0) end
  local found = session:profile()
  session:close()
  return found, stopped
end

return measure
