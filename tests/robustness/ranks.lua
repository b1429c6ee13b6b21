#!/usr/bin/env trinity
-- Ranks that die, hang, come late, never or wrongly: every case runs four ranks on two nodes in real processes, with
-- the default patience, and must end within 30 s of the fault with a message that names who is at fault and why, no
-- exit status 0 and no process left:
--   build/trinity tests/robustness/ranks.lua
--   build/trinity tests/robustness/ranks.lua --only stopped
-- No launcher watches them: each rank is a process of its own with torchrun's variables, as on several machines. Exit
-- status 1 unless all cases are as expected.

local core = require 'trinity.core'
local trinity = require 'trinity'

local options = trinity.options({
  'Ranks that fail in every way: who is named, and after how many seconds.',
  only = { default = '', help = 'cases whose name contains this' },
})

local campaign = assert(loadfile(core.home .. '/tests/robustness/support/faults.lua'))()
local program, folder = campaign.program, campaign.folder()

local function write(name, text)
  core.write_file(folder .. '/' .. name, text)
  return folder .. '/' .. name
end

local function read(name) return campaign.read(folder .. '/' .. name) or '' end

-- The script of every rank: `before` its join, `after` it, then a barrier. fault() notes the time.
local scripts = 0
local function script(before, after)
  scripts = scripts + 1
  return write(('script%d.lua'):format(scripts), ([[
    local trinity = require 'trinity'
    local core = require 'trinity.core'
    local rank, here = tonumber(os.getenv 'RANK'), %q
    local me = io.open '/proc/self/stat':read '*n'
    core.write_file(here .. '/pid.' .. me, tostring(core.clock_s()))
    local function sleep(seconds) os.execute('sleep ' .. seconds) end
    local function fault() core.write_file(here .. '/fault', tostring(core.clock_s())) end
    local function signal(name, process) fault() os.execute('kill -' .. name .. ' ' .. (process or me)) end
    local function interpreted() fault() local function loop() while true do end end jit.off(loop) loop() end
    local function compiled() fault() local x = 0 while true do x = x + 1 end end
    %s
    local job = trinity.dist.init()
    job:barrier()
    %s
    job:barrier()
    job:print 'all met'
  ]]):format(folder, before or '', after or ''))
end

local next_port = 21000 + io.open '/proc/self/stat':read '*n' % 4000

