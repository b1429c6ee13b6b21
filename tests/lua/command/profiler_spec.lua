-- trinity --profile: folded stacks whose parts add up to the wall time, the hottest lines, what is refused.

local core = require 'trinity.core'

local script = temporary '.lua'
core.write_file(script, [[
local trinity = require 'trinity'
local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 1 }), cluster = trinity.cluster 'p100x4' }
local function spin()
  local sum = 0
  for i = 1, 4e7 do sum = sum + i % 7 end
  return sum
end
spin()
trinity.methods.annealing(problem, { evaluations = 20000, quiet = true })
if arg[1] == 'fail' then error 'on purpose' end
]])

--- Runs it: status, standard error, the stacks as { stack = microseconds }.
local function profiled(words)
  local file = temporary '.folded'
  local errors, status = output_of(("'%s' --profile '%s' '%s' %s --run none 2>&1 >/dev/null; echo \"status=$?\""):format(program,
    file, script, words or '')):match '^(.*)status=(%d+)\n$'
  local stacks = {}
  for line in core.read_file(file):gmatch '[^\n]+' do
    local stack, us = line:match '^(.*) (%d+)$'
    stacks[stack] = tonumber(us)
  end
  return tonumber(status), errors, stacks
end

describe('the profile of a script', function()
  it('adds up to the wall time, Lua and engine apart', function()
    local status, errors, stacks = profiled()
    expect(status):equals(0)
    local wall_s, sum, engine, spin = tonumber(errors:match 'profile: ([%d.]+) s'), 0, 0, 0
    for stack, us in pairs(stacks) do -- a sum of whole numbers: in any order
      sum = sum + us
      if stack:find '%[engine%]$' then engine = engine + us end
      if stack:find ':spin' then spin = spin + us end
    end
    expect(sum / 1e6 / wall_s):near(1, 0.05)
    expect(engine > 0):equals(true)
    expect(spin > 0):equals(true)
    expect(errors):matches 'line +seconds +of all'
    expect(errors):matches(script:match '[^/]*$' .. ':[5-7] ')
  end)
  it('is written where the script fails, too', function()
    local status, errors, stacks = profiled 'fail'
    expect(status):equals(1)
    expect(errors):matches 'on purpose'
    expect(next(stacks) ~= nil):equals(true)
  end)
  it('is refused where its file cannot be written, and for untrusted scripts', function()
    trinity_says(("--profile /proc/no/x '%s'"):format(script), 1, 'profile')
    trinity_says(("--safe --profile x '%s'"):format(script), 2, '%-%-profile cannot be used with %-%-safe')
  end)
end)
