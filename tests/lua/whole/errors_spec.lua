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

describe('a command that is given a wrong file', function()
  local function header(bytes, text) -- of safetensors: eight bytes of length, the least first
    return string.char(bytes % 256, math.floor(bytes / 256) % 256) .. ('\0'):rep(6) .. text
  end
  local mark = '\27[31m\7\194\155\226\128\174'
  local files = { ['number.lua'] = 'return { devices = 3 }', ['raises.lua'] = "error 'no machine'",
    ['open.lua'] = 'return {', ['count.lua'] = 'return function(n) return n end', ['object.json'] = '{}',
    ['list.json'] = '[1]', ['text.csv'] = 'a,b\n1\n', ['none.json'] = false, ['marks.csv'] = mark .. '\n1e999,nan,\n' .. mark,
    ['deep.json'] = ('{"a":['):rep(200000), ['format.json'] = '{"format":"trinity-strategy' .. mark .. '"}',
    ['large.json'] = '{"traceEvents":[{"ph":"X","name":"' .. mark .. '","ts":1e308,"dur":-1}],"nodes":[{"id":1e300}],'
      .. '"model_type":"llama","hidden_size":1e300,"devices":[{}],"problem":{"nodes":7}}',
    ['x.safetensors'] = header(60, '{"x":{"dtype":"F32","shape":[1e18],"data_offsets":[0,4e18]}}  '),
    ['x.pt2'] = 'PK\3\4' .. ('\255'):rep(60) .. 'PK\5\6' .. ('\255'):rep(18) }
  it('says so in one line, without a place in the command, whatever the file holds', function()
    local folder, said = temporary(), 0
    local function check(words, name)
      local status, output = run_trinity(("--memory-limit 2G %s'%s/%s' --runs none"):format(words:gsub('[^=]$', '%0 '), folder, name))
      local begins = words:find 'checkpoint' and name == 'none.json' -- which the command writes
      local is_line = (status == 1 or status == 2) and select(2, output:gsub('\n', '')) == 1
      if not is_line and not begins or output:find '[\27\7]' or output:find('\194\155', 1, true) or output:find 'traceback'
        or output:find 'scripts/' or output:find '/lib/' or output:find 'attempt to' then
        error(('%s %s: status %s: %s'):format(words, name, tostring(status), output:sub(-600)), 0)
      end
      said = said + 1
    end
    for name, text in require('trinity').system.sorted_pairs(files) do
      if text then require('trinity.core').write_file(folder .. '/' .. name, text) end
    end
    for _, words in ipairs { 'info alexnet --cluster', 'info', 'plan gpt2 --cluster', 'plan',
      'search --method best --model', 'search --cluster', 'simulate --cluster', 'simulate --strategy', 'simulate --schedule_csv',
      'search --method a,b --cluster', 'export alexnet --format placement --cluster',
      'study placement --folder paper --cluster',
      'study unequal --pools', 'train --clusters', 'train --start', 'study policy show', 'pipeline', 'study select', 'runs report', 'quickstart --cluster',
      'search --model alexnet --evaluations 4 --method_set rank=', 'study placement --folder', 'execute --model mlp --load',
      'execute --model mlp --epochs 1 --data', 'execute --model mlp --steps 1 --checkpoint',
      'study fidelity collectives --rows', 'study fidelity published --rows', 'study fidelity vtrain --rows' } do
      local one_reader = words:find '%-%-cluster$' and not words:find '^info' -- one function reads clusters for all of them
      for name in require('trinity').system.sorted_pairs(files) do
        if not one_reader or name:find '%.lua$' or name == 'none.json' then check(words, name) end
      end
    end
    expect(said > 300):equals(true)
  end)
end)

describe('inputs', function()
  it('are refused with the line of the script, and a suggestion', function()
    for code, message in require('trinity').system.sorted_pairs {
      ["trinity.model 'inception_v4'"] = "no model 'inception_v4', did you mean 'inception_v3'%?",
      ["trinity.model 'bert'"] = "no model 'bert', did you mean 'bert_base'%?",
      ["trinity.model 'nowhere/graph.txt'"] = 'no model file nowhere/graph.txt',
      ["trinity.model 'graph.onix'"] = '[^\n]*expected the ending',
      ["trinity.model('inception_v3', { batchsize = 1 })"] = "[^\n]*unknown option 'batchsize', did you mean 'batch_size'",
      ["trinity.model('inception_v3', { batch_size = 'many' })"] =
        "[^\n]*option 'batch_size': expected an integer from 1, got string 'many'",
      ["trinity.model('inception_v3', { optimizer = 'adamm' })"] = "[^\n]*did you mean 'adam'%?",
      ['trinity.cluster { name = "none", device_types = {}, devices = {} }'] = "[^\n]*cluster 'none' has no devices",
      ['trinity.cluster { device_types = {}, devices = { { name = "a", type = "p10" } } }'] =
        "[^\n]*device 1: unknown device type 'p10', did you mean 'p100'",
      ['trinity.cluster { device_typs = {}, devices = {} }'] = "[^\n]*unknown field 'device_typs', did you mean 'device_types'",
      ["trinity.graph.new { name = 'g' }:build()"] = "[^\n]*graph 'g' has no operators",
      ["trinity.graph.new { name = 'g' }:add { name = 'x' }"] = "[^\n]*field 'type' is missing",
      ['trinity.methods.trinty({ handle = 1 })'] = "[^\n]*no method 'trinty', did you mean 'trinity'%?" } do
      fails(code, 1, 'SCRIPT:2: ' .. message)
    end
  end)
end)

