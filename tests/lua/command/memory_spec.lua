-- Programs that catch "not enough memory" again and again: none ends the process, under --memory-limit and under
-- RLIMIT_AS. LuaJIT loses its stack where compiled code meets the error (its issues 906 and 1004), so that nothing is
-- compiled under a limit (engine/lua/host/limits.h).

-- Each fills memory and catches what comes, `times` over.
local fillers = {
  'local t = {} for j = 1, 1e8 do t[j] = j end',
  'local t = {} for j = 1, 1e8 do t[j] = { j } end',
  'local t = {} for j = 1, 1e8 do t[j] = "x" .. j end',
  'local s = "x" for j = 1, 100 do s = s .. s end',
  'local s = string.rep("x", 1e9)',
  'local t = {} for j = 1, 1e8 do t[#t + 1] = function() return j end end',
  'for j = 1, 1e8 do kept[#kept + 1] = j end',
  'local t = {} for j = 1, 1e8 do t[j] = tostring(j + 0.5) end',
  'local t = {} for j = 1, 1e8 do table.insert(t, { a = j, b = 2 }) end',
  'local t = {} for j = 1, 1e8 do t[j] = coroutine.wrap(function() end) end',
  'local t = {} for j = 1, 1e8 do t[j] = setmetatable({}, { __index = t }) end',
  'local t = {} for j = 1, 1e8 do t[j] = 1LL * j end',
  'local t = {} for j = 1, 1e8 do t["k" .. j] = j end',
  'local s = {} for j = 1, 1e8 do s[j] = ("%d"):format(j) end table.concat(s)',
}
local program_text = [[
if jit and jit.on then jit.on() end
kept = {}
for i = 1, times do
  local ok, message = pcall(function() %s end)
  if not ok and not tostring(message):find 'memory' then error(message) end
  kept = {}
end
print 'alive']]

for _, limit in ipairs { { '--safe --memory-limit 16M', '' }, { '--memory-limit 16M', '' },
  { '', 'ulimit -v 250000; ' } } do
  it(('caught again and again, it ends no process: %s%s'):format(limit[1], limit[2]), function()
    for _, filler in ipairs(fillers) do
      local text = ('local times, kept = %d\n'):format(limit[2] == '' and 3 or 1) .. program_text:format(filler)
      local path = file_with(text)
      local output = output_of(("%scd /tmp; timeout 60 '%s' --no-strict %s '%s' 2>&1; echo status=$?"):format(limit[2], program,
        limit[1], path))
      -- What is left may not do for the script, or for the end of its run behind it: both are told, with status 1.
      local told = output:gsub('^alive\n', '')
      if output ~= 'alive\nstatus=0\n' and not told:find '^trinity: [^\n]*not enough memory[^\n]*\nstatus=1\n$' then
        error(('%s %s: %s'):format(limit[1], filler, output), 0)
      end
    end
    expect(#fillers > 12):equals(true)
  end)
end

it('without a limit, scripts are compiled', function()
  script_says(0, '^true\n$', 'SCRIPT', 'print((jit.status()))')
  script_says(0, '^false\n$', '--memory-limit 500M SCRIPT', 'jit.on() print((jit.status()))')
end)

describe('little address space', function()
  it('is said where LibTorch does not fit into it', function()
    with_torch()
    local output = output_of(("ulimit -v 600000; timeout 20 '%s' -e 'print(require([[trinity]]).tensor.ones { 3 })' 2>&1; echo status=$?")
      :format(program))
    expect(output):matches 'trinity: [^\n]*opening LibTorch [^\n]* takes %d+ MiB of address space, and the limit of this process '
    expect(output):matches '%(ulimit %-v%) leaves %d+ MiB\nstatus=1\n$'
  end)
  it('is enough for what needs none', function()
    expect(output_of(("ulimit -v 300000; timeout 20 '%s' -e 'print(1)' 2>&1"):format(program))):equals '1\n'
  end)
end)

it('what workers print lies on the disk, of any size', function()
  local text = [[
    local trinity = require 'trinity'
    local line = ('x'):rep(999)
    trinity.parallel_map(4, function(i)
      for _ = 1, 50000 do print(line) end
      print('end', i)
    end, { workers = 2, quiet = true })
    local peak = io and io.open '/proc/self/status':read '*a':match 'VmHWM:%s+(%d+)' or 0
    io.stderr:write('peak ', peak, '\n') ]]
  local output = output_of(("timeout 100 '%s' --memory-limit 64M '%s' 2>&1 >/dev/null"):format(program, file_with(text)))
  expect(tonumber(output:match 'peak (%d+)') * 1024):below(150e6)
  output = output_of(("timeout 100 '%s' --memory-limit 64M '%s' 2>/dev/null | grep -n end"):format(program, file_with(text)))
  expect(output):equals '50001:end\t1\n100002:end\t2\n150003:end\t3\n200004:end\t4\n'
end)
