-- Ctrl-C: everything that takes long ends, with status 130 and one line that says where. How soon is
-- measured by tests/bench/bench_interrupt.lua; here the bound is generous, for busy machines.

local stopping = assert(loadfile(root .. '/tests/lua/support/stopping.lua'))()

for _, case in ipairs(stopping.cases) do
  it('ends ' .. case[1], function()
    local result, output = stopping.run(case, '', 0.3, 'INT')
    if not result then error('did not end: ' .. output) end
    expect(result.output:gsub('^ready\n', '')):matches '^trinity: [^\n]*%.lua:1: interrupted\n$'
    expect(result.status):equals(130)
    expect(result.seconds):below(2)
  end)
end

describe('a search', function()
  local script = { 'quickstart', [[
    local trinity = require 'trinity'
    local problem = trinity.problem { graph = trinity.model 'gnmt', cluster = trinity.cluster 'p100x4' }
    local first = problem:placement()
    problem:evaluate(first)
    ready()
    local best = trinity.methods.trinity(problem, { evaluations = 1e9, quiet = true, %s })
    print('best of ' .. best.notes.evaluations, best.metrics.step_time_s > 0)
    ]] }
  it('keeps its best and goes on, and the program says 130', function()
    local case = { script[1], script[2]:format 'seed = 1' }
    local result, output = stopping.run(case, '', 6, 'INT')
    if not result then error('did not end: ' .. output) end
    expect(result.output):matches '^ready\nbest of %d+%s+true\n$'
    expect(result.status):equals(130)
    expect(result.seconds):below(3)
  end)
end)
