-- HEFT (Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
-- computing", IEEE TPDS 13(3), 2002): tasks by falling upward rank on the device where they finish first, in an idle
-- gap where one is long enough. Ties: the lower task, the lower device.

local List = require 'trinity.methods.list_schedule'

return function(graph)
  local rank, order = graph:upward_ranks(), {}
  for task = 1, graph.task_count do order[task] = task end
  table.sort(order, function(a, b) return rank[a] > rank[b] or rank[a] == rank[b] and a < b end)
  local list = List.new(graph)
  for _, task in ipairs(order) do
    if not graph.follows[task] then list:place_earliest_finish(task) end
  end
  return list:finish()
end
