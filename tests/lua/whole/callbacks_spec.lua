-- Functions of scripts that the library calls: what they raise goes on unharmed, and what they return
-- wrongly is told with the place of the function.

local core = require 'trinity.core'
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

-- Functions that scripts give away, by what they are for; each gets a function to call.
local function callers()
  local e = examples.shared()
  local function problem(spec)
    spec.graph, spec.cluster = e.graph, e.cluster
    return trinity.problem(spec)
  end
  return {
    reward = function(f) return problem({ reward = f }):strategy(e.placement) end,
    cost = function(f) return problem { cost = f } end,
    choose = function(f) return e.problem:placement_by_unit(f) end,
    method = function(f)
      trinity.methods.register('callback', f)
      return trinity.methods.callback(e.problem)
    end,
    body = function(f)
      return trinity.search.run('body', e.problem, trinity.search.options('body', {}, { quiet = true }), f)
    end,
    reward_of_a_search = function(f)
      return trinity.methods.random(problem { reward = f }, { evaluations = 2, quiet = true, rescue = examples.path() })
    end,
  }
end

local here = 'callbacks_spec%.lua:%d+'

describe('functions of scripts', function()
  for name, call in trinity.sorted_pairs(callers()) do
    it(name .. ': an error keeps its own line', function()
      expect(function() call(function() error 'my own words' end) end):raises('^[^\n]-' .. here .. ': my own words')
    end)
    it(name .. ': an error object passes through unharmed', function()
      local object = setmetatable({ code = 7 }, { __tostring = function() return 'mine' end })
      local ok, caught = pcall(call, function() error(object) end)
      expect(ok):equals(false)
      expect(caught == object):truthy()
    end)
    it(name .. ': a misuse of the library inside it names its line', function()
      expect(function() call(function() return (trinity.format_bytes 'many') end) end):raises(
        here .. ": trinity%.format_bytes: argument 1 %('bytes'%): expected number, got string 'many'")
    end)
    it(name .. ': a yield is an error, or goes to the script that resumes', function()
      local ok, message = pcall(call, function() coroutine.yield(1) end)
      expect(ok):equals(false)
      expect(message):matches(here .. ': attempt to yield')
    end)
  end

  it('a reward that is no finite number', function()
    local reward = callers().reward
    for text, value in trinity.sorted_pairs { ['nil'] = false, ['string \'high\''] = 'high', ['NaN'] = 0 / 0, ['inf'] = math.huge,
      ['table'] = {} } do
      expect(function() reward(function() return value or nil end) end):raises(
        here .. ': the reward function returned ' .. text .. ', expected a')
    end
  end)
  it('a cost that is no time', function()
    local cost = callers().cost
    for text, value in trinity.sorted_pairs { ['string \'dear\''] = 'dear', ['number %-1'] = -1, ['number %-?nan'] = 0 / 0,
      ['number inf'] = math.huge, ['true'] = true } do
      expect(function() cost(function() return value end) end):raises(
        here .. ': trinity.problem: the cost function at .-' .. here .. ' returned ' .. text
        .. " for the cost of operator 'x' on device 'gpu0', expected 0 or more seconds or nil")
    end
  end)
  it('a choice that is no device', function()
    local choose = callers().choose
    for text, value in trinity.sorted_pairs { ['nil'] = false, ['number 0'] = 0, ['number 3'] = 3, ['number 1.5'] = 1.5,
      ['string \'1\''] = '1' } do
      expect(function() choose(function() return value or nil end) end):raises(
        here .. ': problem:placement_by_unit: the function at .-' .. here .. ' returned ' .. text
        .. ' for unit 1, expected a device from 1 to 2')
    end
  end)
  it('a method that returns no plan', function()
    local method = callers().method
    for text, value in trinity.sorted_pairs { ['nil'] = false, ['number 3'] = 3, ['function'] = print } do
      expect(function() method(function() return value or nil end) end):raises(
        here .. ": method 'callback': the function at .* returned " .. text .. ', expected a strategy, a placement')
    end
    expect(function() method(function() return {} end) end):raises(here .. ': methods.callback: .*expected a placement')
  end)
  it('a search that evaluates nothing', function()
    expect(function() callers().body(function() end) end):raises "method 'body' ended without evaluating a placement"
  end)
  it('a search that fails with an object has its best saved all the same', function()
    local path, count = temporary(), 0
    local e = examples.shared()
    local problem = trinity.problem { graph = e.graph, cluster = e.cluster, reward = function()
      count = count + 1
      if count == 10 then error { code = 1 } end
      return 1
    end }
    local ok, caught = pcall(trinity.methods.random, problem, { evaluations = 20, batch = 4, quiet = true, rescue = path })
    expect(ok):equals(false)
    expect(caught.code):equals(1)
    expect(core.read_file(path)):matches '"random"'
  end)
end)

describe('files of models and clusters', function()
  local function file(text, use)
    local ok, message = pcall(use, file_with(text, '.lua'))
    if ok then error 'taken' end
    return message
  end
  it('that build nothing are named with the function', function()
    expect(file('return { build = function() return 3 end }', trinity.model)):matches(
      "model '.*': the function `build` at .*%.lua:1 returned number 3, expected a graph")
    expect(file('return 3', trinity.model)):matches 'expected a table with a function `build`, got number 3'
    expect(file('return function() return 3 end', trinity.cluster)):matches 'expected a table or a function that returns one, got number 3'
  end)
  it('that fail keep their own line', function()
    expect(file('return { build = function() error "no network" end }', trinity.model)):matches '%.lua:1: no network'
    expect(file('return function() error "no machine" end', trinity.cluster)):matches '%.lua:1: no machine'
  end)
end)

examples.clean()
