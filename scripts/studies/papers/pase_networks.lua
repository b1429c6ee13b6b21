-- The networks of the PaSE paper with what it states of them, their strategies and what these take, for the sections of
-- its page, which share them.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local graph_class = require 'trinity.graph'
local model = require 'trinity.graph.model'
local page = require 'studies.papers.page'
local pase = require 'trinity.pase'
local problems = require 'trinity.strategy.problem'
local splits = require 'trinity.strategy.splits'
local util = require 'trinity.base.util'

local networks = { names = { 'alexnet', 'inception_v3', 'rnnlm', 'transformer' },
  clusters = { 'gtx1080ti_ib', 'rtx2080ti_ib' } }

-- Per network: options, the cutoff of its space (smallest block of a dimension), the search times of table 1 in s by p
-- (FlexFlow's none for the Transformer; of breadth-first dynamic programming, 'OOM' where it needed more than the
-- memory), and figure 6, read off the vectors of its PDF: measured speed-ups over data parallelism by cluster and p, {
-- expert, FlexFlow, PaSE }.
networks.claimed = {
  alexnet = { cutoff = 4, options = { batch_size = 128 },
    pase_s = { [4] = 0.226, [8] = 0.253, [16] = 0.295, [32] = 0.361, [64] = 0.475 },
    breadth_first_s = { [4] = 0.234, [8] = 0.260, [16] = 0.303, [32] = 0.385, [64] = 0.485 },
    flexflow_s = { [4] = 2.54, [8] = 2.77, [16] = 6.98, [32] = 7.92, [64] = 257.3 },
    gtx1080ti_ib = { [4] = { 1.53, 1.53, 1.65 }, [8] = { 1.56, 1.56, 1.75 }, [16] = { 1.47, 1.47, 1.85 },
      [32] = { 0.96, 1.16, 1.44 }, [64] = { 0.84, 1.38, 1.41 } },
    rtx2080ti_ib = { [4] = { 2.96, 2.96, 3.54 }, [8] = { 3.52, 3.52, 4.01 }, [16] = { 3.37, 3.37, 4.00 },
      [32] = { 1.79, 2.33, 2.78 }, [64] = { 0.91, 1.53, 1.76 } } },
  inception_v3 = { cutoff = 4, options = { batch_size = 128, nested_concat = true },
    pase_s = { [4] = 14.398, [8] = 20.018, [16] = 39.791, [32] = 86.039, [64] = 196.253 },
    breadth_first_s = 'OOM',
    flexflow_s = { [4] = 69.21, [8] = 146.51, [16] = 365.82, [32] = 937.96, [64] = 2237.04 },
    gtx1080ti_ib = { [4] = { 1.00, 1.00, 1.03 }, [8] = { 1.01, 1.01, 1.08 }, [16] = { 1.00, 1.00, 1.07 },
      [32] = { 0.99, 1.01, 1.09 }, [64] = { 1.00, 0.99, 1.12 } },
    rtx2080ti_ib = { [4] = { 1.01, 1.01, 1.01 }, [8] = { 1.02, 1.02, 1.09 }, [16] = { 1.02, 1.02, 1.10 },
      [32] = { 0.99, 1.00, 1.12 }, [64] = { 1.01, 1.01, 1.18 } } },
  rnnlm = { cutoff = 1, options = { batch_size = 64 },
    pase_s = { [4] = 0.057, [8] = 0.086, [16] = 0.069, [32] = 0.131, [64] = 0.215 },
    breadth_first_s = { [4] = 0.070, [8] = 0.084, [16] = 0.109, [32] = 0.167, [64] = 0.271 },
    flexflow_s = { [4] = 107.07, [8] = 164.29, [16] = 432.19, [32] = 668.22, [64] = 1041.98 },
    gtx1080ti_ib = { [4] = { 1.61, 1.79, 1.85 }, [8] = { 1.36, 1.56, 1.76 }, [16] = { 0.77, 0.94, 1.45 },
      [32] = { 0.98, 1.16, 1.41 }, [64] = { 0.91, 1.30, 1.36 } },
    rtx2080ti_ib = { [4] = { 1.61, 1.88, 2.03 }, [8] = { 1.25, 1.72, 2.41 }, [16] = { 0.93, 1.10, 1.68 },
      [32] = { 1.10, 1.30, 1.62 }, [64] = { 1.19, 1.29, 1.33 } } },
  transformer = { cutoff = 1, options = { batch_size = 64 },
    pase_s = { [4] = 9.752, [8] = 28.798, [16] = 130.882, [32] = 553.022, [64] = 1883.187 },
    flexflow_s = {}, breadth_first_s = 'OOM',
    gtx1080ti_ib = { [4] = { 1.01, false, 1.03 }, [8] = { 0.91, false, 1.02 }, [16] = { 1.41, false, 1.55 },
      [32] = { 1.39, false, 1.51 }, [64] = { 1.43, false, 1.43 } },
    rtx2080ti_ib = { [4] = { 0.97, false, 1.00 }, [8] = { 0.78, false, 1.83 }, [16] = { 1.26, false, 1.75 },
      [32] = { 1.27, false, 1.60 }, [64] = { 2.70, false, 2.70 } } },
}

