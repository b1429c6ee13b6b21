-- Simulated against measured, for section figure9 of Trinity's page and whole_loop.lua: placements from random to good,
-- measured in rounds so that other work on the machine affects all of them equally, and how well the two agree.

local core = require 'trinity.core'
local measure = require 'trinity.execute.measure'
local methods = require 'trinity.methods'
local random = require 'trinity.base.random'
local statistics = require 'studies.statistics'
local util = require 'trinity.base.util'

local fidelity = {}

--- Whether no placement of `seen` has the same text.
local function is_new(placement, seen)
  local parts = util.listed(#placement, function(op) return string.char(64 + placement[op]) end)
  local text = table.concat(parts)
  if seen[text] then return false end
  seen[text] = true
  return true
end

--- Consecutive units in `parts` parts of random lengths, devices in turn.
local function segments(problem, parts, seed)
  local units, cuts = problem.graph.units, {}
  local stream, devices = random(seed, 'fidelity segments'), #problem.cluster.devices
  for i = 1, parts - 1 do cuts[i] = stream:integer(units) end
  table.sort(cuts)
  return problem:placement_by_unit(function(unit)
    local part = 0
    for _, cut in ipairs(cuts) do if unit > cut then part = part + 1 end end
    return part % devices + 1
  end)
end

--- Every unit on a device by chance, the first with probability `share`.
local function scattered(problem, share, seed)
  local stream, devices = random(seed, 'fidelity scattered'), #problem.cluster.devices
  return problem:placement_by_unit(function()
    return stream:uniform() < share and 1 or stream:integer(devices)
  end)
end

--- At least `count` placements as { name =, placement = }, random to good, each once: what methods find first, then
--- searches of budgets up to `evaluations` (4000), then segments and scattered units in turn. Everything on one device
--- is not among them: that is what a profile measures.
function fidelity.placements(problem, count, seed, evaluations)
  local list, seen = {}, {}
  local function add(name, placement)
    if is_new(placement, seen) then list[#list + 1] = { name = name, placement = placement } end
  end
  local function try(name, label, options)
    local ok, found = pcall(methods[name], problem, options)
    if core.was_interrupted() then util.fail 'interrupted' end
    if ok then add(label or name, found.placement) end
  end
  local direct = { 'contiguous', 'metis', 'expert', 'heft', 'etf', 'round_robin' }
  for _, name in ipairs(direct) do
    try(name, nil, { seed = seed, evaluations = 1, quiet = true })
  end
  for _, share in ipairs { 0.01, 0.05, 0.25, 1 } do
    for _, name in ipairs { 'annealing', 'local_search' } do
      local budget = math.max(1, math.floor(share * (evaluations or 4000)))
      try(name, ('%s %d'):format(name, budget), { seed = seed, evaluations = budget, quiet = true })
    end
  end
  for round = 1, 1000 do
    if #list >= count then break end
    local parts = ({ 2, 3, 5, 8, 16, 40 })[(round - 1) % 6 + 1]
    add(('%d segments'):format(parts), segments(problem, parts, seed + round))
    local share = ({ 0, 0.8, 0.5, 0.95 })[(round - 1) % 4 + 1]
    add(('scattered %d %%'):format(100 * (1 - share)), scattered(problem, share, seed + round))
  end
  return list
end

--- One visit to an entry: a step that is not counted, then `count` that are.
local function visit(entry, count, times, half)
  entry.executor:step()
  for _ = 1, count do
    local took = entry.executor:step()
    entry.loss, times[#times + 1], half[#half + 1] = took.loss, took.step_time_s, took.step_time_s
    for d, bytes in ipairs(took.peak_memory_bytes) do
      entry.measured_bytes[d] = math.max(entry.measured_bytes[d], bytes)
    end
  end
end

--- Adds to every entry { placement = } what a problem's simulator says: simulated_s, simulated_bytes by device.
function fidelity.simulate(problem, entries)
  for _, entry in ipairs(entries) do
    local metrics = problem:evaluate(entry.placement)
    entry.simulated_s, entry.simulated_bytes = metrics.step_time_s, {}
    for d = 1, #problem.cluster.devices do entry.simulated_bytes[d] = metrics:memory_bytes(d) end
  end
end

--- Adds to every entry { placement = } its simulated (see above) and measured values: measured_s, measured_bytes by
--- device, loss, and halves_s (from odd and even rounds alone). options: devices, steps (counted; their median is the
--- result) and warm_up, seed, seconds (time limit of the rounds, at least three), progress(round, rounds),
--- between(i) (called before entry i of every round). Every round visits all entries: a step of warm-up, which finds
--- caches and memory as another placement left them, then its share of counted steps.
function fidelity.measure(problem, entries, options)
  local times, halves, started = {}, {}, core.clock_s()
  local rounds = math.max(1, math.min(options.warm_up, options.steps))
  fidelity.simulate(problem, entries)
  for i, entry in ipairs(entries) do
    entry.measured_bytes = {}
    for d = 1, #options.devices do entry.measured_bytes[d] = 0 end
    entry.executor = core.executor(problem.graph.handle, entry.placement, #options.devices,
      measure.order_of(problem, entry.placement), { seed = options.seed, devices = options.devices })
    times[i], halves[i] = {}, { {}, {} }
  end
  for round = 1, rounds do
    local late = options.seconds and core.clock_s() - started > options.seconds
    if late and round > 3 then break end
    if options.progress then options.progress(round, rounds) end
    local count = math.floor(round * options.steps / rounds) - math.floor((round - 1) * options.steps / rounds)
    for i, entry in ipairs(entries) do
      if options.between then options.between(i) end
      visit(entry, count, times[i], halves[i][2 - round % 2])
    end
  end
  for i, entry in ipairs(entries) do
    entry.executor:close()
    entry.executor, entry.steps, entry.measured_s = nil, #times[i], util.median(times[i])
    entry.halves_s = { util.median(halves[i][1]), util.median(#halves[i][2] > 0 and halves[i][2] or halves[i][1]) }
  end
  return entries
end

--- Simulated over measured peak memory: of the fullest device, as a cluster's limit asks.
function fidelity.memory_ratio(entry)
  return math.max(unpack(entry.simulated_bytes)) / math.max(unpack(entry.measured_bytes))
end

--- How well simulated_s and measured_s of entries agree: mean_error and largest_error relative to measured, tau, and
--- halves_tau (of what odd rounds measured with what even ones did: what chance leaves).
function fidelity.agreement(entries)
  local offs = statistics.summary(util.map(entries, function(one) return one.simulated_s / one.measured_s - 1 end))
  return { mean_error = offs.mean, largest_error = offs.worst,
    tau = statistics.tau(util.map(entries, function(entry) return { entry.simulated_s, entry.measured_s } end)) or 1,
    halves_tau = statistics.tau(util.map(entries, function(entry)
      return entry.halves_s or { entry.measured_s, entry.measured_s }
    end)) or 1 }
end

--- The agreement of entries of fidelity.measure(), with best_s and worst_s (measured), favourite (the entry of least
--- simulated time), regret (what that one takes more than the best measured, relative), least_memory_ratio and
--- largest_memory_ratio.
function fidelity.summary(entries)
  local result = util.merged(fidelity.agreement(entries), { least_memory_ratio = math.huge, largest_memory_ratio = 0,
    best_s = math.huge, worst_s = 0 })
  for _, entry in ipairs(entries) do
    result.best_s = math.min(result.best_s, entry.measured_s)
    result.worst_s = math.max(result.worst_s, entry.measured_s)
    if not result.favourite or entry.simulated_s < result.favourite.simulated_s then result.favourite = entry end
    local ratio = fidelity.memory_ratio(entry)
    result.least_memory_ratio = math.min(result.least_memory_ratio, ratio)
    result.largest_memory_ratio = math.max(result.largest_memory_ratio, ratio)
  end
  result.regret = result.favourite.measured_s / result.best_s - 1
  return result
end

--- 'name:batch[:option=number...]' as name, options: a network and its size on a command line.
function fidelity.network(text)
  local words = {}
  for word in text:gmatch '[^:]+' do words[#words + 1] = word end
  local options = { batch_size = tonumber(words[2] or '') }
  for i = options.batch_size and 3 or 2, #words do
    local key, value = words[i]:match '^([%w_]+)=(%w+)$'
    if not tonumber(value or '') and value ~= 'false' and value ~= 'true' then
      util.fail_usage("network '%s': expected NAME:BATCH:OPTION=NUMBER..., got '%s'", text, words[i])
    end
    options[key] = tonumber(value) or value == 'true'
  end
  if not words[1] then util.fail_usage("network '%s': expected NAME:BATCH:OPTION=NUMBER...", text) end
  return words[1], options
end

return fidelity
