-- Balances items over bins: the largest first, each to the bin with the least work that has space for it.

local util = require 'trinity.base.util'

--- Returns the items of every bin, or nil if one does not fit; of bins with equal work, the one with the least
--- `earlier` work is taken. space: the largest sum of sizes of a bin.
return function(items, bins, space, earlier)
  local order = util.order_of(util.map(items, function(item) return item.work end), true)
  local found, before = util.listed(bins, function() return { work = 0, size = 0 } end), earlier or {}
  for _, k in ipairs(order) do
    local item, to = items[k], nil
    for b, bin in ipairs(found) do
      local is_less = not to or bin.work < found[to].work
        or bin.work == found[to].work and (before[b] or 0) < (before[to] or 0)
      if bin.size + item.size <= space and is_less then to = b end
    end
    if not to then return nil end
    local bin = found[to]
    table.insert(bin, item)
    bin.work, bin.size, before[to] = bin.work + item.work, bin.size + item.size, (before[to] or 0) + item.work
  end
  return found
end
