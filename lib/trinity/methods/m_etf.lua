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

local Run = setmetatable({}, { __index = List })
Run.__index = Run

local function new_run(graph, headroom)
  local self = setmetatable(List.new(graph), Run)
  self.now_ns, self.missing, self.ready, self.copies = 0, graph:awaited_inputs(), {}, {}
  self.readers_left, self.unit_bytes, self.free_bytes, self.closed = {}, {}, {}, {}
  self.free_ns, self.channel_ns, self.running = {}, {}, {}
  for task = 1, graph.task_count do
    local unit = graph.unit[task]
    self.unit_bytes[unit] = (self.unit_bytes[unit] or 0) + graph.fixed_bytes[task]
    self.readers_left[task] = graph.first_out[task + 1] - graph.first_out[task]
    if self.missing[task] == 0 and not graph.follows[task] then self.ready[#self.ready + 1] = task end
  end
  for device, bytes in ipairs(graph.capacity_bytes) do
    self.free_bytes[device], self.closed[device] = bytes, math.floor(headroom * bytes)
    self.free_ns[device], self.channel_ns[device] = 0, 0
  end
  return self
end

--- When everything that `task` reads could be on `device`; with `book` the transfers are booked.
function Run:arrival_ns(task, device, book)
  local graph, latest, transfers, previous = self.graph, 0, 0, 0
  for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
    local edge = graph.in_edges[i]
    local writer = graph.edge_from[edge]
    local from, key = self.device[writer], graph.edge_tensor[edge] * graph.device_count + device
    if writer ~= previous then transfers, previous = 0, writer end
    if from > 0 then latest = math.max(latest, self.finish_ns[writer]) end -- else it follows, and goes with its reader
    if from > 0 and from ~= device and not self.copies[key] then
      local transfer = graph:transfer_ns(from, device, graph.edge_bytes[edge])
      local send = math.max(self.finish_ns[writer], self.channel_ns[from])
      local receive = math.max(send, self.channel_ns[device])
      transfers = transfers + transfer
      latest = math.max(latest, receive + (book and transfer or transfers))
      if book then
        self.channel_ns[from], self.channel_ns[device] = send + transfer, receive + transfer
        self.copies[key] = receive + transfer
      end
    elseif from > 0 and from ~= device then
      latest = math.max(latest, self.copies[key])
    end
  end
  return latest
end

--- The bytes that `task` takes when it runs, with its unit's where that has no device yet.
function Run:needed_bytes(task)
  local graph = self.graph
  return graph.output_bytes[task] + graph.workspace_bytes[task]
    + (self:pinned(task) == 0 and self.unit_bytes[graph.unit[task]] or 0)
end

--- Whether `task` may and can run on a device, with what follows it.
function Run:fits(task, device)
  local graph, own = self.graph, self:pinned(task)
  if own > 0 and own ~= device then return false end
  local need = self:needed_bytes(task) + (own == 0 and self.closed[device] or 0)
  local followers = graph:missing_followers(self.device, task)
  if #followers == 0 then return need <= self.free_bytes[device] end
  local needs, entering = { [device] = need }, { [graph.unit[task]] = true }
  for _, follower in ipairs(followers) do
    local unit, at = graph.unit[follower], self:pinned(follower)
    local more = graph.output_bytes[follower] + graph.workspace_bytes[follower]
    if at == 0 then
      at, more = device, more + (entering[unit] and 0 or self.unit_bytes[unit])
      entering[unit] = true
    end
    needs[at] = (needs[at] or 0) + more
  end
  for at = 1, graph.device_count do
    if needs[at] and needs[at] > self.free_bytes[at] then return false end
  end
  return true
end

--- Books transfers and memory of a task, what follows it first, and notes its times.
function Run:start(task, device)
  local graph, unit = self.graph, self.graph.unit[task]
  for _, follower in ipairs(graph:missing_followers(self.device, task)) do
    self:start(follower, self:pinned(follower) > 0 and self:pinned(follower) or device)
  end
  if self.device_of_unit[unit] == 0 then
    self.device_of_unit[unit], self.free_bytes[device] = device, self.free_bytes[device] - self.unit_bytes[unit]
  end
  local arrival = self:arrival_ns(task, device, true)
  self.device[task], self.start_ns[task] = device, graph.follows[task] and arrival or math.max(self.now_ns, arrival)
  self.finish_ns[task] = self.start_ns[task] + graph.cost_ns[(task - 1) * graph.device_count + device]
  self.sequence[#self.sequence + 1] = task
  self.free_bytes[device] = self.free_bytes[device] - graph.output_bytes[task]
  local function drop_if_read(writer)
    local at = self.device[writer]
    if self.readers_left[writer] == 0 then self.free_bytes[at] = self.free_bytes[at] + graph.output_bytes[writer] end
  end
  drop_if_read(task)
  for i = graph.first_in[task], graph.first_in[task + 1] - 1 do
    local writer = graph.edge_from[graph.in_edges[i]]
    self.readers_left[writer] = self.readers_left[writer] - 1
    drop_if_read(writer)
  end
  if #self.sequence % 256 == 0 and core.stop_requested() then util.fail 'interrupted' end
end

--- Makes the readers of what has finished by now ready.
function Run:finish_running()
  local graph, added = self.graph, false
  for device = 1, graph.device_count do
    local task = self.running[device]
    if task and self.finish_ns[task] <= self.now_ns then
      self.running[device] = nil
      for edge = graph.first_out[task], graph.first_out[task + 1] - 1 do
        local to = graph.edge_to[edge]
        self.missing[to] = self.missing[to] - 1
        if self.missing[to] == 0 then self.ready[#self.ready + 1], added = to, true end
      end
    end
  end
  if added then table.sort(self.ready) end
end

--- The position in `ready` of the lowest task that can start now and its device; else nil and the next instant at which
--- a device is free or a task could start.
function Run:choose()
  local best, best_device, next_ns = nil, nil, math.huge
  for device = 1, self.graph.device_count do
    if self.free_ns[device] > self.now_ns then
      next_ns = math.min(next_ns, self.free_ns[device])
    else
      for i = 1, best and best - 1 or #self.ready do
        local task = self.ready[i]
        local start = self:fits(task, device) and self:arrival_ns(task, device) or math.huge
        if start <= self.now_ns then
          best, best_device = i, device
          break
        end
        next_ns = math.min(next_ns, start)
      end
    end
  end
  return best, best_device or next_ns
end

--- Runs to the end. Returns nothing, or the first task that does not fit.
function Run:run()
  local graph = self.graph
  repeat
    self:finish_running()
    local at, device = self:choose()
    if at then
      local task = table.remove(self.ready, at)
      self:start(task, device)
      self.free_ns[device], self.running[device] = self.finish_ns[task], task
    elseif device < math.huge then
      self.now_ns = device
    end
  until not at and device == math.huge
  for task = 1, self.ready[1] and 0 or graph.task_count do -- what follows and has no reader
    if self.device[task] == 0 then
      local device = self:pinned(task)
      for other = 1, device == 0 and graph.device_count or 0 do
        if device == 0 and self:fits(task, other) then device = other end
      end
      if device == 0 or not self:fits(task, device) then return task end
      self:start(task, device)
    end
  end
  return self.ready[1]
end

return function(graph, problem)
  local why
  for step = 0, 9 do
    local run = new_run(graph, 0.1 * step)
    local task = run:run()
    if not task then return run:ordered() end
    local own = run:pinned(task)
    why = why or ("operator '%s' needs %.0f bytes, more than is free on %s after %d of %d operators"):format(
      problem.graph:operator(task).name, run:needed_bytes(task),
      own > 0 and ("device '%s', its unit's,"):format(problem.cluster.devices[own].name) or 'any device',
      #run.sequence, graph.task_count)
  end
  return nil, why
end
