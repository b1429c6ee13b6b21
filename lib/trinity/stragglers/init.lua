-- trinity.stragglers: steps of a strategy with noise, slow devices, unequal sequences and unequal experts; what they
-- wait for, and remedies; recorded steps replayed. trinity.stragglers(strategy, options) is trinity.stragglers.run().

local check = require 'trinity.base.check'
local contexts = require 'trinity.stragglers.contexts'
local csv = require 'trinity.base.csv'
local experts = require 'trinity.stragglers.experts'
local lengths_of = require 'trinity.stragglers.lengths'
local options_of = require 'trinity.base.options'
local parallelism = require 'trinity.strategy.parallelism'
local random = require 'trinity.base.random'
local remedies = require 'trinity.stragglers.remedies'
local statistics = require 'trinity.base.statistics'
local step_of = require 'trinity.stragglers.step'
local tasks = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

---@class trinity.StragglersModule
---@overload fun(strategy: trinity.Strategy, options?: trinity.StragglerOptions): trinity.Stragglers
local stragglers = {
  expert_load = require('trinity.stragglers.experts').expert_load,
  replay = require 'trinity.stragglers.replay',
}

local declared = options_of.declare('trinity.StragglerOptions', { help = 'Options of trinity.stragglers.',
  { 'noise', 'number', 0.02, least = 0, most = 10,
    help = 'coefficient of variation of one pass of one micro-batch on a device (log-normal, mean unchanged)' },
  { 'experts', experts.declared, otherwise = 'an even load', help = 'load of experts, as for expert_load' },
  { 'lengths', 'any', as = 'string|fun(stream: trinity.RandomStream): integer', otherwise = "the network's",
    help = 'tokens per sequence: a CSV file with columns length and count, or a function that samples one' },
  { 'fill', options_of.words('trinity.SequenceFill', { 'padded', 'packed' }), 'padded',
    help = 'sequences of a micro-batch: padded to the longest, or packed up to the full length' },
  { 'deal', options_of.words('trinity.SequenceDeal', { 'drawn', 'sorted', 'balanced' }), 'drawn',
    help = 'order of sequences over replicas: as sampled, sorted by length, or balanced by work' },
  { 'context', options_of.words('trinity.ContextChoice', { 'fixed', 'per_micro_batch' }), 'fixed',
    help = "context-parallel degree: the mesh's, or for every micro-batch the best divisor (tokens are exchanged)" },
  { 'draws', 'integer', 200, least = 1, most = 1e6, help = 'number of steps to sample' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'random seed' },
  { 'remedies', 'boolean', true, help = 'also simulate remedies' },
})


