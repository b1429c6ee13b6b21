-- Searches that fail keep their best so far, and runs may fail to be written: nothing is written where no run
-- is kept, nothing overwrites anything, and the exit status says that something went wrong.

local core = require 'trinity.core'
local faults = assert(loadfile(root .. '/tests/robustness/support/faults.lua'))()
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local own = faults.folder()

-- Runs `words` of the program in a new folder, in which the script `text` is script.lua, next to the empty file `beside`:
-- { status =, output = }, and the names of all files that are there then, relative and sorted.
local function run(text, words, beside)
  local place = faults.folder()
  os.remove(place .. '/begun')
  core.write_file(place .. '/script.lua', text)
  if beside then core.write_file(('%s/%s'):format(place, beside), '') end
  local step = faults.run(place, ("TRINITY_RUNS='' TRINITY_HOME='%s' exec '%s' %s"):format(root, faults.program, words),
    nil, own)
  local pipe, files = io.popen(("cd '%s' && find . -type f | LC_ALL=C sort"):format(place)), {}
  for line in pipe:lines() do files[#files + 1] = line:sub(3) end
  pipe:close()
  return step, files, place
end

local problem = [[
local trinity = require 'trinity'
local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 16 }),
  cluster = trinity.cluster 'p100x2' }
]]

-- Methods of two steps that fail then.
local failing = problem .. [[
for _, name in ipairs { 'breaks', 'tears' } do
  trinity.methods.register(name, function(p, given)
    return trinity.search.run(name, p, trinity.search.options(name, {}, given), function(search)
      search:evaluate { p:placement() }
      search:evaluate { p:placement_by_unit(function(unit) return unit % 2 + 1 end) }
      error('it broke', 0)
    end)
  end)
end
]]

local comparing = failing .. [[
print(trinity.compare(problem, { 'breaks', 'tears' }, { evaluations = 9, seeds = 2, quiet = true }))
for _, found in ipairs(trinity.search.rescued) do
  print('rescued', found.method, found.seed, found.evaluations, found.reward == problem:strategy(found).reward)
end
]]

local function own_problem()
  return trinity.problem { graph = trinity.model('alexnet', { batch_size = 16 }), cluster = trinity.cluster 'p100x2' }
end

describe('a search that fails', function()
  it('writes nothing where no run is kept, and leaves its best to the script', function()
    local step, files = run(comparing, 'script.lua --run none')
    expect(step.status):equals(0)
    expect(table.concat(files, ' ')):equals 'script.lua'
    for _, name in ipairs { 'breaks', 'tears' } do
      expect(step.output):matches(name .. ': failed: it broke\n  the best so far %(step time [^\n]* after 2 evaluations%) '
        .. 'is in trinity.search.rescued %(there is no run folder%)\n')
      for seed = 1, 2 do expect(step.output):matches(('rescued\t%s\t%d\t2\ttrue\n'):format(name, seed)) end
    end
  end)
  it('has its best in the folder of its run, each method and seed in a file of its own', function()
    local step, files, place = run(comparing, 'script.lua --run kept')
    expect(step.status):equals(0)
    expect(step.output:find 'rescued\t'):equals(nil)
    for _, file in ipairs(files) do expect(file == 'script.lua' or file:match '^runs/kept/' ~= nil):equals(true) end
    local seen = {}
    for id = 1, 4 do
      local at = ('%s/runs/kept/searches/%d'):format(place, id)
      local found, about = own_problem():load(at .. '/strategy.json'), json.decode(core.read_file(at .. '/search.json'))
      expect(step.output):matches(('saved in runs/kept/searches/%d/strategy.json'):format(id))
      expect(about.status):equals 'failed'
      expect(about.evaluations):equals(2)
      expect(about.best_step_time_s):equals(found.metrics.step_time_s)
      seen[id] = found.saved.method .. found.saved.seed
    end
    expect(table.concat(seen, ' ')):equals 'breaks1 breaks2 tears1 tears2'
  end)
  it('has a file of its own within another search', function()
    local step, files = run(failing .. [[
trinity.methods.register('outer', function(p, given)
  return trinity.search.run('outer', p, trinity.search.options('outer', {}, given), function(search)
    pcall(trinity.methods.breaks, p, { seed = 7, quiet = true })
    pcall(trinity.methods.tears, p, { seed = 7, quiet = true })
    search:evaluate { p:placement() }
  end)
end)
print(trinity.methods.outer(problem, { quiet = true }))
]], 'script.lua --run kept')
    expect(step.status):equals(0)
    local text = table.concat(files, ' ')
    for _, name in ipairs { 'rescued-breaks-seed7', 'rescued-tears-seed7', 'strategy' } do
      expect(text:find(('runs/kept/searches/1/%s.json'):format(name), 1, true) ~= nil):equals(true)
    end
  end)
end)

