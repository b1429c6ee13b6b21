-- The page of the PaSE paper (Elango, IPDPS 2021).

return { name = 'pase', title = 'PaSE', models = require('trinity.paper.pase_networks').names,
  sections = { require 'trinity.paper.pase_times', require('trinity.paper.pase_strategies').section,
    require 'trinity.paper.pase_speedups', require 'trinity.paper.pase_alexnet' },
  source = 'Elango, IPDPS 2021: the best split of every layer over p devices, exactly, under a cost model. The paper '
    .. 'measured on GTX 1080 Ti and RTX 2080 Ti, eight a machine, InfiniBand between; here steps are simulated on '
    .. 'gtx1080ti_ib and rtx2080ti_ib, of which nothing was fitted to the paper.' }
