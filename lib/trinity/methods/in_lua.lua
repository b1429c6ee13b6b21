-- Three baselines written in Lua with what every script has: arrays of the graph, measured timelines, placements, the
-- frame of a search, random numbers. They follow the same rules as the engine's m_topo, heft and mcmc
-- (engine/search/{baechi,list_schedule,mcmc}.h), and give the same placements (tests/lua/baselines_spec.lua).
--   require 'trinity.methods.in_lua'     registers lua_m_topo, lua_heft and lua_mcmc

local trinity = require 'trinity'

local baselines = {}

-- What every unit takes when nothing is given back: weights, optimiser state, workspace and activations.
local function unit_bytes(graph)
  local bytes, unit_of = {}, graph.unit_of
  local weights, state = graph.parameter_bytes_of, graph.persistent_bytes_of
  local workspace, activations = graph.workspace_bytes_of, graph.activation_bytes_of
  for u = 1, graph.units do bytes[u] = 0 end
  for i = 1, graph.operators do
    local unit = unit_of[i]
    bytes[unit] = bytes[unit] + weights[i] + state[i] + workspace[i] + activations[i]
  end
  return bytes
end

--- m-TOPO (Jeon et al., Baechi, SoCC 2020): units in order; the next device begins when the present one would hold
--- more than an equal share and the largest unit.
function baselines.m_topo(problem)
  local bytes, devices, sum, largest = unit_bytes(problem.graph), #problem.cluster.devices, 0, 0
  for u = 1, #bytes do sum, largest = sum + bytes[u], math.max(largest, bytes[u]) end
  local limit, home, device, used = math.floor(sum / devices) + largest, {}, 1, 0
  for u = 1, #bytes do
    if device < devices and used + bytes[u] > limit then device, used = device + 1, 0 end
    home[u], used = device, used + bytes[u]
  end
  local placement, unit_of = problem:placement(), problem.graph.unit_of
  for i = 1, #placement do placement[i] = home[unit_of[i]] end
  return placement
end

--- Nanoseconds of every operator on every device, a list of lists: what a step on that device alone takes. Devices
--- of one kind share a list.
local function costs_ns(problem)
  local by_kind, costs = {}, {}
  for d, device in ipairs(problem.cluster.devices) do
    local kind = ('%s %.17g'):format(device.type, device.speed)
    if not by_kind[kind] then
      local placement, list = problem:placement(), {}
      for i = 1, #placement do placement[i] = d end
      local alone = problem:timeline(placement)
      local start_s, end_s = alone.start_s, alone.end_s
      for i = 1, #placement do list[i] = math.floor((end_s[i] - start_s[i]) * 1e9 + 0.5) end
      alone:close()
      by_kind[kind] = list
    end
    costs[d] = by_kind[kind]
  end
  return costs
end

--- Latency (ns) and rate (bytes per ns) from device to device, and the means of latency and 1 / rate.
local function wires_of(cluster)
  local devices, latency_sum, inverse_sum = #cluster.devices, 0, 0
  local latency, rate = {}, {}
  for from = 1, devices do
    latency[from], rate[from] = {}, {}
    for to = 1, devices do
      local seconds, bandwidth = 0, 1e9
      if from ~= to then seconds, bandwidth = cluster:wire(from, to) end
      latency[from][to], rate[from][to] = math.floor(seconds * 1e9 + 0.5), bandwidth / 1e9
      if from ~= to then
        latency_sum, inverse_sum = latency_sum + latency[from][to], inverse_sum + 1 / rate[from][to]
      end
    end
  end
  local pairs_of_devices = math.max(1, devices * (devices - 1))
  return { latency = latency, rate = rate, mean_latency = latency_sum / pairs_of_devices,
    mean_inverse_rate = inverse_sum / pairs_of_devices }
end

