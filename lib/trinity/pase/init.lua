-- trinity.pase: PaSE (Elango, IPDPS 2021): the best split of every layer's iteration space over p devices
-- under its cost model, exactly. The layers, configurations and costs: engine/search/pase/pase_layers.h and
-- pase_costs.h; the solver: trinity.select. What PaSE is compared with, over the same costs, is in
-- trinity.pase.rules and below.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local declared = require 'trinity.pase.options'
local rules = require 'trinity.pase.rules'
local select_strategy = require 'trinity.select'
local splits = require 'trinity.strategy.splits'
local util = require 'trinity.base.util'

---@class trinity.Pase
---@since 0.1.0
---@field name string
---@field devices integer
---@field layers trinity.PaseLayer[]
---@field edges integer[][] { from, to }
---@field entries integer of all cost tables
---@field graph trinity.Graph
local Pase = { __name = 'pase' }
Pase.__index = Pase

function Pase.__tostring(self)
  return ('pase %s: %d layers, %d edges, %d devices'):format(self.name, #self.layers, #self.edges, self.devices)
end

local spaces = { code = {}, paper = { factors = 'all', cutoff = 1, halo = true, sum_edges = true } }

--- The layers of a graph (forward or training) with their splits over devices and what each costs, as PaSE has it.
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

-- Numbers of layers, strategies and edges are checked by the engine (engine/lua/bind/bind_pase.cpp).

--- The factors of layer `layer` under its strategy number `strategy`, one a dimension.
---@param layer integer
---@param strategy integer
---@return integer[]
function Pase:configuration(layer, strategy)
  return self.handle:configuration(layer, strategy)
end

--- What a layer costs a device, in FLOP.
---@param layer integer
---@param strategy integer
---@return number compute
---@return number communication
function Pase:layer_cost(layer, strategy)
  return self.handle:layer_cost(layer, strategy)
end

--- What edge `edge` costs between two strategies, of the layer that writes and of the one that reads, in FLOP.
---@param edge integer
---@param from integer
---@param to integer
---@return number
function Pase:edge_cost(edge, from, to)
  return self.handle:edge_cost(edge, from, to)
end

--- The number of layer `layer`'s strategy with these factors, or nil.
---@param layer integer
---@param factors integer[]
---@return integer?
function Pase:find(layer, factors)
  return self.handle:find(layer, factors)
end

--- The problem as trinity.select takes it: a node a layer, a strategy a configuration.
---@return userdata
function Pase:selection() return self.handle:selection() end

--- The configurations of a list of strategies, one per layer.
local function configurations_of(self, solution)
  return util.listed(#self.layers, function(i) return self.handle:configuration(i, solution[i]) end)
end

--- The strategies of configurations, and whether all are in the space; 1 (unsplit) for those that are not.
local function strategies_of(self, configurations)
  local solution, inside = {}, true
  for i = 1, #self.layers do
    local found = self.handle:find(i, configurations[i])
    solution[i] = found or 1
    inside = inside and found ~= nil
  end
  return solution, inside
end

--- A list of factors a layer, checked as far as a call into the engine needs.
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

--- What configurations cost, a list of factors a layer, in the space or not.
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

local solve_options = options_of.declare('trinity.PaseSolveOptions', { help = 'What pase:solve takes.',
  { 'seconds', 'number', 60, least = 0, help = 'for what dynamic programming cannot do' },
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'fixes every random number' },
  { 'table_bytes', 'integer', 2 ^ 31, least = 1, help = 'what tables of the exact solver may take' },
  { 'quiet', 'boolean', false, help = 'no progress line' },
})

--- The best strategy, with what the search says of itself.
---@param options? trinity.PaseSolveOptions
---@return trinity.PaseResult
function Pase:solve(options)
  options = solve_options:read('pase:solve', 1, 'options', options)
  local result = select_strategy(self.handle:selection(), options)
  return util.merged(self:price(configurations_of(self, result.solution), 'pase'), util.picked(result, { 'optimal',
    'bound', 'seconds', 'table_entries', 'peak_table_entries', 'largest_table', 'widest_set', 'solution', 'stopped' }))
end

--- Layers from the first one outwards, each layer's neighbours by number.
local function breadth_first_order(neighbours)
  local order, reached = {}, {}
  for root = 1, #neighbours do
    if not reached[root] then
      reached[root], order[#order + 1] = true, root
    end
    local next = #order
    while next <= #order do
      for _, other in ipairs(neighbours[order[next]]) do
        if not reached[other] then
          reached[other], order[#order + 1] = true, other
        end
      end
      next = next + 1
    end
  end
  return order
end

--- What dynamic programming in breadth-first order, the paper's baseline, would need: the largest set of layers that a
--- table ranges over, and the most combinations of a layer and such a set.
---@return { widest_set: integer, largest_table: number }
function Pase:breadth_first()
  local neighbours = util.listed(#self.layers, function() return {} end)
  for _, ends in ipairs(self.edges) do
    table.insert(neighbours[ends[1]], ends[2])
    table.insert(neighbours[ends[2]], ends[1])
  end
  for _, list in ipairs(neighbours) do table.sort(list) end
  local done, inside, result = {}, {}, { widest_set = 0, largest_table = 0 }
  local function count(i) return self.layers[i].configurations end
  for _, i in ipairs(breadth_first_order(neighbours)) do
    done[i], inside[i] = true, nil
    for _, other in ipairs(neighbours[i]) do
      if not done[other] then inside[other] = true end
    end
    local set, combinations = 0, count(i)
    for _, other in ipairs(util.sorted_keys(inside)) do set, combinations = set + 1, combinations * count(other) end
    result.widest_set = math.max(result.widest_set, set)
    result.largest_table = math.max(result.largest_table, combinations)
  end
  return result
end

---@return fun(self: trinity.Pase): trinity.PaseResult?, reason: string?
local function by_rule(name)
  return function(self)
    local configurations, reason = rules[name](self)
    if not configurations then return nil, reason end
    return self:price(configurations, name)
  end
end

--- The batch alone is split, as far as it divides. nil and why where some layer has no batch.
Pase.data_parallel = by_rule 'data_parallel'
--- "One weird trick" (Krizhevsky 2014): dense layers split their outputs, all others the batch.
Pase.owt = by_rule 'owt'
--- What a person would write: OWT for networks of convolutions, layers side by side with a split batch for LSTMs
--- (GNMT), Mesh-TensorFlow's mesh of batch and model for transformers (the mesh that costs least).
Pase.expert = by_rule 'expert'

local walk_options = options_of.declare('trinity.PaseWalkOptions', { help = 'What pase:mcmc takes.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'fixes every random number' },
  { 'iterations', 'integer', 250000, least = 1, most = 2 ^ 40, help = 'steps of the chain' },
  { 'alpha_per_ms', 'number', 0, least = 0, help = "alpha per millisecond; 0: 100 over the start's milliseconds" },
  { 'start', 'table', as = 'integer[][]', otherwise = "expert's",
    help = 'configurations; layers of it outside the space start unsplit' },
})

--- FlexFlow's Markov chain over the space (engine/search/pase/pase_search.h).
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

--- Tofu's recursive splits: one dimension more a layer and prime factor of the devices, by communication alone.
---@return trinity.PaseResult
function Pase:tofu()
  local begun = core.clock_s()
  local configurations = self.handle:tofu()
  local found = self:price(configurations, 'tofu')
  found.seconds = core.clock_s() - begun
  return found
end

--- Every strategy one after the other, for small cases: refuses more than `most` (default 1e6).
---@param most? number
---@return trinity.PaseResult
function Pase:brute_force(most)
  most = most or 1e6
  check.number('pase:brute_force', 1, 'most', most, 1)
  local count = 1
  for i = 1, #self.layers do count = count * self.layers[i].configurations end
  if count > most then
    util.fail('pase:brute_force: %g strategies, more than %g', count, most)
  end
  local best, current = nil, {}
  local function extend(i)
    if i > #self.layers then
      local cost = self.handle:price(current)
      if not best or cost < best.cost then best = { cost = cost, list = { unpack(current) } } end
      return
    end
    for strategy = 1, self.layers[i].configurations do
      current[i] = self.handle:configuration(i, strategy)
      extend(i + 1)
    end
  end
  extend(1)
  return self:price(best.list, 'brute_force')
end

--- A strategy's splits as trinity.lower takes them, on the devices with these numbers (default the first ones).
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

local function dimension_text(layer)
  local names = util.map(layer.dimensions, function(dimension) return dimension.name end)
  return table.concat(names, ' ')
end

--- A strategy as the paper's table of strategies shows it: a row per run of layers of one type with the same
--- configuration.
---@param found trinity.PaseResult
---@return trinity.PaseRow[]
function Pase:rows(found)
  check_found('pase:rows', self, found)
  local list, last_of = {}, {}
  for i, layer in ipairs(self.layers) do
    local factors, dimensions = '(' .. table.concat(found.configurations[i], ',') .. ')', dimension_text(layer)
    local row = last_of[layer.type]
    if row and row.factors == factors and row.dimensions == dimensions then
      row.last = layer.name
    else
      row = { first = layer.name, last = layer.name, type = layer.type, dimensions = dimensions, factors = factors }
      list[#list + 1], last_of[layer.type] = row, row
    end
  end
  for _, row in ipairs(list) do
    row.layers = row.first == row.last and row.first or row.first .. ' .. ' .. row.last
    row.first, row.last = nil, nil
  end
  return list
end

function Pase:close() check.closing('pase:close', self, 'pase').handle:close() end

check.methods(Pase, 'trinity.Pase')

return new
