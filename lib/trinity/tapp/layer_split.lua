-- Splits of a row of layers (tapp.layer_chain) into pipeline stages on unequal nodes: the exact one of least load
-- by dynamic programming over sets of nodes, the one of equal work, and the one whose simulated step is fastest, by
-- trying all that could be.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local layer_chain = require 'trinity.tapp.layer_chain'
local util = require 'trinity.base.util'

local layer_split = {}

local function prefix(values)
  local sums = { [0] = 0 }
  for i = 1, #values do sums[i] = sums[i - 1] + values[i] end
  return sums
end

-- The narrowest wire that leaves every device, bytes per second; math.huge for a single one.
local function narrowest_wires(cluster)
  local widths = {}
  for d = 1, #cluster.devices do
    widths[d] = math.huge
    for to = 1, #cluster.devices do
      if to ~= d then
        local _, bandwidth = cluster:wire(d, to)
        widths[d] = math.min(widths[d], bandwidth)
      end
    end
  end
  return widths
end

local Costs = {}
Costs.__index = Costs

-- Loads of stages: seconds a micro-batch that a device computes, or sends to its neighbours, whichever is more (a wire
-- works while its device does). math.huge where weights, gradients, optimiser state and the activations of `in_flight`
-- micro-batches exceed the device.
function Costs:load(d, from, to, in_flight)
  local chain, time_s = self.chain, self.time_s[d]
  local stored = self.stored[to] - self.stored[from - 1]
    + in_flight * (self.activations[to] - self.activations[from - 1])
  if stored > self.capacity[d] then return math.huge end
  local sent = chain.forward_bytes[to] + chain.backward_bytes[from - 1]
  return math.max(time_s[to] - time_s[from - 1], sent / self.bandwidth[d])
end

-- Seconds of every layer, the means over the devices.
local function mean_times(chain)
  local mean = {}
  for l = 1, chain.layers do
    mean[l] = 0
    for d = 1, #chain.kind_of do
      local kind = chain.kinds[chain.kind_of[d]]
      mean[l] = mean[l] + (kind.forward_s[l] + kind.backward_s[l]) / #chain.kind_of
    end
  end
  return mean
end

local function costs_of(problem, chain)
  local self = setmetatable({ chain = chain, time_s = {}, capacity = {}, bandwidth = narrowest_wires(problem.cluster) },
    Costs)
  local per_kind = {}
  for k, kind in ipairs(chain.kinds) do
    local times = util.listed(chain.layers, function(l) return kind.forward_s[l] + kind.backward_s[l] end)
    per_kind[k] = prefix(times)
  end
  for d, device in ipairs(problem.cluster.devices) do
    self.time_s[d] = per_kind[chain.kind_of[d]]
    self.capacity[d] = device.capacity_bytes
  end
  local stored = util.listed(chain.layers, function(l) return chain.fixed_bytes[l] + chain.parameter_bytes[l] end)
  self.stored, self.activations = prefix(stored), prefix(chain.activation_bytes)
  return self
end

local function has(set, d) return math.floor(set / 2 ^ (d - 1)) % 2 == 1 end

local function size_of(set)
  local count = 0
  while set > 0 do
    count = count + set % 2
    set = math.floor(set / 2)
  end
  return count
end

-- Adds to best[set][first] every way to put layers `first` and on onto `set`, whose earliest stage is on `d`.
local function extend(self, best, set, d, micro_batches)
  local rest, layers = set - 2 ^ (d - 1), self.chain.layers
  local in_flight = math.min(size_of(set), micro_batches)
  local row, after = best[set], best[rest]
  for first = layers, 1, -1 do
    for last = first, layers do
      local later = after[last + 1]
      if later and later.load < (row[first] and row[first].load or math.huge) then
        local load = math.max(later.load, self:load(d, first, last, in_flight))
        if load < (row[first] and row[first].load or math.huge) then
          row[first] = { load = load, device = d, last = last, rest = rest }
        end
      end
    end
  end
end

local rules = { micro_batches = { 'integer', 1, 2 ^ 30 } }

--- The split of least load: the largest stage's seconds per micro-batch are as few as any split into consecutive
--- parts, each on a node of its own, allows. Returns the device of every layer and that load, or nil where memory
--- allows none. options: micro_batches (how many 1F1B may hold, 1). Clusters of at most 12.
function layer_split.least_load(problem, chain, options)
  check.object('layer_split.least_load', 1, 'problem', problem, 'problem')
  options = check.options('layer_split.least_load', 3, 'options', options, rules)
  local devices = #problem.cluster.devices
  if devices > 12 then
    check.refuse('layer_split.least_load', 1, 'problem', 'expected at most 12 devices, got %d', devices)
  end
  local self, best = costs_of(problem, chain), { [0] = { [chain.layers + 1] = { load = 0 } } }
  local found
  for set = 1, 2 ^ devices - 1 do -- what is taken from a set is a smaller number
    best[set] = {}
    for d = 1, devices do
      if has(set, d) and best[set - 2 ^ (d - 1)] then extend(self, best, set, d, options.micro_batches or 1) end
    end
    local whole = best[set][1]
    if whole and whole.load < (found and found.load or math.huge) then found = whole end
  end
  if not found then return nil end
  local device_of, first, stage = {}, 1, found
  while stage.device do
    for l = first, stage.last do device_of[l] = stage.device end
    first = stage.last + 1
    stage = best[stage.rest][first]
  end
  return device_of, found.load