describe('a comparison', function()
  it('that cannot make the folder of its run is an error at once, and costs no method its row', function()
    local step = run([[
local core = require 'trinity.core'
local make = core.make_folder
core.make_folder = function(path) -- the disk fails once
  core.make_folder = make
  error(path .. ': cannot make the folder: Input/output error', 0)
end
]] .. problem .. "print(trinity.compare(problem, { 'single_device', 'metis' }, { quiet = true }))\n", 'script.lua --run kept')
    expect(step.status):equals(1)
    expect(step.output):matches '^trinity: [^\n]*: no run is kept: runs/kept: cannot make the folder: Input/output error\n$'
  end)
  it('has status 1 where a method failed, and its table all the same', function()
    local step = run('', 'search --model vgg16 --method single_device,exhaustive --evaluations 20 --run none')
    expect(step.status):equals(1)
    expect(step.output):matches '\nsingle_device %* +0%.'
    expect(step.output):matches '\nexhaustive: failed: '
    expect(run('', 'search --model vgg16 --method single_device --seeds 1 --evaluations 20 --run none').status):equals(0)
  end)
end)

describe('a file of results', function()
  local commands = { 'search --model alexnet --method annealing --evaluations 9 --output_dir here',
    'search --model alexnet --method annealing --evaluations 9 --output_dir here/below --json',
    'search --model alexnet --method annealing,metis --evaluations 9 --output_dir here', 'simulate --trace here/x.json',
    'export alexnet --output here/x.json', 'study papers pase --output here',
    'quickstart --output here/x.json', 'execute --profile here/x.json', 'study papers daso --output here', 'study papers trinity --output here',
    'execute --model alexnet --trace here/x.json', 'help --markdown --output here/x' }
  it('that cannot be written is refused before anything is computed', function()
    for _, command in ipairs(commands) do
      local step, files = run('', command .. ' --run none', 'here')
      expect(step.status):equals(1)
      expect(step.output):matches "^trinity: option '%-%-[%a_]+': here[^\n]*: cannot make its folder: Not a directory\n$"
      expect(table.concat(files, ' ')):equals 'here script.lua'
    end
  end)
  it('may be a device, and no folder', function()
    expect(run('', 'export alexnet --output /dev/null').status):equals(0)
    local step = run('', 'export alexnet --output .')
    expect(step.status):equals(1)
    expect(step.output):matches "option '%-%-output': %.: cannot write: Is a directory"
  end)
  it('that breaks while the search runs is reported after the result', function()
    local step = run("local core = require 'trinity.core'\ncore.check_output = function() end\n"
      .. "arg = { [0] = 'search', '--model', 'alexnet', '--method', 'metis', '--output-dir', '/proc/no' }\n"
      .. ("dofile '%s/scripts/search.lua'\n"):format(root), 'script.lua --run none')
    expect(step.status):equals(1)
    expect(step.output):matches 'step time +0%.'
    expect(step.output):matches 'strategy:save: /proc/no/strategy.json: cannot make its folder: '
  end)
end)

core.remove_tree(own)
