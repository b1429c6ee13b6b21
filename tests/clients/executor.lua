-- Our own executor's results of a pipeline, for PyTorch to repeat: `trinity tests/clients/executor.lua FOLDER` writes
-- schedules (NAME.csv), samples (samples.csv), weights at the start (start.safetensors) and losses (losses.json).

local trinity = require 'trinity'

local executor = { blocks = 4, width = 16, classes = 5, batch_size = 8, micro_batches = 8, steps = 6,
  learning_rate = 0.2 }

function executor.problem()
  local net = trinity.graph.layers.new('blocks', { batch_size = executor.batch_size })
  local x = net:input('x', { executor.batch_size, executor.width })
  for i = 1, executor.blocks do
    x = net:relu(('block_%d/relu'):format(i), net:linear(('block_%d/linear'):format(i), x, executor.width))
  end
  net:softmax_cross_entropy('loss', net:linear('leave', x, executor.classes),
    net:input('y', { executor.batch_size }, 'int64'))
  return trinity.problem { graph = net:build():to_training { optimizer = 'sgd' },
    cluster = trinity.cluster 'p100x4' }
end

--- Rows of samples: one batch, so that every step has all of them.
function executor.samples()
  local random, rows = trinity.random(1, 'samples'), {}
  for i = 1, executor.batch_size * executor.micro_batches do
    local row = {}
    for k = 1, executor.width do row[k] = ('%.4f'):format(random:uniform() * 2 - 1) end
    row[#row + 1] = tostring(i % executor.classes)
    rows[i] = table.concat(row, ',')
  end
  return table.concat(rows, '\n') .. '\n'
end

--- Losses of steps by schedule, and the schedules as PyTorch's CSV; samples and first weights go to the folder.
function executor.run(folder)
  local problem, told, orders = executor.problem(), {}, {}
  trinity.files.write(folder .. '/samples.csv', executor.samples())
  local base = { data = folder .. '/samples.csv', train_rows = executor.batch_size * executor.micro_batches,
    warm_up = 0, quiet = true }
  local function execute(plan, more)
    for key, value in trinity.system.sorted_pairs(base) do more[key] = value end
    return trinity.execute(problem, plan, more)
  end
  for _, schedule in ipairs { '1f1b', 'zb-h1', 'gpipe' } do
    local plan = problem:strategy { mesh = { pipeline = 4 }, schedule = schedule,
      micro_batches = executor.micro_batches }
    local start = folder .. '/start.safetensors'
    execute(plan, { steps = 1, learning_rate = 0, save = start })
    told[schedule] = execute(plan, { steps = executor.steps, learning_rate = executor.learning_rate,
      load = start }).losses
    orders[schedule] = trinity.formats.files(plan, { format = 'pytorch_schedule' })[1].text
  end
  return told, orders
end

local function write_all(folder)
  local told, orders = executor.run(folder)
  for schedule, text in trinity.system.sorted_pairs(orders) do
    trinity.files.write(('%s/%s.csv'):format(folder, schedule), text)
  end
  trinity.files.write(folder .. '/losses.json', require('trinity.core').to_json { losses = told,
    micro_batches = executor.micro_batches, learning_rate = executor.learning_rate, blocks = executor.blocks })
end

if arg and arg[0] and arg[0]:match 'clients/executor%.lua$' then
  if #arg ~= 1 then error('usage: trinity tests/clients/executor.lua FOLDER', 0) end
  write_all(arg[1])
end

return executor
