-- What simulating a move from a kept state could save, instead of the whole step:
-- build/trinity tests/bench/bench_changes.lua
--
-- Moves are those that annealing draws from the placement that it has after 400 evaluations. Kept states lie before
-- the first start that a move changes, at best right before it: `resumed` is the number of all operators over those
-- that start from then on. `changed` is the share of operators whose start differs: what is run again where changes are
-- followed from operator to operator. Medians and quartiles.

local trinity = require 'trinity'

local function quartiles(values)
  table.sort(values)
  return ('%.2f (%.2f to %.2f)'):format(values[#values / 2], values[#values / 4], values[#values * 3 / 4])
end

-- Operators over those that start at or behind the first change, and the share of changed starts.
local function compared(before, after, moved)
  local first_s, changed, behind, n = math.huge, 0, 0, before.tasks
  for o = 1, n do
    if before.start_s[o] ~= after.start_s[o] or moved(o) then
      first_s, changed = math.min(first_s, before.start_s[o], after.start_s[o]), changed + 1
    end
  end
  for o = 1, n do behind = behind + (after.start_s[o] >= first_s and 1 or 0) end
  return n / behind, changed / n
end

print('graph         operators  moves  resumed, times        changed')
for _, name in ipairs { 'inception_v3', 'gnmt' } do
  local problem = trinity.problem { graph = trinity.model(name), cluster = trinity.cluster 'p100x4' }
  local start = trinity.methods.annealing(problem, { evaluations = 400, seed = 1, quiet = true }).placement
  local moves, before, resumed, changed = problem:moves(), problem:timeline(start), {}, {}
  moves:look(start)
  for _ = 1, 8 do
    local drawn = moves:draw(start, 16)
    for i = 1, 16 do
      local placement = problem:placement()
      for o = 1, problem.graph.operators do placement[o] = start[o] end
      drawn:apply(i, placement)
      resumed[#resumed + 1], changed[#changed + 1] = compared(before, problem:timeline(placement), function(o)
        return placement[o] ~= start[o]
      end)
    end
  end
  print(('%-14s%9d%7d  %-20s  %s'):format(name, problem.graph.operators, #resumed, quartiles(resumed),
    quartiles(changed)))
end
