-- Runs the specs, *_spec.lua anywhere below tests/lua, inside the program: describe, it, expect, skip. Use:
--   trinity tests/lua/run.lua [NAMES [FOLDER]]    NAMES: see tests/lua/support/specs.lua; all without them
--   trinity tests/lua/run.lua --shared            only the tests that read ../shared
-- Processes given the same (empty) folder share the files: each takes the next one that no other has taken, and prints
-- every test's name as it begins and its seconds in the end, for tests/run.

local ffi = require 'ffi'
local core = require 'trinity.core'

local root = core.home
local passed, failed, skipped, expected = 0, 0, 0, 0
local names = {}
local specs = dofile(root .. '/tests/lua/support/specs.lua')
local golden = dofile(root .. '/tests/lua/support/golden.lua')
local only_shared = arg[1] == '--shared'
local wanted, claims = specs.find(only_shared and '' or arg[1] or ''), arg[2]

local Skip = {}

--- Ends the running test as skipped, with a reason.
local function skip(reason) error(setmetatable({ reason = reason }, Skip), 0) end

-- A tree built without LibTorch: what fails because it is missing is skipped, by name.
local function needs_torch(text) return not core.has_torch() and tostring(text):find('needs LibTorch', 1, true) ~= nil end

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

local function describe(name, body)
  names[#names + 1] = name
  body()
  names[#names] = nil
end

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

local function run_test(name, body)
  local full = table.concat(names, ' ') .. ' ' .. name
  local start, before = core.clock_s(), expected
  if torch_below and not core.has_torch() then return skipped_test(full, 'needs LibTorch') end
  running = true
  if claims then print('begins: ' .. full) end
  local ok, message = xpcall(function()
    body()
    if expected == before then fail(1, 'the test came to its end without one expectation') end
  end, function(problem)
    if getmetatable(problem) == Skip then return problem end
    if needs_torch(problem) then return setmetatable({ reason = 'needs LibTorch' }, Skip) end
    return debug.traceback(tostring(problem), 2)
  end)
  running = false
  if claims then print(('%.6f s: %s'):format(core.clock_s() - start, full)) end
  if ok then
    passed = passed + 1
  elseif getmetatable(message) == Skip then
    skipped_test(full, message.reason)
  else
    failed = failed + 1
    print(('FAIL  %s\n      %s'):format(full, (message:gsub('\n', '\n      '))))
    if os.getenv 'TRINITY_FIRST' then finish() end -- the first failure suffices
  end
end

local function it(name, body)
  if not only_shared and not golden.accepting then run_test(name, body) end
end

--- A test that the text which body returns is the golden one of this name (support/golden.lua), or that of a file
--- elsewhere below the root.
local function it_golden(name, body, file)
  if only_shared or not golden.wanted(name) then return end
  run_test('prints the golden text ' .. name, function()
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
  run_test(name, has_shared and body or function() skip '../shared is not here' end)
end

--- What a shell command prints.
local function output_of(command)
  local pipe = io.popen(command)
  local output = pipe:read '*a'
  pipe:close()
  if running and needs_torch(output) then skip 'needs LibTorch' end
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

--- What specs see beside Lua: the words above, the root folder, the program and what runs it.
local environment = setmetatable({
  output_of = output_of, merged = merged,
  describe = describe, it = it, it_shared = it_shared, it_golden = it_golden, skip = skip,
  with_torch = with_torch, root = root, program = program,
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

--- Names of the library's methods: those of a fresh process, as specs register some of their own.
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

-- Neither this program nor those that tests start leave folders of runs behind.
ffi.C.setenv('TRINITY_RUNS', 'none', 1)

--- Whether this process is the first to take a file: a folder is made by one only.
local function take(name)
  return not claims or os.execute(("mkdir '%s/%s' 2>/dev/null"):format(claims, (name:gsub('/', '-')))) == 0
end

--- Runs a spec file; what it does outside of its tests may need LibTorch, too.
local function run_chunk(name, chunk)
  torch_below = false
  local depth = #names
  local ok, problem = xpcall(chunk, function(problem)
    return (getmetatable(problem) == Skip or needs_torch(problem)) and Skip or debug.traceback(tostring(problem), 2)
  end)
  for i = #names, depth + 1, -1 do names[i] = nil end
  if problem == Skip then skipped_test(name, 'needs LibTorch') elseif not ok then error(problem, 0) end
end

for _, name in ipairs(wanted) do
  local path = ('%s/tests/lua/%s_spec.lua'):format(root, name)
  if take(name) and (not only_shared or core.read_file(path):find 'it_shared') then
    local chunk = assert(loadfile(path))
    setfenv(chunk, environment)
    describe(name:match '[^/]+$', function() run_chunk(name, chunk) end)
  end
end
finish()