end

--- The split of equal work as GPipe has it, all nodes taken for equal: the largest sum of the times of a part is least.
--- Returns the device of every layer.
function layer_split.equal_work(problem, chain)
  check.object('layer_split.equal_work', 1, 'problem', problem, 'problem')
  return core.split_row(mean_times(chain), #problem.cluster.devices)
end

-- Seconds that every layer keeps each device busy in a step of so many micro-batches; and per layer the fewest that it
-- and all after it keep any device busy.
local function busy_times(chain, micro_batches)
  local busy, fewest = {}, { [chain.layers + 1] = 0 }
  for k, kind in ipairs(chain.kinds) do
    busy[k] = {}
    for l = 1, chain.layers do
      local update_s = kind.update_s[l]
      busy[k][l] = micro_batches * (kind.forward_s[l] + kind.backward_s[l] - update_s) + update_s
    end
  end
  for l = chain.layers, 1, -1 do
    local least = math.huge
    for k = 1, #busy do least = math.min(least, busy[k][l]) end
    fewest[l] = fewest[l + 1] + least
  end
  return busy, fewest
end

-- Calls use(device_of) for every split where no device is busy for `limit_s` or longer. Returns how many there are, or
-- nil when there are more than `most`; `most_looks` bounds the parts that are looked at.
local function each_possible(chain, busy, fewest, limit_s, most, use)
  local devices, used, device_of = #chain.kind_of, {}, {}
  local count, looks, most_looks = 0, 0, 50 * most
  local function place(from, left)
    if from > chain.layers then
      count = count + 1
      if use then use(device_of) end
      return
    end
    if fewest[from] >= left * limit_s then return end
    for d = 1, devices do
      local times, sum = busy[chain.kind_of[d]], 0
      for last = from, used[d] and from - 1 or chain.layers do
        sum = sum + times[last]
        looks = looks + 1
        if sum >= limit_s or count > most or looks > most_looks then break end
        device_of[last], used[d] = d, true
        place(last + 1, left - 1)
        device_of[last], used[d] = nil, nil
      end
    end
  end
  place(1, devices)
  return count <= most and looks <= most_looks and count or nil
end

local fastest_rules = { micro_batches = { 'integer', 1, 2 ^ 30 }, below_s = 'number', most = { 'integer', 0, 2 ^ 40 } }

--- The split into consecutive parts, each on a node of its own, whose step is fastest by the problem's own schedule:
--- all are tried but those that keep a node busy for too long already. options: micro_batches, as the problem has them
--- (1); below_s, a step that is known (none): only a faster one is looked for; most, the splits that may be tried
--- (100000). Returns { tried =, device_of =, step_time_s = }, without the last two where nothing is faster; nil when
--- there would be more to try.
function layer_split.fastest(problem, chain, options)
  check.object('layer_split.fastest', 1, 'problem', problem, 'problem')
  options = check.options('layer_split.fastest', 3, 'options', options, fastest_rules)
  local most, found = options.most or 100000, { step_time_s = options.below_s or math.huge }
  local busy, fewest = busy_times(chain, options.micro_batches or 1)
  local limit_s, batch, splits = found.step_time_s, {}, {}
  found.tried = each_possible(chain, busy, fewest, limit_s, most)
  if not found.tried then return nil end
  local function flush()
    local limit = found.step_time_s < math.huge and { reject_above_s = found.step_time_s } or nil
    for i, metrics in ipairs(#batch > 0 and problem:evaluate_batch(batch, limit) or {}) do
      if metrics.feasible and metrics.step_time_s < found.step_time_s then
        found.step_time_s, found.device_of = metrics.step_time_s, splits[i]
      end
    end
    batch, splits = {}, {}
  end
  each_possible(chain, busy, fewest, limit_s, most, function(ends)
    local device_of, device = {}, nil
    for l = chain.layers, 1, -1 do
      device = ends[l] or device
      device_of[l] = device
    end
    splits[#splits + 1], batch[#batch + 1] = device_of, layer_chain.placement(problem, chain, device_of)
    if #batch == 256 then flush() end
  end)
  flush()
  if not found.device_of then found.step_time_s = nil end
  return found
end

return layer_split