-- The command of four ranks; `own` has what a rank does otherwise, by rank.
local function by_variables(path, own)
  next_port = next_port + 1
  local lines = {}
  for rank = 0, 3 do
    local o = own and own[rank] or {}
    lines[#lines + 1] = ('{ RANK=%d WORLD_SIZE=%d LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 GROUP_RANK=%d '
      .. "MASTER_ADDR=127.0.0.1 MASTER_PORT=%d '%s' '%s'; echo \"status $?\"; } &"):format(o.rank or rank,
      o.size or 4, (o.rank or rank) % 2, math.floor((o.rank or rank) / 2), next_port, program, o.script or path)
    if o.absent then lines[#lines] = nil end
  end
  return table.concat(lines, '\n')
end

-- Processes of ranks that still run, and when the fault was: as noted, else when the first rank began.
local function look_back()
  local left, fault = {}, tonumber(read 'fault')
  os.remove(folder .. '/fault')
  local begun = math.huge
  for _, name in ipairs(core.list_folder(folder)) do
    local process = name:match '^pid%.(%d+)$'
    if process then
      begun = math.min(begun, tonumber(read(name)) or math.huge)
      local stat = io.open(('/proc/%s/stat'):format(process))
      local state = (stat and stat:read '*a' or ''):match '%) (%a)'
      if stat then stat:close() end
      if state and state ~= 'Z' then left[#left + 1] = process end
      os.remove(folder .. '/' .. name)
    end
  end
  return left, fault or begun
end

local cases, failures, longest_s = 0, 0, 0

-- Runs a case: the output must match `message`; `expected`: succeeds (every status is 0), zeros (how many are 0).
local function case(name, command, message, expected)
  if not name:find(options.only, 1, true) then return end
  expected = expected or {}
  write('run.sh', ("export TRINITY_HOME='%s' TRINITY_RUNS=none\n%s\nwait\n"):format(core.home, command))
  os.execute(("timeout -k 1 120 sh '%s/run.sh' > '%s/out' 2>&1"):format(folder, folder))
  local end_s = core.clock_s()
  os.execute 'sleep 0.3'
  local output, left, fault_s = read 'out', look_back()
  local seconds, zeros, others = end_s - fault_s, 0, 0
  for status in ('\n' .. output):gmatch '\nstatus (%d+)' do
    if status == '0' then zeros = zeros + 1 else others = others + 1 end
  end
  local fine = output:find(message) and #left == 0 and seconds < (expected.seconds or 30)
  if expected.succeeds then fine = fine and others == 0 else fine = fine and zeros == (expected.zeros or 0) end
  cases = cases + 1
  if not expected.succeeds then longest_s = math.max(longest_s, seconds) end
  print(('%s %5.1f s  %-38s %s'):format(fine and 'ok  ' or 'FAIL', seconds, name, output:match(message) or ''))
  if not fine then
    failures = failures + 1
    print('      expected ' .. message .. '\n      ' .. output:gsub('\n', '\n      '))
    if #left > 0 then print('      left: ' .. table.concat(left, ' ')) end
  end
  for _, process in ipairs(left) do os.execute('kill -9 ' .. process) end
  io.stdout:flush()
end

local function on_two(what) return ('if rank == 2 then %s end'):format(what) end
local function on_all(what) return what end

-- A stopped rank whose job is gone must end by itself when it goes on: nobody else can end it.
local function stop_for(seconds) return ("os.execute('(sleep %d; kill -CONT ' .. me .. ') &') "):format(seconds) end

local stopped = 'rank 2 %(node 1%) has not answered for 1%d s[^\n]*'
local left_job = 'rank 2 %(node 1%) has left the job[^\n]*'
local hangs, missing = 'rank 2 %(node 1%) hangs: for 2%d s[^\n]*', 'rank 2 of 4 %(node 1%) has not joined within 25 s'

-- Faults of rank 2 before and after it has joined, and the message.
local faults = {
  { 'killed', after = "signal 'KILL'", said = stopped },
  { 'exits with 3', after = 'fault() os.exit(3)', said = left_job },
  { 'exits with 0 too early', after = 'fault() os.exit(0)', said = left_job, zeros = 1 },
  { 'ends without a goodbye', after = "require('ffi').cdef 'void _exit(int);' fault() require('ffi').C._exit(0)",
    said = stopped, zeros = 1 },
  { 'stopped for 20 s', after = stop_for(20) .. "signal 'STOP'", said = stopped },
  { 'loops in Lua', after = 'interpreted()', said = hangs },
  { 'loops in compiled Lua', after = 'compiled()', said = hangs },
  { 'hangs in a step of the executor', each = [[
      local net = trinity.graph.layers.new('rows', { batch_size = 4 })
      local x = net:input('x', { 4, 6 })
      for i = 1, 4 do x = net:relu('relu' .. i, net:linear('layer' .. i, x, 6)) end
      net:softmax_cross_entropy('loss', x, net:input('labels', { 4 }, 'int64'))
      local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x4' }
      local i = 0
      local placement = problem:placement_by_unit(function() i = i + 1 return i % 4 + 1 end)
      local executor = core.executor(problem.graph.handle, placement, 4, nil, { job = job.handle })
      for step = 1, 20 do if step == 9 and rank == 2 then compiled() end executor:step() end
    ]], said = hangs },
  { 'killed before it joins', before = "signal 'KILL'", said = missing },
  { 'exits with 0 before it joins', before = 'fault() os.exit(0)', said = missing, zeros = 1 },
  { 'joins 10 s after the others', before = 'sleep(10)', said = 'all met', succeeds = true },
  { 'joins after 35 s', before = 'fault() sleep(35)', said = missing, seconds = 64 },
  { 'another model', each = [[
      local problem = trinity.problem { cluster = trinity.cluster 'p100x4',
        graph = trinity.model('mlp', { inputs = rank == 2 and 5 or 4, hidden = { 3 }, classes = 2, batch_size = 2 }) }
      fault()
      trinity.execute(problem, problem:strategy { mesh = { data = 4 } }, { steps = 1, warm_up = 0 })
    ]], said = 'rank 2 %(node 1%) disagrees about what is executed[^\n]*' },
  { 'another search', each = [[
      local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 2 }),
        cluster = trinity.cluster 'p100x2' }
      fault()
      trinity.methods.trinity(problem, { quiet = true, evaluations = rank == 2 and 60 or 50 })
    ]], said = 'rank 2 %(node 1%) disagrees about the search: it has option evaluations[^\n]*' },
  { 'another program version', before = "package.loaded['trinity.core'].version = '0.0.9'",
    said = 'rank 2 %(node 1%) has another program: trinity 0.0.9[^\n]*' },
  { 'other arguments', before = "arg[1] = '--steps 7'",
    said = 'rank 2 %(node 1%) has other arguments: %-%-steps 7[^\n]*' },
}
for _, f in ipairs(faults) do
  local path = script(f.before and on_two(f.before), f.each and on_all(f.each) or f.after and on_two(f.after))
  case(f[1], by_variables(path), f.said, f)
