-- trinity fidelity published --rows: rows as problems, what they leave open, constants.

require 'trinity' -- which gives problems their methods

local constants = require 'trinity.fidelity.published_constants'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local parts = require 'trinity.fidelity.published_parts'
local published_row = require 'trinity.fidelity.published_row'
local step = require 'trinity.fidelity.published_step'
local util = require 'trinity.base.util'

local columns = { 'id', 'model', 'parameters_b', 'hidden', 'layers', 'heads', 'kv_heads', 'ffn', 'vocab', 'experts',
  'experts_per_token', 'sequence', 'global_batch', 'micro_batch', 'gpus', 'gpu', 'tp', 'pp', 'vpp', 'dp', 'cp', 'ep', 'zero',
  'recompute', 'precision', 'value', 'unit', 'source', 'note' }
local small = { id = 'r1', model = 'GPT', parameters_b = '0.09', hidden = '1024', layers = '6', heads = '8', ffn = '4096',
  vocab = '8192', sequence = '1024', global_batch = '64', micro_batch = '2', gpus = '8', gpu = 'H100-80GB', tp = '2', pp = '2',
  dp = '2', precision = 'bf16', value = '1000', unit = 'tokens_per_s_per_gpu' }

local function text_of(...)
  local lines = { table.concat(columns, ',') }
  for _, changes in ipairs { ... } do
    lines[#lines + 1] = table.concat(util.map(columns, function(name) return changes[name] or small[name] or '' end), ',')
  end
  return table.concat(lines, '\n') .. '\n'
end

local function file_of(...)
  local path = temporary '.csv'
  core.write_file(path, text_of(...))
  return path
end

local function row_of(changes) return published_row.all(file_of(changes or {}))[1] end

local function values_of(row) return constants.values(row.family) end
local function told(changes)
  local row = row_of(changes)
  return step.predict(row, values_of(row))
end

local function has(list, words)
  for _, line in ipairs(list) do if line:find(words, 1, true) then return true end end
  return false
end

describe('what a row leaves open', function()
  it('is assumed, and said', function()
    local row = row_of { recompute = '', zero = '', micro_batch = '', vpp = '', heads = '', vocab = '' }
    expect(row.plan.recompute):equals 'none'
    expect(row.plan.shard):equals(1)
    expect(row.plan.micro_batch):equals(1)
    expect(row.network.vocab):equals(51200)
    for _, words in ipairs { 'no recomputation', 'ZeRO 1', 'micro-batches of one', 'heads of 128', 'vocabulary',
      '3 model chunks' } do expect(has(row.assumed, words)):truthy() end
  end)
  it('is less of runs of 2021: no chunks, four sequences where the pipeline is short', function()
    local old = row_of { gpu = 'A100-80GB', micro_batch = '', precision = 'fp16', recompute = 'full' }
    expect(old.plan.virtual):equals(1)
    expect(old.plan.micro_batch):equals(4)
    expect(old.plan.sequence_parallel):equals(false)
  end)
  it('of torchtitan: as many micro-batches as stages', function()
    local row = row_of { gpu = 'H100-96GB', micro_batch = '', zero = '3', note = 'Interleaved 1F1B' }
    expect(row.plan.virtual):equals(2)
    expect(row.plan.micro_batches):equals(4)
    expect(row.plan.shard):equals(1)
  end)
  it('no interleaving where micro-batches do not fill the pipeline', function()
    expect(row_of { vpp = '3', micro_batch = '32' }.plan.virtual):equals(1)
  end)
  it('a gate: by the number of weights', function()
    expect(row_of {}.network.gated):equals(false)
    expect(row_of { ffn = '2752', parameters_b = '0.0926' }.network.gated):equals(true)
  end)
end)

describe('units', function()
  it('all come to tokens per second and GPU', function()
    expect(row_of { value = '1', unit = 's_per_iteration' }.measured):near(64 * 1024 / 8, 1e-6)
    expect(row_of { value = '800', unit = 'tokens_per_s_total' }.measured):near(100, 1e-9)
    local flops = 96 * 6 * 1024 ^ 2 * (1 + 1 / 6 + 8192 / (16 * 6 * 1024))
    expect(row_of { value = '1', unit = 'hardware_tflops_per_gpu' }.measured):near(1e12 / flops, 1e-6)
    local model = 6 * (6 * (4 * 1024 ^ 2 + 2 * 1024 * 4096) + 8192 * 1024) + 12 * 6 * 1024 * 1024
    expect(row_of { value = '1', unit = 'model_tflops_per_gpu' }.measured):near(1e12 / model, 1e-6)
    expect(row_of { value = '' }.measured):equals(nil)
  end)
end)

describe('a prediction', function()
  it('is problem:evaluate of the strategy', function()
    local row = row_of()
    local problem, strategy = step.problem(row, values_of(row))
    expect(told().tokens_per_s_per_gpu):near(64 * 1024 / 8 / problem:evaluate(strategy).step_time_s, 1e-6)
  end)
  it('moves when links have half of their bandwidth, and with every constant', function()
    local row = row_of()
    local before = step.predict(row, values_of(row)).tokens_per_s_per_gpu
    local spec = step.cluster(row, values_of(row))
    for _, link in ipairs(spec.links) do link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s / 2 end
    expect(step.predict(row, values_of(row), spec).tokens_per_s_per_gpu < before):truthy()
    for _, name in ipairs { 'compute_efficiency', 'attention', 'memory_efficiency', 'inside_share' } do
      local values = util.merged(values_of(row), { [name] = values_of(row)[name] * 1.2 })
      expect(step.predict(row, values).tokens_per_s_per_gpu > before):truthy()
    end
  end)
  it('of a rack has 72 GPUs behind one switch: equal parts of racks, else a last one with the remainder', function()
    for gpus, machines in pairs { [72] = 'gb200_nvl72:72x1', [144] = 'gb200_nvl72:72x2', [256] = 'gb200_nvl72:64x4',
      [2496] = 'gb200_nvl72:64x39', [73] = 'gb200_nvl72:72x1+gb200_nvl72:1' } do -- in any order
      expect(step.machines('gb200_nvl72', gpus)):equals(machines)
    end
    local wide = { gpu = 'GB200', tp = '1', pp = '1', vocab = '1024' }
    local function speed(gpus)
      return told(util.merged(wide, { gpus = gpus, dp = gpus, global_batch = 2 * gpus })).tokens_per_s_per_gpu
    end
    expect(speed(72)):near(speed(64), 0.1 * speed(64))
  end)
  it('is faster with 8 bits than with 16, and with 4 than with 8', function()
    local wide = { gpu = 'GB200', hidden = '8192', heads = '64', ffn = '32768', layers = '2', parameters_b = '', tp = '1',
      pp = '1', dp = '8', vocab = '1024' }
    local function speed(precision) return told(util.merged(wide, { precision = precision })).tokens_per_s_per_gpu end
    expect(speed 'mxfp8' > 1.1 * speed 'bf16'):truthy()
    expect(speed 'nvfp4' > 1.1 * speed 'mxfp8'):truthy()
  end)
  it('has the gate of experts and what it multiplies in one kernel, whose gradients need no sum', function()
    local row = row_of { experts = '8', experts_per_token = '2', ffn = '512', tp = '1', pp = '1', dp = '1', gpus = '1', gpu = 'GB200',
      global_batch = '2', precision = 'mxfp8' }
    local problem = step.problem(row, values_of(row))
    local times, found = problem:operator_times(1), {}
    for i = 1, problem.graph.operators do
      local name = problem.graph:operator(i).name:match '^layer_2/feed_forward/experts/(.*)$'
      if name then found[name] = times[i] end
    end
    expect(found['input/grad_sum']):equals(0)
    expect(found.gate):equals(found.up)
    expect(found.gate > 0 and found['gate/grad'] > found.gate):truthy()
  end)
  it('of torchtitan hides messages under AsyncTP', function()
    local plain, async = row_of { gpu = 'H100-96GB', note = 'torch.compile' }, row_of { gpu = 'H100-96GB', note = 'AsyncTP torch.compile' }
    local values = util.merged(values_of(plain), { async = 1 })
    local function speed(row, changes) return step.predict(row, util.merged(values, changes)).tokens_per_s_per_gpu end
    expect(speed(async)):equals(speed(plain))
    expect(speed(async, { async = 2 })):equals(speed(plain, { inside_share = 2 * values.inside_share }))
    expect(speed(plain, { async = 2 })):equals(speed(plain))
  end)
  it('of torchtitan copies operands and gradients to FP8 in both orders, by row in more bytes', function()
    local llama = { gpu = 'H100-96GB', hidden = '4096', heads = '32', kv_heads = '8', ffn = '14336', vocab = '128256',
      layers = '32', parameters_b = '8.03', pp = '1', tp = '1', dp = '8' }
    local one = row_of(util.merged(llama, { precision = 'fp8' }))
    -- products read 3 x 4096 + 14336 values, gradients are 6144 + 4096 + 2 x 14336 + 4096
    local counted, logits = 3 * 26624, 6 * 128256 / 32
    expect(step.cast_share(one)):near((counted + logits) / (7 * (26624 + 43008) + logits), 1e-12)
    local split = util.merged(llama, { tp = '8', dp = '1' })
    local by_row = row_of(util.merged(split, { precision = 'fp8 rowwise' }))
    -- of a split in eight, what the halves of layers begin with is whole
    expect(step.cast_share(by_row)):near((counted / 8 + logits / 8) / (8 * (2 * 4096 + 18432 / 8 + 34816 / 8 + 8192) + logits / 8),
      1e-12)
  end)
  it('of torchtitan keeps every second product of a layer, from its first on', function()
    local row = row_of { gpu = 'H100-96GB', recompute = 'selective' }
    local again, graph, found = step.recompute(row, 'selective'), step.graph(row), {}
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if op.phase == 'forward' and op.name:find '^layer_[12]/' and (op.type == 'Gemm' or op.type == 'Attention') then
        found[#found + 1] = again(op) and 'again' or 'kept'
      end
    end
    local of_layer = 'kept again kept kept again kept again ' -- queries, keys, values, attention, output, two of the network
    expect(table.concat(found, ' ')):equals((of_layer .. of_layer):gsub(' $', ''))
    expect(step.recompute(row, 'full')):equals 'full'
    expect(step.recompute(row_of { recompute = 'selective' }, 'selective')):equals 'selective'
  end)
  it('of FSDP shares states out over parts of sequences, too', function()
    local parted = row_of { gpu = 'H100-96GB', zero = '3', cp = '4', tp = '1', pp = '1', dp = '2' }
    local whole = row_of { gpu = 'H100-96GB', zero = '3', cp = '1', tp = '1', pp = '1', dp = '8', sequence = '256',
      global_batch = '256' }
    expect(step.ring(parted).data):equals(8)
    local bytes = step.predict(whole, values_of(whole)).memory_bytes
    expect(step.predict(parted, values_of(parted)).memory_bytes):near(bytes, 0.05 * bytes) -- messages come at other times
  end)
  it('of rings in stages is that of shorter sequences, whose attention sees as many keys', function()
    local ring = row_of { cp = '2', gpus = '16', precision = 'bf16' }
    expect(step.has_ring(ring)):equals(false)
    local of = step.ring(ring)
    expect(of.parts == 1 and of.sequence == 512 and of.data == 4 and of.share == 0.5):truthy()
    local alone = row_of { cp = '2', tp = '1', pp = '1', gpus = '4', sequence = '32768', hidden = '4096', heads = '32', ffn = '16384',
      parameters_b = '' }
    expect(step.ring(alone).parts):equals(2)
    local parted = step.predict(alone, values_of(alone)).tokens_per_s_per_gpu
    local original = step.has_ring
    step.has_ring = function() return false end
    local folded = step.predict(alone, values_of(alone)).tokens_per_s_per_gpu
    step.has_ring = original
    expect(folded / parted):near(1, 0.1)
    expect(folded > parted):truthy() -- the messages are left out
  end)
  it('of the V100s of a DGX-1', function() expect(told { gpu = 'V100-16GB', precision = 'fp16' }.tokens_per_s_per_gpu > 0):truthy() end)
  it('of mixtures takes what the host takes, where that is more', function()
    local row = row_of { experts = '8', experts_per_token = '2', ffn = '512', tp = '1', pp = '1', dp = '8', ep = '8', gpu = 'B200',
      precision = 'mxfp8' }
    local function seconds(changes)
      return 1 / step.predict(row, util.merged(values_of(row), changes)).tokens_per_s_per_gpu
    end
    local slow, slower = seconds { expert_dispatch_s = 1e-3 }, seconds { expert_dispatch_s = 2e-3 }
    expect(slower / slow):near(2, 0.2)
    expect(seconds { routing = 0.02, expert_dispatch_s = 1e-7 } > seconds { routing = 0.04, expert_dispatch_s = 1e-7 }):truthy()
  end)
  it('of experts that are shared out, and of DeepSeek\'s layers', function()
    local experts = { experts = '8', experts_per_token = '2', ffn = '512', tp = '1', pp = '1', dp = '8', ep = '8', gpu = 'GB200',
      precision = 'mxfp8' }
    expect(told(experts).tokens_per_s_per_gpu > 0):truthy()
    local recent = util.merged(experts, { source = 'NeMo 26.06.01' })
    expect(told(recent).tokens_per_s_per_gpu > told(experts).tokens_per_s_per_gpu):truthy()
    expect(row_of(util.merged(experts, { model = 'DeepSeekV3' })).network.deepseek.expert_ffn):equals(2048)
  end)
  it('of mixtures goes by what recipes record in CUDA graphs', function()
    local experts = { experts = '32', experts_per_token = '2', ffn = '512', pp = '2', tp = '1', dp = '8', ep = '8', gpus = '16',
      gpu = 'B200', precision = 'mxfp8' }
    local function row_with(...) return row_of(util.merged(experts, ...)) end
    local recorded = util.map({ {}, { gpu = 'GB300' }, { pp = '1', dp = '16' }, { source = 'NeMo 26.06' },
      { source = 'NeMo 26.06', gpu = 'B300', precision = 'bf16' }, { source = 'NeMo 26.04', gpu = 'GB200' },
      { source = 'NeMo 26.08', model = 'DeepSeekV3' } }, function(changes) return row_with(changes).recorded end)
    expect(table.concat(recorded, ' ')):equals 'none attention attention all none attention attention'
    expect(row_of {}.recorded):equals(nil)
    expect(has(row_with({}).assumed, 'no kernel is in a CUDA graph')):truthy()
    local function seconds(row, layer_dispatch_s)
      return 1 / step.predict(row, util.merged(values_of(row), { layer_dispatch_s = layer_dispatch_s })).tokens_per_s_per_gpu
    end
    local bare, rack = row_with {}, row_with { gpu = 'GB300' }
    expect(seconds(bare, 2e-3) > seconds(bare, 1e-3)):truthy()
    expect(seconds(rack, 2e-3)):equals(seconds(rack, 1e-3))
  end)
  it('for fits takes less work and comes to the same: few micro-batches, one group of replicas of experts', function()
    local row = row_of { micro_batch = '1', global_batch = '256' }
    local whole, short = step.predict(row, values_of(row)), step.predict(row, values_of(row), nil, nil, true)
    expect(short.tokens_per_s_per_gpu):near(whole.tokens_per_s_per_gpu, 1e-3 * whole.tokens_per_s_per_gpu)
    local experts = row_of { experts = '8', experts_per_token = '2', ffn = '512', tp = '1', pp = '1', dp = '8', ep = '2', gpu = 'GB200',
      precision = 'mxfp8' }
    local folded = step.folded(experts)
    expect(folded.plan.data == 2 and folded.plan.gpus == 2 and folded.plan.micro_batches == experts.plan.micro_batches):truthy()
    expect(step.predict(experts, values_of(experts), nil, nil, true).tokens_per_s_per_gpu
      / step.predict(experts, values_of(experts)).tokens_per_s_per_gpu):near(1, 0.15)
    expect(step.folded(row)):equals(row)
  end)
  it('recomputes where the plan of a network without fused attention cannot fit', function()
    local row = row_of { gpu = 'A100-80GB', hidden = '12288', heads = '96', ffn = '49152', layers = '8', parameters_b = '',
      micro_batch = '8', tp = '1', pp = '1', dp = '8', sequence = '2048' }
    expect(step.predict(row, values_of(row)).recompute):equals 'full'
    expect(told().recompute):equals 'none'
  end)
end)

describe('constants', function()
  it('are eight a kind of GPU at most, within bounds that hold where the fit starts', function()
    for _, family in ipairs(constants.families) do
      local fitted = constants.fitted().values[family]
      expect(#constants.list(family) <= 8):truthy()
      for _, one in ipairs(constants.list(family)) do
        expect(one.least < one.start and one.start < one.most):truthy()
        expect(fitted[one.name] >= one.least and fitted[one.name] <= one.most):truthy()
      end
    end
  end)
  it('parts of a step tell where it goes when they move', function()
    local row = row_of { hidden = '4096', heads = '32', ffn = '16384', parameters_b = '' }
    local before = values_of(row)
    local shares
    local found = step.predict(row, before, nil, function(problem, recompute)
      shares = parts.of(row, problem, before, recompute)
    end)
    for _, name in ipairs { 'compute_efficiency', 'inside_share', 'attention' } do
      local after = util.merged(before, { [name] = before[name] * 1.1 })
      local really = found.tokens_per_s_per_gpu / step.predict(row, after).tokens_per_s_per_gpu
      expect(parts.factor(row, shares, before, after)):near(really, 0.02)
    end
  end)
  it('are fitted to the rows there and no others', function()
    local saved = temporary '.lua'
    trinity_says(("fidelity published --rows '%s' --fit --save '%s'"):format(file_of({ value = '30000' }), saved), 0)
    local fitted = dofile(saved)
    expect(table.concat(fitted.rows, ' ')):equals 'r1'
    expect(fitted.values.gb300.mxfp8):near(constants.values('gb300', constants.fitted().values.gb300).mxfp8, 1e-3)
  end)
  it('of some groups of rows are fitted alone, and so is what is left out; errors of rows are recorded', function()
    local path, saved = file_of({ value = '30000' }, { id = 'r2', value = '30000', gpu = 'GB300' }), temporary '.lua'
    trinity_says(("fidelity published --rows '%s' --fit --only 'GB300, dense' --save '%s'"):format(path, saved), 0)
    local before, after = constants.fitted(), dofile(saved)
    expect(after.values.h100.attention):near(before.values.h100.attention, 1e-9)
    expect(after.values.gb300.compute_efficiency ~= before.values.gb300.compute_efficiency):truthy()
    trinity_says(("fidelity published --rows '%s' --left_out --only H100 --record '%s'"):format(path, saved), 0)
    local own
    for _, one in ipairs(dofile(saved)) do if one.id == 'r1' then own = one end end
    expect(own.group):equals 'H100-80GB, dense'
    local values = constants.values('h100', before.values.h100)
    expect(own.fitted):near(step.predict(row_of {}, values).tokens_per_s_per_gpu / 30000 - 1, 1e-3)
    expect(own.left_out ~= own.fitted):truthy()
    for _, option in ipairs { '--fit', '--left_out' } do
      trinity_says(("fidelity published --rows '%s' %s --only nothing"):format(path, option), 1, "option '%-%-only': no group of "
        .. "rows has 'nothing' in its name %(groups: GB300, dense; H100%-80GB, dense%)")
    end
  end)
end)

describe('recorded errors', function()
  it('are of all rows that the constants were fitted to', function()
    local recorded = {}
    for _, one in ipairs(constants.errors()) do recorded[one.id] = true end
    for _, id in ipairs(constants.fitted().rows) do expect(id .. tostring(recorded[id])):equals(id .. 'true') end
  end)
  it_shared('are what the command says of rows on at most 64 GPUs', function()
    local path, off, kept = shared 'llm-published/throughput.csv', {}, {}
    for _, one in ipairs(constants.errors()) do off[one.id] = one.fitted end
    for _, row in ipairs(published_row.all(path, true)) do kept[row.id] = row.plan and row.plan.gpus <= 64 and off[row.id] end
    local lines = {}
    for line in core.read_file(path):gmatch '[^\n]+' do
      if #lines == 0 or kept[line:match '^[^,]+'] then lines[#lines + 1] = line end
    end
    local some = temporary '.csv'
    core.write_file(some, table.concat(lines, '\n') .. '\n')
    local rows = json.decode(trinity_says(("fidelity published --rows '%s' --json"):format(some), 0):match '{.*}').rows
    expect(#rows >= 60):truthy()
    for i, row in ipairs(published_row.all(some)) do
      expect(rows[i].predicted_tokens_per_s_per_gpu / row.measured - 1):near(off[row.id], 2e-3)
    end
  end)
end)

describe('the command', function()
  it('tells rows without a value, in order, by their id', function()
    local path = file_of({ id = 'b', value = '' }, { id = 'a', value = '', gpus = '4', dp = '1' })
    local rows = json.decode(trinity_says(("fidelity published --rows '%s' --json"):format(path), 0)).rows
    expect(rows[1].row .. rows[2].row):equals 'ba'
    expect(rows[1].predicted_tokens_per_s_per_gpu > 0 and rows[1].predicted_memory_bytes > 0):truthy()
    trinity_says(("fidelity published --rows '%s'"):format(path), 0, 'b: assumed: ')
    trinity_says(("fidelity published --rows '%s'"):format(file_of {}), 0, 'predicted rows')
  end)
  it('tells the others where a row is refused, by its columns or its network', function()
    local path = file_of({ id = 'a', dp = '3' }, { id = 'b', hidden = '1025' }, { id = 'c' })
    local out = trinity_says(("fidelity published --rows '%s' --json"):format(path), 0)
    local rows = json.decode(out:match '{.*}').rows
    expect(rows[1].refused):matches 'line 2: dp 3 x tp 2 x pp 2 x cp 1 is not 8 GPUs$'
    expect(rows[2].refused):matches 'line 3: attention .*: a width of 1025'
    expect(rows[3].row):equals 'c'
    expect(rows[3].predicted_tokens_per_s_per_gpu > 0):truthy()
    trinity_says(("fidelity published --rows '%s'"):format(path), 0, 'warning: .*line 2: dp 3 x tp 2')
  end)
  it('names what is wrong in one sentence', function()
    local function refused(changes, words)
      trinity_says(("fidelity published --rows '%s'"):format(file_of(changes)), 1, words)
    end
    refused({ gpu = 'H10-80GB' }, "line 2: column 'gpu': unknown GPU 'H10%-80GB', did you mean 'H100%-80GB'")
    refused({ precision = 'fp7' }, "column 'precision': unknown precision 'fp7'")
    refused({ dp = '3' }, 'dp 3 x tp 2 x pp 2 x cp 1 is not 8 GPUs')
    refused({ hidden = 'wide' }, "column 'hidden': expected a number")
    refused({ micro_batch = '5' }, "column 'micro_batch': 32 sequences of a replica are no multiple of 5")
    refused({ global_batch = '63' }, '63 sequences do not divide over 2 replicas')
    refused({ unit = 'miles' }, "unknown unit 'miles'")
    refused({ recompute = 'some' }, "expected none, selective or full, got string 'some'")
    refused({ zero = '5' }, "column 'zero': expected 0 to 3")
    refused({ precision = 'nvfp4' }, "column 'precision': H100%-80GB has no such arithmetic, got 'nvfp4'")
    refused({ gpu = 'A100-80GB', precision = 'fp8' }, 'A100%-80GB has no such arithmetic')
    refused({ pp = '8', dp = '1', gpus = '16' }, "column 'pp': expected at most 6 %(layers%), got 8")
    refused({ tp = '3', dp = '2', gpus = '12' }, "column 'tp': expected a divisor of 8 %(heads%), got 3")
    refused({ experts = '4', experts_per_token = '5' }, "column 'experts_per_token': expected at most 4 %(experts%), got 5")
    refused({ experts = '1.5' }, "column 'experts': expected a whole number from 1")
    refused({ value = '-3' }, "column 'value': expected more than 0")
    refused({ parameters_b = '-8' }, "column 'parameters_b': expected more than 0, got string '%-8'")
    refused({ hidden = '1025' }, 'line 2: attention .*: a width of 1025')
    trinity_says('fidelity published', 2, "option '%-%-rows' or '%-%-memory' is missing")
  end)
end)
