-- Runs the specs, *_spec.lua anywhere below tests/lua, inside the program: describe, it, expect, skip. Use:
--   trinity tests/lua/run.lua [--shared] [--reverse] [--seconds] [NAMES [WORDS]]
-- NAMES: see tests/lua/support/specs.lua; all without them. WORDS: only tests whose full name holds these.
-- --shared: only tests that read ../shared. --reverse: the last test of a file first, as none may need another.
-- --seconds: prints every test's name as it begins and its seconds, for tests/run.
-- $TRINITY_TIER: 'commit' leaves out what is for `test all` (it_all, all_only) and most cases of property tests.
-- $TRINITY_SEED: the seed of the property tests; the date without it.

local ffi = require 'ffi'
local core = require 'trinity.core'

local root = core.home
local passed, failed, skipped, expected = 0, 0, 0, 0
local names = {}
local specs = dofile(root .. '/tests/lua/support/specs.lua')
local golden = dofile(root .. '/tests/lua/support/golden.lua')

local given = {}
while arg[1] and arg[1]:find '^%-%-' do given[table.remove(arg, 1)] = true end
local only_shared, show_seconds = given['--shared'], given['--seconds']
local wanted, words = specs.find(arg[1] or ''), arg[2]
local for_commit = os.getenv 'TRINITY_TIER' == 'commit'
local seed = tonumber(os.getenv 'TRINITY_SEED' or os.date '!%Y%m%d')

local Skip = {}

--- Ends the running test as skipped, with a reason.
local function skip(reason) error(setmetatable({ reason = reason }, Skip), 0) end

-- A tree built without LibTorch: what fails because it is missing is skipped, by name.
local function needs_torch(text) return not core.has_torch() and tostring(text):find('needs LibTorch', 1, true) ~= nil end

-- A requirement in a message that this machine lacks: LibTorch, or a kernel that confines as --safe promises.
local release = io.open '/proc/sys/kernel/osrelease'
local major, minor = release:read '*l':match '^(%d+)%.(%d+)'
release:close()
local confines = tonumber(major) * 100 + tonumber(minor) >= 612
local function missing_in(text)
  if needs_torch(text) then return 'needs LibTorch' end
  return not confines and tostring(text):find('--safe needs ', 1, true) and '--safe needs Linux 6.12' or nil
end

-- In a test: it needs LibTorch. Outside: so do all tests of the file from here on.
local running, torch_below = false, false
local function with_torch()
  if running and not core.has_torch() then skip 'needs LibTorch' end
  torch_below = torch_below or not running
end

local function skipped_test(full, reason)
  skipped = skipped + 1
  print(('skip  %s: %s'):format(full, reason))
end

local function show(value)
  if type(value) == 'string' then return ('%q'):format(value) end
  if type(value) == 'number' then return ('%.17g'):format(value) end
  return tostring(value)
end

local function fail(level, message, ...) error(message:format(...), level + 1) end

--- expect(value):equals(x), :truthy(), :matches(pattern), :near(x, tolerance), :raises(pattern).
local Expectation = {}
Expectation.__index = Expectation

function Expectation:equals(other)
  if self.value ~= other then fail(2, 'expected %s, got %s', show(other), show(self.value)) end
end

function Expectation:truthy()
  if not self.value then fail(2, 'expected a true value, got %s', show(self.value)) end
end

function Expectation:below(other)
  if not (self.value < other) then fail(2, 'expected less than %s, got %s', show(other), show(self.value)) end
end

function Expectation:near(other, tolerance)
  if not (math.abs(self.value - other) <= tolerance) then
    fail(2, 'expected %s within %s, got %s', show(other), show(tolerance), show(self.value))
  end
end

function Expectation:matches(pattern)
  if not tostring(self.value):find(pattern) then
    fail(2, 'expected text matching %s, got %s', show(pattern), show(self.value))
  end
end

--- The value is a function; it must raise an error whose text matches.
function Expectation:raises(pattern)
  local ok, message = pcall(self.value)
  if ok then fail(2, 'expected an error matching %s, got none', show(pattern)) end
  if not tostring(message):find(pattern) then
    fail(2, 'expected an error matching %s, got %s', show(pattern), show(tostring(message)))
  end
end

-- all_only(): what follows in the file, or in its describe, is not for a commit.
local all_below, drawn = false, false
local function all_only() all_below = true end

