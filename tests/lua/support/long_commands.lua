-- The commands that may take long. tests/lua/whole/long_commands_spec.lua tries Ctrl-C on each, and on those that are
-- `seconds` long all that the frame of searches promises; a command that is new joins here.
--
--   name, words  of the command: for a second or two of work where it goes on after Ctrl-C, else for work without end;
--                --seed is added where `seed` is not false (it is deterministic, or has `--seeds`), --run where `keeps_run`
--                is not
--   files        what stands in its folder before: { name = text }
--   kept         what it finds, as a pattern of the shell below its folder (runs/r of its run, or a file that it writes)
--   says         what it says when Ctrl-C stops it, as a pattern; needed where it does not go on
--   after        what it says (on standard output in the file `out`, on standard error in `err`, or in a file of its own)
--                before Ctrl-C makes sense: a command of the shell, where `worked N` says that it has had N hundredths of a
--                second of CPU time since it was first asked
--   resumes      whether, stopped by Ctrl-C, it goes on to the same bytes: by `trinity runs resume`, or where it is started
--                `again`
--   seconds      what --seconds gives it; endless: its words for that (default: `words` with a great --evaluations); brief:
--                those for its end; seeded: whether another seed gives another result

local best = 'runs/r/searches/*/strategy.json'
local begun = 'test -e runs/r/problems/1/problem.json && worked 20'
local result = 'runs/r/results/*.json'

