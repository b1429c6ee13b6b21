-- Golden texts of what a run leaves: its folder, and the data of its report.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local report = require 'trinity.report'
local trace = require 'trinity.report.trace'
local trinity = require 'trinity'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')

-- Two problems, one of which one device has no memory for; every kind of search; a result of its own.
local text = [[
local trinity = require 'trinity'
local graphs = dofile('%s/tests/lua/support/graphs.lua')
local options = trinity.options { 'A small run.', evaluations = { default = 12 } }
local scale, unit, weights = 10, 's', { time = 1, of = 'step' }
local function cost(m) return scale * weights.time * m.step_time_s, unit end
for _, graph in ipairs { graphs.branches(1, 4, 8, 8), graphs.heavy(3) } do
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2',
    reward = function(m) return -cost(m) end }
  local comparison = trinity.compare(problem, { 'single_device', 'contiguous', 'local_search', 'random' },
    { evaluations = options.evaluations, seeds = 2, quiet = true })
  print(comparison.rows[1].method)
end
trinity.run:result('mine', { lines = { 'a', 'b' } }, 'What was found.')
]]

-- Values that depend on clock, machine, versions and graphviz (layout).
local masked = {}
for _, key in ipairs { 'seconds', 'started_at', 'ended_at', 'started_s', 'taken_s', 'pid', 'process_start', 'processor', 'cores',
  'system', 'memory_bytes', 'libtorch', 'luajit', 'blas', 'folder', 'search_seconds',
  'layout' } do masked[key] = true end

local function masking(value)
  if type(value) == 'string' then
    return (value:gsub(root:gsub('%p', '%%%0'), '<root>'):gsub('/tmp/lua_%w+/lua_%d+[%w_.]*', '<file>'))
  end
  if type(value) ~= 'table' then return value end
  local copy = {}
  for key, part in pairs(value) do -- in any order: each has a place
    copy[key] = masked[key] and '~' or masking(part)
  end
  return copy
end

--- JSON of some lines: a short value takes one.
local function json_text(value, indent)
  local line = json.encode(value)
  if type(value) ~= 'table' or #line <= 120 then return line end
  local parts, inner = {}, indent .. ' '
  for i, part in ipairs(value) do parts[i] = inner .. json_text(part, inner) end
  if #parts > 0 then return '[\n' .. table.concat(parts, ',\n') .. ']' end
  for key, part in trinity.system.sorted_pairs(value) do parts[#parts + 1] = ('%s"%s": %s'):format(inner, key, json_text(part, inner)) end
  return '{\n' .. table.concat(parts, ',\n') .. '}'
end

local function files_of(folder, prefix, list)
  for _, name in ipairs(core.list_folder(folder)) do
    if name:find('.', 1, true) then list[#list + 1] = prefix .. name
    else files_of(folder .. '/' .. name, prefix .. name .. '/', list) end
  end
  return list
end

describe('a run', function()
  local folder
  local function made()
    if folder then return folder end
    local runs = temporary()
    local status, output = run_script(('SCRIPT --run example --runs %s'):format(runs), text:format(root))
    if status ~= 0 then error(output, 0) end
    folder = runs .. '/example'
    return folder
  end
  it_golden('runs/folder', function()
    local parts = {}
    for _, name in ipairs(files_of(made(), '', {})) do
      parts[#parts + 1] = '=== ' .. name:gsub('tfevents%.%d+%..*', 'tfevents.~')
      local content = core.read_file(folder .. '/' .. name)
      if name:find '%.jsonl$' or name:find '%.csv$' then
        parts[#parts + 1] = content:gsub('\n$', ''):gsub('("seconds":)[^,}]*', '%1~')
      end
      if name:find '%.json$' and not name:find 'timeline' and not name:find '^graphs' and not name:find '^clusters' then
        parts[#parts + 1] = json_text(masking(json.decode(content)), '')
      end
    end
    return table.concat(parts, '\n') .. '\n'
  end)
  it_golden('report/timeline', function()
    local graph = graphs.branches(1, 4, 8, 8)
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local stage = problem:placement_by_unit(function(unit) return unit * 2 > graph.units and 2 or 1 end)
    local path = temporary '.json'
    problem:timeline({ placement = stage, stage = stage, schedule = '1f1b', micro_batches = 3 }):save(path)
    local known = {}
    for op = 1, graph.operators - 2 do known[graph:operator(op).name] = op end -- two are news to the reader
    return json_text(trace.read(core.read_file(path), known, graph.operators - 2), '') .. '\n'
  end)
  it_golden('report/data', function() return json_text(masking(report.data { made() }), '') .. '\n' end)
end)
