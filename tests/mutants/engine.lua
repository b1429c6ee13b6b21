-- Do the tests notice faults of the engine? Builds every mutant of engine.txt into one program, in which
-- $TRINITY_MUTANT chooses one, and runs the tests of its room, and those that rest on it, until one fails. Use:
--   scripts/bootstrap test mutants engine         the tests of a commit judge ($TRINITY_TIER=all: all tests)
--   scripts/bootstrap test mutants draw N [SEED]  prints N new mutants
-- The engine is changed and built in a copy. A test that takes too long has noticed.

local core = require 'trinity.core'
local trinity = require 'trinity'

local home = core.home
local judges = dofile(home .. '/tests/mutants/rooms.lua').engine
local list_file = home .. '/tests/mutants/engine.txt'
local swaps = { [' == '] = ' != ', [' != '] = ' == ', [' <= '] = ' < ', [' >= '] = ' > ', [' < '] = ' <= ',
  [' > '] = ' >= ', [' + '] = ' - ', [' - '] = ' + ', [' * '] = ' / ', [' && '] = ' || ', [' || '] = ' && ' }

local function command(text) return os.execute(text) == 0 end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch '([^\n]*)\n' do lines[#lines + 1] = line end
  return lines
end

--- A line as text before an expression, the expression and text after it; nil where it is no complete statement.
local function parts_of(line)
  local before, condition, after = line:match '^(%s*if )(%b())(.*)$'
  if before then
    if condition:find ';' then return end
    return before, condition, after
  end
  before, condition = line:match '^(%s*return )(.*);$'
  if not before then before, condition = line:match '^(%s*[%a_][%w_:<>*& ]* = )(.*);$' end
  if not before or condition:find '^[{%[]' or condition:gsub('%b()', ''):find '[()]' then return end
  return before, condition, ';'
end

--- A statement that a mutant may leave out.
local function is_dropped(line)
  return line:find '^%s+[%a_][%w_.>%[%]-]*%(.*%);$' or line:find '^%s+[%a_][%w_.>%[%]-]* [+|-]= .*;$'
end

--- Calls `add` with every mutant of a line.
local function mutants_of(line, add)
  if line:find '["\']' or line:find '^%s*//' or line:find 'constexpr' then return end
  local before, expression, after = parts_of(line)
  local function put(at, from, to)
    add(before .. expression:sub(1, at - 1) .. to .. expression:sub(at + #from) .. after)
  end
  if expression then
    for at = 1, #expression do
      for length = 3, 4 do
        local token = expression:sub(at, at + length - 1)
        if swaps[token] then put(at, token, swaps[token]) end
      end
      local number = expression:match('^%f[%w_.]%d+%f[^%w_.]', at)
      if number then put(at, number, tostring(number + 1)) end
    end
    if before:find 'if $' then add(before .. '(!' .. expression .. ')' .. after) end
  elseif is_dropped(line) then
    add(line:match '^%s*' .. '// dropped')
  end
end

--- The line in which $TRINITY_MUTANT chooses between both.
local function switch(number, from, to)
  if to:find '// dropped$' then return ('if (!trinity::mutant(%d)) { %s }'):format(number, from) end
  local before, first, after = parts_of(from)
  local _, second = parts_of(to)
  return ('%s(trinity::mutant(%d) ? (%s) : (%s))%s'):format(before, number, second, first, after)
end

local function source_files()
  local files = {}
  for path in io.popen(("cd '%s' && find engine -name '*.cpp' | sort"):format(home)):lines() do
    if judges[path:match '^engine/([^/]*)'] and not path:find '/torch/' then files[#files + 1] = path end
  end
  return files
end

local function draw(count, seed)
  local all, stream = {}, trinity.random(seed, 'mutants')
  for _, path in ipairs(source_files()) do
    local text = core.read_file(home .. '/' .. path)
    for _, line in ipairs(lines_of(text)) do
      local once = select(2, text:gsub('\n' .. line:gsub('%p', '%%%0') .. '\n', '')) == 1
      mutants_of(line, function(to)
        if once then all[#all + 1] = ('%s: %s -> %s'):format(path, line:match '^%s*(.*)$', to:match '^%s*(.*)$') end
      end)
    end
  end
  for _ = 1, count do print(table.remove(all, stream:integer(#all))) end
end

--- Builds all mutants into a copy of the tree. Returns its folder.
local function build(mutants)
  local copy = os.getenv 'TRINITY_MUTANTS_BUILD' or os.tmpname()
  command(("rm -f '%s'; mkdir -p '%s'"):format(copy, copy))
  command(("cd '%s' && rm -rf '%s/engine' && cp -r engine CMakeLists.txt '%s'"):format(home, copy, copy))
  for _, name in ipairs(core.list_folder(home)) do
    command(("[ -e '%s/%s' ] || ln -s '%s/%s' '%s/%s'"):format(copy, name, home, name, copy, name))
  end
  core.write_file(copy .. '/engine/base/mutant.h', [[
#pragma once
#include <cstdlib>
namespace trinity {
inline bool mutant(int number) {
  static const int chosen = std::getenv("TRINITY_MUTANT") ? std::atoi(std::getenv("TRINITY_MUTANT")) : 0;
  return number == chosen;
}
}
]])
  for number, mutant in ipairs(mutants) do
    local path, found = copy .. '/' .. mutant.path, false
    local lines = lines_of(core.read_file(path))
    for i, line in ipairs(lines) do
      if line:match '^%s*(.*)$' == mutant.from then
        lines[i], found = switch(number, mutant.from, mutant.to), true
      end
    end
    if not found then error(('engine.txt: %s has no line %s'):format(mutant.path, mutant.from), 0) end
    if lines[1] ~= '#include "base/mutant.h"' then table.insert(lines, 1, '#include "base/mutant.h"') end
    core.write_file(path, table.concat(lines, '\n') .. '\n')
  end
  local built = command(("cd '%s' && mkdir -p objects && cmake -S . -B objects -G Ninja "
    .. "-DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' >cmake.log && ninja -C objects trinity test_core"):format(copy))
  if not built then error(copy .. ': the mutants do not compile', 0) end
  return copy
end

--- Whether a judge, a C++ room or a spec, fails on a mutant.
local function fails(copy, number, judge)
  local room = judge:match '^core/(.*)'
  local run = room and ("objects/test_core --room=%s --abort-after=1"):format(room)
    or 'TRINITY_FIRST=1 objects/trinity tests/lua/run.lua ' .. judge
  return not command(("cd '%s' && TRINITY_HOME='%s' TRINITY_MUTANT=%d timeout -k 5 300 env %s >log 2>&1 </dev/null")
    :format(copy, copy, number, run))
end

if arg[1] == 'draw' then return draw(tonumber(arg[2]) or 60, tonumber(arg[3]) or 1) end
local mutants = {}
for _, line in ipairs(lines_of(core.read_file(list_file))) do
  local path, from, to = line:match '^(%S+): (.*) %-> (.*)$'
  if path then mutants[#mutants + 1] = { path = path, from = from, to = to } end
end
local copy, killed, survived = build(mutants), 0, 0
local only = tonumber(os.getenv 'TRINITY_MUTANT' or '')
for number = only or 1, only or #mutants do
  local mutant, start, judge = mutants[number], core.clock_s(), nil
  for _, name in ipairs(judges[mutant.path:match '^engine/([^/]*)']) do
    if not judge and fails(copy, number, name) then judge = name end
  end
  if judge then killed = killed + 1 else survived = survived + 1 end
  print(('%s %d  %s: %s -> %s  (%s%.0f s)'):format(judge and 'killed  ' or 'SURVIVED', number, mutant.path, mutant.from,
    mutant.to, judge and judge .. ', ' or '', core.clock_s() - start))
  io.stdout:flush()
end
print(('%d passed, %d failed, 0 skipped'):format(killed, survived))
