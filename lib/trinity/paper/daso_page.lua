-- The page of DASO (Journal of Big Data 9:14, 2022).

local sections = {}
for i, name in ipairs { 'claims', 'map', 'skips', 'overlap' } do
  sections[i] = require('trinity.paper.daso_' .. name)
end
sections[#sections + 1] = require('trinity.paper.daso_parity').section

return { name = 'daso', title = 'DASO', sections = sections,
  source = 'Journal of Big Data 9:14, 2022: replicas that synchronise less between nodes. The paper measured on JUWELS '
    .. 'Booster, four A100 a\nnode, against Horovod: up to 34 % less training time, up to 25 % for ResNet-50. Times of '
    .. 'claims, map and skips are simulated;\noverlap and parity are trainings on this machine.' }
