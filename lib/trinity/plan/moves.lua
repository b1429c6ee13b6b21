-- Moves from a plan to its neighbours: what the search tries from the best plans when its queue is done, beyond the
-- values that its space lists.

local by_layer = require 'trinity.plan.by_layer'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local offload = require 'trinity.plan.offload'
local rank_order = require 'trinity.strategy.rank_order'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local unequal = require 'trinity.plan.unequal'
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

-- Stages of a point that a move changed: balanced again where they were, unless a layout was given.
local function stages_anew(point, about)
  local anew = type(point.stages) == 'table' and about.space:takes(point, 'stages', 'balanced')
  return anew and 'balanced' or point.stages
end

moves.register('stage', stages.neighbours)
moves.register('devices', unequal.neighbours)

--- Where groups of ranks straddle machines: two axes that follow each other in the order of ranks change places, or
--- devices are left idle so that no machine divides the groups of inner axes.
moves.register('rank_order', function(point, about)
  local list, used, size = {}, {}, 1
  if not about.space.about.straddles or about.space.given.rank_order then return list end
  local sizes = util.merged(util.picked(point, axes), { data = point.data / point.expert })
  for _, axis in ipairs(space.axes(point.rank_order) or axes) do
    if sizes[axis] > 1 then used[#used + 1] = axis end
  end
  for i = 1, #used - 1 do
    local other = util.merged({}, used)
    other[i], other[i + 1] = used[i + 1], used[i]
    list[#list + 1] = space.changed(point, { rank_order = table.concat(other, '-') })
  end
  for i = 1, about.unequal and 0 or #used - 1 do
    size = size * sizes[used[i]]
    local devices = rank_order.in_segments(about.space.about.list, space.used(point), size)
    if devices and devices[#devices] > #devices then
      list[#list + 1] = space.changed(point, { order = devices, segment_size = size })
    end
  end
  return list
end)

moves.register('recompute', by_layer.neighbours)

moves.register('offload', offload.neighbours)

--- Half the size of one axis and twice the size of another.
moves.register('mesh', function(point, about)
  local list = {}
  for _, from in ipairs(axes) do
    for _, to in ipairs(axes) do
      local other = space.changed(point, { [from] = point[from] / 2, [to] = point[to] * 2 })
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
    local free = about.space.given.bucket_bytes == nil and not about.space.about.own_buckets
    if bucket and point.data > 1 and free then values = space.buckets end
    for i, value in ipairs(values) do
      for j, other in ipairs(values) do
        local next_to = math.abs(i - j) == 1 or bucket and j == i + 2
          or name == 'virtual_stages' and (other == 2 * value or value == 2 * other)
        if value == point[name] and next_to then
          local kept = name == 'zero_stage' or name == 'micro_batch' or bucket
          list[#list + 1] = space.changed(point, { [name] = other,
            stages = not kept and stages_anew(point, about) or nil })
        end
      end
    end
  end
  return list
end)

for name in util.sorted_pairs(registered) do builtin[name] = true end

--- The key that distinguishes two points.
---@param point trinity.PlanPoint
---@return string
function moves.key_of(point)
  local fields = util.merged({}, point)
  fields.devices, fields.inside = nil, nil -- follow from the rest
  return core.to_json(fields, 'line')
end

--- The neighbours of a result that a search has not seen, move by move (names: all without them); a move that fails is
--- an error that names it.
function moves.of(search, result, names)
  local list = {}
  for _, name in ipairs(names or order) do
    local made = registered[name](space.kept(result.point), { space = search.space, result = result,
      unequal = search.unequal, devices = result.strategy.devices,
      room = function(strategy, stage) return search.pricing:room(strategy, stage) end })
    if type(made) ~= 'table' then
      util.fail('%s: the move \'%s\' at %s returned %s, expected a list of points', search.owner, name,
        util.function_place(registered[name]), util.describe(made))
    end
    for _, given in ipairs(made) do
      local point = space.kept(given)
      local key = not search.space:wrong(point) and search.space:holds(point, true) and moves.key_of(point)
      if key and not search.seen[key] then
        search.seen[key], list[#list + 1] = true, { point = point, moved = name, bound_s = 0 }
      end
    end
  end
  return list
end

--- Neighbours with less recomputation: of the fastest points that full recomputation makes too slow, up to `factor`
--- times the best step time (of families the fastest by ZeRO stage); where nothing fits, of the nearest plan.
function moves.recompute_less(search, factor, most)
  local list, made, best = {}, {}, search.results[1]
  local fits = best and best.metrics.feasible or false
  for _, entry in ipairs(fits and search:left_over() or {}) do
    if entry.kind ~= 'plan' and entry.point.recompute == 'full' and not entry.done then
      for stage = 0, 3 do
        local one = entry.fastest and entry.fastest[stage] or not entry.fastest and stage == 0 and entry
        if one and one.bound_s < factor * search:best_s() then list[#list + 1] = one end
      end
    end
  end
  table.sort(list, util.by('bound_s', 'number'))
  if not fits then list = { search:find_nearest() } end
  for i = 1, math.min(most, #list) do
    local plan = { point = list[i].point, metrics = { feasible = fits }, strategy = {} }
    made = util.joined(made, moves.of(search, plan, { 'recompute' }))
  end
  return made
end

return moves
