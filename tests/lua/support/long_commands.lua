-- The commands that may take long. tests/lua/whole/long_commands_spec.lua tries on each what all of them promise; a
-- command that is new joins here.
--
--   name        of the command
--   commit      whether it is tried for a commit, where the others wait for `test all`
--   words       its arguments, for a second or two of work; --seed is added where `seed` is not false
--   files       what stands in its folder before: { name = text }
--   kept        what it finds, as a pattern of the shell below its folder (runs/r of its run, or a file that it writes)
--   same        what of that is the same for the same seed, as a command of the shell; without: all but what clocks say
--   seconds     seconds that --seconds gives it (each of its searches, where it has several), or a text that says why it has
--               no such option
--   minutes     the same in minutes, of a command that has --minutes
--   endless     its words for that, for its progress and, where it does not go on, for Ctrl-C: work that does not end before
--               (default: `words` with a great --evaluations and no --rounds)
--   seed        false: it takes none, since it draws nothing, or has `--seeds`
--   seeded      whether another seed gives another result
--   resumes     whether, stopped by Ctrl-C, it goes on to the same bytes
--   resume      'again': after Ctrl-C it is started again, where others go on by `trinity runs resume`
--   says        what it says when Ctrl-C stops it, as a pattern; needed where it does not go on
--   after       what it says (on standard output in the file `out`, on standard error in `err`, or in a file of its own)
--               before Ctrl-C makes sense: a command of the shell, where `worked N` says that it has had N hundredths of a
--               second of a processor since it was first asked
--   struck      its words for Ctrl-C, where it keeps nothing of `endless`
--   progress    its words for that, where `endless` shows none
--   finished    what it says, as a pattern, where nothing is left to go on with
--   gentle      false: where Ctrl-C comes early it has found nothing yet
--   memory      what it gets by --memory-limit (default 600M)

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

-- Runs of a narrow network on 16 to 64 GPUs, with times that no model tells exactly.
local function runs(count, networks)
  networks = networks or 8
  local draw, lines = require('trinity').random(1, 'runs'), { '# GPUs,global batch,micro batch,hidden size,attention heads,'
    .. '# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n' }
  for i = 1, count do
    local tensor, data, pipeline = 2 ^ draw:integer(2), 2 ^ (1 + draw:integer(2)), 2
    lines[i + 1] = ('%d,%d,1,%d,16,4,32,%d,%d,%d,%.3f\n'):format(tensor * data * pipeline, data * 4,
      1024 / networks * draw:integer(networks), tensor, data, pipeline, 20 + 20 * draw:uniform())
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
local held_out = { ['runs/policy/attention.safetensors'] = weights 'moves',
  ['runs/policy/attention-schedulers.safetensors'] = weights 'schedulers' } -- which a study would train first
local told = 'stopped by Ctrl%-C: %d+ of %d+ [^\n]* are told, which is not gone on from'
local network = '--model rnnlm --set hidden=64,vocabulary=200,sequence=8 --batch_size 4'

