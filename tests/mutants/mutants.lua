-- Do the tests notice faults? Each line of library.txt and engine.txt is a mutant: one place of a line changed. The
-- jobs that `test touched` runs for its file judge it, those of its own room first: a commit's tests, and where these
-- all pass, all tests. Use:
--   scripts/bootstrap test mutants [library|engine [NUMBER ...]]     both lists, or mutants by their number
--   scripts/bootstrap test mutants draw library|engine COUNT [SEED]  prints new ones
-- The tree is copied; mutants of the engine are built into one program in which $TRINITY_MUTANT chooses. A job that
-- takes too long has noticed. Not a part of the whole run.

local core = require 'trinity.core'
local trinity = require 'trinity'

local home, folder = core.home, core.home .. '/tests/mutants/'
local program = io.popen('readlink -f /proc/$PPID/exe'):read '*l'
local max_cpu_s = { commit = 300, all = 1200 } -- processor time of each process of a job; 10 times that on the clock

local function command(text, ...) return os.execute(text:format(...)) == 0 end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch '([^\n]*)\n' do lines[#lines + 1] = line end
  return lines
end

-- ---- Mutants of a line of Lua

local lua_swaps = { ['=='] = '~=', ['~='] = '==', ['<='] = '<', ['>='] = '>', ['<'] = '<=', ['>'] = '>=',
  ['+'] = '-', ['-'] = '+', ['*'] = '/', ['/'] = '*', ['and'] = 'or', ['or'] = 'and',
  ['true'] = 'false', ['false'] = 'true', ['not'] = '' }
local tokens = { '^%-%-.*', "^'.-'", '^%[%[.-%]%]', '^[%a_][%w_]*', '^%d[%w.]*', '^[=~<>]=', '^%.%.%.?', '^[-+*/<>]',
  '^.' }

--- The token of a line at a place.
local function token_at(line, at)
  for _, pattern in ipairs(tokens) do
    local token = line:sub(at):match(pattern)
    if token then return token end
  end
end

local function add_lua(line, add)
  if line:find '^%s*%-%-' or line:find 'require' then return end
  local at, before = 1, nil
  while at <= #line do
    local token = token_at(line, at)
    local function put(text) add(line:sub(1, at - 1) .. text .. line:sub(at + #token)) end
    local sign = token == '-' and (not before or before:find '^[=,({<>]' or before == 'return')
    if lua_swaps[token] and not sign then put(lua_swaps[token]) end
    if token:find '^%d+$' then put(tostring(tonumber(token) + 1)) end
    if not token:find '^%s' then before = token end
    at = at + #token
  end
  local head, condition, tail = line:match '^(%s*e?l?s?e?if )(.*)( then.*)$'
  if head then add(head .. 'not (' .. condition .. ')' .. tail) end
  if line:find '^%s+[%a_][%w_.:%[%]]* = [^{]*[^,{(]$' or line:find '^%s+[%a_][%w_.:]*%(.*%)$' then
    add((line:gsub('^(%s*).*$', '%1-- dropped')))
  end
end

-- ---- Mutants of a line of C++

local cpp_swaps = { [' == '] = ' != ', [' != '] = ' == ', [' <= '] = ' < ', [' >= '] = ' > ', [' < '] = ' <= ',
  [' > '] = ' >= ', [' + '] = ' - ', [' - '] = ' + ', [' * '] = ' / ', [' && '] = ' || ', [' || '] = ' && ' }

--- A statement as the text before an expression, the expression and the text after it; nil for other lines.
local function parts_of(line)
  local before, expression, after = line:match '^(%s*if )(%b())(.*)$'
  if before then
    if expression:find '[^=!<>]=[^=]' or expression:find ';' then return end
    return before, expression, after
  end
  before, expression = line:match '^(%s*return )(.*);$'
  if not before then before, expression = line:match '^(%s*[%a_][%w_:<>*&%[%]. ]* [-+]?= )(.*);$' end
  if not before or expression:find '^[{%[]' or expression:gsub('%b()', ''):find '[(){},]' then return end
  return before, expression, ';'
end

local function add_cpp(line, add)
  if line:find '["\']' or line:find '^%s*//' or line:find 'constexpr' or line:find 'template' then return end
  local before, expression, after = parts_of(line)
  local function put(at, from, to)
    add(before .. expression:sub(1, at - 1) .. to .. expression:sub(at + #from) .. after)
  end
  for at = 1, #(expression or '') do
    for length = 3, 4 do
      local token = expression:sub(at, at + length - 1)
      if cpp_swaps[token] then put(at, token, cpp_swaps[token]) end
    end
    local number = expression:match('^%f[%w_.]%d+%f[^%w_.]', at)
    if number then put(at, number, tostring(number + 1)) end
  end
  if expression and before:find 'if $' then add(before .. '(!' .. expression .. ')' .. after) end
  if line:find '^%s+[%l_][%w_.>%[%]-]*%b();$' or line:find '^%s+[%l_][%w_.>%[%]-]* [+|-]= .*;$' then
    add(line:match '^%s*' .. '// dropped')
  end
end

--- The line in which $TRINITY_MUTANT chooses between both.
local function switch(number, from, to)
  local indent = from:match '^%s*'
  if to == '// dropped' then return ('%sif (!trinity::mutant(%d)) { %s }'):format(indent, number, from) end
  local before, first, after = parts_of(from)
  local _, second = parts_of(indent .. to)
  local as = before:find 'if $' and 'bool' or ''
  return ('%s(trinity::mutant(%d) ? %s(%s) : %s(%s))%s'):format(before, number, as, second, as, first, after)
end

-- ---- Lists

--- kind -> { files: the command that lists them; add: calls a function with every mutant of a line }.
local kinds = {
  library = { add = add_lua,
    files = "find lib/trinity -name '*.lua' ! -path '*/_meta/*' ! -name field_names.lua ! -name '*_fitted.lua'" },
  engine = { files = "find engine -name '*.cpp' -o -name '*.h'", add = add_cpp },
}

local function draw(kind, count, seed)
  local all, stream = {}, trinity.random(seed, 'mutants')
  for path in io.popen(("cd '%s' && (%s) | sort"):format(home, kinds[kind].files)):lines() do
    local lines, often, in_text = lines_of(core.read_file(home .. '/' .. path)), {}, false
    for _, line in ipairs(lines) do often[line] = (often[line] or 0) + 1 end
    for _, line in ipairs(lines) do
      if line:find '%[%[[^%]]*$' then in_text = true end
      kinds[kind].add(in_text and '' or line, function(to)
        if often[line] == 1 and (kind == 'engine' or loadstring(table.concat(lines, '\n')
          :gsub((line:gsub('%p', '%%%0')), (to:gsub('%%', '%%%%'))))) then
          all[#all + 1] = ('%s: %s -> %s'):format(path, line:match '^%s*(.*)$', to:match '^%s*(.*)$')
        end
      end)
      if line:find '%]%]' then in_text = false end
    end
  end
  local drawn = {} -- lines: one mutant each
  while count > 0 do
    local text = table.remove(all, stream:integer(#all))
    local line = text:match '^(.*) %->'
    if not drawn[line] then print(text) count = count - 1 end
    drawn[line] = true
  end
end

--- { path, from, to } of a list's lines.
local function mutants_of(kind)
  local list = {}
  for _, line in ipairs(lines_of(core.read_file(folder .. kind .. '.txt'))) do
    local path, from, to = line:match '^(%S+): (.*) %-> (.*)$'
    if path then list[#list + 1] = { path = path, from = from, to = to, number = #list + 1 } end
  end
  return list
end

--- A file's text with a mutant's line changed by change(line).
local function changed(root, mutant, change)
  local lines, found = lines_of(core.read_file(root .. '/' .. mutant.path)), false
  for i, line in ipairs(lines) do
    if not found and line:match '^%s*(.*)$' == mutant.from then lines[i], found = change(line), true end
  end
  if not found then error(('%s has no line %s'):format(mutant.path, mutant.from), 0) end
  return table.concat(lines, '\n') .. '\n'
end

-- ---- Judging

--- A copy of the tree; of the engine a build of it with all mutants.
local function make_copy(kind, mutants)
  local copy = os.tmpname()
  command("rm '%s' && mkdir '%s' && cd '%s' && git ls-files -z | xargs -0 cp --parents -t '%s'", copy, copy, home, copy)
  command("ln -s '%s/../shared' '%s/../shared' 2>/dev/null", home, copy)
  if kind == 'library' then
    command("ln -s '%s/build' '%s/build'", home, copy)
    return copy
  end
  core.write_file(copy .. '/engine/base/mutant.h', [[
#pragma once // and no other header: it may be included inside a namespace
extern "C" char* getenv(const char*);
namespace trinity {
inline bool mutant(int number) {
  static const int chosen = [] {
    int value = 0;
    for (const char* c = getenv("TRINITY_MUTANT"); c && *c; ++c) value = 10 * value + (*c - '0');
    return value;
  }();
  return number == chosen;
}
}
]])
  for _, mutant in ipairs(mutants) do
    local text = changed(copy, mutant, function(line) return switch(mutant.number, line, mutant.to) end)
    local head = '#include "base/mutant.h"\n'
    if text:find('#pragma once', 1, true) then text = text:gsub('#pragma once\n', '%0' .. head, 1)
    elseif text:sub(1, #head) ~= head then text = head .. text end
    core.write_file(copy .. '/' .. mutant.path, text)
  end
  if not command("cd '%s' && cmake -S . -B build -G Ninja >cmake.log && ninja -C build -k 0", copy) then
    error(copy .. ': the mutants do not compile', 0)
  end
  return copy
end

--- Jobs for a changed path: those of its own room first, of these and of the others the shortest.
local function jobs_of(path)
  local room, own, others = path:match '^engine/([^/]*)/' or path:match '^lib/trinity/([^/]*)/', {}, {}
  for line in io.popen(("'%s' '%s/tests/jobs.lua' commit changed '%s'"):format(program, home, path)):lines() do
    local job = line:match '^%S+'
    local list = (job .. '/'):find('/' .. (room or '') .. '/', 1, true) and own or others
    if not job:find '^lua/tree/' then table.insert(list, 1, job) end -- which look at texts, and at other processes
  end
  for _, job in ipairs(others) do own[#own + 1] = job end
  return own
end

--- Whether `test all` runs more of a job than a commit does.
local function has_more(job)
  local spec = job:match '^lua/(.*)'
  if job == 'luacheck' or not spec then return job ~= 'luacheck' end
  local text = core.read_file(('%s/tests/lua/%s_spec.lua'):format(home, spec))
  for _, word in ipairs { 'it_all', 'all_only', 'draws' } do
    if text:find(word, 1, true) then return true end
  end
  return false
end

--- Whether a job fails in a copy.
local function fails(copy, job, tier, number)
  return not command("cd '%s' && TRINITY_HOME='%s' TRINITY_MUTANT=%d TRINITY_TIER=%s TRINITY_SEED=1 "
    .. "TRINITY_FIRST=1; export TRINITY_HOME TRINITY_MUTANT TRINITY_TIER TRINITY_SEED TRINITY_FIRST; ulimit -t %d; "
    .. "timeout -k 5 %d tests/run build --job '%s' >'%s.log' 2>&1 </dev/null", copy, copy, number, tier,
    max_cpu_s[tier], 10 * max_cpu_s[tier], job, copy)
end

local sound = {} -- tier .. job -> whether it passes without a mutant

--- The first job of a tier that fails with a mutant and passes without; nil where there is none.
local function noticed(copy, mutant, tier)
  for _, job in ipairs(jobs_of(mutant.path)) do
    local failed = false
    if tier == 'commit' or has_more(job) then
      if mutant.text then core.write_file(copy .. '/' .. mutant.path, mutant.text) end
      failed = fails(copy, job, tier, mutant.number)
      if mutant.text then core.write_file(copy .. '/' .. mutant.path, core.read_file(home .. '/' .. mutant.path)) end
    end
    if failed then
      local key = tier .. job
      if sound[key] == nil then sound[key] = not fails(copy, job, tier, 0) end
      if sound[key] then return job end
      io.stderr:write(("%s fails without a mutant and judges none\n"):format(job))
    end
  end
end

local function judge(kind, numbers)
  local mutants, by_commit, by_all = mutants_of(kind), 0, 0
  local copy = make_copy(kind, mutants)
  local chosen = #numbers == 0 and mutants or {}
  for i, number in ipairs(numbers) do chosen[i] = mutants[tonumber(number)] end
  for _, mutant in ipairs(chosen) do
    if kind == 'library' then
      mutant.text = changed(copy, mutant, function(line) return line:match '^%s*' .. mutant.to end)
    end
    local start = core.clock_s()
    local job, tier = noticed(copy, mutant, 'commit'), 'commit'
    by_commit = by_commit + (job and 1 or 0)
    if not job then job, tier = noticed(copy, mutant, 'all'), 'all' end
    by_all = by_all + (job and 1 or 0)
    print(('%-8s %2d  %s: %s -> %s  (%s%.0f s)'):format(job and tier or 'SURVIVED', mutant.number, mutant.path,
      mutant.from, mutant.to, job and job .. ', ' or '', core.clock_s() - start))
    io.stdout:flush()
  end
  command("rm -rf '%s'", copy)
  print(('%s: %d mutants, a commit\'s tests notice %d, all tests %d'):format(kind, #chosen, by_commit, by_all))
end

if arg[1] == 'draw' then return draw(arg[2], tonumber(arg[3]), tonumber(arg[4]) or 1) end
for _, kind in ipairs(arg[1] and { arg[1] } or { 'library', 'engine' }) do judge(kind, { select(2, unpack(arg)) }) end
