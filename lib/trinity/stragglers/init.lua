-- trinity.stragglers: effect of noise and slow devices on the step of a strategy, what the step waits for, and
-- remedies.

local check = require 'trinity.base.check'
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

local owner = 'trinity.stragglers'

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
  { 'draws', 'integer', 200, least = 1, most = 1e6, help = 'number of steps to sample' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'random seed' },
  { 'remedies', 'boolean', true, help = 'also simulate remedies' },
})

--- A cause of waiting of a step: its critical path by device, stage and type of work.
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
---@field p95_s number 95th percentile of the samples
---@field error_s number standard error of the mean
---@field draws_s number[] sampled step times
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

--- Returns for every node how its time depends on lengths ('linear', 'square' or nil), and the fraction of quadratic
--- work.
local function scaled_nodes(step)
  local kind_of, work_s, square_s, at, types = {}, 0, 0, step.low.coordinates, {}
  for op = 1, step.operators do types[op] = step.graph:operator(op).type end
  for i, node in ipairs(step.nodes) do
    local kind = types[node.operator or 0] or ''
    if node.kind == 'forward' or node.kind == 'backward' then
      kind_of[i] = kind:find '^Attention' and 'square' or 'linear'
      work_s = work_s + step.time_s[i]
      if kind_of[i] == 'square' then square_s = square_s + step.time_s[i] end
    elseif node.kind == 'send' then
      kind_of[i] = 'linear'
    elseif node.kind == 'collective' then
      local inside = true
      for _, device in ipairs(node.devices) do inside = inside and at.data[device] == at.data[node.device] end
      if inside or kind:find '^AllToAll' then kind_of[i] = 'linear' end
    end
  end
  return kind_of, square_s / work_s
end

--- Returns a function: sample -> (node -> factor of its time by the lengths of its micro-batch).
local function by_lengths(step, strategy, options)
  if options.lengths == nil then return function() return function() return 1 end end end
  if not strategy.mesh then util.fail("%s: option 'lengths': expected a strategy with a mesh", owner) end
  if options.fill == 'packed' and options.deal == 'sorted' then
    util.fail("%s: option 'deal': expected 'drawn' or 'balanced' with fill = 'packed', got 'sorted'", owner)
  end
  local kind_of, share = scaled_nodes(step)
  local deal, at = lengths_of(owner, strategy, options, share), step.low.coordinates
  return function(draw)
    local dealt = deal(random(options.seed, 'lengths', draw))
    return function(i)
      local node, kind, factor = step.nodes[i], kind_of[i], 0
      if not kind then return 1 end
      for _, device in ipairs(node.devices or { node.device }) do
        factor = math.max(factor, dealt[at.data[device]][node.micro_batch][kind])
      end
      return factor
    end
  end
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
  local lengths = by_lengths(step, strategy, options)
  for draw = 1, options.draws do
    local stream = random(options.seed, 'stragglers', draw)
    for pass = 1, passes do factors[pass] = math.exp(sigma * stream:normal() - sigma * sigma / 2) end
    local factor = lengths(draw)
    for i = 1, #pass_of do step.tasks:set(i, step.time_s[i] * factors[pass_of[i]] * factor(i)) end
    local path
    draws_s[draw], path = step.tasks:run()
    add(path)
    stream:close()
  end
  local sorted = util.merged(draws_s)
  table.sort(sorted)
  return result { step_time_s = strategy.metrics.step_time_s, mean_s = statistics.mean(draws_s),
    p95_s = sorted[math.ceil(0.95 * #sorted)], draws_s = draws_s, waits = waits(),
    error_s = (statistics.deviation(draws_s) or 0) / math.sqrt(#draws_s),
    remedies = options.remedies and remedies(strategy, model.healthy(strategy.problem.cluster)) or {} }
end
