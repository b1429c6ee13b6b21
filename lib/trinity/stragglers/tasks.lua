-- Tasks and what each waits for: a step whose order is fixed. The step is the longest path (graph:critical_path).

local array = require 'trinity.base.array'
local graph = require 'trinity.graph'

local Tasks = {}
Tasks.__index = Tasks

local tasks = {}

--- An empty list of tasks.
---@param name string
function tasks.new(name)
  return setmetatable({ builder = graph.new { name = name }, count = 0, ends = {} }, Tasks)
end

--- Adds a task and returns its number.
function Tasks:add()
  self.count = self.count + 1
  self.builder:add_operator { name = tostring(self.count) }
  return self.count
end

--- Makes a task wait for the end of another one.
function Tasks:after(task, earlier)
  local ended = self.ends[earlier]
  if ended then self.builder:add_edge(ended, tostring(task))
  else self.ends[earlier] = self.builder:add_edge(tostring(earlier), tostring(task), 0) end
end

--- Finishes the list. A circle of tasks is an error.
function Tasks:build()
  self.graph = self.builder:build()
  self.builder, self.ends = nil, nil
  self.position = array.int32(self.count)
  for i = 1, self.count do self.position[i] = self.graph.handle:find(tostring(i)) end
  self.number = array.int32(self.count) -- of the operator at a position
  for i = 1, self.count do self.number[self.position[i]] = i end
  self.time_s, self.start_s, self.tail_s = array.double(self.count), array.double(self.count), array.double(self.count)
  return self
end

--- How long a task takes, until it is set again.
function Tasks:set(task, time_s) self.time_s[self.position[task]] = time_s end

--- The seconds from the first start to the last end, and the tasks of the longest path.
---@return number step_s
---@return integer[] path
function Tasks:run()
  local path, step_s = self.graph.handle:critical_path(self.time_s, nil, self.start_s, self.tail_s)
  for i, operator in ipairs(path) do path[i] = self.number[operator] end
  return step_s, path
end

return tasks
