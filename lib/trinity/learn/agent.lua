-- learn.agent: Trinity's own policy with its own PPO, on LibTorch (engine/learn/torch/agent.h).

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local slopes = require 'trinity.strategy.slopes'
local util = require 'trinity.base.util'

--- Trinity's policy in the engine.
---@class trinity.Agent
---@field problem trinity.Problem
---@field batch trinity.Placement[] the latest
---@field groups integer
---@field units integer
---@field samples integer placements a batch
---@field parameters integer numbers that are learned
---@field loaded number share of them that came from the file `load`
local Agent = { __name = 'agent' }
Agent.__index = Agent

--- Samples a batch of placements; the next call overwrites them. Example: `local placements = agent:sample()`
---@return trinity.Placement[]
function Agent:sample()
  self.handle:sample(self.batch)
  return self.batch
end

-- A list of numbers as a double array; what is no table goes through as it is.
local function doubles(owner, name, list)
  if type(list) ~= 'table' then return list end
  return array.double_of(check.list(owner, 1, name, list, 'number'))
end

local function marks(owner, list)
  if list == nil then return nil end
  return array.int32_of(util.map(check.list(owner, 2, 'failing', list, 'boolean'), function(fails)
    return fails and 1 or 0
  end))
end

--- Learns from the rewards of the latest batch, larger is better. Example: `agent:sample(); agent:update(rewards)`
---@param rewards number[]|trinity.DoubleArray
---@param failing? boolean[] samples that broke a limit, for exclude_failing_after
---@param metrics? trinity.Metrics[] of the batch, which credit = 'action' needs
---@return trinity.AgentReport
function Agent:update(rewards, failing, metrics)
  local by_cost
  if metrics ~= nil then
    check.argument('agent:update', 3, 'metrics', metrics, 'table')
    for i = 1, #metrics do
      if not array.is_metrics(metrics[i]) then
        check.refuse('agent:update', 3, 'metrics', 'entry %d: expected metrics, got %s', i, util.describe(metrics[i]))
      end
    end
    by_cost = slopes(self.problem, metrics, self.batch)
  end
  return self.handle:update(doubles('agent:update', 'rewards', rewards), marks('agent:update', failing), by_cost)
end

local imitation = options_of.declare('trinity.ImitationSettings', { help = 'How placements are imitated.',
  { 'weights', 'table', as = 'number[]', otherwise = 'all equal', help = 'positive, one per placement' },
  { 'steps', 'integer', -1, least = -1, most = 1e5, help = 'gradient steps; -1: 0 for one placement, 40 for several' },
  { 'learning_rate', 'number', 5e-3, above = 0, most = 10, help = 'of these steps' },
  { 'smoothing', 'number', 0.05, least = 0, most = 1, help = 'share of probability that is left to other choices' },
})

--- Raises the likelihood of given placements (1 to 64): a warm start. Example: `agent:imitate { problem:placement() }`
---@param placements trinity.Placement[]
---@param settings? trinity.ImitationSettings
---@return trinity.ImitationReport
function Agent:imitate(placements, settings)
  check.argument('agent:imitate', 1, 'placements', placements, 'table')
  local given = placements
  placements = {}
  for i = 1, #given do
    placements[i] = array.placement('agent:imitate', 1, 'placements', given[i], self.problem.graph, i)
    if not array.is_int32(placements[i]) then
      check.refuse('agent:imitate', 1, 'placements', 'entry %d: expected a placement (problem:placement()), got %s', i,
        util.describe(given[i]))
    end
  end
  return self.handle:imitate(placements, imitation:read('agent:imitate', 2, 'settings', settings))
end

--- Saves weights, state of the optimiser, baseline and step, for the options `load` and `resume`.
--- Example: `agent:save 'policy.bin'`
---@param path string
function Agent:save(path) self.handle:save(path) end

--- The most likely placement. Example: `agent:greedy()`
---@return trinity.Placement
function Agent:greedy()
  local list = self.problem:placements(1)
  self.handle:greedy(list)
  return list[1]
end

--- Frees the engine's memory; any further use is an error. Example: `agent:close()`
function Agent:close() check.closing('agent:close', self, 'agent').handle:close() end

check.methods(Agent, 'trinity.Agent')

--- Trinity's own policy with its own PPO, in the engine on LibTorch (engine/learn/torch/agent.h).
--- Example: `local agent = trinity.learn.agent(problem, { groups = 2, samples = 2 })`
---@param problem trinity.Problem
---@param options? trinity.AgentOptions of the options that every method has only the seed
---@return trinity.Agent
return function(problem, options)
  check.object('learn.agent', 1, 'problem', problem, 'problem')
  if options ~= nil then check.argument('learn.agent', 2, 'options', options, 'table') end
  local handle, loaded = core.agent(problem.handle, options or {})
  local self = handle:summary()
  self.gradient_steps = nil -- grows: not a field to keep
  self.handle, self.problem, self.batch, self.loaded = handle, problem, problem:placements(self.samples), loaded
  return setmetatable(self, Agent)
end
