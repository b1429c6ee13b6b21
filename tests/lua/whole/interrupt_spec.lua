-- Ctrl-C and SIGTERM: everything that takes long ends, with status 130 or 143 and one line that says where. How soon is
-- measured by tests/bench/bench_interrupt.lua; here the bound is generous, for busy machines.

local core = require 'trinity.core'
local stopping = assert(loadfile(root .. '/tests/lua/support/stopping.lua'))()

for _, case in ipairs(stopping.cases) do
  it('ends ' .. case[1], function()
    local result = stopping.run(case, '', 0.3, 'INT')
    expect(result.output:gsub('^ready\n', '')):matches '^trinity: [^\n]*%.lua:1: interrupted\n$'
    expect(result.status):equals(130)
    expect(result.seconds):below(2)
  end)
end

-- A script that searches by a method, and says what it found.
local function script_of_search(method, options)
  return ([[
    local trinity = require 'trinity'
    local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x4' }
    ready()
    local best = trinity.methods.%s(problem, { evaluations = 1e9, quiet = true, %s })
    print('best of ' .. best.evaluations, best.stopped, best.metrics.step_time_s > 0)
    ]]):format(method, options)
end

describe('a search', function()
  for _, method in ipairs { { 'random', '' }, { 'trinity', 'groups = 4, samples = 2, hidden = 8' } } do
    it('by ' .. method[1] .. ' keeps its best and goes on, and the program says 130', function()
      local result = stopping.run({ 'search', script_of_search(method[1], method[2]) }, '', 3, 'INT')
      expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\n$'
      expect(result.status):equals(130)
      expect(result.seconds):below(2)
    end)
  end
end)

describe('a signal just behind a search', function()
  local function outcome(declares, rest)
    return stopping.run({ 'behind', ([[
      local trinity = require 'trinity'
      %s
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x4' }
      ready()
      local best = trinity.methods.random(problem, { evaluations = 10, quiet = true })
      os.execute 'kill -INT $PPID'
      %s ]]):format(declares, rest) }, '')
  end
  local declares = "trinity.options { 'Keeps what it finds.' }"
  it('leaves a script that declares options the time to keep what was found, and one that does not none', function()
    local kept = outcome(declares, 'print(problem:evaluate(best).step_time_s > 0)')
    expect(kept.output):matches '^ready\ntrue\n$'
    expect(kept.status):equals(130)
    local lost = outcome('', 'print(problem:evaluate(best).step_time_s > 0)')
    expect(lost.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
    expect(lost.status):equals(130)
  end)
  it_all('leaves five seconds and no more, and none where it comes again or another search begins', function()
    for _, rest in ipairs { 'while true do end', 'while true do pcall(function() while true do end end) end' } do
      local result = outcome(declares, rest)
      expect(result.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
      expect(result.seconds > 3 and result.seconds < 15):equals(true)
    end
    local began = core.clock_s()
    expect(outcome(declares, [[os.execute 'sleep 0.3; kill -INT $PPID' while true do end]]).status):equals(130)
    local again = outcome(declares, [[trinity.methods.random(problem, { evaluations = 1e9, quiet = true }) print 'on']])
    expect(again.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
    expect(core.clock_s() - began):below(8)
  end)
end)

describe('SIGTERM', function()
  -- A search whose script says what it found, and then never ends.
  local endless = script_of_search('random', '') .. [[ print 'and on' io.stdout:flush() while true do end ]]
  local function outcome(signals, options, text)
    return stopping.run({ 'SIGTERM', text or endless }, options or '', 1, signals)
  end
  it('ends a search as Ctrl-C does, and a loop, with status 143', function()
    for _, method in ipairs { 'random', 'best' } do
      local result = outcome('TERM', '', script_of_search(method, ''))
      expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\n$'
      expect(result.status):equals(143)
      expect(result.seconds):below(2)
    end
    local loop = outcome('TERM', '', 'ready() while true do end')
    expect(loop.output):matches '^ready\ntrinity: [^\n]*%.lua:1: interrupted\n$'
    expect(loop.status):equals(143)
  end)
  it_all('is one request where it comes twice at once, as from a launcher that passes it on', function()
    local result = outcome 'TERM $pid; kill -TERM $pid; sleep 0.3; kill -INT $pid; kill -TERM'
    expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\nand on\ntrinity: [^\n]*: interrupted\n$' -- after 5 s
    expect(result.status):equals(143)
    expect(result.seconds > 3):equals(true)
  end)
  it_all('is not Ctrl-C alone: one that timeout sends to a process and then its group is one, too', function()
    local result = outcome 'INT $pid; sleep 0.03; kill -INT'
    expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\nand on\ntrinity: [^\n]*: interrupted\n$' -- after 5 s
    expect(result.status):equals(130)
    expect(result.seconds > 3):equals(true)
  end)
  it('ends the process at once where it comes again', function()
    local result = outcome 'TERM $pid; sleep 1.5; kill -TERM'
    expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\nand on\n$'
    expect(result.status):equals(143)
    expect(result.seconds):below(4)
  end)
  it('may be SIGUSR1 where --stop-on-usr1 says so', function()
    local result = outcome('USR1', '--stop-on-usr1', script_of_search('random', ''))
    expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\n$'
    expect(result.status):equals(143)
    expect(outcome('USR1', '', script_of_search('random', '')).status):equals(138) -- the system's own end
  end)
  it('reaches the items of a map', function()
    local result = outcome('TERM', '', [[
      local trinity = require 'trinity'
      ready()
      trinity.parallel_map({ 1, 2 }, function() while true do end end)
    ]])
    expect(result.output):matches 'interrupted\n$'
    expect(result.status):equals(143)
  end)
end)
