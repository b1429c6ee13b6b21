-- Which groups of ranks of a mesh straddle machines.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

--- How many groups of ranks along each axis of a strategy's mesh have devices on several machines, as words; nil where
--- the strategy is on one machine.
return function(strategy, cluster)
  local at = core.mesh_coordinates(util.picked(strategy, { 'mesh', 'order', 'devices' }))
  local words, axes = {}, { 'tensor', 'context', 'data', 'pipeline' }
  for _, axis in ipairs(axes) do
    local node_of, crosses, groups, crossing = {}, {}, 0, 0
    for device in util.sorted_pairs(at[axis]) do
      local key = util.map(axes, function(other) return other == axis and '' or at[other][device] end)
      key = table.concat(key, ' ')
      local node = cluster.devices[device].node
      if not node_of[key] then groups = groups + 1 end
      if node_of[key] and node_of[key] ~= node and not crosses[key] then crosses[key], crossing = true, crossing + 1 end
      node_of[key] = node_of[key] or node
    end
    if crossing > 0 then words[#words + 1] = ('%d of %d %s groups'):format(crossing, groups, axis) end
  end
  return words[1] and table.concat(words, ', ') or nil
end
