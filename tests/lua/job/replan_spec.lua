-- trinity plan --from on sampled job files: the answer is never one that the client's rules refuse, and the printed
-- diff, applied to the file, gives a legal file that differs in the plan's arguments alone.

local core = require 'trinity.core'
local replan = require 'trinity.job.replan'
local trinity = require 'trinity'

--- Returns a text with the hunks of a unified diff applied.
local function patched(text, hunks)
  local lines, shift = {}, 0
  for line in text:gmatch '([^\n]*)\n' do lines[#lines + 1] = line end
  local at
  for _, line in ipairs(hunks) do
    local from, removed = line:match '^@@ %-(%d+),(%d+) '
    if from then
      at = tonumber(from) + shift + (removed == '0' and 1 or 0)
    elseif at and line:match '^%-' then
      expect(lines[at]):equals(line:sub(2))
      table.remove(lines, at)
      shift = shift - 1
    elseif at and line:match '^%+' then
      table.insert(lines, at, line:sub(2))
      at, shift = at + 1, shift + 1
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

local scripts = {
  -- plain words
  function(words) return 'export CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun --nproc_per_node 8 pretrain_gpt.py \\\n  '
    .. table.concat(words, ' \\\n  ') .. '\n' end,
  -- degrees and batches in variables, the rest in an array
  function(words, get)
    local lines = { 'export CUDA_DEVICE_MAX_CONNECTIONS=1', 'TP=${1:-' .. get '--tensor-model-parallel-size' .. '}',
      'PP=' .. get '--pipeline-model-parallel-size', 'MBS="' .. get '--micro-batch-size' .. '" # samples', 'ARGS=(' }
    local names = { ['--tensor-model-parallel-size'] = '$TP', ['--pipeline-model-parallel-size'] = '${PP}',
      ['--micro-batch-size'] = '"$MBS"' }
    for _, word in ipairs(words) do
      local name = word:match '^%S+'
      lines[#lines + 1] = '  ' .. (names[name] and name .. ' ' .. names[name] or word)
    end
    return table.concat(lines, '\n') .. '\n)\ntorchrun --nproc_per_node 8 pretrain_gpt.py "${ARGS[@]}"\n'
  end,
  -- texts that grow, with = between name and value
  function(words)
    local lines = { 'export CUDA_DEVICE_MAX_CONNECTIONS=1', 'OPTIONS=""' }
    for _, word in ipairs(words) do lines[#lines + 1] = 'OPTIONS+=" ' .. word:gsub(' ', '=', 1) .. '"' end
    lines[#lines + 1] = 'cmd="torchrun --nproc_per_node=8 pretrain_gpt.py $OPTIONS"'
    return table.concat(lines, '\n') .. '\neval $cmd\n'
  end,
}

local function yaml(words)
  local lines = { 'ENV_VARS:', '  CUDA_DEVICE_MAX_CONNECTIONS: 1', 'MODEL_ARGS:' }
  for _, word in ipairs(words) do
    local name, value = word:match '^(%S+) ?(.*)$'
    lines[#lines + 1] = ('  %s: %s'):format(name, value == '' and 'true' or value)
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Returns the extension and the text of a legal file of Megatron-LM or torchtitan on 8 GPUs.
local function sampled(stream)
  local function pick(...) return (select(stream:integer(select('#', ...)), ...)) end
  local tensor, pipeline = pick(1, 2, 4), pick(1, 2)
  if stream:integer(4) == 1 then
    return 'toml', ('# on 8 H100 GPUs\n[model]\nname = "llama3"\nflavor = "debugmodel"\n\n[training]\nlocal_batch_size = %d\n'
      .. 'seq_len = %d\n%s\n[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = %d # tensor\n'
      .. 'pipeline_parallel_degree = %d\n%s\n[activation_checkpoint]\nmode = "%s"\n'):format(pick(4, 8), pick(2048, 4096),
      pick('', 'global_batch_size = 64\n'), tensor, pipeline, pipeline > 1 and 'pipeline_parallel_schedule = "1F1B"\n'
      or '', pick('full', 'none', 'selective'))
  end
  local words = { '--num-layers ' .. pick(4, 8), '--hidden-size ' .. pick(512, 1024), '--num-attention-heads 8',
    '--seq-length 1024', '--max-position-embeddings 1024', '--micro-batch-size ' .. pick(1, 2), '--bf16',
    '--tensor-model-parallel-size ' .. tensor, '--pipeline-model-parallel-size ' .. pipeline, '--lr 1e-4',
    '--train-iters 100', '--split 949,50,1' }
  local function some(...) for _, word in ipairs { ... } do words[#words + 1] = word end end
  if pick(true, true, false) then some('--global-batch-size ' .. pick(32, 64)) end
  if tensor > 1 and pick(true, false) then some '--sequence-parallel' end
  if pick(true, false) then some('--use-distributed-optimizer', '--overlap-grad-reduce', '--overlap-param-gather') end
  local recompute = pick('', 'selective', 'full')
  if recompute ~= '' then some('--recompute-granularity ' .. recompute) end
  if recompute == 'full' then some('--recompute-method block', '--recompute-num-layers 2') end
  if pipeline > 1 and pick(true, false) then some('--num-virtual-stages-per-pipeline-rank 2') end
  if pick(true, false) then some('--swiglu', '--disable-bias-linear', '--group-query-attention', '--num-query-groups 4') end
  local function get(name)
    for _, word in ipairs(words) do if word:find(name, 1, true) == 1 then return word:match ' (.*)$' end end
  end
  local how = stream:integer(#scripts + 1)
  if how > #scripts then return 'yaml', yaml(words) end
  return 'sh', scripts[how](words, get)
end

describe('plans from sampled job files', function()
  it('are legal, written in full, and keep the dimensions of --keep', function()
    local stream, keeps, faster = trinity.random(7, 'job files'), { {}, { 'tensor' }, { 'pipeline', 'micro_batch' } }, 0
    for i = 1, draws(48) do
      local extension, text = sampled(stream)
      local path, output = temporary('.' .. extension), temporary('.' .. extension)
      core.write_file(path, text)
      local keep = keeps[i % #keeps + 1]
      local before = trinity.job(path, { gpus = 8 })
      local found = before.legal and replan.run(path, { cluster = 'dgx_h100:8x1', keep = keep, simulations = 4, quiet = true, output = output })
      if found and found.step_time_s then
        faster = faster + 1
        local what = table.concat(found.lines, '\n') .. '\n' .. text
        local after = trinity.job(output, { gpus = 8 })
        expect(after.legal):equals(true, what)
        expect(#found.missed):equals(0, what)
        expect(after.global_batch):equals(before.global_batch, what)
        expect(after.model.layers):equals(before.model.layers, what)
        for _, name in ipairs(keep) do
          expect(after.mesh[name] or after[name]):equals(before.mesh[name] or before[name], what)
        end
        expect(patched(text, found.lines)):equals(core.read_file(output), what)
        expect(not found.before_s or found.step_time_s < found.before_s):equals(true, what)
      end
    end
    expect(faster > 0):truthy()
  end)
end)
