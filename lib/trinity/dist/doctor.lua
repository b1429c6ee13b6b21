-- The checks of `trinity help --check`: this machine, the variables of a launcher, and under a launcher the whole job,
-- reported by rank 0.

local core = require 'trinity.core'
local dist = require 'trinity.dist'
local one_line = require('trinity.base.text').one_line
local progress = require 'trinity.base.progress'
local ranks = require 'trinity.dist.ranks'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local doctor = {}

local large_bytes, rounds = 4 * 2 ^ 20, 10 -- size of a large message; messages of each size
local job, wrong = nil, 0

-- A line of rank 0's report.
local function say(what, text, ...)
  if job and job.rank > 0 then return end
  print(('%-11s %s'):format(what, text:format(...)))
end

-- Prints a line about a problem, from any rank.
local function complain(what, text, ...)
  wrong = wrong + 1
  local who = job and job.size > 1 and ('rank %d: '):format(job.rank) or ''
  progress.say(one_line(('trinity: %swrong: %s: %s'):format(who, what, text:format(...))))
end

-- Returns an error message without its position.
local function plain(message)
  return (tostring(message):gsub('^[^\n]-%.lua:%d+: ', ''):gsub('^[%w_]+%.[%w_.]+: ', ''))
end

local function first_line(path)
  local ok, text = pcall(core.read_file, path)
  return ok and text:match '^[^\n]*' or nil
end

-- Reports the GPUs of NVIDIA's driver, and how many of them LibTorch can use.
local function look_at_gpus()
  local ok, list = pcall(core.list_folder, '/proc/driver/nvidia/gpus')
  local names = {}
  for _, entry in ipairs(ok and list or {}) do
    names[#names + 1] = (first_line(('/proc/driver/nvidia/gpus/%s/information'):format(entry)) or ''):match ':%s*(.*)$'
  end
  say('GPUs', '%s', #names > 0 and table.concat(names, ', ') or 'none')
  if #names == 0 then return end
  local opened, message = pcall(function() return tensor.zeros(1, { device = 'cuda:0' }) end)
  if not opened then complain('GPUs', 'LibTorch opens none of %d: %s', #names, plain(message)) end
end

local function look_at_machine()
  local machine = core.describe_machine()
  local opens, torch = pcall(function() return core.describe_torch() end) -- even the name needs LibTorch
  say('program', 'trinity %s, %s', core.version, opens and torch or 'without LibTorch')
  if not opens then complain('program', 'jobs of several processes need LibTorch: %s', plain(torch)) end
  say('processor', '%s, %d cores, %s', machine.processor, machine.cores, core.format_bytes(machine.memory_bytes))
  look_at_gpus()
end

-- Checks the name of this machine, and whether others can resolve it.
local function look_at_name()
  local name = first_line '/proc/sys/kernel/hostname' or '?'
  local ok, found = pcall(core.addresses_of, name)
  if not ok then return say('name', '%s, which resolves to nothing: %s', name, plain(found)) end
  local reaches = util.find(found, function(address) return not core.is_loopback(address) end) ~= nil
  say('name', '%s: %s%s', name, table.concat(found, ', '), reaches and ''
    or '; other machines do not find this one by its name: jobs on several need an address as MASTER_ADDR')
end

local function look_at_interfaces()
  local list = {}
  for _, entry in ipairs(core.interfaces()) do
    if not entry.is_loopback then list[#list + 1] = ('%s %s'):format(entry.name, entry.address) end
  end
  say('interfaces', '%s', #list > 0 and table.concat(list, ', ') or 'none but the loopback: only jobs on this machine')
end

-- Returns the settings of the launcher, or nil if they are wrong.
local function look_at_launcher()
  local ok, found = pcall(core.launch_variables)
  if not ok then return complain('launcher', '%s', plain(found)) end
  if found.size == 1 then
    say('launcher', 'none, or one process: mpirun -n 2 trinity help --check looks at a job')
    return found
  end
  say('launcher', '%s: %d ranks%s, rank 0 at %s:%d', found.source, found.size,
    found.local_size > 0 and (', %d on this machine'):format(found.local_size) or '', found.address, found.port)
  local resolved, addresses = pcall(core.addresses_of, found.address)
  if not resolved then
    complain('launcher', 'MASTER_ADDR: %s', plain(addresses))
    return nil
  end
  if found.rank == 0 and core.environment 'TORCHELASTIC_USE_AGENT_STORE' ~= 'True' then
    local failure = core.listening_failure(found.address, found.port)
    if failure ~= '' then
      complain('launcher', 'rank 0 cannot listen at %s:%d (MASTER_ADDR, MASTER_PORT): %s', found.address, found.port,
        failure)
    end
  end
  return found
end

-- Returns the median time in seconds of `count` broadcasts of a tensor with `elements` from one rank. Every rank checks
-- the content.
local function echo(root, elements, count)
  local times = {}
  for i = 1, count do
    local x = tensor.full({ elements }, job.rank == root and root + i or -1)
    job:barrier()
    local begun = core.clock_s()
    job:broadcast(x, { root = root })
    job:all_reduce(tensor.zeros(1)) -- ends when all ranks have received it
    times[i] = core.clock_s() - begun
    local heard = x:sum():item() / elements
    if math.abs(heard - root - i) > 1e-3 then
      complain('echo', 'rank %d sent %g, what came is %g', root, root + i, heard)
    end
  end
  return util.median(times)
end

local function look_at_echoes()
  local elements = large_bytes / 4
  for root = 0, job.size - 1 do
    local host = ranks.text(job, first_line '/proc/sys/kernel/hostname' or '?', root)
    local small_s, large_s = echo(root, 1, rounds), echo(root, elements, rounds)
    say('echo', 'of rank %d on %s by all: 4 B in %.3g ms, %s in %.3g ms (%s/s)', root, host, 1e3 * small_s,
      core.format_bytes(4 * elements), 1e3 * large_s, core.format_bytes(4 * elements / large_s))
  end
end

-- Checks whether all ranks see files that rank 0 writes in their working directory, which will have runs and
-- checkpoints.
local function look_at_files()
  local name = ranks.text(job, job.rank == 0 and ('.trinity-check-%d'):format(core.process().pid) or nil)
  if job.rank == 0 then
    local ok, message = pcall(core.write_file, name, 'of trinity help --check\n')
    if not ok then complain('files', '%s', plain(message)) end
  end
  job:barrier()
  if not util.exists(name) then
    complain('files', '%s is not the folder of rank 0: runs cannot be gone on with here', core.process().folder)
  end
  job:barrier()
  if job.rank == 0 then pcall(core.remove_tree, name) end
end

local function join()
  local ok, joined = pcall(dist.init)
  if ok then return joined end
  complain('job', '%s', plain(joined))
end

--- Prints the results of all checks, and problems of any rank on standard error. Returns the number of problems over
--- all ranks.
function doctor.look()
  look_at_machine()
  look_at_name()
  look_at_interfaces()
  local launched = look_at_launcher()
  if launched and launched.size > 1 and wrong == 0 then
    job = join()
    if job then
      look_at_echoes()
      look_at_files()
      wrong = job:all_reduce(tensor.new({ wrong }, { dtype = 'float64' })):totable()[1]
      job:close()
    end
  end
  say('', '%s', wrong == 0 and 'nothing is wrong' or 'see what is wrong on standard error')
  return wrong
end

return doctor
