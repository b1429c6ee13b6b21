-- trinity.job on small files of its own: launch scripts, patterns, values near a fault, memory, and the commands.

local core = require 'trinity.core'
local job = require 'trinity.job'
local memory = require 'trinity.job.memory'
local patterns = require 'trinity.job.patterns'
local trinity = require 'trinity'

local script = root .. '/tests/data/jobs/pretrain.sh'

local function file_of(extension, text)
  local path = temporary('.' .. extension)
  core.write_file(path, text)
  return path
end

local function codes(found, effect)
  local list = {}
  for _, finding in ipairs(found.findings) do
    if finding.effect == (effect or 'refused') then list[#list + 1] = finding.code end
  end
  return table.concat(list, ' ')
end

--- Arguments of a small legal network, with changes.
local function words_of(changes)
  local words = {}
  for name, value in trinity.system.sorted_pairs(merged({ ['--num-layers'] = '8', ['--hidden-size'] = '64',
    ['--num-attention-heads'] = '4', ['--seq-length'] = '32', ['--max-position-embeddings'] = '32',
    ['--micro-batch-size'] = '1' }, changes)) do
    words[#words + 1] = name
    if value ~= true then words[#words + 1] = value end
  end
  return words
end

describe('a launch script', function()
  it('is followed through variables, arrays, sums and conditions', function()
    local found = trinity.job(script)
    expect(codes(found)):equals ''
    expect(found.gpus):equals(8)
    expect(found.model.layers):equals(8)
    expect(found.global_batch):equals(16)
    expect(found.mesh.data):equals(2)
    expect(found.mesh.sequence_parallel):equals(true)
  end)
  it('splits words of unquoted arrays as bash does, and keeps quoted ones', function()
    local lines = 'A=(--split "949,50,1" --tensorboard-dir "a b")\ntorchrun pretrain_gpt.py %s\n'
    local function words(array) return #trinity.job(file_of('sh', lines:format(array))).words end
    expect(words '"${A[@]}"'):equals(4)
    expect(words '${A[@]}'):equals(5)
  end)
  it('is followed through case, loops, nested commands and here documents', function()
    local found = trinity.job(file_of('sh', [==[
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
while [ $# -gt 0 ]; do
  case $1 in
    --tp) TP="$2"; shift 2 ;;
  esac
done
TP=${TP:-$((2 * 2))}
case large in
  small) L=2 ;;
  *) L=8 ;;
esac
ARGS=(--num-layers $L --hidden-size 64 --num-attention-heads 4 --seq-length 32) # the network
ARGS+=(--max-position-embeddings 32 --micro-batch-size 1)
cmd="python pretrain_gpt.py ${ARGS[*]} --tensor-model-parallel-size $TP ${OWN}"
cat > config.txt <<EOF
torchrun pretrain_gpt.py --num-layers 99
EOF
export CUDA_DEVICE_MAX_CONNECTIONS=1
srun bash -c "cd /x; ${cmd} --global-batch-size 8 2>&1 | tee log"
]==]))
    expect(codes(found)):equals ''
    expect(found.model.layers):equals(8)
    expect(found.mesh.tensor):equals(4)
    expect(found.gpus):equals(16)
    expect(table.concat(found.unknown, ' ')):equals '${OWN}'
  end)
  it('reads sourced files, keeps commands and placeholders whole, and lists files that are not there', function()
    local folder = temporary '.d'
    core.write_file(folder .. '/net.sh', 'NET="--num-layers 8 --hidden-size 64 --num-attention-heads 4"\n')
    core.write_file(folder .. '/run.sh', [==[
source "$(dirname "$0")/net.sh"
. other.sh
NAME=x-$(date +"%d %m")-$(( $(ls | wc -l) - 2 ))
torchrun --nproc_per_node 1 pretrain_gpt.py $NET --save $NAME --vocab-file <path to vocab.json> --seq-length 32 \
  --max-position-embeddings 32 --micro-batch-size 1 --save-interval 5 --wandb-exp-name $NAME
]==])
    local found = trinity.job(folder .. '/run.sh')
    expect(codes(found)):equals ''
    expect(found.model.layers):equals(8)
    expect(table.concat(found.unknown, ', ')):equals '. other.sh'
    expect(found.values.vocab_file):equals '<path to vocab.json>'
  end)
  it('of a program with arguments of its own lists these as not understood', function()
    local found = trinity.job(file_of('sh', 'torchrun --nproc-per-node=2 my/train.py --num-layers 4 --hidden-size 64 '
      .. '--num-attention-heads 4 --seq-length 8 --max-position-embeddings 8 --micro-batch-size 1 --my-flag 3 "$@"\n'))
    expect(codes(found)):equals ''
    expect(table.concat(found.unknown, ' ')):equals '--my-flag'
    expect(found.gpus):equals(2)
  end)
  it('runs what follows a test by && and ||, and keeps values that only the run gives apart from missing ones', function()
    local found = trinity.job(file_of('sh', [==[
: "${PP:=2}"
A=$(cat <<EOF
--num-layers 8 --hidden-size 64 --num-attention-heads 4
EOF
)
read -r -d '' B <<EOM
--seq-length 32 --max-position-embeddings 32
EOM
[[ -n "${FP8:-}" ]] && A+=" --fp8-format hybrid"
[ "$PP" -gt 1 ] && A+=" --bf16" || A+=" --fp16"
while getopts "t:" o; do case $o in t) PP=$OPTARG;; esac; done
torchrun --nproc_per_node=8 pretrain_gpt.py $A $B --pipeline-model-parallel-size $PP --micro-batch-size $MB
]==]))
    expect(codes(found)):equals ''
    expect(found.precision):equals 'bf16'
    expect(found.mesh.pipeline):equals(2)
    expect(table.concat(found.unknown, ' ')):equals '--micro-batch-size $MB'
  end)
  it('is refused where it starts no training', function()
    expect(function() trinity.job(file_of('sh', 'echo hello\n')) end)
      :raises 'expected a command that starts pretrain_%*%.py'
  end)
  it('is refused as JSON of another program', function()
    expect(function() trinity.job(file_of('json', '{"format":"trinity-strategy"}')) end)
      :raises "expected arguments of DeepSpeed, such as train_batch_size, got none of them %('format' and others%)"
  end)
end)

