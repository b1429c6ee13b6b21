-- FlexFlow's search (papers/notes.md "FlexFlow's chain") with the cost that it has there, a simulated step: a Markov
-- chain over the splits of layers, each state lowered to a graph of parts and run by the event simulator. The PaSE
-- paper starts it from the expert's strategy and ends it after 250,000 proposals, or half the budget without
-- improvement. The same chain over PaSE's own costs, which cannot win, is pase:mcmc.

local core = require 'trinity.core'
local networks = require 'studies.papers.pase_networks'
local page = require 'studies.papers.page'
local random = require 'trinity.base.random'
local util = require 'trinity.base.util'

local memory_penalty_s_per_byte = 1e-3 / 1e6 -- FlexFlow's: 1 ms a MB over the memory

local Chain = {}
Chain.__index = Chain

--- Seconds of a state; states that come again are not simulated again.
function Chain:cost(state)
  local key = table.concat(util.map(state, function(factors) return table.concat(factors, ',') end), ' ')
  if not self.known[key] then
    local metrics = self.price { configurations = state }
    self.simulated = self.simulated + 1
    self.known[key] = metrics.step_time_s
      + memory_penalty_s_per_byte * networks.excess_bytes(metrics, self.cluster)
  end
  return self.known[key]
end

-- A random layer but the last gets a random configuration of the space.
function Chain:proposed(state)
  local layers = self.search.pase.layers
  local layer = self.stream:integer(#layers - 1)
  local next_state = { unpack(state) }
  next_state[layer] = self.search.pase.handle:configuration(layer, self.stream:integer(layers[layer].configurations))
  return next_state
end

--- Walks: the best state, its cost.
function Chain:walk(start, budget)
  local best, best_s = start, self:cost(start)
  local state, state_s, improved = best, best_s, 0
  local alpha, again = 100 / best_s, math.max(1, math.min(1000, math.floor(budget / 100)))
  for proposal = 1, budget do
    if (proposal - 1) % again == 0 then state, state_s = best, best_s end
    page.unless_stopped()
    local other = self:proposed(state)
    local other_s = self:cost(other)
    if other_s < state_s or self.stream:uniform() < math.exp(-alpha * (other_s - state_s)) then
      state, state_s = other, other_s
    end
    if state_s < best_s * (1 - 1e-12) then best, best_s, improved = state, state_s, proposal end
    self.proposals = proposal
    if 2 * (proposal - improved) > budget then break end
  end
  return best
end

--- The strategy that the chain finds for a search of networks.search() on a cluster: the result of `pase:price`, with
--- proposals, simulated (states) and seconds. options: proposals (the budget), seed.
return function(search, cluster, options)
  local begun = core.clock_s()
  local chain = setmetatable({ search = search, cluster = cluster, known = {}, simulated = 0, proposals = 0,
    price = networks.simulator(search, cluster), stream = random(options.seed, 'flexflow chain') }, Chain)
  local found = search.pase:price(chain:walk(search.expert.configurations, options.proposals), 'flexflow')
  found.proposals, found.simulated, found.seconds = chain.proposals, chain.simulated, core.clock_s() - begun
  return found
end
