-- trinity study fidelity golden: peak and resting memory of Megatron-LM's functional tests, bytes that PyTorch's
-- allocator has given out on the last rank. A row becomes the arguments of Megatron-LM that it states, which
-- trinity.job reads like a job's; words of the test's name state the rest.

local case = require 'studies.fidelity.case'
local core = require 'trinity.core'
local csv = require 'studies.rows'
local errors = require 'studies.fidelity.errors'
local job = require 'trinity.job'
local json = require 'trinity.base.json'
local memory = require 'trinity.job.memory'
local owners = require 'trinity.strategy.owners'
local parallel_map = require 'trinity.parallel'
local runtimes = require 'trinity.cluster.runtimes'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local golden = {
  help = "peak and resting memory of Megatron-LM's functional tests",
  shared = { rows = 'megatron-golden/rows.csv' },
  takes = 'rows only',
}

local machines = { dgx_a100 = 'dgx_a100_80gb', dgx_h100 = 'dgx_h100', dgxh100_dgxc = 'dgx_h100',
  dgx_gb200 = 'gb200_nvl72' }
local families = util.set 'gpt moe mixtral'
local least_hidden = 1024 -- networks of less measure logits and the framework

-- Arguments by column, of whole numbers, words, and flags that are 1; and by a word of the test's name.
local arguments = csv.read(core.home .. '/scripts/studies/fidelity/golden_arguments.csv', 'column', 'kind', 'argument')

