-- Servers that take replicas in turn, executed: losses and weights are those of delayed SGD in plain numbers (Langford,
-- Smola and Zinkevich 2009): update u, from 0, is by the gradient of replica u modulo r, on the weights behind update
-- u - r, which were its own last one.

local trinity = require 'trinity'
local two = dofile(root .. '/tests/lua/support/two_layers.lua')(expect)
local util = require 'trinity.base.util'

with_torch()

two.rate = 0.05 -- old gradients at a larger one make momentum diverge

local function plan(replicas, more, way)
  return util.merged({ mesh = { data = replicas }, synchronise = util.merged({ kind = 'parameter_server',
    asynchronous = true }, way) }, more)
end

--- What an optimiser makes of weights and a gradient: Robbins and Monro 1951, PyTorch's momentum, Kingma and Ba 2015.
local optimisers = {
  sgd = function() return function(w, g) return two.stepped(w, g, two.rate) end end,
  momentum = function()
    local v
    return function(w, g)
      v = v and two.combine(function(old, new) return 0.9 * old + new end, v, g) or g
      return two.stepped(w, v, two.rate)
    end
  end,
  adam = function()
    local m, v, t = nil, nil, 0
    return function(w, g)
      t = t + 1
      m = two.combine(function(new, old) return 0.9 * old + 0.1 * new end, g, m or two.stepped(g, g, 1))
      v = two.combine(function(new, old) return 0.999 * old + 0.001 * new * new end, g, v or two.stepped(g, g, 1))
      return two.combine(function(weight, first, second)
        return weight - two.rate * first / (1 - 0.9 ^ t) / (math.sqrt(second / (1 - 0.999 ^ t)) + 1e-8)
      end, w, m, v)
    end
  end,
}

--- Losses by step and the last weights, of what the replicas read.
local function delayed(run, replicas, optimiser)
  local w, losses = { [0] = two.layers_of(run.before) }, {}
  local step_of, u = optimisers[optimiser](), 0
  for step, rounds in ipairs(run.read) do
    local sum = 0
    for _, given in ipairs(rounds) do
      for replica = 1, replicas do
        local loss, gradient = two.differentiate(w[math.max(0, u - replicas + 1)], two.in_rows(given[replica].inputs),
          given[replica].labels)
        w[u + 1] = step_of(w[u], gradient)
        sum, u = sum + loss / replicas / #rounds, u + 1
      end
    end
    losses[step] = sum
  end
  return losses, w[u], w
end

describe('servers that take replicas in turn', function()
  for optimiser in util.sorted_pairs(optimisers) do
    for _, replicas in ipairs { 2, 3, 4 } do
      it(('train as delayed SGD: %s, %d replicas'):format(optimiser, replicas), function()
        for _, case in ipairs { { 1, 1 }, { 4, 2 }, { 3, replicas } } do
          local run = two.execute(two.network(optimiser), plan(replicas, { micro_batches = case[1], bucket_bytes = 50 },
            { servers = case[2] }), replicas, 4)
          local losses, w, all = delayed(run, replicas, optimiser)
          two.expect_losses(run, losses)
          two.expect_weights(two.layers_of(run.weights), w)
          local apart = 0 -- a step before it is another one
          for k, list in ipairs(w) do
            for i, value in ipairs(list) do apart = math.max(apart, math.abs(value - all[#all - 1][k][i])) end
          end
          expect(apart > 1e-6):equals(true)
        end
      end)
    end
  end
  it('run what a replica is cut in: tensor, sequence, context, recomputation', function()
    local graph = trinity.model('gpt2', { batch_size = 2, sequence = 8, layers = 2, hidden = 16, heads = 4,
      vocabulary = 32, positions = 8, fused = false, dropout = 0.1, optimizer = 'adam' })
    local function run(more)
      local given = plan(2, util.merged({ micro_batches = 2 }, more), { servers = 2 })
      given.mesh = util.merged({ data = 2 }, more and more.mesh)
      local devices = 2 * (given.mesh.tensor or 1) * (given.mesh.context or 1)
      local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. devices) }
      return trinity.execute(problem, problem:strategy(given), { steps = 3, warm_up = 0, double_precision = true,
        quiet = true, keep_weights = true })
    end
    local same = dofile(root .. '/tests/lua/support/same_training.lua')
    local whole = run()
    for _, more in ipairs { { mesh = { tensor = 2 } }, { mesh = { tensor = 2 }, sequence_parallel = true },
      { mesh = { context = 2 } }, { recompute = 'full' }, { mesh = { tensor = 2, context = 2 }, recompute = 'selective' } } do
      expect(same.difference(whole, run(more))):near(0, 1e-9)
    end
  end)
end)
