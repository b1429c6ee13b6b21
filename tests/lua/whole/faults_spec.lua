-- Faults outside the program: it is killed, the disk is full, read-only or gone, Ctrl-C comes early or while a
-- command runs. A handful of each; tests/robustness has the campaigns.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local kept = dofile(root .. '/tests/lua/support/kept.lua')
local records = require 'trinity.runs.records'
local faults = assert(loadfile(root .. '/tests/robustness/support/faults.lua'))()

local folder = faults.folder()

local function command(words) return ("TRINITY_HOME='%s' exec '%s' %s"):format(root, faults.program, words) end

local function script(name, text)
  local path = ('%s/%s.lua'):format(folder, name)
  core.write_file(path, text)
  return path
end

--- Calls body(path) with a file system of its own: `options` of mount. Skips where nothing can be mounted.
local function mounted(options, body)
  local path = os.tmpname()
  os.remove(path)
  core.write_file(path .. '/below', '')
  if os.execute(("mount -t tmpfs -o %s tmpfs '%s' 2>/dev/null"):format(options, path)) ~= 0 then
    core.remove_tree(path)
    skip 'nothing can be mounted here'
  end
  local ok, message = xpcall(function() body(path) end, debug.traceback)
  os.execute(("umount -l '%s'"):format(path))
  core.remove_tree(path)
  if not ok then error(message, 0) end
end

local function count(text, pattern) return select(2, text:gsub(pattern, '')) end

local problem = [[
local trinity = require 'trinity'
local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 16 }),
  cluster = trinity.cluster 'p100x2' }
]]

