-- trinity.stragglers: what noise and slow devices do to the step of a strategy, what it waits for, what would help.

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

local declared = options_of.declare('trinity.StragglerOptions', { help = 'What trinity.stragglers takes.',
  { 'noise', 'number', 0.02, least = 0, most = 10,
    help = 'coefficient of variation of what a device takes for one pass of one micro-batch (log-normal, mean kept)' },
  { 'lengths', 'any', as = 'string|fun(stream: trinity.RandomStream): integer', otherwise = "the network's",
    help = 'tokens of each sequence: a CSV file with columns length and count, or a function that draws one' },
  { 'fill', options_of.words('trinity.SequenceFill', { 'padded', 'packed' }), 'padded',
    help = 'micro-batches have sequences that are padded to the longest, or as many as fit' },
  { 'deal', options_of.words('trinity.SequenceDeal', { 'drawn', 'sorted', 'balanced' }), 'drawn',
    help = 'micro-batches are dealt to replicas as drawn, of sequences sorted by length, or by work' },
  { 'draws', 'integer', 200, least = 1, most = 1e6, help = 'steps with random times' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'fixes the random times' },
  { 'remedies', 'boolean', true, help = 'whether what would help is simulated, too' },
})

--- What a step waits for: its longest path by device, stage and kind of work.
---@class trinity.StepWait
---@field device string of collectives their first member, of sends the sender
---@field stage? integer of a mesh: of the pipeline, from 1
---@field replica? integer of a mesh: along data, from 1
---@field type 'forward'|'backward'|'update'|'send'|'collective'
---@field time_s number mean of the draws

---@class trinity.Remedy
---@field what string
---@field step_time_s number without noise
---@field samples_per_s number
---@field gain number samples_per_s over those of the strategy, less 1
---@field stages? integer[] layers of every virtual stage, where these move
---@field devices? integer[] of the mesh, where a replica is dropped
---@field micro_batches? integer the same

---@class trinity.Stragglers
---@field step_time_s number without noise, with what is slow in the cluster
---@field mean_s number of the draws
---@field p95_s number their 95th percentile
---@field error_s number standard error of the mean
---@field draws_s number[] in the order of the draws
---@field waits trinity.StepWait[] the longest time first
---@field remedies trinity.Remedy[] where option `slow` of the cluster slows something; the best first

local result = printed.as('stragglers', { 'step_time_s', 'mean_s', 'p95_s' })
local wait = printed.as('wait', { 'device', 'stage', 'replica', 'type', 'time_s' })

local computes = { forward = true, backward = true, update = true }

--- Numbers what has one random factor together: a device's pass of one micro-batch through one of its stages.
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

--- Of every node what of it goes by lengths: 'linear', 'square', nil for neither; and the share of squares in the work.
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

--- What adds a longest path to sums by device and kind of work, and what lists these.
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

--- Draws the times of a strategy's step: every pass of a device is longer or shorter by chance, the order stays. Says
--- what the step takes in the mean and at worst, what it waits for, and what helps against devices that are slow.
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
