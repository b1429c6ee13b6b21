-- HEFT (Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
-- computing", IEEE TPDS 13(3), 2002): tasks by falling upward rank on the device where they finish first, in an idle
-- gap where one is long enough. Ties: the lower task, the lower device.

local List = require 'trinity.methods.list_schedule'
local util = require 'trinity.base.util'

return function(graph)
  local list = List.new(graph)
  for _, task in ipairs(util.order_of(graph:upward_ranks(), true)) do
    if not graph.follows[task] then list:place_earliest_finish(task) end
  end
  return list:finish()
end
