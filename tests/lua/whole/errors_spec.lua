-- Bad input of every kind: one clear error, status 1 (2 for usage), never a crash.

local function fails(text, status, pattern)
  local got, output = run_script('SCRIPT', "local trinity = require 'trinity'\n" .. text)
  expect(type(got)):equals 'number'
  if got ~= status or not output:find(pattern) then
    error(('status %s, output:\n%s\nexpected status %d and %s'):format(tostring(got), output, status,
      pattern), 2)
  end
  if output:find 'terminate called' or output:find 'frame #' then error('C++ frames: ' .. output, 2) end
end

local head = [[
local graph, cluster = trinity.model('inception_v3', { batch_size = 1 }), trinity.cluster 'p100x2'
]]

describe('the command line', function()
  it('refuses an unknown option of a script with a suggestion', function()
    trinity_says('quickstart --stepz 3', 2, "unknown option '%-%-stepz', did you mean 'steps'%?")
  end)
  it('refuses a value of the wrong type or range', function()
    trinity_says('quickstart --steps=three', 2, "option '%-%-steps': expected a number, got 'three'")
    trinity_says('quickstart --steps 0', 2, 'expected an integer from 1, got 0')
  end)
  it('refuses an unknown script or option of the program', function()
    trinity_says('quikstart', 2, "no script 'quikstart', did you mean 'quickstart'%?")
    expect((run_trinity '--nothing')):equals(2)
    expect((run_trinity 'no/such/file.lua')):equals(1)
  end)
  it('prints help', function()
    trinity_says('quickstart --help', 0, '%-%-steps')
    expect((run_trinity '--help')):equals(0)
  end)
end)

describe('a command that is given a wrong file', function()
  local files = { ['number.lua'] = 'return { devices = 3 }', ['raises.lua'] = "error 'no machine'",
    ['open.lua'] = 'return {', ['count.lua'] = 'return function(n) return n end', ['object.json'] = '{}',
    ['list.json'] = '[1]', ['text.csv'] = 'a,b\n1\n', ['none.json'] = false }
  it('says so in one line, without a place in the command', function()
    local folder = temporary()
    os.execute(("mkdir -p '%s'"):format(folder))
    for name, text in require('trinity').sorted_pairs(files) do
      if text then require('trinity.core').write_file(folder .. '/' .. name, text) end
    end
    local said = 0
    for _, words in ipairs { 'info alexnet --cluster', 'info', 'plan gpt2 --cluster', 'plan gpt2 --aceso', 'plan',
      'search --method best --model', 'search --cluster', 'simulate --cluster', 'simulate --strategy',
      'compare --cluster', 'timeline --cluster', 'export alexnet --format placement --cluster', 'tradeoff --cluster',
      'figure4 --cluster', 'equal_time --cluster', 'unequal --pools', 'train --clusters', 'policy show', 'pipeline',
      'select', 'report', 'quickstart --cluster', 'placement_benchmark --folder', 'fidelity strategies --cases' } do
      for name in require('trinity').sorted_pairs(files) do
        local status, output = run_trinity(("%s '%s/%s' --runs none"):format(words, folder, name))
        local lines = select(2, output:gsub('\n', ''))
        if status == 0 or lines ~= 1 or output:find 'traceback' or output:find 'scripts/' or output:find '/lib/' then
          error(('%s %s: status %s: %s'):format(words, name, tostring(status), output), 0)
        end
        said = said + 1
      end
    end
    expect(said):equals(24 * 8)
  end)
end)

