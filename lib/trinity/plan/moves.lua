-- Moves from a plan to its neighbours: what the search tries from the best plans when its queue is done, beyond the
-- values that its space lists.

local by_layer = require 'trinity.plan.by_layer'
local check = require 'trinity.base.check'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local moves = {}

local registered, order, builtin = {}, {}, {}
local axes = { 'tensor', 'context', 'placement', 'expert', 'data', 'pipeline' } -- of ranks, innermost first

--- Registers a move under a name: a function of a point and of the state of the search ({ space =, result =,
--- `room(strategy, stage)` in bytes, unequal (unequal.lua; nil for equal devices), devices in the order of ranks (nil:
--- the cluster's) }) that returns a list of points. It replaces an earlier move of that name.
---@param name string
---@param move fun(point: trinity.PlanPoint, about: table): trinity.PlanPoint[]
function moves.register(name, move)
  check.own_name('plan.move', 'name', name, builtin)
  check.argument('plan.move', 2, 'move', move, 'function')
  if not registered[name] then order[#order + 1] = name end
  registered[name] = move
end

--- Their names, in the order in which they are tried.
---@return string[]
function moves.names() return util.merged({}, order) end

local function changed(point, fields)
  local copy = space.kept(point)
  copy.recomputed = nil -- follows from the rest
  return util.merged(copy, fields)
end

-- Stages of a point that a move changed: balanced again where they were, unless a layout was given.
local function stages_anew(point, about)
  local anew = type(point.stages) == 'table' and about.space:takes(point, 'stages', 'balanced')
  return anew and 'balanced' or point.stages
end

--- A layer less on the stages whose devices work longest or are fullest, one more on any other neighbour.
moves.register('stage', function(point, about)
  local list = {}
  if point.pipeline == 1 or about.space.given.stages ~= nil then return list end
  local counts = by_layer.stages(point, about.space.about.layers)
  local seen = {}
  for from = 1, #counts do
    for _, to in ipairs { from - 1, from + 1, 1, #counts } do
      local key = ('%d %d'):format(from, to)
      if counts[to] and to ~= from and counts[from] > 0 and not seen[key] then
        seen[key] = true
        local other = util.merged({}, counts)
        other[from], other[to] = other[from] - 1, other[to] + 1
        list[#list + 1] = changed(point, { stages = other })
      end
    end
  end
  return list
end)

-- Devices of a stage (from 1) of a point, and a key of their types.
local function stage_of(about, devices, size, stage)
  local list, kinds = {}, {}
  for i = 1, size do
    list[i] = devices[(stage - 1) * size + i]
    kinds[i] = about.unequal.kind_of[list[i]]
  end
  table.sort(kinds)
  return { first = (stage - 1) * size, kinds = table.concat(kinds, ' ') }
end

-- The devices with the `count` ranks after a and the `count` ranks after b exchanged.
local function swapped(devices, a, b, count)
  local other = util.merged({}, devices)
  for i = 1, count do other[a + i], other[b + i] = devices[b + i], devices[a + i] end
  return other
end

local most_stages = 8 -- of which all pairs are tried; of more, neighbours and the ends

--- Heterogeneous devices: two stages of different devices exchange them, or the devices of one replica; layers are
--- distributed again.
moves.register('devices', function(point, about)
  local list, unlike, p = {}, about.unequal, point.pipeline
  if not unlike or p == 1 or about.space.given.order ~= nil then return list end
  local lane = space.width(point)
  local size = lane * point.data
  local devices = about.devices or util.listed(size * p, function(i) return i end)
  local stages_left = about.space.given.stages == nil and { stages = 'balanced' } or {}
  local function add(other)
    if not unlike:is_word(other) then list[#list + 1] = changed(point, util.merged(stages_left, { order = other })) end
  end
  local all = util.listed(p, function(stage) return stage_of(about, devices, size, stage) end)
  for a = 1, p - 1 do
    for b = a + 1, p do
      if all[a].kinds ~= all[b].kinds and (p <= most_stages or b == a + 1 or a == 1 and b == p) then
        add(swapped(devices, all[a].first, all[b].first, size))
        local x, y = all[a].first, all[b].first + size - lane
        if point.data > 1 and unlike.kind_of[devices[x + 1]] ~= unlike.kind_of[devices[y + 1]] then
          add(swapped(devices, x, y, lane))
        end
      end
    end
  end
  return list
end)

--- Where groups of ranks straddle machines: two axes that follow each other in the order of ranks change places.
moves.register('rank_order', function(point, about)
  local list, used = {}, {}
  if not about.space.about.straddles or about.space.given.rank_order then return list end
  local sizes = util.merged(util.picked(point, axes), { data = point.data / point.expert })
  for _, axis in ipairs(space.axes(point.rank_order) or axes) do
    if sizes[axis] > 1 then used[#used + 1] = axis end
  end
  for i = 1, #used - 1 do
    local other = util.merged({}, used)
    other[i], other[i + 1] = used[i + 1], used[i]
    list[#list + 1] = changed(point, { rank_order = table.concat(other, '-') })
  end
  return list
end)

--- Recomputation of modules, the cheapest for the bytes that they free first, or by layer: the fewest layers of
--- every stage that the simulated memory requires.
moves.register('recompute', function(point, about)
  if not by_layer.is(point) then
    local fits = point.recompute == 'none' and about.result.metrics.feasible -- more takes no less time
    if fits or about.space.given.recompute ~= nil or point.placement > 1 then return {} end
    local list = { changed(point, { recompute = 'by_layer' }) }
    for _, word in ipairs(about.space.about.modules(point.micro_batch)) do
      list[#list + 1] = changed(point, { recompute = word })
    end
    return list
  end
  local again = by_layer.corrected(about.result, about.room, about.space.about.layers, about.space.uniform)
  return again and { changed(point, { recomputed = again }) } or {}
end)

--- Half the size of one axis and twice the size of another.
moves.register('mesh', function(point, about)
  local list = {}
  for _, from in ipairs(axes) do
    for _, to in ipairs(axes) do
      local other = changed(point, { [from] = point[from] / 2, [to] = point[to] * 2 })
      other.virtual_stages = math.max(1, math.min(point.virtual_stages,
        math.floor(about.space.about.layers / other.pipeline)))
      if other.pipeline ~= point.pipeline or type(point.stages) == 'table' then
        other.stages = about.space.given.stages == nil and 'balanced' or stages_anew(point, about)
      end
      if from ~= to and point[from] % 2 == 0 and about.space:holds(other) then list[#list + 1] = other end
    end
  end
  return list
end)

--- The value before and after, of each dimension that no other follows from; of buckets also the second after; half
--- and twice the number of virtual stages.
moves.register('dimension', function(point, about)
  local list = {}
  for _, name in ipairs { 'expert', 'zero_stage', 'sequence_parallel', 'recompute', 'virtual_stages', 'schedule',
    'micro_batch', 'bucket_bytes' } do
    local values, bucket = about.space:values(name, point), name == 'bucket_bytes'
    if bucket and point.data > 1 and about.space.given.bucket_bytes == nil then values = space.buckets end
    for i, value in ipairs(values) do
      for j, other in ipairs(values) do
        local next_to = math.abs(i - j) == 1 or bucket and j == i + 2
          or name == 'virtual_stages' and (other == 2 * value or value == 2 * other)
        if value == point[name] and next_to then
          local kept = name == 'zero_stage' or name == 'micro_batch' or bucket
          list[#list + 1] = changed(point, { [name] = other, stages = not kept and stages_anew(point, about) or nil })
        end
      end
    end
  end
  return list
end)

for name in util.sorted_pairs(registered) do builtin[name] = true end

local function part_text(value)
  if type(value) ~= 'table' then return tostring(value) end
  local parts = {}
  for name, part in util.sorted_pairs(value) do
    parts[#parts + 1] = ('%s=%s'):format(tostring(name), part_text(part))
  end
  return '{' .. table.concat(parts, ' ') .. '}'
end

--- A key that distinguishes points.
---@param point trinity.PlanPoint
---@return string
function moves.key_of(point)
  local parts = {}
  for name, value in util.sorted_pairs(point) do
    if name ~= 'devices' and name ~= 'inside' then parts[#parts + 1] = ('%s=%s'):format(name, part_text(value)) end
  end
  return table.concat(parts, ' ')
end

--- The neighbours of a result that a search has not seen, move by move; a move that fails is an error that names it.
function moves.of(search, result)
  local list = {}
  for _, name in ipairs(order) do
    local made = registered[name](space.kept(result.point), { space = search.space, result = result,
      unequal = search.unequal, devices = result.strategy.devices,
      room = function(strategy, stage) return search:room(strategy, stage) end })
    if type(made) ~= 'table' then
      util.fail('%s: the move \'%s\' at %s returned %s, expected a list of points', search.owner, name,
        util.function_place(registered[name]), util.describe(made))
    end
    for _, given in ipairs(made) do
      local point = space.kept(given)
      local key = not search.space:wrong(point) and moves.key_of(point)
      if key and not search.seen[key] then
        search.seen[key], list[#list + 1] = true, { point = point, moved = name, bound_s = 0 }
      end
    end
  end
  return list
end

return moves
