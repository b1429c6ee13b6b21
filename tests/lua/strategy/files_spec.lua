-- Strategy files say everything in fields, what they were made for too.

local core = require 'trinity.core'
local trinity = require 'trinity'

local function graph(last)
  local net = trinity.graph.layers.new('three_layers', { batch_size = 8 })
  local x = net:input('x', { 8, 16 })
  for i = 1, 3 do x = net:relu('relu_' .. i, net:linear(i == 2 and last or 'linear_' .. i, x, 16)) end
  net:softmax_cross_entropy('loss', net:linear('last', x, 4), net:input('y', { 8 }, 'int64'))
  return net:build():to_training()
end

local function problem_of(last) return trinity.problem { graph = graph(last or 'linear_2'), cluster = trinity.cluster 'p100x4' } end

local problem = problem_of()

describe('strategy files', function()
  local function saved(found)
    local path = os.tmpname()
    found:save(path)
    local text = core.read_file(path)
    local loaded = found.problem:load(path)
    loaded.method, loaded.seed = found.method, found.seed
    loaded:save(path)
    expect(core.read_file(path)):equals(text)
    return trinity.files.json.decode(text), loaded
  end
  it('have splits by operator and dimension, whatever the name of the operator', function()
    local odd = 'a\tname=1, "2"\\ \xc3\xa9'
    local there = problem_of(odd)
    local file, loaded = saved(there:strategy { placement = there:placement(),
      splits = { [odd] = { n = 2, devices = { 3, 1 } }, linear_3 = { copies = 2 } } })
    expect(file.version):equals(3)
    expect(file.splits[odd].factors.n):equals(2)
    expect(file.splits[odd].devices[1]):equals(there.cluster.devices[3].name)
    expect(file.splits.linear_3.copies):equals(2)
    expect(loaded.splits[odd].devices[1]):equals(3)
  end)
  it('keep the types of notes: a method called 12 stays a word, seeds are numbers', function()
    local file = saved(problem:strategy(problem:placement(), { method = '12', seed = 12 }))
    expect(file.notes.method):equals('12')
    expect(file.notes.seed):equals(12)
    expect(file.notes.feasible):equals(true)
  end)
  it('refuse what they cannot express', function()
    local path = os.tmpname()
    problem:strategy({ placement = problem:placement(), splits = { linear_2 = { n = 2 } } }):save(path)
    local text = core.read_file(path)
    local function refused(from, to, message)
      core.write_file(path, (text:gsub(from, to)))
      expect(function() problem:load(path) end):raises(message)
    end
    refused('"linear_2": {', '"linear_9": {', "has no operator 'linear_9', did you mean 'linear_1'")
    refused('"splits": {', '"zero_stage": 1, "splits": {', "strategy: unknown field 'zero_stage'")
    refused('"factors"', '"factor"', "splits of operator 'linear_2': unknown field 'factor', did you mean 'factors'")
    refused('"n": 2', '"m": 2', "unknown field 'm'")
    refused('"n": 2', '"n": 17', "dimension 'n': expected a factor from 1 to 16, got 17")
    refused('"n": 2', '"n": "2"', 'expected an integer from 1 to 4096, got "2"')
    refused('"global_batch": %d+', '"global_batch": 7', "'global_batch': expected micro%-batch x micro%-batches x data = 8, got 7")
  end)
end)
