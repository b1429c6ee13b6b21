-- SIGTERM on one of four ranks at random times: all stop with the same batch, the best and a checkpoint are kept, the
-- status is 143, and the run goes on to the strategy and the curve of an unbroken one, byte for byte. A killed rank whose
-- launcher starts all of them again, too.

with_torch()

local core = require 'trinity.core'

local processes = dofile(root .. '/tests/lua/support/processes.lua')
local shell = processes.shell

-- A search that ranks share, kept in a run whose checkpoints come often. Every rank prints its number.
local script = processes.write_script [[
  local core, trinity = require 'trinity.core', require 'trinity'
  local options = trinity.options { 'Searches.', pids = { default = '' } }
  require('trinity.runs.checkpoints').least_s = 0.3
  local problem = trinity.problem { graph = trinity.model 'inception_v3', cluster = trinity.cluster 'p100x4' }
  local rank = os.getenv 'RANK'
  core.write_file(options.pids .. '-' .. rank, tostring(core.process().pid))
  local found = trinity.methods.trinity(problem, { evaluations = 500, seed = 3, quiet = true, groups = 8, hidden = 8, samples = 8,
    epochs = 2, policy = 0.8, patience = 1e6 })
  print(found.stopped and 'stopped' or 'whole')
]]

-- The record of a search in its run.
local function kept(folder)
  local path = folder .. '/runs/r/searches/1/'
  return core.read_file(path .. 'strategy.json') .. core.read_file(path .. 'curve.csv')
end

-- Runs the search in four processes in `folder`; before: what the shell does to it once all ranks are there; variables:
-- of the shell, for all ranks.
local function run(folder, before, variables)
  local arguments = ('--pids %s/pid --run r'):format(folder)
  return shell(([[unset TRINITY_RUNS; export TRINITY_JOIN=1 %s; mkdir -p %s; cd %s; rm -f pid-*; %s %s %s & p=$!
    for i in $(seq 400); do [ -s pid-0 ] && [ -s pid-1 ] && [ -s pid-2 ] && [ -s pid-3 ] && [ -e runs/r/run.json ] &&
      break; sleep 0.05; done
    %s; wait $p]]):format(variables or '', folder, folder, processes.ranks(4), script, arguments, before or ':'))
end

describe('SIGTERM on one of four ranks that share a search', function()
  it('stops all of them in order, and the run goes on to the same bytes', function()
    local folder, stopped = temporary(), false
    local status, output = run(folder)
    expect(output):equals 'run: runs/r\nwhole\n'
    expect(status):equals(0)
    local whole, took_s = kept(folder), tonumber(core.read_file(folder .. '/runs/r/run.json'):match '"seconds": ([%d.]+)')
    for turn = 1, 3 do
      folder = temporary()
      status, output = run(folder, ('sleep %.3f; kill -TERM $(cat pid-%d)'):format((0.7 - 0.2 * turn) * took_s, turn % 4))
      if status == 143 then
        stopped = true
        local says = output:gsub('trinity: a rank was asked to end by SIGTERM: all ranks stop\n', '')
          :gsub('run: runs/r\n', ''):gsub('trinity: [^\n]*interrupted\n', '') -- before the search
        if says ~= '' then expect(says):matches '^stopped\n$' end
        local refused = shell(('cd %s; "$T" runs resume r'):format(folder))
        expect(refused):equals(2) -- which would be one process
        local again, text = run(folder, nil, 'TRINITY_RESUME=1')
        expect(text):matches 'whole\n$'
        expect(again):equals(0)
      else
        expect(('%d: %s'):format(status, output)):matches '^0: .*whole\n' -- it had come to its end
      end
      expect(kept(folder) == whole):equals(true)
      if stopped then break end
    end
    expect(stopped):equals(true)
  end)
end)

describe('a job that its launcher starts again, as torchrun --max-restarts does', function()
  it('goes on by itself where a rank was killed, to the same bytes', function()
    local function attempt(folder, count, before)
      return shell(([[unset TRINITY_RUNS; mkdir -p %s; cd %s; rm -f pid-*
        export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d TRINITY_JOIN=1
        export TORCHELASTIC_RESTART_COUNT=%d
        for r in 0 1; do RANK=$r LOCAL_RANK=$r timeout -k 5 90 "$T" --threads 1 %s --pids %s/pid --run r & eval p$r=$!; done
        for i in $(seq 400); do [ -s pid-0 ] && [ -s pid-1 ] && break; sleep 0.05; done
        %s; wait $p1; echo "rank 1: $?"; wait $p0]]):format(folder, folder, 24100 + 7 * count, count, script, folder,
        before or ':'))
    end
    local unbroken, broken = temporary(), temporary()
    local status, output = attempt(unbroken, 0)
    expect(status):equals(0)
    expect(output):matches 'whole\nrank 1: 0\n'
    local failed, said, failed_s = attempt(broken, 0, [[
      for i in $(seq 400); do [ -e runs/r/searches/1/checkpoint.json ] && break; sleep 0.05; done; kill -9 $(cat pid-1)]])
    expect(said):matches 'trinity: rank 1[^\n]* has not answered for %d+ s[^\n]*\n'
    expect(failed):equals(1)
    expect(failed_s):below(40) -- 10 s without an answer, after the search until then
    local again, text = attempt(broken, 1)
    expect(again):equals(0)
    expect(text):matches 'run: runs/r resumes'
    expect(text):matches 'whole\nrank 1: 0\n'
    expect(kept(broken) == kept(unbroken)):equals(true)
  end)
end)

processes.clean()
