-- Around every target of this folder: begin() loads one, run() gives it the input and judges how it ended.
--
-- A target is a table { seeds = { texts }, run = function(text) end, asks_for_memory = true where its inputs may ask
-- for more than there is }. Errors that a person can act on are answers; those that come from inside the library are
-- findings, and so is what the target itself reports by frame.finding.

local frame = { runs = 0 }

-- Texts of errors that Lua, C++ and LibTorch make where nobody checked before them.
local inner = { 'attempt to ', 'bad argument #', 'std::', 'basic_string', 'vector::', 'map::at', '%[json%.exception',
  'stack overflow', 'invalid order function', 'malformed pattern', 'invalid option',
  'invalid capture', 'string slice', 'check failed: ', 'INTERNAL ASSERT', 'assertion failed', 'memory allocation' }

--- Why an error's message is a finding, or nil.
function frame.judge(message)
  if type(message) == 'table' and message.finding then return message.finding end
  if type(message) == 'table' and message.usage then return nil end
  if type(message) ~= 'string' then return 'an error value of type ' .. type(message) end
  local placed = message:match '^(%S-lib/trinity/%S-%.lua:%d+): '
  if placed then return 'an error placed inside the library: ' .. message end
  if message:find 'not enough memory' and not frame.target.asks_for_memory then
    return 'out of memory: ' .. message
  end
  -- A quotation may come from the input, which may have quotes, too.
  local own, input = message:gsub("'[^'\n]*'?", ''), tostring(package.loaded['fuzz.input'])
  for _, pattern in ipairs(inner) do
    if own:find(pattern) and not input:find(pattern) then return 'an error that nobody checked for: ' .. message end
  end
end

--- Reports a finding from inside a target.
function frame.finding(text, ...) error({ finding = text:format(...) }, 0) end

--- Calls f(...), whose own errors are judged and, when they are answers, swallowed. Returns true and what it returned,
--- or false.
function frame.try(f, ...)
  local results = { pcall(f, ...) }
  if results[1] then return unpack(results) end
  local reason = frame.judge(results[2])
  if reason then error({ finding = reason }, 0) end
  return false
end

--- Loads a target; returns its seeds.
function frame.begin(name, folder)
  frame.folder = folder
  require('trinity.base.progress').quiet = true
  math.randomseed(1)
  frame.target = require(name)
  return frame.target.seeds
end

--- Writes the input where the target wants it.
function frame.file(name, text)
  local path = frame.folder .. '/' .. name
  local file = assert(io.open(path, 'wb'))
  file:write(text)
  file:close()
  return path
end

local collect_every = 50

--- Runs the target on the input. Returns why it failed, or ''.
function frame.run()
  frame.runs = frame.runs + 1
  local trace
  local ok, message = xpcall(function() frame.target.run(package.loaded['fuzz.input']) end, function(problem)
    trace = debug.traceback('', 2)
    return problem
  end)
  if frame.runs % collect_every == 0 then collectgarbage() end
  local reason = not ok and frame.judge(message)
  return reason and reason .. trace or ''
end

return frame
