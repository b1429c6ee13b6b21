-- Programs that catch "not enough memory" again and again: none ends the process, under --memory-limit and under
-- RLIMIT_AS. LuaJIT loses its stack where compiled code raises the error (its issues 906 and 1004), so that nothing is
-- compiled under a limit (engine/lua/host/limits.h).

local core = require 'trinity.core'

-- Each fills memory and catches what comes, `times` over.
local fillers = {
  'local t = {} for j = 1, 1e8 do t[j] = j end',
  'local t = {} for j = 1, 1e8 do t[j] = "x" .. j end',
  'local s = "x" for j = 1, 100 do s = s .. s end',
  'local s = string.rep("x", 1e9)',
  'for j = 1, 1e8 do kept[#kept + 1] = j end',
  'local t = {} for j = 1, 1e8 do table.insert(t, { a = j, b = 2 }) end',
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
      local output = output_of(("%scd /tmp; timeout 300 '%s' --no-strict %s '%s' 2>&1; echo status=$?"):format(limit[2], program,
        limit[1], path))
      -- Memory may run out in the script or when its run ends afterwards: both are reported, with status 1.
      local told = output:gsub('^alive\n', '')
      if output ~= 'alive\nstatus=0\n' and not told:find '^trinity: [^\n]*not enough memory[^\n]*\nstatus=1\n$' then
        error(('%s %s: %s'):format(limit[1], filler, output), 0)
      end
    end
    expect(#fillers > 8):equals(true)
  end)
end

it('without a limit, scripts are compiled', function()
  script_says(0, '^true\n$', 'SCRIPT', 'print((jit.status()))')
  script_says(0, '^false\n$', '--memory-limit 500M SCRIPT', 'jit.on() print((jit.status()))')
end)

-- Opens the libraries that depend on OpenBLAS.
local opening = [[
  require('trinity').tensor.ones { 3 }
  print 'opened' ]]

describe('little address space', function()
  it('is said where LibTorch does not fit into it', function()
    with_torch()
    local output = output_of(("ulimit -v 600000; timeout 20 '%s' -e 'print(require([[trinity]]).tensor.ones { 3 })' 2>&1; echo status=$?")
      :format(program))
    expect(output):matches 'trinity: [^\n]*opening LibTorch [^\n]* takes %d+ MiB of address space, and the limit of this process '
    expect(output):matches '%(ulimit %-v%) leaves %d+ MiB\nstatus=1\n$'
  end)
  it('of any size, and little private memory, lets no library wait for ever for more', function()
    with_torch()
    local path, told, opened = file_with(opening), 0, 0
    for _, case in ipairs { { 'v', 848, 869, 890, 932, 960 }, { 'd', 90, 360, 1500 } } do
      for i = 2, #case do
        local output = output_of(("ulimit -%s %d; timeout -k 1 200 '%s' '%s' --run none 2>&1; echo status=$?"):format(case[1],
          case[i] * 1024, program, path))
        if output:find 'takes %d+ MiB of %l+ %l+, .* %(ulimit %-[vd]%) leaves %d+ MiB\nstatus=1\n$' then told = told + 1
        elseif output == 'opened\nstatus=0\n' then opened = opened + 1
        else error(('%d MiB (%s): %s'):format(case[i], case[1], output), 0) end
      end
    end
    expect(told > 1 and opened > 0):equals(true)
  end)
  it('is enough for what needs none', function()
    expect(output_of(("ulimit -v 300000; timeout 20 '%s' -e 'print(1)' 2>&1"):format(program))):equals '1\n'
  end)
end)

it('a limit of memory leaves OpenBLAS what it takes for each of many cores', function()
  with_torch()
  local folder = temporary()
  core.write_file(folder .. '/cores.c', [[
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <sched.h>
    #include <string.h>
    #include <unistd.h>
    long sysconf(int name) {
      if (name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN) return 16;
      return ((long (*)(int))dlsym(RTLD_NEXT, "sysconf"))(name);
    }
    int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
      memset(set, 0, size);
      for (int i = 0; i < 16; i++) CPU_SET_S(i, size, set);
      return 0;
    } ]])
  expect(output_of(("cd '%s' && cc -shared -fPIC -o cores.so cores.c -ldl 2>&1"):format(folder))):equals ''
  local path = file_with(opening)
  for _, limit in ipairs { '--memory-limit 16M', '--safe --memory-limit 64M' } do
    local output = output_of(("cd /tmp; LD_PRELOAD='%s/cores.so' timeout -k 1 60 '%s' %s '%s' --run none 2>&1; echo status=$?")
      :format(folder, program, limit, path))
    expect(output):equals 'opened\nstatus=0\n'
  end
end)

describe('what workers print', function()
  local text = [[
    local trinity = require 'trinity'
    local ok, message = pcall(trinity.parallel_map, 4, function(i)
      if io and i == 1 then io.stderr:write('at ', io.popen('readlink /proc/$PPID/fd/1'):read '*a') end
      for _ = 1, 50000 do print(('x'):rep(999)) end
    end, { workers = 2, quiet = true })
    io.stderr:write(tostring(ok), ' ', tostring(message), '\n') ]]
  it('is on a disk where $TMPDIR lies in memory', function()
    if output_of 'stat -f -c %T /dev/shm' ~= 'tmpfs\n' then skip '/dev/shm is no tmpfs' end
    if output_of('stat -f -c %T /tmp /var/tmp'):gsub('tmpfs\n', '') == '' then skip 'no disk here' end
    local output = output_of(("TMPDIR=/dev/shm timeout 100 '%s' '%s' --run none 2>&1 >/dev/null"):format(program, file_with(text)))
    expect(output):matches '^at /[^\n]+\ntrue '
    expect(output):matches '^at /[^d][^e][^v]'
  end)
  it('is no more than the limit where nothing is a disk', function()
    local prepare = dofile(root .. '/tests/lua/support/mounts.lua').over '/tmp /var/tmp' .. '; cd /tmp'
    if os.execute(("unshare -m sh -c '%s' '%s' 2>/dev/null"):format(prepare, root)) ~= 0 then skip 'needs the right to mount' end
    local path = file_with(text)
    local output = output_of(([[TMPDIR= unshare -m sh -c '
      exec 3< "$2"
      %s
      timeout 100 "$1" --memory-limit 32M - <&3 2>&1 >/dev/null' '%s' '%s' '%s' < /dev/null]]):format(prepare, root, program, path))
    expect(output):matches '^at /memfd:[^\n]+\nfalse [^\n]*workers printed too much for the memory limit'
  end)
  it('is never lost without a word', function()
    local output = output_of(("ulimit -f 1000; timeout 100 '%s' '%s' --run none 2>&1 >/dev/null"):format(program, file_with(text)))
    expect(output):matches 'trinity: worker: cannot store its output: File too large\n'
    expect(output):matches '\nfalse [^\n]+\n$' -- of the worker that ended, or of the copy of what it printed
  end)
end)

it('a stack that is too short is reported, or made larger', function()
  local path = file_with("local function f(n) return n == 0 and 'x' or (('x'):gsub('x', function() return f(n - 1) end)) end "
    .. 'for n = 1, 240 do pcall(f, n) end print "held"')
  for _, size in ipairs { 64, 2048 } do
    local function under(limit) return output_of(("(ulimit %s %d; '%s' '%s' 2>&1; echo status=$?)"):format(limit, size, program, path)) end
    expect(under '-s'):equals 'trinity: a stack of 4 MiB is needed (ulimit -s 4096)\nstatus=1\n'
    expect(under '-S -s'):equals 'held\nstatus=0\n'
  end
end)
