-- What clusters and graphs cost to build from Lua, each in a process of its own; processor time, and by how much its
-- peak of memory grew:
--   build/trinity tests/bench/bench_building.lua [cluster|decoder|chain [OPERATORS, 1000000]]
-- A cluster of 16,384 GPUs, a training graph of 126 decoder layers from a configuration file, and a graph of many
-- operators with tensors and shapes.
local core = require 'trinity.core'
local trinity = require 'trinity'

local function peak_mb()
  for line in io.lines '/proc/self/status' do
    local kb = line:match 'VmHWM:%s+(%d+)'
    if kb then return tonumber(kb) * 1024 / 1e6 end -- the kernel's kB are 1,024 bytes
  end
end

local rows = {}

function rows.cluster() return tostring(trinity.cluster 'dgx_h100x2048') end

function rows.decoder()
  local taken = os.tmpname()
  local path = taken .. '.json'
  core.write_file(path, [[{ "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
    "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16" }]])
  local graph = trinity.model(path, { sequence = 8192 })
  os.remove(path)
  os.remove(taken)
  return ('126 decoder layers: %d operators'):format(graph.operators)
end

function rows.chain()
  local builder = trinity.graph.new { name = 'chain' }
  local tensor = builder:add { name = 'in', type = 'Input', outputs = { { shape = { 64, 128 } } } }
  for i = 2, tonumber(arg[2]) or 1000000 do
    tensor = builder:add { name = 'op' .. i, type = 'Relu', inputs = { tensor }, outputs = { { shape = { 64, 128 } } } }
  end
  return ('chain: %d operators'):format(builder:build().operators)
end

if rows[arg[1]] then
  local before_mb, start_s = peak_mb(), os.clock()
  local what = rows[arg[1]]()
  print(('%-46s%8.3f s%8.1f MB'):format(what, os.clock() - start_s, peak_mb() - before_mb))
else
  for _, name in ipairs { 'cluster', 'decoder', 'chain' } do
    os.execute(("'%s' '%s' %s"):format(core.program(), arg[0], name))
  end
end
