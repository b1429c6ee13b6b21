-- CPU seconds to sample a batch from the placement policy and to learn from it, all threads together:
--   build/trinity tests/bench/bench_learn.lua [UPDATES]
-- Medians over updates of the default options, on InceptionV3.

local trinity = require 'trinity'

local updates = tonumber(arg[1] or 9)
local rows = {}
for _, cluster in ipairs { 'p100x2', 'p100x4' } do
  local problem = trinity.problem { graph = trinity.model('inception_v3', { batch_size = 64 }),
    cluster = trinity.cluster(cluster), reward = trinity.rewards.mdpe() }
  local agent = trinity.learn.agent(problem)
  local draw_s, learn_s, wall_s = {}, {}, {}
  for number = 0, updates do -- the first one warms up
    local wall, start = trinity.system.clock_s(), os.clock()
    local placements = agent:sample()
    local drawn = os.clock()
    local drawn_wall = trinity.system.clock_s()
    local rewards = {}
    for i, metrics in ipairs(problem:evaluate_batch(placements)) do rewards[i] = problem:score(metrics) end
    local priced, priced_wall = os.clock(), trinity.system.clock_s()
    agent:update(rewards)
    draw_s[number], learn_s[number] = drawn - start, os.clock() - priced
    wall_s[number] = drawn_wall - wall + trinity.system.clock_s() - priced_wall
  end
  local function text(list) return ('%.1f ms'):format(trinity.system.median(list) * 1e3) end
  local both = {}
  for i = 1, updates do both[i] = draw_s[i] + learn_s[i] end
  rows[#rows + 1] = { cluster, text(draw_s), text(learn_s), text(both), text(wall_s) }
end
print(trinity.system.format_table({ 'cluster', 'draw', 'learn', 'both', 'wall time' }, rows))
