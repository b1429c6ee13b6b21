-- trinity.pase: PaSE (Elango, IPDPS 2021), which finds the exactly best split of every layer's iteration space over p
-- devices under its cost model. Layers, configurations and costs: engine/search/pase/pase_layers.h and pase_costs.h;
-- the solver: lib/trinity/select. The baselines with the same costs are in trinity.pase.rules and below.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local declared = require 'trinity.pase.options'
local rules = require 'trinity.pase.rules'
local select_strategy = require 'trinity.select'
local splits = require 'trinity.strategy.splits'
local util = require 'trinity.base.util'

---@class trinity.Pase
---@field name string
---@field devices integer
---@field layers trinity.PaseLayer[]
---@field edges integer[][] { from, to }
---@field entries integer entries of all cost tables
---@field graph trinity.Graph
local Pase = { __name = 'pase' }
Pase.__index = Pase

function Pase.__tostring(self)
  return ('pase %s: %d layers, %d edges, %d devices'):format(self.name, #self.layers, #self.edges, self.devices)
end

local spaces = { code = {}, paper = { factors = 'all', cutoff = 1, halo = true, sum_edges = true } }

--- Returns the layers of a graph (forward or training) with their possible splits over devices and PaSE's costs.
--- Example: `local pase = trinity.pase(graph, { devices = 4 })`
---@param graph trinity.Graph
---@param options? trinity.PaseOptions
---@return trinity.Pase
local function new(graph, options)
  check.object('trinity.pase', 1, 'graph', graph, 'graph')
  if options == nil then options = {} end
  declared:check('trinity.pase', check.argument('trinity.pase', 2, 'options', options, 'table'))
  local full = declared:filled(util.merged(spaces[options.space or 'code'], options))
  full.space = nil
  local handle = core.pase(graph.handle, full)
  local self = handle:summary()
  self.handle, self.graph = handle, graph
  return setmetatable(self, Pase)
end

-- The engine checks numbers of layers, strategies and edges (engine/lua/bind/bind_pase.cpp).

--- Returns the factors of layer `layer` in its strategy number `strategy`, one per dimension. Example:
--- `pase:configuration(1, 1)`
---@param layer integer
---@param strategy integer
---@return integer[]
function Pase:configuration(layer, strategy)
  return self.handle:configuration(layer, strategy)
end

--- Returns the cost of a layer per device, in FLOP. Example: `pase:layer_cost(1, 1)`
---@param layer integer
---@param strategy integer
---@return number compute
---@return number communication
function Pase:layer_cost(layer, strategy)
  return self.handle:layer_cost(layer, strategy)
end

--- Returns the cost of edge `edge` between a strategy of the writing and one of the reading layer, in FLOP. Example:
--- `pase:edge_cost(1, 1, 1)`
---@param edge integer
---@param from integer
---@param to integer
---@return number
function Pase:edge_cost(edge, from, to)
  return self.handle:edge_cost(edge, from, to)
end

--- Returns the number of layer `layer`'s strategy with these factors, or nil. Example: `pase:find(1, { 1, 2, 1 })`
---@param layer integer
---@param factors integer[]
---@return integer?
function Pase:find(layer, factors)
  return self.handle:find(layer, factors)
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

--- Checks lists of factors, one per layer, as far as the engine needs.
local function check_configurations(owner, self, name, list)
  check.list(owner, 1, name, list, 'table')
  if #list ~= #self.layers then
    check.refuse(owner, 1, name, 'expected configurations of %d layers, got %d', #self.layers, #list)
  end
  for i, factors in ipairs(list) do
    if #factors ~= #self.layers[i].dimensions then
      check.refuse(owner, 1, name, "layer '%s': expected %d factors, got %d", self.layers[i].name,
        #self.layers[i].dimensions, #factors)
    end
  end
  return list
end

local function check_found(owner, self, found)
  check.argument(owner, 1, 'found', found, 'table')
  if type(found.configurations) ~= 'table' then
    check.refuse(owner, 1, 'found', 'expected a strategy of this object, got %s without configurations',
      util.describe(found))
  end
  return check_configurations(owner, self, 'found', found.configurations)
end

--- Returns the cost of configurations (a list of factors per layer), in the space or not. Example:
--- `pase:price(pase:data_parallel().configurations)`
---@param configurations integer[][]
---@param name? string
---@return trinity.PaseResult
function Pase:price(configurations, name)
  check_configurations('pase:price', self, 'configurations', configurations)
  if name ~= nil then check.argument('pase:price', 2, 'name', name, 'string') end
  local found = { name = name or 'own', configurations = configurations }
  found.cost, found.compute, found.communication, found.edges = self.handle:price(configurations)
  local _, inside = strategies_of(self, configurations)
  found.in_space = inside
  return found
end

local solve_options = options_of.declare('trinity.PaseSolveOptions', { help = 'Options of pase:solve.',
  { 'seconds', 'number', 60, least = 0, help = 'time limit in seconds if dynamic programming is impossible' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'random seed' },
  { 'table_bytes', 'integer', 2 ^ 31, least = 1, help = 'maximum memory for tables of the exact solver' },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
})

--- Returns the best strategy and statistics of the search. Example: `pase:solve().cost`
---@param options? trinity.PaseSolveOptions
---@return trinity.PaseResult
function Pase:solve(options)
  options = solve_options:read('pase:solve', 1, 'options', options)
  local result = select_strategy(self.handle:selection(), options)
  return util.merged(self:price(configurations_of(self, result.solution), 'pase'), util.picked(result, { 'optimal',
    'bound', 'seconds', 'table_entries', 'peak_table_entries', 'largest_table', 'widest_set', 'solution', 'stopped' }))
end

---@return fun(self: trinity.Pase): trinity.PaseResult?, reason: string?
local function by_rule(name)
  return function(self)
    local configurations, reason = rules[name](self)
    if not configurations then return nil, reason end
    return self:price(configurations, name)
  end
end

--- Returns data parallelism: splits the batch only, as far as it is divisible; nil and a reason if a layer has no
--- batch. Example: `pase:data_parallel()`
Pase.data_parallel = by_rule 'data_parallel'
--- Returns "one weird trick" (Krizhevsky 2014): dense layers split their outputs, all others the batch. Example:
--- `pase:owt()`
Pase.owt = by_rule 'owt'
--- Returns an expert's strategy: one weird trick for convolutional networks, layers on different devices with a split
--- batch for LSTMs (GNMT), the cheapest mesh of batch and model for transformers (Mesh-TensorFlow). Example:
--- `pase:expert()`
Pase.expert = by_rule 'expert'

local walk_options = options_of.declare('trinity.PaseWalkOptions', { help = 'Options of pase:mcmc.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'random seed' },
  { 'iterations', 'integer', 250000, least = 1, most = 2 ^ 40, help = 'steps of the chain' },
  { 'alpha_per_ms', 'number', 0, least = 0, help = "alpha per millisecond; 0: 100 / milliseconds of the start" },
  { 'start', 'table', as = 'integer[][]', otherwise = "expert's",
    help = 'initial configurations; layers outside the space start unsplit' },
})

--- Runs FlexFlow's Markov chain over the space (engine/search/pase/pase_search.h). Example: `pase:mcmc { iterations =
--- 1000 }`
---@param options? trinity.PaseWalkOptions
---@return trinity.PaseResult
function Pase:mcmc(options)
  options = walk_options:read('pase:mcmc', 1, 'options', options)
  if options.start then check_configurations('pase:mcmc', self, 'start', options.start) end
  local first = options.start or (self:expert() or self:data_parallel() or {}).configurations or rules.serial(self)
  local given = { seed = options.seed, iterations = options.iterations, alpha_per_ms = options.alpha_per_ms }
  local begun = core.clock_s()
  local solution, _, iterations, accepted = self.handle:walk((strategies_of(self, first)), given)
  local found = self:price(configurations_of(self, solution), 'mcmc')
  found.solution, found.iterations, found.accepted = solution, iterations, accepted
  found.seconds = core.clock_s() - begun
  return found
end

--- Returns Tofu's recursive splits: one more dimension per layer and prime factor of the devices, by communication
--- alone. Example: `pase:tofu()`
---@return trinity.PaseResult
function Pase:tofu()
  local begun = core.clock_s()
  local configurations = self.handle:tofu()
  local found = self:price(configurations, 'tofu')
  found.seconds = core.clock_s() - begun
  return found
end

--- Returns a strategy's splits (field `splits`), on the devices with these numbers (default: the first ones). Example:
--- `pase:splits(pase:solve())`
---@param found trinity.PaseResult
---@param devices? integer[]
---@return trinity.Splits
function Pase:splits(found, devices)
  check_found('pase:splits', self, found)
  if devices ~= nil then
    check.integers('pase:splits', 2, 'devices', devices, 1, 4096)
  else
    devices = {}
    for i = 1, self.devices do devices[i] = i end
  end
  return splits.named(self.graph, self.handle:splits(self.graph.handle, found.configurations, devices))
end

--- Example: `pase:close()`
function Pase:close() check.closing('pase:close', self, 'pase').handle:close() end

check.methods(Pase, 'trinity.Pase')

return new
