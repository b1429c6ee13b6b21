-- Whether a strategy, executed, computes the losses and weights of one device that trains the same samples. A file of
-- specs loads it with dofile; `new` takes a training graph.

local trinity = require 'trinity'
local util = require 'trinity.base.util'

local same = {}
same.__index = same

--- Both strategies in one, meshes joined.
function same.together(a, b)
  return util.merged(util.merged(a, b), { mesh = util.merged(a.mesh or {}, b.mesh or {}) })
end

function same.devices_of(mesh)
  return (mesh.data or 1) * (mesh.pipeline or 1) * (mesh.tensor or 1) * (mesh.context or 1) * (mesh.placement or 1)
end

--- The largest difference of losses and weights, over the largest number of the loss or weight. Biases of keys have no
--- gradient (a softmax does not see what all of its arguments share): Adam divides what rounding leaves by itself.
function same.difference(one, other)
  local worst = 0
  for i, loss in ipairs(one.losses) do worst = math.max(worst, math.abs(loss - other.losses[i]) / math.abs(loss)) end
  if #other.weights ~= #one.weights then return math.huge end
  for i, weight in ipairs(one.weights) do
    if other.weights[i].name ~= weight.name then return math.huge end
    local largest, off = 0, 0
    for k, value in ipairs(weight.values) do
      largest = math.max(largest, math.abs(value))
      off = math.max(off, math.abs(value - other.weights[i].values[k]))
    end
    if not weight.name:find 'key/bias' then worst = math.max(worst, off / largest) end
  end
  return worst
end

function same.new(graph) return setmetatable({ graph = graph, alone = {} }, same) end

--- Three steps in float64, with the weights after them.
function same:run(strategy, options)
  local devices = same.devices_of(strategy.mesh)
  local problem = trinity.problem { graph = self.graph, cluster = trinity.cluster('p100x' .. devices) }
  return trinity.execute(problem, problem:strategy(strategy), util.merged({ steps = 3, warm_up = 0,
    double_precision = true, quiet = true, keep_weights = true }, options))
end

--- One device on the micro-batches of all replicas.
function same:on_one(micro_batches)
  self.alone[micro_batches] = self.alone[micro_batches] or self:run { mesh = {}, micro_batches = micro_batches }
  return self.alone[micro_batches]
end

--- The largest difference from that, where a strategy runs.
function same:off(strategy)
  local expected = self:on_one((strategy.micro_batches or 1) * (strategy.mesh.data or 1))
  return same.difference(expected, self:run(strategy))
end

return same
