-- Imported ONNX graphs executed: exports of torch.onnx (tests/data/onnx), every placement with the same losses.

local core = require 'trinity.core'
local graphs = require 'trinity.graph'
local trinity = require 'trinity'

with_torch()

local files = { 'bert', 'densenet', 'gpt2_external', 'gru_torchscript', 'llama', 'lstm', 'mixtral', 'mobilenet_v3',
  'resnet_torchscript', 't5', 'unet', 'vit' }

--- Like trinity.model, without warnings; dimensions that the file leaves open are 2.
local function load(name)
  local handle = core.read_onnx(('%s/tests/data/onnx/%s.onnx'):format(root, name), { open_dimension = 2, dimensions = {} })
  return graphs.wrap(handle):to_training()
end

describe('an imported graph', function()
  for i, name in ipairs(files) do
    it(('of %s has the same results under every placement'):format(name), function()
      local problem = trinity.problem { graph = load(name), cluster = trinity.cluster 'p100x3' }
      local random = trinity.random(i, 'execute_onnx_spec')
      local options = { steps = 2, warm_up = 0, learning_rate = 1e-4 }
      local one = trinity.execute(problem, problem:placement(), options)
      local placed = problem:placement_by_unit(function() return random:integer(3) end)
      local other = trinity.execute(problem, placed, options)
      expect(other.transferred_bytes > 0):equals(true)
      for step = 1, 2 do
        expect(one.losses[step] == one.losses[step]):equals(true) -- a number
        expect(other.losses[step]):equals(one.losses[step])
      end
      expect(one.losses[1] ~= one.losses[2]):equals(true)
    end)
  end
end)
