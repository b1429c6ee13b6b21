-- A small training problem that several targets share.

local trinity = require 'trinity'

local small = {}

--- Two branches a block.
function small.graph(blocks)
  local net = trinity.layers.new 'branches'
  local x = net:input('image', { 8, 3, 8, 8 })
  for i = 1, blocks do
    local a = net:relu('a_relu' .. i, net:conv('a' .. i, x, { channels = 4, kernel = 3, padding = 1 }))
    local b = net:relu('b_relu' .. i, net:conv('b' .. i, x, { channels = 4, kernel = 3, padding = 1 }))
    x = net:concat('join' .. i, { a, b })
  end
  local labels = net:input('labels', { 8 }, 'int64')
  net:softmax_cross_entropy('loss', net:linear('classifier', net:flatten('flat', x), 10), labels)
  return net:build():to_training()
end

function small.problem(blocks)
  return trinity.problem { graph = small.graph(blocks), cluster = trinity.cluster 'p100x2' }
end

return small