-- A selection problem that takes the search's time: 150 nodes of 8 strategies, each joined to a few, and a limit.
local function selection()
  local draw = require('trinity').random(1, 'selection')
  local costs, usages, intervals, nodes, edges = {}, {}, {}, {}, {}
  local function numbers(count, most)
    local list = {}
    for i = 1, count do list[i] = ('%d'):format(draw:integer(most)) end
    return '[' .. table.concat(list, ',') .. ']'
  end
  for v = 1, 150 do
    costs[v], usages[v], intervals[v] = numbers(8, 1000), numbers(8, 100), ('[%d,%d]'):format(v, v + 20)
    for _ = 1, v > 1 and 3 or 0 do
      nodes[#nodes + 1] = ('[%d,%d]'):format(draw:integer(v - 1) - 1, v - 1)
      edges[#edges + 1] = numbers(64, 1000)
    end
  end
  local function list(rows) return '[' .. table.concat(rows, ',') .. ']' end
  return ('{"problem":{"name":"long","nodes":{"intervals":%s,"costs":%s,"usages":%s},"edges":{"nodes":%s,"costs":%s},'
    .. '"usage_limit":700}}'):format(list(intervals), list(costs), list(usages), list(nodes), list(edges))
end

-- 400 samples of three numbers and a class.
local function samples()
  local draw, lines = require('trinity').random(1, 'samples'), {}
  for i = 1, 400 do
    local a, b, c = draw:uniform(), draw:uniform(), draw:uniform()
    lines[i] = ('%.3f,%.3f,%.3f,%d\n'):format(a, b, c, a + b > c and 0 or 1)
  end
  return table.concat(lines)
end

-- Runs of a narrow network on 16 to 64 GPUs, with times that no model predicts exactly.
local function runs(count)
  local draw, lines = require('trinity').random(1, 'runs'), { '# GPUs,global batch,micro batch,hidden size,attention heads,'
    .. '# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n' }
  for i = 1, count do
    local tensor, data, pipeline = 2 ^ draw:integer(2), 2 ^ (1 + draw:integer(2)), 2
    lines[i + 1] = ('%d,%d,1,%d,16,4,32,%d,%d,%d,%.3f\n'):format(tensor * data * pipeline, data * 4,
      128 * draw:integer(8), tensor, data, pipeline, 20 + 20 * draw:uniform())
  end
  return table.concat(lines)
end

-- Rows of published speeds: small networks of three names on 8 to 32 GPUs, each of its own shape.
local function speeds(count)
  local draw, lines = require('trinity').random(1, 'speeds'), { 'id,model,parameters_b,hidden,layers,heads,kv_heads,ffn,vocab,'
    .. 'experts,experts_per_token,sequence,global_batch,micro_batch,gpus,gpu,tp,pp,vpp,dp,cp,ep,zero,recompute,precision,'
    .. 'value,unit,source,note\n' }
  for i = 1, count do
    local tensor, data = 2 ^ draw:integer(2), 2 ^ draw:integer(2)
    lines[i + 1] = ('r%d,GPT%d,,%d,4,16,,4096,8192,,,512,%d,1,%d,A100-80GB,%d,2,1,%d,1,,1,none,bf16,%.1f,'
      .. 'tokens_per_s_per_gpu,,\n'):format(i, i % 3, 64 * draw:integer(30), data * 8 * draw:integer(4), tensor * 2 * data,
      tensor, data, 5000 + 5000 * draw:uniform())
  end
  return table.concat(lines)
end

local home = require('trinity.core').home
local function weights(name) return require('trinity.core').read_file(('%s/models/policies/%s.safetensors'):format(home, name)) end
local held_out = { ['runs/policy/attention.safetensors'] = weights 'moves' } -- which a study would train first
local rows_done = '%d+ rows are done'
local told = 'stopped by Ctrl%-C: %d+ of %d+ [^\n]* are predicted; it cannot be resumed'
local fit = 'the fit ended early %(Ctrl%-C%) with the best so far; it cannot be resumed'
local network = ' --model rnnlm --set hidden=64,vocabulary=200,sequence=8 --batch_size 4'

local goes_on = {
  { name = 'search', words = '--model inception_v3 --cluster p100x4 --method local_search --evaluations 16000', kept = best,
    seconds = 1, seeded = true, after = begun },
  { name = 'search', words = '--model alexnet --cluster p100x4 --method random,local_search,metis --seeds 2 '
    .. '--evaluations 20000', kept = best, seconds = 1, seeded = true, after = begun },
  { name = 'study papers', words = 'pase --only figure6 --quick', kept = result, seconds = 1, endless = 'pase --only figure6',
    after = 'grep -q "^figure6: rnnlm" err' },
  { name = 'train', words = '--graphs alexnet:8 --clusters p100x2 --rounds 3 --output w.safetensors', kept = 'w.safetensors',
    after = 'test -e w.safetensors.training' },
  { name = 'execute', words = '--model mlp --set inputs=3,classes=2 --data d.csv --batch_size 20 --epochs 150 '
      .. '--checkpoint c.safetensors --save w.safetensors', files = { ['d.csv'] = samples() }, kept = '[cw].safetensors',
    after = 'test -e c.safetensors', says = 'stopped by Ctrl%-C after %d+ steps; the same command resumes from %-%-checkpoint' },
  { name = 'study train_distributed', words = '--method bsp --epochs 12 --checkpoint saved', kept = 'saved/bsp-1', resumes = 'again',
    after = 'test -e saved/bsp-1',
    says = '0 of 1 trainings are done; the one that ran goes on with the same %-%-checkpoint' },
  { name = 'study papers', words = 'trinity --only stages --quick --updates 8 --models gnmt', kept = result,
    after = 'test -e runs/r/searches/2' },
  { name = 'study papers', words = 'tapp --only cases --quick --models vgg16 --updates 10 --seeds 1', kept = result,
    after = 'test -e runs/r/searches/m1i1-2' },
  { name = 'study papers', words = 'daso --only skips --quick', kept = result, after = 'grep -q "^skips: resnet50, 32" err' },
  { name = 'study placement', words = ("--folder '%s/tests/data/profiles' --evaluations 9000 --seeds 2 "
    .. '--methods random,annealing'):format(home), kept = best, seed = false, after = 'test -e runs/r/searches/2',
    says = '%d+ rows are done' },
  { name = 'study policy', words = 'show --graphs alexnet:8 --clusters p100x2,p100x4 --evaluations 2500 --seeds 3', kept = best,
    seed = false, after = 'test -e runs/r/searches/4', says = rows_done },
  { name = 'study policy', words = 'optima --units 20,30 --seeds 2 --samples 400', kept = best, seed = false,
    after = 'test -e runs/r/searches/1/strategy.json', says = rows_done },
  { name = 'study policy', words = 'study --families attention --evaluations 60 --seeds 1', files = held_out, kept = result,
    seed = false, after = 'test -e runs/r/searches/3', says = rows_done },
  { name = 'study policy', words = 'front runs/policy/attention.safetensors --families attention --evaluations 60 --seeds 1',
    files = held_out, kept = result, seed = false, after = 'test -e runs/r/searches/19', says = rows_done },
  { name = 'simulate', words = '--batch_size 64 --cluster p100x4 --method trinity --evaluations 30000 --trace t.json', kept = best, after = begun },
  { name = 'export', words = '--format placement --cluster p100x4 --method annealing --evaluations 60000', kept = best,
    after = begun },
}
for _, command in ipairs(goes_on) do command.resumes = command.resumes or true end

-- Commands that do not resume: { command and words, kept, what it says, the sign after which Ctrl-C comes, files }.
local begins_anew = {
  { 'pipeline --model gpt2 --devices 4 --method max_load_annealing', result, 'trinity pipeline cannot be resumed',
    'best' },
  { 'plan gpt2 --set layers=48,fused=false,dropout=0 --cluster dgx_a100x8 --global_batch 512 --runtime any '
    .. '--simulations 1000000 --plans 1000', result, 'stopped early %(Ctrl%-C%); [^\n]*trinity plan cannot be resumed',
    'simulated, best' },
  { 'execute' .. network .. ' --steps 1000000 --warm_up 1', result, 'after %d+ of 1000000 steps; [^\n]*a new run starts at step 1',
    'step [3-9]' },
  { 'study whole_loop --networks mlp:4 --mixtures 2 --steps 1000000', result,
    'after %d+ of 1000000 rounds; [^\n]*a new run starts at round 1', 'round [2-9]' },
  { 'execute' .. network .. ' --steps 1000000 --warm_up 1 --largest_copy 4096 --profile p.json', 'p.json',
    'after %d+ of 1000000 measured steps; [^\n]*a new one starts at step 1', 'step [1-9]' },
  { 'study fidelity vtrain --rows r.csv --fit --save c.lua', 'c.lua', fit, '/.* items', runs(3000) },
  { 'study fidelity vtrain --rows r.csv', result, told, '[2-9] of .* pieces', runs(3000) },
  { 'study fidelity published --rows r.csv', result, told, '[2-9] of .* pieces', speeds(3000) },
  { 'study fidelity published --rows r.csv --fit --save c.lua', 'c.lua', fit, '/.* items', speeds(3000) },
  { 'study fidelity published --rows r.csv --cross_validate', result, told, '[1-9] of .* networks', speeds(3000) },
  { 'study fidelity plan --rows r.csv', result, told, '[2-9] of .* pieces', speeds(3000) },
  { 'study train_distributed --seeds 100000 --epochs 2', result, '%d+ of 200000 trainings are done; the one that ran was not saved',
    'daso, seed 1' },
}
local commands = { { name = 'study select', words = 'p.json', files = { ['p.json'] = selection() }, kept = result, seconds = 1,
  brief = 'p.json --rounds 4', endless = 'p.json', after = 'grep -q "searching  cost" out err',
  says = 'stopped by Ctrl%-C with the best so far' } }
for _, row in ipairs(begins_anew) do
  local name, words = row[1]:match '^(study %S+) (.*)$'
  if not name then name, words = row[1]:match '^(%S+) (.*)$' end
  commands[#commands + 1] = { name = name, words = words, kept = row[2], after = ('grep -q "%s" out err'):format(row[4]),
    says = row[3]:gsub('^after', 'stopped by Ctrl%%-C after'):gsub('^with', 'stopped by Ctrl%%-C with'),
    files = row[5] and { ['r.csv'] = row[5] } }
  if name == 'study fidelity' then commands[#commands].seed = false end
end
for _, command in ipairs(goes_on) do commands[#commands + 1] = command end
return commands
