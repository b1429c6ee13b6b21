-- Problems of any size whose optimum is known and which a greedy list scheduler does not solve, to see whether a policy
-- learns: the policy of method trinity from nothing, by PPO with an advantage for every action, against the same
-- policy never updated. `trinity study policy optima` prints the table of the manual's chapter "moves".
--
-- Every problem has two parts that share nothing except, in chains, their source, on two equal devices; sending a
-- tensor takes longer than computing an operator. The best placement gives each part a device:
--   chains   two chains after one source: work on the other device than the source's has waited for a transfer, so no
--            step is shorter than one transfer and one chain, unless one device does everything;
--   trees    two binary trees from the leaves to the root, and
--   blocks   two stacks of rows of four, each of which reads two of the row before: no step is shorter than half of the
--            work.

local core = require 'trinity.core'
local graphs = require 'trinity.graph'
local methods = require 'trinity.methods'
local model = require 'trinity.graph.model'
local make_agent = require 'trinity.learn.agent'
local problems = require 'trinity.strategy.problem'

local known = { kinds = { 'chains', 'trees', 'blocks' } }

local operator_s = 1e-3
local tensor_bytes = { chains = 15e6, trees = 50e6, blocks = 20e6 } -- 1.3 to 4.2 ms on a link of p100x2
local samples, updates = 10, 300 -- of a batch; in which the entropy falls

local build = {}

function build.chains(units, add, edge)
  add('source', 1e-6)
  for part = 1, 2 do
    local last = 'source'
    for i = 1, math.floor((units - 1) / 2) do
      local name = ('part%d_%d'):format(part, i)
      add(name)
      edge(last, name)
      last = name
    end
  end
end

function build.trees(units, add, edge)
  local nodes = math.floor(units / 2)
  for part = 1, 2 do
    for i = nodes, 1, -1 do add(('part%d_%d'):format(part, i)) end
    for i = nodes, 2, -1 do edge(('part%d_%d'):format(part, i), ('part%d_%d'):format(part, math.floor(i / 2))) end
  end
end

function build.blocks(units, add, edge)
  for row = 1, math.floor(units / 8) do
    for part = 1, 2 do
      for column = 0, 3 do
        local name = ('part%d_%d_%d'):format(part, row, column)
        add(name)
        for beside = 0, row > 1 and 1 or -1 do
          edge(('part%d_%d_%d'):format(part, row - 1, (column + beside) % 4), name)
        end
      end
    end
  end
end

--- A problem of about `units` units: { problem =, one_s = of one device, optimum_s =, optimum = its placement,
--- gain = of a step time: 0 of one device, 1 of the optimum }.
function known.case(kind, units)
  local builder = graphs.new { name = ('%s_%d'):format(kind, units) }
  build[kind](units, function(name, time_s)
    builder:add_operator { name = name, time_s = time_s or operator_s, memory_bytes = 1 }
  end, function(from, to) builder:add_edge(from, to, tensor_bytes[kind]) end)
  local graph = builder:build()
  local case = { problem = problems.new { graph = graph, cluster = model.cluster 'p100x2' } }
  case.optimum = case.problem:placement_by_unit(function(_, op)
    return graph:operator(op).name:match '^part2' and 2 or 1
  end)
  case.one_s = case.problem:evaluate(case.problem:placement()).step_time_s
  case.optimum_s = case.problem:evaluate(case.optimum).step_time_s
  function case.gain(step_time_s) return (case.one_s - step_time_s) / (case.one_s - case.optimum_s) end
  return case
end

--- The gain of a constructive method.
function known.constructed(case, name)
  return case.gain(methods[name](case.problem, { quiet = true }).metrics.step_time_s)
end

-- A policy that has sampled nothing yet.
local function policy(case, seed)
  return make_agent(case.problem, { preset = 'scratch', seed = seed, samples = samples, groups = 2,
    entropy_last = 0.1, entropy_updates = updates })
end

--- The largest gain of the placements that the policy sampled, and how many it took to reach `enough`; nil if it never
--- did. A policy whose entropy has fallen without it has settled elsewhere: another one begins from nothing, and the
--- samples of the first one count. most: placements in all. frozen: it is never updated. seconds: time limit, if given.
function known.learn(case, seed, most, enough, frozen, seconds)
  local agent, best, end_s = policy(case, seed), -math.huge, core.clock_s() + (seconds or math.huge)
  local count
  for update = 1, math.floor(most / samples) do
    if not frozen and update > 1 and update % updates == 1 then
      agent:close()
      agent = policy(case, core.random(seed, 'another policy', update - 1):integer(2 ^ 53) - 1)
    end
    local metrics, rewards = case.problem:evaluate_batch(agent:sample()), {}
    for i = 1, #metrics do
      rewards[i] = -metrics[i].step_time_s
      best = math.max(best, case.gain(metrics[i].step_time_s))
    end
    if best >= enough then count = update * samples end
    if count or core.clock_s() >= end_s then break end
    if not frozen then agent:update(rewards, nil, metrics) end
  end
  agent:close()
  return best, count
end

return known
