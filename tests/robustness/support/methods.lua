-- Every method on two towers of layers, what else makes engine objects, and errors in between: for
-- tests/robustness/states.cpp, which looks for leaks. The argument is a seed.

local trinity = require 'trinity'

local net = trinity.graph.layers.new('towers', { batch_size = 8 })
local x = net:input('x', { 8, 8 })
local a, b = x, x
for i = 1, 3 do
  a, b = net:relu('left' .. i .. 'r', net:linear('left' .. i, a, 8)), net:linear('right' .. i, b, 8)
end
net:softmax_cross_entropy('loss', net:add('sum', a, b), net:input('labels', { 8 }, 'int64'))
local problem = trinity.problem { graph = net:build():to_training(), cluster = trinity.cluster 'p100x2',
  reward = function(metrics) return -metrics.step_time_s end }

local seed = tonumber(arg[1])
for _, name in ipairs(trinity.methods.names()) do
  local evaluations = trinity.methods.info(name).budget and 24 or nil
  local ok, found = pcall(trinity.methods[name], problem, { quiet = true, seed = seed, evaluations = evaluations })
  if seed == 0 then print(name, ok and (found and found.reward or 'none') or found) end
end
problem:timeline(problem:placement())
trinity.execute(problem, problem:placement(), { steps = 2, warm_up = 0 })
local weights = trinity.nn.linear { inputs = 4, outputs = 2 }
trinity.nn.mse(weights(trinity.tensor.ones { 3, 4 }), trinity.tensor.zeros { 3, 2 }):backward()
for _ = 1, 20 do
  pcall(trinity.problem, { graph = problem.graph, cluster = 'nowhere' })
  pcall(trinity.tensor.zeros, -1)
  pcall(problem.evaluate, problem, { 1, 2 })
  pcall(trinity.problem, { graph = problem.graph, cluster = 'p100x2', reward = function() error 'expected here' end })
end
