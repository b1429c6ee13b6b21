-- Ctrl-C (SIGINT), or SIGTERM, at random moments of every script in scripts/ and of a search by every method, from the
-- first instant on: how long until the process has ended, whether its status is 130 (143), whether the best so far is
-- saved, and whether a process of it is left. The aim is 0.2 s, and 1 s where LibTorch is inside one kernel.
--   trinity tests/robustness/interrupt.lua [strikes per case [seed [part of a case's name [INT or TERM]]]]

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'
local faults = assert(loadfile(core.home .. '/tests/robustness/support/faults.lua'))()

local strikes, seed, part, signal = tonumber(arg[1]) or 8, tonumber(arg[2]) or 1, arg[3] or '', arg[4] or 'INT'
local status_wanted = assert(({ INT = 130, TERM = 143 })[signal], 'INT or TERM?')
local most_delay_s, start_up_s = 5, 0.7
local folder = faults.folder()
local runs, tag, root = folder .. '/runs', 'TRINITY_STRUCK=' .. folder, core.home

-- Words of every script, sized to go on for longer than anybody waits here; %s is a file or folder of the case's own.
local words = {
  quickstart = '--steps 5000 --save %s',
  timeline = '--output %s',
  info = 'nasnet_large --json',
  reference = '--save %s',
  reproduce = 'pase --output %s',
  placement_benchmark = ("--folder '%s/tests/data/profiles' --evaluations 100000 --seeds 5"):format(root),
  simulate = '--model nasnet_large --json',
  select = ("'%s/tests/data/selection/example.json' --json"):format(root),
  pipeline = ("'%s/tests/data/profiles/small.graph.txt' --method pipedream --devices 2"):format(root),
  search = '--model nasnet_large --method trinity --evaluations 100000',
  execute = '--model alexnet --batch_size 8 --devices cpu:0,cpu:1 --steps 1000',
  profile = '--model vgg16 --batch_size 4 --devices cpu:0,cpu:1 --out %s',
  whole_loop = '--output %s',
  compare = '--model resnet50 --methods metis,random,tapp,trinity --evaluations 20000 --seeds 3',
  export = 'nasnet_large --format placement --device cuda',
  runs = '--sort name',
  watch = ('--once --runs %s/tests/data'):format(root),
  own_reward = '--model resnet50 --evaluations 100000',
  own_heuristic = '--model nasnet_large', own_path = '--model nasnet_large',
  own_baseline = '--model resnet50 --evaluations 100000',
  custom_policy = '--model resnet50 --evaluations 20000',
  launch = '-n 4 --per_node 2 scripts/train_distributed.lua --epochs 100',
  train_distributed = '--epochs 100',
  equal_time = '--seconds 20 --csv %s',
  tradeoff = '--output %s',
  unequal = '--networks gpt2_350m --evaluations 500 --csv %s',
  figure4 = '--evaluations 100000 --output %s',
  report = ("'%s/tests/data/run' --out %%s"):format(root),
  plan = '--model gpt2 --set layers=48 --cluster dgx_h100x8 --global_batch 1024 --simulations 100000',
  fidelity = ("strategies --cases '%s/tests/data/decoders/strategies.json'"):format(root),
  policy = 'optima --units 1000 --samples 1000000',
  train = '--graphs inception_v3:64 --minutes 1 --save %s',
  completion = 'man',
  doctor = '',
}

--- Everything to be struck: { name =, command =, path = of the run or nil }.
local function all_cases()
  local list = { { name = 'script reproduce tapp',
    command = ('reproduce tapp --updates 2000 --models resnet50 --output %s/output/tapp'):format(folder) },
    { name = 'script reproduce trinity', command = ('reproduce trinity --output %s/output/trinity'):format(folder) },
    { name = 'script reproduce daso', command = ('reproduce daso --output %s/output/daso'):format(folder) } }
  for _, file in ipairs(core.list_folder(root .. '/scripts')) do
    local name = file:match '^(.*)%.lua$'
    if name and name ~= 'run' then -- but earlier names of others
      if not words[name] then error('no words for scripts/' .. file, 0) end
      list[#list + 1] = { name = 'script ' .. name, command = ('%s %s'):format(name, words[name]:gsub('%%s',
        folder .. '/output/' .. name)) }
    end
  end
  for _, case in ipairs(faults.searches()) do
    local path = ('%s/search_%s.lua'):format(folder, case.name)
    core.write_file(path, (case.script:gsub('evaluations = %d+', 'evaluations = 100000000')))
    list[#list + 1] = { name = 'method ' .. case.name, command = path }
  end
  return list
end

-- Processes of the last program that are still there.
local function left_over()
  local text = ''
  for _ = 1, 4 do
    local pipe = io.popen(("grep -lz '%s' /proc/[0-9]*/environ 2>/dev/null"):format(tag))
    text = pipe:read '*a'
    pipe:close()
    if text == '' then return nil end
    os.execute 'sleep 0.1'
  end
  return text:gsub('%s+', ' ')
end

-- What is wrong with the run of a program that was interrupted (or `ended` by itself as it was struck), or nil.
local function wrong_in(path, ended)
  local about = json.decode(faults.read(path .. '/run.json') or 'null')
  if type(about) ~= 'table' then return nil end
  if about.status ~= (ended and 'done' or 'interrupted') then return 'run.json says ' .. about.status end
  for _, id in ipairs(core.list_folder(path .. '/searches')) do
    local search = json.decode(faults.read(('%s/searches/%s/search.json'):format(path, id)) or '{}')
    if search.status == 'running' then return 'search.json says running' end
    local best = faults.read(('%s/searches/%s/strategy.json'):format(path, id))
    local had_best = search.best_reward or (search.steps or 0) > 0
    if search.status == 'stopped' and had_best and not pcall(json.decode, best) then
      return 'the best so far is not saved'
    end
  end
end

local function strike(case, number, delay_s)
  local name = ('strike-%d'):format(number)
  local command = ("env --default-signal=%s %s TRINITY_RUNS='%s' TRINITY_HOME='%s' '%s' %s"):format(signal,
    faults.quoted(tag), runs, root, faults.program, case.command)
  local step = faults.run(root, command, { delay_s = delay_s, strike = ('kill -%s $pid'):format(signal) }, folder)
  if not step.struck then
    case.over = case.over + 1
    if step.status ~= 0 then return ('ended by itself with status %d: %s'):format(step.status, step.output) end
    return nil
  end
  case.times[#case.times + 1] = step.seconds
  local ended = step.status == 0 and step.seconds < 0.05 -- it was about to end when it was struck
  if step.status ~= status_wanted and not ended then
    return ('%s: status %d: %s'):format(name, step.status, step.output)
  end
  local left = left_over()
  if left then return 'processes are left: ' .. left end
  for _, run in ipairs(core.list_folder(runs)) do
    local wrong = wrong_in(('%s/%s'):format(runs, run), ended)
    if wrong then return wrong end
  end
end

local all, faulty = {}, 0
print(('load %s; seconds from SIG%s to the end'):format(faults.load(), signal))
print(('%-32s %7s %5s %8s %8s %8s'):format('', 'strikes', 'over', 'median', '95 %', 'largest'))
for _, case in ipairs(all_cases()) do
  if case.name:find(part, 1, true) then
    local stream = trinity.random(seed, 'strikes of ' .. case.name, 1)
    case.times, case.over = {}, 0
    for number = 1, strikes do
      -- Every fourth one while the program starts.
      local delay_s = stream:uniform() * (number % 4 == 1 and start_up_s or most_delay_s)
      local wrong = strike(case, number, delay_s)
      if wrong then
        faulty = faulty + 1
        print(('WRONG %s, after %.3f s: %s'):format(case.name, delay_s, wrong))
      end
      pcall(core.remove_tree, runs)
    end
    table.sort(case.times)
    for _, time in ipairs(case.times) do all[#all + 1] = time end
    local times = case.times
    if #times > 0 then
      print(('%-32s %7d %5d %8.3f %8.3f %8.3f'):format(case.name, #times, case.over, faults.quantile(times, 0.5),
        faults.quantile(times, 0.95), times[#times]))
    else
      print(('%-32s %7d %5d'):format(case.name, 0, case.over))
    end
    io.stdout:flush()
  end
end
table.sort(all)
local slow = 0
for _, time in ipairs(all) do slow = slow + (time > 0.2 and 1 or 0) end
print(('%d strikes: median %.3f s, 95 %% %.3f s, largest %.3f s; %d longer than 0.2 s; load %s; %d wrong'):format(#all,
  faults.quantile(all, 0.5), faults.quantile(all, 0.95), all[#all], slow, faults.load(), faulty))
core.remove_tree(folder)
os.exit(faulty == 0 and 0 or 1)
