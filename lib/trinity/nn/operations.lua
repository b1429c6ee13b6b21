-- Operations of the engine for networks: layers, losses, optimizers (engine/lua/bind_torch/bind_tensor_layers.cpp).

local core = require 'trinity.core'
local late = require 'trinity.base.late'

return late.table('trinity.nn.operations', function() return core.tensor.layers end)
