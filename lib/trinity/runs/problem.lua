-- Saves the problem of a run's searches so that it can be read back: graph, cluster, rules, and the source of the
-- reward.

local calibrate = require 'trinity.cluster.calibrate'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local run_folder = require 'trinity.runs.folder'
local util = require 'trinity.base.util'

local run_problem = {}

--- Returns lines `first` to `last` of a file, or nil if it cannot be read.
local function lines_of(path, first, last)
  local ok, text = pcall(core.read_file, path)
  if not ok then return nil end
  local lines, number = {}, 0
  for line in (text .. '\n'):gmatch '(.-)\n' do
    number = number + 1
    if number > last then break end
    if number >= first then lines[#lines + 1] = line end
  end
  return table.concat(lines, '\n')
end

local function value_text(value)
  if type(value) == 'number' then return ('%.17g'):format(value) end
  if type(value) == 'string' then return ('%q'):format(util.shortened(value, 200)) end
  return tostring(value)
end

local plain = { number = true, string = true, boolean = true }

--- Returns the values that a function refers to, as comments; functions of the script are added to `wanted`.
local function add_values(f, parts, wanted)
  local getupvalue = debug.getupvalue -- nil in safe scripts
  for i = 1, getupvalue and 60 or 0 do
    local name, value = getupvalue(f, i)
    if not name then break end
    if plain[type(value)] then
      parts[#parts + 1] = ('-- %s = %s'):format(name, value_text(value))
    elseif type(value) == 'function' then
      wanted[#wanted + 1] = { name = name, f = value }
    elseif type(value) == 'table' and getmetatable(value) == nil then
      for key, entry in util.sorted_pairs(value) do
        local text = plain[type(entry)] and value_text(entry)
        if text then parts[#parts + 1] = ('-- %s.%s = %s'):format(name, tostring(key), text) end
      end
    end
  end
end

local most_functions = 20

--- Returns the source of a function and of the script's functions that it calls, with the values that they refer to.
function run_problem.source(f)
  local parts, wanted, seen, next_one = {}, { { f = f } }, {}, 1
  while wanted[next_one] and next_one <= most_functions do
    local entry = wanted[next_one]
    next_one = next_one + 1
    if not seen[entry.f] then
      seen[entry.f] = true
      local info = debug.getinfo(entry.f, 'S')
      local path = info.what ~= 'C' and info.source:match '^@(.*)'
      local text = path and lines_of(path, info.linedefined, info.lastlinedefined)
      local place = (entry.name and entry.name .. ', ' or '') .. util.function_place(entry.f)
      if text then
        parts[#parts + 1] = '-- ' .. place
        parts[#parts + 1] = text
        add_values(entry.f, parts, wanted)
      else
        parts[#parts + 1] = ('-- %s: its source cannot be read'):format(place)
      end
      parts[#parts + 1] = ''
    end
  end
  return table.concat(parts, '\n')
end

--- Writes a shared file, once.
local function write_once(folder, path, text)
  if not util.exists(folder.path .. '/' .. path) then folder:write(path, text()) end
  return path
end

local function device_facts(cluster)
  local names, capacities = {}, {}
  for d, device in ipairs(cluster.devices) do
    names[d], capacities[d] = device.name, device.capacity_bytes
  end
  return names, capacities
end

--- Returns lower bounds, or nil if the problem has none (a graph that fits on no device).
local function bounds_of(problem)
  local ok, bounds = pcall(problem.bounds, problem)
  return ok and util.picked(bounds, { 'step_time_s', 'critical_path_s', 'work_s', 'interval_s', 'peak_memory_bytes' })
    or nil
end

--- Writes problems/ID; returns { id =, model =, cluster =, lower_bound_s = }.
function run_problem.write(folder, id, problem)
  local graph, cluster = problem.graph, problem.cluster
  local names, capacities = device_facts(cluster)
  local bounds, plan = bounds_of(problem), problem.default_schedule or {}
  local about = { kind = 'trinity problem 1', id = id, model = graph.name, cluster = cluster.name,
    operators = graph.operators, units = graph.units, devices = #cluster.devices, rules = problem.rules,
    schedule = plan.schedule, micro_batches = plan.micro_batches, own_cost = problem.cost ~= nil,
    bounds = bounds, device_names = names, capacity_bytes = capacities,
    rests_on = calibrate.text(cluster.basis), reward = ('problems/%s/reward.lua'):format(id) }
  about.graph = write_once(folder, ('graphs/%s-%s.json'):format(run_folder.word(graph.name), graph.fingerprint),
    function() return graph:to_json() end)
  about.cluster_file = write_once(folder,
    ('clusters/%s-%s.json'):format(run_folder.word(cluster.name), cluster.fingerprint),
    function() return model.cluster_json(cluster) end)
  folder:write(about.reward, run_problem.source(problem.reward))
  folder:write(('problems/%s/problem.json'):format(id), json.encode(about))
  return { id = id, model = graph.name, cluster = cluster.name, lower_bound_s = bounds and bounds.step_time_s }
end

return run_problem
