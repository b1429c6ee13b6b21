-- A job on two hosts, which are network namespaces on this machine with names and addresses of their own and a shaped
-- link between (tests/lua/support/hosts.sh): by the variables of torchrun, Slurm, Kubernetes and by mpirun itself; what
-- is said, how soon, and how the run goes on when the link is cut, a host vanishes, or a name means the wrong address.

with_torch()
all_only()

local core = require 'trinity.core'

local processes = dofile(root .. '/tests/lua/support/processes.lua')
local shell, write_script = processes.shell, processes.write_script

-- Adds up over the ranks of both hosts.
local sum = write_script [[
  local trinity = require 'trinity'
  local job = trinity.dist.init()
  local x = job:all_reduce(trinity.tensor.full({ 1000 }, job.rank + 1))
  job:print(('%d ranks on %d nodes by %s: %g'):format(job.size, job.nodes, job.source, x:sum():item()))
  job:close()
]]

-- A search that the ranks share, with checkpoints that come often.
local search = write_script [[
  local trinity = require 'trinity'
  trinity.options { 'Searches.' }
  require('trinity.runs.checkpoints').least_s = 0.3
  local problem = trinity.problem { graph = trinity.model 'inception_v3', cluster = trinity.cluster 'p100x4' }
  trinity.methods.trinity(problem, { evaluations = 400, seed = 3, quiet = true, policy = 0.9, patience = 1e6, groups = 8,
    hidden = 8, samples = 8, epochs = 2 })
  print 'whole'
]]

-- Runs a piece of shell on the two hosts; skips where there are none.
local function hosts(text)
  local folder = temporary()
  core.make_folder(folder, {}, '')
  local status, output, seconds = shell(('unset TRINITY_RUNS; cd %s; . "$TRINITY_HOME/tests/lua/support/hosts.sh" %s\n%s'):format(
    folder, folder, text))
  if status == 77 then skip 'network namespaces are not permitted here' end
  return output, status, seconds, folder
end

-- Ranks 0 and 1 on host a, 2 and 3 on host b, by torchrun's variables; words of the command.
local function torchrun(words, address)
  return ([[
    export WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=%s MASTER_PORT=%d TRINITY_JOIN=1
    start() { RANK=$2 LOCAL_RANK=$(($2 %% 2)) GROUP_RANK=$(($2 / 2)) on $1 timeout -k 5 90 "$T" --threads 1 %s & }
    start a 0; p0=$!; start a 1; p1=$!; start b 2; p2=$!; start b 3; p3=$!
  ]]):format(address or 'host-a', 24500, words)
end

-- Waits until there is a checkpoint of the run, then does something; the seconds from then to the end of rank `last`.
local function strike(what, last)
  return ([[
    for i in $(seq 600); do [ -e runs/r/searches/1/checkpoint.json ] && break; sleep 0.1; done
    begun=$(date +%%s); %s; wait $p%d; echo "status=$? after $(($(date +%%s) - begun)) s"]]):format(what, last)
end

