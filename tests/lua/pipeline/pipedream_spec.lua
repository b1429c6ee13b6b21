-- PipeDream's optimiser: against every cut of small chains, cases by hand, and results of its own code.

local trinity = require 'trinity'

--- Writes a chain of layers { time_s, parameter_bytes, output_bytes } as a profile and plans it.
local function plan_chain(layers, options)
  local path = os.tmpname()
  local file = assert(io.open(path .. '.txt', 'w'))
  for i, layer in ipairs(layers) do
    file:write(('node%d -- Layer(%d) -- forward_compute_time=%.17g, backward_compute_time=0.000, activation_size=%.17g, '
      .. 'parameter_size=%.17g\n'):format(i, i, layer[1] * 1000, layer[3], layer[2]))
  end
  for i = 2, #layers do file:write(('\tnode%d -- node%d\n'):format(i - 1, i)) end
  file:close()
  options.method, options.quiet = 'pipedream', true
  local found = trinity.pipeline(path .. '.txt', options)
  os.remove(path)
  os.remove(path .. '.txt')
  return found
end

--- Seconds of the slowest stage of a chain, by the formula of lib/trinity/pipeline/pipedream.lua. stages: { first, last,
--- replicas }.
local function slowest_s(layers, stages, bandwidth)
  local worst = 0
  for _, stage in ipairs(stages) do
    local time_s, weights, m = 0, 0, stage.replicas
    for i = stage.first, stage.last do time_s, weights = time_s + layers[i][1], weights + layers[i][2] end
    worst = math.max(worst, (time_s + 4 * (m - 1) * weights / (bandwidth * m)) / m)
    if stage.first > 1 then
      worst = math.max(worst, 2 * layers[stage.first - 1][3] / (bandwidth * m))
      if stage.last < #layers then worst = math.max(worst, 2 * layers[stage.last][3] / (bandwidth * m)) end
    end
  end
  return worst
end

--- The least of these over all cuts and numbers of replicas.
local function exhaustive_s(layers, workers, bandwidth)
  local best, stages = math.huge, {}
  local function extend(first, left)
    for last = first, #layers do
      for replicas = 1, left do
        stages[#stages + 1] = { first = first, last = last, replicas = replicas }
        if last == #layers and replicas == left then
          best = math.min(best, slowest_s(layers, stages, bandwidth))
        elseif last < #layers and replicas < left then
          extend(last + 1, left - replicas)
        end
        stages[#stages] = nil
      end
    end
  end
  extend(1, workers)
  return best
end

describe("PipeDream's optimiser", function()
  it('is optimal on small chains', function()
    for seed = 1, 40 do
      local random, layers = trinity.random(seed, 'chain'), {}
      for i = 1, 1 + random:integer(6) do
        layers[i] = { 0.001 * random:integer(20), 1e6 * (random:integer(8) - 1), 1e6 * (random:integer(8) - 1) }
      end
      local workers = random:integer(4)
      local found = plan_chain(layers, { devices = workers, bandwidth_bytes_per_s = 1e9 })
      local stages, first, used = {}, 1, 0
      for s, stage in ipairs(found.stages) do
        stages[s] = { first = first, last = first + #stage.nodes - 1, replicas = stage.replicas[1] }
        first, used = first + #stage.nodes, used + stage.replicas[1]
      end
      expect(found.max_load):near(exhaustive_s(layers, workers, 1e9), 1e-12)
      expect(found.max_load):near(slowest_s(layers, stages, 1e9), 1e-12)
      expect(first):equals(#layers + 1)
      expect(used):equals(workers)
    end
  end)
  it('makes one stage per worker without replicas, and keeps to memory', function()
    local layers = { { 1, 4, 1 }, { 2, 4, 1 }, { 3, 4, 1 } }
    local function straight(devices, memory_bytes)
      return plan_chain(layers, { devices = devices, bandwidth_bytes_per_s = 1e9, straight = true,
        memory_bytes = memory_bytes })
    end
    expect(#straight(3).stages):equals(3)
    expect(straight(3).max_load):equals(3)
    expect(straight(4).feasible):equals(false)
    -- The first of three stages keeps 2 versions of 4 bytes of weights and 1 of outputs.
    expect(straight(3, 10).feasible):equals(true)
    expect(straight(3, 4).feasible):equals(false)
  end)
  it("has the paper's costs and compressed transfers", function()
    -- Layers of 4 and 2 seconds, of 8 and 2 bytes of weights; 1 byte crosses.
    local function time_s(options)
      options.devices, options.bandwidth_bytes_per_s = 2, 1
      return plan_chain({ { 4, 8, 1 }, { 2, 2, 1 } }, options)
    end
    -- Two stages: 4 s and 2 s, and 2 bytes there and back at 1 byte/s; as replicas (6 + 4 * 10 / 2) / 2.
    expect(time_s({}).max_load):equals(4)
    expect(time_s({ activation_compression = 0.25 }).max_load):equals(8)
    expect(time_s({ activation_compression = 0.1 }).max_load):equals(13)
    -- By the paper replicas take max(6, 2 * 10) / 2 = 10.
    expect(time_s({ activation_compression = 0.1, cost = 'paper' }).max_load):equals(10)
  end)
  all_only()
  it_shared('gives every published result of its own code', function()
    local compared = 0
    for _, folder in ipairs { 'pipedream', 'dapple' } do
      local path = ('%s/../shared/data/%s/'):format(root, folder)
      for _, result in ipairs(trinity.files.json.read(path .. 'expected.json').results) do
        local model, compressed = result.model:gsub('_compressed$', '')
        local found = trinity.pipeline(('%s%s%s.txt'):format(path, model, folder == 'dapple' and '' or '.graph'), {
          method = 'pipedream', quiet = true, devices = result.n, bandwidth_bytes_per_s = result.bw,
          straight = result.straight, activation_compression = result.acr or 0, memory_bytes = 0,
          compress_branches = compressed > 0 and 'yes' or 'no' })
        expect(found.states):equals(result.states)
        expect(found.max_load):near(result.pipe, 1e-6 * result.pipe)
        expect(found.data_parallel):near(result.dp, 1e-6 * result.dp)
        compared = compared + 1
      end
    end
    expect(compared):equals(99)
  end)
end)
