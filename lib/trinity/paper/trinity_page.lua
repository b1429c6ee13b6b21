-- The page of the Trinity paper (Algorithms 2022, 15(4), 108).

local sections = {}
for i, name in ipairs { 'sizes' } do sections[i] = require('trinity.paper.trinity_' .. name) end

return { name = 'trinity', title = 'Trinity', sections = sections,
  source = 'Algorithms 2022, 15(4), 108: PPO over a partition and a schedule network. The paper measured on a machine '
    .. 'with four P100;\nhere steps are simulated on p100_paper, whose dispatch was fitted (see table4).' }