return {
  { commit = true, name = 'search', words = '--model inception_v3 --cluster p100x4 --method local_search --evaluations 16000', kept = best,
    seconds = 1, seeded = true, resumes = true, after = begun },
  { name = 'search', words = '--model inception_v3 --cluster p100x4 --method random --evaluations 9000', kept = best,
    seconds = 1, seeded = true, resumes = true, after = begun },
  { commit = true, name = 'compare', words = '--model alexnet --cluster p100x4 --methods random,local_search,metis --seeds 2 '
    .. '--evaluations 20000', kept = best, seconds = 1, seeded = true, resumes = true, after = begun },
  { name = 'train', words = '--graphs alexnet:8 --clusters p100x2 --rounds 3 --save w.safetensors', kept = 'w.safetensors',
    minutes = 0.02, endless = '--graphs alexnet:8 --clusters p100x2 --save w.safetensors', seeded = true, resumes = true,
    after = 'test -e w.safetensors.training' },
  { name = 'train', words = '--learns schedulers --graphs alexnet:8 --clusters p100x2 --members 2 --rounds 20 --save w.safetensors',
    kept = 'w.safetensors', seconds = 'rounds of a scheduler take milliseconds, and there are as many as --rounds says',
    endless = '--learns schedulers --graphs alexnet:8 --clusters p100x2 --members 2 --rounds 1000000 --save w.safetensors',
    seeded = true, after = 'grep -q "round [0-9]" err',
    says = 'stopped by Ctrl%-C after %d+ of %d+ rounds, which are not gone on from: a new training begins at round 1' },
  { name = 'pipeline', words = '--model gpt2 --devices 4 --method max_load_annealing --rounds 3', kept = result,
    seconds = 1, after = 'grep -q best out err', endless = '--model gpt2 --devices 4 --method max_load_annealing',
    says = 'stopped by Ctrl%-C with the best so far, which is not gone on from' },
  { name = 'plan', words = 'gpt2 --set layers=12,fused=false,dropout=0 --cluster dgx_a100x2 --global_batch 64 --simulations 40',
    kept = result, seconds = 5, after = 'grep -q "simulated, best" out err',
    endless = 'gpt2 --set layers=48,fused=false,dropout=0 --cluster dgx_a100x8 --global_batch 512 --simulations 1000000 '
      .. '--plans 1000 --refinements 1000000',
    says = 'ended early %(Ctrl%-C%) with the best so far, which is not gone on from' },
  { name = 'execute', words = network .. ' --steps 500 --warm_up 1', kept = result, seconds = 1, seeded = true,
    endless = network .. ' --steps 1000000 --warm_up 1', after = 'grep -q "step [3-9]" out err', memory = '2G',
    same = [[sed -n '/"losses"/,/]/p' runs/r/results/measured.json]],
    says = 'stopped by Ctrl%-C after %d+ of 1000000 steps; [^\n]*a new run begins at step 1' },
  { name = 'execute', words = '--model mlp --set inputs=3,classes=2 --data d.csv --batch_size 20 --epochs 150 '
      .. '--checkpoint c.safetensors --save w.safetensors', files = { ['d.csv'] = samples() }, kept = '[cw].safetensors',
    endless = '--model mlp --set inputs=3,classes=2 --data d.csv --batch_size 20 --epochs 1000000 --checkpoint c.safetensors',
    seconds = 1, seeded = true, resumes = true, after = 'test -e c.safetensors', memory = '2G',
    says = 'stopped by Ctrl%-C after %d+ steps; with %-%-checkpoint it goes on from there',
    finished = 'c.safetensors has %d+ steps, expected fewer' },
  { name = 'execute', words = network .. ' --mixtures 2 --devices cpu:0,cpu:1 --steps 2', kept = result, seconds = 1,
    endless = network .. ' --mixtures 2 --devices cpu:0,cpu:1 --steps 1000000', after = 'grep -q "round [2-9]" out err',
    memory = '2G', same = [[grep '"name"' runs/r/results/mixtures.json]],
    says = 'stopped by Ctrl%-C after %d+ of 1000000 rounds; [^\n]*a new run begins at round 1' },
  { name = 'profile', words = network .. ' --steps 300 --warm_up 1 --largest_copy 4096 --out p.json', kept = 'p.json',
    seconds = 1, after = 'grep -q "step [1-9]" out err', memory = '2G', same = [[grep -o '"fingerprint": "[^"]*"' p.json]],
    endless = network .. ' --steps 1000000 --warm_up 1 --largest_copy 4096 --out p.json',
    says = 'stopped by Ctrl%-C after %d+ of 1000000 measured steps, [^\n]*a new one begins at step 1' },
  { name = 'fidelity', words = 'vtrain --rows r.csv --fit --steps 1 --save c.lua',
    files = { ['r.csv'] = runs(3), ['many.csv'] = runs(40) }, kept = 'c.lua', seed = false,
    seconds = 'a fit ends by its steps, which are few', endless = 'vtrain --rows many.csv --fit --steps 100 --save c.lua',
    after = 'grep -q "step [1-9]" out err', memory = '2G',
    says = 'the fit ended early %(Ctrl%-C%) with the best so far, which is not gone on from' },
  { name = 'fidelity', words = 'vtrain --rows r.csv', kept = result, files = { ['r.csv'] = runs(70), ['many.csv'] = runs(3000) },
    seed = false, seconds = 'rows are told one by one, as many as the table has', endless = 'vtrain --rows many.csv',
    after = 'grep -q "[2-9] of .* pieces" err', memory = '2G', says = told },
  { name = 'fidelity', words = 'published --rows r.csv', kept = result, seed = false,
    files = { ['r.csv'] = speeds(40), ['many.csv'] = speeds(3000) },
    seconds = 'rows are told one by one, as many as the table has', endless = 'published --rows many.csv',
    after = 'grep -q "[2-9] of .* pieces" err', memory = '2G', says = told },
  { name = 'fidelity', words = 'published --rows r.csv --fit --save c.lua', kept = 'c.lua', seed = false,
    files = { ['r.csv'] = speeds(6), ['many.csv'] = speeds(3000) }, seconds = 'a fit ends by its steps, which are few',
    endless = 'published --rows many.csv --fit --save c.lua', after = 'grep -q "/.* items" err', memory = '2G',
    says = 'the fit ended early %(Ctrl%-C%) with the best so far, which is not gone on from' },
  { name = 'fidelity', words = 'published --rows r.csv --left_out', kept = result, seed = false,
    files = { ['r.csv'] = speeds(6), ['many.csv'] = speeds(3000) }, seconds = 'a fit ends by its steps, which are few',
    endless = 'published --rows many.csv --left_out', after = 'grep -q "[1-9] of .* networks" err', memory = '2G',
    says = told },
  { name = 'fidelity', words = 'plan --runs r.csv', kept = result, seed = false,
    files = { ['r.csv'] = runs(12), ['many.csv'] = runs(3000, 64) }, seconds = 'a search a group, which ends by its rows',
    endless = 'plan --runs many.csv', after = 'grep -q "[2-9] of .* groups" err', memory = '2G', says = told },
  { commit = true, name = 'select', words = 'p.json --rounds 4', files = { ['p.json'] = selection() }, kept = result, seconds = 1,
    endless = 'p.json', after = 'grep -q "searching  cost" out err', says = 'stopped by Ctrl%-C with the best so far' },
  { name = 'train_distributed', words = '--method bsp --epochs 12 --checkpoint saved', kept = 'saved/bsp-1',
    seconds = 1, endless = '--method bsp --epochs 100000 --checkpoint saved',
    same = 'cksum saved/bsp-1', seeded = true, resumes = true, resume = 'again', after = 'test -e saved/bsp-1',
    says = '0 of 1 trainings are done; the one that ran goes on with the same %-%-checkpoint', memory = '2G',
    finished = 'saved/bsp%-1 has %d+ steps, expected fewer' },
  { name = 'train_distributed', words = '--seeds 2 --epochs 5', kept = result, seeded = true,
    seconds = 1, endless = '--seeds 2 --epochs 100000',
    same = [[grep '"loss"' runs/r/results/training.json]], after = 'grep -q "daso, seed 1" out err', memory = '2G',
    struck = '--seeds 100000 --epochs 2', says = '%d+ of 200000 trainings are done; the one that ran was not saved' },
  { name = 'reproduce', words = 'trinity --only stages --quick --updates 8 --models gnmt', kept = result, seeded = true,
    seconds = 1, endless = 'trinity --only stages --models gnmt',
    resumes = true, after = 'test -e runs/r/searches/2', memory = '2G' },
  { name = 'reproduce', words = 'tapp --only cases --quick --models vgg16 --updates 10 --seeds 1', kept = result, seconds = 1,
    endless = 'tapp --only cases --models vgg16 --seeds 100', seeded = true, resumes = true,
    after = 'test -e runs/r/searches/m1i1-2', memory = '2G' },
  { commit = true, name = 'reproduce', words = 'pase --only figure6 --quick', kept = result, seconds = 1, endless = 'pase --only figure6',
    resumes = true, after = 'grep -q "^figure6: rnnlm" err', memory = '2G' },
  { name = 'reproduce', words = 'daso --only skips --quick', kept = result, seconds = 1, endless = 'daso --only map',
    resumes = true, after = 'grep -q "^skips: resnet50, 32" err', memory = '2G' },
  { name = 'tradeoff', words = '--evaluations 600 --seeds 2', kept = 'runs/tradeoff.csv', seed = false, resumes = true,
    seconds = 0.2, endless = '--evaluations 100000000 --seeds 1',
    after = 'test -e runs/r/searches/3', says = '%d+ of 10 settings are done', gentle = false },
  { name = 'placement_benchmark', words = ("--folder '%s/tests/data/profiles' --evaluations 9000 --seeds 2 "
    .. '--methods random,annealing'):format(home), kept = best, seed = false, resumes = true,
    seconds = 0.5, endless = ("--folder '%s/tests/data/profiles' --only small --seeds 1 --methods random,annealing"):format(
      home),
    after = 'test -e runs/r/searches/2', says = '%d+ of %d+ rows are done' },
  { name = 'policy', words = 'show --graphs alexnet:8 --clusters p100x2,p100x4 --evaluations 2500 --seeds 3', kept = best,
    seconds = 0.5, endless = 'show --graphs alexnet:8 --clusters p100x4 --seeds 1',
    progress = 'show --graphs alexnet:8 --clusters p100x4 --seeds 1000',
    seed = false, resumes = true, after = 'test -e runs/r/searches/4', says = '%d+ problems are done' },
  { name = 'policy', words = 'optima --units 20,30 --seeds 2 --samples 400', kept = best, seed = false, resumes = true,
    seconds = 0.5, endless = 'optima --units 200 --seeds 1 --samples 100000000',
    progress = 'optima --units 20 --seeds 1000 --samples 400',
    after = 'test -e runs/r/searches/1/strategy.json', says = '%d+ rows are done', memory = '2G' },
  { name = 'policy', words = 'study --families attention --evaluations 60 --seeds 1', files = held_out, kept = result,
    seconds = 0.3, endless = 'study --families attention --seeds 1', seed = false, resumes = true,
    progress = 'study --families attention --evaluations 300 --seeds 20',
    after = 'test -e runs/r/searches/3', says = '%d+ rows are done' },
  { name = 'policy', words = 'front runs/policy/attention.safetensors --families attention --evaluations 60 --seeds 1',
    files = held_out, kept = result,
    seconds = 0.1, endless = 'front --families attention --seeds 1', seed = false, resumes = true,
    progress = 'front --families attention --seeds 1000', after = 'test -e runs/r/searches/19', says = '%d+ rows are done' },
  { name = 'policy', words = 'schedulers --families attention', files = held_out, kept = result, seed = false,
    seconds = 'schedulers search for nothing, and --seconds is refused', resumes = true,
    progress = 'schedulers --families recurrent', after = 'test -e runs/r/searches/20', says = '%d+ rows are done' },
  { name = 'timeline', words = '--method trinity --evaluations 30000', kept = best, seconds = 1, seeded = true,
    resumes = true, after = begun },
  { name = 'export', words = '--format placement --cluster p100x4 --method annealing --evaluations 60000', kept = best,
    seconds = 1, seeded = true, resumes = true, after = begun },
}
