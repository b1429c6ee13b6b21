-- Tasks and their dependencies: a step with a fixed order, whose time is the critical path (graph:critical_path).

local array = require 'trinity.base.array'
local graph = require 'trinity.graph'
local util = require 'trinity.base.util'

local Tasks = {}
Tasks.__index = Tasks

local tasks = {}

--- Returns an empty list of tasks.
---@param name string
function tasks.new(name)
  return setmetatable({ builder = graph.new { name = name }, count = 0 }, Tasks)
end

--- Adds a task and returns its number.
function Tasks:add()
  self.count = self.count + 1
  self.builder:add_operator { name = tostring(self.count) }
  return self.count
end

--- Makes a task wait for the end of another one.
function Tasks:after(task, earlier) self.builder:add_edge(tostring(earlier), tostring(task), 0) end

--- Finishes the list. Raises an error for a cycle.
function Tasks:build()
  self.graph, self.builder = self.builder:build(), nil
  -- position of a task, and task at a position
  self.position, self.number = array.int32(self.count), array.int32(self.count)
  for i = 1, self.count do
    self.position[i] = self.graph.handle:find(tostring(i))
    self.number[self.position[i]] = i
  end
  self.time_s, self.start_s, self.tail_s = array.double(self.count), array.double(self.count), array.double(self.count)
  return self
end

--- Sets the time of a task.
function Tasks:set(task, time_s) self.time_s[self.position[task]] = time_s end

--- Returns the seconds from first start to last end, and the tasks of the critical path.
---@return number step_s
---@return integer[] path
function Tasks:run()
  local path, step_s = self.graph.handle:critical_path(self.time_s, nil, self.start_s, self.tail_s)
  for i, operator in ipairs(path) do path[i] = self.number[operator] end
  return step_s, path
end

--- Sums seconds by key in field time_s of rows from make(). Returns a function that adds to them, and one that lists
--- the rows, longest time first.
function tasks.sums(make)
  local rows = {}
  local function add(key, time_s, ...)
    rows[key] = rows[key] or make(...)
    rows[key].time_s = rows[key].time_s + time_s
  end
  return add, function()
    local keys, list = util.sorted_keys(rows), {}
    table.sort(keys, function(a, b)
      if rows[a].time_s ~= rows[b].time_s then return rows[a].time_s > rows[b].time_s end
      return a < b
    end)
    for _, key in ipairs(keys) do if rows[key].time_s > 0 then list[#list + 1] = rows[key] end end
    return list
  end
end

return tasks