describe('PipeDream files', function()
  local node = 'node%d -- Conv2d(1) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=%s, parameter_size=4.0'
  local function profile(lines, pattern)
    local path = file_with(table.concat(lines, '\n'), '.txt')
    trinity_says(("quickstart --model '%s'"):format(path), 1, pattern)
  end
  local a, b = node:format(1, '8.0'), node:format(2, '8.0')
  it('are refused with the line and what is wrong there', function()
    profile({ a, b, '\tnode1 -- node2', '\tnode2 -- node1' }, 'has a cycle: node1 %-> node2 %-> node1')
    profile({ a, b, '\tnode1 -- node3' }, "%.txt:3: edge names node 'node3', which no node line describes")
    profile({ a, (b:gsub('2%.0', '-2.0')) }, "%.txt:2: field 'backward_compute_time': must not be negative")
    profile({ a, 'node2 -- Conv2d' }, "%.txt:2: expected '<id> %-%- <description> %-%- <fields>'")
    profile({ node:format(1, '[1.0; x]') }, "field 'activation_size': expected a number, got 'x'")
    profile({ a, a }, "node 'node1' appears twice")
    profile({ '' }, 'no node lines')
    profile({ '\0\1\2\255' }, ':1: expected')
  end)
end)

describe('methods', function()
  it('refuse what has no median', function()
    fails('print(trinity.system.median {})', 1, "system.median: argument 1 %('list'%): expected a list of numbers, got none")
    fails('print(trinity.system.median { 1, "x" })', 1, "entry 2: expected a number, got string 'x'")
    local trinity = require 'trinity'
    expect(trinity.system.median { 3, 1, 2 }):equals(2)
    expect(trinity.system.median { 4, 1, 2, 1 }):equals(1.5)
    expect(trinity.system.median { math.huge, 1, math.huge, math.huge }):equals(math.huge)
  end)
end)

describe('what functions return', function()
  it('prints as its kind and main fields, never as an address', function()
    local trinity = require 'trinity'
    local graph, cluster = trinity.model('alexnet', { batch_size = 2 }), trinity.cluster 'p100x2'
    local problem = trinity.problem { graph = graph, cluster = cluster }
    local found, builder = trinity.methods.heft(problem), trinity.graph.new { name = 'x' }
    local timeline, row = problem:timeline(found), trinity.compare(problem, { found }, { quiet = true }).rows[1]
    local plans = trinity.plan { graph = trinity.model('gpt2', { batch_size = 1, layers = 1, sequence = 64 }), cluster = cluster, global_batch = 1,
      simulations = 1, quiet = true, space = { tensor = 1, context = 1, pipeline = 1, data = 1 } }
    for i, object in ipairs { problem:bounds(), cluster.devices[1], graph:operator(3), graph:operator(3).outputs[1],
      found:breakdown(), found:breakdown().devices[1], timeline:critical_path(), timeline:critical_steps(), timeline:by_type()[1],
      cluster:collective { kind = 'all_reduce', bytes = 1e6, devices = { 1, 2 } }, plans, plans.plans[1], plans.plans[1].point,
      problem:step_state(found.placement), problem:moves(), builder, builder:add { name = 'a', type = 'A', outputs = { { bytes = 1 } } },
      trinity.graph.layers.new 'n', trinity.devices.topology.new { name = 'x' }, row, trinity.methods.info 'heft' } do
      expect(('%d %s'):format(i, tostring(object)):find ': 0x%x%x'):equals(nil)
    end
    expect(tostring(cluster.devices[1])):equals 'device: name gpu0, type p100, speed 1, capacity_bytes 16.6 GB'
    expect(tostring(plans)):matches '^plans: 1 of .* on p100x2\nplan +step .*\n1: one device, micro%-batch 1 x 1'
  end)
end)