local function describe(name, body)
  local before = all_below
  names[#names + 1] = name
  body()
  names[#names] = nil
  all_below = before
end

--- The number of cases of a property test: n, and a tenth of them for a commit.
local function draws(n) return for_commit and math.max(1, math.floor(n / 10)) or n end

--- The seed of property tests.
local function law_seed()
  drawn = true
  return seed
end

-- Specs require modules of studies as 'studies.NAME.MODULE'.
package.path = ('%s/scripts/?.lua;%s/scripts/?/init.lua;%s'):format(root, root, package.path)

ffi.cdef 'int setenv(const char *name, const char *value, int overwrite);'
io.stdout:setvbuf 'line'

-- A folder of this process for what specs and programs that they start write, which goes in the end. Names for files
-- are handed out in it, as $TMPDIR makes other programs do.
local folder, files = os.tmpname(), 0
os.remove(folder)
assert(os.execute(("mkdir -p '%s/tmp'"):format(folder)) == 0)
ffi.C.setenv('TMPDIR', folder .. '/tmp', 1)

local function temporary(ending)
  files = files + 1
  return ('%s/lua_%d%s'):format(folder, files, ending or '')
end

function os.tmpname() -- luacheck: ignore 122
  local path = temporary()
  io.open(path, 'w'):close()
  return path
end

--- Ends the process with the counts.
local function finish()
  core.remove_tree(folder)
  print(('%d passed, %d failed, %d skipped'):format(passed, failed, skipped))
  os.exit(failed == 0 and 0 or 1)
end

local in_tests_s = 0

local function run_test(full, body)
  local start, before = core.clock_s(), expected
  running, drawn = true, false
  if show_seconds then print('begins: ' .. full) end
  local ok, message = xpcall(function()
    body()
    if expected == before then fail(1, 'the test came to its end without one expectation') end
  end, function(problem)
    if getmetatable(problem) == Skip then return problem end
    local missing = missing_in(problem)
    if missing then return setmetatable({ reason = missing }, Skip) end
    return debug.traceback(tostring(problem), 2)
  end)
  running = false
  local took_s = core.clock_s() - start
  in_tests_s = in_tests_s + took_s
  if show_seconds then print(('%.6f s: %s'):format(took_s, full)) end
  if ok then
    passed = passed + 1
  elseif getmetatable(message) == Skip then
    skipped_test(full, message.reason)
  else
    failed = failed + 1
    if drawn then message = ("%s\nthe laws' seed: %d"):format(message, seed) end
    print(('FAIL  %s\n      %s'):format(full, (message:gsub('\n', '\n      '))))
    if os.getenv 'TRINITY_FIRST' then finish() end -- the first failure suffices
  end
end

local reversed = {} -- tests of a file that wait for its end, the last one first

--- A test of this name in what is being described; runs at once but for --reverse.
local function add_test(name, body)
  local full = table.concat(names, ' ') .. ' ' .. name
  if (for_commit and all_below) or (words and not full:find(words, 1, true)) then return end
  if torch_below and not core.has_torch() then return skipped_test(full, 'needs LibTorch') end
  if not given['--reverse'] then return run_test(full, body) end
  table.insert(reversed, 1, function() run_test(full, body) end)
end

local function it(name, body)
  if not only_shared and not golden.accepting then add_test(name, body) end
end

--- A test that a commit leaves to `test all`.
local function it_all(name, body)
  if not for_commit then it(name, body) end
end

--- A test that the text which body returns is the golden one of this name (support/golden.lua), or the text of a file
--- elsewhere below the root.
local function it_golden(name, body, file)
  if only_shared or not golden.wanted(name) then return end
  add_test('prints the golden text ' .. name, function()
    local text = body()
    expected = expected + 1
    golden.check(name, text, file)
  end)
end

local has_shared = io.open(root .. '/../shared/data')
if has_shared then has_shared:close() end

--- A test that reads rows of ../shared: skipped by name where they are not.
local function it_shared(name, body)
  if golden.accepting then return end
  add_test(name, has_shared and body or function() skip '../shared is not here' end)
end

--- The output of a shell command.
local function output_of(command)
  local pipe = io.popen(command)
  local output = pipe:read '*a'
  pipe:close()
  local missing = running and missing_in(output)
  if missing then skip(missing) end
  return output
end

local program = output_of 'readlink -f /proc/$PPID/exe':match '[^\n]+'

--- The fields of tables in one; later ones count.
local function merged(...)
  local all = {}
  for _, fields in ipairs { ... } do
    for key, value in pairs(fields) do all[key] = value end -- in any order: each has a place
  end
  return all
end

--- Names that specs have in addition to Lua's: the functions above, the root folder, the program and what runs it.
local environment = setmetatable({
  output_of = output_of, merged = merged,
  describe = describe, it = it, it_all = it_all, all_only = all_only, draws = draws, law_seed = law_seed,
  it_shared = it_shared, it_golden = it_golden, skip = skip, with_torch = with_torch, root = root, program = program,
  expect = function(value)
    expected = expected + 1
    return setmetatable({ value = value }, Expectation)
  end,
  --- Runs the program with arguments (a shell-quoted string): exit status, output with errors.
  run_trinity = function(arguments)
    local text, status = output_of(("cd '%s' && timeout -k 5 300 '%s' %s 2>&1; echo \"status=$?\""):format(root, program,
      arguments)):match '^(.*)status=(%d+)\n$'
    return tonumber(status), text
  end,
  --- A path for a file or folder, which is removed in the end; `ending` closes its name.
  temporary = temporary,
  --- A path in the shared data folder, for it_shared.
  shared = function(path) return root .. '/../shared/data/' .. path end,
}, { __index = _G })

--- Names of the library's methods in a fresh process, as specs register some of their own.
function environment.library_methods()
  local list = {}
  for name in output_of("'" .. program .. "' -e 'print(table.concat(require(\"trinity\").methods.names(), \" \"))'")
    :gmatch '%S+' do list[#list + 1] = name end
  return list
end

--- Runs the program, which must end with this status and an output that has every pattern. Returns the output.
function environment.trinity_says(arguments, status, ...)
  local ended, output = environment.run_trinity(arguments)
  expected = expected + 1
  if ended ~= status then fail(2, 'expected status %d, got %d: %s', status, ended, output) end
  for _, pattern in ipairs { ... } do
    if not output:find(pattern) then fail(2, 'expected text matching %s, got %s', show(pattern), show(output)) end
  end
  return output
end

--- Writes a text to a file that is removed in the end; its path.
function environment.file_with(text, ending)
  local path = environment.temporary(ending)
  core.write_file(path, text)
  return path
end

--- Runs a script: exit status, output with errors. In the arguments and the output SCRIPT stands for its path.
function environment.run_script(arguments, text)
  local path = environment.file_with(text)
  local status, output = environment.run_trinity((arguments:gsub('SCRIPT', path)))
  return status, (output:gsub(path:gsub('%p', '%%%0'), 'SCRIPT'))
end

--- The same of a script, as run_script() runs it.
function environment.script_says(status, pattern, arguments, text)
  local ended, output = environment.run_script(arguments, text)
  expected = expected + 1
  if ended ~= status then fail(2, 'expected status %d, got %d: %s', status, ended, output) end
  if not output:find(pattern) then fail(2, 'expected text matching %s, got %s', show(pattern), show(output)) end
end

-- Neither this program nor the programs that tests start keep folders of runs.
ffi.C.setenv('TRINITY_RUNS', 'none', 1)

--- Runs a spec file; what it does outside of its tests may need LibTorch, too.
local function run_chunk(name, chunk)
  torch_below, reversed = false, {}
  local depth, start, before_s = #names, core.clock_s(), in_tests_s
  local ok, problem = xpcall(chunk, function(problem)
    return (getmetatable(problem) == Skip or needs_torch(problem)) and Skip or debug.traceback(tostring(problem), 2)
  end)
  for _, test in ipairs(reversed) do test() end
  for i = #names, depth + 1, -1 do names[i] = nil end
  if show_seconds then
    print(('%.6f s: %s outside of its tests'):format(core.clock_s() - start - (in_tests_s - before_s), name))
  end
  if problem == Skip then skipped_test(name, 'needs LibTorch') elseif not ok then error(problem, 0) end
end

for _, name in ipairs(wanted) do
  local path = ('%s/tests/lua/%s_spec.lua'):format(root, name)
  if not only_shared or core.read_file(path):find 'it_shared' then
    local chunk = assert(loadfile(path))
    setfenv(chunk, environment)
    describe(name:match '[^/]+$', function() run_chunk(name, chunk) end)
  end
end
finish()