describe('rules', function()
  it('find all faults at once, with the arguments that they are about', function()
    local found = trinity.job(words_of { ['--fp8-param-gather'] = true, ['--recompute-granularity'] = 'full',
      ['--hidden-siz'] = '8' }, { gpus = 1 })
    expect(codes(found)):equals 'argument-unknown fp8-gather-sharded fp8-weights full-method full-layers'
    expect(found.findings[1].text):matches "did you mean '%-%-hidden%-size'"
    expect(found.legal):equals(false)
  end)
  it('tell what is ignored or changed', function()
    local found = trinity.job(words_of { ['--sequence-parallel'] = true, ['--num-query-groups'] = '2' }, { gpus = 1 })
    expect(codes(found, 'ignored')):equals 'sequence-parallel-off groups-removed'
    expect(codes(found, 'changed')):equals 'global-batch-default'
    expect(found.legal):equals(true)
    expect(found.model.kv_heads):equals(4)
  end)
  it('come with the nearest values that break none', function()
    local found = trinity.job(words_of { ['--num-layers'] = '9', ['--pipeline-model-parallel-size'] = '4',
      ['--global-batch-size'] = '8' }, { gpus = 4 })
    local near = {}
    expect(codes(found)):equals 'stages-even'
    for _, one in ipairs(job.nearest(found, found.findings[1])) do
      near[#near + 1] = ('%s %s'):format(one.name, tostring(one.value))
    end
    expect(table.concat(near, ', ')):matches '%-%-num%-layers 8, %-%-num%-layers 12'
  end)
  it('hold for every layout that they take: stages of each rank', function()
    local found = trinity.job(words_of { ['--pipeline-model-parallel-size'] = '2', ['--global-batch-size'] = '4',
      ['--pipeline-model-parallel-layout'] = 'Et|tt|tt|tttL' }, { gpus = 2 })
    expect(codes(found)):equals ''
    expect(found.mesh.virtual_stages):equals(2)
    expect(table.concat(found.stages, ' ')):equals '1 2 2 3'
  end)
end)

describe('every rule', function()
  it('reads what its client has, and has a sentence and a place in the client', function()
    local rules, count = require 'trinity.job.rules', 0
    for _, client in ipairs { 'megatron', 'megatron_deepspeed', 'torchtitan', 'deepspeed', 'nanotron', 'bridge', 'foundry',
      'mlperf' } do
      local own = core.exists(core.home .. '/lib/trinity/job/' .. client .. '.lua')
      local reader, seen = own and require('trinity.job.' .. client) or require 'trinity.job.declared'(client), {}
      local list, derived = rules.of(reader)
      local function known(name)
        for _, names in ipairs { reader.declared.keys, reader.declared.sections, derived, reader.base,
          reader.functions or {}, { gpus = true, given = true, capability = true } } do
          if names[name] then return true end
        end
        return false
      end
      for _, rule in ipairs(list) do
        local what = client .. ' ' .. (rule.code or 'set')
        for _, path in ipairs(rule.paths) do expect(known(path:match '^[^.]+')):equals(true, what .. ' ' .. path) end
        if rule.code then
          expect(seen[rule.code]):equals(nil, what)
          expect(rule.text or what):matches '%.$'
          expect(rule.source):matches '%.py:%d+$'
          seen[rule.code], count = true, count + 1
        end
      end
    end
    expect(600):below(count)
  end)
end)

describe('one argument that breaks a rule', function()
  it('of Megatron-LM is refused by that rule', function()
    for _, case in ipairs { { 'warmup-steps', '--train-iters', '10', '--lr-warmup-iters', '10' },
      { 'warmup-fraction', '--train-iters', '10', '--lr-warmup-fraction', '1' },
      { 'stable-decay', '--train-iters', '10', '--lr-decay-style', 'WSD' }, { 'first-moment', '--exp-avg-dtype', 'bf16' },
      { 'precision-adam', '--use-precision-aware-optimizer', '--optimizer', 'sgd' },
      { 'buckets-once', '--ddp-num-buckets', '2', '--ddp-bucket-size', '1000' },
      { 'inference-graphs', '--cuda-graph-impl', 'local', '--te-rng-tracker',
        '--inference-dynamic-batching-num-cuda-graphs', '0' }, { 'latent-norm', '--multi-latent-attention',
        '--no-rope-fusion', '--qk-l2-norm' }, { 'chunk-states', '--gdp-cutedsl-kernel',
        '--gdp-num-chunk-states-to-recompute', '65' }, { 'grpo-batch', '--perform-rl-step', '--grpo-prompts-per-step', '3',
        '--grpo-iterations', '1' }, { 'grpo-save', '--perform-rl-step', '--save-interval', '20', '--save', 'x' },
      { 'rl-lag-partial', '--perform-rl-step', '--rl-generation-lag', '1' }, { 'rl-flight-partial', '--perform-rl-step',
        '--rl-max-inflight-requests', '65' }, { 'sharp-group', '--sharp-enabled-group', 'dp' },
      { 'inference-scope', '--inference-cuda-graph-scope', 'block' }, { 'ffn-tensor', '--ffn-hidden-size', '130',
        '--tensor-model-parallel-size', '4' }, { 'expert-weight-shards', '--expert-tensor-parallel-num-weight-shards', '3',
        '--tensor-model-parallel-size', '2' }, { 'grouped-bias', '--num-experts', '4', '--moe-grouped-gemm' },
      { 'pattern-values', '--num-experts', '4', '--moe-layer-freq', '[2]*8' } } do
      local words = words_of { ['--global-batch-size'] = '8' }
      for i = 2, #case do words[#words + 1] = case[i] end
      expect(codes(trinity.job(words, { gpus = 4 }))):equals(case[1])
    end
  end)
  it('of torchtitan and DeepSpeed is refused by that rule', function()
    for _, case in ipairs { { 'flavor-known', 'toml', '[model]\nflavor = "9B"\n' },
      { 'data-known', 'toml', '[training]\ndataset = "pile"\n' },
      { 'mx-capability', 'toml', '[model]\nconverters = ["quantize.linear.mx"]\n' },
      { 'replicas-llama4', 'toml', '[model]\nname = "llama4"\nflavor = "17bx16e"\n[parallelism]\n'
        .. 'data_parallel_replicate_degree = 4\ntensor_parallel_degree = 2\n' },
      { 'expert-shards', 'toml', '[model]\nname = "llama4"\nflavor = "17bx16e"\n[parallelism]\n'
        .. 'expert_parallel_degree = 8\ntensor_parallel_degree = 8\n' },
      { 'dtype-known', 'toml', '[training]\ndtype = "int8"\n' },
      { 'optimizer-known', 'json', '{"train_batch_size": 8, "optimizer": {"type": "Adamm"}}' },
      { 'gather-alignment', 'json', '{"train_batch_size": 8, "zero_optimization": {"stage": 1, "allgather_bucket_size": 3}}' },
      { 'param-type', 'json', '{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"param_dtype": "fp16"}}' },
      { 'elastic-micro-positive', 'json', '{"elasticity": {"enabled": true, "max_train_batch_size": 8, '
        .. '"micro_batch_sizes": [2, 0]}, "train_batch_size": "auto"}' },
      { 'value-kind', 'json', '{"train_batch_size": 8, "bf16": {"enabled": "maybe"}}' },
      { 'batch-number', 'json', '{"train_batch_size": "many"}' },
      { 'micro-number', 'json', '{"train_micro_batch_size_per_gpu": [1]}' },
      { 'warmup-steps', 'json', '{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", '
        .. '"params": {"warmup_num_steps": 0}}}' },
      { 'scatter-divide', 'json', '{"train_batch_size": 8, "zero_optimization": {"stage": 2}, '
        .. '"gradient_predivide_factor": 2}' } } do
      expect(codes(trinity.job(file_of(case[2], case[3]), { gpus = 8 }))):equals(case[1])
    end
  end)
  it('of a schedule of batches counts the last batch, and the first one must divide', function()
    local schedule = { ['--step-batch-size-schedule'] = '0:4 1K:16' }
    expect(trinity.job(words_of(schedule), { gpus = 2 }).micro_batches):equals(8)
    expect(codes(trinity.job(words_of(schedule), { gpus = 8 }))):equals 'batch-schedule-multiple'
  end)
end)

describe('layers with experts', function()
  it('are those that the frequency names, in collectives and in memory', function()
    local becomes = require 'trinity.job.becomes'
    local function job_with(freq)
      return trinity.job(words_of { ['--num-experts'] = '4', ['--moe-layer-freq'] = freq, ['--disable-bias-linear'] = true,
        ['--expert-model-parallel-size'] = '2', ['--moe-token-dispatcher-type'] = 'alltoall' }, { gpus = 2 })
    end
    for freq, layers in pairs { ['1'] = 8, ['2'] = 4, ['[0]*3+[1]*5'] = 5 } do -- in any order
      local found = job_with(freq)
      expect(found.model.layers - found.dense_layers):equals(layers)
      for _, row in ipairs(becomes.collectives(found)) do
        if row.axis == 'expert' then expect(row.count):equals(4 * layers) end
      end
    end
    local function weights(freq) return memory.of(job_with(freq)).rows[1].weights end
    expect(weights '2' < weights '1' and weights '[0]*4+[1]*4' == weights '2'):truthy()
    expect(function() memory.of(job_with '([1]+[0])*4') end):raises 'expected %-%-moe%-layer%-freq as a number'
  end)
end)

describe('patterns of layers', function()
  it('are lists joined by + and repeated by *, or the text itself', function()
    expect(table.concat(patterns.layers '([0]*2+[1]*3)*2', '')):equals '0011100111'
    expect(patterns.layers '4'):equals(4)
    expect(patterns.layers '[1]*x'):equals '[1]*x'
    expect(patterns.layers '[1]*99999999'):equals '[1]*99999999'
  end)
end)

describe('files of other clients', function()
  it('say where an unknown key stands, and the known one', function()
    local found = trinity.job(file_of('toml', '[training]\nseq_length = 4096\n'), { gpus = 1 })
    expect(codes(found)):equals 'key-unknown'
    found = trinity.job(file_of('json', '{"train_batch_size": 4, "zero_optimization": {"stagee": 1}, "stage": 2}'),
      { gpus = 4 })
    expect(codes(found)):equals 'key-unknown'
    expect(codes(found, 'ignored')):equals 'key-unknown'
  end)
  it('are refused with their line where they cannot be read', function()
    expect(function() trinity.job(file_of('toml', '[training]\nseq_len = \n')) end):raises ':2: expected a value'
    expect(function() trinity.job(file_of('yaml', 'MODEL_ARGS:\n  --x 1\n')) end):raises "expected lines '%-%-argument: value'"
  end)
  it('of torchtitan may be words of the command line alone', function()
    local found = trinity.job({ '--model.flavor', '8B', '--training.seq_len=4096', '--model.converters', 'a,b' }, { gpus = 8 })
    expect(found.client):equals 'torchtitan'
    expect(found.model.sequence):equals(4096)
    expect(codes(found)):equals 'converter-known'
  end)
  it('of torchtitan take overrides of the command line', function()
    local path = file_of('toml', '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 4096\n')
    local found = trinity.job(path, { gpus = 8, launch = '--training.seq_len 8192 --parallelism.tensor_parallel_degree=2' })
    expect(found.model.sequence):equals(8192)
    expect(found.mesh.data):equals(4)
  end)
end)

describe("variables of NVIDIA's submissions to MLPerf", function()
  local text = 'source $(dirname ${BASH_SOURCE[0]})/config_common.sh\nexport MINIBS=24\nexport TENSOR_MODEL_PARALLEL=4\n'
    .. 'export PIPELINE_MODEL_PARALLEL=8\nexport INTERLEAVED_PIPELINE=8\nexport CONTEXT_PARALLEL=2\nexport FP8=True\n'
    .. 'export SEQ_PARALLEL=null\nexport DGXNNODES=%d\nexport DGXNGPU=4\n'
  it('give degrees and batches, and are refused by rules of Megatron-Core', function()
    local found = trinity.job(file_of('sh', text:format(640)))
    expect(codes(found)):equals ''
    expect(found.gpus):equals(2560)
    expect(found.mesh.data):equals(40)
    expect(found.global_batch):equals(960)
    expect(found.micro_batches):equals(24)
    expect(found.precision):equals 'bf16 + fp8 matmuls'
    expect(table.concat(found.unknown, ' ')):matches '^source '
    expect(codes(trinity.job(file_of('sh', text:format(641))))):equals 'gpus-multiple'
    expect(codes(trinity.job(file_of('sh', (text:format(640):gsub('=24', '=25')))))):equals 'interleaved-rest'
  end)
end)

describe("LLM Foundry's YAML", function()
  local lines = { 'variables:', '  length: 1024', 'max_seq_len: ${variables.length}', 'model:', '  name: mpt_causal_lm', '  d_model: 512',
    '  n_heads: 8', '  n_layers: 4', '  vocab_size: 1024', '  max_seq_len: ${variables.length}', '  attn_config:', '    attn_impl: flash',
    'train_loader:', '  name: text', 'global_train_batch_size: 64', 'device_train_microbatch_size: 4', 'precision: amp_bf16',
    'eval_first: false', 'fsdp_config:', '  sharding_strategy: FULL_SHARD', '  activation_checkpointing: true' }
  local function with(old, new)
    return trinity.job(file_of('yaml', (table.concat(lines, '\n') .. '\n'):gsub(old, new)), { gpus = 8 })
  end
  it('is read with its variables: batch, sharding, network and memory', function()
    local found = with('^$', '')
    expect(found.client):equals 'LLM Foundry'
    expect(codes(found)):equals ''
    expect(found.model.sequence):equals(1024)
    expect(found.model.ffn):equals(2048)
    expect(found.micro_batches):equals(2)
    expect(found.zero_stage):equals(3)
    expect(found.recompute.granularity):equals 'full'
    expect(found.precision):equals 'bf16'
    expect(memory.of(found).rows[1].peak > 0):truthy()
  end)
  it('with one setting broken is refused, or reported as ignored or changed, by the rule of the client', function()
    for _, case in ipairs { { 'batch-multiple', 'size: 64', 'size: 60' }, { 'heads-multiple', 'n_heads: 8', 'n_heads: 7' },
      { 'attention-known', ': flash', ': triton' }, { 'key-unknown', 'eval_first', 'eval_frist' },
      { 'micro-batch-reduced', 'microbatch_size: 4', 'microbatch_size: 16' }, { 'float8-idle', 'amp_bf16', 'amp_fp8' } } do
      local found = with(case[2], case[3])
      expect(codes(found) .. codes(found, 'changed') .. codes(found, 'ignored')):equals(case[1])
    end
  end)
end)

describe('memory of a job', function()
  it('has a row per stage whose owners add up to its peak', function()
    local told = memory.of(trinity.job(script))
    expect(#told.rows):equals(2)
    for _, row in ipairs(told.rows) do
      local sum = 0
      for _, name in ipairs(memory.columns) do sum = sum + row[name] end
      expect(sum):equals(row.peak)
      expect(row.weights > 0 and row.optimizer > row.weights):truthy()
    end
    expect(told.rows[1].logits < told.rows[2].logits):truthy()
    expect(told.rows[1].operators[1].bytes > 0):truthy()
    for _, row in ipairs(told.rows) do
      local sum = 0
      for i, operator in ipairs(row.operators) do
        sum = sum + operator.bytes
        expect(operator.name):matches '^[%l_%d/]+$'
        expect(i == 1 or operator.bytes <= row.operators[i - 1].bytes):truthy()
      end
      expect(sum):equals(row.activations + row.logits)
    end
    expect(told.at.operator and told.at.micro_batch >= 1):truthy()
    expect(told.helps[1].frees_bytes > 0):truthy()
  end)
  it('counts states sharded over replicas of a group alone, and a sequence split over context', function()
    local toml = '[model]\nflavor = "8B"\n[parallelism]\ndata_parallel_replicate_degree = %d\n'
    local function weights(replicas)
      return memory.of(trinity.job(file_of('toml', toml:format(replicas)), { gpus = 8 })).rows[1].weights
    end
    expect(weights(2)):near(2 * weights(1), 1e-3 * weights(1))
    local function step(context)
      return memory.step(trinity.job(words_of { ['--seq-length'] = '8192', ['--max-position-embeddings'] = '8192',
        ['--hidden-size'] = '512', ['--context-parallel-size'] = context, ['--global-batch-size'] = '4', ['--bf16'] = true },
        { gpus = 4 }), 'dgx_h100')
    end
    expect(step '2' > 0 and step '2' ~= step '1'):truthy()
  end)
  it('counts gradients in bf16, states of the precision-aware optimizer and of SGD, and layers on the host', function()
    local function row(changes)
      return memory.of(trinity.job(words_of(merged({ ['--bf16'] = true }, changes)), { gpus = 2 })).rows[1]
    end
    local plain = row {}
    expect(row({ ['--grad-reduce-in-bf16'] = true }).gradients):equals(plain.gradients / 2)
    expect(row({ ['--optimizer'] = 'sgd' }).optimizer):near(plain.optimizer * 8 / 12, 1)
    local aware = { ['--use-precision-aware-optimizer'] = true, ['--use-distributed-optimizer'] = true }
    local whole = row({ ['--use-distributed-optimizer'] = true }).optimizer
    expect(row(aware).optimizer):near(whole * 10 / 12, 1)
    expect(row(merged(aware, { ['--exp-avg-dtype'] = 'bf16', ['--exp-avg-sq-dtype'] = 'fp8' })).optimizer):near(whole * 5 / 12, 1)
    local long = { ['--seq-length'] = '1024', ['--max-position-embeddings'] = '1024', ['--hidden-size'] = '1024',
      ['--micro-batch-size'] = '4' }
    expect(row(merged(long, { ['--cpu-offloading-num-layers'] = '4' })).activations):below(row(long).activations)
  end)
  it('names arguments that change it, but are not modelled', function()
    local found = trinity.job(words_of { ['--window-size'] = '8', ['--optimizer'] = 'muon' }, { gpus = 1 })
    expect(table.concat(memory.unmodelled(found), ', ')):equals '--window-size, --optimizer muon'
    expect(#memory.unmodelled(trinity.job(script))):equals(0)
    expect(#memory.unmodelled(trinity.job(file_of('toml', '[model]\nflavor = "8B"\n[optimizer]\nname = "AdamW"\n')))):equals(0)
  end)
  it('is within 3 % of what Megatron-LM measured for 7B on 8 GPUs', function()
    local path = core.home .. '/../shared/data/client-jobs/files/megatron_gpt3_7b_tp4_memory_speed.yaml'
    if not core.exists(path) then skip 'needs ../shared/data/client-jobs' end
    local row = memory.of(trinity.job(path, { gpus = 8 })).rows[1]
    expect(math.abs((row.peak - row.framework) / 57.1e9 - 1)):below(0.03) -- megatron-golden/ORIGIN.md, H100
  end)
  it('is refused where the file has no network', function()
    local found = trinity.job(file_of('json', '{"train_batch_size": 4}'), { gpus = 4 })
    expect(function() memory.of(found) end):raises 'files of DeepSpeed do not contain the network'
  end)
end)

describe('the step time that is expected', function()
  it('is the sum of its causes, and logs of both clients are read', function()
    local expected, found = require 'trinity.job.expect', trinity.job(script)
    local told, sum = expected.of(found, 'dgx_h100'), 0
    for _, cause in ipairs(told.causes) do
      expect(cause.seconds >= -1e-12):truthy()
      sum = sum + cause.seconds
    end
    expect(sum):near(told.step_time_s, 1e-6)
    local line = ' iteration %d/ 9 | elapsed time per iteration (ms): %.1f |\n'
    local log = line:format(1, 900) .. line:format(2, 20) .. line:format(3, 22)
    expect((expected.measured(log, found))):near(0.021, 1e-9)
    expect((expected.measured('step:  1  tps: 2,048  mfu: 1%\n', found))):near(1, 1e-9)
    expect((expected.measured('\27[36mstep: 10\27[39m  \27[34mwps: 1,024\27[39m\n', found))):near(2, 1e-9)
    expect((expected.measured('| elapsed time per iteration (s): 104.5 | learning rate: 6E-05 |', found))):near(104.5, 1e-9)
    expect(expected.measured('nothing', found)):equals(nil)
  end)
end)

describe('a plan from a job file', function()
  it('is faster, keeps the dimensions of --keep, and its diff applied is legal', function()
    local output = temporary '.sh'
    local said = trinity_says(("plan --from '%s' --keep pipeline --simulations 8 --quiet --run none --json --output '%s'")
      :format(script, output), 0)
    local told = trinity.files.json.decode(said:match '{.*}')
    expect(told.step_time_s):below(told.before_s)
    local found = trinity.job(output)
    expect(codes(found)):equals ''
    expect(found.mesh.pipeline):equals(2)
    expect(found.global_batch):equals(16)
    expect(memory.step(found, 'dgx_h100')):near(told.step_time_s, 1e-9)
  end)
  it('changes keys of a section and of MODEL_ARGS in their place', function()
    local diff = require 'trinity.job.diff'
    local text = diff.apply('a.toml', '[training]\nseq_len = 8 # tokens\n', {
      { name = 'training.steps', path = 'training.steps', value = 3 },
      { name = 'training.seq_len', path = 'training.seq_len', value = 4 } })
    expect(text):equals '[training]\nsteps = 3\nseq_len = 4 # tokens\n'
    text = diff.apply('a.yaml', 'MODEL_ARGS:\n  --bf16: true\n  --lr: 1e-4\nTEST_TYPE: regular\n', {
      { name = '--bf16', path = 'bf16', value = false }, { name = '--seed', path = 'seed', value = 2 } })
    expect(text):equals 'MODEL_ARGS:\n  --lr: 1e-4\n  --seed: 2\nTEST_TYPE: regular\n'
  end)
  it('changes words of a command, in quotes and in variables, where the client then reads them', function()
    local diff = require 'trinity.job.diff'
    local before = 'TP="$2"\nTP=${TP:-4} PP=2\ncmd="pretrain_gpt.py --micro-batch-size=1 --bf16 --lr 1 --x $TP"\n'
    local text, _, missed = diff.apply('a.sh', before, { { name = '--x', path = 'x', value = 8, kind = 'int' },
      { name = '--micro-batch-size', path = 'micro_batch_size', value = 2, kind = 'int' },
      { name = '--bf16', path = 'bf16', value = false, kind = 'flag' }, { name = '--lr', path = 'lr', kind = 'float' },
      { name = '--y', path = 'y', value = true, kind = 'flag' }, { name = '--z', path = 'z', value = 1, kind = 'int' } },
      function(now, change) return change.name ~= '--z' and (change.name ~= '--x' or now:find 'TP=8 ' ~= nil) end)
    expect(text):equals 'TP="$2"\nTP=8 PP=2\ncmd="pretrain_gpt.py --y --micro-batch-size=2 --x $TP"\n'
    expect(missed[1].name):equals '--z'
    expect(#missed):equals(1)
  end)
end)
