-- Dynamic programming over PaSE's layers in breadth-first order, the baseline of its Table 1.

local util = require 'trinity.base.util'

--- Layers in breadth-first order from the first one, neighbours by number.
local function breadth_first_order(neighbours)
  local order, reached = {}, {}
  for root = 1, #neighbours do
    if not reached[root] then
      reached[root], order[#order + 1] = true, root
    end
    local next = #order
    while next <= #order do
      for _, other in ipairs(neighbours[order[next]]) do
        if not reached[other] then
          reached[other], order[#order + 1] = true, other
        end
      end
      next = next + 1
    end
  end
  return order
end

--- Returns the requirements of dynamic programming in breadth-first order, the paper's baseline: the largest set of
--- layers in a table, and the maximum number of combinations of a layer and such a set.
local function breadth_first(pase)
  local neighbours = util.listed(#pase.layers, function() return {} end)
  for _, ends in ipairs(pase.edges) do
    table.insert(neighbours[ends[1]], ends[2])
    table.insert(neighbours[ends[2]], ends[1])
  end
  for _, list in ipairs(neighbours) do table.sort(list) end
  local done, inside, result = {}, {}, { widest_set = 0, largest_table = 0 }
  local function count(i) return pase.layers[i].configurations end
  for _, i in ipairs(breadth_first_order(neighbours)) do
    done[i], inside[i] = true, nil
    for _, other in ipairs(neighbours[i]) do
      if not done[other] then inside[other] = true end
    end
    local set, combinations = 0, count(i)
    for _, other in ipairs(util.sorted_keys(inside)) do set, combinations = set + 1, combinations * count(other) end
    result.widest_set = math.max(result.widest_set, set)
    result.largest_table = math.max(result.largest_table, combinations)
  end
  return result
end

return breadth_first