describe('a job on two hosts', function()
  it('runs by the variables of torchrun, Slurm and Kubernetes', function()
    expect(hosts(torchrun(sum) .. 'wait $p0 $p1 $p2 $p3')):equals '4 ranks on 2 nodes by torchrun: 10000\n'
    for source, names in require('trinity').system.sorted_pairs {
      Slurm = { 'SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=host-a,host-b SLURM_STEP_NUM_NODES=2 '
        .. 'SLURM_LOCALID=0', 'SLURM_PROCID=%d SLURM_NODEID=%d' },
      Kubernetes = { 'WORLD_SIZE=2 MASTER_ADDR=host-a MASTER_PORT=24501', 'JOB_COMPLETION_INDEX=%d' } } do
      expect(hosts(('export %s TRINITY_JOIN=1\n%s on b timeout -k 5 60 "$T" %s &\n%s on a timeout -k 5 60 "$T" %s; wait'):format(
        names[1], names[2]:format(1, 1), sum, names[2]:format(0, 0), sum))):equals(('2 ranks on 2 nodes by %s: 3000\n'):format(source))
    end
  end)
  it('runs under mpirun, which starts its daemon on the other host', function()
    if os.execute 'command -v mpirun >/dev/null' ~= 0 then skip 'no mpirun here' end
    local output = hosts(([[
      cat > rsh <<'END'
#!/bin/sh
# In place of ssh: the words behind the host, on host b.
shift
exec ip netns exec NAMESPACE unshare -u -m sh -c 'hostname host-b; mount --bind HOSTS /etc/hosts; exec sh -c "$0"' "$*"
END
      sed -i "s|NAMESPACE|$b|; s|HOSTS|$folder/hosts|" rsh; chmod +x rsh
      on a timeout -k 5 90 mpirun --allow-run-as-root --bind-to none -H host-a:1,host-b:1 -n 2 -x TRINITY_HOME \
        -x TRINITY_JOIN=1 --mca plm_rsh_agent "$PWD/rsh" --mca oob_tcp_if_include 10.77.0.0/24 "$T" %s]]):format(sum))
    expect(output):matches '2 ranks on 2 nodes by Open MPI: 3000\n'
  end)
  it('is looked at by trinity help --check', function()
    local output, status = hosts(torchrun 'help --check' .. 'wait $p1 $p2 $p3; wait $p0')
    expect(output):matches 'name        host%-a: 10.77.0.1\n'
    expect(output):matches 'interfaces  va 10.77.0.1'
    expect(output):matches 'launcher    torchrun: 4 ranks, 2 on this machine, rank 0 at host%-a:24500\n'
    expect(output):matches 'echo        of rank 3 on host%-b by all: 4 B in %S+ ms, 4.19 MB in %S+ ms'
    expect(output):matches 'nothing is wrong\n$'
    expect(status):equals(0)
  end)
end)

describe('on two hosts, within 30 s,', function()
  local function seconds_of(output) return tonumber(output:match 'status=1 after (%d+) s') end
  it('a cut link is named on both sides, a host that vanishes by its name, and the run goes on', function()
    for struck, mended in require('trinity').system.sorted_pairs { cut_link = 'wait $p2; mend_link', ['vanish b'] = 'ip -n $b link set vb up' } do
      local output, _, _, folder = hosts(torchrun(search .. ' --run r') .. strike(struck, 0) .. '; ' .. mended .. '\n'
        .. 'export TRINITY_RESUME=1\n' .. torchrun(search .. ' --run r') .. 'wait $p0 $p1 $p2 $p3')
      expect(output):matches 'trinity: rank [23] %(node 1, host%-b%)'
      if struck == 'cut_link' then
        expect(output):matches "trinity: rank 0, which keeps the job's store, has not answered for %d+ s\n"
      end
      expect(seconds_of(output)):below(30)
      expect(output):matches 'run: runs/r resumes'
      expect(output):matches '\nwhole\n'
      expect(core.read_file(folder .. '/runs/r/run.json')):matches '"status": "done"'
    end
  end)
  it('the host of rank 0, too', function()
    local output = hosts(torchrun(search .. ' --run r') .. strike('vanish a', 2) .. '; wait $p3')
    expect(output):matches "trinity: rank 0, which keeps the job's store, [ih]"
    expect(seconds_of(output)):below(30)
  end)
  it('a name that means the loopback is named', function()
    -- As Debian's installer writes it: on host a its own name means 127.0.1.1.
    local own = 'printf "127.0.0.1 localhost\\n127.0.1.1 host-a\\n10.77.0.2 host-b\\n" > own\n'
    local output, _, seconds = hosts(own .. 'export HOSTS=$PWD/own\n' .. torchrun(sum) .. 'wait $p0 $p1 $p2 $p3')
    expect(output):matches "trinity: [^\n]*the machine of rank 0: 'host%-a' resolves to 127.0.1.1, which reaches this machine alone: set MASTER_ADDR"
    expect(seconds):below(30)
    local doctor = hosts(own .. 'export HOSTS=$PWD/own\n' .. torchrun 'help --check' .. 'wait $p0 $p1 $p2 $p3')
    expect(doctor):matches "wrong: job: the machine of rank 0: 'host%-a' resolves to 127.0.1.1"
  end)
end)

processes.clean()
