-- Do the tests notice faults? Each line of library.txt and engine.txt is a mutant: one place of a line changed. First
-- jobs of a commit run once and note which tests execute which of these lines; each mutant is judged by the tests that
-- execute its line, tests of the shortest job first. Short jobs of the mutants' folders come first, then other short
-- ones, then long ones. Mutants that a commit's tests do not notice are judged by all tests in the same way. Use:
--   scripts/bootstrap test mutants [library|engine [NUMBER ...]]     both lists, or mutants by their number, again
--   scripts/bootstrap test mutants draw library|engine COUNT [SEED]  prints new ones
-- The tree is copied; mutants of the engine are built into one program in which $TRINITY_MUTANT chooses. A job that
-- takes too long counts as failed. build-mutants keeps the copy, which tests execute what, and the verdicts: an
-- interrupted run goes on, and tests that were changed run again. Remove it after changes of lib or engine.
-- Not a part of the whole run.

local core = require 'trinity.core'
local trinity = require 'trinity'

local home, folder = core.home, core.home .. '/tests/mutants/'
local program = io.popen('readlink -f /proc/$PPID/exe'):read '*l'
local max_cpu_s = { commit = 300, all = 1200 } -- CPU time of each process of a job; 3 times that on the clock

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
  local changed_before, second = parts_of(indent .. to)
  if not before or before ~= changed_before then
    return ('%sif (trinity::mutant(%d)) { %s } else { %s }'):format(indent, number, to, from)
  end
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

--- { path, from, to, number } of a list's lines.
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

local function run_shell(text, ...)
  if not command(text, ...) then error('failed: ' .. text:format(...), 0) end
end

--- Copies the tree's files to a folder.
local function copy_tree(copy)
  run_shell("mkdir -p '%s' && cd '%s' && git ls-files -z | xargs -0 cp --parents -t '%s'", copy, home, copy)
  command("ln -s '%s/../shared' '%s/../shared' 2>/dev/null", home, copy)
end

--- Makes the tests of a copy write a line 'test NAME' to $TRINITY_REACHED as each begins, from where on lines count as
-- not yet executed, and run only those that $TRINITY_TESTS, a file, names.
local function note_tests(copy)
  local function put(path, before, text)
    local old = core.read_file(copy .. '/' .. path)
    local first, last = old:find(before, 1, true)
    if not first then error(('%s has no line %s'):format(path, before), 0) end
    core.write_file(copy .. '/' .. path, old:sub(1, last) .. '\n' .. text .. old:sub(last + 1))
  end
  put('tests/lua/run.lua', 'local running, torch_below = false, false', [[
local mutants_reached, mutants_tests = os.getenv 'TRINITY_REACHED', nil
if os.getenv 'TRINITY_TESTS' then
  mutants_tests = {}
  for line in io.lines(os.getenv 'TRINITY_TESTS') do mutants_tests[line] = true end
end
pcall(ffi.cdef, 'bool trinity_mutant_seen[100];')
local function mutants_begin(full)
  for _, seen in ipairs(package.loaded.mutants_seen or {}) do for n in pairs(seen) do seen[n] = nil end end
  pcall(function() ffi.fill(ffi.C.trinity_mutant_seen, 100) end)
  local file = io.open(mutants_reached, 'a')
  file:write('test ', full, '\n')
  file:close()
end]])
  put('tests/lua/run.lua', "  if show_seconds then print('begins: ' .. full) end", [[
  if mutants_reached then mutants_begin(full) end]])
  put('tests/lua/run.lua', "  local full = table.concat(names, ' ') .. ' ' .. name", [[
  if mutants_tests and not mutants_tests[full] then return end]])
  put('tests/main.cpp', '#include "support/tier.h"', [[
#include <fstream>
extern "C" __attribute__((weak, visibility("default"))) bool trinity_mutant_seen[100] = {};]])
  put('tests/main.cpp', 'void test_case_start(const doctest::TestCaseData& test) override { name_ = test.m_name;', [[
    for (bool& seen : trinity_mutant_seen) seen = false;
    if (const char* path = std::getenv("TRINITY_REACHED"))
      std::ofstream(path, std::ios::app) << "test " << name_ << std::endl;
 ]])
  put('tests/main.cpp', '  context.applyCommandLine(count, words);', [[
  if (const char* path = std::getenv("TRINITY_TESTS")) {
    std::ifstream names(path);
    for (std::string name; std::getline(names, name);) {
      for (char& c : name) c = c == ',' ? '?' : c;  // which would separate filters
      context.addFilter("test-case", name.c_str());
    }
  }
  if (std::getenv("TRINITY_FIRST")) context.setOption("abort-after", 1);]])
end

