-- The Trinity search (papers.md 1.5): sample placements from the partition and schedule networks,
-- simulate them, reward them, improve the networks by PPO.

local core = require 'trinity.core'
local search = require 'trinity.search'

-- Options of the agent (engine/learn/agent.h); false leaves the preset's value.
local agent_options = { 'preset', 'groups', 'samples', 'epochs', 'learning_rate', 'clip',
  'entropy_weight', 'gradient_norm', 'temperature', 'tanh_constant', 'baseline_n',
  'noise_amplitude', 'noise_steps', 'dropout', 'normalise_advantage', 'order_groups',
  'switch_probability', 'contiguity', 'hidden', 'raw_time', 'mean_output_size', 'depth_feature', 'depth_waves',
  'node2vec' }

local function trinity(problem, options)
  local defaults = {}
  for _, name in ipairs(agent_options) do defaults[name] = false end
  local given = options
  options = search.options('trinity', defaults, options)
  local settings = { seed = options.seed }
  for _, name in ipairs(agent_options) do settings[name] = given[name] end
  return search.run('trinity', problem, options, function(self)
    local agent = core.agent(problem.handle, settings)
    local batch = problem:placements(agent:summary().samples)
    while self:more() do
      agent:sample(batch)
      local allowed = self:allowance(#batch)
      if allowed < #batch then -- what is left of the budget is tried; the policy learns from whole batches only
        for i = #batch, allowed + 1, -1 do batch[i] = nil end
        self:evaluate(batch)
      else
        agent:update((self:evaluate(batch)))
      end
    end
    agent:close()
  end)
end

return function(methods)
  methods.register('trinity', trinity,
    { help = 'PPO over a partition and a schedule network', budget = true,
      source = 'Algorithms 2022, 15(4), 108' })
end
