-- How long after Ctrl-C each of the long-running scripts of tests/lua/support/stopping.lua has ended:
--   trinity tests/bench/bench_interrupt.lua [repetitions] [part of a name]

local core = require 'trinity.core'
local stopping = assert(loadfile(core.home .. '/tests/lua/support/stopping.lua'))()

local repetitions, part = tonumber(arg[1]) or 5, arg[2] or ''
print(('%-36s %8s %8s  (seconds, %d runs; the aim is 0.2)'):format('', 'median', 'longest', repetitions))
for _, case in ipairs(stopping.cases) do
  if case[1]:find(part, 1, true) then
    local times, failure = {}, nil
    for k = 1, repetitions do
      local result = stopping.run(case, '', 0.2 + 0.13 * k, 'INT')
      if result.status ~= 130 then failure = result.output break end
      times[k] = result.seconds
    end
    table.sort(times)
    if failure then
      print(('%-36s did not stop with status 130: %s'):format(case[1], failure))
    else
      print(('%-36s %8.3f %8.3f'):format(case[1], times[math.ceil(#times / 2)], times[#times]))
    end
  end
end
