-- Placements per second of `trinity serve` through pipes and of evaluate_batch in a script, in batches of 64
-- placements by unit, as texts and as lists:
--   build/trinity tests/bench/bench_serve.lua
-- The program's seconds are those for 80 batches less 16, so that starting it does not count. Medians of 5.
-- Goal: half of evaluate_batch.

local trinity = require 'trinity'

local batch_size, few, many, rounds = 64, 16, 80, 5
local spec = { model = 'inception_v3', batch_size = 64, cluster = 'p100x4' }

local function new_problem()
  return trinity.problem { graph = trinity.model(spec.model, { batch_size = spec.batch_size }),
    cluster = trinity.cluster(spec.cluster) }
end

local problem = new_problem()
local units, devices = problem.graph.units, #problem.cluster.devices

--- Devices from 0 of all units, of `count` placements, each a move from the one before.
local function draw(seed, count)
  local stream, list, device = trinity.random(seed, 'serve'), {}, {}
  for u = 1, units do device[u] = stream:integer(devices) - 1 end
  for i = 1, count do
    device[stream:integer(units)] = stream:integer(devices) - 1
    list[i] = { unpack(device) }
  end
  return list
end

--- Seconds of the program on the first `batches` batches.
local function serve_s(list, batches, as_text)
  local path, lines = os.tmpname(), {}
  for b = 1, batches do
    local placements = {}
    for i = 1, batch_size do
      local one = list[(b - 1) * batch_size + i]
      placements[i] = as_text and ('"%s"'):format(table.concat(one)) or ('[%s]'):format(table.concat(one, ','))
    end
    lines[b] = ('{"id":%d,"method":"evaluate_batch","params":{"problem":{"model":"%s","batch_size":%d,"cluster":"%s"},'
      .. '"placements":[%s]}}\n'):format(b, spec.model, spec.batch_size, spec.cluster, table.concat(placements, ','))
  end
  local file = assert(io.open(path, 'w'))
  file:write(table.concat(lines))
  file:close()
  local start_s = trinity.system.clock_s()
  assert(os.execute(('cat %s | %s/build/trinity serve | cat > /dev/null'):format(path, trinity.system.home)) == 0)
  local seconds = trinity.system.clock_s() - start_s
  os.remove(path)
  return seconds
end

--- The same placements in a script.
local function batch_s(list)
  local own, batches = new_problem(), {}
  for b = 1, many do
    batches[b] = {}
    for i = 1, batch_size do
      local one = list[(b - 1) * batch_size + i]
      batches[b][i] = own:placement_by_unit(function(unit) return one[unit] + 1 end)
    end
  end
  local start_s = trinity.system.clock_s()
  for b = few + 1, many do own:evaluate_batch(batches[b]) end
  return trinity.system.clock_s() - start_s
end

local count, rates = (many - few) * batch_size, { script = {}, text = {}, list = {} }
for seed = 1, rounds do
  local list = draw(seed, many * batch_size)
  rates.script[seed] = count / batch_s(list)
  for name, as_text in pairs { text = true, list = false } do -- each by itself: in any order
    rates[name][seed] = count / (serve_s(list, many, as_text) - serve_s(list, few, as_text))
  end
end
local script = trinity.system.median(rates.script)
for _, name in ipairs { 'script', 'text', 'list' } do
  local rate = trinity.system.median(rates[name])
  print(('%-8s %8.0f placements/s  %.2f of evaluate_batch'):format(name, rate, rate / script))
end
