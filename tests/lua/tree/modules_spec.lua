-- The layers of the library: a module requires modules of its own folder and of folders below, and there is no cycle.

local core = require 'trinity.core'
local trinity = require 'trinity'

-- Folders from the ground up; the library's init.lua is on top.
local floors = { 'base', 'files', 'cluster', 'graph', 'profile', 'strategy', 'stragglers', 'formats', 'select', 'nn', 'runs',
  'dist', 'search', 'learn', 'env', 'pase', 'pipeline', 'execute', 'methods', 'plan', 'parallel', 'report', 'job', 'command', 'init' }

--- The modules that `source` requires.
local function required(source)
  local list = {}
  for name in source:gsub('%-%-[^\n]*', ''):gmatch "require%s*%(?%s*'trinity%.([%w_.]+)'" do list[#list + 1] = name end
  return list
end

--- All modules below `folder` by name, each with those that it requires.
local function modules_of(folder, prefix, all)
  for _, file in ipairs(core.list_folder(folder)) do
    local path, stem = folder .. '/' .. file, file:match '^(.*)%.lua$'
    if stem then
      local name = stem == 'init' and (prefix:match '^(.*)%.$' or 'init') or prefix .. stem
      all[name] = required(core.read_file(path))
    elseif not file:find('.', 1, true) and file ~= '_meta' then
      modules_of(path, prefix .. file .. '.', all)
    end
  end
  return all
end

--- The first cycle that a walk finds, as text; nil where there is none.
local function circle_of(all)
  local state, way = {}, {} -- state: true on the way, false when done
  local function visit(name)
    if state[name] == false or not all[name] then return nil end
    way[#way + 1] = name
    if state[name] then return table.concat(way, ' -> ') end
    state[name] = true
    for _, next_name in ipairs(all[name]) do
      local found = visit(next_name)
      if found then return found end
    end
    state[name], way[#way] = false, nil
  end
  for name in trinity.system.sorted_pairs(all) do
    local found = visit(name)
    if found then return found end
  end
end

--- The first module that requires one of a folder above its own, or is in no folder of the list; nil without any.
local function arrow_upwards(all)
  local floor = {}
  for i, room in ipairs(floors) do floor[room] = i end
  for name, list in trinity.system.sorted_pairs(all) do
    local own = floor[name:match '^[^.]+']
    if not own then return name .. ' is in no layer' end
    for _, other in ipairs(list) do
      local below = floor[other:match '^[^.]+']
      if other ~= 'core' and (not below or below > own) then return name .. ' requires ' .. other end
    end
  end
end

describe('modules of the library', function()
  it('require each other without a cycle', function()
    local all, count = modules_of(root .. '/lib/trinity', '', {}), 0
    for _ in trinity.system.sorted_pairs(all) do count = count + 1 end
    expect(100):below(count)
    expect(circle_of(all)):equals(nil)
  end)
  it('require what is in their folder or below', function()
    expect(arrow_upwards(modules_of(root .. '/lib/trinity', '', {}))):equals(nil)
    expect(arrow_upwards { ['base.check'] = { 'core', 'strategy.problem' } }):equals 'base.check requires strategy.problem'
    expect(arrow_upwards { ['dist'] = { 'runs.state', 'nowhere' } }):equals 'dist requires nowhere'
    expect(arrow_upwards { ['lost.module'] = {} }):equals 'lost.module is in no layer'
  end)
  it('are all that scripts, networks and clusters see: what is bound to the engine is not theirs', function()
    for _, folder in ipairs { 'scripts', 'models', 'models/clusters' } do
      local count = 0
      for _, file in ipairs(core.list_folder(root .. '/' .. folder)) do
        local path = folder .. '/' .. file
        for _, name in ipairs(file:find '%.lua$' and required(core.read_file(root .. '/' .. path)) or {}) do
          count = count + 1
          if name == 'core' then error(path .. " requires trinity.core; what it needs is for the library to give", 0) end
        end
      end
      expect(5):below(count)
    end
    expect(required "local core = require('trinity.core')"[1]):equals 'core'
  end)
  it('are found in a cycle by this spec', function()
    expect(circle_of { a = { 'b', 'd' }, b = { 'c' }, c = { 'a' }, d = {} }):equals 'a -> b -> c -> a'
    expect(circle_of { a = { 'b', 'c' }, b = { 'c' }, c = { 'elsewhere' } }):equals(nil)
    expect(table.concat(required "local a = require 'trinity.a' -- require 'trinity.b'\nf(require('trinity.c.d').e)", ' ')):equals 'a c.d'
  end)
end)
