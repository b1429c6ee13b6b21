-- What a graph of many operators costs to build from Lua, with tensors and shapes; processor time and peak memory:
--   build/trinity tests/bench/bench_building.lua [OPERATORS, 1000000]
local trinity = require 'trinity'

local function peak_mb()
  for line in io.lines '/proc/self/status' do
    local kb = line:match 'VmHWM:%s+(%d+)'
    if kb then return tonumber(kb) * 1024 / 1e6 end -- the kernel's kB are 1,024 bytes
  end
end

local operators = tonumber(arg[1]) or 1000000
local start_s = os.clock()
local builder = trinity.graph.new { name = 'chain' }
local tensor = builder:add { name = 'in', type = 'Input', outputs = { { shape = { 64, 128 } } } }
for i = 2, operators do
  tensor = builder:add { name = 'op' .. i, type = 'Relu', inputs = { tensor }, outputs = { { shape = { 64, 128 } } } }
end
local added_s = os.clock()
local graph = builder:build()
print(('%d operators: %.2f s to add, %.2f s to build, %.0f MB at most'):format(graph.operators, added_s - start_s,
  os.clock() - added_s, peak_mb()))
