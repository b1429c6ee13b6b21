-- Trains learned list schedulers (lib/trinity/search/schedulers.lua): an evolution strategy over the weights of one, by
-- the step times of what it builds for several problems over those of the best heuristic; then, of all weights that
-- were tried, members whose best is the best on these problems. What `trinity train --learns schedulers` does.

local core = require 'trinity.core'
local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local random_stream = require 'trinity.base.random'
local schedulers = require 'trinity.search.schedulers'
local topology = require 'trinity.cluster.topology'
local study_options = require 'trinity.methods.study_options'
local util = require 'trinity.base.util'

local training = {}

--- The newest, whose weights may be members: what is kept grows no further.
training.kept_rounds = 1000

-- What the step times of a training are held against.
training.heuristics = { 'single_device', 'etf', 'm_etf', 'm_sct', 'expert', 'heft', 'cpop' }

local samples, parents = 16, 8 -- of a round
local first_step, unfit = 0.4, 3 -- unfit: factor of the step time of what does not fit
local noise = 0.2 -- of members beside those that were trained, as a share of the spread below
local idle_rounds = 10 -- at the beginning, whose weights are no members

-- How far the weights of a term may go at first; those of its circumstances half as far.
local spread = { queue = 0.2, arrival = 0.2, start = 0.3, time = 0.3, unit_time = 0.1, wires = 0.1, load = 0.03,
  overload = 0.1, apart = 0.1, siblings = 0.03, sends = 0.1, unused = 0.3, leaves_unit = 0.2, leaves_mean = 0.5,
  receives = 0.1 }

--- Two hosts with two devices each, of unlike speed: name 'unlike' of a training's clusters.
function training.unlike()
  local net = topology.new { queue = 'route' }
  for m, type in ipairs { 'v100_pcie', 'k80' } do
    local name = 'n' .. m - 1
    net:link(net:devices(name, 2, type), name .. '/pcie', 'pcie3_x16')
    net:link(name .. '/pcie', 'ethernet', 'ethernet_25g')
  end
  return net:spec()
end

local limited = { max_load_dp = 20 } -- seconds, after which it has its best so far

--- The best step time of heuristics that fit, by their names, and all of them; nil where none does.
function training.best_of(problem, names)
  local best, times
  times = util.map(names, function(name)
    local found = methods.get(name)(problem, { quiet = true, seconds = limited[name] })
    local time_s = found and found.metrics.feasible and found.metrics.step_time_s or math.huge
    best = math.min(best or math.huge, time_s)
    return time_s
  end)
  return best < math.huge and best or nil, times
end

--- Every graph of a list (MODEL:BATCH with commas) on every cluster of another: { label, problem, best_s }.
function training.cases(graphs, clusters)
  local cases = {}
  for _, text in ipairs(util.words(graphs)) do
    local name, batch = text:match '^([^:]+):?(%d*)$'
    if not name then util.fail_usage("'%s': expected MODEL or MODEL:BATCH", text) end
    local graph = model.load(name, util.merged({ batch_size = tonumber(batch) }, study_options[name]))
    for _, cluster in ipairs(util.words(clusters)) do
      local problem = problems.new { graph = graph,
        cluster = model.cluster(cluster == 'unlike' and training.unlike() or cluster) }
      local best_s = training.best_of(problem, training.heuristics)
      if best_s then
        cases[#cases + 1] = { label = ('%s on %s'):format(text, cluster), problem = problem, best_s = best_s,
          scheduler = core.list_scheduler(problem.handle), placement = problem:placement() }
      end
    end
  end
  return cases
end

--- Weights of a list scheduler by terms: { start = 1, ... }, always.
function training.plain(by_term)
  local weights = {}
  for _, term in ipairs(schedulers.terms) do
    for j = 1, #schedulers.circumstances do weights[#weights + 1] = j == 1 and by_term[term] or 0 end
  end
  return weights
end

