-- What modules of the library require of each other has no circle.

local core = require 'trinity.core'
local trinity = require 'trinity'

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

--- The first circle that a walk finds, as text; nil where there is none.
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
  for name in trinity.sorted_pairs(all) do
    local found = visit(name)
    if found then return found end
  end
end

describe('modules of the library', function()
  it('require each other in no circle', function()
    local all, count = modules_of(root .. '/lib/trinity', '', {}), 0
    for _ in trinity.sorted_pairs(all) do count = count + 1 end
    expect(100):below(count)
    expect(circle_of(all)):equals(nil)
  end)
  it('are found in a circle by this spec', function()
    expect(circle_of { a = { 'b', 'd' }, b = { 'c' }, c = { 'a' }, d = {} }):equals 'a -> b -> c -> a'
    expect(circle_of { a = { 'b', 'c' }, b = { 'c' }, c = { 'elsewhere' } }):equals(nil)
    expect(table.concat(required "local a = require 'trinity.a' -- require 'trinity.b'\nf(require('trinity.c.d').e)", ' ')):equals 'a c.d'
  end)
end)
