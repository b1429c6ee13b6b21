-- Strategy files: problem:load, what comes back is written and read again.

local core = require 'trinity.core'
local frame = require 'frame'
local small = require 'small'
local strategies = require 'trinity.strategy.strategy'

local problem = small.problem(2)

local function seed(plan)
  local path = frame.folder .. '/seed'
  problem:strategy(plan, { method = 'by hand', seed = 1, evaluations = 3 }):save(path)
  return core.read_file(path)
end

local function halves()
  return problem:placement_by_unit(function(unit) return unit * 2 > problem.graph.units and 2 or 1 end)
end

local function seeds()
  local priority, order, stage = {}, { {}, {} }, {}
  local placement = halves()
  for op = 1, #placement do
    priority[op], stage[op] = op, placement[op]
    table.insert(order[placement[op]], op)
  end
  local list = { seed { placement = placement },
    seed { placement = placement, schedule = 'priority', priority = priority },
    seed { placement = placement, schedule = 'lifo', micro_batches = 2 } }
  list[#list + 1] = seed { placement = placement, schedule = 'order', order = order }
  list[#list + 1] = seed { placement = placement, schedule = '1f1b', micro_batches = 2, stage = stage }
  local splits = { classifier = { b = 2 }, a1 = { b = 2, devices = { 1, 2 } } }
  list[#list + 1] = seed { placement = placement, splits = splits }
  return list
end

local function again(loaded)
  local path = frame.folder .. '/again'
  loaded:save(path)
  local second = problem:load(path)
  if second.reward ~= loaded.reward then
    frame.finding('another reward came back: %.17g, %.17g', loaded.reward, second.reward)
  end
  if strategies.text(second) ~= strategies.text(loaded) then frame.finding 'another text came back' end
end

return {
  seeds = seeds(),
  run = function(text)
    local ok, loaded = frame.try(problem.load, problem, frame.file('strategy.json', text))
    if not ok then return end
    tostring(loaded)
    again(loaded)
    frame.try(problem.timeline, problem, loaded)
  end,
}
