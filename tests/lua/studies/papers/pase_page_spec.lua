-- The page of PaSE: FlexFlow's chain over simulated steps; tests/golden/studies/papers_pase.txt has its tables.

local trinity = require 'trinity'
local flexflow = require 'studies.papers.pase_flexflow'
local networks = require 'studies.papers.pase_networks'

describe("FlexFlow's chain over simulated steps", function()
  local function example()
    local cluster, search = trinity.cluster 'gtx1080ti_ibx4', networks.search('rnnlm', 4)
    return cluster, search, networks.simulator(search, cluster)
  end
  it('is no slower than the expert, from which it starts, and repeats itself', function()
    local cluster, search, price = example()
    local found = flexflow(search, cluster, { proposals = 30, seed = 1 })
    local again = flexflow(search, cluster, { proposals = 30, seed = 1 })
    expect(found.cost):equals(again.cost)
    expect(found.proposals <= 30 and found.simulated <= 31):truthy()
    expect(price(found).step_time_s <= price(search.expert).step_time_s):truthy()
  end)
  it("may beat PaSE's optimum in simulated steps, which it minimises, but not in PaSE's costs", function()
    local cluster, search, price = example()
    local found = flexflow(search, cluster, { proposals = 60, seed = 1 })
    expect(price(found).step_time_s):below(price(search.expert).step_time_s)
    expect(search.best.cost):below(found.cost)
  end)
  it('counts what exceeds the memory', function()
    local metrics = { memory_bytes = function(_, d) return d == 1 and 11 or 5 end }
    expect(networks.excess_bytes(metrics, { devices = { { capacity_bytes = 8 }, { capacity_bytes = 8 } } })):equals(3)
  end)
end)
