-- The page of the TAPP paper (Appl. Sci. 2021, 11(11), 4785).

local sections = {}
for i, name in ipairs { 'claims', 'learning', 'table' } do sections[i] = require('trinity.paper.tapp_' .. name) end

return { name = 'tapp', title = 'TAPP', sections = sections, seeds = 5, quick = { updates = 100, seeds = 2 },
  models = require('trinity.paper.tapp_baselines').models,
  source = 'Appl. Sci. 2021, 11(11), 4785: layers into groups, groups onto nodes of a pipeline, both by policy '
    .. 'gradient. The paper states two averages and neither networks nor machines; here steps are simulated on unequal '
    .. 'machines of our choice.' }
