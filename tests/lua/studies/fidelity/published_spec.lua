-- trinity study fidelity published --rows: rows as problems, what they leave open, constants.

local fitted = require 'studies.fidelity.fitted'
local case = require 'studies.fidelity.case'
local constants = require 'trinity.cluster.constants'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local models = require 'trinity.graph.model'
local published = require 'studies.fidelity.published'
local published_row = require 'studies.fidelity.published_row'
local runtimes = require 'trinity.cluster.runtimes'
local util = require 'trinity.base.util'

local columns = { 'id', 'model', 'parameters_b', 'hidden', 'layers', 'heads', 'kv_heads', 'ffn', 'vocab', 'experts',
  'experts_per_token', 'sequence', 'global_batch', 'micro_batch', 'gpus', 'gpu', 'tp', 'pp', 'vpp', 'dp', 'cp', 'ep', 'zero',
  'recompute', 'precision', 'value', 'unit', 'source', 'verified', 'note' }
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

--- Tokens per second and GPU of a row with some of its kind's constants, or its runtime's fields, changed.
local function speed(row, changes, runtime)
  local one = row.case
  if changes then one = util.merged(one, { constants = { [row.kind] = changes } }) end
  if runtime then
    local own = type(one.runtime) == 'table' and one.runtime or { base = one.runtime }
    one = util.merged(one, { runtime = util.merged(own, runtime) })
  end
  return row.tokens / row.gpus / case.evaluate(one).step_time_s
end
local function told(changes) return published.prediction(row_of(changes)) end

--- Returns the fields of a row's case: measured, assumed, the case and the size of its buckets of gradients.
local function fields_of(row)
  local one = row.case
  local fields = { measured = ('%.9g'):format(row.measured), assumed = table.concat(row.assumed, '; '), cluster = one.cluster,
    bucket_bytes = runtimes.bucket_bytes(runtimes.read(one.runtime), one.strategy), runtime = case.lua_text(one.runtime) }
  for name, value in util.sorted_pairs(util.merged(one.model_options, one.strategy)) do fields[name] = case.lua_text(value) end
  return fields
end

