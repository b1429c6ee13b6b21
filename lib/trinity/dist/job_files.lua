-- What `trinity launch --write` gives: a file that a cluster's scheduler starts the same ranks by, which go on where
-- they were when the scheduler has ended them and starts them again.
--
-- Both rest on the same three things. Processes that a launcher started join by TRINITY_JOIN=1. Asked to end by
-- SIGTERM they keep their best and a checkpoint, and end with status 143 (engine/lua/host/interrupt.h).
-- TRINITY_RESUME=1 makes a run with a name go on where there is one already (runs/state.lua).

local core = require 'trinity.core'
local run_state = require 'trinity.runs.state'
local util = require 'trinity.base.util'

-- Settings: words (the script and its arguments), command (words after trinity by which the file is written),
-- processes, per_node (ranks), threads (of a rank), backend (of collectives: 'gloo', 'nccl', ''), time (Slurm's limit:
-- 'HH:MM:SS'), image (of the containers), and where they are not this process's: program (the command's file on the
-- machines of the job), folder (where the script runs).
local job_files = {}

-- What the scheduler leaves between SIGTERM and the end, of which a search takes a few seconds.
local notice_s = 120
local most_restarts = 100
local port = 29500

-- As a shell reads it, on one line (it stands in comments, too) of characters that only show.
local function quoted(word)
  if word:match '^[%w_./:=,+-]+$' then return word end
  if core.printable(word) ~= word or word:find '[\n\t]' then
    return "$'" .. word:gsub("[%z\1-\31'\\\127-\255]", function(c) return ('\\%03o'):format(c:byte()) end) .. "'"
  end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function line(words) return table.concat(util.map(words, quoted), ' ') end

-- The script's words with a name of its run.
local function with_run(settings)
  local words = { unpack(settings.words) }
  for i, word in ipairs(words) do
    local name = word == '--run' and (words[i + 1] or '') or word:match '^%-%-run=(.*)$'
    if name then
      run_state.check_name(name) -- it stands among the scheduler's options
      return words, name
    end
  end
  local name = words[1]:match '([^/]*)$':gsub('%.lua$', ''):gsub('[^%w_.+-]', '-'):gsub('^[^%w_]+', ''):sub(1, 120)
  if name == '' then name = 'job' end
  words[#words + 1], words[#words + 2] = '--run', name
  return words, name
end

--- A job file of Slurm: for sbatch.
---@param settings table as above
---@return string
function job_files.slurm(settings)
  local words, name = with_run(settings)
  local lines = { '#!/bin/bash', '# ' .. line { 'trinity', unpack(settings.command) } }
  local function add(text, ...) lines[#lines + 1] = text:format(...) end
  local function option(text, ...) add('#SBATCH --' .. text, ...) end
  add('# %d s before its time is up, and when it is preempted, every rank gets SIGTERM: the search keeps its best',
    notice_s)
  add '# and a checkpoint and ends with status 143. The job then goes back into the queue, and goes on where it was.'
  option('job-name=%s', name)
  option('nodes=%d', settings.processes / settings.per_node)
  option('ntasks=%d', settings.processes)
  option('ntasks-per-node=%d', settings.per_node)
  option('cpus-per-task=%d', settings.threads)
  if settings.backend == 'nccl' then option 'gpus-per-task=1' end
  option('time=%s', settings.time)
  option('signal=TERM@%d', notice_s)
  option 'requeue'
  option 'open-mode=append'
  option('output=%s-%%j.txt', name)
  add ''
  add('cd %s || exit 1', quoted(settings.folder or core.process().folder))
  add 'export TRINITY_JOIN=1 TRINITY_RESUME=1 TRINITY_JOIN_TIMEOUT_S=120'
  if settings.backend ~= '' then add('export TRINITY_BACKEND=%s', settings.backend) end
  add('srun --kill-on-bad-exit=0 --wait=60 \\\n  %s', line { settings.program or core.program(), '--threads',
    ('%d'):format(settings.threads), unpack(words) })
  add 'status=$?'
  add '# Errors are not tried again.'
  add('if [ "$status" -eq 143 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt %d ]; then', most_restarts)
  add '  scontrol requeue "$SLURM_JOB_ID"'
  add 'fi'
  add 'exit "$status"'
  return table.concat(lines, '\n') .. '\n'
end

-- Name and value of variables, as containers have them.
local function variables(settings, name)
  local list = { { 'TRINITY_JOIN', '1' }, { 'TRINITY_RESUME', '1' }, { 'TRINITY_JOIN_TIMEOUT_S', '600' },
    { 'WORLD_SIZE', ('%d'):format(settings.processes) }, { 'MASTER_ADDR', ('%s-0.%s'):format(name, name) },
    { 'MASTER_PORT', ('%d'):format(port) } }
  if settings.backend ~= '' then list[#list + 1] = { 'TRINITY_BACKEND', settings.backend } end
  return util.map(list, function(pair) return { name = pair[1], value = pair[2] } end)
end

local function container(settings, words, name)
  local resources = { requests = { cpu = ('%d'):format(settings.threads) } }
  if settings.backend == 'nccl' then resources.limits = { ['nvidia.com/gpu'] = '1' } end
  return { name = 'trinity', image = settings.image, workingDir = '/work', env = variables(settings, name),
    command = { 'trinity', '--threads', ('%d'):format(settings.threads), unpack(words) }, resources = resources,
    volumeMounts = { { name = 'work', mountPath = '/work' } } }
end

--- A job file of Kubernetes, as JSON: for kubectl apply. A service by whose name the ranks find rank 0, and an indexed
--- job with a pod for each rank; the runs lie on the claim of a volume with the job's name.
---@param settings table as above
---@return string
function job_files.kubernetes(settings)
  local words, run = with_run(settings)
  local name = run:lower():gsub('[^%l%d-]', '-'):gsub('^%-+', ''):sub(1, 50):gsub('%-+$', '')
  if not name:match '^%l' then name = ('job-' .. name):gsub('%-+$', '') end -- RFC 1035: a letter first
  local labels = { app = name }
  local pod = { restartPolicy = 'Never', subdomain = name, terminationGracePeriodSeconds = notice_s,
    containers = { container(settings, words, name) },
    volumes = { { name = 'work', persistentVolumeClaim = { claimName = name } } } }
  -- Pods that a node's end or a request to end has taken are begun again without counting.
  local rules = { { action = 'Ignore', onPodConditions = { { type = 'DisruptionTarget', status = 'True' } } },
    { action = 'Ignore', onExitCodes = { containerName = 'trinity', operator = 'In', values = { 143 } } } }
  local service = { apiVersion = 'v1', kind = 'Service', metadata = { name = name, labels = labels },
    spec = { clusterIP = 'None', publishNotReadyAddresses = true, selector = labels } }
  local job = { apiVersion = 'batch/v1', kind = 'Job', metadata = { name = name, labels = labels,
    annotations = { ['trinity/command'] = line { 'trinity', unpack(settings.command) } } },
    spec = { completionMode = 'Indexed', completions = settings.processes, parallelism = settings.processes,
      backoffLimit = most_restarts, podFailurePolicy = { rules = rules },
      template = { metadata = { labels = labels }, spec = pod } } }
  return core.to_json { apiVersion = 'v1', kind = 'List', items = { service, job } } .. '\n'
end

return job_files