describe('inputs', function()
  it('names the script line of a missing model, and suggests', function()
    fails("trinity.model 'inception_v4'", 1, "SCRIPT:2: no model 'inception_v4', did you mean 'inception_v3'%?")
  end)
  it('refuses a missing file and an unknown ending', function()
    fails("trinity.model 'nowhere/graph.txt'", 1, ':2: no model file nowhere/graph.txt')
    fails("trinity.model 'graph.onix'", 1, 'expected the ending')
  end)
  it('refuses unknown model options and wrong types', function()
    fails("trinity.model('inception_v3', { batchsize = 1 })", 1, "unknown option 'batchsize', did you mean 'batch_size'")
    fails("trinity.model('inception_v3', { batch_size = 'many' })", 1, "option 'batch_size': expected an integer from 1, got string 'many'")
    fails("trinity.model('inception_v3', { optimizer = 'adamm' })", 1, "did you mean 'adam'%?")
    fails("trinity.model('inception_v3', { image_size = 74 })", 1, "option 'image_size': expected an integer from 75, got number 74")
  end)
  it('refuses unknown, empty and broken clusters', function()
    fails("trinity.cluster 'p1000x2'", 1, "no cluster 'p1000x2'")
    fails('trinity.cluster { name = "none", device_types = {}, devices = {} }', 1, "cluster 'none' has no devices")
    fails('trinity.cluster { device_types = {}, devices = { { name = "a", type = "p10" } } }', 1,
      "device 1: unknown device type 'p10', did you mean 'p100'")
    fails('trinity.cluster { device_typs = {}, devices = {} }', 1,
      "unknown field 'device_typs', did you mean 'device_types'")
  end)
  it('refuses devices that no link joins', function()
    fails([[trinity.cluster { device_types = { g = { peak_flops_per_s = { float32 = 1e12 },
      memory_bandwidth_bytes_per_s = 1e11, memory_bytes = 1e9 } },
      devices = { { name = 'a', type = 'g' }, { name = 'b', type = 'g' } } }]], 1,
      "no route of links from 'a' to 'b'")
  end)
  it('refuses a misspelt or negative rate of a device', function()
    local text = [[trinity.cluster { device_types = { g = { peak_flops_per_s = { float32 = %s },
      memory_bandwidth_bytes_per_s = 1e11, %s = 1e9 } }, devices = { { name = 'a', type = 'g' } } }]]
    fails(text:format('-1', 'memory_bytes'), 1, 'peak_flops_per_s.float32 must be a positive number')
    fails(text:format('1', 'memory_byte'), 1, "field 'memory_bytes' is missing")
  end)
  it('refuses a graph too big for all memory', function()
    fails([[local small = { device_types = { g = { peak_flops_per_s = { float32 = 1e12 },
      memory_bandwidth_bytes_per_s = 1e11, memory_bytes = 5e7 } }, devices = { { name = 'a', type = 'g' } } }
      trinity.problem { graph = trinity.model('inception_v3', { batch_size = 1 }), cluster = trinity.cluster(small) }]],
      1, 'does not fit: .* need')
    fails([[trinity.problem { graph = trinity.model('inception_v3', { batch_size = 100000 }),
      cluster = trinity.cluster 'p100x2' }]], 1, "does not fit: operator '.*' alone needs")
  end)
  it('refuses cycles and repeated names in a graph', function()
    fails([[local b = trinity.graph.new { name = 'g' }
      local x = b:add { name = 'x', type = 'Input', outputs = { { bytes = 4 } } }
      b:add { name = 'x', type = 'Relu', inputs = { x } }]], 1, "operator 'x' is already in graph 'g'")
    fails("trinity.graph.new { name = 'g' }:build()", 1, "graph 'g' has no operators")
    fails("trinity.graph.new { name = 'g' }:add { name = 'x' }", 1, "field 'type' is missing")
  end)
end)

describe('PipeDream files', function()
  local node = 'node%d -- Conv2d(1) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=%s, parameter_size=4.0'
  local function profile(lines, pattern)
    local path = file_with(table.concat(lines, '\n'), '.txt')
    trinity_says(("quickstart --model '%s'"):format(path), 1, pattern)
  end
  local a, b = node:format(1, '8.0'), node:format(2, '8.0')
  it('names a cycle', function()
    profile({ a, b, '\tnode1 -- node2', '\tnode2 -- node1' }, 'has a cycle: node1 %-> node2 %-> node1')
  end)
  it('names the line of a dangling edge', function()
    profile({ a, b, '\tnode1 -- node3' }, "%.txt:3: edge names node 'node3', which no node line describes")
  end)
  it('names the line of a negative time', function()
    profile({ a, (b:gsub('2%.0', '-2.0')) }, "%.txt:2: field 'backward_compute_time': must not be negative")
  end)
  it('names the line of a truncated node', function()
    profile({ a, b:sub(1, 60) }, '%.txt:2: ')
    profile({ a, 'node2 -- Conv2d' }, "%.txt:2: expected '<id> %-%- <description> %-%- <fields>'")
  end)
  it('refuses nonsense numbers, repeated nodes, empty and binary files', function()
    profile({ node:format(1, 'nan') }, "field 'activation_size': expected a number, got 'nan'")
    profile({ node:format(1, '[1.0; x]') }, "field 'activation_size': expected a number, got 'x'")
    profile({ a, a }, "node 'node1' appears twice")
    profile({ '' }, 'no node lines')
    profile({ '\0\1\2\255' }, ':1: expected')
  end)
end)