--- Returns a row per stage and replica, the mean of the longest time that one of its collectives waits for backward
--- passes of other replicas, and a function that adds a sampled step.
local function replica_waits(step, mesh, draws)
  local rows, waiting, at = {}, {}, step.low and step.low.coordinates
  for k = 1, mesh and (mesh.data or 1) > 1 and mesh.data * (mesh.pipeline or 1) or 0 do
    rows[k] = { stage = math.ceil(k / mesh.data), replica = (k - 1) % mesh.data + 1, time_s = 0 }
  end
  local function is_pass(i) return step.nodes[i].kind == 'backward' end
  for i, node in ipairs(#rows > 0 and step.nodes or {}) do
    if node.kind == 'collective' then waiting[#waiting + 1] = util.filtered(step.earlier[i], is_pass) end
  end
  return rows, function(start_of, drawn_s)
    local longest_s = {}
    for _, passes in ipairs(waiting) do
      local ready_s, latest_s = {}, {}
      for _, i in ipairs(passes) do
        local device, end_s = step.nodes[i].device, start_of(i) + drawn_s[i]
        local stage, row = at.pipeline[device] + 1, at.pipeline[device] * mesh.data + at.data[device] + 1
        ready_s[row], latest_s[stage] = math.max(ready_s[row] or 0, end_s), math.max(latest_s[stage] or 0, end_s)
      end
      for row, end_s in pairs(ready_s) do -- in any order: maxima
        longest_s[row] = math.max(longest_s[row] or 0, latest_s[rows[row].stage] - end_s)
      end
    end
    for k, row in ipairs(rows) do row.time_s = row.time_s + (longest_s[k] or 0) / draws end
  end
end

--- Samples steps of a strategy with random times of every pass on a device, in an unchanged order. Returns mean and
--- 95th percentile of the step time, what the step waits for, and remedies for slow devices. Example:
--- `trinity.stragglers(strategy, { noise = 0.05 }).p95_s`
---@param strategy trinity.Strategy
---@param options? trinity.StragglerOptions
---@return trinity.Stragglers
function stragglers.run(strategy, options)
  local owner = 'trinity.stragglers.run'
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  options = declared:read(owner, 2, 'options', options)
  local cluster, step = strategy.problem.cluster, step_of(owner, strategy)
  if options.experts then step.time_s = experts.load(owner, strategy, step, options.experts).time_s end
  local step_s, at = step.run(step.time_s), step.low and step.low.coordinates
  local sigma, drawn_s, draws_s = math.sqrt(math.log(1 + options.noise ^ 2)), {}, {}
  local pass_of = util.map(step.nodes, function(node) -- a micro-batch in a stage on a device
    return node.devices and 'message'
      or ('%d/%d/%s/%d'):format(node.device, node.micro_batch, node.kind, node.stage or 0)
  end)
  local lengths, used = lengths_of(owner, step, strategy, options)
  local rows, add_replicas = replica_waits(step, strategy.mesh, options.draws)
  local add, waits = tasks.sums(function(node)
    return { device = cluster.devices[node.device].name, type = node.kind, time_s = 0,
      stage = at and at.pipeline[node.device] + 1, replica = at and at.data[node.device] + 1 }
  end)
  for draw = 1, options.draws do
    local stream, factors, factor = random(options.seed, 'stragglers', draw), { message = 1 }, lengths(draw)
    for i, pass in ipairs(pass_of) do
      factors[pass] = factors[pass] or math.exp(sigma * stream:normal() - sigma * sigma / 2)
      local scale, more_s = factor(i)
      drawn_s[i] = step.time_s[i] * factors[pass] * scale + more_s
    end
    stream:close()
    local sampled_s, path, start_of = step.run(drawn_s)
    draws_s[draw] = sampled_s
    add_replicas(start_of, drawn_s)
    for _, i in ipairs(path) do
      local node = step.nodes[i]
      add(('%d/%s'):format(node.device, node.kind), drawn_s[i] / options.draws, node)
    end
  end
  local sorted = util.merged(draws_s)
  table.sort(sorted)
  local micro_batches = (strategy.mesh and strategy.mesh.data or 1) * (strategy.micro_batches or 1)
  for degree, count in util.sorted_pairs(used) do used[degree] = count / (micro_batches * options.draws) end
  return { step_time_s = step_s, mean_s = statistics.mean(draws_s), p50_s = util.median(sorted),
    p95_s = sorted[math.ceil(0.95 * #sorted)], draws_s = draws_s, degrees = used, waits = waits(), replica_waits = rows,
    error_s = (statistics.deviation(draws_s) or 0) / math.sqrt(#draws_s),
    remedies = options.remedies and remedies(strategy) or {} }
end

--- Predicts the step with sampled sequences for every divisor of the context-parallel degree (a smaller one means more
--- replicas with fewer micro-batches each), and for the best degree of every micro-batch within groups. Returns what is
--- possible and fits into memory, shortest mean first. Raises an error without a mesh or lengths. Example:
--- `trinity.stragglers.context_degrees(strategy, { lengths = 'lengths.csv' })[1].what`
---@param strategy trinity.Strategy
---@param options trinity.StragglerOptions
---@return trinity.ContextDegree[]
function stragglers.context_degrees(strategy, options)
  local owner = 'trinity.stragglers.context_degrees'
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  if not check.argument(owner, 2, 'options', options, 'table').lengths then
    check.refuse(owner, 'option', 'lengths', 'expected a histogram or a function, got none')
  end
  local plan, rows = parallelism.fields(owner, strategy, strategy.problem.graph), {}
  local function add(what, found, context)
    local sampled = stragglers.run(found, util.merged(options, { context = context, remedies = false }))
    rows[#rows + 1] = util.merged({ what = what, mesh = found.mesh, micro_batches = found.micro_batches or 1 },
      util.picked(sampled, { 'mean_s', 'p50_s', 'p95_s', 'error_s', 'degrees' }))
  end
  local whole = strategy.mesh.context or 1
  for _, degree in ipairs(contexts.degrees(whole)) do
    local found = degree == whole and strategy or csv.attempt(strategy.problem.strategy, strategy.problem,
      util.merged(plan, { micro_batches = (strategy.micro_batches or 1) * degree / whole,
        mesh = util.merged(plan.mesh, { context = degree, data = (plan.mesh.data or 1) * whole / degree }) }))
    if found and found.metrics.feasible then add(('context %d'):format(degree), found, 'fixed') end
  end
  if whole > 1 then add('one per micro-batch', strategy, 'per_micro_batch') end
  table.sort(rows, util.by('mean_s', 'what'))
  return rows
end

return setmetatable(stragglers, { __call = function(_, ...) return stragglers.run(...) end })
