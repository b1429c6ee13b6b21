-- The engine outside its own program: a program that embeds it, an installation, a stock luajit.

local build = program:match '^(.*)/[^/]*$'
local folder = temporary()

--- Runs a shell command without the variables that would help it: exit status, all output.
local function shell(command)
  local output = output_of(('unset TRINITY_HOME LUA_PATH LUA_CPATH; (%s) 2>&1; echo "status=$?"'):format(command))
  local text, status = output:match '^(.*)status=(%d+)\n$'
  return tonumber(status), text
end

local function succeeds(command)
  local status, output = shell(command)
  if status ~= 0 then error(('%s\nstatus %s:\n%s'):format(command, tostring(status), output), 2) end
  return output
end

local function needs(path)
  if not require('trinity.base.util').exists(path) then skip(path .. ' is not built') end
end

--- The folder of the built programs of tests/embed.
local function embedded()
  needs(build .. '/package/trinityConfig.cmake')
  needs(build .. '/libtrinity.so')
  if not require('trinity.base.util').exists(folder .. '/embed/embed') then
    succeeds(("cmake -G Ninja -S '%s/tests/embed' -B '%s/embed' -Dtrinity_DIR='%s/package' -DCMAKE_BUILD_TYPE=Release && "
      .. "cmake --build '%s/embed'"):format(root, folder, build, folder))
  end
  return folder .. '/embed'
end

describe('the engine outside its program', function()
  it('embeds into a program through find_package(trinity)', function()
    local output = succeeds(("'%s/embed'"):format(embedded()))
    expect(output:find 'FAIL'):equals(nil)
    expect(output):matches 'ok   a second runtime'
  end)
  it('reads, lowers and prices strategies without Lua, to the nanosecond', function()
    local trinity, price = require 'trinity', ("'%s/price' '%s/graph.json' '%s/%%s.json'"):format(embedded(), folder, folder)
    local spec = { name = 'eight', devices = {}, links = {}, device_types = { card = {
      peak_flops_per_s = { float32 = 1e13 }, memory_bandwidth_bytes_per_s = 5e11, memory_bytes = 16 * 2 ^ 30 } } }
    for i = 1, 8 do
      spec.devices[i] = { name = 'card' .. i - 1, type = 'card' }
      spec.links[i] = { from = 'card' .. i - 1, to = 'switch', bandwidth_bytes_per_s = 1e10, latency_s = 5e-6 }
    end
    local graph = trinity.model('gpt2', { layers = 4, hidden = 64, heads = 4, sequence = 32, positions = 32,
      vocabulary = 1000, batch_size = 2, dropout = 0, fused = false })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster(spec) }
    graph:save(folder .. '/graph.json')
    local placed = problem:placement_by_unit(function(unit) return unit % 8 + 1 end)
    for i, plan in ipairs { { mesh = { data = 2, tensor = 2, pipeline = 2 }, micro_batches = 4, zero_stage = 1 }, placed,
      { placement = placed, splits = { ['block_1/feed_forward/inner'] = { n = 2, devices = { 1, 5 } } } } } do
      local found = problem:strategy(plan)
      found:save(folder .. '/strategy.json')
      local operators, ns = succeeds(price:format 'strategy'):match '^same graph 1, same cluster 1, (%d+) operators, (%d+) ns'
      expect(tonumber(ns) / 1e9):near(found.metrics.step_time_s, 1e-15)
      expect(tonumber(operators) == graph.operators):equals(i == 2)
    end
    local status, output = shell(price:format 'graph')
    expect(status):equals(1)
    expect(output):matches 'error: .*graph.json'
  end)
  it_all('installs: program, library, package, a module for luajit', function()
    needs(build .. '/libtrinity.so')
    succeeds(("cmake --install '%s' --prefix '%s/prefix'"):format(build, folder))
    expect(succeeds(("cd / && '%s/prefix/bin/trinity' -e 'print(require(\"trinity.core\").home)'"):format(folder)))
      :equals(folder .. '/prefix/share/trinity\n')
    succeeds(("cmake -G Ninja -S '%s/tests/embed' -B '%s/again' -DCMAKE_PREFIX_PATH='%s/prefix' && cmake --build '%s/again' && '%s/again/embed'")
      :format(root, folder, folder, folder, folder))
    if shell 'command -v luajit' ~= 0 then return end
    expect(succeeds(("cd / && LUA_PATH='%s/prefix/share/lua/5.1/?/init.lua;%s/prefix/share/lua/5.1/?.lua;;' "
      .. "LUA_CPATH='%s/prefix/lib/lua/5.1/?.so;;' luajit -e 'print(require(\"trinity\").system.version)'"):format(folder, folder,
      folder))):matches '^%d+%.%d+%.%d+\n$'
  end)
  it('answers to require from a stock luajit', function()
    needs(build .. '/lua/trinity/core.so')
    if shell 'command -v luajit' ~= 0 then skip 'no luajit here' end
    local path = ("LUA_PATH='%s/lib/?.lua;%s/lib/?/init.lua;;' LUA_CPATH='%s/lua/?.so;;'"):format(root, root, build)
    local script = folder .. '.lua'
    local file = assert(io.open(script, 'w'))
    file:write [[
      local trinity = require 'trinity'
      local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 1 }), cluster = trinity.cluster 'p100x2' }
      print(trinity.compare(problem, { 'single_device', 'heft', 'trinity' }, { evaluations = 16, quiet = true }))
      print(pcall(problem.evaluate, problem, 3))
    ]]
    file:close()
    local output = succeeds(("%s luajit '%s'"):format(path, script))
    expect(output):matches 'heft'
    expect(output):matches "argument 1 %('plan'%)"
    os.remove(script)
  end)
end)
