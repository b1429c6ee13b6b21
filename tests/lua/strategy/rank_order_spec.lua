-- strategy:rank_orders: orders of a mesh's axes on machines.

local core = require 'trinity.core'
local simulator = require 'trinity.strategy.simulator'
local trinity = require 'trinity'

local graph = trinity.model('gpt2', { layers = 8, hidden = 1024, heads = 16, batch_size = 1, sequence = 512,
  positions = 512, vocabulary = 1024, dtype = 'bfloat16' })
local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'dgx_a100x2' }
local plan = { mesh = { data = 2, pipeline = 2, tensor = 4 }, micro_batches = 4 }

describe('orders of ranks', function()
  local rows = problem:strategy(plan):rank_orders()
  it('are all of the axes, simulated as strategies with that order, the fastest first', function()
    expect(#rows):equals(6)
    for i, row in ipairs(rows) do
      local again = problem:evaluate { mesh = plan.mesh, micro_batches = 4, order = row.order }
      expect(row.step_time_s):equals(again.step_time_s)
      if i > 1 then expect(rows[i - 1].step_time_s <= row.step_time_s):equals(true) end
    end
    expect(rows[1].step_time_s):equals(problem:evaluate(plan).step_time_s) -- clients' order, of equal ones the first
    expect(table.concat(rows[1].order, ' ', 1, 3)):equals 'tensor data pipeline'
  end)
  it('say which axis straddles machines, of which tensor costs most', function()
    for _, row in ipairs(rows) do expect(#row.straddles):equals(1) end
    expect(rows[1].straddles[1]):equals 'pipeline'
    expect(rows[6].straddles[1]):equals 'tensor'
    expect(1.3 * rows[1].step_time_s):below(rows[6].step_time_s)
  end)
  it('are rank files that put every rank where the mesh has its coordinates', function()
    for _, row in ipairs(rows) do
      local _, _, low = simulator.lowered('test', problem, { mesh = plan.mesh, micro_batches = 4, order = row.order })
      local at, ranks = low.coordinates, 0
      for rank, node, slot in row.rank_file:gmatch 'rank (%d+)=n(%d+) slot=(%d+)\n' do
        local device = node * 8 + slot + 1
        expect(at.tensor[device] + 4 * at.data[device] + 8 * at.pipeline[device]):equals(tonumber(rank))
        ranks = ranks + 1
      end
      expect(ranks):equals(16)
    end
  end)
  it('leave GPUs of unequal islands idle so that none divides a group, with the rank file of the others', function()
    local islands = trinity.problem { graph = graph, cluster = trinity.cluster 'dgx_a100:6+dgx_a100:6' }
    local found = (islands:strategy { mesh = { tensor = 4, data = 2 } }):rank_orders()
    local best = found[1]
    expect(best.segment_size):equals(4)
    expect(table.concat(best.devices, ' ')):equals '1 2 3 4 7 8 9 10'
    expect(table.concat(best.straddles, ' ')):equals 'data'
    expect(best.rank_file:match 'rank 4=[^\n]*'):equals 'rank 4=n1 slot=0'
    expect(islands:evaluate({ mesh = { tensor = 4, data = 2 }, order = best.order, devices = best.devices }).step_time_s):equals(
      best.step_time_s)
    for _, row in ipairs(found) do
      if not row.segment_size and row.order[1] == 'tensor' then expect(best.step_time_s):below(row.step_time_s) end
    end
    local own = islands:strategy { mesh = { tensor = 2, data = 2 }, devices = { 1, 2, 7, 8 } }
    for _, row in ipairs(own:rank_orders()) do expect(row.segment_size == nil):equals(true) end
  end)
  it('have experts as a factor of data', function()
    local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua') { layers = 2, hidden = 32, heads = 4, num_kv_heads = 2,
      feed_forward = 64, experts = 8, top_k = 2, vocabulary = 96, batch_size = 2, sequence = 32 }
    local experts = trinity.problem { graph = mixture:to_training(), cluster = trinity.cluster 'dgx_a100x2' }
    local found = experts:strategy({ mesh = { data = 8, expert = 4, pipeline = 2 } }):rank_orders()
    expect(#found):equals(6)
    expect(select(2, found[1].rank_file:gsub('\n', ''))):equals(16)
  end)
  it('need a mesh', function()
    expect(function() problem:strategy(problem:placement()):rank_orders() end):raises 'strategy:rank_orders: expected a strategy with a mesh'
  end)
end)
