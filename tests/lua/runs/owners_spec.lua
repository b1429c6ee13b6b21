-- Owners of run folders: a run that is killed at any moment can be resumed or started again; while its owner lives, in
-- this container, another one or on another machine, nobody resumes or deletes it.

local core = require 'trinity.core'
local json = require 'trinity.base.json'

local script = [[
local trinity = require 'trinity'
trinity.options { 'A script.' }
trinity.run:log { a = 1 }
if trinity.files.list('.')[1] ~= 'go' then io.stdout:write 'ready\n' io.stdout:flush() os.execute 'sleep 30' end
print 'went on']]

local function place()
  local folder = temporary()
  core.write_file(folder .. '/s.lua', script)
  return folder, function(words)
    return output_of(("cd '%s' && unset TRINITY_RUNS; { %s; } 2>&1; echo status=$?"):format(folder, (words:gsub('TRINITY',
      function() return "timeout 60 '" .. program .. "'" end))))
  end
end

-- Begins the script in the background of the shell, and waits until it says so.
local begin = "'" .. program .. "' s.lua --run r > out & pid=$!; until grep -q ready out 2>/dev/null; do sleep 0.05; done; "
-- Kills it before the command that it waits for: the other way round the script goes on, and may end, in between.
local strike = 'left=$(pgrep -P $pid); kill -9 $pid $left'
-- A sign that is waited for, 20 seconds at most.
local function wait_until(sign) return ('timeout 20 sh -c "until %s; do sleep 0.05; done"'):format(sign) end

local function refused(run)
  expect(run 'TRINITY runs'):matches 'r +running'
  expect(run 'TRINITY runs resume r'):matches "still running\nstatus=2"
  expect(run 'TRINITY runs delete r'):matches 'is running .*status=2'
  expect(run 'TRINITY s.lua --run r --resume'):matches "still running"
end

it('a run whose owner is killed is interrupted at once, and goes on', function()
  local folder, run = place()
  expect(run(begin .. "'" .. program .. "' runs; " .. strike .. "; wait; '" .. program .. "' runs"))
    :matches 'r +running.*r +interrupted %(killed%)'
  core.write_file(folder .. '/go', '')
  expect(run 'TRINITY runs resume r'):matches 'went on\nstatus=0'
end)

it('a run is left alone while its owner in another container lives', function()
  if os.execute 'unshare -p -f --mount-proc true 2>/dev/null' ~= 0 then skip 'needs the right to make namespaces' end
  local _, run = place()
  local start = "unshare -p -f --kill-child --mount-proc '" .. program .. "' s.lua --run r > out 2>&1 & echo $! > pid; "
  run(start .. 'until grep -q ready out; do sleep 0.05; done')
  refused(run)
  run('kill -9 $(cat pid); ' .. wait_until "TRINITY runs | grep -q interrupted")
  expect(run 'TRINITY runs'):matches 'r +interrupted'
end)

it('a run of another machine, whose lock is not seen, counts as running while its owner touches it', function()
  local folder, run = place()
  core.write_file(folder .. '/go', '')
  run 'TRINITY s.lua --run r'
  local path = folder .. '/runs/r/run.json'
  local about = json.read(path)
  about.status, about.system, about.pid = 'running', 'another', 1
  core.write_file(path, core.to_json(about))
  run 'touch runs/r/.lock'
  refused(run)
  run "touch -d '2 minutes ago' runs/r/.lock"
  expect(run 'TRINITY runs'):matches 'r +interrupted'
  expect(run 'TRINITY runs resume r'):matches 'went on\nstatus=0'
end)

it('its owner touches it', function()
  local _, run = place()
  expect(run(begin .. "touch -d '1 hour ago' runs/r/.lock; " .. wait_until 'find runs/r/.lock -mmin -1 | grep .' .. '; ' .. strike))
    :matches 'runs/r/.lock\n'
end)

it('killed at any system call, it can be resumed or started again', function()
  if os.execute 'command -v strace >/dev/null 2>&1' ~= 0 then skip 'strace is not here' end
  local folder, run = place()
  core.write_file(folder .. '/go', '')
  local outcomes = { resumed = 0, anew = 0, done = 0 }
  for _, call in ipairs { 'openat', 'write', 'renameat2' } do
    for nth = 1, 40, 3 do
      local ended = run(("rm -rf runs; strace -f -qq -o /dev/null -P runs -P runs/r -e trace=%s -e inject=%s:signal=KILL:when=%d "
        .. "TRINITY s.lua --run r"):format(call, call, nth))
      if ended:find 'status=0' then break end
      local again = run 'TRINITY runs resume r'
      if again:find 'went on\nstatus=0' then outcomes.resumed = outcomes.resumed + 1
      elseif again:find 'is done' then outcomes.done = outcomes.done + 1
      elseif run('TRINITY s.lua --run r'):find 'went on\nstatus=0' then outcomes.anew = outcomes.anew + 1
      else error(('%s %d: %s %s'):format(call, nth, ended, again), 0) end
    end
  end
  expect(outcomes.resumed > 0 and outcomes.anew > 0):equals(true)
end)

describe('standard streams that are closed', function()
  it('are named, and no file takes their place', function()
    local folder, run = place()
    core.write_file(folder .. '/go', '')
    expect(run 'TRINITY s.lua --run r >&-')
      :equals 'run: runs/r\ntrinity: cannot write standard output: Bad file descriptor\nstatus=1\n'
    expect(run 'TRINITY s.lua --run q <&- >&- 2>/dev/null'):equals 'status=1\n'
    expect(output_of(("grep -rl 'went on' '%s/runs' --include=*.csv --include=*.jsonl --include=run.json"):format(folder)))
      :equals ''
  end)
end)
