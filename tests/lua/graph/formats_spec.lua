-- Files of others in, ours out, through the library and the two scripts.

local core = require 'trinity.core'
local trinity = require 'trinity'

describe('trinity.model', function()
  it('lowers a forward graph of JSON to a training step', function()
    local forward = trinity.model('vgg16', { batch_size = 2, training = false })
    local graph = trinity.model(file_with(forward:to_json(), '.json'))
    expect(graph.fingerprint):equals(trinity.model('vgg16', { batch_size = 2 }).fingerprint)
  end)
  it('reads a PipeDream file with a byte-order mark, and says what UTF-16 is', function()
    local path = root .. '/tests/data/profiles/small.graph.txt'
    local marked = file_with('\239\187\191' .. core.read_file(path), '.txt')
    expect(trinity.model(marked).operators):equals(trinity.model(path).operators)
    expect(trinity.pipeline(marked, { method = 'max_load_dp', devices = 2, quiet = true }).max_load)
      :equals(trinity.pipeline(path, { method = 'max_load_dp', devices = 2, quiet = true }).max_load)
    for _, mark in ipairs { '\255\254', '\254\255' } do
      expect(function() trinity.model(file_with(mark .. 'n\0', '.txt')) end):raises '%.txt:1: the text is in UTF%-16, expected UTF%-8 %(iconv'
    end
  end)
  it('names the file and what it expected in a JSON file of no known kind', function()
    expect(function() trinity.model(file_with('{"layers": []}', '.json')) end):raises 'unknown JSON format'
    expect(function() trinity.model(file_with('{"format": "trinity.grap", "version": 1}', '.json')) end)
      :raises 'trinity%.graph'
    expect(function() trinity.model 'nothing.onnx' end):raises 'no model file nothing.onnx'
    expect(function() trinity.model 'nothing.pb' end):raises 'expected the ending %.lua, %.onnx, %.pt2'
  end)
  it('reads an ONNX file of PyTorch, open sizes by name, and lowers it', function()
    local path = root .. '/tests/data/onnx/bert.onnx'
    local small = trinity.model(path, { training = false, dimensions = { batch = 2, sequence = 16 } })
    local large = trinity.model(path, { training = false, dimensions = { batch = 4, sequence = 16 } })
    expect(small.source.format):equals 'ONNX'
    expect(large.parameters):equals(small.parameters)
    expect(large.flops / small.flops):near(2, 0.01)
    local step = trinity.model(path, { dimensions = { batch = 2, sequence = 16 } })
    expect(step.training):truthy()
    expect(step.parameters):equals(small.parameters)
    local problem = trinity.problem { graph = step, cluster = trinity.cluster 'p100x2' }
    expect(trinity.methods.contiguous(problem).metrics.step_time_s > 0):truthy()
  end)
  it('shares merged vectors of an ONNX file on request', function()
    local path = root .. '/tests/data/onnx/resnet_torchscript.onnx'
    local copied, joined = trinity.model(path, { training = false }),
      trinity.model(path, { training = false, copy_shared_vectors = false })
    expect(joined.parameters):below(copied.parameters)
    expect(copied.operators):below(joined.operators)
  end)
  it('keeps a file that holds a whole step as it is', function()
    local graph = trinity.model(root .. '/tests/data/pipeline/training.json')
    expect(graph.source.whole_step):truthy()
    expect(graph.operators):equals(6)
    expect(trinity.model(root .. '/tests/data/pipeline/piper.json').source.format):equals 'Piper instance'
  end)
end)

