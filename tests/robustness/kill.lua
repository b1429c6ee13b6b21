-- SIGKILL at random moments of searches of every method, and of a distributed one: each goes on to the bytes of an
-- unbroken run, or says that it starts again and why, and still ends in the same bytes.
--   trinity tests/robustness/kill.lua [kills [seed [parts of cases' names, with commas between]]]
-- Every run is killed up to three times before it is let through. Prints a line for every case and what went wrong.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'
local faults = assert(loadfile(core.home .. '/tests/robustness/support/faults.lua'))()

local kills, seed, part = tonumber(arg[1]) or 200, tonumber(arg[2]) or 1, arg[3] or ''
local most_kills_of_run = 3
local folder = faults.folder()
local runs, wrong = folder .. '/runs', {}

local function fault(name, number, what, output)
  wrong[#wrong + 1] = ('%s, run %d: %s\n%s'):format(name, number, what, output)
  print('WRONG ' .. wrong[#wrong])
end

local function command(words)
  return ("TRINITY_HOME='%s' exec '%s' %s"):format(core.home, faults.program, words)
end

-- The place where a resumed program says it begins, as a word to count: nil where it says nothing.
local function said(output)
  if output:find 'resumes from its checkpoint' or output:find 'begins at its checkpoint' then return 'checkpoint' end
  if output:find 'starts from scratch: ' or output:find 'begins at the start' then return 'anew' end
  if output:find 'search%a* of it %a+ done' then return 'before' end
end

-- Strikes one run of a case until it is whole. Returns how many kills it took.
local function strike(case, number, stream, left)
  local name, struck = ('%s-%d'):format(case.name, number), 0
  local path = runs .. '/' .. name
  while true do
    local resumes = faults.read(path .. '/run.json') ~= nil
    local words = resumes and ("runs resume '%s' --runs '%s'"):format(name, runs)
      or ("'%s' --run '%s' --runs '%s'"):format(case.path, name, runs)
    local last = struck >= math.min(left, most_kills_of_run)
    local step = faults.run(folder, command(words), not last and case.blow(stream) or nil)
    if resumes then
      local word = said(step.output)
      if word then case[word] = case[word] + 1 end
      if step.status == 0 and not word then fault(case.name, number, 'does not say where it begins', step.output) end
    elseif struck > 0 then
      case.none = case.none + 1
    end
    -- One that was struck between its last write and its end is done.
    if step.status == 0 or step.status == 2 and step.output:find "run '[^']*' is done" then break end
    if not step.struck then
      fault(case.name, number, ('ended with status %d'):format(step.status), step.output)
      return struck
    end
    struck = struck + 1
  end
  local difference = faults.difference(runs .. '/whole-' .. case.name, path)
  if difference then fault(case.name, number, difference .. ' differs from an unbroken run', '') end
  for _, file in ipairs(core.list_folder(path .. '/searches/1')) do
    if file:find '^checkpoint' then fault(case.name, number, file .. ' is left over', '') end
  end
  if os.execute(("test -z \"$(find '%s' -name '.*.part')\""):format(path)) ~= 0 then
    fault(case.name, number, 'half-written files are left over', '')
  end
  core.remove_tree(path)
  return struck
end

-- A search and a training that two processes share: the search goes on from its run, the training from its checkpoint.
local shared = { { name = 'shared search', run = true, text = [[
local trinity = require 'trinity'
local at = arg[1]
local job = trinity.dist.init()
local problem = trinity.problem { graph = trinity.model('vgg16'), cluster = trinity.cluster 'p100x2' }
local found = trinity.methods.trinity(problem, { seed = 5, evaluations = 1200, groups = 6, hidden = 8, samples = 8,
  policy = 0.7, patience = 100, warm_start = { 'single_device', 'etf' }, quiet = true })
local lines = {}
for i, step in ipairs(found.curve) do
  lines[i] = ('%.17g %.17g %.17g'):format(step.evaluations, step.mean_reward, step.best_reward)
end
if job.rank == 0 then
  found:save(at .. '/strategy.json')
  require('trinity.core').write_file(at .. '/curve', table.concat(lines, '\n'))
end
]], files = { 'strategy.json', 'curve' } }, { name = 'shared training', text = [[
local trinity = require 'trinity'
local at, lines = arg[1], {}
local job = trinity.dist.init()
for i = 1, 64 do lines[i] = ('%d,%d,%d'):format(i * 37 % 101, i * 53 % 97, i % 3) end
if job.rank == 0 then require('trinity.core').write_file(at .. '/rows.csv', table.concat(lines, '\n')) end
job:barrier()
local graph = trinity.model('mlp', { inputs = 2, hidden = { 20 }, classes = 3, batch_size = 2, optimizer = 'momentum' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
local plan = problem:strategy { mesh = { data = 2 }, sync = { kind = 'local_sgd', every = 3 } }
local kept = at .. '/state'
job:print('begins at ' .. (io.open(kept) and 'its checkpoint' or 'the start'))
local ok, message = pcall(trinity.execute, problem, plan, { data = at .. '/rows.csv', scale = 1 / 100, epochs = 150,
  checkpoint = kept, quiet = true })
if not ok and not message:find 'expected fewer than' then error(message, 0) end -- killed after its last epoch
]], files = { 'state' } } }

local function run_shared(case, at, delay_s, victim)
  core.write_file(at .. '/begun', '', 'unsynced')
  local start = ("TRINITY_HOME='%s' TRINITY_RESUME=1 exec sh '%s/tests/lua/support/ranks.sh' 2 1 '%s' --threads 1 %s")
    :format(core.home, core.home, faults.program, ("'%s' '%s' "):format(case.path, at)
      .. (case.run and ("--run shared --runs '%s/runs'"):format(at) or '--runs none'))
  -- Not by `shift`: a shell ends where it has too few to shift.
  local kill = 'set -- $(echo $(cat /proc/$pid/task/$pid/children 2>/dev/null) | cut -s -d" " -f%d); '
    .. 'kill -9 $1'
  return faults.run(folder, start, victim and { delay_s = delay_s, strike = kill:format(victim) })
end

-- Strikes a rank of a shared search.
local function campaign_shared(case, share)
  case.path = ('%s/%s.lua'):format(folder, case.name:gsub(' ', '_'))
  core.write_file(case.path, case.text)
  local whole, stream = folder .. '/whole', trinity.random(seed, 'kills of ' .. case.name, 1)
  local alone = run_shared(case, whole)
  if alone.status ~= 0 then return fault(case.name, 0, 'the unbroken run failed', alone.output) end
  local done, number, from_checkpoint, anew = 0, 0, 0, 0
  while done < share do
    number = number + 1
    local at, struck, step = folder .. '/shared', 0
    repeat
      local victim = struck < math.min(most_kills_of_run, share - done) and stream:integer(2) or nil
      step = run_shared(case, at, stream:uniform() * alone.seconds, victim)
      local word = struck > 0 and said(step.output)
      if word == 'checkpoint' then from_checkpoint = from_checkpoint + 1 elseif word == 'anew' then anew = anew + 1 end
      if step.status ~= 0 and not step.struck then
        fault(case.name, number, ('ended with status %d'):format(step.status), step.output)
        break
      end
      if step.status ~= 0 then struck, done = struck + 1, done + 1 end
    until step.status == 0
    for _, file in ipairs(case.files) do
      if faults.read(whole .. '/' .. file) ~= faults.read(at .. '/' .. file) then
        fault(case.name, number, file .. ' differs from an unbroken run', '')
      end
    end
    core.remove_tree(at)
  end
  core.remove_tree(whole)
  print(('%-15s %6.1f %6d %11d %6d'):format(case.name, alone.seconds, done, from_checkpoint, anew))
end

local function campaign(case, share)
  if case.files then return campaign_shared(case, share) end
  case.path = ('%s/search_%s.lua'):format(folder, case.name)
  core.write_file(case.path, case.script)
  case.checkpoint, case.anew, case.before, case.none = 0, 0, 0, 0
  local whole = faults.run(folder, command(("'%s' --run 'whole-%s' --runs '%s'"):format(case.path, case.name, runs)))
  if whole.status ~= 0 then return fault(case.name, 0, 'the unbroken run failed', whole.output) end
  case.seconds = whole.seconds
  local search_s = json.decode(faults.read(runs .. '/whole-' .. case.name .. '/run.json')).seconds
  -- Three of four while the search runs, the others at any moment from the program's start on.
  function case.blow(random)
    local searching = random:integer(4) > 1
    return { after = searching and 'run: ' or nil,
      delay_s = random:uniform() * (searching and search_s or whole.seconds),
      strike = 'for child in $(cat /proc/$pid/task/$pid/children 2>/dev/null) $pid; do kill -9 $child; done' }
  end
  local stream, done, number = trinity.random(seed, 'kills of ' .. case.name, 1), 0, 0
  while done < share and number < 3 * share do
    number = number + 1
    done = done + strike(case, number, stream, share - done)
  end
  print(('%-15s %6.1f %6d %11d %6d %6d %6d'):format(case.name, case.seconds, done, case.checkpoint, case.anew,
    case.before, case.none))
  io.stdout:flush()
end

local cases = {}
local all = faults.searches()
for _, case in ipairs(shared) do all[#all + 1] = case end
for _, case in ipairs(all) do
  for word in (part .. ','):gmatch '([^,]*),' do
    if case.name:find(word, 1, true) then
      cases[#cases + 1] = case
      break
    end
  end
end
print(('load %s; a run goes on from a checkpoint, says why it starts again, was killed before its search or after it,'
  .. ' or before it had a folder'):format(faults.load()))
print(('%-15s %6s %6s %11s %6s %6s %6s'):format('', 'alone s', 'kills', 'checkpoint', 'anew', 'before', 'none'))
local start = core.clock_s()
for _, case in ipairs(cases) do campaign(case, math.ceil(kills / #cases)) end
print(('%d cases, %.0f s, load %s: %d wrong'):format(#cases, core.clock_s() - start, faults.load(), #wrong))
core.remove_tree(folder)
os.exit(#wrong == 0 and 0 or 1)
