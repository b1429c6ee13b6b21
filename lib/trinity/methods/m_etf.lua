-- m-ETF of Baechi (Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020): earliest task
-- first, within memory. At every instant of the scheduler's own clock, of all free devices and operators whose inputs
-- can be there by now, the lowest operator (ties: the lower device) is scheduled; then the clock moves to the next
-- instant at which anything can start.
--
-- Memory, as Baechi counts it: a unit's fixed bytes are held from its placement on; an operator's workspace while it
-- runs; its outputs until the last reader is scheduled; copies on other devices do not count. The simulator is
-- stricter, so that a placement that fits here may not fit there.
-- Transfers: each occupies the one channel of its sender and of its receiver, and is booked when its reader is
-- scheduled; a tensor goes to a device once.
-- Retries: Baechi stops where its first try does not fit. Here it tries again with 0.1 to 0.9 of every device's memory
-- closed to new units, so that operators of placed units (gradients) find space.

local core = require 'trinity.core'
local List = require 'trinity.methods.list_schedule'
local util = require 'trinity.base.util'

local Run = {}
Run.__index = Run

function Run.new(graph, headroom)
  local self = setmetatable({ graph = graph, now_ns = 0, device = {}, start_ns = {}, finish_ns = {}, sequence = {},
    missing = graph:awaited_inputs(), readers_left = {}, device_of_unit = {}, unit_bytes = {}, used = {}, headroom = {},
    free_ns = {}, channel_ns = {}, running = {}, copies = {}, ready = {} }, Run)
  for task = 1, graph.task_count do
    local unit = graph.unit[task]
    self.device[task], self.device_of_unit[unit] = 0, 0
    self.unit_bytes[unit] = (self.unit_bytes[unit] or 0) + graph.fixed_bytes[task]
    self.readers_left[task] = graph.first_out[task + 1] - graph.first_out[task]
    if self.missing[task] == 0 and not graph.follows[task] then self.ready[#self.ready + 1] = task end
  end
  for device = 1, graph.device_count do
    self.used[device], self.free_ns[device], self.channel_ns[device], self.running[device] = 0, 0, 0, 0
    self.headroom[device] = math.floor(headroom * graph.capacity_bytes[device])
  end
  return self
end

--- When everything that `task` reads could be on `device`; with `book` the transfers are booked.
function Run:arrival_ns(task, device, book)
  local graph, latest, transfers, previous = self.graph, 0, 0, 0
  for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
    local edge = graph.in_edges[i]
    local writer = graph.edge_from[edge]
    local from = self.device[writer]
    if from > 0 then -- else it follows, and goes with its reader
      local finish = self.finish_ns[writer]
      latest = math.max(latest, finish)
      if from ~= device then
        if writer ~= previous then transfers = 0 end
        local key = graph.edge_tensor[edge] * graph.device_count + device
        local copy = self.copies[key]
        if copy then
          latest = math.max(latest, copy)
        else
          local transfer = graph:transfer_ns(from, device, graph.edge_bytes[edge])
          transfers = transfers + transfer
          local send = math.max(finish, self.channel_ns[from])
          local receive = math.max(send, self.channel_ns[device])
          latest = math.max(latest, receive + (book and transfer or transfers))
          if book then
            self.channel_ns[from], self.channel_ns[device] = send + transfer, receive + transfer
            self.copies[key] = receive + transfer
          end
        end
      end
    end
    previous = writer
  end
  return latest
end

--- The bytes that `task` takes when it runs, with its unit's where that has no device yet.
function Run:needed_bytes(task)
  local graph, unit = self.graph, self.graph.unit[task]
  return graph.output_bytes[task] + graph.workspace_bytes[task]
    + (self.device_of_unit[unit] == 0 and self.unit_bytes[unit] or 0)
end

function Run:free_bytes(device) return self.graph.capacity_bytes[device] - self.used[device] end

--- Whether `task` may and can run on a device, with what follows it.
function Run:fits(task, device)
  local graph, unit = self.graph, self.graph.unit[task]
  local own = self.device_of_unit[unit]
  if own > 0 and own ~= device then return false end
  local need, followers = self:needed_bytes(task) + (own > 0 and 0 or self.headroom[device]),
    graph:missing_followers(self.device, task)
  if #followers == 0 then return need <= self:free_bytes(device) end
  local needs, entering = { [device] = need }, { [unit] = true }
  for _, follower in ipairs(followers) do
    local other = graph.unit[follower]
    local at = self.device_of_unit[other] > 0 and self.device_of_unit[other] or device
    needs[at] = (needs[at] or 0) + graph.output_bytes[follower] + graph.workspace_bytes[follower]
    if self.device_of_unit[other] == 0 and not entering[other] then
      entering[other], needs[at] = true, needs[at] + self.unit_bytes[other]
    end
  end
  for at = 1, graph.device_count do
    if needs[at] and needs[at] > self:free_bytes(at) then return false end
  end
  return true
end

--- When `task` could start on a device; infinite where it cannot.
function Run:earliest_ns(task, device)
  if not self:fits(task, device) then return math.huge end
  return math.max(self:arrival_ns(task, device), self.free_ns[device], self.now_ns)
end

--- Books transfers and memory of a task and notes its times.
function Run:start(task, device)
  local graph, unit = self.graph, self.graph.unit[task]
  if self.device_of_unit[unit] == 0 then
    self.device_of_unit[unit], self.used[device] = device, self.used[device] + self.unit_bytes[unit]
  end
  local arrival = self:arrival_ns(task, device, true)
  local start = graph.follows[task] and arrival or math.max(self.now_ns, arrival)
  self.device[task], self.start_ns[task] = device, start
  self.finish_ns[task] = start + graph.cost_ns[(task - 1) * graph.device_count + device]
  self.sequence[#self.sequence + 1] = task
  self.used[device] = self.used[device] + graph.output_bytes[task]
  local function drop(writer)
    local at = self.device[writer]
    self.used[at] = self.used[at] - graph.output_bytes[writer]
  end
  if self.readers_left[task] == 0 then drop(task) end
  for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
    local writer = graph.edge_from[graph.in_edges[i]]
    self.readers_left[writer] = self.readers_left[writer] - 1
    if self.readers_left[writer] == 0 then drop(writer) end
  end
  if #self.sequence % 256 == 0 and core.stop_requested() then util.fail 'interrupted' end
end

--- Starts a task, what follows it first.
function Run:start_all(task, device)
  for _, follower in ipairs(self.graph:missing_followers(self.device, task)) do
    local own = self.device_of_unit[self.graph.unit[follower]]
    self:start(follower, own > 0 and own or device)
  end
  self:start(task, device)
end

--- Makes the readers of what has finished by now ready.
function Run:finish()
  local graph, added = self.graph, false
  for device = 1, graph.device_count do
    local task = self.running[device]
    if task > 0 and self.finish_ns[task] <= self.now_ns then
      self.running[device] = 0
      for edge = graph.first_out[task], graph.first_out[task + 1] - 1 do
        local to = graph.edge_to[edge]
        self.missing[to] = self.missing[to] - 1
        if self.missing[to] == 0 then self.ready[#self.ready + 1], added = to, true end
      end
    end
  end
  if added then table.sort(self.ready) end
end

--- Chooses the next task: the position of the lowest task in `ready` and its device.
function Run:choose()
  local best, best_device
  for device = 1, self.graph.device_count do
    if self.free_ns[device] <= self.now_ns then
      for i, task in ipairs(self.ready) do
        if best and i >= best then break end
        if self:earliest_ns(task, device) <= self.now_ns then
          best, best_device = i, device
          break
        end
      end
    end
  end
  return best, best_device
end

--- The next instant at which a device is free or a task could start.
function Run:next_ns()
  local next_ns = math.huge
  for device = 1, self.graph.device_count do
    if self.free_ns[device] > self.now_ns then
      next_ns = math.min(next_ns, self.free_ns[device])
    else
      for _, task in ipairs(self.ready) do
        local start = self:earliest_ns(task, device)
        if start > self.now_ns then next_ns = math.min(next_ns, start) end
      end
    end
  end
  return next_ns
end

--- Places what follows and has no reader; a task that does not fit, or nil.
function Run:place_unread()
  for task = 1, self.graph.task_count do
    if self.device[task] == 0 then
      local device = self.device_of_unit[self.graph.unit[task]]
      for other = 1, device == 0 and self.graph.device_count or 0 do
        if device == 0 and self:fits(task, other) then device = other end
      end
      if device == 0 or not self:fits(task, device) then return task end
      self:start_all(task, device)
    end
  end
end

--- Runs to the end. Returns nothing, or the first task that does not fit.
function Run:run()
  repeat
    self:finish()
    local at, device = self:choose()
    while at do
      local task = table.remove(self.ready, at)
      self:start_all(task, device)
      self.free_ns[device], self.running[device] = self.finish_ns[task], task
      if self.finish_ns[task] <= self.now_ns then self:finish() end
      at, device = self:choose()
    end
    local next_ns = self:next_ns()
    if next_ns < math.huge then self.now_ns = next_ns end
  until next_ns == math.huge
  return self.ready[1] or self:place_unread()
end

local function reason(run, task, problem)
  local own = run.device_of_unit[run.graph.unit[task]]
  return ("operator '%s' needs %.0f bytes, more than is free on %s after %d of %d operators"):format(
    problem.graph:operator(task).name, run:needed_bytes(task),
    own > 0 and ("device '%s', its unit's,"):format(problem.cluster.devices[own].name) or 'any device', #run.sequence,
    run.graph.task_count)
end

return function(graph, problem)
  local why
  for step = 0, 9 do
    local run = Run.new(graph, 0.1 * step)
    local task = run:run()
    if not task then return List.ordered(run) end
    why = why or reason(run, task, problem)
  end
  return nil, why
end
