-- Training of two layers by autograd, the reference for specs of executed trainings: the network, its gradients, and
-- what an executor read and made of it. A file of specs loads it with dofile and hands in
-- its `expect`.

local core = require 'trinity.core'
local lowered = require 'trinity.execute.lowered'
local occasions = require 'trinity.execute.occasions'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local inputs, hidden, classes, rows = 4, 5, 3, 2
local two = { rate = 0.3 } -- of learning
local expect

function two.network(optimiser)
  return trinity.model('mlp', { inputs = inputs, hidden = { hidden }, classes = classes, batch_size = rows,
    optimizer = optimiser })
end

--- Loss and gradients of the two layers { W1, b1, W2, b2 }, lists of numbers, on rows x of classes labels (from 0).
function two.differentiate(w, x, labels)
  local tensor, shapes = trinity.tensor, { { hidden, inputs }, { hidden }, { classes, hidden }, { classes } }
  local exact, leaves, places = { dtype = 'float64' }, {}, {}
  for k, values in ipairs(w) do leaves[k] = tensor.new(values, exact):reshape(shapes[k]):detach():requires_grad_(true) end
  for n, label in ipairs(labels) do places[n] = { label + 1 } end
  local h = (tensor.new(x, exact):matmul(leaves[1]:transpose()) + leaves[2]):relu()
  local logits = h:matmul(leaves[3]:transpose()) + leaves[4]
  local loss = -logits:log_softmax(2):gather(2, tensor.new(places, { dtype = 'int64' })):mean()
  return loss:item(), util.map(tensor.grad(loss, leaves), function(gradient) return gradient:flatten():totable() end)
end

--- f of the numbers of lists that stand in the same place.
function two.combine(f, ...)
  local lists, made = { ... }, {}
  for k in ipairs(lists[1]) do
    made[k] = {}
    for i in ipairs(lists[1][k]) do
      made[k][i] = f(unpack(util.map(lists, function(list) return list[k][i] end)))
    end
  end
  return made
end

function two.stepped(w, gradient, scale)
  return two.combine(function(a, g) return a - scale * g end, w, gradient)
end

--- The mean of weights.
function two.mean(list)
  return two.combine(function(...)
    local sum = 0
    for _, value in ipairs { ... } do sum = sum + value end
    return sum / #list
  end, unpack(list))
end

--- Executes steps of a plan; what every replica read, losses, weights before and after.
function two.execute(graph, plan, devices, steps, options, cycling)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster('p100x' .. devices) }
  local what = lowered(problem, plan.mesh and problem:strategy(plan) or plan)
  local executor = core.executor(what.graph.handle, what.placement, devices, what.order, util.merged({
    learning_rate = two.rate, micro_batches = what.micro_batches, stream = what.stream, double_precision = true }, options))
  local happens = occasions.new(plan.mesh and problem:strategy(plan) or plan, cycling or {}, 0, steps)
  local read = {} -- by step, micro-batch and replica
  local function weights()
    local by_name = {}
    for _, weight in ipairs(executor:weights()) do by_name[weight.name] = weight.values end
    local names = {}
    for name in pairs(by_name) do names[#names + 1] = name end
    table.sort(names)
    return by_name, names
  end
  local result = { losses = {}, before = weights(), read = read, micro_batches = what.micro_batches }
  for step = 1, steps do
    read[step] = {}
    for m = 1, what.micro_batches do
      local given = {}
      for op = 1, what.graph.operators do
        local about = what.graph:operator(op)
        local name, replica = about.name:match '^([^@]+)@?(%d*)$'
        if about.type == 'Input' and (name == 'inputs' or name == 'labels') then
          replica = (tonumber(replica) or 0) + 1
          given[replica] = given[replica] or {}
          given[replica][name] = executor:data(op, m)
        end
      end
      read[step][m] = given
    end
    result.losses[step] = executor:step(nil, happens:next(step - 1)).loss
    happens:step_done(result.losses[step])
  end
  result.weights = weights()
  executor:close()
  return result
end

--- Numbers of inputs by row.
function two.in_rows(flat)
  local x = {}
  for n = 1, rows do x[n] = { unpack(flat, (n - 1) * inputs + 1, n * inputs) } end
  return x
end

--- The two layers of executed weights.
function two.layers_of(by_name)
  local names = {}
  for name in pairs(by_name) do names[#names + 1] = name end
  table.sort(names)
  local found = {}
  for _, name in ipairs(names) do
    local layer = #by_name[name] == inputs * hidden and 1 or #by_name[name] == hidden and 2
      or #by_name[name] == hidden * classes and 3 or 4
    found[layer] = by_name[name]
  end
  return found
end

function two.expect_weights(found, expected)
  for k, list in ipairs(expected) do
    for i, value in ipairs(list) do expect(found[k][i]):near(value, 1e-12) end
  end
end

function two.expect_losses(run, losses)
  for step, loss in ipairs(losses) do expect(run.losses[step]):near(loss, 1e-12) end
end

--- A training in one piece, and the same stopped after every step (train(options)), have the same numbers.
function two.expect_same_in_pieces(train, path)
  local whole, losses, last = train {}, {}, { steps_done = 0 }
  while last.steps_done < whole.steps_done do
    last = train { seconds = 1e-9, checkpoint = path }
    expect(#last.losses):equals(1)
    losses[#losses + 1] = last.losses[1]
  end
  expect(#losses):equals(#whole.losses)
  for i, loss in ipairs(losses) do expect(loss):equals(whole.losses[i]) end
  for i, weight in ipairs(whole.weights) do
    for k, value in ipairs(weight.values) do expect(last.weights[i].values[k]):equals(value) end
  end
end

return function(given)
  expect = given
  return two
end
