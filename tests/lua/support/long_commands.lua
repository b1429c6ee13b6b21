-- The commands that may take long. tests/lua/whole/long_commands_spec.lua tries on each what all of them promise; a
-- command that is new joins here.
--
--   name        of the command
--   words       its arguments, for about two seconds of work; --seed is added
--   kept        what it finds, as a pattern of the shell below its folder (runs/r of its run, or a file that it writes)
--   seconds     whether --seconds bounds it
--   seeded      whether another seed gives another result
--   resumes     whether, stopped by Ctrl-C, it goes on to the same bytes
--   resume      its words to go on, where that is not `trinity runs resume`
--   after       what it says (on either stream, or in a file) before Ctrl-C makes sense: a command of the shell

local best = 'runs/r/searches/*/strategy.json'
local begun = 'test -e runs/r/problems/1/problem.json && sleep 0.2'

return {
  { name = 'search', words = '--model inception_v3 --cluster p100x4 --method local_search --evaluations 16000', kept = best,
    seconds = true, seeded = true, resumes = true, after = begun },
  { name = 'search', words = '--model inception_v3 --cluster p100x4 --method random --evaluations 9000', kept = best,
    seconds = true, seeded = true, resumes = true, after = begun },
  { name = 'compare', words = '--model alexnet --cluster p100x4 --methods random,local_search,metis --seeds 2 '
    .. '--evaluations 20000', kept = best, seconds = true, seeded = true, resumes = true, after = begun },
  { name = 'train', words = '--graphs alexnet:8 --clusters p100x2 --rounds 3 --save w.safetensors', kept = 'w.safetensors',
    seeded = true, resumes = true, resume = '--resume', after = 'test -e w.safetensors.training' },
  { name = 'pipeline', words = '--model gpt2 --devices 4 --method max_load_annealing --rounds 2', kept = 'runs/r/results/*.json',
    seconds = true },
}