--- Mean costs, which operators follow (they cost nothing and read only what does, so they go where their reader
--- is), and upward ranks: mean cost and the longest way to an exit at mean wires.
local function ranks(graph, costs, wires)
  local operators, devices, out, inward = graph.operators, #costs, graph:csr(), graph:csr 'in'
  local first, target, bytes = out.first, out.target, out.bytes
  local mean_latency, mean_inverse_rate = wires.mean_latency, wires.mean_inverse_rate
  local rank, follows = {}, {}
  for i = 1, operators do rank[i] = 0 end
  for i = operators, 1, -1 do
    local longest, wire, cost = 0, 0, 0
    for e = first[i], first[i + 1] - 1 do
      wire = wire + (mean_latency + mean_inverse_rate * bytes[e])
      if e == first[i + 1] - 1 or target[e + 1] ~= target[e] then
        longest, wire = math.max(longest, wire + rank[target[e]]), 0
      end
    end
    for d = 1, devices do cost = cost + costs[d][i] end
    rank[i], follows[i] = cost / devices + longest, cost == 0
  end
  for i = 1, operators do
    for e = inward.first[i], inward.first[i + 1] - 1 do
      follows[i] = follows[i] and follows[inward.source[e]]
    end
  end
  return rank, follows
end

--- Numbers 1 to #rank by falling rank, equal ones ascending: merges of growing runs, which compile, unlike
--- table.sort's comparisons.
local function by_falling_rank(rank)
  local list, merged, count, width = {}, {}, #rank, 1
  for i = 1, count do list[i], merged[i] = i, 0 end
  while width < count do
    for low = 1, count, 2 * width do
      local middle, high = math.min(low + width, count + 1), math.min(low + 2 * width, count + 1)
      local a, b = low, middle
      for k = low, high - 1 do
        if a < middle and (b >= high or rank[list[a]] >= rank[list[b]]) then
          merged[k], a = list[a], a + 1
        else
          merged[k], b = list[b], b + 1
        end
      end
    end
    list, merged, width = merged, list, 2 * width
  end
  return list
end

-- What one processor runs: slots by start, in blocks, so that an insertion moves few of them.
local Slots = {}
Slots.__index = Slots

local block_size = 64

local function new_slots()
  return setmetatable({ blocks = { { from = {}, to = {}, count = 0 } } }, Slots)
end

--- The block and the place in it of the first slot that ends after `time`, or one past the last.
local function first_after(blocks, time)
  local low, high = 1, #blocks
  while low < high do
    local middle = math.floor((low + high) / 2)
    local block = blocks[middle]
    if block.to[block.count] > time then high = middle else low = middle + 1 end
  end
  local to, first, last = blocks[low].to, 1, blocks[low].count + 1
  while first < last do
    local middle = math.floor((first + last) / 2)
    if to[middle] > time then last = middle else first = middle + 1 end
  end
  return low, first
end

--- The earliest start from `ready` on in a gap that `time` fits into.
function Slots:gap(ready, time)
  local blocks, start = self.blocks, ready
  local b, k = first_after(blocks, ready)
  while b <= #blocks do
    local from, to, count = blocks[b].from, blocks[b].to, blocks[b].count
    while k <= count do
      if start + time <= from[k] then return start end
      start, k = to[k], k + 1
    end
    b, k = b + 1, 1
  end
  return start
end

--- Moves the upper half of a full block into one of its own.
local function split(blocks, b)
  local lower, upper, half = blocks[b], { from = {}, to = {}, count = 0 }, block_size / 2
  for k = half + 1, lower.count do
    upper.from[k - half], upper.to[k - half] = lower.from[k], lower.to[k]
  end
  upper.count, lower.count = lower.count - half, half
  table.insert(blocks, b + 1, upper)
end

function Slots:insert(start, stop)
  local blocks, low, high = self.blocks, 1, #self.blocks
  while low < high do -- the last block that begins no later
    local middle = math.floor((low + high + 1) / 2)
    local from, to = blocks[middle].from[1], blocks[middle].to[1]
    if from < start or from == start and to <= stop then low = middle else high = middle - 1 end
  end
  local block = blocks[low]
  local from, to, k = block.from, block.to, block.count
  while k > 0 and (from[k] > start or from[k] == start and to[k] > stop) do
    from[k + 1], to[k + 1], k = from[k], to[k], k - 1
  end
  from[k + 1], to[k + 1], block.count = start, stop, block.count + 1
  if block.count == block_size then split(blocks, low) end
