-- Ctrl-C: everything that takes long ends, with status 130 and one line that says where. How soon is
-- measured by tests/bench/bench_interrupt.lua; here the bound is generous, for busy machines.

local stopping = assert(loadfile(root .. '/tests/lua/support/stopping.lua'))()

for _, case in ipairs(stopping.cases) do
  it('ends ' .. case[1], function()
    local result = stopping.run(case, '', 0.3, 'INT')
    expect(result.output:gsub('^ready\n', '')):matches '^trinity: [^\n]*%.lua:1: interrupted\n$'
    expect(result.status):equals(130)
    expect(result.seconds):below(2)
  end)
end

describe('a search', function()
  local script = [[
    local trinity = require 'trinity'
    local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x4' }
    ready()
    local best = trinity.methods.%s(problem, { evaluations = 1e9, quiet = true, %s })
    print('best of ' .. best.evaluations, best.stopped, best.metrics.step_time_s > 0)
    ]]
  for _, method in ipairs { { 'random', '' }, { 'trinity', 'groups = 4, samples = 2, hidden = 8' } } do
    it('by ' .. method[1] .. ' keeps its best and goes on, and the program says 130', function()
      local result = stopping.run({ 'search', script:format(method[1], method[2]) }, '', 3, 'INT')
      expect(result.output):matches '^ready\nbest of %d+%s+true%s+true\n$'
      expect(result.status):equals(130)
      expect(result.seconds):below(2)
    end)
  end
end)
