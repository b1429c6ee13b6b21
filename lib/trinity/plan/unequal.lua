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
    present = {}, capacity_bytes = 0, natural_sorted = true, fewer = per_s ~= nil }, Unequal)
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
  local known = {}
  return function(point)
    local used, devices = space.used(point), self:devices_of(point)
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

local function size_of(mesh) -- devices of a stage
  return (mesh.data or 1) * (mesh.tensor or 1) * (mesh.context or 1) * (mesh.placement or 1)
end

--- Kinds of the devices of a stage (from 1), each once, its first device's first. devices: in
--- the order of ranks; nil: as the cluster names them.
function Unequal:stage_kinds(devices, size, stage)
  local seen, list = {}, {}
  for rank = (stage - 1) * size + 1, stage * size do
    local kind = self.kind_of[devices and devices[rank] or rank]
    if not seen[kind] then seen[kind], list[#list + 1] = true, kind end
  end
  return list
end

--- How many stages of the fastest kind work as fast as all stages of a point, each by its slowest device: never less.
--- slower: bounds.slower(). Nil where operators or ranks are placed otherwise, or no kind is the fastest for all units.
function Unequal:stages_of(point, slower)
  local placed = point.placement > 1 or type(point.order) == 'table' or (point.rank_order or 'default') ~= 'default'
  if placed or math.min(unpack(slower)) < 1 then return nil end
  local p, size, sum = point.pipeline, space.width(point) * point.data, 0
  local key = ('%d %d %s'):format(p, size, tostring(point.order))
  if not self.present[key] then
    local devices = self:devices_of(point)
    self.present[key] = util.listed(p, function(stage) return self:stage_kinds(devices, size, stage) end)
  end
  for _, kinds in ipairs(self.present[key]) do
    local longest = 1
    for _, kind in ipairs(kinds) do longest = math.max(longest, slower[kind]) end
    sum = sum + 1 / longest
  end
  return sum
end

--- Bytes of the smallest device of a stage of a strategy: all hold the same.
function Unequal:room(strategy, stage)
  local least = math.huge
  for _, kind in ipairs(self:stage_kinds(strategy.devices, size_of(strategy.mesh), stage)) do
    least = math.min(least, self.cluster.devices[self.kinds[kind].device].capacity_bytes)
  end
  return least
end

--- The time of layers on every stage relative to the first device of the first stage: its slowest device decides.
--- layer_s(stage): seconds of a layer on the first device of a stage; alone_s(kind): on one device alone.
function Unequal:speeds(strategy, layer_s, alone_s)
  local known, first_s = {}, nil
  return util.listed(strategy.mesh.pipeline, function(stage)
    local kinds = self:stage_kinds(strategy.devices, size_of(strategy.mesh), stage)
    local slowest = kinds[1]
    for _, kind in ipairs(kinds) do slowest = alone_s(kind) > alone_s(slowest) and kind or slowest end
    local key = kinds[1] * #self.kinds + slowest
    if not known[key] then known[key] = layer_s(stage) * alone_s(slowest) / alone_s(kinds[1]) end
    first_s = first_s or layer_s(1)
    return known[key] / first_s
  end)
end

local most_stages = 8 -- of which all pairs are tried; of more, neighbours and the ends

--- Neighbours: two stages on different devices exchange them, or the devices of one replica of each; layers are
--- balanced again.
function unequal.neighbours(point, about)
  local list, unlike, p = {}, about.unequal, point.pipeline
  if not unlike or p == 1 or about.space.given.order ~= nil then return list end
  local width, kind_of = space.width(point), unlike.kind_of
  local size = width * point.data
  local devices = about.devices or util.listed(size * p, function(i) return i end)
  local balanced = about.space.given.stages == nil and 'balanced' or nil
  local function exchange(a, b, count)
    local other = util.merged({}, devices)
    for i = 1, count do other[a + i], other[b + i] = devices[b + i], devices[a + i] end
    if not unlike:is_word(other) then list[#list + 1] = space.changed(point, { order = other, stages = balanced }) end
  end
  local kinds = util.listed(p, function(stage)
    local of = util.listed(size, function(i) return kind_of[devices[(stage - 1) * size + i]] end)
    table.sort(of)
    return table.concat(of, ' ')
  end)
  for a = 1, p - 1 do
    for b = a + 1, p do
      if kinds[a] ~= kinds[b] and (p <= most_stages or b == a + 1 or a == 1 and b == p) then
        local first, last = (a - 1) * size, b * size - width
        exchange(first, (b - 1) * size, size)
        if point.data > 1 and kind_of[devices[first + 1]] ~= kind_of[devices[last + 1]] then
          exchange(first, last, width)
        end
      end
    end
  end
  return list
end

return unequal
