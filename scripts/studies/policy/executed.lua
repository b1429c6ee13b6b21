-- Searches whose evaluations are executed training steps on workers of this machine, for networks of families that the
-- ranker was not trained on: each method gets the same number of executions from the same start, the heuristic that
-- wins a race of the same number of executions. A screened search executes only what searches by simulation find. Then
-- everything that was found is executed in interleaved rounds and compared with that heuristic, round by round.
-- `trinity study policy executed` prints it.

local bayesian = require 'studies.policy.bayesian'
local comparison = require 'studies.policy.comparison'
local core = require 'trinity.core'
local fidelity = require 'studies.papers.figure9'
local measure = require 'trinity.execute.measure'
local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'
local warm_start = require 'trinity.search.warm_start'

local executed = {}

--- Networks, their sizes, and the family of move_study.lua that they belong to.
executed.networks = {
  { family = 'images', text = 'inception_v3:2:image_size=139' },
  { family = 'recurrent', text = 'gnmt:8:hidden=256:sequence=12:vocabulary=4000' },
  { family = 'images', text = 'hrnet_w48:1:height=64:width=64' },
  { family = 'attention', text = 'moe_transformer:16:hidden=256:layers=2:sequence=64:vocabulary=4000:experts=4:top_k=2:'
    .. 'heads=4:num_kv_heads=2:feed_forward=512' },
}

local simulated_evaluations = 3000 -- of a simulated search, which executes nothing
local screened_seeds = 7           -- simulated searches whose results are executed

local function executor_of(problem, placement, options)
  return core.executor(problem.graph.handle, placement, #options.devices, measure.order_of(problem, placement),
    { seed = options.seed, devices = options.devices })
end

-- Returns the median time of `count` steps after one that is not counted.
local function visit(executor, count)
  executor:step()
  return util.median(util.listed(count, function() return executor:step().step_time_s end))
end

-- Executes a placement once: an evaluation.
local function execute(problem, placement, options)
  local executor = executor_of(problem, placement, options)
  local step_time_s = visit(executor, options.steps)
  executor:close()
  return step_time_s
end

-- Returns the problem on a profile of this machine, and the same with executed steps as its reward.
local function problems_of(network, options)
  local name, chosen = fidelity.network(network.text)
  chosen.optimizer = 'sgd' -- what the executor does
  local graph = model.load(name, chosen)
  local profile = measure.run(graph, { devices = options.devices, seed = options.seed, quiet = true,
    sizes = measure.copy_sizes(2 ^ 26) })
  local simulated = problems.new { graph = graph, profile = profile }
  return simulated, problems.new { graph = graph, profile = profile,
    reward = function(_, plan) return -execute(simulated, plan.placement, options) end }
end

-- Executes { name, placement } by successive halving: all of them, then the faster half again, while evaluations are
-- left. Adds executed_s, the mean of an entry's executions, and sorts: the entries that were kept longest first.
local function race(problem, entries, options)
  local left, kept = options.evaluations, #entries
  for _, entry in ipairs(entries) do entry.executions, entry.executed_s = 0, 0 end
  repeat
    for i = 1, kept do
      local entry = entries[i]
      local mean_s, count = entry.executed_s, entry.executions
      entry.executed_s = (mean_s * count + execute(problem, entry.placement, options)) / (count + 1)
      entry.executions = count + 1
    end
    left, kept = left - kept, math.max(2, math.ceil(kept / 2))
    table.sort(entries, util.by('-executions', 'executed_s', 'name'))
  until left < kept
  return entries
end