describe('a search of the engine that goes on', function()
  local checkpoints = require 'trinity.runs.checkpoints'
  local ask_tell_checkpoint = require 'trinity.search.ask_tell_checkpoint'
  -- One whose checkpoints fail once their scores are written: its problem is none.
  local function engine_search(path)
    local search = { checkpoint = path, evaluations = 0, problem = {}, curve = {}, method = 'spec', options = {},
      kept_at = -math.huge, keeping_s = 0 }
    records[search] = kept.record(path)
    return search
  end
  it('writes no checkpoint before all scores of the last one are reported again', function()
    local search, resumed = engine_search(folder .. '/scored.json'), engine_search(folder .. '/scored.json')
    local hooks, notes = ask_tell_checkpoint.hooks(search, nil, 0, {}), {}
    search.evaluations = 3
    expect(function() hooks.on_scores({ 1, 2, 3 }, { 0, 0, 7 }, 3) end):raises 'to_json'
    local content = core.read_file(folder .. '/scored.json.scores')
    expect(#content):equals(48)
    notes.scores, notes.scores_bytes, notes.scores_sum = 'scored.json.scores', 48, checkpoints.content_sum(content)
    resumed.resume = folder .. '/scored.json'
    hooks = ask_tell_checkpoint.hooks(resumed, notes, 0, {})
    expect(hooks.replay.count):equals(3)
    expect(hooks.replay.scores[4]):equals(3)
    expect(hooks.replay.scores[5]):equals(7)
    resumed.evaluations = 2
    hooks.on_scores({ 1, 2 }, { 0, 0 }, 2)
    resumed.evaluations = 3
    expect(function() hooks.on_scores({ 3 }, { 7 }, 1) end):raises 'to_json'
    expect(core.read_file(folder .. '/scored.json.scores')):equals(content)
    resumed.evaluations = 4
    expect(function() hooks.on_scores({ 4 }, { 0 }, 1) end):raises 'to_json'
    expect(core.read_file(folder .. '/scored.json.scores'):sub(1, 48)):equals(content)
    expect(#core.read_file(folder .. '/scored.json.scores')):equals(64)
  end)
  it('takes what its checkpoint knows of the scores, whatever was added since, and refuses what is not that', function()
    local path, moved = folder .. '/grown.json', folder .. '/moved.json'
    local held = ('x'):rep(32)
    local notes = { scores = 'grown.json.scores', scores_bytes = 32, scores_sum = checkpoints.content_sum(held) }
    local function hooks_to(checkpoint)
      local search = engine_search(checkpoint)
      search.resume = path
      return ask_tell_checkpoint.hooks(search, notes, 0, {}), search
    end
    for _, checkpoint in ipairs { path, moved } do
      core.write_file(path .. '.scores', held .. 'half a pair')
      local hooks, search = hooks_to(checkpoint)
      expect(hooks.replay.count):equals(2)
      search.evaluations = 2
      expect(function() hooks.on_scores({ 1, 2 }, { 0, 0 }, 2) end):raises 'to_json'
      expect(core.read_file(checkpoint .. '.scores')):equals(held)
    end
    core.write_file(path .. '.scores', 'y' .. held:sub(2))
    expect(hooks_to, path):raises 'grown.json: /.*/grown.json.scores, which belongs to it, was changed since it was written'
    os.remove(path .. '.scores')
    expect(hooks_to, path):raises 'grown.json: a file that belongs to it: /.*/grown.json.scores: cannot read: No such file'
  end)
end)

describe('a checkpoint with a file next to it', function()
  local checkpoints = require 'trinity.runs.checkpoints'
  local trinity = require 'trinity'
  local graph, cluster = trinity.model('alexnet', { batch_size = 16 }), trinity.cluster 'p100x2'
  local one = trinity.problem { graph = graph, cluster = cluster }
  local point = folder .. '/beside.json'
  local function search()
    local placement = one:placement()
    local made = { method = 'trinity', problem = one, placement = placement, evaluations = 1, step = 0, curve = {},
      options = {}, checkpoint = point }
    records[made] = kept.record(point)
    return made
  end
  it('writes next to the file that the last one names', function()
    local self = search()
    local function write(content, fails)
      checkpoints.write_with_file(self, { stage = 'policy' }, function(file)
        core.write_file(file, content)
        if fails then error 'no space' end
      end)
    end
    write 'first'
    for _ = 1, 2 do
      expect(function() write('half', true) end):raises 'no space'
      local again = search()
      local notes = checkpoints.restore('spec', again, point)
      expect(core.read_file(checkpoints.file_of('spec', again, point, notes))):equals 'first'
    end
  end)
end)

describe('a run that was killed', function()
  it('drops a torn row and a checkpoint that is not whole, with a word, and says where it begins', function()
    local runs = folder .. '/torn'
    local path = script('torn', problem .. [[
trinity.methods.random(problem, { evaluations = 200 })
trinity.methods.metis(problem)
]])
    local function run(words) return faults.run(folder, command(words .. (" --runs '%s'"):format(runs))) end
    expect(run(("'%s' --run whole"):format(path)).status):equals(0)
    expect(run(("'%s' --run broken"):format(path)).status):equals(0)
    local at = runs .. '/broken/'
    local function change(name, from, to)
      local text, changed = core.read_file(at .. name):gsub(from, to)
      expect(changed > 0):truthy()
      core.write_file(at .. name, text)
    end
    change('run.json', '"done"', '"running"')
    change('searches/1/search.json', '"done"', '"running"')
    core.write_file(at .. 'searches/1/checkpoint.json', '{"notes": {"kind": "trinity search checkpoint 4"')
    change('searches/2/strategy.json', '}%s*$', '')
    core.append_file(at .. 'metrics.jsonl', '{"search":"2","evaluat')
    core.write_file(at .. 'searches/.search.json.77-1.part', 'half')
    local resumed = run 'runs resume broken'
    expect(resumed.output):matches 'metrics.jsonl: an incomplete line is skipped'
    expect(resumed.output):matches 'searches/1/checkpoint.json: changed or cut short since it was written; it is removed'
    expect(resumed.output):matches 'searches/2: strategy.json is missing or not whole; the search starts from scratch'
    expect(resumed.output):matches 'search 1 %(random%) starts from scratch: it had not reached its first checkpoint'
    expect(resumed.status):equals(0)
    expect(faults.difference(runs .. '/whole', runs .. '/broken')):equals(nil)
    expect(faults.read(at .. 'searches/.search.json.77-1.part')):equals(nil)
    -- Killed again, after a search said that it was done and before it removed its checkpoint.
    local left = { at .. 'searches/1/checkpoint.json', at .. 'searches/1/checkpoint.json.scores' }
    for _, name in ipairs(left) do core.write_file(name, 'any') end
    change('run.json', '"done"', '"running"')
    expect(run('runs resume broken').status):equals(0)
    for _, name in ipairs(left) do expect(faults.read(name)):equals(nil) end
    expect(faults.difference(runs .. '/whole', runs .. '/broken')):equals(nil)
  end)
end)

describe('a disk', function()
  it('that is full ends the writing of a run with one message and status 1; the script goes on', function()
    mounted('size=256k', function(at)
      local path = script('full', problem .. [[
local first = trinity.methods.random(problem, { evaluations = 200 })
os.execute('cat /dev/zero > ' .. arg[1] .. '/rest 2>/dev/null')
print(trinity.methods.random(problem, { evaluations = 200 }).reward == first.reward)
]])
      local step = faults.run(folder, command(("'%s' '%s' --run full --runs '%s/runs'"):format(path, at, at)))
      expect(step.output):matches '\ntrue\n'
      expect(count(step.output, "cannot write to the run folder [^\n]*: No space left on device")):equals(1)
      expect(step.status):equals(1)
      expect(json.decode(core.read_file(at .. '/runs/full/searches/1/search.json')).status):equals 'done'
      os.execute(("rm '%s/rest'"):format(at))
      expect(faults.run(folder, command(("runs resume full --runs '%s/runs'"):format(at))).output):matches 'is done'
    end)
  end)
end)

describe('Ctrl-C', function()
  it('ends the searches of workers with their best, and says that they were stopped', function()
    local path, ended = script('workers', problem .. [[
trinity.parallel_map({ 1, 2 }, function(seed)
  trinity.methods.annealing(problem, { evaluations = 1e9, seed = seed, quiet = true })
end, { workers = 2, quiet = true })
]]), 0
    for attempt = 1, 5 do -- they have a tenth of a second, which a busy machine may not give them
      local run = ('%s/runs/workers-%d'):format(folder, attempt)
      local step = faults.run(folder, ('env --default-signal=INT ' .. command("'%s' --runs '%s/runs' --run 'workers-%d'")
        :gsub('exec ', '')):format(path, folder, attempt), { after = 'run: ', strike =
        ("for i in $(seq 1000); do [ -e '%s/searches/m1i2-1/search.json' ] && break; sleep 0.01; done; sleep 0.5; kill -INT $pid")
          :format(run) })
      expect(step.status):equals(130)
      ended = 0
      for item = 1, 2 do
        local search = ('%s/searches/m1i%d-1'):format(run, item)
        expect(json.decode(faults.read(search .. '/search.json')).status):equals 'stopped'
        ended = ended + (faults.read(search .. '/strategy.json') and 1 or 0)
      end
      if ended == 2 then break end
    end
    expect(ended):equals(2)
  end)
  it('ends the program with status 130 while it starts', function()
    for i = 1, 3 do
      local step = faults.run(folder, ("TRINITY_HOME='%s' exec env --default-signal=INT '%s' -e 'while true do end'"):format(
        root, faults.program), { delay_s = 0.15 * i, strike = 'kill -INT $pid' })
      expect(step.status):equals(130)
      expect(step.seconds):below(2)
    end
  end)
end)

describe('a pipe', function()
  it('reads and writes what a command does, as the standard one', function()
    local pipe = io.popen "printf 'one\\ntwo\\n3 4'"
    expect(io.type(pipe)):equals 'file'
    expect(pipe:read '*l'):equals 'one'
    expect(pipe:read(2)):equals 'tw'
    expect(pipe:read '*a'):equals 'o\n3 4'
    expect(pipe:read '*l'):equals(nil)
    expect(pipe:close()):equals(true)
    expect(io.type(pipe)):equals 'closed file'
    expect(function() pipe:read() end):raises 'closed file'
    local path = folder .. '/piped'
    local writer = io.popen(("tr a-z A-Z > '%s'"):format(path), 'w')
    expect(writer:write(('abc'):rep(1e5), 1, '\n') ~= nil):truthy()
    writer:close()
    expect(faults.read(path)):equals(('ABC'):rep(1e5) .. '1\n')
    local lines = {}
    for line in io.popen('seq 1 1000'):lines() do lines[#lines + 1] = line end
    expect(#lines):equals(1000)
    expect(function() io.popen('true', 'x') end):raises "io%.popen: argument 2 %('mode'%): expected 'r' or 'w', got 'x'"
    expect(function() io.popen {} end):raises "io%.popen: argument 1 %('command'%)"
    for _ = 1, 50 do io.popen('true'):close() end
  end)
end)

core.remove_tree(folder)
