-- Files that trinity keeps for later: profiles, run folders, and the JSON below both. An input begins with a line that
-- says which. A run's folder is its files one after another, each below a line '=== NAME'.

local trinity = require 'trinity'
local core = require 'trinity.core'
local frame = require 'frame'
local json = require 'trinity.base.json'
local report = require 'trinity.report'
local run_list = require 'trinity.runs.list'
local small = require 'small'

local graph = small.graph(1)

local readers = {}

local byte_order_mark = '\239\187\191' -- after it the slower of the two JSON readers reads

--- Both readers of JSON take the same texts for the same.
local function compare_readers(text)
  if text:sub(1, 3) == byte_order_mark then return end
  local ok, value = pcall(json.decode, text)
  local also, other = pcall(json.decode, byte_order_mark .. text)
  if ok ~= also or ok and json.encode(value) ~= json.encode(other) then
    frame.finding('two readers of JSON differ: %s, %s', tostring(value), tostring(other))
  end
end

--- The text of a value reads back to the same text, if the value was itself read from a text (null becomes false).
function readers.json(text)
  compare_readers(text)
  local value = json.decode(json.encode(json.decode(text, 'the input')), 'what was written')
  local written = json.encode(value)
  if json.encode(json.decode(written, 'what was written')) ~= written then
    frame.finding('another value came back from %s', written:sub(1, 200))
  end
  frame.try(core.to_json, value)
end

function readers.profile(text)
  local path = frame.file('profile.json', text)
  local profile = trinity.profile.load(path)
  profile:save(frame.folder .. '/again.json')
  frame.try(profile.is_of, profile, graph)
  frame.try(trinity.problem, { graph = graph, profile = path })
  local ok, cluster = frame.try(profile.cluster, profile)
  if not ok then return end
  local placed, problem = frame.try(trinity.problem, { graph = graph, cluster = cluster, profile = profile })
  if placed then frame.try(problem.evaluate, problem, problem:placement()) end
end

--- A name that stays inside the folder.
local function safe(name) return name:match '^[%w_.][%w_./-]*$' and not name:find('..', 1, true) and #name < 80 end

local function unfold(text, root)
  pcall(core.remove_tree, root)
  local name, lines, files = nil, {}, 0
  local function close()
    if name and safe(name) and files < 40 then
      pcall(core.write_file, root .. '/' .. name, table.concat(lines, '\n') .. '\n')
      files = files + 1
    end
  end
  for line in text:gmatch '[^\n]*' do
    local next_name = line:match '^=== (.+)$'
    if next_name then
      close()
      name, lines = next_name, {}
    elseif line ~= '' then
      lines[#lines + 1] = line
    end
  end
  close()
end

local ages = { 'age_s', 'name', 'status', 'step_time_s', 'over_bound' }

function readers.run(text)
  local root = frame.folder .. '/runs'
  unfold(text, root .. '/one')
  frame.try(report.write, { root .. '/one' }, frame.folder .. '/report.html')
  local ok, run = frame.try(run_list.find, root, 'one')
  if not ok then return end
  for _, key in ipairs(ages) do run_list.sort({ run, run_list.read(root .. '/one') }, key) end
  frame.try(run_list.age_text, run.age_s)
  for _, name in ipairs { 'searches', 'results', 'now' } do frame.try(run_list[name], run) end
  frame.try(run_list.differences, run, run)
  frame.try(core.to_json, run_list.plain(run))
end

local function profile_seed()
  local path = frame.folder .. '/seed.json'
  trinity.profile.measure(graph, { devices = { 'cpu:0', 'cpu:1' }, steps = 1, warm_up = 1, copies = 1,
    sizes = { 1024, 4096 }, quiet = true }):save(path)
  return 'profile\n' .. core.read_file(path)
end

return {
  seeds = { profile_seed(),
    'json\n{"a":[1,2.5e3,null,true,"x\\u00e9\\ud83d\\ude00\\n"],"b":{}}', 'json\n[[],{},"",-0]',
    'json\n{"a":null,"b":[1,"x",[2,null]],"c":[[],[1e-7,-0.0]]}' },
  run = function(text)
    local kind, rest = text:match '^(%l+)\n(.*)$'
    if kind and readers[kind] then frame.try(readers[kind], rest) end
  end,
}
