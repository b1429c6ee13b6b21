-- trinity study fidelity golden: tests of Megatron-LM become strategies, whose account is the prediction.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local head = 'case,family,platform,environment,gpus,agrees,mem_allocated_bytes,mem_max_allocated_bytes,tp,pp,vpp,cp,ep,etp,'
  .. 'dp,micro_batch,global_batch,sequence,layers,hidden,heads,experts,top_k,moe_ffn,tied,precision,sequence_parallel,'
  .. 'distributed_optimizer,recompute,transformer_impl,attention_backend,deterministic,pipeline_layout,mtp_layers'

local order = {}
for name in head:gmatch '[^,]+' do order[#order + 1] = name end

--- A row of a small network with these columns in place of the defaults.
local function line(changes)
  local row = { case = 'small', family = 'gpt', platform = 'dgx_h100', environment = 'dev', gpus = '8', agrees = 'yes',
    mem_allocated_bytes = '1e9', mem_max_allocated_bytes = '2e9', tp = '1', pp = '1', dp = '8', micro_batch = '1',
    global_batch = '16', sequence = '128', layers = '4', hidden = '128', heads = '4', tied = '1', precision = 'bf16',
    deterministic = '1', transformer_impl = 'transformer_engine' }
  for name, value in trinity.system.sorted_pairs(changes) do row[name] = value end
  local cells = {}
  for i, name in ipairs(order) do cells[i] = row[name] or '' end
  return table.concat(cells, ',')
end

local function file_of(...)
  local path, lines = temporary '.csv', { head }
  for _, changes in ipairs { ... } do lines[#lines + 1] = line(changes) end
  core.write_file(path, table.concat(lines, '\n') .. '\n')
  return path
end

local function told(...)
  local said = trinity_says(("study fidelity golden --json --quiet --run none --rows '%s'"):format(file_of(...)), 0)
  return json.decode(said:match '{.*}').rows
end

local mib = 2 ^ 20

describe("tests of Megatron-LM", function()
  it('have weights, gradients, states and workspaces as resting bytes', function()
    local row = told({})[1]
    local vocabulary = 50304
    local weights = vocabulary * 128 + 128 * 128 + 4 * (12 * 128 ^ 2 + 13 * 128) + 2 * 128
    -- bfloat16 weights, float32 gradients, weights and two averages: 18 bytes; cuBLAS twice and Transformer Engine
    expect(row.resting_bytes):equals(18 * weights + 3 * 32 * mib)
    expect(row.peak_bytes > row.resting_bytes):truthy()
    -- nothing of what PyTorch's allocator does not give out
    expect(row.owners.framework):equals(3 * 32 * mib)
  end)
  it('shard states over replicas, and keep what a pipeline left', function()
    local rows = told({ distributed_optimizer = '1' }, { pp = '2', dp = '4' }, {})
    local states = rows[3].resting_bytes - 3 * 32 * mib
    expect(rows[1].resting_bytes - 3 * 32 * mib):near(states * (6 + 12 / 8) / 18, states / 1e3)
    local owners, left = rows[2].owners, 2 * 128 * 128 * 2 -- the input received last and its gradient
    expect(rows[2].resting_bytes):equals(owners.weights + owners.gradients + owners.optimizer + owners.framework + left)
  end)
  it('keep gradients in 16 bits and a copy in float32 in float16', function()
    local rows = told({}, { precision = 'fp16' })
    expect(rows[2].resting_bytes - rows[1].resting_bytes):near((rows[1].owners.gradients / 4) * 2, 1)
    expect(rows[2].owners.gradients):equals(rows[1].owners.gradients / 2)
  end)
  it('of what A100 keep less than H100 is their workspaces', function()
    local rows = told({ deterministic = '0' }, { deterministic = '0', platform = 'dgx_a100' })
    expect(rows[1].resting_bytes - rows[2].resting_bytes):equals(3 * 32 * mib - 2 * 8320 * 1024 - 4 * mib)
  end)
  it('hold logits twice in float32 where the loss is compiled', function()
    local rows = told({ sequence = '1024' }, { sequence = '1024', case = 'cross_entropy_loss_fusion' })
    expect(rows[2].peak_bytes - rows[1].peak_bytes):near(4 * 1024 * 50304, 4 * 1024 * 50304 / 100)
  end)
  it('have layouts, experts and tokens beyond the next', function()
    local rows = told({ family = 'moe', experts = '8', top_k = '2', moe_ffn = '64', ep = '4', etp = '1', tp = '2', dp = '2',
      pp = '2', global_batch = '8', sequence_parallel = '1', pipeline_layout = 'Et*2|t|tmL|L', mtp_layers = '1', tied = '0' })
    expect(rows[1].refused):equals(nil)
    expect(rows[1].owners.framework):equals((3 + 4) * 32 * mib) -- of grouped matmuls, too
  end)
  it('say why a row is refused, which counts as half', function()
    local path = file_of({ dp = '4' }, { platform = 'dgx_x' }, { recompute = 'selective:[moes]' }, { agrees = 'no' },
      { family = 't5' })
    local said = trinity_says(("study fidelity golden --quiet --run none --rows '%s'"):format(path), 0)
    expect(said):matches 'dp 4 x tp 1 x pp 1 x cp 1 is not 8 GPUs'
    expect(said):matches "column 'platform': expected dgx_a100, .* or dgxh100_dgxc, got string 'dgx_x'"
    expect(said):matches "recomputed module 'moes'"
    expect(said):matches 'gpt, peak +3 +50.0 %%'
  end)
end)