networks.quick = 'AlexNet and RNNLM unless --models names more, 8 and 32 devices, one cluster'

networks.queue = 'fair' -- of simulated links, where nothing else is said

--- Iterates over the networks and numbers of devices that settings ask for: for name, p in networks.cells(settings) do.
function networks.cells(settings)
  return coroutine.wrap(function()
    for _, name in ipairs(networks.names) do
      local wanted = not settings.models or settings.models[name]
      if settings.quick and not settings.models then wanted = name == 'alexnet' or name == 'rnnlm' end
      for _, p in ipairs(wanted and (settings.quick and { 8, 32 } or { 4, 8, 16, 32, 64 }) or {}) do
        coroutine.yield(name, p)
      end
    end
  end)
end

local graphs, searches = {}, {}

--- A network's training graph, as PaSE's; `batch_size` in place of the paper's.
function networks.graph(name, batch_size)
  local key = ('%s %s'):format(name, batch_size or '')
  graphs[key] = graphs[key] or model.load(name, util.merged(networks.claimed[name].options,
    { batch_size = batch_size }))
  return graphs[key]
end

--- A network over p devices as PaSE's code sees it: { graph =, pase =, best = the optimum, data_parallel =, expert = }.
function networks.search(name, p, batch_size)
  local key = ('%s %d %s'):format(name, p, batch_size or '')
  if not searches[key] then
    local graph = networks.graph(name, batch_size)
    local layers = pase.new(graph, { devices = p, cutoff = networks.claimed[name].cutoff })
    local best = page.unless_stopped(layers:solve { quiet = true })
    searches[key] = { graph = graph, pase = layers, best = best, data_parallel = layers:by_rule 'data_parallel',
      expert = layers:by_rule 'expert' }
  end
  return searches[key]
end

--- Prices strategies of a search on a cluster by the event simulator: a function of a list of configurations that
--- gives metrics. `given`: rules, cost as trinity.problem takes them (rules: default networks.queue); cost is for the
--- lowered operators, slices and joins included.
function networks.simulator(search, cluster, given)
  return function(found)
    local entries = splits.entries('networks.simulator', search.graph, search.pase:splits(found))
    local handle, devices = core.lower_splits(search.graph.handle, #cluster.devices,
      array.filled(search.graph.operators, 1), entries)
    local low = graph_class.wrap(handle)
    local problem = problems.simulator(util.merged({ graph = low, cluster = cluster,
      rules = { queue = networks.queue } }, given))
    local metrics = problem:evaluate(array.int32_of(devices))
    problem:close()
    low:close()
    return metrics
  end
end

--- Bytes over the devices' memory, of all together.
function networks.excess_bytes(metrics, cluster)
  local excess = 0
  for d, device in ipairs(cluster.devices) do
    excess = excess + math.max(0, metrics:memory_bytes(d) - device.capacity_bytes)
  end
  return excess
end

--- Layers in breadth-first order from the first one, neighbours by number.
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

--- Returns the requirements of dynamic programming in breadth-first order, the paper's baseline: the largest set of
--- layers in a table, and the maximum number of combinations of a layer and such a set.
function networks.breadth_first(search)
  local neighbours = util.listed(#search.layers, function() return {} end)
  for _, ends in ipairs(search.edges) do
    table.insert(neighbours[ends[1]], ends[2])
    table.insert(neighbours[ends[2]], ends[1])
  end
  for _, list in ipairs(neighbours) do table.sort(list) end
  local done, inside, result = {}, {}, { widest_set = 0, largest_table = 0 }
  local function count(i) return search.layers[i].configurations end
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

return networks
