-- The cost model against published measurements.

local trinity = require 'trinity'

--- Images a second of a training step on one device of this kind.
local function images_per_s(device, model, batch_size)
  local graph = trinity.model(model, { batch_size = batch_size, optimizer = 'sgd' })
  local problem = trinity.problem { graph = graph,
    cluster = trinity.cluster { devices = { { name = 'gpu', type = device } }, links = {} } }
  return batch_size / problem:evaluate(problem:placement()).step_time_s
end

describe('device presets', function()
  -- TensorFlow's own benchmarks, one GPU, synthetic data, SGD, batch 64 (VGG-16 on the K80: 32):
  -- tensorflow/docs, site/en/r1/guide/performance/benchmarks.md, May 2017.
  local published = {
    { 'p100_sxm2', 'inception_v3', 64, 142 }, { 'p100_sxm2', 'resnet50', 64, 219 }, { 'p100_sxm2', 'vgg16', 64, 154 },
    { 'k80', 'inception_v3', 64, 30.5 }, { 'k80', 'resnet50', 64, 51.9 }, { 'k80', 'vgg16', 32, 35.4 },
  }
  for _, case in ipairs(published) do
    local device, model, batch_size, expected = unpack(case)
    it(('reach what TensorFlow measured: %s on %s, within a fifth'):format(model, device), function()
      expect(images_per_s(device, model, batch_size)):near(expected, 0.2 * expected)
    end)
  end
  -- The same page has InceptionV3 and ResNet-50 with 64 images on a K80 of 12 GB, so they fit.
  it('have the memory that TensorFlow got by with', function()
    for _, model in ipairs { 'inception_v3', 'resnet50' } do
      local problem = trinity.problem { graph = trinity.model(model, { batch_size = 64, optimizer = 'sgd' }),
        cluster = trinity.cluster 'k80x1' }
      expect(problem:evaluate(problem:placement()).feasible):truthy()
    end
  end)
end)

describe('the paper (Algorithms 2022, 15(4), 108), table 4, one card', function()
  --- Metrics of everything on one card of the paper's, at its granularity.
  local function one_card(model, options)
    options.granularity = 'framework'
    local problem = trinity.simulator { graph = trinity.model(model, options), cluster = trinity.cluster 'p100_paper' }
    return problem:evaluate(problem:placement())
  end
  it('GNMT fits and takes 0.30 s, PNASNet-Large (8) fits and takes 1.45 s, within 2 times', function()
    local gnmt, pnasnet = one_card('gnmt', {}), one_card('pnasnet_large', { batch_size = 8 })
    expect(gnmt.feasible):truthy()
    expect(gnmt.step_time_s):near(0.30, 0.15)
    expect(pnasnet.feasible):truthy()
    expect(pnasnet.step_time_s >= 1.45 / 2 and pnasnet.step_time_s <= 1.45 * 2):truthy()
  end)
  it('NASNet-Large (32) and an NMT of 1,728 units do not fit', function()
    expect(one_card('nasnet_large', { batch_size = 32 }).feasible):equals(false)
    expect(one_card('nmt', { hidden = 1728 }).feasible):equals(false)
  end)
end)
