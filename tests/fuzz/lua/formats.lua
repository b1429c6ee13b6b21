-- Files of other programs that plans are read from: schedules as CSV, Megatron-LM's layouts. The first letter of the
-- input says which.

local core = require 'trinity.core'
local frame = require 'frame'
local layout = require 'trinity.strategy.layout'
local trinity = require 'trinity'

local strategy

local function mesh()
  if not strategy then
    local net = trinity.graph.layers.new('two', { batch_size = 4 })
    local x = net:input('x', { 4, 8 })
    for i = 1, 2 do x = net:relu(('block_%d/relu'):format(i), net:linear(('block_%d/linear'):format(i), x, 8)) end
    net:softmax_cross_entropy('loss', net:linear('last', x, 4), net:input('y', { 4 }, 'int64'))
    local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2' }
    strategy = problem:strategy { mesh = { pipeline = 2 } }
  end
  return strategy
end

local readers = {}

-- A graph that is read is written as the same graph, and costs something.
function readers.s(text)
  local rows = {}
  for row in (text .. '\n'):gmatch '([^\n]*)\n' do rows[#rows + 1] = row end
  local fine, order = frame.try(core.read_order, rows)
  if not fine then return end
  if table.concat(core.read_order(order.tasks).tasks, '\n') ~= table.concat(order.tasks, '\n') then
    frame.finding('orders read again are others')
  end
  if #order.tasks == 2 and order.virtual_stages == 1 and order.micro_batches < 9 then
    frame.try(mesh().problem.strategy, mesh().problem, { mesh = { pipeline = 2 }, tasks = order.tasks })
  end
end

function readers.l(text)
  local fine, stages = frame.try(layout.read, text, 'input')
  if not fine then return end
  for pipeline = 1, 4 do layout.refusal(stages, pipeline, 4, 1) end
end

return {
  seeds = { 's0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n', 's(0F0;1B0)OVERLAP_F_B,0I0,0W0,0UNSHARD,0SEND_F0\n',
    'lEt*3|(tt|)*29,m|L', 'lEtt||ttL' },
  run = function(text)
    local read = readers[text:sub(1, 1)]
    if read then read(text:sub(2)) end
  end,
}
