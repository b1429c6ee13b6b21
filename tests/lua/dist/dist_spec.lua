-- trinity.dist in real processes: collectives, what happens when a rank fails. Starting a process costs half a second, so
-- tests share jobs. What hangs here sleeps. tests/lua/execute trains over several ranks.

local ffi = require 'ffi'

with_torch()

local processes = dofile(root .. '/tests/lua/support/processes.lua')
local launch, shell, write_script = processes.launch, processes.shell, processes.write_script

local function count(text, pattern) return select(2, text:gsub(pattern, '')) end

-- In a script: hang.
local hang = "require('ffi').cdef 'int poll(void *, unsigned long, int);' require('ffi').C.poll(nil, 0, 60000)"

-- Two nodes of two ranks: collectives, then what they execute, of which one rank has another model. What the job, of
-- which two tests tell, said, and its exit status.
local four
local function four_ranks()
  four = four or { launch(4, [[
  local trinity = require 'trinity'
  local tensor = trinity.tensor
  local job = trinity.dist.init { link = { latency_s = 1e-3 } }
  local function reduce(options)
    local x = tensor.new { job.rank, 1, 2 ^ job.rank, 1 / 3, job.rank }
    job:all_reduce(x, options)
    return ('%g %g %g %.5f'):format(x:select(1, 1):item(), x:select(1, 2):item(), x:select(1, 3):item(), x:select(1, 4):item())
  end
  local lines = { reduce {}, reduce { scope = 'node' }, reduce { scope = 'across' }, reduce { reduction = 'max' },
    reduce { reduction = 'mean' } }
  local x = tensor.full({ 2 }, job.rank)
  lines[#lines + 1] = job:broadcast(x, { scope = 'node', root = 1 }):select(1, 1):item()
  lines[#lines + 1] = 'mean ' .. job:mean(job.rank)
  job:agree('the weather', 'fine')
  io.stderr:write(('%d: %s\n'):format(job.rank, table.concat(lines, '; '))) -- one write: ranks share the stream
  local graph = trinity.model('mlp', { inputs = 4, hidden = { job.rank == 2 and 5 or 6 }, classes = 3, batch_size = 2 })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x4' }
  trinity.execute(problem, problem:strategy { mesh = { data = 4 } }, { steps = 2, warm_up = 0 })
  print 'never'
  ]], { per_node = 2 }) }
  return four[2], four[1]
end

describe('a job', function()
  it('of one process needs no launcher, and leaves tensors alone', function()
    local trinity = require 'trinity'
    local job = trinity.dist.init()
    local x = trinity.tensor.new { 1, 2, 1.001 }
    job:all_reduce(x, { scope = 'node' })
    job:broadcast(x)
    job:barrier()
    expect(tostring(job)):equals 'job: rank 0 of 1, on node 0 of 1 (none)'
    expect(x:select(1, 3):item()):near(1.001, 1e-6)
    expect(job:mean(3)):equals(3)
    expect(trinity.dist.current()):equals(nil)
    expect(function() job:all_reduce(trinity.tensor.ones { 2, 3 }:transpose(1, 2)) end):raises 'expected a contiguous tensor'
    expect(function() job:broadcast(x, { root = 1 }) end):raises "'root'"
  end)
  it('adds up over all ranks, nodes and across nodes', function()
    local output = four_ranks()
    local function line(rank, node, across, root)
      return ('\n%d: 6 4 15 1.33333; %s; %s; 3 1 8 0.33333; 1.5 1 3.75 0.33333; %d; mean 1.5\n'):format(rank, node, across, root)
    end
    output = '\n' .. output:gsub('\n', '\n\n')
    expect(output):matches(line(0, '1 2 3 0.66667', '2 2 5 0.66667', 1))
    expect(output):matches(line(2, '5 2 12 0.66667', '2 2 5 0.66667', 3))
    expect(output):matches(line(3, '5 2 12 0.66667', '4 2 10 0.66667', 3))
    expect(count(output, 'mean 1.5\n')):equals(4)
  end)
  it('refuses contradictory variables by name', function()
    local script = write_script "require('trinity').dist.init { join_timeout_s = 1 }"
    local status, output = shell('RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=23458 "$T" ' .. script)
    expect(status):equals(1)
    expect(output):matches 'trinity: [^\n]*store[^\n]* at 127.0.0.1:23458' -- of the join, or of the watcher where that is later
    expect(count(output, 'trinity: ')):equals(1)
    ffi.cdef 'int setenv(const char *, const char *, int); int unsetenv(const char *);'
    local trinity = require 'trinity'
    local joined = trinity.dist.init()
    joined:close() -- a job of one is forgotten, so that this process can try to join others
    local function refused(variables, text)
      local names = {}
      for name, value in variables:gmatch '([%u_]+)=(%S+)' do
        names[#names + 1] = name
        ffi.C.setenv(name, value, 1)
      end
      local ok, message = pcall(trinity.dist.init, { join_timeout_s = 1 })
      for _, name in ipairs(names) do ffi.C.unsetenv(name) end
      expect(ok):equals(false)
      expect(message):matches(text)
    end
    refused('RANK=0 WORLD_SIZE=2', 'MASTER_ADDR is not set')
    refused('TRINITY_BACKEND=gluu', "unknown backend 'gluu', did you mean 'gloo'")
    local has_nccl, without = pcall(trinity.dist.init, { backend = 'nccl' })
    if has_nccl then without:close() else expect(without):matches 'was built with a LibTorch that has no NCCL' end
    refused('RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=23457', 'rank 1 of 2 has not joined within 1 s')
  end)
end)

describe('a rank that fails ends the job with one message', function()
  it('when it hangs', function()
    local status, output, seconds = launch(3, [[
      local trinity = require 'trinity'
      local job = trinity.dist.init { timeout_s = 1.5 }
      job:barrier()
      if job.rank == 1 then ]] .. hang .. [[ end
      job:barrier()
      print 'never'
    ]])
    expect(output):matches '^trinity: rank 1 hangs: for %d s rank [02] has waited for it in barrier 3 %(world%)\n$'
    expect(status):equals(1)
    expect(seconds):below(30)
  end)
  it('when it is stopped', function()
    local status, output, seconds = launch(2, [[
      local trinity = require 'trinity'
      local job = trinity.dist.init { silence_s = 2 }
      local me = io.open '/proc/self/stat':read '*n'
      if job.rank == 1 then os.execute(('(sleep 5; kill -CONT %d) & kill -STOP %d'):format(me, me)) end
      job:barrier()
    ]])
    expect(output):matches '^trinity: rank 1 has not answered for %d s: it was killed or stopped' -- rank 1 itself may speak later
    expect(status):equals(1)
    expect(seconds):below(30)
  end)
  it('when its script fails, with its own error', function()
    local status, output = launch(2, [[
      local job = require('trinity').dist.init()
      if job.rank == 1 then error 'no more data' end
      job:barrier()
    ]])
    expect(output):matches '^trinity: [^\n]*: no more data\ntrinity: rank 1 has left the job[^\n]*\n$'
    expect(status):equals(1)
  end)
  it('when its script ends before it joins', function()
    local status, output = launch(2, [[
      local trinity = require 'trinity'
      if os.getenv 'RANK' == '1' then os.exit(0) end
      trinity.dist.init { join_timeout_s = 3 }
    ]], { per_node = 1 })
    expect(output):matches('^trinity: [^\n]*rank 1 of 2 %(node 1%) has not joined within 3 s: it never started, hangs, was '
      .. 'stopped or ended\n$')
    expect(status):equals(1)
  end)
  it('when it has other arguments or another program', function()
    local function differs(change)
      return launch(3, "if os.getenv 'RANK' == '2' then " .. change .. " end require('trinity').dist.init()", { arguments = '--steps 5' })
    end
    local status, output = differs "arg[2] = '6'"
    expect(output):matches '^trinity: [^\n]*rank 2 has other arguments: %-%-steps 6, the others %-%-steps 5\n'
    expect(status):equals(1)
    local _, program_output = differs "require('trinity.core').version = '0.0.9'"
    expect(program_output):matches 'trinity: [^\n]*rank 2 has another program: trinity 0.0.9 with LibTorch [^\n]*, the others trinity [%d.]+ with [^\n]*\n'
  end)
  it('when what listens at the port is no store', function()
    local listener = write_script([[
      local ffi = require 'ffi'
      ffi.cdef 'int socket(int, int, int); int bind(int, const void *, unsigned); int listen(int, int);'
      ffi.cdef 'int getsockname(int, void *, unsigned *);'
      local socket = ffi.C.socket(2, 1, 0)
      local address = ffi.new('uint8_t[16]', { 2, 0, 0, 0, 127, 0, 0, 1 })
      assert(ffi.C.bind(socket, address, 16) == 0 and ffi.C.listen(socket, 9) == 0)
      assert(ffi.C.getsockname(socket, address, ffi.new('unsigned[1]', 16)) == 0)
      require('trinity.core').write_file(arg[1], address[2] * 256 + address[3] .. '\n')
      ]] .. hang)
    local rank = write_script "require('trinity').dist.init { join_timeout_s = 3 }"
    local function join(variables)
      local ready = temporary()
      local status, output, seconds = shell(('"$T" %s %s > /dev/null & p=$!; while [ ! -s %s ] && kill -0 $p; do sleep 0.05; done; '
        .. 'RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(cat %s) %s "$T" %s; s=$?; kill -9 $p; wait; (exit $s)'):format(
        listener, ready, ready, ready, variables, rank))
      expect(status):equals(1)
      expect(count(output, 'trinity: ')):equals(1)
      expect(seconds):below(30)
      return output
    end
    local alone = join ''
    expect(alone):matches "^trinity: rank 1: the job's store at 127.0.0.1:%d+ %(MASTER_ADDR, MASTER_PORT%) has not answered for %d s: "
    expect(count(alone, 'torchrun')):equals(0)
    -- Torchrun of another LibTorch keeps a store that does not answer either.
    expect(join 'TORCHELASTIC_USE_AGENT_STORE=True'):matches 'set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for it'
  end)
  it('as copies that join no job: rank 0 warns, once, whatever the launcher', function()
    local function copy(variables, text)
      local status, output = shell(variables .. ' TRINITY_RUNS=none "$T" ' .. write_script(text))
      expect(status):equals(0)
      return output
    end
    local torchrun = 'RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=23460'
    local open_mpi = 'OMPI_COMM_WORLD_RANK=%d OMPI_COMM_WORLD_SIZE=%d'
    local search = [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model 'alexnet', cluster = trinity.cluster 'p100x2' }
      local found = trinity.methods.trinity(problem, { evaluations = 40, quiet = true })
      print(found.evaluations > 1, (trinity.dist.current()))
      trinity.methods.trinity(problem, { evaluations = 40, quiet = true })
    ]]
    local told = '^trinity: warning: %s started 2 processes of this script, which has joined no job: each does all of the '
      .. 'work, into the same files; [^\n]*trinity%%.dist%%.init%%(%%)[^\n]*\n%s$'
    expect(copy(torchrun, search)):matches(told:format('torchrun', 'true\tnil\n'))
    expect(copy(open_mpi:format(0, 2), search)):matches(told:format('Open MPI', 'true\tnil\n'))
    expect(copy(open_mpi:format(1, 2), search)):equals 'true\tnil\n'
    expect(copy(open_mpi:format(0, 1), search)):equals 'true\tnil\n'
    expect(copy(torchrun, '')):matches(told:format('torchrun', '')) -- at its end, whatever it did
    local _, joined = launch(2, "require('trinity').dist.init():barrier()")
    expect(joined):equals ''
  end)
  it('when it has another model', function()
    local output, status = four_ranks()
    expect(output):matches 'trinity: /[^\n]*:%d+: rank 2 %(node 1%) disagrees about what is executed: it has mlp of %x+, [^\n]*\n'
    expect(count(output, 'trinity: ')):equals(1)
    expect(count(output, 'never')):equals(0)
    expect(status):equals(1)
  end)
end)

processes.clean()
