-- trinity.profile.trace: times of a training step from PyTorch's profiler, by operator of a graph.
--
--   local graph = trinity.model 'network.pt2'              -- by torch.export, including the loss
--   local trace = trinity.profile.trace(graph, { kineto = 'step.kineto.json' })
--   local problem = trinity.problem { graph = graph, cluster = cluster, cost = trace:cost() }
--
-- The profile needs with_stack = True and a schedule. attribution.lua attributes time to operators. A trace with GPU
-- kernels is refused, because the times of its operators are times of launches.

local attribution = require 'trinity.profile.trace.attribution'
local check = require 'trinity.base.check'
local files = require 'trinity.profile.trace.files'
local modules = require 'trinity.profile.trace.modules'
local util = require 'trinity.base.util'

--- The times of a traced step.
---@class trinity.Trace
---@since 0.1.0
---@field path string path of Kineto's file
---@field step_name string ProfilerStep#N
---@field step_time_s number
---@field operator_time_s number time of outermost operators and of the optimizer, without gaps
---@field attributed number fraction of operator_time_s attributed to operators of the graph
---@field named number fraction of forward and backward operator time attributed to operators of the same name
---@field joined? number fraction of Kineto's operators in the execution trace
---@field modules trinity.TraceTimes[] by path, in order of first use
---@field operators trinity.TraceTimes[] by name, forward operators of the graph with a time
---@field optimiser_s number time of calls of the optimizer
---@field other_s number time of no operator
---@field times table<string, table> all operators of the graph by name: time_s
local Trace = { __name = 'trace' }
Trace.__index = Trace

---@class trinity.TraceTimes
---@field name string name of the operator, or path of the module ('': outside of modules)
---@field forward_s number
---@field backward_s number
---@field update_s number time of gradient accumulation

---@class trinity.TraceOptions
---@field kineto string file from export_chrome_trace
---@field execution_trace? string file from ExecutionTraceObserver for the same step, whose records are compared

function Trace.__tostring(self)
  return ('trace: %s of %s, %.4g s, %.1f %% of operator time attributed'):format(self.step_name, self.path,
    self.step_time_s, 100 * self.attributed)
end

local fields = { forward = 'forward_s', backward = 'backward_s', accumulate = 'update_s' }

--- Adds a span to the times of a name.
local function add(list, by_name, name, span)
  local times = by_name[name]
  if not times then
    times = { name = name, forward_s = 0, backward_s = 0, update_s = 0 }
    by_name[name], list[#list + 1] = times, times
  end
  times[fields[span.phase]] = times[fields[span.phase]] + span.time_s
end

--- Returns times by operator and module, and the fractions.
local function sum_up(self, graph, spans)
  local by_operator, by_module, attributed_s, named_s, own_s = {}, {}, 0, 0, 0
  for _, span in ipairs(spans) do
    local known = span.phase == 'update' or span.phase == 'accumulate' or span.operator ~= nil
    self.operator_time_s = self.operator_time_s + span.busy_s
    if known then attributed_s = attributed_s + span.busy_s else self.other_s = self.other_s + span.time_s end
    if span.phase == 'update' then
      self.optimiser_s = self.optimiser_s + span.time_s
    elseif span.forward then
      local op = graph:operator(span.forward)
      add(self.operators, by_operator, op.name, span)
      add(self.modules, by_module, op.attributes.module or '', span)
    end
    if span.phase == 'forward' or span.phase == 'backward' then
      own_s, named_s = own_s + span.busy_s, named_s + (span.named and span.busy_s or 0)
    end
  end
  self.attributed = self.operator_time_s > 0 and attributed_s / self.operator_time_s or 0
  self.named = own_s > 0 and named_s / own_s or 0
end

--- Returns seconds by the names of all operators of the graph.
local function costs_of(graph, spans, of)
  local times, shared_s = {}, 0
  for o = 1, graph.operators do
    local op = graph:operator(o)
    times[op.name] = { time_s = 0 }
  end
  for _, span in ipairs(spans) do
    if span.operator then
      local time = times[graph:operator(span.operator).name]
      time.time_s = time.time_s + span.time_s
    elseif span.phase == 'update' or span.phase == 'accumulate' then
      shared_s = shared_s + span.time_s
    end
  end
  for _, update in ipairs(of.updates) do
    local time = times[graph:operator(update.number).name]
    time.time_s = time.time_s + shared_s * update.bytes / math.max(1, of.traffic_bytes)
  end
  return times
end

--- Returns a cost function (see trinity.problem) with the seconds of each operator of the graph in the step, divided by
--- the device's speed; 0 for operators without a time of their own. Example: `trinity.problem { graph = graph, cluster
--- = cluster, cost = trace:cost() }`
---@return fun(op: trinity.Operator, device: trinity.Device, default_s: number): number?
function Trace:cost()
  local times = self.times
  return function(op, device)
    local of = times[op.name]
    return of and of.time_s / device.speed
  end
end

check.methods(Trace, 'trinity.Trace')

local trace = {}

local rules = { kineto = 'string', execution_trace = 'string' }

--- Reads a training step from PyTorch's profiler and attributes its time to the operators of a graph by module paths.
--- Raises an error that names the file and field if it is malformed. Example: `trinity.profile.trace(graph, { kineto =
--- 'step.kineto.json' })`
---@param graph trinity.Graph training step from a .pt2 file of the same module
---@param options trinity.TraceOptions
---@return trinity.Trace
function trace.read(graph, options)
  local owner = 'trinity.profile.trace'
  check.object(owner, 1, 'graph', graph, 'graph')
  check.needed(owner, check.fields(owner, check.argument(owner, 2, 'options', options, 'table'), rules), 'kineto')
  check.path(owner, 'option', 'kineto', options.kineto)
  local root = modules.of_graph(graph)
  if not root or not graph.training then
    util.fail("%s: argument 1 'graph': expected a training step with module paths, as from a .pt2 file, got %s",
      owner, root and 'a forward pass' or 'a graph without paths')
  end
  local step, events = files.kineto(options.kineto)
  local joined
  if options.execution_trace ~= nil then
    joined = files.join(check.path(owner, 'option', 'execution_trace', options.execution_trace), events)
  end
  local spans, of = attribution.spans(graph, root, step, events)
  local made = { path = options.kineto, step_name = step.name, step_time_s = step.duration * 1e-6, operator_time_s = 0,
    joined = joined, modules = {}, operators = {}, optimiser_s = 0, other_s = 0, times = costs_of(graph, spans, of) }
  sum_up(made, graph, spans)
  return setmetatable(made, Trace)
end

return trace