-- Returns { name, placement, simulated_s, executed_s } of the heuristics, the fastest of their race first.
local function heuristics_of(simulated, options)
  local list = {}
  for _, name in ipairs(warm_start.portfolio) do
    local found = methods.get(name)(simulated, { quiet = true })
    if found then
      list[#list + 1] = { name = name, placement = found.placement, simulated_s = found.metrics.step_time_s }
    end
  end
  return race(simulated, list, options)
end

local function simulated_search(simulated, method, ranker, start, seed)
  local case = { problem = simulated, starts = { { placement = start } } }
  return comparison.search(method, case, { evaluations = simulated_evaluations }, seed, ranker).placement
end

-- Returns the fastest in a race of the start and of what a search finds by simulation with some seeds.
local function screened(simulated, method, ranker, start, options)
  local entries = { { name = 'start', placement = start } }
  for seed = options.seed, options.seed + screened_seeds - 1 do
    entries[#entries + 1] = { name = ('seed %d'):format(seed),
      placement = simulated_search(simulated, method, ranker, start, seed) }
  end
  return race(simulated, entries, options)[1].placement
end

-- Returns the entries { name, placement } that are compared: the start, the start again as a check of the noise, ...
local function found_by(simulated, executing, ranker, start, options, say)
  local budget = { evaluations = options.evaluations }
  local entries = { { name = 'start', placement = start }, { name = 'start again', placement = start } }
  local function add(name, placement) entries[#entries + 1] = { name = name, placement = placement } end
  local case = { problem = executing, starts = { { placement = start } } }
  for _, entry in ipairs { { 'policy', 'trinity', ranker }, { 'random moves', 'trinity', comparison.uniform },
    { 'annealing' }, { 'local_search' } } do
    say('%s', entry[1])
    add(entry[1], comparison.search(entry[2] or entry[1], case, budget, options.seed, entry[3]).placement)
  end
  say 'bayesian'
  add('bayesian', bayesian(executing, { start = start, evaluations = options.evaluations, seed = options.seed })
    .placement)
  add('simulated', simulated_search(simulated, 'trinity', ranker, start, options.seed))
  for _, entry in ipairs { { 'policy, screened', 'trinity', ranker }, { 'annealing, screened', 'annealing' } } do
    say('%s', entry[1])
    add(entry[1], screened(simulated, entry[2], entry[3], start, options))
  end
  return entries
end

-- Executes all entries in `rounds` rounds, each of which begins with another entry. Adds times_s, one per round.
local function interleave(problem, entries, options, say)
  for _, entry in ipairs(entries) do
    entry.executor, entry.times_s = executor_of(problem, entry.placement, options), {}
  end
  for round = 1, options.rounds do
    say('round %d of %d', round, options.rounds)
    for i = 1, #entries do
      local entry = entries[(i + round - 2) % #entries + 1]
      entry.times_s[round] = visit(entry.executor, options.steps)
    end
  end
  for _, entry in ipairs(entries) do
    entry.executor:close()
    entry.executor = nil
  end
end

-- Returns ratio and p of an entry over the start, paired by rounds.
local function compared(entry, start)
  local logs = util.listed(#start.times_s, function(i) return math.log(entry.times_s[i] / start.times_s[i]) end)
  return math.exp(statistics.mean(logs)), statistics.signed_rank(logs).p
end

--- Runs one network: options { devices =, evaluations =, steps =, rounds =, seed = }, the ranker of its family. Returns
--- a row { network, heuristics, entries = { { name, step_time_s, simulated_s, ratio, p } } }.
function executed.row(network, ranker, options, say)
  local simulated, executing = problems_of(network, options)
  local heuristics = heuristics_of(simulated, options)
  local entries = found_by(simulated, executing, ranker, heuristics[1].placement, options, say)
  interleave(simulated, entries, options, say)
  local row = { network = network.text, units = simulated.graph.units, entries = {}, heuristics = {},
    bound_s = simulated:bounds().step_time_s }
  for i, entry in ipairs(heuristics) do
    row.heuristics[i] = util.picked(entry, { 'name', 'simulated_s', 'executed_s' })
  end
  for i, entry in ipairs(entries) do
    local ratio, p = compared(entry, entries[1])
    row.entries[i] = { name = entry.name, step_time_s = util.median(entry.times_s), ratio = ratio, p = p,
      simulated_s = simulated:evaluate(entry.placement).step_time_s }
  end
  return row
end

function executed.print(rows)
  local function ms(time_s) return ('%.1f ms'):format(1000 * time_s) end
  for _, row in ipairs(rows) do
    print(('\n%s: %d units, lower bound %s\n'):format(row.network, row.units, ms(row.bound_s)))
    print(text.markdown({ 'found by', 'step', 'over the start', 'p', 'simulated' },
      util.map(row.entries, function(entry)
        return { entry.name, ms(entry.step_time_s), ('%.3f'):format(entry.ratio), ('%.2g'):format(entry.p),
          ms(entry.simulated_s) }
      end)))
    local heuristics = util.map(row.heuristics, function(entry)
      return ('%s %s (%s)'):format(entry.name, ms(entry.executed_s), ms(entry.simulated_s))
    end)
    print('\nheuristics, mean of their executions (simulated): ' .. table.concat(heuristics, ', '))
  end
end

return executed
