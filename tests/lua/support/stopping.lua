-- Scripts that would run for long, and how soon Ctrl-C or a time limit ends them: for whole/interrupt_spec.lua and
-- command/limits_spec.lua.

local core = require 'trinity.core'

local faults = assert(loadfile(core.home .. '/tests/robustness/support/faults.lua'))()

local stopping = {}

-- A graph of `count` operators in layers of `width`, each reading two of the layer before.
local layered = [[
  local trinity = require 'trinity'
  local function layered(count, width)
    local builder, tensors = trinity.graph.new { name = 'layered' }, {}
    for i = 1, count do
      local inputs = {}
      if i > width then inputs = { tensors[i - width], tensors[i - 1] } end
      tensors[i] = builder:add { name = 'o' .. i, type = 'Work', inputs = inputs, outputs = { { shape = { 100 } } },
        measured_time_s = 1e-4 * (1 + i % 7) }
    end
    return builder:build()
  end
]]

--- Scripts that must stop: { name, script }. Every script prints `ready` when it begins with what takes long.
stopping.cases = {
  { 'an empty loop', [[ ready() while true do end ]] },
  { 'a sum', [[ ready() local x = 0 for i = 1, 1e18 do x = x + i end ]] },
  { 'a loop that swallows errors', [[
    local function body() local x = 0 for i = 1, 1e18 do x = x + i end end
    ready() while true do pcall(body) end ]] },
  { 'error handlers that loop', [[
    local function body() while true do end end
    ready() while true do xpcall(body, body) end ]] },
  { 'a coroutine', [[
    local step = coroutine.wrap(function() local x = 0 while true do x = x + 1 if x % 1000 == 0 then coroutine.yield(x) end end end)
    ready() while true do step() end ]] },
  { 'coroutines that swallow errors', [[
    local function body() while true do pcall(function() while true do end end) end end
    ready() while true do pcall(coroutine.wrap(body)) end ]] },
  { 'sorting with a comparison in Lua', [[
    local t = {} for i = 1, 1e5 do t[i] = i * 7919 % 1e5 end
    ready() while true do table.sort(t, function(a, b) return a > b end) table.sort(t) end ]] },
  { 'reading standard input', [[ ready() io.read '*l' ]], input = 'sleep 20' },
  { 'a command', [[ ready() os.execute 'exec sleep 20' ]] },
  { 'reading from a command', [[ local pipe = io.popen 'exec sleep 20' ready() pipe:read '*a' ]] },
  { 'closing a pipe whose command goes on', [[ local pipe = io.popen 'exec sleep 20' ready() pipe:close() ]] },
  { 'closing a pipe to a command that goes on', [[ local pipe = io.popen('exec sleep 20', 'w') ready() pipe:close() ]] },
  { 'collecting a pipe whose command goes on', [[ io.popen 'exec sleep 20' ready() collectgarbage() collectgarbage() ]] },
  { 'a command that takes no notice', [[ ready() os.execute 'trap "" INT; sleep 20; true' ]] },
  { 'one long simulation', layered .. [[
    local problem = trinity.problem { graph = layered(2000, 40), cluster = trinity.cluster 'p100x2', schedule = 'fifo',
      micro_batches = 1500 }
    local placement = problem:placement()
    for i = 1, #placement do placement[i] = 1 + i % 2 end
    ready() while true do problem:evaluate(placement) end ]] },
  { 'a large batch', layered .. [[
    local problem = trinity.problem { graph = layered(3000, 40), cluster = trinity.cluster 'p100x2' }
    local random, batch = trinity.random(1, 'batch'), {}
    for k = 1, 3000 do
      local placement = problem:placement()
      for i = 1, #placement do placement[i] = random:integer(2) end
      batch[k] = placement
    end
    ready() while true do problem:evaluate_batch(batch) end ]] },
  { 'training', [[
    local trinity = require 'trinity'
    local core = require 'trinity.core'
    local problem = trinity.problem { graph = trinity.model 'gnmt', cluster = trinity.cluster 'p100x4' }
    local agent = core.agent(problem.handle, { seed = 1 })
    local batch = problem:placements(agent:summary().samples)
    local rewards = require('trinity.base.array').double(#batch)
    for i = 1, #rewards do rewards[i] = i end
    ready() while true do agent:sample(batch) agent:update(rewards) end ]] },
  { 'tensors', [[
    local tensor = require('trinity').tensor
    local a = tensor.ones { 200, 200 }
    ready() while true do a = (a:matmul(a)):tanh() end ]] },
  { 'building a graph', layered .. [[ ready() while true do layered(20000, 10) end ]] },
  { 'bounds', layered .. [[
    local problem = trinity.problem { graph = layered(30000, 40), cluster = trinity.cluster('heterogeneous', { constants = 'data_sheet' }) }
    ready() for k = 1, 1e9 do problem:bounds(1 + k % 1000) end ]] },
  { 'a minimum cut', layered .. [[
    local graph = layered(100000, 300)
    ready() while true do graph:min_cut({ 1, 2, 3 }, { 99999, 100000 }) end ]] },
  { 'reading a graph', layered .. [[
    local path = os.tmpname()
    os.remove(path)
    path = path .. '.json'
    layered(60000, 40):save(path)
    ready() local ok, message = pcall(function() while true do trinity.model(path) end end)
    os.remove(path) error(message, 0) ]] },
  { 'node2vec', layered .. [[
    local core = require 'trinity.core'
    local problem = trinity.problem { graph = layered(20000, 40), cluster = trinity.cluster 'p100x2' }
    ready() core.agent(problem.handle, { seed = 1, node2vec = { epochs = 1000 } }) ]] },
}

-- Waits for the process, but no longer than 30 s.
local watch = '\ni=0; while [ $i -lt 3000 ] && ! ended; do sleep 0.01; i=$((i + 1)); done; kill -KILL $pid'

--- Runs a case with the program's `options`; once it is ready and `delay_s` have passed, sends `signal` ('INT'; none
--- where that is nil). Returns { status =, output =, seconds = from the signal to the end }; the status is 137 where the
--- script did not end within 30 s.
function stopping.run(case, options, delay_s, signal)
  local folder = faults.folder()
  local function path(name) return faults.quoted(folder .. '/' .. name) end
  core.write_file(folder .. '/script.lua', ('local function ready() print "ready" io.stdout:flush() end %s\n'):format(
    case[2]:gsub('\n', ' ')), 'unsynced')
  if case.input then os.execute(('mkfifo %s; (%s > %s) &'):format(path 'in', case.input, path 'in')) end
  local command = ('exec %s %s %s < %s'):format(faults.quoted(faults.program), options, path 'script.lua',
    case.input and path 'in' or '/dev/null')
  local result = faults.run(folder, 'sh -c ' .. faults.quoted(command), { after = '^ready', delay_s = delay_s,
    strike = (signal and ('kill -%s $pid'):format(signal) or '') .. watch })
  core.remove_tree(folder)
  return result
end

return stopping