end

local plain = script()
case('never comes', by_variables(plain, { [2] = { absent = true } }), missing)
case('rank 0 never comes', by_variables(plain, { [0] = { absent = true } }),
  'no store of the job at [%d.:]+ %(MASTER_ADDR, MASTER_PORT%) within 25 s: has rank 0 started there%?')
case('wrong world size', by_variables(plain, { [2] = { size = 5 } }), 'rank 2 says the job has 5 ranks, rank %d says 4')
case('too small a world', by_variables(plain, { [3] = { size = 3, rank = 2 }, [2] = { absent = true } }),
  'rank 2 says the job has 3 ranks, rank %d says 4')
case('the same rank twice', by_variables(plain, { [3] = { rank = 2 } }), 'two processes have rank 2')
core.write_file(folder .. '/other.lua', core.read_file(plain) .. ' -- changed')
case('another script', by_variables(plain, { [2] = { script = folder .. '/other.lua' } }),
  'rank 2 %(node 1%) has another script: other.lua %[%x+%], the others script%d+.lua %[%x+%]')
case('rank 0 killed with its store', by_variables(script(nil, "if rank == 0 then signal 'KILL' end")),
  "rank 0, which keeps the job's store, is gone")
case('rank 0 stopped with its store', by_variables(script(nil, ('if rank == 0 then %s end'):format(stop_for(16)
  .. "signal 'STOP'"))), "rank 0, which keeps the job's store, has not answered for 1%d s")
-- Rank 3 comes 4 s after the others, and does something to rank 0 first.
local function to_zero(what)
  return script(("if rank == 0 then core.write_file(here .. '/zero', tostring(me)) end if rank == 3 then sleep(4) "
    .. "local zero = core.read_file(here .. '/zero') %s end"):format(what))
end
case('rank 0 killed while others join', by_variables(to_zero "signal('KILL', zero)"),
  "rank 0, which keeps the job's store, is gone")
case('rank 0 stopped while others join', by_variables(
  to_zero "os.execute('(sleep 29; kill -CONT ' .. zero .. ') &') signal('STOP', zero)"),
  "the job's store at [%d.:]+ %(MASTER_ADDR, MASTER_PORT%) has not answered for 2%d s")

-- A port that another program listens at, which never answers.
local listener = write('listener.lua', [[
  local ffi = require 'ffi'
  ffi.cdef 'int socket(int, int, int); int bind(int, const void *, unsigned); int listen(int, int);'
  local port = tonumber(arg[1])
  local address = ffi.new('uint8_t[16]', { 2, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
  local socket = ffi.C.socket(2, 1, 0)
  assert(ffi.C.bind(socket, address, 16) == 0 and ffi.C.listen(socket, 9) == 0)
  ffi.cdef 'int poll(void *, unsigned long, int);'
  ffi.C.poll(nil, 0, 50000)
]])
local function with_listener(ranks)
  return ([[( '%s' '%s' %d > /dev/null 2>&1 & echo $! > '%s/listener' )
sleep 3
%s
wait
kill $(cat '%s/listener')]]):format(program, listener, next_port, folder, ranks, folder)
end
case('the port is taken', with_listener(by_variables(plain)), "cannot keep the job's store at [%d.:]+[^\n]*")
case('a port that says nothing', with_listener(by_variables(plain, { [0] = { absent = true } })),
  "the job's store at [%d.:]+ %(MASTER_ADDR, MASTER_PORT%) has not answered for 2%d s")

local too_many = ('RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 MASTER_ADDR=127.0.0.1 '
  .. "MASTER_PORT=%d '%s' '%s'"):format(next_port + 1, program, plain)
case('a rank too many, later', by_variables(script(nil, 'if rank == 2 then fault() sleep(9) end')) .. ([[

for i in $(seq 300); do [ -s '%s/fault' ] && break; sleep 0.1; done
%s]]):format(folder, too_many), 'rank 2 is taken: the job at [%d.:]+ runs already', { zeros = 4 })
core.remove_tree(folder)
print(('%d cases, %d not as expected, the longest took %.1f s'):format(cases, failures, longest_s))
os.exit(failures == 0 and 0 or 1)
