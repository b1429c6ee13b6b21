-- Shared by the campaign kill.lua and the specs of faults: programs started and struck at a random moment, the
-- searches that they strike, and the comparison of what came of two runs.

local core = require 'trinity.core'
local run_metrics = require 'trinity.runs.metrics'
local json = require 'trinity.base.json'

local faults = {}

faults.program = io.popen('readlink -f /proc/$PPID/exe'):read '*l'

--- The content of a file, or nil.
function faults.read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read '*a'
  file:close()
  return text
end

function faults.quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

--- A new empty folder for a campaign.
function faults.folder()
  local path = os.tmpname()
  os.remove(path)
  core.write_file(path .. '/begun', '', 'unsynced')
  return path
end

local frame = [[
cd %s || exit 99
now() { date +%%s.%%N; }
ended() { read -r line < /proc/$pid/stat && case $line in *") Z "*) ;; *) false;; esac || [ ! -e /proc/$pid ]; }
rm -f %s %s
start=$(now); %s > %s 2>&1 < /dev/null & pid=$!
%swait $pid; echo "$? $start $(now) ${struck:-no}" > %s
]]

-- Waits, but not for a process that has ended; then notes whether it was still there.
local wait_for_word = [[
i=0; while [ $i -lt 6000 ] && ! grep -q %s %s && ! ended; do sleep 0.01; i=$((i + 1)); done
]]
local wait_for_time = [[
i=0; while [ $i -lt %d ] && ! ended; do sleep 0.1; i=$((i + 1)); done
ended || sleep %.3f
struck=yes; ended && struck=no; start=$(now)
%s
]]

--- Runs `command` (words for a shell) in `folder`. blow (nil: none): { strike = a piece of shell, which has the number
--- of the process in $pid, delay_s = seconds to it from the start, after = a text in the output from which these count
--- instead }. Files of this function's own go to `own` (default: `folder`). Returns { status =, output =, seconds =
--- from the strike (or the start) to the end, struck = whether the process was still there then }.
function faults.run(folder, command, blow, own)
  own = own or folder
  local output, strike = faults.quoted(own .. '/output.txt'), ''
  if blow then
    strike = wait_for_time:format(math.floor((blow.delay_s or 0) / 0.1), (blow.delay_s or 0) % 0.1, blow.strike)
    if blow.after then strike = wait_for_word:format(faults.quoted(blow.after), output) .. strike end
  end
  local noted = faults.quoted(own .. '/status')
  core.write_file(own .. '/step.sh', frame:format(faults.quoted(folder), output, noted, command, output, strike, noted),
    'unsynced')
  os.execute('sh ' .. faults.quoted(own .. '/step.sh') .. ' 2>/dev/null')
  local status, start_s, end_s, struck = (faults.read(own .. '/status') or ''):match '^(%d+) (%S+) (%S+) (%S+)'
  if not status then error('a step of the campaign did not end: ' .. command, 0) end
  return { status = tonumber(status), output = faults.read(own .. '/output.txt') or '',
    seconds = tonumber(end_s) - tonumber(start_s), struck = struck == 'yes' }
end

-- Searches of all methods that spend a budget, sized to take seconds: { name, expression, evaluations, options }.
local searches = {
  { 'trinity', 'methods.trinity', 1500, 'groups = 8, hidden = 16, samples = 8, policy = 0.6, patience = 100' },
  { 'tapp', 'methods.tapp', 400 },
  { 'post', 'methods.post', 1500 },
  { 'colocrl', 'methods.colocrl', 250, 'hidden = 16' },
  { 'hierarchical', 'methods.hierarchical', 250, 'hidden = 16' },
  { 'placeto', 'methods.placeto', 1200, 'hidden = 8, groups = 10' },
  { 'doppler', 'methods.doppler', 400, 'hidden = 8, groups = 10' },
  { 'ppo', 'methods.ppo', 1000 },
  { 'reinforce', 'methods.reinforce', 3000 },
  { 'cross_entropy', 'methods.cross_entropy', 6000 },
  { 'annealing', 'methods.annealing', 30000 },
  { 'local_search', 'methods.local_search', 30000 },
  { 'mcmc', 'methods.mcmc', 30000 },
  { 'best', 'methods.best', 30000 },
  { 'random', 'methods.random', 20000 },
  { 'exhaustive', 'methods.exhaustive', 30000 },
}

local head = [[
local trinity = require 'trinity'
local checkpoints = require 'trinity.runs.checkpoints'
checkpoints.least_s, checkpoints.share = 0.05, 0.5 -- a checkpoint as often as can be
local options = trinity.options { seed = { default = 3 } }
local problem = trinity.problem { graph = trinity.model('%s'), cluster = trinity.cluster 'p100x2' }
for _, name in ipairs { 'ppo', 'reinforce', 'cross_entropy' } do
  trinity.methods.register(name, function(p, given)
    local o = trinity.search.options(name, {}, given)
    return trinity.search.run(name, p, o, function(search)
      local env = trinity.env(p, { actions = 'joint', groups = 8, num_envs = 16, search = search, seed = o.seed })
      trinity.learn[name](env, trinity.learn.scorer(env, { seed = o.seed }), { total_timesteps = o.evaluations,
        num_steps = 1, seed = o.seed })
    end)
  end, { budget = true })
end
]]

--- The cases of campaigns over searches: { name =, script = text }.
function faults.searches()
  local list = {}
  for i, entry in ipairs(searches) do
    local name, method, evaluations, more = entry[1], entry[2], entry[3], entry[4]
    local graph = name == 'exhaustive' and 'alexnet' or 'vgg16'
    list[i] = { name = name, script = head:format(graph) .. ([[
local found = trinity.%s(problem, { evaluations = %d, seed = options.seed, quiet = true%s })
print('found', found.metrics.step_time_s, found.evaluations)
]]):format(method, evaluations, more and ', ' .. more or '') }
  end
  return list
end

-- The rows of a run without what clocks say, as one text.
local function rows_text(path)
  local lines = {}
  for i, row in ipairs(run_metrics.read(path .. '/metrics.jsonl')) do
    row.seconds = nil
    lines[i] = json.encode(row)
  end
  return table.concat(lines, '\n')
end

--- A difference between the runs in two folders, or nil: strategy and curve of every search byte by byte, rows but for
--- seconds, results.
function faults.difference(whole, other)
  local about = json.decode(faults.read(other .. '/run.json') or '{}')
  if about.status ~= 'done' then return 'run.json says ' .. tostring(about.status) end
  for _, id in ipairs(core.list_folder(whole .. '/searches')) do
    for _, file in ipairs { 'strategy.json', 'curve.csv' } do
      local a = faults.read(('%s/searches/%s/%s'):format(whole, id, file))
      local b = faults.read(('%s/searches/%s/%s'):format(other, id, file))
      if a ~= b then return ('searches/%s/%s'):format(id, file) end
    end
  end
  if rows_text(whole) ~= rows_text(other) then return 'metrics.jsonl' end
end

--- How busy the machine is, for reports: the load of the last minute.
function faults.load() return (faults.read '/proc/loadavg' or '?'):match '%S+' end

return faults