--- Makes the engine of a copy with all mutants; each notes in $TRINITY_REACHED that its line is executed.
local function switch_engine(copy, mutants)
  core.write_file(copy .. '/engine/base/mutant.h', [[
#pragma once // and no other header: it may be included inside a namespace
extern "C" char* getenv(const char*);
extern "C" __attribute__((weak, visibility("default"))) bool trinity_mutant_seen[100] = {};
extern "C" int open(const char*, int, ...);
extern "C" long write(int, const void*, unsigned long);
extern "C" int close(int);
namespace trinity {
inline bool mutant(int number) {
  static const int chosen = [] {
    int value = 0;
    for (const char* c = getenv("TRINITY_MUTANT"); c && *c; ++c) value = 10 * value + (*c - '0');
    return value;
  }();
  if (!trinity_mutant_seen[number]) {
    trinity_mutant_seen[number] = true;
    const char* path = getenv("TRINITY_REACHED");
    const int file = path ? open(path, 02001) : -1; // O_WRONLY | O_APPEND
    const char digits[] = {char('0' + number / 10), char('0' + number % 10), 10};
    if (file >= 0 && write(file, digits, 3) == 3) close(file);
  }
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
end

local reached_head = [[local mutant_reached do local path, seen = os and os.getenv 'TRINITY_REACHED', {} ]]
  .. [[if path then local all = package.loaded.mutants_seen or {} ]]
  .. [[package.loaded.mutants_seen = all all[#all + 1] = seen end ]]
  .. [[mutant_reached = function(n) if not path or seen[n] then return end seen[n] = true ]]
  .. [[local file = io.open(path, 'a') if file then file:write(n, '\n') file:close() end end end ]]

--- Makes files of the library in a copy note in $TRINITY_REACHED that the lines of mutants are executed; where no
--- statement begins on a line, that the nearest line above where one does is.
local function note_lines(copy, mutants)
  for _, mutant in ipairs(mutants) do
    local path = copy .. '/' .. mutant.path
    local lines, at = lines_of(core.read_file(path)), nil
    for i, line in ipairs(lines) do
      if not at and line:find(mutant.from, 1, true) and line:match '^%s*(.*)$' == mutant.from then at = i end
    end
    if not at then error(('%s has no line %s'):format(mutant.path, mutant.from), 0) end
    while true do
      local line = lines[at]
      lines[at] = ('mutant_reached(%d) %s'):format(mutant.number, line)
      if at == 1 or loadstring(reached_head .. table.concat(lines, '\n')) then break end
      lines[at], at = line, at - 1
    end
    core.write_file(path, table.concat(lines, '\n') .. '\n')
  end
  local done = {}
  for _, mutant in ipairs(mutants) do
    local path = copy .. '/' .. mutant.path
    if not done[path] then core.write_file(path, reached_head .. core.read_file(path)) end
    done[path] = true
  end
end

--- Whether `test all` runs more of a job than a commit does.
local function has_more(job)
  local spec = job:match '^lua/(.*)'
  if not spec then return true end
  local text = core.read_file(('%s/tests/lua/%s_spec.lua'):format(home, spec))
  for _, word in ipairs { 'it_all', 'all_only', 'draws' } do
    if text:find(word, 1, true) then return true end
  end
  return false
end

--- The jobs of a tier that can judge: not those that look at texts and at other processes.
local function jobs_of(tier)
  local jobs = {}
  for line in io.popen(("'%s' '%s/tests/jobs.lua' %s all"):format(program, home, tier)):lines() do
    local job = line:match '^%S+'
    local judges = not job:find '^lua/tree/' and job ~= 'luacheck'
    if judges and (tier == 'commit' or has_more(job)) then jobs[#jobs + 1] = job end
  end
  return jobs
end

--- The shell's line for a job in a copy, with a limit of CPU time; `output` gets what it prints.
local function job_line(copy, job, tier, number, output, cpu_s)
  cpu_s = math.ceil(math.min(cpu_s or math.huge, max_cpu_s[tier]))
  return ("cd '%s' && ulimit -t %d && TRINITY_HOME='%s' TRINITY_MUTANT=%d TRINITY_TIER=%s TRINITY_SEED=1 "
    .. "TRINITY_FIRST=1 timeout -k 5 %d tests/run build --job '%s' >'%s' 2>&1 </dev/null"):format(copy, cpu_s, copy,
    number, tier, 3 * cpu_s, job, output)
end

--- Runs lines of the shell, one per core at a time.
local function run_lines(lines)
  local path = os.tmpname()
  core.write_file(path, table.concat(lines, '\0') .. '\0')
  command("xargs -0 -a '%s' -n 1 -P \"$(nproc)\" sh -c", path)
  os.remove(path)
end

--- Adds the tests of a job to those that execute the lines of mutants: mutant number -> { job =, s =, tests = }, where
--- tests are nil for the whole job. What is executed before the first test concerns all.
local function add_reached(by_number, job, log, reached)
  local seconds, whole_s, test, entries = {}, 0, nil, {}
  for s, name in log:gmatch '([%d.]+) s: ([^\n]*)' do
    seconds[name], whole_s = tonumber(s), whole_s + tonumber(s)
  end
  for _, line in ipairs(lines_of(reached)) do
    local number = tonumber(line)
    if not number then test = line:match '^test (.*)$' or test
    else
      local entry = entries[number] or { job = job, tests = {}, s = 0 }
      entries[number] = entry
      if not test then entry.tests, entry.s = nil, whole_s end
      if entry.tests and not entry.tests[test] then
        entry.tests[test] = true
        entry.tests[#entry.tests + 1], entry.s = test, entry.s + (seconds[test] or whole_s)
      end
    end
  end
  for number, entry in pairs(entries) do -- in any order: each has its list
    by_number[number] = by_number[number] or {}
    table.insert(by_number[number], entry)
  end
end

-- Kept of a kind of mutants in build-mutants/KIND: `tree`, a copy whose lines note that they are executed.
local Kept = {}
Kept.__index = Kept

--- Makes the copy, or brings the tests that were changed since it was made into it. Mutants of the library run in the
--- tree's own build.
local function open_kept(kind)
  local at = home .. '/build-mutants/' .. kind
  local self = setmetatable({ kind = kind, at = at, tree = at .. '/tree', mutants = mutants_of(kind) }, Kept)
  if core.exists(at .. '/made') then
    run_shell("cd '%s' && find tests -newer '%s/made' -type f ! -path 'tests/mutants/*' ! -path tests/lua/run.lua "
      .. "! -path tests/main.cpp -exec cp --parents -t '%s' {} +", home, at, self.tree)
  else
    run_shell("rm -rf '%s'", at)
    copy_tree(self.tree)
    note_tests(self.tree)
    if kind == 'library' then
      note_lines(self.tree, self.mutants)
      run_shell("ln -s '%s/build' '%s/build'", home, self.tree)
    else
      switch_engine(self.tree, self.mutants)
    end
  end
  run_shell("cd '%s' && %s && : >'%s/made'", self.tree,
    kind == 'engine' and 'cmake -S . -B build -G Ninja >cmake.log && ninja -C build' or 'true', at)
  return self
end

--- The folder of a job's tests, or of a mutant.
local function room_of(name) return name:match '^lib/trinity/([%w_]+)' or name:match '^[%w_]+/([%w_]+)' end

--- Runs jobs of a tier without a mutant, where they did not since their tests were changed. Gives mutant number -> what
--- executes its line (add_reached()) of the jobs that passed, the shortest first.
function Kept:reached_by(tier, jobs)
  local lines, by_number = {}, {}
  run_shell("mkdir -p '%s/%s'", self.at, tier)
  local function base_of(job) return ('%s/%s/%s'):format(self.at, tier, (job:gsub('/', '.'))) end
  for i, job in ipairs(jobs) do
    local base, spec = base_of(job), job:match '^lua/(.*)'
    lines[i] = ("test \"$(find %s -newer '%s.done' 2>&1 | head -1)\" || exit 0; export TRINITY_REACHED='%s.reached'; "
      .. ": >$TRINITY_REACHED; rm -f '%s.passed'; (%s) && : >'%s.passed'; : >'%s.done'"):format(
      spec and ("'%s/tests/lua/%s_spec.lua'"):format(home, spec)
        or ("'%s/tests/%s' -name '*.cpp'"):format(home, room_of(job) or job),
      base, base, base, job_line(self.tree, job, tier, 0, base .. '.log'), base, base)
  end
  run_lines(lines)
  for _, job in ipairs(jobs) do
    local base = base_of(job)
    if core.exists(base .. '.passed') then
      add_reached(by_number, job, core.read_file(base .. '.log'), core.read_file(base .. '.reached'))
    else
      io.stderr:write(('%s fails without a mutant and judges none\n'):format(job))
    end
  end
  for _, list in pairs(by_number) do -- in any order: each is sorted
    table.sort(list, function(a, b) return a.s ~= b.s and a.s < b.s or a.s == b.s and a.job < b.job end)
  end
  return by_number
end

--- A line of the shell that judges a mutant and adds 'TIER NUMBER JOB' to the verdicts: the first job that fails, or
--- '-' where none does and `last` says that no others follow.
function Kept:judge_line(mutant, tier, entries, last)
  local own, parts, place = ('%s/%d'):format(self.at, mutant.number), {}, self.tree
  if core.exists(own) then core.remove_tree(own) end
  if self.kind == 'library' then
    place = own .. '/tree'
    local text = changed(home, mutant, function(line) return line:match '^%s*' .. mutant.to end)
    core.write_file(own .. '/changed', text)
    parts[1] = ("cp -a '%s' '%s' && ln -s '%s/shared' '%s' && cp '%s/changed' '%s/%s' || exit"):format(self.tree, own,
      self.at, own, own, place, mutant.path)
  end
  core.write_file(own .. '/verdict', '-')
  local near, far = {}, {} -- tests of the mutant's folder first
  for _, entry in ipairs(entries) do table.insert(room_of(entry.job) == room_of(mutant.path) and near or far, entry) end
  for _, entry in ipairs(far) do near[#near + 1] = entry end
  for i, entry in ipairs(near) do
    local line = job_line(place, entry.job, tier, self.kind == 'engine' and mutant.number or 0, own .. '/log',
      20 + 10 * entry.s)
    if entry.tests then
      local path = ('%s/%d.tests'):format(own, i)
      core.write_file(path, table.concat(entry.tests, '\n') .. '\n')
      line = ("export TRINITY_TESTS='%s'; %s"):format(path, line)
    end
    parts[#parts + 1] = ("(%s) || { echo '%s' >'%s/verdict'; break; }"):format(line, entry.job, own)
  end
  local verdict = ("echo \"%s %d $(cat '%s/verdict')\" | %s tee -a '%s/verdicts'"):format(tier, mutant.number, own,
    last and '' or "grep -v ' -$' |", self.at)
  return ("while :; do %s\nbreak; done; %s; rm -rf '%s'"):format(table.concat(parts, '\n'), verdict, own)
end

--- Verdicts so far: tier -> mutant number -> the job that noticed it, or '-'.
function Kept:verdicts()
  local found = { commit = {}, all = {} }
  if not core.exists(self.at .. '/verdicts') then return found end
  for line in io.lines(self.at .. '/verdicts') do
    local tier, number, job = line:match '^(%l+) (%d+) (%S+)'
    if tier then found[tier][tonumber(number)] = job end
  end
  return found
end

--- Judges by a tier's tests what has no verdict of it, in three waves of jobs.
function Kept:judge(mutants, tier)
  local rooms, long, waves = {}, {}, { {}, {}, {} }
  for _, mutant in ipairs(mutants) do rooms[room_of(mutant.path)] = true end
  for line in io.lines(home .. '/tests/times.txt') do
    local job, commit_s, all_s = line:match '^([^%s#]+)%s+([%d.]+)%s+([%d.]+)'
    if job then long[job] = job:find '^lua/' and tonumber(tier == 'commit' and commit_s or all_s) > 6 end
  end
  for _, job in ipairs(jobs_of(tier)) do
    table.insert(waves[long[job] and 3 or rooms[room_of(job)] and 1 or 2], job)
  end
  for wave, jobs in ipairs(waves) do
    local known, lines, by_number = self:verdicts(), {}, nil
    for _, mutant in ipairs(mutants) do
      local noticed = tier == 'all' and known.commit[mutant.number] ~= '-'
      if not noticed and not known[tier][mutant.number] then
        by_number = by_number or self:reached_by(tier, jobs)
        lines[#lines + 1] = self:judge_line(mutant, tier, by_number[mutant.number] or {}, wave == #waves)
      end
    end
    run_lines(lines)
  end
end

function Kept:report(mutants)
  local known, count = self:verdicts(), { commit = 0, all = 0 }
  for _, mutant in ipairs(mutants) do
    local number = mutant.number
    local tier = known.commit[number] ~= '-' and 'commit' or known.all[number] ~= '-' and 'all' or nil
    if tier then count[tier] = count[tier] + 1 end
    print(('%-8s %2d  %s: %s -> %s  %s'):format(tier or 'SURVIVED', number, mutant.path, mutant.from, mutant.to,
      tier and known[tier][number] or ''))
  end
  print(('%s: %d mutants, a commit\'s tests notice %d, all tests %d'):format(self.kind, #mutants, count.commit,
    count.commit + count.all))
end

if arg[1] == 'draw' then return draw(arg[2], tonumber(arg[3]), tonumber(arg[4]) or 1) end
for _, kind in ipairs(arg[1] and { arg[1] } or { 'library', 'engine' }) do
  local kept = open_kept(kind)
  local chosen = #arg < 2 and kept.mutants or {}
  for i = 2, #arg do chosen[#chosen + 1] = kept.mutants[tonumber(arg[i])] end
  if #arg > 1 then -- again
    run_shell("cd '%s' && touch verdicts && { grep -vE '^[a-z]+ (%s) ' verdicts >others; mv others verdicts; }",
      kept.at, table.concat({ select(2, unpack(arg)) }, '|'))
  end
  for _, tier in ipairs { 'commit', 'all' } do kept:judge(chosen, tier) end
  kept:report(chosen)
end
