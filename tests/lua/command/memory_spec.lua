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
  { '', 'ulimit -v 1000000; ' } } do
  it(('caught again and again, it ends no process: %s%s'):format(limit[1], limit[2]), function()
    for _, filler in ipairs(fillers) do
      local text = ('local times, kept = %d\n'):format(limit[2] == '' and 12 or 2) .. program_text:format(filler)
      local path = file_with(text:gsub('\nkept = {}\nfor', '\nkept = {}\nfor'))
      local output = output_of(("%scd /tmp; timeout 60 '%s' --no-strict %s '%s' 2>&1; echo status=$?"):format(limit[2], program,
        limit[1], path))
      if output ~= 'alive\nstatus=0\n' and not output:find '^trinity: [^\n]*not enough memory[^\n]*\nstatus=1\n$' then
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
