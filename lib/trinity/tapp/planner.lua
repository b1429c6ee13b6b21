-- `trinity pipeline --method tapp`: TAPP (trinity.methods.tapp) on a network of a file. The value of a scheme is its
-- largest load on equal devices instead of a simulated batch. A quarter of the rounds are proposals of the policy, the
-- others move ends and devices of the best scheme's stages. Layers are in the order of the file; max_load_dp may find
-- better contiguous cuts by another order of branches.

local core = require 'trinity.core'
local nn = require 'trinity.nn'
local progress = require 'trinity.base.progress'
local tapp_moves = require 'trinity.tapp.moves'
local tapp_policy = require 'trinity.tapp.policy'
local tensor = require 'trinity.nn.tensor'
local trained = require 'trinity.learn.trained'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local settings = { samples = 8, learning_rate = 6e-3, entropy_weight = 1e-2, entropy_start = 0.1,
  entropy_decay = 0.99, gradient_norm = 1, baseline_n = 19, normalize_advantage = true, hidden = 64, groups = 0,
  mode = 'cuts', explore = 0.1 }
local default_rounds = 800 -- batches
local policy_share = 0.25 -- fraction of the rounds, or of the seconds
local infeasible = -10

-- State of the search: evaluates schemes and keeps the best cut.
local Search = {}
Search.__index = Search

--- Evaluates a cut, given by the node of every layer. Returns its largest load, 1e300 if it does not fit.
function Search:price(node_of)
  local assignment, best = {}, self.best
  for node = 1, #self.layer_of do assignment[node] = node_of[self.layer_of[node]] end
  local cut = self.instance.network:price(self.instance.machine, assignment)
  if not best or (cut.feasible and (not best.feasible or cut.max_load < best.max_load)) then
    self.best, self.node_of = cut, node_of
  end
  return cut.feasible and cut.max_load or 1e300
end

-- Returns whether another batch fits into `share` of rounds and seconds, and the progress of the search.
function Search:goes_on(share)
  local passed_s = self.limited and (core.clock_s() - self.start) / self.instance.options.seconds or 0
  self.passed = math.min(1, math.max(self.round / self.rounds, passed_s))
  if self.best and (core.stop_requested() or self.passed >= share) then return false end
  self.round = self.round + 1
  local best = self.best
  self.shown.label = best and best.feasible and ('tapp  best %.9g %s'):format(best.max_load, self.instance.about.unit)
    or 'tapp'
  local items = self.limited and 100 or self.rounds
  self.shown:update { items = items, done = math.floor(items * self.passed), share = self.passed }
  return true
end

local function learn(self, policy, own)
  local parameters, scale = policy:parameters(), nil
  local learner = trained.reinforce(policy, own)
  local optimiser = nn.adam { parameters = parameters, learning_rate = own.learning_rate }
  local function step(loss) training.step(optimiser, parameters, loss, own.gradient_norm) end
  while self:goes_on(policy_share) do
    local actions = policy:draw(own.samples, core.random(own.seed, 'pipeline tapp', self.round))
    local rewards = util.map(policy:schemes(actions), function(node_of)
      local load = self:price(node_of)
      scale = scale or (load > 0 and load < 1e300 and load or nil)
      return load < 1e300 and -math.sqrt(load / (scale or 1)) or infeasible
    end)
    local weight = math.max(own.entropy_weight, own.entropy_start * own.entropy_decay ^ (self.round - 1))
    learner.learn({ observations = { {} }, actions = actions:unsqueeze(1), rewards = tensor.new { rewards },
      dones = tensor.ones { 1, #rewards }, values = tensor.zeros { 1, #rewards } }, step, weight)
  end
end

local function refine(self, row, own)
  local first = self.passed
  tapp_moves.refine(tapp_moves.of(row, self.instance.machine.devices), { node_of = self.node_of, batch = 0,
    cost = self.best.feasible and self.best.max_load or 1e300 }, {
    more = function() return self:goes_on(1) end,
    stream = function() return core.random(own.seed, 'pipeline tapp moves', self.round), own.samples end,
    costs = function(schemes) return util.map(schemes, function(scheme) return self:price(scheme) end) end,
    share = function() return (self.passed - first) / math.max(1e-9, 1 - first) end,
    after = function() end })
end

--- Learns and moves for this number of batches or seconds. Returns the best evaluated cut.
local function run(instance)
  local options = instance.options
  local own = util.merged({ seed = options.seed }, settings)
  local row = instance.network:layer_row(instance.machine):about()
  local limited = options.seconds < math.huge
  local self = setmetatable({ instance = instance, layer_of = row.layer_of, start = core.clock_s(), round = 0,
    limited = limited, rounds = options.rounds or (limited and 1e6 or default_rounds),
    shown = progress.new('tapp', options.quiet) }, Search)
  learn(self, tapp_policy.new(row, instance.machine.devices, own), own)
  refine(self, row, own)
  self.shown:finish()
  self.best.optimal = false
  return self.best
end

return run
