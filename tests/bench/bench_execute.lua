-- What a step of the executor costs beside that of another build, such as the last release's:
--   build/trinity tests/bench/bench_execute.lua OTHER/trinity [ROUNDS]
-- Both programs execute the same networks in turn, one worker each and a pipeline of two; a round's ratio is of the two
-- medians that were measured one after the other, and the median of all rounds counts, so that what else the machine
-- does meets both.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local other, rounds = arg[1], tonumber(arg[2] or 9)
if not other then util.fail_usage 'use: bench_execute.lua OTHER/trinity [ROUNDS]' end
local own = core.home .. '/build/trinity'

local cases = {
  { 'small steps, one worker', '--model mlp --batch_size 50 --devices cpu:0 --steps 400 --warm_up 50' },
  { 'decoder, one worker', '--model gpt2 --batch_size 1 --set fused=false,layers=2,hidden=128,heads=4,vocabulary=512,'
    .. 'sequence=64,positions=64 --devices cpu:0 --steps 12 --warm_up 2' },
  { 'convolutions, two workers', '--model alexnet --batch_size 2 --devices cpu:0,cpu:1 --method contiguous --steps 8 '
    .. '--warm_up 2' },
}

--- The median step of a program, seconds.
local function step_s(program, words)
  local pipe = assert(io.popen(("TRINITY_RUNS=none '%s' execute %s --json 2>/dev/null"):format(program, words)))
  local text = pipe:read '*a'
  pipe:close()
  return json.decode(text, program).step_time_s
end

local rows = {}
for i, case in ipairs(cases) do
  local ratios, times = {}, {}
  for round = 1, rounds do
    local first, second = round % 2 == 0 and other or own, round % 2 == 0 and own or other
    local took = { [first] = step_s(first, case[2]) }
    took[second] = step_s(second, case[2])
    ratios[round], times[round] = took[own] / took[other], took[own]
  end
  table.sort(ratios)
  rows[i] = { case[1], ('%.3g ms'):format(1e3 * util.median(times)), ('%.3f'):format(util.median(ratios)),
    ('%.3f to %.3f'):format(ratios[math.ceil(rounds / 4)], ratios[math.ceil(3 * rounds / 4)]) }
end
print(require('trinity.base.text').format_table({ 'case', 'step', 'over the other', 'quartiles' }, rows))