end

--- A list schedule under construction: home (the device of every operator, 0 while open), unit_home, end_ns.
local function new_schedule(problem, costs, wires, follows)
  local graph, inward, slots = problem.graph, problem.graph:csr 'in', {}
  local self = { costs = costs, latency = wires.latency, rate = wires.rate, follows = follows, slots = slots,
    unit_of = graph.unit_of:totable(), first = inward.first:totable(), source = inward.source:totable(),
    bytes = inward.bytes:totable(), home = {}, unit_home = {}, end_ns = {}, seen = {} }
  for d = 1, #costs do slots[d] = new_slots() end
  for i = 1, graph.operators do self.home[i], self.end_ns[i], self.seen[i] = 0, 0, 0 end
  for u = 1, graph.units do self.unit_home[u] = 0 end
  return self
end

--- When all that operator `i` reads is on `device`. What follows and is not placed is there from the start.
local function arrival_ns(self, i, device)
  local first, source, home, latest, wire = self.first, self.source, self.home, 0, 0
  local last = first[i + 1] - 1
  for e = first[i], last do
    local from = source[e]
    local place = home[from]
    if place == 0 then place = self.unit_home[self.unit_of[from]] end
    if place ~= 0 and place ~= device then
      wire = wire + self.latency[place][device] + math.floor(self.bytes[e] / self.rate[place][device] + 0.5)
    end
    if e == last or source[e + 1] ~= from then
      latest, wire = math.max(latest, self.end_ns[from] + wire), 0
    end
  end
  return latest
end

local function put(self, i, device)
  local time, slots = self.costs[device][i], self.slots[device]
  local start = slots:gap(arrival_ns(self, i, device), time)
  slots:insert(start, start + time)
  self.home[i], self.unit_home[self.unit_of[i]], self.end_ns[i] = device, device, start + time
end

--- What follows, is open and leads to operator `i` through such operators, ascending; nothing for most.
local function open_followers(self, i)
  local first, source, home, follows, seen = self.first, self.source, self.home, self.follows, self.seen
  local list, count, reader, k = nil, 0, i, 0
  repeat
    for e = first[reader], first[reader + 1] - 1 do
      local from = source[e]
      if follows[from] and home[from] == 0 and seen[from] ~= i then
        list, count, seen[from] = list or {}, count + 1, i
        list[count] = from
      end
    end
    k = k + 1
    reader = k <= count and list[k]
  until not reader
  if list then table.sort(list) end
  return list
end

--- Places operator `i`, and before it what follows and it reads.
local function place(self, i, device)
  local followers = open_followers(self, i)
  if followers then
    for k = 1, #followers do
      local own = self.unit_home[self.unit_of[followers[k]]]
      put(self, followers[k], own ~= 0 and own or device)
    end
  end
  put(self, i, device)
end

--- The device where operator `i` ends first: its unit's, or of all the lowest.
local function earliest_end(self, i)
  local own = self.unit_home[self.unit_of[i]]
  if own ~= 0 then return own end
  local best, best_end = 1, math.huge
  for d = 1, #self.costs do
    local time = self.costs[d][i]
    local stop = self.slots[d]:gap(arrival_ns(self, i, d), time) + time
    if stop < best_end then best, best_end = d, stop end
  end
  return best
end

--- HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002): operators by falling upward rank on the device where they
--- end first, in a gap where one is long enough; the first of a colocation unit places it.
function baselines.heft(problem)
  local costs, wires = costs_ns(problem), wires_of(problem.cluster)
  local rank, follows = ranks(problem.graph, costs, wires)
  local schedule = new_schedule(problem, costs, wires, follows)
  local order = by_falling_rank(rank)
  for k = 1, #order do
    local i = order[k]
    if not follows[i] then place(schedule, i, earliest_end(schedule, i)) end
  end
  local placement = problem:placement()
  for i = 1, #placement do
    if schedule.home[i] == 0 then place(schedule, i, math.max(1, schedule.unit_home[schedule.unit_of[i]])) end
  end
  for i = 1, #placement do placement[i] = schedule.home[i] end
  return placement
end

--- A Markov chain: `placement` is the proposal, state and fastest are devices by unit.
local function new_chain(problem)
  local chain = { placement = problem:placement(), units = {}, state = {}, fastest = {} }
  for u = 1, problem.graph.units do
    chain.units[u], chain.state[u], chain.fastest[u] = problem.graph:unit(u), 1, 1
  end
  return chain
end

local function move(chain, unit, device)
  local placement, members = chain.placement, chain.units[unit]
  for k = 1, #members do placement[members[k]] = device end
end

local function go_back(chain)
  for u = 1, #chain.units do
    if chain.state[u] ~= chain.fastest[u] then
      chain.state[u] = chain.fastest[u]
      move(chain, u, chain.fastest[u])
    end
  end
  chain.state_ms = chain.fastest_ms
end

--- FlexFlow's search (Jia, Zaharia and Aiken, MLSys 2019), restricted to placements: a proposal moves a random unit to
--- another random device and is accepted with probability exp(alpha * (present time - new time)), in milliseconds (the
--- reward counts as minus seconds; a megabyte of excess memory as 1 ms). Now and then it goes back to the best.
--- options.alpha_per_ms: 0 is 100 over the time on one device.
function baselines.mcmc(problem, options)
  options = trinity.search.options('lua_mcmc', { alpha_per_ms = 0 }, options)
  return trinity.search.run('lua_mcmc', problem, options, function(search)
    local random, devices = trinity.random(options.seed, 'mcmc'), #problem.cluster.devices
    local chain, batch, proposals = new_chain(problem), {}, 0
    batch[1] = chain.placement
    local function price_ms()
      local rewards, metrics = search:evaluate(batch)
      return -rewards[1] / 1e-3 + metrics[1].excess_memory_bytes / 1e6
    end
    chain.state_ms = price_ms()
    chain.fastest_ms = chain.state_ms
    local start_ms = math.abs(chain.state_ms)
    local alpha = options.alpha_per_ms > 0 and options.alpha_per_ms or start_ms > 0 and 100 / start_ms or 1
    local interval = math.min(math.max(math.floor(options.evaluations / 100), 1), 1000)
    while devices > 1 and search:more() do
      if proposals % interval == 0 then go_back(chain) end
      proposals = proposals + 1
      local unit, device = random:integer(#chain.units), random:integer(devices - 1)
      if device >= chain.state[unit] then device = device + 1 end
      local threshold_ms = chain.state_ms - math.log(1 - random:uniform()) / alpha
      move(chain, unit, device)
      local ms = price_ms()
      if ms <= threshold_ms then
        chain.state[unit], chain.state_ms = device, ms
      else
        move(chain, unit, chain.state[unit])
      end
      if ms < chain.fastest_ms then -- accepted, too, unless the threshold fell by rounding
        for u = 1, #chain.units do chain.fastest[u] = chain.state[u] end
        chain.fastest[unit], chain.fastest_ms = device, ms
      end
    end
  end)
end

trinity.methods.register('lua_m_topo', baselines.m_topo, { help = 'm_topo written in Lua', deterministic = true,
  source = 'Jeon et al. 2020' })
trinity.methods.register('lua_heft', baselines.heft, { help = 'heft written in Lua', deterministic = true,
  source = 'Topcuoglu et al. 2002', needs = 'a graph without collectives' })
trinity.methods.register('lua_mcmc', baselines.mcmc, { help = 'mcmc written in Lua', budget = true,
  source = 'Jia et al., MLSys 2019' })

return baselines
