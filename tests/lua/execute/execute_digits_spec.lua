-- Real data: the network of 64, 128 and 10 units reads handwritten digits (Alpaydin and Kaynak 1998) as well by DASO on four
-- devices as on one. That other strategies train as one device does is said of every step (execute_strategies_spec.lua).

local trinity = require 'trinity'

with_torch()

it_shared('digits are read, by one device and by DASO', function()
  for devices, case in trinity.system.sorted_pairs { [1] = { { mesh = {}, micro_batches = 2 }, 25 },
    [4] = { { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2 } }, 12, {} } } do
    local graph = trinity.model('mlp', { inputs = 64, hidden = { 128 }, classes = 10, batch_size = case[2] })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. devices) }
    local run = trinity.execute(problem, problem:strategy(case[1]), { data = shared 'digits/digits.csv.gz', scale = 1 / 16,
      train_rows = 1500, epochs = 40, learning_rate = 0.1, quiet = true, daso = case[3] })
    expect(run.accuracy >= 0.9):equals(true)
  end
end)
