-- trinity study fidelity moe_layer: a layer of experts under the dispatchers of Megatron-LM.

local core = require 'trinity.core'
local json = require 'trinity.base.json'

local head = 'case,gpus,ep,dispatcher,precision,sequence,micro_batch,hidden,moe_ffn,experts,top_k,shared_ffn,forward_ms,'
  .. 'backward_ms,max_allocated_bytes\n'
local matmuls = 'system,dtype,kernel,m,n,k,time_us\nh100_sxm,bfloat16,k,8192,8192,8192,1400\nh100_sxm,fp8,k,8192,8192,8192,1000\n'

local function written(text)
  local path = temporary '.csv'
  core.write_file(path, text)
  return path
end

local function rows_of(...)
  local said = trinity_says(("study fidelity moe_layer --json --rows '%s' --matmuls '%s'"):format(
    written(head .. table.concat({ ... }, '\n') .. '\n'), written(matmuls)), 0)
  return json.decode(said:match '{.*}').rows
end

describe('a layer of experts', function()
  it('takes longer with all copies sent than with DeepEP, and with DeepEP than with HybridEP', function()
    local rows = rows_of('deepseek_a,8,8,alltoall,bf16,4096,1,7168,2048,32,8,2048,7,10,2e9',
      'deepseek_b,8,8,deepep,bf16,4096,1,7168,2048,32,8,2048,7,10,2e9',
      'deepseek_c,8,8,hybridep,bf16,4096,1,7168,2048,32,8,2048,7,10,2e9')
    for i = 2, 3 do
      expect(rows[i].predicted.forward_s):below(rows[i - 1].predicted.forward_s)
      expect(rows[i].predicted.backward_s):below(rows[i - 1].predicted.backward_s)
    end
    -- matmuls of 1.9 TFLOP forward at no more than the peak
    expect(4 * 4096 * 8 * 7168 * 2048 / 989e12):below(rows[3].predicted.forward_s)
  end)
  it('holds rows as sent, as received and padded while experts compute, with all copies sent', function()
    local rows = rows_of('deepseek_a,8,8,alltoall,fp8,4096,1,7168,2048,32,8,2048,7,10,2e9',
      'deepseek_b,8,8,hybridep,fp8,4096,1,7168,2048,32,8,2048,7,10,2e9')
    expect(rows[2].predicted.peak_bytes + 4096 * 8 * 7168 * 2):below(rows[1].predicted.peak_bytes)
  end)
  it('sends all bytes of every copy of a token where no dispatcher joins them', function()
    local cluster, devices = require('trinity').cluster 'dgx_h100', { 1, 2 }
    expect(require('trinity.stragglers.dispatcher').message_s('alltoall', cluster, devices,
      { tokens = 7, token_bytes = 3, top_k = 2 }))
      :equals(cluster:collective({ kind = 'all_to_all', devices = devices, bytes = 7 * 3 * 2 }).time_s)
  end)
  it_shared("is within 10 % of Megatron-LM's tests", function()
    local said = trinity_says(("study fidelity moe_layer --json --rows '%s' --matmuls '%s'"):format(
      shared 'megatron-golden/moe_layer.csv', shared 'aiconfigurator/gemm.csv.gz'), 0)
    for _, row in ipairs(json.decode(said:match '{.*}').rows) do
      for _, name in ipairs { 'forward_s', 'backward_s', 'peak_bytes' } do
        expect(row.predicted[name] / row.measured[name]):near(1, 0.1)
      end
    end
  end)
end)
