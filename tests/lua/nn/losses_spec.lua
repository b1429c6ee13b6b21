-- Losses of trinity.nn against hand-computed values and finite differences; batches of graphs; messages.

local trinity = require 'trinity'
with_torch()
local tensor, nn = trinity.tensor, trinity.nn

local compare = dofile(root .. '/tests/lua/support/gradients.lua')(expect)
local double, flat, close_to = compare.double, compare.flat, compare.close_to

-- Derivatives of loss(x) by x against central differences.
local function check_gradient(x, loss)
  x = double(x, true)
  compare.check_gradient(function() return loss(x) end, { x })
end

-- name, arguments, what each element comes to.
local log, exp = math.log, math.exp
local cases = {
  { 'mse', { { 1, 3 }, { 0.5, 0 } }, { 0.25, 9 } },
  { 'l1', { { 1, 3 }, { 0.5, 5 } }, { 0.5, 2 } },
  { 'smooth_l1', { { 1, 3 }, { 0.5, 0 } }, { 0.125, 2.5 } },
  { 'huber', { { 1, 3 }, { 0.5, 0 } }, { 0.125, 2.5 } },
  { 'binary_cross_entropy', { { 0.2, 0.9 }, { 0, 1 } }, { -log(0.8), -log(0.9) } },
  { 'binary_cross_entropy_with_logits', { { 0.3, -2 }, { 1, 0 } }, { log(1 + exp(-0.3)), log(1 + exp(-2)) } },
  { 'kl_div', { { log(0.25), log(0.75) }, { 0.5, 0.5 } }, { 0.5 * log(2), 0.5 * log(0.5 / 0.75) } },
  { 'poisson_nll', { { 0.5, -1 }, { 2, 0 } }, { exp(0.5) - 1, exp(-1) } },
  { 'gaussian_nll', { { 1, 2 }, { 0, 2 }, { 4, 0.5 } }, { 0.5 * (log(4) + 0.25), 0.5 * log(0.5) } },
  { 'margin_ranking', { { 1, 3 }, { 2, 1 }, { 1, 1 } }, { 1, 0 } },
  { 'soft_margin', { { 0.5, -1 }, { 1, 1 } }, { log(1 + exp(-0.5)), log(1 + exp(1)) } },
  { 'hinge_embedding', { { 0.5, 0.3 }, { 1, -1 } }, { 0.5, 0.7 } },
}