-- What weights come to: the mean log of step time over the best heuristic's, and that of every case.
local function judge(cases, weights)
  local policy, sum, logs = core.list_policy { weights }, 0, {}
  for c, case in ipairs(cases) do
    case.scheduler:build(policy, 1, case.placement)
    local metrics = case.problem:evaluate(case.placement)
    logs[c] = math.log(metrics.step_time_s / case.best_s * (metrics.feasible and 1 or unfit))
    sum = sum + logs[c]
  end
  return { weights = weights, value = sum / #cases, logs = logs }
end

local Trainer = {}
Trainer.__index = Trainer

--- What trains on `cases`. Separable CMA-ES: Ros and Hansen, "A simple modification in CMA-ES achieving linear time
--- and space complexity", PPSN 2008; constants of Hansen, "The CMA evolution strategy: a tutorial", 2016.
function training.new(cases, seed)
  local self = setmetatable({ cases = cases, random = random_stream(seed, 'list training', 1), rounds = 0, pool = {},
    step = first_step, mean = training.plain { start = 1, time = 1, wires = 0.1 }, variances = {}, path = {},
    step_path = {}, shares = {} }, Trainer)
  for _, term in ipairs(schedulers.terms) do
    for j = 1, #schedulers.circumstances do
      table.insert(self.variances, (spread[term] * (j == 1 and 1 or 0.5)) ^ 2)
    end
  end
  local n, sum, squares = #self.mean, 0, 0
  for i = 1, n do self.path[i], self.step_path[i] = 0, 0 end
  for i = 1, parents do
    self.shares[i] = math.log(parents + 0.5) - math.log(i)
    sum = sum + self.shares[i]
  end
  for i = 1, parents do
    self.shares[i] = self.shares[i] / sum
    squares = squares + self.shares[i] ^ 2
  end
  local mass, faster = 1 / squares, (n + 2) / 3 -- separable: learns so much faster
  self.mass, self.path_rate = mass, (4 + mass / n) / (n + 4 + 2 * mass / n)
  self.step_rate = (mass + 2) / (n + mass + 5)
  self.rank_one = 2 / ((n + 1.3) ^ 2 + mass) * faster
  self.rank_all = math.min(1 - self.rank_one, 2 * (mass - 2 + 1 / mass) / ((n + 2) ^ 2 + mass) * faster)
  self.damping = 1 + 2 * math.max(0, math.sqrt((mass - 1) / (n + 1)) - 1) + self.step_rate
  self.length = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n)) -- of a normal vector
  for _, wires in ipairs { 0, 0.03, 0.1, 0.3, 1 } do
    for _, load in ipairs { 0, 0.05 } do
      table.insert(self.pool, judge(cases, training.plain { start = 1, time = 1, wires = wires, load = load }))
    end
  end
  self.plain = #self.pool
  return self
end

-- The weights of samples in order, the best first.
local function drawn(self)
  local tried = {}
  for k = 1, samples do
    local weights = {}
    for i, mean in ipairs(self.mean) do
      weights[i] = mean + self.step * math.sqrt(self.variances[i]) * self.random:normal()
    end
    tried[k] = judge(self.cases, weights)
    tried[k].number = k
    if self.rounds >= idle_rounds then
      self.pool[self.plain + (self.rounds - idle_rounds) % training.kept_rounds * samples + k] = tried[k]
    end
  end
  table.sort(tried, function(a, b)
    if a.value ~= b.value then return a.value < b.value end
    return a.number < b.number
  end)
  return tried
end

