-- Every script runs, at a size that takes seconds; the main job does what README.md says.

local core = require 'trinity.core'

local smoke = {
  quickstart = '--steps 2 --samples 4 --save ' .. os.tmpname(),
}

describe('scripts', function()
  for _, file in ipairs(core.list_folder(root .. '/scripts')) do
    local name = file:match '^(.*)%.lua$'
    if name then
      it(name .. ' runs in smoke mode', function()
        if not smoke[name] then error('no smoke arguments for scripts/' .. file) end
        local status, output = run_trinity(('%s %s'):format(name, smoke[name]))
        if status ~= 0 then error(output) end
      end)
      it(name .. ' explains itself', function()
        local status, output = run_trinity(name .. ' --help')
        expect(status):equals(0)
        expect(output):matches 'options:'
      end)
    end
  end
end)

describe('the main job', function()
  local save = os.tmpname()
  it('compares the four methods and loads its strategy back', function()
    local status, output = run_trinity('quickstart --steps 3 --samples 8 --save ' .. save)
    expect(status):equals(0)
    for _, text in ipairs { 'single_device', 'random', 'round_robin', 'trinity', 'lower bound',
      'step time', 'peak memory', 'peak communication', 'feasible', 'evaluations', 'seconds',
      'loaded back it simulates to the same' } do
      expect(output):matches(text)
    end
    expect(output):matches 'trinity  step %d/3  best [%d.]+ s  reward [%d.]+  %d+ evaluations/s'
  end)
  it('runs on a PipeDream profile', function()
    local status, output = run_trinity(("quickstart --model '%s' --cluster p100x4 --steps 1 --samples 4 --save %s")
      :format(shared 'pipedream/vgg16.graph.txt', save))
    expect(status):equals(0)
    expect(output):matches 'vgg16 on p100x4'
  end)
  it('ends on Ctrl-C with its best, its table and status 130', function()
    local program = io.open('/proc/self/cmdline'):read '*a':match '^[^%z]+'
    local pipe = io.popen(("cd '%s' && timeout --preserve-status -s INT -k 60 6 '%s' quickstart --steps 500 --save %s 2>&1; echo status=$?")
      :format(root, program, save))
    local output = pipe:read '*a'
    pipe:close()
    expect(output):matches 'status=130'
    expect(output):matches '\ntrinity +[%d.]+ s'
    expect(output):matches 'loaded back it simulates to the same'
  end)
  it('says what it cannot write, and exits with 1', function()
    local status, output = run_trinity 'quickstart --steps 1 --samples 2 --save /proc/nowhere/x.json'
    expect(status):equals(1)
    expect(output):matches '/proc/nowhere/x.json: cannot'
  end)
end)

describe('the program', function()
  it('runs a piece of Lua, and reports its errors with status 1', function()
    local status, output = run_trinity [[-e 'print(1 + 1)']]
    expect(status):equals(0)
    expect(output):equals '2\n'
    status, output = run_trinity [[-e 'error("no")']]
    expect(status):equals(1)
    expect(output):matches 'command line.*no'
    expect((run_trinity [[-e 'syntax error here']])):equals(1)
    expect((run_trinity [[-e 'error({})']])):equals(1)
    expect((run_trinity [[-e 'os.exit(7)']])):equals(7)
  end)
end)
