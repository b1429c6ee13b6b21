-- Ctrl-C and SIGTERM: everything that takes long ends, with status 130 or 143 and one line that says where. The
-- bound on the seconds is generous, for busy machines.

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

-- A script that sent itself `kill -INT` during a search: its actions afterwards.
local function behind(declares, rest)
  return stopping.run({ 'behind', ([[
    local trinity = require 'trinity'
    %s
    local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x4' }
    ready()
    local best = trinity.methods.random(problem, { evaluations = 10, quiet = true })
    os.execute 'kill -INT $PPID'
    %s ]]):format(declares, rest) }, '')
end

describe('a signal just after a search', function()
  local declares = "trinity.options { 'Keeps what it finds.' }"
  it('leaves a script that declares options the time to keep what was found, and one that does not none', function()
    local kept = behind(declares, 'print(problem:evaluate(best).step_time_s > 0)')
    expect(kept.output):matches '^ready\ntrue\n$'
    expect(kept.status):equals(130)
    local lost = behind('', 'print(problem:evaluate(best).step_time_s > 0)')
    expect(lost.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
    expect(lost.status):equals(130)
  end)
  it_all('leaves five seconds and no more, and none where it comes again or another search begins', function()
    local result = behind(declares, 'while true do pcall(function() while true do end end) end')
    expect(result.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
    expect(result.seconds > 3 and result.seconds < 15):equals(true)
    local began = core.clock_s()
    expect(behind(declares, [[os.execute 'sleep 0.3; kill -INT $PPID' while true do end]]).status):equals(130)
    local again = behind(declares, [[trinity.methods.random(problem, { evaluations = 1e9, quiet = true }) print 'on']])
    expect(again.output):matches '^ready\ntrinity: [^\n]*: interrupted\n$'
    expect(core.clock_s() - began):below(8)
  end)
end)

-- Searches that keep their best and let the script go on: { method, options of the method, signals, options of the program,
-- status, whether a further line of the script runs until it is ended: 'at once' by another signal, or after 5 s }.
describe('a search keeps its best, and the script goes on:', function()
  for _, case in ipairs { { 'random', '', 'INT', '', 130 }, { 'trinity', 'groups = 4, samples = 2, hidden = 8', 'INT', '', 130 },
    { 'random', '', 'TERM', '', 143 }, { 'best', '', 'TERM', '', 143 }, { 'random', '', 'USR1', '--stop-on-usr1', 143 },
    -- One request, where it comes twice at once: from a launcher that passes it on, from timeout to a process and its group.
    { 'random', '', 'TERM $pid; kill -TERM $pid; sleep 0.3; kill -INT $pid; kill -TERM', '', 143, 'and 5 s' },
    { 'random', '', 'INT $pid; sleep 0.03; kill -INT', '', 130, 'and 5 s' },
    { 'random', '', 'TERM $pid; sleep 1.5; kill -TERM', '', 143, 'until the next' } } do
    local try = case[6] == 'and 5 s' and it_all or it
    try(('%s, %s %s'):format(case[1], case[3], case[4]), function()
      local script = script_of_search(case[1], case[2])
      if case[6] then script = script .. [[ print 'and on' io.stdout:flush() while true do end ]] end
      local result = stopping.run({ 'search', script }, case[4], 1, case[3])
      expect(result.output):matches('^ready\nbest of %d+%s+true%s+true\n'
        .. (case[6] and 'and on\n' or '') .. (case[6] == 'and 5 s' and 'trinity: [^\n]*: interrupted\n$' or '$'))
      expect(result.status):equals(case[5])
      if case[6] == 'and 5 s' then expect(result.seconds > 3):equals(true) else expect(result.seconds):below(4) end
    end)
  end
end)

it('SIGTERM ends a loop and the items of a map; SIGUSR1 is the system\'s own where no option says more', function()
  for signal, status in require('trinity').system.sorted_pairs { TERM = 143, USR1 = 138 } do
    for _, text in ipairs { 'ready() while true do end',
      "ready() require('trinity').parallel_map({ 1, 2 }, function() while true do end end)" } do
      local result = stopping.run({ 'loop', text }, '', 1, signal)
      expect(result.status):equals(status)
      if signal == 'TERM' then expect(result.output):matches '%.lua:1: interrupted\n$' end
    end
  end
end)
