-- The timeline of a pipeline's stages for runs and reports: passes of micro-batches.

local model = require 'trinity.graph.model'
local pipeline_machine = require 'trinity.pipeline.machine'
local problems = require 'trinity.strategy.problem'

local pipeline_schedule = {}

local phases = { forward = 0, backward = 1, update = 2 }

--- Returns the passes of a timeline: a list of { device = (from 0), micro_batch =, phase = 0 forward, 1 backward or 2
--- update, start_ns =, end_ns = (of the first and last operator), busy_ns = }, by device and time.
function pipeline_schedule.spans(timeline, graph)
  local operators, spans, list, phase_of = graph.operators, {}, {}, {}
  for op = 1, operators do phase_of[op] = phases[graph:operator(op).phase] or 0 end
  for task = 1, timeline.tasks do
    local op, start_s, end_s = (task - 1) % operators + 1, timeline.start_s[task], timeline.end_s[task]
    if end_s == end_s and end_s > start_s then
      local device, part = timeline.device[task] - 1, math.floor((task - 1) / operators) + 1
      local key = (device * timeline.micro_batches + part) * 3 + phase_of[op]
      local span = spans[key]
      if not span then
        span = { device = device, micro_batch = part, phase = phase_of[op], start_ns = start_s * 1e9, end_ns = 0,
          busy_ns = 0 }
        spans[key], list[#list + 1] = span, span
      end
      span.start_ns, span.end_ns = math.min(span.start_ns, start_s * 1e9), math.max(span.end_ns, end_s * 1e9)
      span.busy_ns = span.busy_ns + (end_s - start_s) * 1e9
    end
  end
  table.sort(list, function(a, b)
    if a.device ~= b.device then return a.device < b.device end
    if a.start_ns ~= b.start_ns then return a.start_ns < b.start_ns end
    return a.phase * 1e6 + a.micro_batch < b.phase * 1e6 + b.micro_batch
  end)
  return list
end

--- Returns the stage of every operator, which is also its device: the stage of its unit's forward operators; nil if
--- stages have several devices or the result lacks operators.
local function stages_of(problem, found)
  local stage_of_name, stage_of_unit = {}, {}
  for s, stage in ipairs(found.stages) do
    if (stage.devices or 1) > 1 or (stage.first_device or s) < 1 then return nil end
    for _, node in ipairs(stage.nodes) do stage_of_name[found.nodes[node]] = s end
  end
  local graph = problem.graph
  for op = 1, graph.operators do
    local unit = graph.unit_of[op]
    stage_of_unit[unit] = stage_of_unit[unit] or stage_of_name[graph:operator(op).name]
  end
  local stages = problem:placement()
  for op = 1, graph.operators do
    local stage = stage_of_unit[graph.unit_of[op]]
    if not stage then return nil end
    stages[op] = stage
  end
  return stages
end

--- Simulates a result of trinity.pipeline for a network (trinity's, ONNX, or built-in) with schedule 1F1B and twice as
--- many micro-batches as stages. Returns spans and a name; nil for a file with costs, for stages on several devices, or
--- for more stages than a whole cluster has devices. `options` are the model's.
function pipeline_schedule.of(found, source, cluster_name, options)
  if source:match '%.txt$' or source:match '%.json$' or #found.stages < 2 then return nil end
  local cluster, whole = pipeline_machine.named(cluster_name)
  if not whole then cluster = model.cluster(('%sx%d'):format(cluster_name, #found.stages)) end
  if #cluster.devices < #found.stages then return nil end
  local problem = problems.new { graph = model.load(source, options), cluster = cluster, rules = { memory = 'none' } }
  local stages, micro_batches = stages_of(problem, found), 2 * #found.stages
  if not stages then return nil end
  local timeline = problem:timeline { placement = stages, stage = stages, schedule = '1f1b',
    micro_batches = micro_batches }
  local spans = pipeline_schedule.spans(timeline, problem.graph)
  timeline:close()
  return spans, ('1F1B, %d micro-batches on %s'):format(micro_batches, problem.cluster.name)
end

return pipeline_schedule
