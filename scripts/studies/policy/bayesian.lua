-- Bayesian optimisation of placements, which the executed searches are compared with. A Gaussian process models the
-- logarithm of the value over placements; two placements are as similar as the work that is on the same devices in
-- both. The next placement has the lowest confidence bound among moves of the best placements so far.

local array = require 'trinity.base.array'
local process = require 'trinity.base.gaussian_process'
local search = require 'trinity.search'

local length, moves_of_each, parents = 0.05, 64, 4
local optimism = 1          -- standard deviations below the mean
local below_start = 4       -- the process models values of at least the start's over this
local deviation, noise = 0.1, 0.02

--- Returns the kernel: exp(-d / length), d the share of operator time on different devices.
local function kernel_of(problem)
  local times, sum, operators = problem:operator_times(1), 0, problem.graph.operators
  for op = 1, operators do sum = sum + times[op] end
  return function(a, b)
    local apart = 0
    for op = 1, operators do
      if a[op] ~= b[op] then apart = apart + times[op] end
    end
    return math.exp(-apart / sum / length)
  end
end

--- Runs it from a start with a budget of evaluations, as a method: options { start =, evaluations =, seed = }.
return function(problem, options)
  local given = { evaluations = options.evaluations, seed = options.seed, quiet = true }
  return search.run('bayesian', problem, search.options('bayesian', {}, given), function(self)
    local floor = -self:evaluate({ options.start })[1] / below_start
    local model = process.new(kernel_of(problem), math.log(below_start), deviation, noise)
    local known, sampler = { { placement = options.start, value = floor * below_start } },
      problem:moves { seed = options.seed, groups = true }
    model:add(options.start, below_start)
    while self:more() do
      table.sort(known, function(a, b) return a.value < b.value end)
      local chosen, lowest
      for i = 1, math.min(parents, #known) do
        sampler:look(known[i].placement)
        local drawn = sampler:draw(known[i].placement, moves_of_each)
        for m = 1, drawn.count do
          local placement = array.copy(known[i].placement)
          drawn:apply(m, placement)
          local bound = model:estimate(placement, optimism)
          if not lowest or bound < lowest then chosen, lowest = placement, bound end
        end
      end
      local value = -self:evaluate({ chosen })[1]
      known[#known + 1] = { placement = chosen, value = value }
      model:add(chosen, value / floor)
    end
  end)
end
