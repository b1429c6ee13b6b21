-- Balances items over bins: the largest first, each to the bin with the least work that has space for it.

--- Returns the items of every bin and their order within it, or nil if one does not fit; of bins with equal work, the
--- one with the least `earlier` work. items: { work, size } each; space: the largest sum of sizes of a bin.
---@param items { work: number, size: number }[]
---@param bins integer
---@param space number
---@param earlier? number[] by bin, increased by the work
---@return table[][]?
return function(items, bins, space, earlier)
  local order, found, work, size = {}, {}, {}, {}
  earlier = earlier or {}
  for k = 1, #items do order[k] = k end
  for b = 1, bins do found[b], work[b], size[b], earlier[b] = {}, 0, 0, earlier[b] or 0 end
  table.sort(order, function(a, b)
    if items[a].work ~= items[b].work then return items[a].work > items[b].work end
    return a < b
  end)
  for _, k in ipairs(order) do
    local item, to = items[k], nil
    for b = 1, bins do
      local is_less = not to or work[b] < work[to] or work[b] == work[to] and earlier[b] < earlier[to]
      if size[b] + item.size <= space and is_less then to = b end
    end
    if not to then return nil end
    table.insert(found[to], item)
    work[to], size[to], earlier[to] = work[to] + item.work, size[to] + item.size, earlier[to] + item.work
  end
  return found
end