describe('a row', function()
  it_golden('studies/rows', function()
    local lines, first = {}, {}
    for _, name in ipairs { 'rows', 'mlperf' } do
      for _, row in ipairs(published_row.all(('%s/tests/data/published/%s.csv'):format(root, name))) do
        local fields = fields_of(row)
        lines[#lines + 1] = '== ' .. row.id
        for field, value in util.sorted_pairs(fields) do
          if value ~= first[field] then lines[#lines + 1] = ('%s = %s'):format(field, value) end
        end
        if not next(first) then first = fields end -- what others say is what differs
      end
    end
    return table.concat(lines, '\n') .. '\n'
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
  it('is problem:evaluate of what its script says, digit by digit', function()
    local row = row_of { recompute = 'selective', gpu = 'H100-96GB', note = 'AsyncTP torch.compile', precision = 'fp8' }
    local problem = case.problem(row.case)
    local metrics = problem:evaluate(row.case.strategy)
    expect(published.prediction(row).predicted):equals(64 * 1024 / (metrics.step_time_s * 8))
    local path, rows = temporary '.lua', file_of {}
    core.write_file(path, trinity_says(("study fidelity published --rows '%s' --script r1 --run none"):format(rows), 0))
    local printed = trinity_says(path, 0)
    expect(tonumber(printed:match 'step_time_s (%S+)')):equals(case.evaluate(row_of().case).step_time_s)
    trinity_says(("study fidelity published --rows '%s' --script r2"):format(rows), 1, "no row 'r2', did you mean 'r1'")
  end)
  it('moves with every constant', function()
    local row = row_of()
    local before = speed(row)
    for _, name in ipairs { 'compute_efficiency', 'attention', 'memory_efficiency', 'inside_share' } do
      local values = constants.calibrated 'h100'
      expect(speed(row, { [name] = values[name] * 1.2 }) > before):truthy()
    end
  end)
  it('is faster with 8 bits than with 16, and with 4 than with 8', function()
    local wide = { gpu = 'GB200', hidden = '8192', heads = '64', ffn = '32768', layers = '2', parameters_b = '', tp = '1',
      pp = '1', dp = '8', vocab = '1024' }
    local function of(precision) return told(util.merged(wide, { precision = precision })).predicted end
    expect(of 'mxfp8' > 1.1 * of 'bf16'):truthy()
    expect(of 'nvfp4' > 1.1 * of 'mxfp8'):truthy()
  end)
  it('has what a recipe keeps on the host, and reduces gradients as its script says', function()
    local changes = { model = 'LLAMA3-70B', gpu = 'GB200', precision = 'fp8', tp = '1', pp = '1', dp = '8', zero = '3', layers = '80',
      source = 'Megatron-Bridge NeMo 25.11' }
    local row = row_of(changes)
    expect(row.case.strategy.activation_offload_fraction):equals(0.5)
    expect(table.concat(row.assumed, '\n')):matches 'activations of 40 layers are on the host'
    expect(row_of(util.merged(changes, { precision = 'bf16' })).case.strategy.activation_offload_fraction):equals(nil)
    local launcher = { precision = 'fp8', source = 'NeMo launcher examples README (NeMo 24.05)' }
    expect(row_of(launcher).case.model_options.gradient_dtype):equals 'bfloat16'
    expect(row_of(util.merged(launcher, { precision = 'bf16' })).case.model_options.gradient_dtype):equals 'float32'
  end)
  it('keeps a loss that was not compiled in float32', function()
    local function bytes(page)
      return told({ gpu = 'H100-96GB', vocab = '131072', verified = 'benchmarks/' .. page }).memory_bytes
    end
    expect(bytes 'llama3_h100_202412_torchtitan.md' > bytes 'asyncTP_llama3_h100_2025-06_torchtitan.md'):truthy()
  end)
  it('waits for the host, which updates weights of FP8 one by one', function()
    local tiny = { global_batch = '8', precision = 'fp8', tp = '1', pp = '1', dp = '8', micro_batch = '1' }
    local function seconds(changes, update_s)
      return 1 / speed(row_of(util.merged(tiny, changes)), nil, { update_s = update_s })
    end
    expect(seconds({}, 2e-3) / seconds({}, 1e-3)):near(2, 0.3)
    expect(seconds({ precision = 'bf16' }, 2e-3)):equals(seconds({ precision = 'bf16' }, 1e-3))
  end)
  it('of torchtitan keeps every second matmul of a layer, from its first on', function()
    local row = row_of { gpu = 'H100-96GB', recompute = 'selective' }
    local problem, found = case.problem(row.case), {}
    local again, graph = models.selective(problem.cluster), problem.graph
    for i = 1, graph.operators do
      local op = graph:operator(i)
      if op.phase == 'forward' and op.name:find '^layer_[12]/' and (op.type == 'Gemm' or op.type == 'Attention') then
        found[#found + 1] = again(op) and 'again' or 'kept'
      end
    end
    local of_layer = 'kept again kept kept again kept again ' -- queries, keys, values, attention, output, two of the network
    expect(table.concat(found, ' ')):equals((of_layer .. of_layer):gsub(' $', ''))
    expect(models.selective(case.problem(row_of({}).case).cluster)):equals(nil)
    local full = util.merged(row.case.strategy, { recompute = 'full' })
    local none = util.merged(row.case.strategy, { recompute = 'none' })
    local at = problem:evaluate(row.case.strategy).step_time_s
    expect(at > problem:evaluate(none).step_time_s and at < problem:evaluate(full).step_time_s):truthy()
  end)
  it('of mixtures takes what the host takes, but for what CUDA graphs hold', function()
    local experts = { experts = '32', experts_per_token = '2', ffn = '512', pp = '2', tp = '1', dp = '8', ep = '8', gpus = '16',
      precision = 'mxfp8' }
    local bare, rack = row_of(util.merged(experts, { gpu = 'B200' })), row_of(util.merged(experts, { gpu = 'GB300' }))
    local function seconds(row, name, value) return 1 / speed(row, { [name] = value }) end
    expect(seconds(bare, 'layer_dispatch_s', 2e-3) > seconds(bare, 'layer_dispatch_s', 1e-3)):truthy()
    expect(seconds(rack, 'layer_dispatch_s', 2e-3)):equals(seconds(rack, 'layer_dispatch_s', 1e-3))
    expect(seconds(rack, 'expert_dispatch_s', 2e-3) / seconds(rack, 'expert_dispatch_s', 1e-3)):near(2, 0.3)
  end)
  it('by the values of fits is the same', function()
    local row = row_of { micro_batch = '1', global_batch = '256' }
    local whole = published.prediction(row).predicted
    expect(published.prediction(row, fitted.values()).predicted):near(whole, 1e-9 * whole)
  end)
  it('recomputes where the plan of a network without fused attention cannot fit', function()
    expect(told({ gpu = 'A100-80GB', hidden = '12288', heads = '96', ffn = '49152', layers = '8', parameters_b = '',
      micro_batch = '8', tp = '1', pp = '1', dp = '8', sequence = '2048' }).recompute):equals 'full'
    expect(told().recompute):equals 'none'
  end)
end)

describe('constants', function()
  it('are eight a kind of GPU at most, within bounds that hold where the fit starts', function()
    for _, kind in ipairs(constants.kinds()) do
      local values, about = constants.calibrated(kind)
      expect(#about.fitted <= 8):truthy()
      for _, name in ipairs(about.fitted) do
        local one = constants.by_name[name]
        expect(one.least < one.start and one.start < one.most):truthy()
        expect(values[name] >= one.least and values[name] <= one.most):truthy()
      end
    end
  end)
  it('are fitted to the rows there and no others', function()
    local saved = temporary '.lua'
    trinity_says(("study fidelity published --rows '%s' --fit --save '%s'"):format(file_of({ value = '30000' }), saved), 0)
    local after, before = dofile(saved), require 'trinity.cluster.calibrated'
    expect(table.concat(json.read(saved .. '.json').rows.published, ' ')):equals 'r1'
    expect(after.kinds.gb300.values.mxfp8):near(before.kinds.gb300.values.mxfp8, 1e-3)
    expect(after.kinds.h100.values.compute_efficiency ~= before.kinds.h100.values.compute_efficiency):truthy()
  end)
  it('of some groups of rows are fitted alone; errors of what is left out are kept', function()
    local path, saved = file_of({ value = '30000' }, { id = 'r2', value = '30000', gpu = 'GB300' }), temporary '.lua'
    trinity_says(("study fidelity published --rows '%s' --fit --only 'GB300, dense' --save '%s'"):format(path, saved), 0)
    local before, after = require 'trinity.cluster.calibrated', dofile(saved)
    expect(after.kinds.h100.values.attention):near(before.kinds.h100.values.attention, 1e-9)
    trinity_says(("study fidelity published --rows '%s' --cross_validate --only H100 --save '%s'"):format(path, saved), 0,
      'every network predicted by constants that were fitted to the others')
    expect(json.read(saved .. '.json').errors.published['H100-80GB, dense, 16 bits'].rows):equals(1)
    local some = ("study fidelity published --rows '%s' --fit --parameters 'h100.fp8,gb300.mx' --save '%s'"):format(path, saved)
    trinity_says(some, 0)
    local one = dofile(saved).kinds
    expect(one.h100.values.attention):near(before.kinds.h100.values.attention, 1e-9)
    expect(one.gb300.values.compute_efficiency):near(before.kinds.gb300.values.compute_efficiency, 1e-9)
    trinity_says(("study fidelity published --rows '%s' --fit --parameters 'none'"):format(path), 1,
      "option '%-%-parameters': none has 'none' in its name %(there are: ")
    for _, option in ipairs { '--fit', '--cross_validate' } do
      trinity_says(("study fidelity published --rows '%s' %s --only nothing"):format(path, option), 1, "option '%-%-only': no group of "
        .. "rows has 'nothing' in its name %(groups: GB300, dense, 16 bits; H100%-80GB, dense, 16 bits%)")
    end
  end)
end)

describe('values as Lua text', function()
  it('are equal when they are read back, on lines of at most 118 columns', function()
    local values = { 0.1, 1 / 3, 2 ^ 53, "it's", 'two\nlines', { ['a-b'] = true, list = {}, long = {} } }
    for i = 1, 40 do values[6].long[i] = ('word %d'):format(i) end
    local text = case.lua_text(values)
    for line in text:gmatch '[^\n]+' do expect(#line <= 118):truthy() end
    expect(json.encode(loadstring('return ' .. text)())):equals(json.encode(values))
  end)
end)

describe('the command', function()
  it('predicts rows without a value, in order, by their id', function()
    local path = file_of({ id = 'b', value = '' }, { id = 'a', value = '', gpus = '4', dp = '1' })
    local rows = json.decode(trinity_says(("study fidelity published --rows '%s' --json"):format(path), 0)).rows
    expect(rows[1].row .. rows[2].row):equals 'ba'
    expect(rows[1].predicted_tokens_per_s_per_gpu > 0 and rows[1].predicted_memory_bytes > 0):truthy()
    trinity_says(("study fidelity published --rows '%s'"):format(path), 0, 'b: assumed: ')
    trinity_says(("study fidelity published --rows '%s'"):format(file_of {}), 0, 'predicted rows')
  end)
  it('names what is wrong in one sentence', function()
    local function refused(changes, words)
      trinity_says(("study fidelity published --rows '%s'"):format(file_of(changes)), 1, words)
    end
    refused({ gpu = 'H10-80GB' }, "line 2: column 'gpu': unknown GPU 'H10%-80GB', did you mean 'H100%-80GB'")
    refused({ precision = 'fp7' }, "column 'precision': unknown precision 'fp7'")
    refused({ hidden = 'wide' }, "column 'hidden': expected a number")
    refused({ micro_batch = '5' }, "column 'micro_batch': 32 sequences of a replica are no multiple of 5")
    refused({ global_batch = '63' }, '63 sequences do not divide over 2 replicas')
    refused({ unit = 'miles' }, "unknown unit 'miles'")
    refused({ recompute = 'some' }, "expected none, selective or full, got string 'some'")
    refused({ zero = '5' }, "column 'zero': expected 0 to 3")
    refused({ precision = 'nvfp4' }, "column 'precision': H100%-80GB has no such arithmetic, got 'nvfp4'")
    refused({ gpu = 'A100-80GB', precision = 'fp8' }, 'A100%-80GB has no such arithmetic')
    refused({ pp = '8', dp = '1', gpus = '16' }, "column 'pp': expected at most 6 %(layers%), got 8")
    refused({ tp = '3', dp = '2', gpus = '12' }, 'line 2: .*mesh: tensor = 3: .* has 8 heads, which 3 does not divide')
    refused({ experts = '4', experts_per_token = '5' }, 'line 2: .*experts_per_token.*4.*5')
    refused({ experts = '1.5' }, "column 'experts': expected a whole number from 0")
    refused({ value = '-3' }, "column 'value': expected more than 0")
    refused({ parameters_b = '-8' }, "column 'parameters_b': expected more than 0, got string '%-8'")
  end)
end)

describe('rows that pull apart', function()
  local errors = require 'studies.fidelity.errors'
  it('are kept with the errors of a group, the one predicted too fast first, of one network where there is one', function()
    local saved = temporary '.lua'
    local path = file_of({ id = 'slow', value = '20000' }, { id = 'fast', value = '60000', global_batch = '128', source = 'a table' },
      { id = 'other', model = 'GPT other', value = '5000' })
    trinity_says(("study fidelity published --rows '%s' --cross_validate --only H100 --save '%s'"):format(path, saved), 0)
    local found = json.read(saved .. '.json').errors.published['H100-80GB, dense, 16 bits'].apart
    expect(found[1].row .. ' ' .. found[2].row):equals 'slow fast'
    expect(found[1].fitted > found[2].fitted):truthy()
    expect(found[1].left_out ~= nil and found[2].from == 'a table'):truthy()
  end)
  it('are printed for groups beyond their bar alone', function()
    local said, recorded = trinity_says('study fidelity errors', 0), require('studies.fidelity.fitted').fits().errors
    local shown, missed = said:match 'rows that pull apart.*' or '', 0
    for source, groups in util.sorted_pairs(recorded) do
      for group, one in util.sorted_pairs(groups) do
        local bar = errors.bar(source, group)
        local beyond = bar and errors.missed(bar, one.left_out)
        if one.apart and beyond then missed = missed + 1 end
        for _, row in ipairs(one.apart or {}) do
          if beyond then expect(shown:find(row.row, 1, true) ~= nil):truthy() end
        end
      end
    end
    expect(missed > 0):equals(shown ~= '')
  end)
end)
