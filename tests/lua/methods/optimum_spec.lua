-- Exhaustive search is the judge of all methods on small graphs: no method finds anything better, and annealing, local
-- search and the house's method find the same within 2500 evaluations.

local trinity = require 'trinity'

local enough = { annealing = 2500, best = 2500, local_search = 2500, exhaustive = 1e6 }
local others = 16 -- evaluations of methods that sample, learn or walk: no budget makes them better than the optimum
local small = { trinity = { hidden = 16, groups = 8, samples = 8, epochs = 1 } } -- networks that learn in a moment

--- Twenty graphs: 8 to 14 operators on 2 devices, 8 to 10 on 3. Times, sizes and readers are random. Every third is too
--- large for one device.
local function drawn(number)
  local random = trinity.random(number, 'optimum spec')
  local devices = number % 2 == 0 and 3 or 2
  local operators, large = 7 + random:integer(devices == 2 and 7 or 3), number % 3 == 0
  local builder = trinity.graph.new { name = 'drawn' .. number }
  for i = 1, operators do
    builder:add_operator { name = 'op' .. i, time_s = random:integer(10000) * 1e-6,
      memory_bytes = large and math.floor((14 + random:integer(8)) * 2 ^ 30 / operators) or 2 ^ 20 }
    for _ = 1, math.min(random:integer(2), i - 1) do
      builder:add_edge('op' .. random:integer(i - 1), 'op' .. i, random:integer(60) * 1e6)
    end
  end
  return trinity.problem { graph = builder:build(), cluster = trinity.cluster('p100x' .. devices) }, large
end

local problems, optima = {}, {}
local function optimum(number)
  if not optima[number] then
    problems[number] = drawn(number)
    optima[number] = trinity.methods.exhaustive(problems[number], { evaluations = enough.exhaustive, quiet = true })
  end
  return problems[number], optima[number]
end

describe('on twenty small graphs', function()
  it('exhaustive search fits, and beats one device on most', function()
    local gains = 0
    for number = 1, 20 do
      local problem, best = optimum(number)
      expect(best.metrics.feasible):equals(true)
      expect(problem:bounds().step_time_s):below(best.metrics.step_time_s * (1 + 1e-12))
      local alone = problem:evaluate(problem:placement())
      if not alone.feasible or best.metrics.step_time_s < alone.step_time_s then gains = gains + 1 end
    end
    expect(15):below(gains)
  end)
  for _, name in ipairs(library_methods()) do
    it(name .. (enough[name] and ' finds the optimum' or ' reports nothing better than the optimum'), function()
      local answers = 0
      for number = 1, 20 do
        local problem, best = optimum(number)
        local options = merged({ quiet = true }, small[name] or {})
        if trinity.methods.info(name).budget then options.evaluations = enough[name] or others end
        local found, reason = trinity.methods.get(name)(problem, options)
        if not found then
          expect(type(reason)):equals 'string'
        elseif not found.schedule then -- the judge tries placements, not orders
          answers = answers + 1
          local again = problem:evaluate(found.placement)
          expect(again.step_time_s):equals(found.metrics.step_time_s)
          if problem.better(found, best) or enough[name] and problem.better(best, found) then
            error(('graph %d: %.9g s, the optimum is %.9g s'):format(number, found.metrics.step_time_s,
              best.metrics.step_time_s), 0)
          end
          expect(found.evaluations <= (options.evaluations or #problem.cluster.devices)):truthy()
        end
      end
      expect(answers > 0):truthy()
    end)
  end
end)
