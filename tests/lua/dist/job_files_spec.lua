-- trinity launch --write: what Slurm and Kubernetes get is what they take, and says what was asked for.

local core = require 'trinity.core'
local job_files = require 'trinity.dist.job_files'
local util = require 'trinity.base.util'

local function settings(more)
  return util.merged({ program = '/opt/trinity/bin/trinity', folder = '/home/a b/work',
    words = { 'search', '--model', "it's" }, command = { 'launch', '-n', '8' }, processes = 8, per_node = 4, threads = 2,
    backend = '', time = '1-02:00:00', image = 'registry/trinity:1' }, more)
end

-- The options of #SBATCH lines, by name; what is no such option, stands behind a command, or has no value where it
-- needs one is an error.
local valued = { ['job-name'] = '^[%w_.+-]+$', nodes = '^%d+$', ntasks = '^%d+$', ['ntasks-per-node'] = '^%d+$',
  ['cpus-per-task'] = '^%d+$', ['gpus-per-task'] = '^%d+$', time = '^[%d-]*%d%d:%d%d:%d%d$', signal = '^%u+%d*@%d+$',
  ['open-mode'] = '^append$', output = '^%S+$' }
local function sbatch_of(text)
  local options, ended = {}, false
  expect(text:match '^[^\n]*'):equals '#!/bin/bash'
  for line in text:gmatch '[^\n]+' do
    if line:sub(1, 1) ~= '#' then ended = true end
    local name, value = line:match '^#SBATCH %-%-([%a-]+)=?(.*)$'
    if line:find('#SBATCH', 1, true) then
      expect(name ~= nil and not ended):equals(true)
      if name == 'requeue' then
        expect(value):equals ''
      else
        expect(valued[name] ~= nil):equals(true)
        expect(value):matches(valued[name])
      end
      expect(options[name]):equals(nil)
      options[name] = value
    end
  end
  return options
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

