-- Faults in calls of scripts, for tests/whole/faults_test.cpp: in every function that declarations name, called by its
-- example (examples.lua), each allocation of C++ and of Lua and each call to the file system fails once, in turn. The
-- call then succeeds or ends with an error that says something; afterwards it succeeds as before, and nothing is left.
--
--   trial { arm = , live = , left = , folder = , most = , only = , from = , tell = } -> { points = { new =, lua =, file = },
--     calls = , faults = { texts } }
--
--   arm(kind, nth)  the nth point of a kind from now on fails, and none after it; 0: none. Returns how many were passed
--                   since it was last called
--   live()          blocks of C++ that nobody has freed
--   left()          names of files that a killed or failed writer left in the folder
--   folder          for files
--   most            points of a kind that are tried of a call: equally spaced ones where there are more
--   only, from      a pattern of calls to try ('CLASS.METHOD KIND'); points from which on
--   after           only the calls after this one
--   libraries       allocations fail in LibTorch, too
--   tell(text)      is called before every call and every point

local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local trinity = require 'trinity'

local kinds = { 'new', 'lua', 'file' }

-- Where C++'s memory is at an end LibTorch ends the process (its nodes of gradients ask for some in destructors), and so
-- does Clp (it frees twice what it could not make): of what goes into these two allocations of C++ fail only where the
-- trial asks for `libraries`.
local in_libraries = { '^trinity%.TensorModule', '^trinity%.TorchTensor', '^trinity%.Module', '^trinity%.NnModule',
  '^trinity%.NetworkOptimiser', '^trinity%.Job', '^trinity%.Work', '^trinity%.DistModule',
  '^trinity%.Agent', '^trinity%.LearnModule%.agent', '^trinity%.PoliciesModule', '^trinity%.Policy',
  '^trinity%.ProfileModule', '^trinity%.execute', '%.best',
  '%.post', '%.colocrl', '%.hierarchical', '%.placeto', '%.doppler', '%.tapp', '%.ppo', '%.reinforce', '%.cross_entropy',
  '%.describe_torch' }

local function is_of_libraries(name)
  for _, pattern in ipairs(in_libraries) do if name:find(pattern) then return true end end
  return false
end

-- Whether an error is one that users may see: a text that is not empty, or the object that a wrong command line raises.
local function is_error(message)
  return type(message) == 'string' and message ~= '' or type(message) == 'table' and message.usage ~= nil
end

local Trial = {}
Trial.__index = Trial

function Trial:fault(...)
  table.insert(self.faults, (...):format(select(2, ...)))
  self.tell('FAULT ' .. self.faults[#self.faults]) -- at once, as the end may not come
end

-- Calls a function whose nth point of a kind fails. Returns whether it succeeded, its error, and how many points it has.
function Trial:call(class, method, kind, nth)
  local f, arguments, count = self.examples.call(class, method)
  local function once() f(unpack(arguments, 1, count)) end
  self.arm(kind, nth)
  local ok, message = pcall(once)
  return ok, message, self.arm(kind, 0)
end

-- The same for each point of a kind. Returns how many were tried, and how many there are.
function Trial:points_of(name, class, method, kind)
  local _, _, points = self:call(class, method, kind, 0)
  local step, tried = math.max(1, math.floor(points / self.most)), 0
  for nth = self.from or 1, points, step do
    self.tell(('%s %d'):format(name, nth))
    local ok, message = self:call(class, method, kind, nth)
    tried = tried + 1
    if not ok and not is_error(message) then self:fault('%s: point %d: an error of %s', name, nth, type(message)) end
    if nth % 16 == 1 or nth + step > points then
      ok, message = self:call(class, method, kind, 0)
      if not ok then self:fault('%s: after point %d: %s', name, nth, tostring(message)) end
    end
  end
  return tried, points
end

-- Frees what nothing needs; searches that failed keep their best strategies.
local function collect()
  local rescued = trinity.search.rescued
  for i = #rescued, 1, -1 do rescued[i] = nil end
  collectgarbage()
  collectgarbage()
end

-- All points of a kind, and whether anything leaks.
function Trial:try(what, class, method, kind)
  self.tell(what)
  collect()
  local before = self.live()
  local tried, all = self:points_of(what, class, method, kind)
  self.points[kind] = self.points[kind] + tried
  self.tell(('%s: %d of %d points'):format(what, tried, all))
  collect()
  local more = self.live() - before
  -- The first error of a kind may make something that stays; a leak would be one of each point.
  if more > 100 + tried / 4 then self:fault('%s: %d blocks more after %d points', what, more, tried) end
end

-- Whether a kind of faults is tried on a call.
function Trial:wants(name, kind)
  if kind == 'new' and not self.libraries and is_of_libraries(name) then return false end
  return self.begun and (not self.only or (name .. ' ' .. kind):find(self.only) ~= nil)
end

function Trial:try_call(name, class, method)
  local any = false
  for _, kind in ipairs(kinds) do any = any or self:wants(name, kind) end
  for _ = 1, any and 2 or 0 do
    local ok, message = self:call(class, method, 'new', 0)
    if not ok then self:fault('%s: without a fault: %s', name, tostring(message)) end
  end
  self.calls = self.calls + (any and 1 or 0)
  for _, kind in ipairs(kinds) do
    local what = name .. ' ' .. kind
    if self:wants(name, kind) then self:try(what, class, method, kind) end
    self.begun = self.begun or what == self.after
  end
end

return function(given)
  local trial, paths = setmetatable(given, Trial), 0
  os.tmpname = function() -- luacheck: ignore 122
    paths = paths + 1
    return ('%s/%d'):format(trial.folder, paths)
  end
  trial.examples = dofile(core.home .. '/tests/lua/support/examples.lua')
  trial.examples.enter(trial.folder)
  trial.points, trial.calls, trial.faults = { new = 0, lua = 0, file = 0 }, 0, {}
  trial.begun = not trial.after
  trinity.search.common.evaluations, trinity.search.common.quiet = 4, true -- what a call without options runs
  local declared = declarations.read()
  for _, class in ipairs(declared.order) do
    for _, method in ipairs(declared.classes[class].methods) do
      local name = ('%s.%s'):format(class, method.name)
      trial:try_call(name, class, method)
    end
  end
  for _, left in ipairs(trial.left()) do trial:fault('left over: %s', left) end
  trial.examples.leave()
  return trial
end
