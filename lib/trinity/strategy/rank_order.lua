-- Orders of the mesh axes on the devices: compared with simulated step times (strategy:rank_orders), as rank files, and
-- with devices left idle so that no machine divides a group.

local core = require 'trinity.core'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

local rank_order = {}

local owner = 'strategy:rank_orders'
local axes = { 'tensor', 'context', 'placement', 'expert', 'data', 'pipeline' } -- as clients number ranks

---@class trinity.RankOrder
---@field order string[] axes, innermost first: the value for field `order` of a mesh
---@field step_time_s number
---@field straddles string[] axes whose groups span several machines
---@field segment_size? integer every machine has whole groups of this number of ranks, and its other devices are idle
---@field devices? integer[] with a segment_size: the devices, for field `devices` of a mesh
---@field rank_file string rank file of Open MPI with the machine and GPU of every rank: 'rank 0=n0 slot=0'

--- Returns the number of devices per axis, with expert as a factor of data.
local function sizes_of(mesh)
  local sizes = {}
  for _, axis in ipairs(axes) do sizes[axis] = mesh[axis] or 1 end
  sizes.data = sizes.data / sizes.expert
  return sizes
end

-- Returns for the fields of a mesh { mesh, order, devices } the rank of every device, as clients number ranks, and a
-- function: axis ('replica': data and expert) -> its groups of ranks, and how many of them span machines.
local function ranks_of(fields, list)
  local at, sizes = core.mesh_coordinates(fields), sizes_of(fields.mesh)
  local used, rank_of, strides, stride = util.sorted_keys(at.data), {}, {}, 1
  at.replica, at.expert, at.data = at.data, {}, {}
  for _, d in ipairs(used) do
    at.expert[d], at.data[d] = at.replica[d] % sizes.expert, math.floor(at.replica[d] / sizes.expert)
  end
  for _, axis in ipairs(axes) do
    for _, d in ipairs(used) do rank_of[d] = (rank_of[d] or 0) + at[axis][d] * stride end
    strides[axis], stride = stride, stride * sizes[axis]
  end
  strides.replica = strides.expert
  return rank_of, function(axis)
    local node_of, crosses, groups, crossing = {}, {}, 0, 0
    for _, d in ipairs(used) do
      local first, node = rank_of[d] - at[axis][d] * strides[axis], list[d].node
      if not node_of[first] then node_of[first], groups = node, groups + 1
      elseif node_of[first] ~= node and not crosses[first] then crosses[first], crossing = true, crossing + 1 end
    end
    return groups, crossing
  end
end

--- Returns how many groups of ranks along each axis of the mesh of a strategy's fields span machines, as words; nil if
--- none does.
function rank_order.straddling(fields, cluster)
  local words = {}
  local groups_of = select(2, ranks_of(util.picked(fields, { 'mesh', 'order', 'devices' }), cluster.devices))
  for _, axis in ipairs { 'tensor', 'context', 'replica', 'pipeline' } do
    local groups, crossing = groups_of(axis)
    if crossing > 0 then
      words[#words + 1] = ('%d of %d %s groups'):format(crossing, groups, axis == 'replica' and 'data' or axis)
    end
  end
  return words[1] and table.concat(words, ', ') or nil
end

--- Returns all orders of the axes with several devices; axes of one device follow.
local function orders_of(sizes)
  local used, rest, all = {}, {}, {}
  for _, axis in ipairs(axes) do table.insert(sizes[axis] > 1 and used or rest, axis) end
  local function extend(order, left)
    if #left == 0 then
      all[#all + 1] = util.merged(order)
      for _, axis in ipairs(rest) do table.insert(all[#all], axis) end
    end
    for k, axis in ipairs(left) do
      local fewer = util.merged(left)
      table.remove(fewer, k)
      order[#order + 1] = axis
      extend(order, fewer)
      order[#order] = nil
    end
  end
  extend({}, used)
  return all
end

--- Returns the axes of a mesh { mesh, order, devices } that span machines, and its rank file.
local function layout(fields, list)
  local rank_of, groups_of = ranks_of(fields, list)
  local slots, lines = {}, {}
  for d, device in ipairs(list) do
    slots[device.node] = (slots[device.node] or -1) + 1
    if rank_of[d] then
      lines[rank_of[d] + 1] = ('rank %d=%s slot=%d\n'):format(rank_of[d],
        device.node ~= '' and device.node or 'localhost', slots[device.node])
    end
  end
  return util.filtered(axes, function(axis) return select(2, groups_of(axis)) > 0 end), table.concat(lines)
end

--- The rank file of a strategy with a mesh.
function rank_order.file(strategy)
  return (select(2, layout(util.picked(strategy, { 'mesh', 'order', 'devices' }), strategy.problem.cluster.devices)))
end

--- Returns `count` devices in groups of `size` ranks that no machine divides; nil if there are too few.
function rank_order.in_segments(list, count, size)
  local by_node, devices = util.grouped(util.listed(#list, function(d) return d end), function(d)
    return list[d].node
  end), {}
  for _, node in ipairs(by_node) do
    for k = 1, math.min(math.floor(#node / size) * size, count - #devices) do devices[#devices + 1] = node[k] end
  end
  return #devices == count and devices or nil
end

--- Returns the choices of devices for an order: the strategy's own, and with several machines those in segments of the
--- groups of its innermost axes, if that changes them.
local function choices_of(order, sizes, own, list)
  local choices, size, count, known = { { devices = own } }, 1, 1, {}
  for _, axis in ipairs(axes) do count = count * sizes[axis] end
  known[table.concat(own or util.listed(count, function(d) return d end), ' ', 1, count)] = true
  for _, axis in ipairs(own and {} or order) do
    size = size * sizes[axis]
    local devices = rank_order.in_segments(list, count, size)
    local key = devices and table.concat(devices, ' ')
    if key and not known[key] then
      known[key] = true
      choices[#choices + 1] = { devices = devices, segment_size = size }
    end
  end
  return choices
end

--- Simulates a strategy with a mesh in every order of its axes on the devices, also with devices left idle so that no
--- machine divides the groups of inner axes; trinity.Strategy describes it.
function rank_order.all(strategy)
  if not strategy.mesh then util.fail('%s: expected a strategy with a mesh, got a placement', owner) end
  local problem, rows = strategy.problem, {}
  local plan, sizes = parallelism.fields(owner, strategy, problem.graph), sizes_of(strategy.mesh)
  local list = problem.cluster.devices
  for _, order in ipairs(orders_of(sizes)) do
    for _, choice in ipairs(choices_of(order, sizes, plan.devices, list)) do
      local fields = { mesh = plan.mesh, order = order, devices = choice.devices }
      local metrics = problem:evaluate(util.merged(plan, fields))
      local straddles, rank_file = layout(fields, list)
      if metrics.feasible then
        rows[#rows + 1] = { #rows, { order = order, step_time_s = metrics.step_time_s, straddles = straddles,
          rank_file = rank_file, segment_size = choice.segment_size,
          devices = choice.segment_size and choice.devices } }
      end
    end
  end
  table.sort(rows, function(a, b)
    if a[2].step_time_s ~= b[2].step_time_s then return a[2].step_time_s < b[2].step_time_s end
    return a[1] < b[1]
  end)
  return util.map(rows, function(row) return row[2] end)
end

return rank_order