describe('losses', function()
  for _, case in ipairs(cases) do
    local name, arguments, values = unpack(case)
    it(name .. ': values, reductions, derivatives', function()
      local given = {}
      for i, list in ipairs(arguments) do given[i] = double(list) end
      local function loss(how)
        local all = { unpack(given) }
        all[#all + 1] = how
        return nn[name](unpack(all))
      end
      close_to(loss 'none', values)
      close_to(loss 'sum', { values[1] + values[2] })
      close_to(loss(), { (values[1] + values[2]) / 2 })
      expect(function() loss 'men' end):raises "nn%.[%w_]+: argument %d %('reduction'%): unknown value 'men', did you mean 'mean'%?"
      check_gradient(arguments[1], function(x)
        local all = { x, unpack(given, 2) }
        all[#all + 1] = 'sum'
        return nn[name](unpack(all))
      end)
      given[2] = double { 1, 1, 1 }
      expect(function() loss() end):raises("losses_spec.lua:%d+: nn." .. name .. ": argument 2 %('[%w_]+'%): expected shape %[2%]")
    end)
  end
  it('have the settings that theirs have elsewhere', function()
    close_to(nn.smooth_l1(double { 1, 3 }, double { 0.5, 0 }, 'none', 0.5), { 0.25, 2.75 })
    close_to(nn.huber(double { 1, 3 }, double { 0.5, 0 }, 'none', 2), { 0.125, 4 })
    close_to(nn.binary_cross_entropy_with_logits(double { 0.3 }, double { 1 }, 'none', 3), { 3 * log(1 + exp(-0.3)) })
    close_to(nn.margin_ranking(double { 1 }, double { 2 }, double { -1 }, 'none', 0.5), { 0 })
    close_to(nn.margin_ranking(double { 1 }, double { 2 }, double { -1 }, 'none', 3), { 2 })
    close_to(nn.hinge_embedding(double { 0.5 }, double { -1 }, 'none', 2), { 1.5 })
    close_to(nn.kl_div(double { { log(0.25), log(0.75) }, { log(0.5), log(0.5) } }, double { { 0.5, 0.5 }, { 1, 0 } },
      'batchmean'), { (0.5 * log(2) + 0.5 * log(0.5 / 0.75) + log(2)) / 2 })
    expect(function() nn.huber(double { 1 }, double { 2 }, 'mean', 0) end):raises "argument 4 %('delta'%): expected a positive number"
    expect(function() nn.binary_cross_entropy(double { 2 }, double { 1 }) end):raises(
      "argument 1 %('probabilities'%): expected numbers from 0 to 1")
    expect(function() nn.soft_margin(double { 2 }, double { 0 }) end):raises "argument 2 %('signs'%): expected 1 and %-1"
    expect(function() nn.l1(tensor.new({ 1 }, { dtype = 'int64' }), double { 0 }) end):raises 'expected floating point'
  end)
  it('of rows and of categories', function()
    local logits = double { { 0, log(3) }, { log(4), 0 } }
    close_to(nn.cross_entropy(logits, { 2, 2 }, 'none'), { -log(0.75), -log(0.2) })
    close_to(nn.nll(logits:log_softmax(), { 1, 1 }), { (log(4) - log(0.8)) / 2 })
    expect(function() nn.nll(logits, { 1, 3 }) end):raises 'index 3 is outside 1 to 2'
    expect(function() nn.cross_entropy(logits, { 1 }) end):raises 'expected shape %[2%], got %[1%]'
    local x, y = double { { 3, 4 }, { 1, 0 } }, double { { 4, 3 }, { 0.6, 0.8 } }
    close_to(nn.cosine_embedding(x, y, double { 1, -1 }, 'none'), { 1 - 0.96, 0.6 })
    close_to(nn.cosine_embedding(x, y, double { -1, -1 }, 'sum', 0.7), { 0.26 })
    local anchor, far = double { { 0, 0 }, { 1, 1 } }, double { { 0, 2 }, { 5, 4 } }
    local near = double { { 3, 4 }, { 1, 2 } }
    local triplets = nn.triplet_margin(anchor, near, far, 'none')
    expect(math.abs(triplets:narrow(1, 1, 1):item() - 4)):below(1e-4) -- 5 - 2 + 1
    expect(triplets:narrow(1, 2, 1):item()):equals(0) -- 1 - 5 + 1
    expect(math.abs(nn.triplet_margin(anchor, near, far, 'mean', 5):item() - 4.5)):below(1e-4)
    local scores, targets = double { { 1, 0.5, -2 }, { 0, 3, 0 } }, tensor.new({ 1, 2 }, { dtype = 'int64' })
    close_to(nn.multi_margin(scores, targets, 'none'), { 0.5 / 3, 0 })
    close_to(nn.multi_margin(scores, targets, 'sum', 4), { (3.5 + 1) / 3 + 2 / 3 })
    close_to(nn.multilabel_soft_margin(double { { 0.3, -2 } }, double { { 1, 0 } }), {
      (log(1 + exp(-0.3)) + log(1 + exp(-2))) / 2 })
    local fixed = double { 0.6, 0.8 }
    check_gradient({ 0.5, -1 }, function(v) return nn.cosine_embedding(v, fixed, tensor.new(1, { dtype = 'float64' }), 'sum') end)
    check_gradient({ 0.5, -1 }, function(v) return nn.triplet_margin(v, fixed, double { 1, 1 }, 'sum', 3) end)
    check_gradient({ 0.5, -1 }, function(v) return nn.multi_margin(v, tensor.new(1, { dtype = 'int64' }), 'sum', 3) end)
    check_gradient({ 0.5, -1 }, function(v) return nn.multilabel_soft_margin(v, double { 1, 0 }, 'sum') end)
    expect(function() nn.cosine_embedding(x, y, double { 1 }) end):raises "argument 3 %('signs'%): expected shape %[2%]"
    expect(function() nn.triplet_margin(anchor, near, double { 1 }) end):raises "argument 3 %('far'%): expected shape %[2 x 2%]"
    expect(function() nn.multi_margin(scores, tensor.new({ 1 }, { dtype = 'int64' })) end):raises "argument 2 %('targets'%)"
  end)
  it('of rows with several targets', function()
    local function rows(t) return tensor.new(t, { dtype = 'int64' }) end
    local scores, targets = double { { 0.1, 0.2, 0.4, 0.8 }, { 3, 0, 0, 0 } }, rows { { 4, 1, 0, 2 }, { 1, 0, 0, 0 } }
    -- The first row's targets are 4 and 1: what is behind its 0 does not count.
    close_to(nn.multilabel_margin(scores, targets, 'none'), { (0.4 + 0.6 + 1.1 + 1.3) / 4, 0 })
    close_to(nn.multilabel_margin(scores, targets), { 0.85 / 2 })
    check_gradient({ 0.1, 0.2, 0.4, 0.8 }, function(v) return nn.multilabel_margin(v, rows { 4, 1, 0, 2 }, 'sum') end)
    expect(function() nn.multilabel_margin(scores, rows { { 5, 0, 0, 0 }, { 1, 0, 0, 0 } }) end):raises(
      "nn.multilabel_margin: argument 2 %('targets'%): index 5 is outside 0 to 4")
    expect(function() nn.multilabel_margin(scores, rows { 1, 2 }) end):raises "argument 2 %('targets'%): expected shape %[2 x 4%]"
  end)
  it('of sequences: ctc sums over all paths', function()
    -- Three categories, the blank first; two steps. The paths of target 2 are (2, 2), (1, 2) and (2, 1), of 2 3 (2, 3).
    local p = { { { 0.2, 0.5, 0.3 }, { 0.1, 0.6, 0.3 } }, { { 0.3, 0.6, 0.1 }, { 0.7, 0.1, 0.2 } } }
    local x = double(p):log()
    local function rows(t) return tensor.new(t, { dtype = 'int64' }) end
    local first, second = -log(0.5 * 0.6 + 0.2 * 0.6 + 0.5 * 0.3), -log(0.6 * 0.2)
    local targets = rows { { 2, 0 }, { 2, 3 } }
    close_to(nn.ctc(x, targets, { 2, 2 }, { 1, 2 }, 'none'), { first, second })
    close_to(nn.ctc(x, targets, rows { 2, 2 }, rows { 1, 2 }, 'sum'), { first + second })
    close_to(nn.ctc(x, targets, { 2, 2 }, { 1, 2 }), { (first + second / 2) / 2 })
    close_to(nn.ctc(x, rows { { 2, 0 }, { 1, 2 } }, { 2, 1 }, { 1, 1 }, 'none', 3), {
      -log(0.5 * 0.6 + 0.3 * 0.6 + 0.5 * 0.1), -log(0.1) })
    close_to(nn.ctc(x, targets, { 2, 1 }, { 1, 2 }, 'none', nil, true), { first, 0 })
    expect(nn.ctc(x, targets, { 2, 1 }, { 1, 2 }, 'sum'):item()):equals(math.huge)
    check_gradient({ { { 0.3, -1, 0.2 } }, { { 0.5, 0.1, -0.4 } } }, function(v)
      return nn.ctc(nn.log_softmax(v), rows { { 2 } }, { 2 }, { 1 }, 'sum')
    end)
  end)
  it('ctc says which argument does not fit', function()
    local x, targets = double { { { -1, -1, -1 } } }, tensor.new({ { 2 } }, { dtype = 'int64' })
    local function refused(pattern, ...)
      local given = { ... }
      expect(function() nn.ctc(unpack(given, 1, 6)) end):raises('nn.ctc: ' .. pattern)
    end
    refused("argument 1 .*expected float32 or float64 %[steps, sequences, categories%]", double { 1 }, targets, { 1 }, { 1 })
    refused("argument 2 %('targets'%): expected %[1 x longest%], got %[2%]", x, { 1, 2 }, { 1 }, { 1 })
    refused("argument 2 %('targets'%): index 4 is outside 0 to 3", x, tensor.new({ { 4 } }, { dtype = 'int64' }), { 1 }, { 1 })
    refused("argument 2 %('targets'%): sequence 1: expected categories other than the blank, 2", x, targets, { 1 }, { 1 }, 'sum', 2)
    refused("argument 3 %('lengths'%): index 2 is outside 1 to 1", x, targets, { 2 }, { 1 })
    refused("argument 3 %('lengths'%): expected 1 lengths, got %[2%]", x, targets, { 1, 1 }, { 1 })
    refused("argument 4 %('target_lengths'%): index 2 is outside 0 to 1", x, targets, { 1 }, { 2 })
    refused("argument 6 %('blank'%)", x, targets, { 1 }, { 1 }, 'sum', 4)
  end)
  it('activations that they stand on', function()
    close_to(nn.softplus(double { 0.3, -2 }), { log(1 + exp(0.3)), log(1 + exp(-2)) })
    close_to(nn.log_sigmoid(double { 0.3, -2 }), { -log(1 + exp(-0.3)), -log(1 + exp(2)) })
    close_to(nn.silu(double { 2 }), { 2 / (1 + exp(-2)) })
  end)
end)

describe('messages', function()
  it('name what is close to an unknown name of nn', function()
    expect(function() return nn.huberr end):raises "losses_spec.lua:%d+: trinity.nn: no 'huberr', did you mean 'huber'%? %(known: adam, "
  end)
  it('say where an optimiser takes its parameters', function()
    local net = nn.linear { inputs = 1, outputs = 1 }
    expect(function() nn.adam(net) end):raises(
      "nn.adam: argument 1 %('options'%): expected { parameters = network:parameters%(%), ... }, got a network")
    expect(function() nn.sgd(net:parameters()) end):raises "nn.sgd: argument 1 .*got the list alone"
  end)
end)

describe('a batch of graphs', function()
  local parts = {
    { values = double { { 1, 2 }, { 3, 4 } }, from = { 1 }, to = { 2 } },
    { values = double { { 5, 6 }, { 7, 8 }, { 9, 10 } }, from = { 1, 2 }, to = { 2, 3 } },
  }
  it('passes a network over all of them as over each', function()
    local layer = nn.graph_convolution { inputs = 2, outputs = 3, seed = 4 }:to { dtype = 'float64' }
    local batch = nn.graph_batch(parts)
    expect(batch.nodes):equals(5)
    local together = nn.graph_split(layer(batch.values, batch.edges), batch)
    for i, part in ipairs(parts) do
      local alone = nn.graph_batch { part }
      close_to(together[i], flat(layer(alone.values, alone.edges)))
    end
  end)
  it('sums and means by graph', function()
    local batch = nn.graph_batch(parts)
    close_to(nn.graph_sum(batch.values, batch), { 4, 6, 21, 24 })
    close_to(nn.graph_mean(batch.values, batch), { 2, 3, 7, 8 })
    expect(batch.first[2]):equals(3)
    close_to(batch.graph, { 1, 1, 2, 2, 2 })
  end)
  it('takes what trinity.features gives', function()
    local list = {}
    for i, name in ipairs { 'alexnet', 'vgg16' } do
      list[i] = trinity.features(trinity.problem { graph = trinity.model(name, { batch_size = 8 }),
        cluster = trinity.cluster 'p100x2' }, { node2vec = false })
    end
    local batch = nn.graph_batch(list)
    expect(batch.nodes):equals(list[1].units + list[2].units)
    expect(batch.types:numel()):equals(batch.nodes)
    close_to(nn.graph_split(batch.values, batch)[2], flat(list[2].values))
  end)
  it('refuses parts that do not fit', function()
    expect(function() nn.graph_batch {} end):raises 'expected at least one graph'
    expect(function() nn.graph_batch { parts[1], { values = double { { 1 } }, from = {}, to = {} } } end):raises(
      "entry 2: field 'values': expected width 2 as before, got 1")
    expect(function() nn.graph_batch { { values = double { { 1 } }, from = { 1 }, to = { 2 } } } end):raises(
      'entry 1: edge 1: expected nodes from 1 to 1, got 1 and 2')
    expect(function() nn.graph_batch { 3 } end):raises 'entry 1: expected features'
    expect(function() nn.graph_mean(double { 1 }, nn.graph_batch(parts)) end):raises "expected a tensor %[5 x ...%]"
  end)
end)
