-- PaSE (Elango, IPDPS 2021), which finds the exactly best split of every layer's iteration space over p devices under
-- its cost model. Layers, configurations and costs: engine/search/pase/pase_layers.h and pase_costs.h; the solver:
-- lib/trinity/select. The baselines with the same costs are in rules.lua and below. Method `pase` and the study of the
-- paper use it.

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local rules = require 'trinity.pase.rules'
local select_strategy = require 'trinity.select'
local splits = require 'trinity.strategy.splits'
local util = require 'trinity.base.util'

local pase = {}

--- Options of the layers and of the cost model.
pase.declared = options_of.declare(nil, {
  { 'devices', 'integer', 8, least = 1, most = 4096 },
  { 'peak_flops', 'number', 10e12, above = 0, help = 'peak FLOP/s of a device in the cost model' },
  { 'bandwidth_bytes_per_s', 'number', 16e9, above = 0 },
  { 'word_bytes', 'number', 8, above = 0 }, -- bytes per element in messages
  { 'cutoff', 'integer', 4, least = 1, most = 2 ^ 40, help = 'minimum block size of a dimension' },
  { 'factors', options_of.words('trinity.PaseFactors', { 'divisors', 'powers_of_two', 'all' }), 'divisors',
    help = 'possible numbers of parts of a dimension' },
  { 'halo', 'boolean', false }, -- also splits convolutions along height and width
  { 'sum_edges', 'boolean', false }, -- counts all tensors between two layers, not only the last
})

-- Fields: name, devices, graph, handle, layers { name, type, kind, dimensions { name, size, role, splits },
-- configurations = how many }, edges { from, to }, entries of all cost tables. Methods give results { name,
-- configurations = factors by layer, cost, compute, communication, edges, in_space, ... }.
local Pase = {}
Pase.__index = Pase

--- Returns the layers of a graph (forward or training) with their possible splits over devices and PaSE's costs.
function pase.new(graph, options)
  local handle = core.pase(graph.handle, pase.declared:read('trinity.pase', 2, 'options', options))
  local self = handle:summary()
  self.handle, self.graph = handle, graph
  return setmetatable(self, Pase)
end

--- Returns the configurations of a list of strategies, one per layer.
local function configurations_of(self, solution)
  return util.listed(#self.layers, function(i) return self.handle:configuration(i, solution[i]) end)
end

--- Returns the strategies of configurations, and whether all are in the space; 1 (unsplit) for those that are not.
local function strategies_of(self, configurations)
  local solution, inside = {}, true
  for i = 1, #self.layers do
    local found = self.handle:find(i, configurations[i])
    solution[i] = found or 1
    inside = inside and found ~= nil
  end
  return solution, inside
end

--- Returns the cost of configurations (a list of factors per layer), in the space or not, in FLOP.
function Pase:price(configurations, name)
  local found = { name = name or 'own', configurations = configurations }
  found.cost, found.compute, found.communication, found.edges = self.handle:price(configurations)
  found.in_space = select(2, strategies_of(self, configurations))
  return found
end

--- Returns the best strategy and statistics of the search. options: of trinity.select.
function Pase:solve(options)
  local result = select_strategy(self.handle:selection(), options)
  return util.merged(self:price(configurations_of(self, result.solution), 'pase'), util.picked(result, { 'optimal',
    'bound', 'seconds', 'table_entries', 'peak_table_entries', 'largest_table', 'widest_set', 'solution', 'stopped' }))
end

--- Returns the strategy of a rule (rules.lua), or nil and a reason.
function Pase:by_rule(name)
  local configurations, reason = rules[name](self)
  if not configurations then return nil, reason end
  return self:price(configurations, name)
end

--- Runs FlexFlow's Markov chain over the space (engine/search/pase/pase_search.h), from the expert's strategy, with
--- alpha = 100 / milliseconds of the start.
function Pase:mcmc(iterations, seed)
  local first = (self:by_rule 'expert' or self:by_rule 'data_parallel' or {}).configurations or rules.serial(self)
  local begun = core.clock_s()
  local solution, _, steps, accepted = self.handle:walk((strategies_of(self, first)), { seed = seed,
    iterations = iterations, alpha_per_ms = 0 })
  return util.merged(self:price(configurations_of(self, solution), 'mcmc'), { solution = solution, iterations = steps,
    accepted = accepted, seconds = core.clock_s() - begun })
end

--- Returns Tofu's recursive splits: one more dimension per layer and prime factor of the devices, by communication
--- alone.
function Pase:tofu()
  local begun = core.clock_s()
  local found = self:price(self.handle:tofu(), 'tofu')
  found.seconds = core.clock_s() - begun
  return found
end

--- Returns a strategy's splits (field `splits`), on the first devices.
function Pase:splits(found)
  return splits.named(self.graph, self.handle:splits(self.graph.handle, found.configurations,
    util.listed(self.devices, function(i) return i end)))
end

return pase
