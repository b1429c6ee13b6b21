-- Plans by dollars and joules: the cheapest of the space, by prices that a user may replace.

local trinity = require 'trinity'
local graphs = require 'support.graphs'

local function gpt(micro_batch)
  return graphs.gpt2(micro_batch, { layers = 4, hidden = 256, heads = 4, sequence = 128, positions = 128 })
end

local function search(cluster, fields)
  return trinity.plan(merged({ graph = gpt, cluster = trinity.cluster(cluster), global_batch = 16, quiet = true, plans = 3,
    space = { recompute = 'none', context = 1, micro_batch = { 1, 2, 4, 8 } } }, fields))
end

describe('a plan by its cost', function()
  it('uses the number of GPUs with the cheapest step, and costs their dollars per hour times the step time', function()
    local time, dollars = search('dgx_h100', {}), search('dgx_h100', { reward = 'dollars' })
    local best = dollars.plans[1]
    local used = best.tensor * best.pipeline * best.data
    expect(used):below(8)
    expect(best.cost):near(best.step_time_s * used * 6.88 / 3600, 1e-12)
    expect(best.cost):below(time.plans[1].step_time_s * 8 * 6.88 / 3600)
    expect(time.plans[1].cost):equals(time.plans[1].step_time_s)
    expect(dollars.lower_bound_s <= best.cost):equals(true)
    for i = 2, #dollars.plans do expect(dollars.plans[i - 1].cost <= dollars.plans[i].cost):equals(true) end
    for _, one in ipairs(dollars.simulated) do expect(best.cost <= one.cost):equals(true) end
  end)
  it('takes GPUs of a pool by speed per dollar', function()
    local function kinds(prices)
      local best = search('dgx_a100:2+v100_pcie_4:2', { reward = 'dollars', prices = prices }).plans[1]
      local found, metrics = {}, best.strategy.metrics
      for d, device in ipairs(best.problem.cluster.devices) do
        if metrics:compute_busy_s(d) > 0 then found[device.type] = true end
      end
      return found
    end
    local cheap = kinds { v100_pcie = { dollars_per_hour = 0.01 } }
    expect(cheap.v100_pcie):equals(true)
    expect(cheap.a100):equals(nil)
    local dear = kinds { v100_pcie = { dollars_per_hour = 100 } }
    expect(dear.a100):equals(true)
    expect(dear.v100_pcie):equals(nil)
  end)
  it('reads a file of prices, and names what is missing', function()
    local path = temporary '.csv'
    trinity.files.write(path, 'kind,dollars_per_hour,watts\nh100,2,\n')
    local found = search('dgx_h100', { reward = 'dollars', prices = path, simulations = 4 })
    expect(found.cost_of.text):matches 'h100 2 %$/h'
    expect(search('dgx_h100', { reward = 'joules', simulations = 4 }).cost_of.text):equals 'h100 700 W'
    local function refused(cluster, fields, message) expect(function() search(cluster, fields) end):raises(message) end
    refused('p100x2', { reward = 'dollars' }, "no list price of 'p100' is known: give prices = ")
    refused('dgx_h100', { prices = path }, "option 'prices': expected reward = 'dollars' or 'joules' with it")
    refused('dgx_h100', { reward = 'euros' }, "option 'reward': ")
    refused('dgx_h100', { reward = 'joules', prices = { h100 = { watt = 1 } } }, "unknown field 'watt', did you mean 'watts'")
    trinity.files.write(path, 'kind,dollars_per_hour,watts\nh100,-2,\n')
    refused('dgx_h100', { reward = 'dollars', prices = path }, "dollars_per_hour: expected a number from 0, got")
  end)
  it('uses the FLOP of the GPUs that it uses, not of those that it leaves idle', function()
    local dollars = search('dgx_h100', { reward = 'dollars', simulations = 4 }).plans[1]
    local alone = search('dgx_h100:1', { simulations = 4, space = { recompute = dollars.recompute, context = 1,
      micro_batch = dollars.micro_batch } }).plans[1]
    expect(dollars.tensor * dollars.pipeline * dollars.data):equals(1)
    expect(dollars.mfu):near(alone.mfu * alone.step_time_s / dollars.step_time_s, 1e-12)
  end)
  it('by the 95th percentile of steps with noise is no longer than that percentile of any other plan that was sampled', function()
    local space = { recompute = 'none', context = 1, micro_batch = 2, zero_stage = { 0, 1 } }
    local found = search('dgx_h100:4', { reward = 'p95', noise = 0.2, draws = 20, space = space })
    local best = found.plans[1]
    for i, one in ipairs(found.plans) do
      local told = trinity.stragglers(one.strategy, { noise = 0.2, draws = 20 }).p95_s
      expect(one.cost):equals(math.max(one.step_time_s, told))
      expect(one.cost > one.step_time_s):equals(true)
      if i > 1 then expect(found.plans[i - 1].cost <= one.cost):equals(true) end
    end
    expect(#found.plans > 1):equals(true)
    expect(found.lower_bound_s <= best.cost):equals(true)
    for _, one in ipairs(found.simulated) do -- a plan that was not sampled is no candidate
      expect(one.cost > one.step_time_s or one.step_time_s >= best.cost):equals(true)
    end
    local quiet = search('dgx_h100:4', { reward = 'p95', noise = 0, draws = 1, space = space }).plans[1]
    expect(quiet.cost):near(search('dgx_h100:4', { space = space }).plans[1].step_time_s, 1e-9)
  end)
  it('with unequal sequences has the shortest mean step of all that were sampled', function()
    local uneven = { lengths = function(stream) return 16 + stream:integer(112) end }
    local found = search('dgx_h100:4', { stragglers = uneven, draws = 5, space = { context = 1, recompute = 'none' } })
    for i, one in ipairs(found.plans) do
      expect(one.cost):equals(trinity.stragglers(one.strategy, merged(uneven, { noise = 0, draws = 5 })).mean_s)
      expect(found.plans[1].cost <= one.cost and one.cost < one.step_time_s):equals(true, i)
    end
    expect(function() search('dgx_h100', { stragglers = uneven, reward = 'joules' }) end):raises("option 'stragglers': expected reward = 'p95' or none")
  end)
  it('knows the board power of every GPU', function()
    local prices = require 'trinity.cluster.prices'
    for _, name in ipairs(trinity.devices.names()) do
      if name ~= 'cpu_core' then
        local cluster = { devices = { { type = name } } }
        expect((prices.of('spec', 'joules', cluster))[1] > 50):equals(true, name)
      end
    end
  end)
end)