--- The arguments of a row. Parts of a sequence are more replicas of shorter ones: a GPU holds as much. Tests with one
--- expert a token are of before grouped matmuls, but for two whose configuration states --moe-grouped-gemm.
local function arguments_of(row, whole, context, data)
  local list = {}
  local function add(line, value)
    for word in ('--' .. line):gmatch '%S+' do list[#list + 1] = word end
    list[#list + 1] = value
  end
  for _, one in ipairs(arguments) do
    local cell = row[one.column] or ''
    if one.kind == 'whole' and cell ~= '' then add(one.argument, ('%d'):format(whole(one.column, nil, 0)))
    elseif one.kind == 'word' and cell ~= '' then add(one.argument, cell)
    elseif one.kind == 'flag' and cell == '1' or one.kind == 'test' and row.case:find(one.column, 1, true) then
      add(one.argument)
    end
  end
  add('seq-length', ('%d'):format(whole 'sequence' / context))
  add('max-position-embeddings', row.sequence)
  add('global-batch-size', ('%d'):format(whole('global_batch', data * whole 'micro_batch') * context))
  add(row.precision == 'fp16' and 'fp16' or 'bf16')
  if row.tied ~= '1' then add 'untie-embeddings-and-output-weights' end
  if (row.kv_groups or '') ~= '' then add 'group-query-attention' end
  if context > 1 or row.mla == '1' then add 'hidden-dropout 0 --attention-dropout 0' end
  if (row.fsdp or '') ~= '' then add 'use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params' end
  local granularity, modules = (row.recompute or ''):match '^(%a+):?%[?([^%]]*)'
  if granularity then add('recompute-granularity ' .. granularity) end
  if granularity == 'selective' and modules ~= '' then add('recompute-modules ' .. modules:gsub(',', ' ')) end
  if whole('experts', 0, 0) > 0 then
    add 'disable-bias-linear'
    if whole 'top_k' > 1 or row.case:find 'groupedGEMM' or row.case:find 'ddp_average_in_collective' then
      add 'moe-grouped-gemm'
    end
  end
  return list
end

--- A row as a case (case.lua). CUBLAS_WORKSPACE_CONFIG of deterministic tests and of family moe is ":4096:8".
local function case_of(row)
  local function whole(column, otherwise, least) return csv.whole(row.path, row, column, otherwise, least) end
  local machine = csv.word(row.path, row, 'platform', util.sorted_keys(machines)) and machines[row.platform]
  local tensor, pipeline, context = whole('tp', 1), whole('pp', 1), whole('cp', 1)
  local inner = tensor * pipeline * context
  local data = whole('dp', math.max(1, math.floor(whole('gpus', inner) / inner)))
  local gpus = inner * data
  csv.expect(row.path, row, whole('gpus', gpus) == gpus, 'dp %d x tp %d x pp %d x cp %d is not %d GPUs', data, tensor,
    pipeline, context, whole('gpus', gpus))
  local file = job.read(arguments_of(row, whole, context, data), { gpus = gpus })
  local one = memory.case(file, machine, true)
  local here = row.transformer_impl == 'local' and not row.case:find '_te_'
  return { model = 'decoder', model_options = one.options, cluster = one.cluster, strategy = one.strategy,
    runtime = util.merged(one.runtime, { transformer_engine = not here and one.runtime.transformer_engine,
      matmul_workspace_bytes = (row.deterministic == '1' or row.family == 'moe') and 32 * 2 ^ 20 or nil }) }
end

--- Memory that stays allocated after a step in addition to states and workspaces: the input that each pipeline chunk
--- received last, with its gradient (core/models/gpt/gpt_model.py, set_input_tensor;
--- core/pipeline_parallel/schedules.py, retain_grad), and of float16 weights gradients in float32
--- (core/optimizer/optimizer.py, _copy_model_grads_to_main_grads).
local function left_bytes(one, last)
  local o, strategy = one.model_options, one.strategy
  local tensor, data = strategy.mesh.tensor, strategy.mesh.data
  local input = 2 * o.batch_size * o.sequence * o.hidden / (strategy.sequence_parallel and tensor or 1)
  local chunks = strategy.mesh.pipeline > 1 and strategy.virtual_stages or 0
  local copies = o.dtype == 'float16' and 4 * last.parameters / (strategy.zero_stage > 0 and data or 1) or 0
  return 2 * chunks * input + copies
end

--- Peak and resting bytes of the last rank, and owners of the peak, without what PyTorch's allocator does not count.
local function predict(one)
  local problem = case.problem(one)
  local account = problem:strategy(one.strategy):breakdown()
  local last = account.stages[#account.stages]
  local context = runtimes.read(one.runtime).context_bytes
  local owned = util.merged(last.peak_bytes, { framework = last.peak_bytes.framework - context })
  problem:close()
  problem.graph:close()
  return { peak = owners.sum(owned), owners = owned, resting = last.weight_bytes + last.gradient_bytes
    + last.optimizer_bytes + owned.framework + left_bytes(one, last) }
end

--- The rows of a file that are compared, predicted or refused: of decoders, on GPUs that the recipe states, whose
--- platforms agree; and how many are not.
function golden.predicted(options)
  local rows, others = {}, 0
  for _, line in ipairs(csv.read(options.rows, 'case', 'family', 'platform', 'gpus', 'agrees', 'mem_allocated_bytes',
    'mem_max_allocated_bytes', 'layers', 'hidden', 'heads', 'sequence', 'micro_batch', 'global_batch')) do
    if not families[line.family] or line.gpus == '' or line.agrees ~= 'yes' then others = others + 1
    elseif line.case:find(options.only, 1, true) then
      line.path = options.rows
      rows[#rows + 1] = { id = ('%s %s %s'):format(line.case, line.platform, line.environment), line = line,
        family = line.family, hidden = csv.whole(options.rows, line, 'hidden'),
        measured = { peak = csv.number(options.rows, line, 'mem_max_allocated_bytes'),
          resting = csv.number(options.rows, line, 'mem_allocated_bytes') } }
    end
  end
  return parallel_map(rows, function(row)
    local found, why = csv.attempt(function() return predict(case_of(row.line)) end)
    return util.merged(row, { found = found, refused = why })
  end, { quiet = true }), others
end

--- How far a prediction is off; a refused row counts as 50 %.
local function off(row, what) return row.found and row.found[what] / row.measured[what] - 1 or -0.5 end

--- Errors of peak and resting bytes by family, of all rows, and of wide networks alone.
function golden.groups(rows)
  local list = {}
  for _, row in ipairs(rows) do
    for _, name in ipairs { row.family, 'all', row.hidden >= least_hidden and 'hidden 1024 and more' or nil } do
      for _, what in ipairs { 'peak', 'resting' } do
        list[#list + 1] = { ('%s, %s'):format(name, what), off(row, what) }
      end
    end
  end
  return errors.grouped(list)
end

--- A row for --json.
local function told(row)
  local found, measured = row.found or {}, row.measured
  return { row = row.id, peak_bytes = found.peak, resting_bytes = found.resting, owners = found.owners,
    measured_peak_bytes = measured.peak, measured_resting_bytes = measured.resting, refused = row.refused }
end

local function cells(row, what)
  local found = row.found and ('%.3f'):format(row.found[what] / 1e9)
  return { ('%.3f'):format(row.measured[what] / 1e9), found or 'refused',
    found and errors.signed(off(row, what)) or '' }
end

function golden.run(options)
  local rows, others = golden.predicted(options)
  if options.json then return print(json.encode { rows = util.map(rows, told) }) end
  print(text.format_table({ 'test', 'peak', 'predicted', 'off', 'resting', 'predicted', 'off' },
    util.map(rows, function(row) return util.joined({ row.id }, cells(row, 'peak'), cells(row, 'resting')) end)))
  print 'GB that PyTorch has allocated on the last rank; a refused row counts as 50 % off'
  if others > 0 then
    print(('%d rows are not compared: their family is no decoder (T5, BERT, hybrids, images), the recipe states '
      .. 'no GPUs, or platforms do not agree'):format(others))
  end
  print ''
  for _, row in ipairs(rows) do if row.refused then print(('refused: %s: %s'):format(row.id, row.refused)) end end
  print(errors.table(golden.groups(rows), { 'rows', 'mean error', 'worst', 'mean, signed' }))
end

return golden
