-- What a command line may say: units, true and false as words, earlier names of options, clusters with and without a count.

local trinity = require 'trinity'
local core = require 'trinity.core'
local units = require 'trinity.base.units'

local function values(declared, ...) return trinity.options(declared, { ... }) end

describe('a number on the command line', function()
  it('may have a factor, and a unit where it counts bytes', function()
    expect(units.number '2.5M'):equals(2.5e6)
    expect(units.number '4Ki'):equals(4096)
    expect(units.number '25GiB'):equals(nil)
    expect(units.number('25GiB', 'bytes')):equals(25 * 2 ^ 30)
    expect(units.number('80GB', 'bytes')):equals(80e9)
    expect(units.number('7B', 'bytes')):equals(7)
    expect(units.number('10Gbit', 'bytes')):equals(1.25e9)
    expect(units.number('10Gbit/s', 'bytes')):equals(nil)
    expect(units.number('10Gbit/s', 'bytes/s')):equals(1.25e9)
    expect(units.number('25GB/s', 'bytes/s')):equals(25e9)
    for _, wrong in ipairs { 'GB', '1Gb', '1QB', '1GBx', '1 GB', '1e', '' } do
      expect(units.number(wrong, 'bytes/s')):equals(nil)
    end
  end)
  it('is refused with what was expected', function()
    local declared = { memory = { default = 0, unit = 'bytes' }, steps = { default = 1 } }
    expect(values(declared, '--memory', '1.5GiB').memory):equals(1.5 * 2 ^ 30)
    expect(function() values(declared, '--memory', '1Gb') end)
      :raises "option '%-%-memory': expected bytes %(500000, 80GB, 25GiB%), got '1Gb'"
    expect(function() values(declared, '--steps', '1GB') end):raises "option '%-%-steps': expected a number, got '1GB'"
    expect(function() values({ x = { default = 1, unit = 'byte' } }) end):raises "did you mean 'bytes'%?"
  end)
end)

describe('an option', function()
  it('that is true or false takes the word behind it, where it is one of these', function()
    local declared = { training = { default = true }, model = { default = '', position = true } }
    expect(values(declared, '--training', 'false', 'alexnet').training):equals(false)
    expect(values(declared, '--training', 'false', 'alexnet').model):equals 'alexnet'
    expect(values(declared, '--training=false').training):equals(false)
    expect(values({ training = { default = false } }, '--training', 'true').training):equals(true)
    expect(values(declared, '--training', 'alexnet').model):equals 'alexnet'
  end)
  it('goes on being understood by its earlier name', function()
    expect(values({ model = { default = '', earlier = 'file' } }, '--file', 'x').model):equals 'x'
    local _, by_name = run_trinity "pipeline --model tests/data/profiles/small.graph.txt --method max_load_dp --run none"
    local _, earlier = run_trinity "pipeline --file tests/data/profiles/small.graph.txt --method max_load_dp --run none"
    expect(by_name):matches '^small %(PipeDream profile%) by max_load_dp'
    expect((earlier:gsub('planned in.*', ''))):equals((by_name:gsub('planned in.*', '')))
  end)
end)

describe('--cluster', function()
  local family = file_with([[return function(count)
    local spec = { devices = {}, links = {} }
    for i = 1, count do
      spec.devices[i] = { name = 'd' .. i, type = 'p100' }
      if i > 1 then spec.links[i - 1] = { from = 'd1', to = 'd' .. i, bandwidth_bytes_per_s = 1e9 } end
    end
    return spec
  end]], '.lua')
  it('may give a count to a file', function()
    expect(#trinity.cluster(family).devices):equals(1)
    local four = trinity.cluster(family .. 'x4')
    expect(#four.devices):equals(4)
    expect(four.name):matches '^lua_%d+x4$'
    expect(function() trinity.cluster(family .. 'x0') end):raises 'expected a count from 1 to 131072, got 0'
    local fixed = file_with("return { devices = { { name = 'a', type = 'p100' } } }", '.lua')
    expect(function() trinity.cluster(fixed .. 'x2') end):raises 'takes no count'
    expect(function() trinity.cluster 'not_there.luax2' end):raises 'no cluster file not_there%.lua'
    trinity_says(("simulate --model alexnet --cluster '%sx3' --run none"):format(family), 0, '3 devices')
  end)
  it('takes the count wherever devices follow it', function()
    for _, cluster in ipairs { 'p100', 'p100x2', family, family .. 'x2' } do
      trinity_says(("execute --model alexnet --batch_size 1 --devices cpu:0,cpu:0 --steps 1 --run none --cluster '%s'")
        :format(cluster), 0, 'simulated on [%w_]+x2: ')
    end
    for _, words in ipairs { '--cluster p100 --devices 2', '--cluster p100x2' } do
      trinity_says(("placement_benchmark --folder '%s/tests/data/profiles' --only small --methods single_device --run none %s")
        :format(core.home, words), 0, '\nsmall +2 ')
    end
    local _, output = run_trinity 'pipeline alexnet --cluster dgx_a100x2 --devices 16 --method max_load_dp --run none'
    expect(output):matches '^alexnet %(model%) by max_load_dp: max load'
  end)
  it('suggests the name that has a word whole', function()
    expect(function() trinity.cluster 'a100x8' end):raises "no cluster 'a100x8', did you mean 'dgx_a100'%?"
    expect(function() trinity.cluster 'p1000x2' end):raises "did you mean 'p100'%?"
    expect(function() trinity.model 'bert' end):raises "no model 'bert', did you mean 'bert_base'%?"
  end)
end)
