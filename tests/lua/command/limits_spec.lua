-- --memory-limit and --time-limit: what grows or runs without end is stopped with one clear line.

local stopping = assert(loadfile(root .. '/tests/lua/support/stopping.lua'))()

describe('a memory limit', function()
  local growing = {
    tables = 'local t = {} for i = 1, 1e9 do t[i] = { i } end',
    strings = 'local s = "x" while true do s = s .. s end',
    cdata = 'local ffi = require "ffi" local t = {} for i = 1, 1e9 do t[i] = ffi.new("double[100]") end',
    ['string.rep'] = 'local s = ("x"):rep(1e9)',
    ['table.concat'] = 'local s = ("x"):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end s = table.concat(t)',
    ['a stack'] = 'local function f(...) return f(1, ...) end f()',
    ['source text'] = 'local s = "local x = {" .. ("1,"):rep(8e6) .. "}" load(s)',
  }
  for name, script in require('trinity').system.sorted_pairs(growing) do
    it('stops ' .. name, function()
      local status, output = run_script('--memory-limit 64M SCRIPT', script)
      expect(status):equals(1)
      if name == 'a stack' then
        expect(output):matches '^trinity: [^\n]*stack overflow'
      else
        expect(output):equals 'trinity: not enough memory (limit 64 MB)\n'
      end
    end)
  end
  it('is for what is alive, not for garbage', function()
    script_says(0, '^1250000\n$', '--memory-limit 64M SCRIPT', [[
      for round = 1, 100 do local t = {} for i = 1, 20000 do t[i] = { i, 'text ' .. i } end end
      local s = '' for i = 1, 1000 do s = s .. ('x'):rep(1000) end -- 0.5 GB of garbage
      local keep = {} for i = 1, 250000 do keep[i] = { i } end -- more than half of the limit stays
      for round = 1, 100 do local t = {} for i = 1, 20000 do t[i] = { i } end end
      print(#s + #keep) ]])
  end)
  it('holds in a loop that catches it', function()
    script_says(1, 'time limit of 3 s reached\n$', '--memory-limit 64M --time-limit 3 SCRIPT',
      'local t = {} while true do pcall(function() t[#t + 1] = { ("x"):rep(1000 + #t) } end) end')
  end)
  it('below what the library takes is refused with one message', function()
    for _, limit in ipairs { '1', '100K', '300K' } do
      local status, output = run_script('--memory-limit ' .. limit .. ' SCRIPT',
        'local trinity = require "trinity" for _ in trinity.system.sorted_pairs(trinity) do end') -- which loads all of it
      expect(status):equals(1)
      expect(output):matches '^trinity: .*memory[^\n]*\n$'
    end
  end)
end)

describe('a time limit', function()
  local wanted = { ['coroutines that swallow errors'] = true, ['a command'] = true, ['one long simulation'] = true, training = true }
  for _, case in ipairs(stopping.cases) do
    if wanted[case[1]] then
      it('ends ' .. case[1], function()
        local result = stopping.run(case, '--time-limit 2', 0)
        expect(result.output:gsub('^ready\n', '')):matches '^trinity: [^\n]*%.lua:1: time limit of 2 s reached\n'
        expect(result.status):equals(1)
      end)
    end
  end
  it('stops a search with its script', function()
    script_says(1, '^trinity: [^\n]*time limit of 6 s reached\n$', '--time-limit 6 SCRIPT', [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }
      trinity.methods.trinity(problem, { evaluations = 1e9, quiet = true }) print 'went on' ]])
  end)
end)
