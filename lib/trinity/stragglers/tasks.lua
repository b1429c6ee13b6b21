-- Tasks and their dependencies: a step with a fixed order, whose time is the critical path (graph:critical_path).

local array = require 'trinity.base.array'
local graph = require 'trinity.graph'
local util = require 'trinity.base.util'

local tasks = {}

--- Returns a function for tasks, each with a list of the tasks that it waits for: seconds of the tasks -> seconds from
--- first start to last end, the tasks of the critical path, and task -> start. Raises an error for a cycle.
function tasks.new(name, waits)
  local builder, position, number, times_s = graph.new { name = name }, {}, {}, array.double(#waits)
  for i = 1, #waits do builder:add_operator { name = tostring(i) } end
  for i, list in ipairs(waits) do
    for _, earlier in ipairs(list) do builder:add_edge(tostring(earlier), tostring(i), 0) end
  end
  local built = builder:build()
  for at = 1, #waits do
    number[at] = tonumber(built:operator(at).name)
    position[number[at]] = at
  end
  return function(time_s)
    for i, at in ipairs(position) do times_s[at] = time_s[i] end
    local found = built:critical_path { time_s = times_s }
    return found.length_s, util.map(found.operators, function(operator) return number[operator] end),
      function(i) return found.start_s[position[i]] end
  end
end

--- Returns a function that adds seconds to field time_s of the row of a key, made by make(), and one that lists the
--- rows, longest time first.
function tasks.sums(make)
  local rows, keys = {}, {}
  return function(key, time_s, ...)
    if time_s == 0 then return end
    if not rows[key] then rows[key], keys[#keys + 1] = make(...), key end
    rows[key].time_s = rows[key].time_s + time_s
  end, function()
    table.sort(keys, function(a, b)
      if rows[a].time_s ~= rows[b].time_s then return rows[a].time_s > rows[b].time_s end
      return a < b
    end)
    return util.map(keys, function(key) return rows[key] end)
  end
end

return tasks
