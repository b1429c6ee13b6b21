-- Orders of the mesh axes on the devices: compared with simulated step times (strategy:rank_orders), as rank files, and
-- with devices left idle so that no machine divides a group.

local parallelism = require 'trinity.strategy.parallelism'
local printed = require 'trinity.base.printed'
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

local row_of = printed.as('rank order', { 'step_time_s' })

--- Returns the number of devices per axis, with expert as a factor of data.
local function sizes_of(mesh)
  local sizes = {}
  for _, axis in ipairs(axes) do sizes[axis] = mesh[axis] or 1 end
  sizes.data = sizes.data / sizes.expert
  return sizes
end

local function strides_of(order, sizes)
  local strides, stride = {}, 1
  for _, axis in ipairs(order) do strides[axis], stride = stride, stride * sizes[axis] end
  return strides, stride
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

--- Returns the axes of an order that span machines, and its rank file.
local function layout(order, sizes, devices, list)
  local strides, count = strides_of(order, sizes)
  local plain, slots, lines, straddles = strides_of(axes, sizes), {}, {}, {}
  local slot_of = {}
  for d, device in ipairs(list) do
    slots[device.node] = (slots[device.node] or -1) + 1
    slot_of[d] = slots[device.node]
  end
  local function at(position) return list[devices[position + 1]] end
  for rank = 0, count - 1 do
    local position = 0
    for _, axis in ipairs(axes) do
      position = position + math.floor(rank / plain[axis]) % sizes[axis] * strides[axis]
    end
    local node = at(position).node
    lines[rank + 1] = ('rank %d=%s slot=%d\n'):format(rank, node ~= '' and node or 'localhost',
      slot_of[devices[position + 1]])
  end
  for _, axis in ipairs(axes) do
    local crosses = false
    for position = 0, count - 1 do
      local first = position - math.floor(position / strides[axis]) % sizes[axis] * strides[axis]
      crosses = crosses or at(first).node ~= at(position).node
    end
    if crosses then straddles[#straddles + 1] = axis end
  end
  return straddles, table.concat(lines)
end

--- The rank file of a strategy with a mesh.
function rank_order.file(strategy)
  local list, order = strategy.problem.cluster.devices, util.merged(strategy.order or {})
  local named = util.set(order)
  for _, axis in ipairs(axes) do if not named[axis] then order[#order + 1] = axis end end
  local devices = strategy.devices or util.listed(#list, function(d) return d end)
  return (select(2, layout(order, sizes_of(strategy.mesh), devices, list)))
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
  local choices, size, known = { { devices = own or util.listed(#list, function(d) return d end) } }, 1, {}
  local _, count = strides_of(order, sizes)
  known[table.concat(choices[1].devices, ' ', 1, count)] = true
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
      local devices = choice.segment_size and choice.devices or plan.devices
      local metrics = problem:evaluate(util.merged(plan, { order = order, devices = devices }))
      local straddles, rank_file = layout(order, sizes, choice.devices, list)
      if metrics.feasible then
        rows[#rows + 1] = { #rows, row_of { order = order, step_time_s = metrics.step_time_s, straddles = straddles,
          rank_file = rank_file, segment_size = choice.segment_size, devices = choice.segment_size and devices } }
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
