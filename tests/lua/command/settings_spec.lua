-- Settings on the command line: options of a model's builder (--set), of methods (--method_set).

local cli = require 'trinity.command.cli'
local settings = require 'trinity.command.settings'
local trinity = require 'trinity'

describe('NAME=VALUE', function()
  local function read(...) return settings.read('set', { ... }) end
  it('is true, false, a number, a text or a list', function()
    local values = read('policy=false,batch=16,size=xl', 'memory=2Gi', 'warm_start=expert,metis', 'on=true', 'empty=')
    expect(values.policy):equals(false)
    expect(values.on):equals(true)
    expect(values.batch):equals(16)
    expect(values.memory):equals(2 ^ 31)
    expect(values.size):equals 'xl'
    expect(values.empty):equals ''
    expect(table.concat(values.warm_start, ' ')):equals 'expert metis'
  end)
  it('may be a field, and the last one counts', function()
    local values = read('dimensions.sequence=128,dimensions.batch=2', 'layers=1,layers=2')
    expect(values.dimensions.sequence + values.dimensions.batch):equals(130)
    expect(values.layers):equals(2)
  end)
  it('is refused where it is none', function()
    expect(function() read 'layers' end):raises "option '%-%-set': expected NAME=VALUE, got 'layers'"
    expect(function() read '=3' end):raises "expected NAME=VALUE, got '=3'"
    expect(function() read('a=1', 'a.b=2') end):raises "expected 'a' or 'a%.b', got both"
  end)
end)

describe('--set', function()
  local function graph(model, ...) return cli.load_model { model = model, set = { ... } } end
  it('gives a builder its options, and every model the common ones', function()
    local options = { layers = 1, hidden = 32, heads = 4, vocabulary = 50, sequence = 8, batch_size = 1, dtype = 'bfloat16' }
    expect(graph('gpt2', 'layers=1,hidden=32,heads=4', 'vocabulary=50,sequence=8,batch_size=1,dtype=bfloat16').fingerprint)
      :equals(trinity.model('gpt2', options).fingerprint)
    expect(graph('alexnet', 'training=false').training):equals(false)
    expect(cli.load_model({ model = 'alexnet', batch_size = 8, set = {} }).fingerprint)
      :equals(graph('alexnet', 'batch_size=8').fingerprint)
  end)
  it('shows outputs that differ in numbers alone as one line', function()
    trinity_says('info gpt2 --set layers=3,kernels=flash', 0, 'block_1/attention:1 %.%.%. block_3/attention:1 %(3%) %[')
  end)
  it('refuses what a model does not have, with a suggestion and status 2', function()
    trinity_says('info gpt2 --set layer=2', 2,
      "^trinity: option '%-%-set': model 'gpt2': unknown option 'layer', did you mean 'layers'%?")
    trinity_says('simulate --model gpt2 --set dtpye=bfloat16', 2, "unknown option 'dtpye', did you mean 'dtype'%?")
    expect(function() graph('gpt2', 'layers=x') end):raises "model 'gpt2': option 'layers': expected an integer from 0 to 1000, got string 'x'"
    expect(function() graph('not_there', 'layers=1') end):raises "no model 'not_there'"
  end)
  it('reaches every command that takes a model', function()
    local small = ' --run none --set layers=1,hidden=32,heads=4,vocabulary=50,sequence=8,batch_size=1'
    for _, command in ipairs { 'info gpt2', 'export gpt2 --output ' .. temporary(), 'simulate --model gpt2', 'pipeline gpt2 --method max_load_dp',
        'search --model gpt2 --method metis', 'search --model gpt2 --method metis --seeds 1', 'simulate --model gpt2 --trace ' .. temporary(),
        'execute --model gpt2 --steps 1',
        'execute --model gpt2 --steps 1 --warm_up 0 --copies 1 --largest_copy 64Ki --profile ' .. temporary(),
        'quickstart --model gpt2 --steps 1 --samples 2 --output ' .. temporary() } do
      local status, output = run_trinity(command .. small)
      expect(status == 0 or command .. output):equals(true)
      trinity_says(command .. small .. ',layrs=2', 2,
        "option '%-%-set': model 'gpt2': unknown option 'layrs', did you mean 'layers'%?")
    end
    expect(function() trinity.pipeline('tests/data/profiles/small.graph.txt', { model = { layers = 1 } }) end)
      :raises "option 'model': tests/data/profiles/small%.graph%.txt is a file with costs"
  end)
end)

describe('--method_set', function()
  local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x2' }
  local own = { evaluations = 24, seed = 3, quiet = true }
  it('gives a method its options', function()
    local found = cli.run_method({ method = 'random', method_set = { 'batch=8' } }, problem, own)
    expect(#found.curve):equals(3)
    expect(found.reward):equals(trinity.methods.random(problem, { evaluations = 24, seed = 3, quiet = true, batch = 8 }).reward)
  end)
  it('refuses what a method does not have, with a suggestion and status 2', function()
    local search = 'search --model alexnet --run none --evaluations 8 --method '
    trinity_says(search .. 'random --method_set bach=8', 2,
      "^trinity: option '%-%-method%-set': random: unknown option 'bach', did you mean 'batch'%?")
    trinity_says(search .. 'random --method_set batch=x', 2,
      "option '%-%-method%-set': random: option 'batch': expected an integer from 1 to 1048576, got string 'x'")
  end)
  it('names the method where several are compared', function()
    local compare = 'search --model alexnet --run none --method random,metis --seeds 1 --evaluations 8 --method_set '
    trinity_says(compare .. 'random.batch=4', 0)
    for words, message in trinity.system.sorted_pairs {
      ['random.bach=4'] = "random: unknown option 'bach', did you mean 'batch'%?", ['batch=4'] = "expected METHOD.NAME=VALUE, got 'batch=...'",
      ['rndom.batch=4'] = "unknown method 'rndom', did you mean 'random'%? %(known: random, metis%)" } do
      trinity_says(compare .. words, 2, "option '%-%-method%-set': " .. message)
    end
  end)
end)
