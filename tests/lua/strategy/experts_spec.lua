-- Experts divided over an axis of a mesh: who exchanges, branches of operators, what is refused. Counts of what
-- devices hold and exchange: agreement_spec.

local core = require 'trinity.core'
local trinity = require 'trinity'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')

local cluster = trinity.cluster 'dgx_a100x4'
local about = { layers = 2, hidden = 32, heads = 4, num_kv_heads = 2, feed_forward = 64, experts = 8, top_k = 2,
  vocabulary = 96, batch_size = 2, sequence = 32 }

local function problem_of(more)
  return trinity.problem { cluster = cluster, graph = mixture(merged(about, more)):to_training { optimizer = 'adam' } }
end

local problem = problem_of()
describe('experts of a mesh', function()
  it('read and write weights and gradients of their own rank alone', function()
    -- matmuls of experts this wide with this few tokens take the time of reading weights
    local wide = problem_of { layers = 1, hidden = 512, feed_forward = 4096, batch_size = 1, sequence = 8 }
    local function seconds(expert)
      for _, row in ipairs(wide:timeline({ mesh = { data = 4, expert = expert } }):by_type()) do
        if row.type == 'EinsumGrad' then return row.total_s / row.tasks end
      end
    end
    local alone = seconds(1)
    expect(seconds(2) / alone):near(1 / 2, 0.1)
    expect(seconds(4) / alone):near(1 / 4, 0.1)
  end)
  it('exchange with neighbouring ranks', function()
    local account = problem:strategy({ mesh = { data = 4, expert = 2 } }):breakdown()
    local groups = {}
    for _, row in ipairs(account.traffic) do
      if row.kind == 'all_to_all' then groups[table.concat(row.devices, ' ')] = true end
    end
    local found = {}
    for group in trinity.system.sorted_pairs(groups) do found[#found + 1] = group end
    expect(table.concat(found, ', ')):equals '1 2, 3 4'
  end)
  it('are found as branches of operators too', function()
    local graph = trinity.model('moe_transformer', { layers = 2, hidden = 64, heads = 4, num_kv_heads = 2, feed_forward = 32,
      experts = 4, top_k = 2, vocabulary = 100, batch_size = 2, sequence = 16, kernels = 'onnx',
      optimizer = 'momentum' })
    local branches = trinity.problem { cluster = cluster, graph = graph }
    local whole = branches:strategy({ mesh = { data = 2 } }):breakdown()
    local shared = branches:strategy({ mesh = { data = 2, expert = 2 } }):breakdown()
    expect(whole.devices[1].parameters - shared.devices[1].parameters):equals(2 * 4 / 2 * 3 * 64 * 32)
    local exchanges, rows = 0, 4 * 2 * 16 * 2 -- bytes of a number a row, which the rows' weights take
    for _, row in ipairs(shared.stages[1].traffic) do
      if row.kind == 'all_to_all' and row.bytes > rows then exchanges = exchanges + row.count end
    end
    expect(exchanges):equals(2 * 4)
    expect(math.abs(shared.devices[1].flops / whole.devices[1].flops - 1)):below(0.01)
    local placement, homes = branches:strategy({ mesh = { data = 2, expert = 2 } }).placement, {}
    for i = 1, graph.operators do
      local expert = graph:operator(i).name:match '^block_1/moe/expert_(%d)/up$'
      if expert then homes[tonumber(expert)] = placement[i] end
    end
    expect(table.concat(homes, ' ')):equals '1 1 2 2'
  end)
  it('as branches lower under tensor where gates are separate, and raise an error where not', function()
    local function branches(fused)
      return trinity.problem { cluster = cluster, graph = trinity.model('moe_transformer', { layers = 2, hidden = 64, heads = 4,
        num_kv_heads = 2, feed_forward = 32, experts = 4, top_k = 2, vocabulary = 100, batch_size = 2, sequence = 16, fused = fused }) }
    end
    local plan = { mesh = { data = 2, expert = 2, tensor = 2 }, sequence_parallel = true }
    local whole = branches(false):strategy({ mesh = { data = 2, expert = 2 } }):breakdown()
    local cut = branches(false):strategy(plan):breakdown()
    expect(whole.devices[1].parameters - cut.devices[1].parameters > 2 * 2 * 3 * 64 * 32 / 2 - 1):truthy()
    expect(function() branches(true):strategy(plan) end):raises 'use a network with fused = false'
    expect(function() branches(false):strategy { mesh = { tensor = 2 } } end):raises 'sequence_parallel = true'
  end)
  it('refuse what does not divide, and tokens divided twice', function()
    local function refused(plan, text, by) expect(function() (by or problem):strategy(plan) end):raises(text) end
    refused({ mesh = { data = 3, expert = 3 } }, "expert = 3 does not divide the 8 experts of 'layer_1/mixture/experts/")
    refused({ mesh = { data = 3, expert = 3 } }, '(nearest that do: 2 or 4)')
    refused({ mesh = { data = 2, expert = 2, tensor = 2 } }, 'would dispatch the same tokens; use sequence_parallel = true')
    refused({ mesh = { data = 2, expert = 2 } }, "expert = 2: graph 'gpt2_small' has no experts to shard",
      trinity.problem { cluster = cluster, graph = trinity.model('gpt2', { layers = 2 }) })
  end)
end)
