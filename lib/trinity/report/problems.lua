-- Data of a report about the problems of a run: the map of the graph, the strategies found, the timeline of a step.

local core = require 'trinity.core'
local layers = require 'trinity.report.layers'
local infeasibility = require 'trinity.strategy.infeasibility'
local model = require 'trinity.graph.model'
local pack = require 'trinity.report.pack'
local read = require 'trinity.report.read'
local trace = require 'trinity.report.trace'
local util = require 'trinity.base.util'

local problems = {}

local most_problems = 24       -- with pictures; others are only in the tables
local most_trace_bytes = 200e6 -- maximum size of a timeline's file
local most_bytes = 11e6        -- maximum size of all pictures of a page

local function number(value) return type(value) == 'number' and value or nil end

local function fits(search) return search.fits ~= false and search.fits ~= 0 end

local function result_of(search)
  local why = search.infeasibility
  local over = type(why) == 'table' and number(why.over_bytes) or 0
  return { metrics = { feasible = fits(search), excess_memory_bytes = over },
    reward = number(search.best_reward) or -math.huge }
end

--- Returns whether search `a` found a better result than `b`; if equal, whether its step is faster.
local function beats(a, b)
  local x, y = result_of(a), result_of(b)
  if infeasibility.better(x, y) or infeasibility.better(y, x) then return infeasibility.better(x, y) end
  return (number(a.best_step_time_s) or math.huge) < (number(b.best_step_time_s) or math.huge)
end

--- Returns the searches of a problem whose strategies are shown: the best of each method, the overall best first.
local function chosen_searches(run, problem)
  local best, list = {}, {}
  for _, id in ipairs(run.search_ids) do
    local search = run.searches[id]
    if tostring(search.problem) == problem and number(search.best_step_time_s) then
      search.id = id
      local method = tostring(search.method)
      if not best[method] or beats(search, best[method]) then best[method] = search end
    end
  end
  for _, search in util.sorted_pairs(best) do list[#list + 1] = search end
  table.sort(list, function(a, b)
    if beats(a, b) ~= beats(b, a) then return beats(a, b) end
    return tostring(a.id) < tostring(b.id)
  end)
  return list
end

--- Returns the map of a graph's file and the numbers of its operators; cached per page.
local function map_of(page, run, file)
  local key = ('%s/%s'):format(run.path, file)
  if page.known[key] == nil then
    local ok, map, index_of = pcall(function()
      -- Only data of the run, because it may be untrusted.
      if not file:match '^graphs/[%w_+-][%w._+-]*%.json$' then util.fail('expected graphs/NAME.json') end
      local graph = model.load(key, { training = false })
      local map, index_of = layers.of(graph)
      map.name = graph.name
      return map, index_of
    end)
    if ok then
      page.graphs[#page.graphs + 1] = map
      page.known[key] = { number = #page.graphs, index_of = index_of, operators = #map.operators.name }
    else
      run.notes[#run.notes + 1] = util.shortened(('%s: %s'):format(file, tostring(map)))
      page.known[key] = false
    end
  end
  return page.known[key]
end

--- Returns the device (from 1; 0 if the file has none) of every operator.
local function placement_of(run, search, graph, devices)
  local saved = read.json(run, ('searches/%s/strategy.json'):format(search.id))
  if not saved or type(saved.placement) ~= 'table' then return nil end
  local device_of, placement = {}, {}
  for d, name in ipairs(devices) do device_of[name] = d end
  for i = 1, graph.operators do placement[i] = 0 end
  for name, device in util.sorted_pairs(saved.placement) do
    local op = graph.index_of[name]
    if op then placement[op] = device_of[device] or 0 end
  end
  return pack.integers(placement)
end

local function timeline_of(run, search, graph)
  local path = ('searches/%s/timeline.json'):format(search.id)
  local text = read.text(run, path)
  if not text then return nil end
  if #text > most_trace_bytes then
    run.notes[#run.notes + 1] = ('%s is not shown, because it has %s'):format(path, core.format_bytes(#text))
    return nil
  end
  local ok, result = pcall(trace.read, text, graph and graph.index_of or {}, graph and graph.operators or 0)
  if ok then return result end
  run.notes[#run.notes + 1] = util.shortened(('%s: %s'):format(path, tostring(result)))
end

local function size_of(timeline)
  local bytes = 0
  for _, track in ipairs(timeline.tracks) do
    for _, name in ipairs(trace.columns) do bytes = bytes + #track[name] end
  end
  for _, memory in ipairs(timeline.memory) do bytes = bytes + #memory.time + #memory.bytes end
  return bytes
end

local function strategy_of(page, run, search, graph, devices)
  local found = { search = search.id, method = tostring(search.method), seed = number(search.seed),
    step_time_s = search.best_step_time_s, fits = fits(search),
    evaluations = number(search.evaluations), seconds = number(search.seconds), status = search.status,
    lower_bound_s = number(search.lower_bound_s) }
  if page.bytes < most_bytes then
    found.placement = graph and placement_of(run, search, graph, devices)
    found.timeline = timeline_of(run, search, graph)
    page.bytes = page.bytes + (found.placement and #found.placement or 0)
      + (found.timeline and size_of(found.timeline) or 0)
  else
    page.full = true
  end
  return found
end

local function strings(list, fallback)
  local out = util.map(type(list) == 'table' and list or {}, tostring)
  if #out == 0 then
    for d = 1, math.min(4096, number(fallback) or 0) do out[d] = ('device %d'):format(d - 1) end
  end
  return out
end

--- Returns the problems of a run in the order of the script; omitted parts are added to the run's notes.
function problems.of(page, run)
  local list = {}
  for i, id in ipairs(run.problem_ids) do
    local about = run.problems[id]
    local devices = strings(about.device_names, about.devices)
    local entry = { id = id, rests_on = about.rests_on, model = tostring(about.model),
      cluster = tostring(about.cluster), devices = devices,
      operators = number(about.operators), capacity_bytes = about.capacity_bytes, bounds = about.bounds,
      schedule = about.schedule, micro_batches = number(about.micro_batches), strategies = {},
      reward = read.text(run, ('problems/%s/reward.lua'):format(id)) }
    local searches = chosen_searches(run, id)
    if i <= most_problems and #searches > 0 then
      local graph = type(about.graph) == 'string' and page.bytes < most_bytes and map_of(page, run, about.graph) or nil
      entry.graph = graph and graph.number
      for s, search in ipairs(searches) do
        entry.strategies[s] = strategy_of(page, run, search, graph, devices)
      end
    end
    list[i] = entry
  end
  if #run.problem_ids > most_problems then
    run.notes[#run.notes + 1] = ('pictures show the first %d of %d problems'):format(most_problems, #run.problem_ids)
  end
  return list
end

return problems
