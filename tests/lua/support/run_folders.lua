-- Run folders by hand, in the format of lib/trinity/runs/DESIGN.md: small ones of every kind, with names that no page must read
-- as anything but text.

local core = require 'trinity.core'
local trinity = require 'trinity'

local run_folders = {}

local function writer(folder)
  return function(path, content)
    core.write_file(folder .. '/' .. path, type(content) == 'table' and core.to_json(content) or content)
  end
end

--- run.json of a run called `name`.
local function about(name, more)
  local run = { kind = 'trinity run 1', name = name, status = 'done', script = 'scripts/compare.lua', seed = 1,
    command = { 'trinity', 'compare', '--model', 'a model' }, options = { seeds = 2, evaluations = 40 }, seconds = 1.5,
    started_at = '2026-01-01T00:00:00Z', versions = { trinity = core.version }, blas = 'OpenBLAS',
    machine = { processor = 'some processor', cores = 2, memory_bytes = 8e9 } }
  for key, value in trinity.system.sorted_pairs(more or {}) do run[key] = value end
  return run
end

local function write_problem(write, problem, model)
  local bounds, names, capacity = problem:bounds(), {}, {}
  for d, device in ipairs(problem.cluster.devices) do
    names[d], capacity[d] = device.name, device.capacity_bytes
  end
  write('graphs/graph.json', '')
  return { kind = 'trinity problem 1', id = '1', model = model, cluster = problem.cluster.name,
    operators = problem.graph.operators, devices = #names, device_names = names, capacity_bytes = capacity,
    graph = 'graphs/graph.json', bounds = { step_time_s = bounds.step_time_s,
      peak_memory_bytes = bounds.peak_memory_bytes } }
end

local function write_search(write, folder, problem, id, method, found)
  local m = found.metrics
  write(('searches/%d/search.json'):format(id), { kind = 'trinity search 1', id = tostring(id), problem = '1',
    method = method, seed = found.seed or 1, status = 'done', evaluations = found.evaluations, seconds = 0.1,
    best_step_time_s = m.step_time_s, best_reward = found.reward, fits = m.feasible,
    lower_bound_s = found:bounds().step_time_s })
  found:save(('%s/searches/%d/strategy.json'):format(folder, id))
  local lines = { 'evaluations,mean_reward,best_reward,best_step_time_s' }
  for i, point in ipairs(found.curve or {}) do
    lines[i + 1] = ('%d,%.17g,%.17g,%.17g'):format(point.evaluations, point.mean_reward, point.best_reward,
      point.best_step_time_s)
  end
  write(('searches/%d/curve.csv'):format(id), table.concat(lines, '\n') .. '\n')
  problem:timeline(found):save(('%s/searches/%d/timeline.json'):format(folder, id))
end

--- A run that compared methods on a problem. model: what the run calls it. evaluations: default 40.
function run_folders.comparison(folder, problem, model, methods, more, evaluations)
  local write = writer(folder)
  local comparison = trinity.compare(problem, methods, { evaluations = evaluations or 40, seeds = 2, quiet = true })
  local entry = write_problem(write, problem, model)
  write('problems/1/problem.json', entry)
  write('problems/1/reward.lua', 'function(metrics) return -metrics.step_time_s end -- </script><script>pwned=1</script>\n')
  problem.graph:save(folder .. '/graphs/graph.json')
  local data, id = comparison:totable(), 0
  data.problem, data.model = '1', model
  for _, row in ipairs(comparison.rows) do
    for _, found in ipairs(row.runs) do
      id = id + 1
      write_search(write, folder, problem, id, row.method, found)
    end
  end
  write('results/comparison.json', { kind = 'comparison', label = 'comparison', summary = 'What ' .. model .. ' gave.',
    data = data })
  write('run.json', about(folder:match '[^/]+$', more))
end

--- A run without searches, of results { [label] = { kind =, summary =, data = } }.
function run_folders.results(folder, results, more)
  local write = writer(folder)
  for label, result in trinity.system.sorted_pairs(results) do write(('results/%s.json'):format(label), result) end
  write('run.json', about(folder:match '[^/]+$', more))
end

--- A training step whose operators have names that would like to be HTML.
function run_folders.hostile_problem()
  local builder = trinity.graph.new { name = 'hostile' }
  local names = { '</script><script>pwned=1</script>', '<img src=x onerror="pwned=1">', 'quote"\'`\\', 'line\nbreak',
    '{{CODE}} {{STYLE}}', '\226\128\168 and \240\159\152\128', '<!-- <script>', 'plain/one', 'plain/two' }
  local before = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 64 }, gradient = false } } }
  for i, name in ipairs(names) do
    before = builder:add { name = name, type = i == 1 and '<b>Type</b>' or 'Work', inputs = { before },
      outputs = { { shape = { 1000 * i } } }, measured_time_s = i * 1e-4 }
  end
  return trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
end

return run_folders
