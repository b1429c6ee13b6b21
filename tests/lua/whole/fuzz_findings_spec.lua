-- Findings of fuzzing (tests/fuzz, tests/robustness): each input gave an error placed inside the library, or one that
-- named neither file nor field.

local core = require 'trinity.core'
local trinity = require 'trinity'

local function small_problem()
  local builder = trinity.graph.new { name = 'pair' }
  local x = builder:add { name = 'a', type = 'Work', outputs = { { shape = { 1 } } }, measured_time_s = 2 }
  builder:add { name = 'b', type = 'Work', inputs = { x }, measured_time_s = 3 }
  return trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
end

describe('found by fuzzing', function()
  it('a list option takes more words than fit on the stack', function()
    local words = {}
    for i = 1, 20000 do words[i] = '--names=x' .. i end
    local names = trinity.options({ names = { default = {} } }, words).names
    expect(#names):equals(20000)
    expect(names[20000]):equals 'x20000'
  end)
  it('a default list is not changed by the words', function()
    local default = { 'a' }
    expect(#trinity.options({ names = { default = default } }, { '--names=b', '--names=c' }).names):equals(3)
    expect(#default):equals(1)
  end)
  it('a number in a strategy file that no double holds', function()
    local path = file_with '{"format": "trinity-strategy", "version": 1e999}'
    expect(function() small_problem():load(path) end):raises 'fuzz_findings_spec.lua:%d+: .*number overflow'
  end)
  it('attributes of operators that no whole number of 64 bits holds', function()
    local builder = trinity.graph.new { name = 'attributes' }
    builder:add { name = 'a', type = 'Work', attributes = { low = -math.huge, high = 1e300, whole = 2 ^ 53, none = -0.5 } }
    local attributes = builder:build():operator(1).attributes
    expect(attributes.low):equals(-math.huge)
    expect(attributes.high):equals(1e300)
    expect(attributes.whole):equals(2 ^ 53)
    expect(attributes.none):equals(-0.5)
  end)
  it('attention to a matrix, and under a mask of too many axes', function()
    local net = trinity.graph.layers.new 'attention'
    local matrix, x = net:input('matrix', { 2, 2 }), net:input('x', { 1, 4, 8 })
    expect(function() net:self_attention('a', matrix, { heads = 2 }) end):raises 'expected a tensor of 3 axes, got one of 2'
    expect(function() net:lstm('b', matrix, { hidden = 2 }) end):raises 'expected a tensor of 3 axes, got one of 2'
    local mask = net:input('mask', { 1, 1, 1, 4, 4 })
    expect(function() net:attention('c', x, x, x, { heads = 2, mask = mask }) end):raises "'mask'"
  end)
  it('what Ctrl-C ended while LibTorch was opened, or a module loaded', function()
    if not core.has_torch() then skip 'needs LibTorch' end
    local path = file_with([[
      local core, tensor = require 'trinity.core', require 'trinity.nn.tensor'
      local function sum() return (tensor.zeros { 2 } + 1):sum() end
      core.when_torch_opens(function() error('interrupted', 0) end)
      print(pcall(sum))
      print(pcall(sum))
      local tries = 0
      package.preload['half.read'] = function()
        tries = tries + 1
        return tries > 1 and 'whole' or error('interrupted', 0)
      end
      local late = require 'trinity.base.late'
      print(pcall(late.require, 'half.read'))
      print(pcall(late.require, 'half.read'))]], '.lua')
    expect(output_of(('"%s" "%s" 2>&1'):format(program, path))):equals(
      'false\tinterrupted\ntrue\t2 [float32]\nfalse\tinterrupted\ntrue\twhole\n')
  end)
end)
