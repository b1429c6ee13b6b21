-- A layer of experts under the dispatchers of Megatron-LM, against its functional tests (tests/lua/support/moe_layer.lua).

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local moe_layer = dofile(root .. '/tests/lua/support/moe_layer.lua')

local function alone()
  local path = temporary '.csv'
  core.write_file(path, 'system,dtype,kernel,m,n,k,time_us\nh100_sxm,bfloat16,k,8192,8192,8192,1400\n'
    .. 'h100_sxm,fp8,k,8192,8192,8192,1000\n')
  return moe_layer.cluster(path)
end

--- A layer of DeepSeek-V3's widths.
local function predicted(dispatcher, float8, cluster)
  return moe_layer.predicted({ ep = 8, dispatcher = dispatcher, float8 = float8, is_deepseek = true, sequence = 4096,
    micro_batch = 1, hidden = 7168, moe_ffn = 2048, experts = 32, top_k = 8 }, cluster)
end

describe('a layer of experts', function()
  it('takes longer with all copies sent than with DeepEP, and with DeepEP than with HybridEP', function()
    local cluster, before = alone(), nil
    for _, dispatcher in ipairs { 'alltoall', 'deepep', 'hybridep' } do
      local now = predicted(dispatcher, false, cluster)
      if before then
        expect(now.forward_s):below(before.forward_s)
        expect(now.backward_s):below(before.backward_s)
      end
      before = now
    end
    -- matmuls of 1.9 TFLOP forward at no more than the peak
    expect(4 * 4096 * 8 * 7168 * 2048 / 989e12):below(before.forward_s)
  end)
  it('holds rows as sent, as received and padded while experts compute, with all copies sent', function()
    local cluster = alone()
    local joined = predicted('hybridep', true, cluster)
    expect(joined.peak_bytes + 4096 * 8 * 7168 * 2):below(predicted('alltoall', true, cluster).peak_bytes)
  end)
  it('sends all bytes of every copy of a token where no dispatcher joins them', function()
    local cluster, devices = require('trinity').cluster 'dgx_h100', { 1, 2 }
    expect(require('trinity.stragglers.dispatcher').message_s('alltoall', cluster, devices,
      { tokens = 7, token_bytes = 3, top_k = 2 }))
      :equals(cluster:collective({ kind = 'all_to_all', devices = devices, bytes = 7 * 3 * 2 }).time_s)
  end)
  it_shared("is within 10 % of Megatron-LM's tests in both passes and in memory", function()
    local path, cluster = shared 'megatron-golden/moe_layer.csv', moe_layer.cluster(shared 'aiconfigurator/gemm.csv.gz')
    for _, row in ipairs(csv.read(path)) do
      local one = { dispatcher = row.dispatcher, float8 = row.precision:find '^fp8' ~= nil,
        is_deepseek = row.case:find '^deepseek' ~= nil }
      for _, name in ipairs { 'ep', 'sequence', 'micro_batch', 'hidden', 'moe_ffn', 'experts', 'top_k' } do
        one[name] = csv.whole(path, row, name)
      end
      local found = moe_layer.predicted(one, cluster)
      expect(found.forward_s / row.forward_ms * 1e3):near(1, 0.1)
      expect(found.backward_s / row.backward_ms * 1e3):near(1, 0.1)
      expect(found.peak_bytes / row.max_allocated_bytes):near(1, 0.1)
    end
  end)
end)
