-- trinity.stragglers.run: effect of noise and slow devices on the step of a strategy, what the step waits for, and
-- remedies.

local check = require 'trinity.base.check'
local contexts = require 'trinity.stragglers.contexts'
local lengths_of = require 'trinity.stragglers.lengths'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local printed = require 'trinity.base.printed'
local random = require 'trinity.base.random'
local remedies = require 'trinity.stragglers.remedies'
local statistics = require 'trinity.base.statistics'
local step_of = require 'trinity.stragglers.step'
local tasks = require 'trinity.stragglers.tasks'
local util = require 'trinity.base.util'

local owner = 'stragglers.run'

local declared = options_of.declare('trinity.StragglerOptions', { help = 'Options of trinity.stragglers.',
  { 'noise', 'number', 0.02, least = 0, most = 10,
    help = 'coefficient of variation of the time of one pass of one micro-batch on a device (log-normal, mean '
      .. 'unchanged)' },
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

--- Waits of a step: its critical path by device, stage and type of work.
---@class trinity.StepWait
---@field device string device; for collectives the first member, for sends the sender
---@field stage? integer with a mesh: pipeline stage, from 1
---@field replica? integer with a mesh: replica, from 1
---@field type 'forward'|'backward'|'update'|'send'|'collective'
---@field time_s number mean over the samples

---@class trinity.Remedy
---@field what string
---@field step_time_s number without noise
---@field samples_per_s number
---@field gain number samples_per_s / samples_per_s of the strategy - 1
---@field stages? integer[] layers of every virtual stage, if layers move
---@field devices? integer[] devices of the mesh, if a replica is dropped
---@field micro_batches? integer micro-batches, if a replica is dropped

---@class trinity.Stragglers
---@field step_time_s number without noise, with the slow devices of the cluster
---@field mean_s number mean over the samples
---@field p50_s number median of the samples
---@field p95_s number 95th percentile of the samples
---@field error_s number standard error of the mean
---@field draws_s number[] sampled step times
---@field degrees table<integer, number> with option `lengths`: fraction of micro-batches by context-parallel degree
---@field waits trinity.StepWait[] longest time first
---@field remedies trinity.Remedy[] best first; empty unless the cluster has option `slow`

local result = printed.as('stragglers', { 'step_time_s', 'mean_s', 'p95_s' })
local wait = printed.as('wait', { 'device', 'stage', 'replica', 'type', 'time_s' })

local computes = { forward = true, backward = true, update = true }

--- Groups tasks with a common random factor: the pass of one micro-batch through one stage on a device.
local function passes_of(nodes)
  local pass_of, numbers, count = {}, {}, 0
  for i, node in ipairs(nodes) do
    pass_of[i] = 0
    if computes[node.kind] then
      local key = ('%d/%d/%s/%d'):format(node.device, node.micro_batch, node.kind, node.stage or 0)
      if not numbers[key] then
        count = count + 1
        numbers[key] = count
      end
      pass_of[i] = numbers[key]
    end
  end
  return pass_of, count
end

--- Returns for every node how its time depends on lengths ('linear', 'square', 'context' or nil), and the seconds of
--- one micro-batch on one device (lengths.lua). factor: of contexts.factors.
local function scaled_nodes(step, strategy, degrees, factor)
  local kind_of, at, mesh, operators = {}, step.low.coordinates, strategy.mesh, {}
  local work = { linear_s = 0, square_s = 0, context_s = {} }
  local passes = (mesh.data or 1) * (mesh.tensor or 1) * (mesh.pipeline or 1) * (mesh.context or 1)
    * (strategy.micro_batches or 1)
  for op = 1, step.operators do operators[op] = step.graph:operator(op) end
  for _, degree in ipairs(degrees) do work.context_s[degree] = 0 end
  for i, node in ipairs(step.nodes) do
    local op, devices, kind = operators[node.operator or 0], node.devices or { node.device }, nil
    local inside, type_name = true, op and op.type or ''
    for _, device in ipairs(devices) do inside = inside and at.data[device] == at.data[node.device] end
    if node.kind == 'forward' or node.kind == 'backward' then
      kind = type_name:find '^Attention' and 'square' or 'linear'
    elseif not (op and contexts.is_of_weights(op)) and (inside or type_name:find '^AllToAll') then
      kind = contexts.is_shared(at, devices) and inside and 'context' or 'linear'
    end
    local time_s = step.time_s[i] * #devices / passes
    kind_of[i] = kind
    if kind == 'context' then
      for degree, sum_s in util.sorted_pairs(work.context_s) do
        work.context_s[degree] = sum_s + time_s * factor(node, degree)
      end
    elseif computes[node.kind] and kind then work[kind .. '_s'] = work[kind .. '_s'] + time_s end
  end
  return kind_of, work
end

--- Returns a function: sample -> (node -> factor of its time by the lengths of its micro-batch, seconds to add), and
--- the number of micro-batches by degree, over samples.
local function by_lengths(step, strategy, options)
  local used = {}
  if options.lengths == nil then
    if options.context ~= 'fixed' then util.fail("%s: option 'context': expected option 'lengths' with it", owner) end
    return function() return function() return 1, 0 end end, used
  end
  if not strategy.mesh then util.fail("%s: option 'lengths': expected a strategy with a mesh", owner) end
  if options.fill == 'packed' and options.deal == 'sorted' then
    util.fail("%s: option 'deal': expected 'drawn' or 'balanced' with fill = 'packed', got 'sorted'", owner)
  end
  local degrees = options.context == 'fixed' and { strategy.mesh.context or 1 } or contexts.degrees(strategy)
  local factor, at = contexts.factors(step, strategy), step.low.coordinates
  local kind_of, work = scaled_nodes(step, strategy, degrees, factor)
  local waiting = {}
  if #degrees > 1 then work.switch_s, waiting = contexts.switching(step, strategy) end
  local deal = lengths_of(owner, strategy, options, work)
  return function(draw)
    local dealt = deal(random(options.seed, 'lengths', draw))
    for _, bins in util.sorted_pairs(dealt) do
      for _, bin in ipairs(bins) do used[bin.degree] = (used[bin.degree] or 0) + 1 end
    end
    return function(i)
      local node, kind, most = step.nodes[i], kind_of[i], 0
      if not kind then return 1, 0 end
      for _, device in ipairs(node.devices or { node.device }) do
        local bin = dealt[at.data[device]][node.micro_batch]
        most = math.max(most, kind == 'context' and bin.linear * factor(node, bin.degree) or bin[kind])
      end
      return most, waiting[i] and dealt[at.data[node.device]][node.micro_batch].switch_s or 0
    end
  end, used
end

--- Returns a function that adds a critical path to sums by device and type of work, and one that lists the sums.
local function waits_of(step, cluster, draws)
  local at = step.low and step.low.coordinates
  local add, list = tasks.sums(function(node)
    return wait { device = cluster.devices[node.device].name, type = node.kind, time_s = 0,
      stage = at and at.pipeline[node.device] + 1, replica = at and at.data[node.device] + 1 }
  end)
  return function(path)
    for _, i in ipairs(path) do
      local node = step.nodes[i]
      add(('%d/%s'):format(node.device, node.kind), step.tasks.time_s[step.tasks.position[i]] / draws, node)
    end
  end, list
end

--- Samples steps of a strategy with random times of every pass on a device, in an unchanged order. Returns mean and
--- 95th percentile of the step time, what the step waits for, and remedies for slow devices. Example:
--- `trinity.stragglers(strategy, { noise = 0.05 }).p95_s`
---@param strategy trinity.Strategy
---@param options? trinity.StragglerOptions
---@return trinity.Stragglers
return function(strategy, options)
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  options = declared:read(owner, 2, 'options', options)
  local step = step_of(owner, strategy)
  local pass_of, passes = passes_of(step.nodes)
  local sigma = math.sqrt(math.log(1 + options.noise ^ 2))
  local factors, draws_s = { [0] = 1 }, {}
  local add, waits = waits_of(step, strategy.problem.cluster, options.draws)
  local lengths, used = by_lengths(step, strategy, options)
  for draw = 1, options.draws do
    local stream = random(options.seed, 'stragglers', draw)
    for pass = 1, passes do factors[pass] = math.exp(sigma * stream:normal() - sigma * sigma / 2) end
    local factor = lengths(draw)
    for i = 1, #pass_of do
      local scale, more_s = factor(i)
      step.tasks:set(i, step.time_s[i] * factors[pass_of[i]] * scale + more_s)
    end
    local step_s, path = step.tasks:run()
    draws_s[draw] = strategy.metrics.step_time_s + (step_s - step.quiet_s) -- metrics: mean of a period of `sync.every`
    add(path)
    stream:close()
  end
  local sorted = util.merged(draws_s)
  table.sort(sorted)
  local replicas, micro_batches = strategy.mesh and strategy.mesh.data or 1, strategy.micro_batches or 1
  for degree, count in util.sorted_pairs(used) do used[degree] = count / (replicas * micro_batches * options.draws) end
  return result { step_time_s = strategy.metrics.step_time_s, mean_s = statistics.mean(draws_s),
    p50_s = util.median(sorted), p95_s = sorted[math.ceil(0.95 * #sorted)], draws_s = draws_s, degrees = used,
    waits = waits(),
    error_s = (statistics.deviation(draws_s) or 0) / math.sqrt(#draws_s),
    remedies = options.remedies and remedies(strategy, model.healthy(strategy.problem.cluster)) or {} }
end
