-- trinity.stragglers: what noise and slow devices do to the step of a strategy, what it waits for, what would help.

local check = require 'trinity.base.check'
local model = require 'trinity.graph.model'
local options_of = require 'trinity.base.options'
local printed = require 'trinity.base.printed'
local random = require 'trinity.base.random'
local remedies = require 'trinity.stragglers.remedies'
local statistics = require 'trinity.base.statistics'
local step_of = require 'trinity.stragglers.step'
local util = require 'trinity.base.util'

local owner = 'trinity.stragglers'

local declared = options_of.declare('trinity.StragglerOptions', { help = 'What trinity.stragglers takes.',
  { 'noise', 'number', 0.02, least = 0, most = 10,
    help = 'coefficient of variation of what a device takes for one pass of one micro-batch (log-normal, mean kept)' },
  { 'draws', 'integer', 200, least = 1, most = 1e6, help = 'steps with random times' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 31, help = 'fixes the random times' },
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

--- Sums of the longest paths by what they go through.
local function waits_of(step, cluster)
  local sums, at = {}, step.low and step.low.coordinates
  local function add(path, draws)
    for _, i in ipairs(path) do
      local node = step.nodes[i]
      local key = ('%d/%s'):format(node.device, node.kind)
      sums[key] = sums[key] or wait { device = cluster.devices[node.device].name, type = node.kind, time_s = 0,
        stage = at and at.pipeline[node.device] + 1, replica = at and at.data[node.device] + 1 }
      sums[key].time_s = sums[key].time_s + step.tasks.time_s[step.tasks.position[i]] / draws
    end
  end
  return add, function()
    local list = {}
    for _, row in util.sorted_pairs(sums) do
      if row.time_s > 0 then list[#list + 1] = row end
    end
    table.sort(list, function(a, b)
      if a.time_s ~= b.time_s then return a.time_s > b.time_s end
      return a.device .. a.type < b.device .. b.type
    end)
    return list
  end
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
  local add, waits = waits_of(step, strategy.problem.cluster)
  for draw = 1, options.draws do
    local stream = random(options.seed, 'stragglers', draw)
    for pass = 1, passes do factors[pass] = math.exp(sigma * stream:normal() - sigma * sigma / 2) end
    for i = 1, #pass_of do step.tasks:set(i, step.time_s[i] * factors[pass_of[i]]) end
    local path
    draws_s[draw], path = step.tasks:run()
    add(path, options.draws)
    stream:close()
  end
  local sorted = util.merged(draws_s)
  table.sort(sorted)
  return result { step_time_s = strategy.metrics.step_time_s, mean_s = statistics.mean(draws_s),
    p95_s = sorted[math.ceil(0.95 * #sorted)], draws_s = draws_s, waits = waits(),
    error_s = (statistics.deviation(draws_s) or 0) / math.sqrt(#draws_s),
    remedies = remedies(strategy, model.healthy(strategy.problem.cluster)) }
end
