-- Searches whose evaluations are executed training steps on workers of this machine, for networks of families that the
-- ranker was not trained on: each method gets the same number of executions from the same start, the heuristic whose
-- step is shortest in one execution. Then everything that was found is executed in interleaved rounds and compared with
-- that heuristic, round by round. With option `heuristics` nothing is searched by executions: the rounds hold all
-- heuristics and what the ranked search finds by simulation, compared with the fastest heuristic of the rounds.
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

local simulated_evaluations = 3000 -- of the simulated search, which executes nothing

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

-- Returns { name, placement, step_time_s } of the heuristics, each executed, the fastest first.
local function heuristics_of(simulated, options)
  local list = {}
  for _, name in ipairs(warm_start.portfolio) do
    local found = methods.get(name)(simulated, { quiet = true })
    if found then
      list[#list + 1] = { name = name, placement = found.placement, simulated_s = found.metrics.step_time_s,
        executed_s = execute(simulated, found.placement, options) }
    end
  end
  table.sort(list, function(a, b)
    if a.executed_s ~= b.executed_s then return a.executed_s < b.executed_s end
    return a.name < b.name
  end)
  return list
end

-- Returns the placement of the ranked search by simulation from a start.
local function simulated_search(simulated, ranker, start, options)
  local case = { problem = simulated, starts = { { placement = start } } }
  return comparison.search('trinity', case, { evaluations = simulated_evaluations }, options.seed, ranker).placement
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
  add('simulated', simulated_search(simulated, ranker, start, options))
  return entries
end

-- Returns the entries of option `heuristics`.
local function heuristic_entries(simulated, ranker, options)
  local entries, best = {}, nil
  for _, name in ipairs(warm_start.portfolio) do
    local found = methods.get(name)(simulated, { quiet = true })
    if found then
      entries[#entries + 1] = { name = name, placement = found.placement }
      if not best or found.metrics.step_time_s < best.metrics.step_time_s then best = found end
    end
  end
  entries[#entries + 1] = { name = 'simulated',
    placement = simulated_search(simulated, ranker, best.placement, options) }
  return entries
end

-- Returns the fastest entry of the rounds among heuristics.
local function fastest(entries)
  local best
  for i = 1, #entries - 1 do
    local entry = entries[i]
    if not best or util.median(entry.times_s) < util.median(best.times_s) then best = entry end
  end
  return best
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
  local heuristics = options.heuristics and {} or heuristics_of(simulated, options)
  local entries = options.heuristics and heuristic_entries(simulated, ranker, options)
    or found_by(simulated, executing, ranker, heuristics[1].placement, options, say)
  interleave(simulated, entries, options, say)
  local start = options.heuristics and fastest(entries) or entries[1]
  local row = { network = network.text, units = simulated.graph.units, entries = {}, heuristics = {},
    over = options.heuristics and 'over the fastest heuristic' or 'over the start',
    bound_s = simulated:bounds().step_time_s }
  for i, entry in ipairs(heuristics) do
    row.heuristics[i] = util.picked(entry, { 'name', 'simulated_s', 'executed_s' })
  end
  for i, entry in ipairs(entries) do
    local ratio, p = compared(entry, start)
    row.entries[i] = { name = entry.name, step_time_s = util.median(entry.times_s), ratio = ratio, p = p,
      simulated_s = simulated:evaluate(entry.placement).step_time_s }
  end
  return row
end

--- Prints rows as Markdown tables.
function executed.print(rows)
  local function ms(time_s) return ('%.1f ms'):format(1000 * time_s) end
  for _, row in ipairs(rows) do
    print(('\n%s: %d units, lower bound %s\n'):format(row.network, row.units, ms(row.bound_s)))
    print(text.markdown({ 'found by', 'step', row.over, 'p', 'simulated' },
      util.map(row.entries, function(entry)
        return { entry.name, ms(entry.step_time_s), ('%.3f'):format(entry.ratio), ('%.2g'):format(entry.p),
          ms(entry.simulated_s) }
      end)))
    local heuristics = util.map(row.heuristics, function(entry)
      return ('%s %s (%s)'):format(entry.name, ms(entry.executed_s), ms(entry.simulated_s))
    end)
    if #heuristics > 0 then
      print('\nheuristics, executed once (simulated): ' .. table.concat(heuristics, ', '))
    end
  end
end

return executed
