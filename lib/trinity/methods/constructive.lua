-- Placements that are constructed, not searched for: list schedulers and cuts in Lua (heft.lua and the like, short
-- enough to copy and change), partitioners of the engine (engine/search/partition).

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

-- name, class of its own options, what it is, who published it. `schedules`: it also gives an order (option `order`).
-- `needs`: what it asks of a problem. `script`: whether it is a module of this folder, from a task graph to
-- { device =, order = } or nil and why; `engine`: what the engine calls it, where that is another name.
local all = {
  { 'contiguous', nil, 'consecutive parts along the forward pass, the largest least: the balance of GPipe',
    'Huang et al. 2019', script = true },
  { 'cpop', nil, 'list scheduling along the critical path', 'Topcuoglu et al. 2002', schedules = true, script = true },
  { 'etf', nil, 'list scheduling by the earliest start', 'Hwang et al. 1989', schedules = true, script = true },
  { 'fm', 'FmOptions', 'partition by moves of least cut, recursive bisection',
    'Fiduccia and Mattheyses 1982' },
  { 'heft', nil, 'list scheduling by upward rank and earliest finish', 'Topcuoglu et al. 2002',
    schedules = true, script = true },
  { 'm_etf', nil, 'Baechi: earliest start within memory', 'Jeon et al. 2020',
    schedules = true, needs = 'enough memory for all on the devices together', script = true },
  { 'm_topo', nil, 'Baechi: fills devices in topological order', 'Jeon et al. 2020',
    needs = 'enough memory for all on the devices together', script = true },
  { 'max_load_dp', nil, 'contiguous parts of least load, transfers counted', 'Tarnawski et al. 2020',
    needs = 'at most 20,000 units; exact on graphs that are nearly a chain', engine = 'max_load' },
  { 'metis', 'MetisOptions', 'k-way partition of least cut (METIS)', 'Karypis and Kumar 1998' },
  { 'scotch', 'ScotchOptions', 'static mapping onto the cluster (Scotch)', 'Pellegrini and Roman 1996' },
}

local seeded = { fm = true, metis = true, scotch = true }
local timed = { max_load_dp = true } -- end by themselves with the best so far

--- The engine's settings: what the caller gave of the method's own options.
local function settings_of(name, own, options)
  return util.merged({ seed = seeded[name] and options.seed or nil,
    seconds = timed[name] and options.seconds < math.huge and options.seconds or nil },
    util.picked(options, own, false))
end

--- The memory that a construction had to keep to, for why it has no placement.
local function capacity_text(cluster)
  local largest = cluster.devices[1]
  for _, device in ipairs(cluster.devices) do
    if device.capacity_bytes > largest.capacity_bytes then largest = device end
  end
  return (" (the largest of %d devices, '%s', has %.0f bytes for a step)"):format(#cluster.devices, largest.name,
    largest.capacity_bytes)
end

local scheduled = options_of.declare('trinity.ListScheduleOptions', { extends = search.declared,
  help = 'Settings of list schedulers: methods.heft and the like.',
  { 'order', 'boolean', false, help = 'whether the strategy has their order of operators too' },
})

-- Declares a construction's options, and the names of the engine's.
local function declare(entry)
  local name, class, own = entry[1], entry[2], {}
  if not class then return entry.schedules and scheduled or search.declared, own end
  local declared = options_of.declare('trinity.' .. class, options_of.of_engine({ extends = search.declared,
    help = ('Settings of methods.%s.'):format(name) }, core.method_options(name)))
  for i, option in ipairs(declared.own) do own[i] = option.name end
  return declared, own
end

local function register(methods, entry)
  local name, declared, own = entry[1], declare(entry)
  methods.register(name, function(problem, given)
    local options = search.options(name, declared, given)
    local start, placement = core.clock_s(), problem:placement()
    local facts, reason
    if entry.script then
      facts, reason = require('trinity.methods.' .. name)(problem:task_graph(), problem)
      for op = 1, facts and #placement or 0 do placement[op] = facts.device[op] end
    else
      facts, reason = core.construct(problem.handle, entry.engine or name, settings_of(name, own, options), placement)
    end
    if not facts then return nil, reason .. capacity_text(problem.cluster) end
    local plan = { placement = placement }
    if options.order then plan.schedule, plan.order = 'order', facts.order end
    return problem:strategy(plan, { method = name, seed = options.seed, evaluations = 1,
      seconds = core.clock_s() - start, optimal = facts.exact })
  end, { help = entry[3], source = entry[4], needs = entry.needs, deterministic = not seeded[name],
    options = declared })
end

return function(methods)
  for _, entry in ipairs(all) do register(methods, entry) end
end
