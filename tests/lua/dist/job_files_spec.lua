-- trinity launch --write: what Slurm and Kubernetes get is what they take, and says what was asked for.

local core = require 'trinity.core'
local job_files = require 'trinity.dist.job_files'
local util = require 'trinity.base.util'

local function settings(more)
  return util.merged({ program = '/opt/trinity/bin/trinity', folder = '/home/a b/work',
    words = { 'search', '--model', "it's" }, command = { 'launch', '-n', '8' }, processes = 8, per_node = 4, threads = 2,
    backend = '', time = '1-02:00:00', image = 'registry/trinity:1' }, more)
end

-- Runs a job file as Slurm's batch shell would, with an srun that ends with a status; returns what it said.
local function batch(text, status, restarts)
  local folder = temporary()
  core.make_folder(folder, {})
  core.write_file(folder .. '/job.sh', text)
  core.write_file(folder .. '/srun', '#!/bin/sh\nprintf "srun"; printf " [%s]" "$@"; echo\nenv | grep ^TRINITY_ | sort\nexit ' .. status)
  core.write_file(folder .. '/scontrol', '#!/bin/sh\necho "scontrol $*"\n')
  return output_of(("cd '%s' && chmod +x srun scontrol && bash -n job.sh && env -i PATH=\"$PWD:$PATH\" SLURM_JOB_ID=7 %s bash job.sh; echo status=$?"):format(
    folder, restarts and 'SLURM_RESTART_COUNT=' .. restarts or ''))
end

describe('a job file', function()
  -- As sbatch 22.05 and the schemas of Kubernetes (batch.v1.Job, core.v1.Service) take them: ranks, SIGTERM in time, the job
  -- queued again; a pod for each rank, which finds rank 0 by the name of a service and goes on where it was.
  for kind, word in util.sorted_pairs { slurm = 'night', kubernetes = 'My_run' } do
    for _, backend in ipairs { '', 'nccl' } do
      it_golden(('launch/%s%s'):format(kind, backend == '' and '' or '_' .. backend), function()
        return job_files[kind](settings { backend = backend, words = { 'search', '--model', "it's", '--run', word } })
      end)
    end
  end
  it('of Slurm starts the ranks with their words, and goes back into the queue after status 143 alone', function()
    local folder = temporary()
    core.make_folder(folder, {})
    local text = job_files.slurm(settings { folder = folder })
    local said = batch(text, 0)
    expect(said:match '^[^\n]*'):equals("srun [--kill-on-bad-exit=0] [--wait=60] [/opt/trinity/bin/trinity] [--threads] [2] [search] "
      .. "[--model] [it's] [--run] [search]")
    expect(said):matches 'TRINITY_JOIN=1\nTRINITY_JOIN_TIMEOUT_S=120\nTRINITY_RESUME=1\n'
    expect(said):matches '\nstatus=0\n$'
    expect(batch(text, 143)):matches '\nscontrol requeue 7\nstatus=143\n$'
    expect(batch(text, 143, 99)):matches 'scontrol requeue'
    expect(batch(text, 143, 100):find('scontrol', 1, true)):equals(nil) -- some day there is an end
    expect(batch(text, 1):find('scontrol', 1, true)):equals(nil)
    expect(batch(job_files.slurm(settings { folder = '/nowhere' }), 0)):matches 'status=1\n$'
  end)
end)

describe('words of any bytes', function()
  local folder = temporary()
  local words = { 'search', '--model', "it's\ntouch PWNED\n", '\27[31m\194\155\226\128\174\\', '$(touch PWNED)', 'ä \t\255' }
  it('come to srun as they are, and no comment of a job file of Slurm runs any of them', function()
    core.write_file(folder .. '/bin/srun', '#!/bin/sh\nfor word; do printf "%s|" "$word"; done\n')
    os.execute(("chmod +x '%s/bin/srun'"):format(folder))
    local text = job_files.slurm(settings { words = words, command = words, folder = folder })
    expect(text):equals(core.printable(text))
    core.write_file(folder .. '/job.sh', text)
    local output = output_of(("cd '%s' && PATH='%s/bin':$PATH bash job.sh 2>&1"):format(folder, folder))
    expect(output:sub(-#table.concat(words, '|') - 14)):equals(table.concat(words, '|') .. '|--run|search|')
    expect(core.exists(folder .. '/PWNED')):equals(false)
  end)
  it('stand in one of Kubernetes as characters that only show, under a name that it takes', function()
    local text = job_files.kubernetes(settings { words = words, command = words, image = '\27[31m\194\155' })
    expect(text):equals(core.printable(text))
    for run, name in require('trinity').sorted_pairs { ['7'] = 'job-7', ___ = 'job', My_run = 'my-run' } do
      local made = job_files.kubernetes(settings { words = { 'search', '--run', run } })
      expect(require('trinity').json.decode(made).items[1].metadata.name):equals(name)
    end
  end)
  it('are no name of a run', function()
    for _, run in ipairs { 'x\n#SBATCH --account=other', 'x --account=other', '' } do
      for _, kind in ipairs { 'slurm', 'kubernetes' } do
        expect(function() job_files[kind](settings { words = { 'search', '--run', run } }) end)
          :raises "option '%-%-run': expected a name"
      end
    end
  end)
end)

describe('trinity launch --write', function()
  it('prints one, and says what it does not know', function()
    local text = output_of(("'%s' launch -n 4 --per_node 2 --write slurm search --method trinity"):format(program))
    expect(text):matches '\n#SBATCH %-%-nodes=2\n'
    trinity_says('launch --write slum search', 2, "unknown kind 'slum', did you mean 'slurm'")
    trinity_says('launch --write slurm --time soon search', 2, "'%-%-time': expected HH:MM:SS")
    trinity_says('launch --write slurm --time : search', 2, "'%-%-time': expected HH:MM:SS")
    trinity_says('launch --time 02:00:00 search', 2, "'%-%-time': is of %-%-write slurm")
    trinity_says('launch --write slurm --image mine search', 2, "'%-%-image': is of %-%-write kubernetes")
    trinity_says("launch --write slurm --backend ';touch x' search", 2, "unknown backend ';touch x' %(known: gloo, nccl%)")
  end)
end)