describe('a job file of Slurm', function()
  it('asks for the ranks, for SIGTERM in time and to be queued again', function()
    local options = sbatch_of(job_files.slurm(settings {}))
    expect(options.nodes .. ' ' .. options.ntasks .. ' ' .. options['ntasks-per-node']):equals '2 8 4'
    expect(options['cpus-per-task'] .. ' ' .. options.time):equals '2 1-02:00:00'
    expect(options.signal):equals 'TERM@120'
    expect(options.requeue):equals ''
    expect(options['job-name']):equals 'search'
    expect(options['gpus-per-task']):equals(nil)
    expect(sbatch_of(job_files.slurm(settings { backend = 'nccl' }))['gpus-per-task']):equals '1'
    expect(sbatch_of(job_files.slurm(settings { words = { 'x/my run.lua', '--run=night' } }))['job-name']):equals 'night'
  end)
  it('starts them with their words, and goes back into the queue after status 143 alone', function()
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

-- What the schemas of Kubernetes (io.k8s.api: batch.v1.Job, core.v1.Service and what they hold) require of the fields
-- that are used here, and the kind of each: 'string', 'integer', 'boolean', { of = schema } for lists, a schema, or
-- 'strings' for tables of texts. `required` names fields.
local env = { name = 'string', value = 'string', required = 'name' }
local metadata = { name = 'string', labels = 'strings', annotations = 'strings' }
local container = { name = 'string', image = 'string', workingDir = 'string', command = { of = 'string' }, env = { of = env },
  resources = { requests = 'strings', limits = 'strings' },
  volumeMounts = { of = { name = 'string', mountPath = 'string', required = 'name mountPath' } }, required = 'name' }
local pod = { restartPolicy = 'string', subdomain = 'string', terminationGracePeriodSeconds = 'integer',
  containers = { of = container },
  volumes = { of = { name = 'string', persistentVolumeClaim = { claimName = 'string', required = 'claimName' },
    required = 'name' } }, required = 'containers' }
local rule = { action = 'string', onPodConditions = { of = { type = 'string', status = 'string', required = 'type status' } },
  onExitCodes = { containerName = 'string', operator = 'string', values = { of = 'integer' }, required = 'operator values' },
  required = 'action' }
local schemas = {
  Service = { apiVersion = 'string', kind = 'string', metadata = metadata,
    spec = { clusterIP = 'string', publishNotReadyAddresses = 'boolean', selector = 'strings' } },
  Job = { apiVersion = 'string', kind = 'string', metadata = metadata,
    spec = { completionMode = 'string', completions = 'integer', parallelism = 'integer', backoffLimit = 'integer',
      podFailurePolicy = { rules = { of = rule }, required = 'rules' },
      template = { metadata = metadata, spec = pod }, required = 'template' } },
}

-- Raises where a value is not what its schema says.
local function check(value, schema, where)
  if schema == 'string' or schema == 'boolean' then
    if type(value) ~= schema then error(('%s: expected a %s'):format(where, schema), 0) end
  elseif schema == 'integer' then
    if type(value) ~= 'number' or value % 1 ~= 0 then error(where .. ': expected an integer', 0) end
  elseif type(value) ~= 'table' then
    error(where .. ': expected a table', 0)
  elseif schema == 'strings' then
    for key, text in util.sorted_pairs(value) do check(text, 'string', where .. '.' .. tostring(key)) end
  elseif schema.of then
    for i, entry in ipairs(value) do check(entry, schema.of, ('%s[%d]'):format(where, i)) end
  else
    for name in (schema.required or ''):gmatch '%S+' do
      if value[name] == nil then error(('%s: %s is required'):format(where, name), 0) end
    end
    for key, field in util.sorted_pairs(value) do
      if schema[key] == nil then error(('%s: there is no field %s'):format(where, key), 0) end
      check(field, schema[key], where .. '.' .. key)
    end
  end
end

describe('a job file of Kubernetes', function()
  local trinity = require 'trinity'
  local function items(more)
    local list = trinity.json.decode(job_files.kubernetes(settings(util.merged({ words = { 'search', '--run', 'My_run' } }, more))))
    expect(list.kind .. ' ' .. list.apiVersion):equals 'List v1'
    return list.items[1], list.items[2]
  end
  it('holds to the schemas', function()
    for _, backend in ipairs { '', 'nccl' } do
      local service, job = items { backend = backend }
      expect(service.kind .. ' ' .. job.kind .. ' ' .. job.apiVersion):equals 'Service Job batch/v1'
      check(service, schemas.Service, 'Service')
      check(job, schemas.Job, 'Job')
    end
    local _, job = items {}
    job.spec.template.spec.containers[1].name = nil
    expect(function() check(job, schemas.Job, 'Job') end):raises 'Job.spec.template.spec.containers%[1%]: name is required'
  end)
  it('starts a pod for each rank, which find rank 0 by the name of a service and go on where they were', function()
    local service, job = items {}
    local spec = job.spec.template.spec
    local variables = {}
    for _, entry in ipairs(spec.containers[1].env) do variables[entry.name] = entry.value end
    expect(job.spec.completionMode .. ' ' .. job.spec.completions .. ' ' .. job.spec.parallelism):equals 'Indexed 8 8'
    expect(variables.WORLD_SIZE):equals '8'
    expect(variables.MASTER_ADDR):equals(('%s-0.%s'):format(job.metadata.name, service.metadata.name))
    expect(spec.subdomain):equals(service.metadata.name)
    expect(service.spec.selector.app):equals(job.spec.template.metadata.labels.app)
    expect(variables.TRINITY_RESUME .. variables.TRINITY_JOIN):equals '11'
    expect(spec.restartPolicy):equals 'Never' -- which podFailurePolicy needs
    expect(table.concat(spec.containers[1].command, ' ')):equals 'trinity --threads 2 search --run My_run'
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
    expect(sbatch_of(text).nodes):equals '2'
    trinity_says('launch --write slum search', 2, "unknown kind 'slum', did you mean 'slurm'")
    trinity_says('launch --write slurm --time soon search', 2, "'%-%-time': expected HH:MM:SS")
    trinity_says('launch --write slurm --time : search', 2, "'%-%-time': expected HH:MM:SS")
    trinity_says("launch --write slurm --backend ';touch x' search", 2, "unknown backend ';touch x' %(known: gloo, nccl%)")
  end)
end)
