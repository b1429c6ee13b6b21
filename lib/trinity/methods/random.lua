-- Random search: a uniform device for every colocation unit, the best of many.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'

local declared = options_of.declare('trinity.RandomOptions', { extends = search.declared,
  help = 'Settings of methods.random.',
  { 'batch', 'integer', 64, least = 1, most = 2 ^ 20, help = 'placements simulated at once' },
})

local function random(problem, options)
  options = search.options('random', declared, options)
  local devices = #problem.cluster.devices
  return search.run('random', problem, options, function(self)
    checkpoints.begin(self)
    checkpoints.restore_kept('methods.random', self) -- a placement's numbers depend on its count alone
    while self:more() do
      local batch = {}
      for i = 1, self:allowance(options.batch) do
        local stream = core.random(options.seed, 'random search', self.evaluations + i)
        batch[i] = problem:placement_by_unit(function() return stream:integer(devices) end)
      end
      self:evaluate(batch)
      if checkpoints.due(self) then checkpoints.write(self, {}) end
    end
  end)
end

return function(methods)
  methods.register('random', random,
    { help = 'a uniform device for every unit, the best of the budget', budget = true, options = declared })
end
