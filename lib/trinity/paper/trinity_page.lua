-- The page of the Trinity paper (Algorithms 2022, 15(4), 108).

local sections, models = {}, {}
for _, row in ipairs(require('trinity.paper.trinity').table4) do
  if models[#models] ~= row.model then models[#models + 1] = row.model end
end
for _, name in ipairs { 'sizes', 'table4', 'table5', 'policy', 'scratch', 'stages', 'rivals', 'measured' } do
  local made = require('trinity.paper.trinity_' .. name)
  for _, section in ipairs(made.run and { made } or made) do sections[#sections + 1] = section end
end

return { name = 'trinity', title = 'Trinity', sections = sections, models = models, quick = { updates = 3, seeds = 1 },
  source = 'Algorithms 2022, 15(4), 108: PPO over a partition and a schedule network. The paper measured on a machine '
    .. 'with four P100; here steps are simulated on p100_paper, whose dispatch was fitted (see table4).' }
