-- Heterogeneous clusters in a plan: the order in which devices form the stages of a pipeline, the idle devices, the
-- time of each stage relative to the first, and the memory of its smallest device.

local model = require 'trinity.graph.model'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local unequal = {}

local Unequal = {}
Unequal.__index = Unequal

local function key_of(kind) return ('%s %.17g'):format(kind.type, kind.speed) end

--- The properties of a cluster's devices that a search needs; kinds: networks.kinds; per_s: the cost per second of each
--- device (nil: all the same). Fields: kind_of (an index of kinds, a device), sorted (devices by peak per cost, the
--- fastest first), rate (FLOP a second of a kind, per cost), fewer (whether plans may use fewer devices), counts (how
--- many devices the fastest kind, the fastest two, ... have), natural_sorted (whether the cluster names the fastest
--- first), capacity_bytes (the most of a device).
function unequal.new(cluster, kinds, per_s)
  local self = setmetatable({ cluster = cluster, kinds = kinds, kind_of = {}, sorted = {}, counts = {}, rate = {},
    capacity_bytes = 0, natural_sorted = true, fewer = per_s ~= nil }, Unequal)
  local at, rate = {}, self.rate
  for k, kind in ipairs(kinds) do
    at[key_of(kind)], rate[k] = k, 0
    for _, flop in util.sorted_pairs(model.peak_flops_per_s(cluster, kind.type)) do
      rate[k] = math.max(rate[k], flop * kind.speed)
    end
    if per_s then rate[k] = rate[k] / math.max(per_s[kind.device], 1e-12) end
    self.capacity_bytes = math.max(self.capacity_bytes, cluster.devices[kind.device].capacity_bytes)
  end
  for d, device in ipairs(cluster.devices) do self.kind_of[d], self.sorted[d] = at[key_of(device)], d end
  local function rate_of(d) return rate[self.kind_of[d]] end
  table.sort(self.sorted, function(a, b)
    if rate_of(a) ~= rate_of(b) then return rate_of(a) > rate_of(b) end
    return a < b
  end)
  for i, d in ipairs(self.sorted) do
    self.natural_sorted = self.natural_sorted and d == i
    local next_one = self.sorted[i + 1]
    if not next_one or rate_of(next_one) ~= rate_of(d) then self.counts[#self.counts + 1] = i end
  end
  return self
end

--- The devices of a point in the order of its ranks; nil: as the cluster names them. Where some are left idle by an
--- order that is no list, it is the slowest.
function Unequal:devices_of(point)
  local order = point.order
  if type(order) == 'table' then return order end
  if not order or order == 'natural' then return nil end
  local used = space.used(point)
  return util.listed(used, function(i) return self.sorted[order == 'fastest_first' and i or used + 1 - i] end)
end

--- The cost per second of a point's step, as a function of points; per_s: of every device.
function Unequal:rate_of(per_s)
  local same, known = #self.kinds == 1, {}
  return function(point)
    local used = space.used(point)
    if same then return used * per_s[1] end
    local devices = self:devices_of(point)
    local key = type(point.order) == 'table' and devices or ('%d %s'):format(used, tostring(point.order))
    if not known[key] then
      known[key] = 0
      for i = 1, used do known[key] = known[key] + per_s[devices and devices[i] or i] end
    end
    return known[key]
  end
end

--- Whether a list of devices is what one of the words for orders says.
function Unequal:is_word(devices)
  local natural, first, last = true, true, true
  for i, d in ipairs(devices) do
    natural, first = natural and d == i, first and d == self.sorted[i]
    last = last and d == self.sorted[#devices + 1 - i]
  end
  return natural or first or last
end

--- The devices of a stage (from 1) of a strategy's pipeline.
function unequal.stage_devices(strategy, stage)
  local mesh = strategy.mesh
  local count = (mesh.data or 1) * (mesh.tensor or 1) * (mesh.context or 1) * (mesh.placement or 1)
  return util.listed(count, function(i)
    local rank = (stage - 1) * count + i
    return strategy.devices and strategy.devices[rank] or rank
  end)
end

--- Bytes of the smallest device of a stage of a strategy: all hold the same.
function Unequal:room(strategy, stage)
  local least = math.huge
  for _, d in ipairs(unequal.stage_devices(strategy, stage)) do
    least = math.min(least, self.cluster.devices[d].capacity_bytes)
  end
  return least
end

--- The time of layers on every stage relative to the first device of the first stage: its slowest device decides.
--- layer_s(stage): seconds of a layer on the first device of a stage; alone_s(kind): on one device alone.
function Unequal:speeds(strategy, layer_s, alone_s)
  local seen, speeds = {}, {}
  local first_s
  for stage = 1, strategy.mesh.pipeline do
    local devices = unequal.stage_devices(strategy, stage)
    local first, slowest = self.kind_of[devices[1]], self.kind_of[devices[1]]
    for _, d in ipairs(devices) do
      if alone_s(self.kind_of[d]) > alone_s(slowest) then slowest = self.kind_of[d] end
    end
    local key = first * #self.kinds + slowest
    if not seen[key] then seen[key] = layer_s(stage) * alone_s(slowest) / alone_s(first) end
    first_s = first_s or layer_s(1)
    speeds[stage] = seen[key] / first_s
  end
  return speeds
end

return unequal