--- A round; returns step times over the best heuristic's, geometric means over cases: of its best and its median.
function Trainer:round()
  local tried, before, squares = drawn(self), self.mean, 0
  self.mean = {}
  for i = 1, #before do
    local mean, spread_now = 0, 0
    for k = 1, parents do
      local value = tried[k].weights[i]
      mean = mean + self.shares[k] * value
      spread_now = spread_now + self.shares[k] * ((value - before[i]) / self.step) ^ 2
    end
    self.mean[i] = mean
    local move, deviation = (mean - before[i]) / self.step, math.sqrt(self.variances[i])
    self.step_path[i] = (1 - self.step_rate) * self.step_path[i]
      + math.sqrt(self.step_rate * (2 - self.step_rate) * self.mass) * move / deviation
    self.path[i] = (1 - self.path_rate) * self.path[i]
      + math.sqrt(self.path_rate * (2 - self.path_rate) * self.mass) * move
    self.variances[i] = (1 - self.rank_one - self.rank_all) * self.variances[i] + self.rank_one * self.path[i] ^ 2
      + self.rank_all * spread_now
    squares = squares + self.step_path[i] ^ 2
  end
  self.step = self.step * math.exp(self.step_rate / self.damping * (math.sqrt(squares) / self.length - 1))
  return math.exp(tried[1].value), math.exp(tried[parents].value)
end

--- The members: the mean, then in turn what makes the best of all the best; `count` at most. Returns the scheduler and
--- what the first and all come to.
function Trainer:members(count)
  local first = judge(self.cases, self.mean)
  local pool, list, now, value = { first }, { first.weights }, util.merged(first.logs), first.value
  for k, entry in ipairs(self.pool) do pool[k + 1] = entry end
  while #list < count do
    local best, least = nil, math.huge
    for _, entry in ipairs(pool) do
      local sum = 0
      for c, log in ipairs(now) do sum = sum + math.min(log, entry.logs[c]) end
      if sum < least then best, least = entry, sum end
    end
    if least / #now >= value then break end
    list[#list + 1], value = best.weights, least / #now
    for c, log in ipairs(best.logs) do now[c] = math.min(now[c], log) end
  end
  return schedulers.new(list), math.exp(first.value), math.exp(value)
end

--- A scheduler with `count` members: its own, then these in turn with noise, which cover what no training problem asks.
function training.widened(scheduler, count, seed)
  local members, random = scheduler:weights(), random_stream(seed, 'list members', 1)
  local own = #members
  for m = own + 1, count do
    local from, weights = members[(m - own - 1) % own + 1], {}
    for t, term in ipairs(schedulers.terms) do
      for j = 1, #schedulers.circumstances do
        local i = (t - 1) * #schedulers.circumstances + j
        weights[i] = from[i] + noise * spread[term] * random:normal()
      end
    end
    members[m] = weights
  end
  return schedulers.new(members)
end

-- Rounds until there are so many or Ctrl-C comes; whether it did.
local function rounds_of(trainer, count, say)
  core.begin_search()
  local ok, message = pcall(function()
    while trainer.rounds < count and not core.stop_requested() do
      local best, median = trainer:round()
      trainer.rounds = trainer.rounds + 1
      say(trainer.rounds, best, median)
    end
  end)
  local stopped = core.stop_requested()
  core.end_search()
  if not ok and not stopped then error(message, 0) end
  return stopped
end

--- Trains: options { graphs, clusters, rounds, members, seed }; say(round, best, median) after every round. Ctrl-C ends
--- it with the rounds so far. Returns the scheduler with its notes, what the first of its members and the best of those
--- that were trained come to, and whether Ctrl-C came.
function training.train(options, say)
  local cases = training.cases(options.graphs, options.clusters)
  if #cases == 0 then util.fail_usage('option --graphs: no heuristic fits on any of the graphs and clusters') end
  local trainer, start = training.new(cases, options.seed), core.clock_s()
  local stopped = rounds_of(trainer, options.rounds, say)
  local trained, first, all = trainer:members(math.max(1, math.floor(options.members / 2)))
  local scheduler = training.widened(trained, options.members, options.seed)
  scheduler.notes = { trained_on = table.concat(util.map(cases, function(case) return case.label end), ', '),
    rounds = tostring(trainer.rounds), seed = tostring(options.seed),
    hours = ('%.2f'):format((core.clock_s() - start) / 3600),
    command = ('trinity train --learns schedulers --graphs %s --clusters %s --rounds %d --members %d --seed %d'):format(
      options.graphs, options.clusters, trainer.rounds, options.members, options.seed) }
  return scheduler, first, all, stopped
end

return training