describe('rewards', function()
  local search = head .. [[
    local problem = trinity.problem { graph = graph, cluster = cluster, reward = function(m)
      count = (count or 0) + 1
      if count > 100 then %s end
      return -m.step_time_s
    end }
    local path = os.tmpname()
    local ok, message = pcall(trinity.methods.random, problem, { evaluations = 200, batch = 50, rescue = path, quiet = true })
    print(ok, message)
    count = -1e9
    print(problem:load(path))
    os.remove(path)]]
  local function stops(statement, pattern)
    local status, output = run_script('SCRIPT', "local trinity = require 'trinity'\nlocal count = 0\n" .. search:format(statement))
    expect(status):equals(0)
    expect(output):matches('false%s+[^\n]*' .. pattern)
    expect(output):matches 'the best so far %(step time .* after 100 evaluations%) is saved in'
    expect(output):matches 'random: step'
  end
  it('stop a search that keeps its best: an error', function()
    stops("error('my formula broke')", 'SCRIPT:6: my formula broke')
  end)
  it('nil, NaN, a string, infinity', function()
    stops('return nil', 'the reward function returned nil, expected a number')
    stops('return 0 / 0', 'SCRIPT:%d+: the reward function returned NaN, expected a finite number')
    stops("return 'high'", "the reward function returned string 'high', expected a number")
    stops('return math.huge', 'the reward function returned inf')
  end)
  it('a misspelt metric, with a suggestion', function()
    stops('return m.step_time', "SCRIPT:6: metrics have no field 'step_time', did you mean 'step_time_s'%?")
  end)
  it('end the program with status 1 and the line when nobody catches them', function()
    fails(head .. [[
      trinity.methods.random(trinity.problem { graph = graph, cluster = cluster,
        reward = function() return nil end }, { evaluations = 10, quiet = true })]], 1,
      'SCRIPT:4: the reward function returned nil')
  end)
end)

describe('methods', function()
  it('refuse unknown names and options', function()
    fails("trinity.methods.trinty({ handle = 1 })", 1, "no method 'trinty', did you mean 'trinity'%?")
    fails(head .. [[trinity.methods.trinity(trinity.problem { graph = graph, cluster = cluster },
      { learningrate = 1 })]], 1, "unknown option 'learningrate', did you mean 'learning_rate'%?")
    fails(head .. [[trinity.methods.trinity(trinity.problem { graph = graph, cluster = cluster },
      { learning_rate = -1, quiet = true })]], 1, "option 'learning_rate': expected")
    fails(head .. [[trinity.methods.trinity(trinity.problem { graph = graph, cluster = cluster },
      { preset = 'papr', quiet = true })]], 1, "option 'preset': unknown value 'papr', did you mean 'paper'%?")
  end)
  it('refuse placements of the wrong kind, length or device', function()
    local text = head .. [[local problem = trinity.problem { graph = graph, cluster = cluster }
      local placement = problem:placement() ]]
    fails(text .. 'problem:evaluate({ 1, 2 })', 1, 'expected a placement %(problem:placement%(%)%), a strategy or { placement = ... }, got table')
    fails(text .. 'placement[1] = 3; problem:evaluate(placement)', 1, 'is placed on device 3, expected 1 to 2')
    fails(text .. 'placement[#placement + 1] = 1', 1, 'is outside 1 to')
    fails(text .. 'placement[3] = 2; problem:evaluate(placement)', 1, 'are colocated but placed on')
  end)
  it('refuse a closed object', function()
    fails(head .. 'graph:close(); trinity.problem { graph = graph, cluster = cluster }', 1, 'this graph is closed')
  end)
  it('refuse what has no median', function()
    fails('print(trinity.median {})', 1, "trinity.median: argument 1 %('list'%): expected a list of numbers, got none")
    fails('print(trinity.median(3))', 1, 'expected a list of numbers, got number 3')
    fails('print(trinity.median { 1, "x" })', 1, "entry 2: expected a number, got string 'x'")
    local trinity = require 'trinity'
    expect(trinity.median { 3, 1, 2 }):equals(2)
    expect(trinity.median { 4, 1, 2, 1 }):equals(1.5)
    expect(trinity.median { math.huge, 1, math.huge, math.huge }):equals(math.huge)
  end)
end)