describe('names that are no UTF-8', function()
  local utf8 = "expected a name in UTF%-8, got byte 0xE9 at position 4 %(of Latin%-1, iconv %-f latin1 %-t utf8 makes UTF%-8%)"
  it('are refused by every importer, with file and name', function()
    local profile = 'caf\233 -- Conv -- forward_compute_time=1, backward_compute_time=1, activation_size=4, parameter_size=4\n'
    expect(function() trinity.model(file_with(profile, '.txt')) end):raises("%.txt:1: operator 'caf\\xE9': " .. utf8)
    local json = '{ "format": "trinity.graph", "version": 1, "name": "hand", "operators": [ { "name": "caf\233" } ] }'
    expect(function() trinity.model(file_with(json, '.json')) end):raises '%.json:1:90: .*ill%-formed UTF%-8'
    trinity_says(('search --run none --model %s'):format(file_with(profile, '.txt')), 1,
      "^trinity: [^\n]*%.txt:1: operator 'caf\\xE9': " .. utf8 .. '\n$')
  end)
  it('may come from graphs and clusters, which are named after files', function()
    local builder = trinity.graph.new { name = 'caf\233' }
    builder:add { name = 'x', type = 'Work', measured_time_s = 1e-3 }
    local problem = trinity.problem { graph = builder:build(),
      cluster = trinity.cluster { name = 'c\233', devices = { { name = 'd', type = 'p100' } }, links = {} } }
    expect(problem.graph.name):equals 'caf\\xE9'
    local path = temporary()
    trinity.methods.single_device(problem, { quiet = true }):save(path)
    expect(problem:load(path).reevaluated):equals(nil)
    expect(core.read_file(path)):matches '"name": "c\\\\xE9"'
  end)
end)

describe('pictures and placements', function()
  local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 2 }),
    cluster = trinity.cluster 'p100x2' }
  it('draws the graph with and without devices', function()
    expect(problem.graph:to_dot()):matches '^digraph'
    local found = trinity.methods.contiguous(problem)
    local colours = problem:to_dot(found)
    expect(colours):matches 'gpu0'
    expect(colours):matches 'gpu1'
    expect(problem:to_dot(found, { units = true }) ~= colours):truthy()
  end)
  it('writes devices for PyTorch under the names one gives', function()
    local found = trinity.methods.contiguous(problem)
    local text = problem:placement_json(found, { 'cuda:0', 'cuda:1' })
    expect(text):matches '"format": "trinity.placement"'
    expect(text):matches '"classifier[^"]*": "cuda:1"'
    expect(function() problem:placement_json(found, { 'cuda:0' }) end):raises 'has 2 devices, got 1 names'
  end)
end)

describe('batch_size of a file of fixed sizes', function()
  local net = trinity.graph.layers.new('fixed', { batch_size = 2 })
  net:linear('linear', net:input('x', { 2, 4 }), 3)
  local path = file_with(net:build():to_json(), '.json')
  it('is refused where it is another', function()
    expect(trinity.model(path, { batch_size = 2 }).batch_size):equals(2)
    expect(function() trinity.model(path, { batch_size = 3 }) end):raises(
      "option 'batch_size': [^ ]+ has fixed sizes %(batch 2%), got 3; omit the option")
    trinity_says(("info '%s' --batch_size 3"):format(path), 1, 'has fixed sizes')
  end)
  it('is not taken where the default of a command is another value', function()
    trinity_says(("execute --model '%s' --steps 1 --run none"):format(path), 0, 'step')
  end)
end)

describe('trinity info', function()
  it('prints what a builder holds', function()
    trinity_says('info resnet50 --batch_size 1', 0, 'parameters   25557032', '\nConv +53 ')
  end)
  it('names unknown operators', function()
    trinity_says(('info %s/tests/data/onnx/branches.onnx'):format(root), 0, 'unknown +If',
      'warning: .*operators without a cost rule of their own count as element%-wise: If')
  end)
end)

describe('trinity export', function()
  it('writes a graph that trinity reads', function()
    local path = temporary '.json'
    local status = run_trinity('export vgg16 --batch_size 3 --output ' .. path)
    expect(status):equals(0)
    expect(trinity.model(path, { training = false }).fingerprint)
      :equals(trinity.model('vgg16', { batch_size = 3, training = false }).fingerprint)
  end)
  it('writes into a folder that is there', function()
    local folder = temporary '.d'
    for _ = 1, 2 do
      expect(run_trinity('export vgg16 --cluster p100x2 --format accelerate --output_dir ' .. folder)):equals(0)
    end
  end)
end)
