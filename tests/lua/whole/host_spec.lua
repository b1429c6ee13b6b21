-- The program itself: command line, exit statuses, search path, strict globals, messages, prompt.

local core = require 'trinity.core'
local trinity = require 'trinity'

local folder = temporary()
os.execute(("mkdir '%s'"):format(folder))

--- Writes a file below the folder of this spec; returns its path.
local function write(name, text)
  local path = folder .. '/' .. name
  core.write_file(path, text)
  return path
end

--- Runs a shell command in the folder, with `trinity` for the program: exit status, all output.
local function shell(command)
  local setting = ("cd '%s'; export HOME='%s' TRINITY_HOME='%s'; unset XDG_STATE_HOME TRINITY_TRACEBACK LUA_PATH LUA_CPATH; ")
    :format(folder, folder, root)
  local output = output_of(('%s trinity() { timeout -k 2 60 "%s" "$@"; }; ( %s ) 2>&1; echo "status=$?"')
    :format(setting, program, command))
  local text, status = output:match '^(.*)status=(%d+)\n$'
  return tonumber(status), text
end

--- Expects a status and the whole output.
local function gives(command, status, text)
  local got, output = shell(command)
  expect(type(got)):equals 'number'
  if got ~= status or output ~= text then
    error(('%s\nstatus %s, output:\n%s\nexpected %d and:\n%s'):format(command, tostring(got), tostring(output), status, text), 2)
  end
end

--- Expects a status and a pattern in the output.
local function says(command, status, pattern)
  local got, output = shell(command)
  expect(type(got)):equals 'number'
  if got ~= status or not output:find(pattern) then
    error(('%s\nstatus %s, output:\n%s\nexpected %d and %s'):format(command, tostring(got), tostring(output), status, pattern), 2)
  end
end

--- Runs Lua text as a script file; expects a status and the whole output.
local function script(text, status, expected)
  write('script.lua', text)
  gives('trinity script.lua', status, expected)
end

--- Feeds lines to the prompt, without a terminal; expects what it prints (a text, or a pattern).
local function prompt(lines, expected, options, is_pattern)
  write('lines.txt', lines)
  local check = is_pattern and says or gives
  check(('trinity -i %s < lines.txt | sed "s/^\\(>>* \\)*//"'):format(options or ''), 0, expected)
end

describe('the command line', function()
  it('hands a script its arguments', function()
    write('arguments.lua', 'print(#arg, arg[0], arg[1], arg[2], arg[-1], ...)')
    gives('trinity --threads 1 arguments.lua -x "a b"', 0, '2\targuments.lua\t-x\ta b\t1\t-x\ta b\n')
    gives('trinity -- arguments.lua --', 0, '1\targuments.lua\t--\tnil\t--\t--\n')
    gives('echo "print(...)" | trinity - a b', 0, 'a\tb\n')
    gives('echo "print(1 + 1)" | trinity', 0, '2\n')
  end)
  it('runs what -e, -l and -i ask for, in order', function()
    write('other.lua', "print 'other' return { name = 'o' }")
    gives([[trinity -e 'print(1)' -e 'print(2)' -l other -e 'print(other.name)']], 0, '1\n2\nother\no\n')
    gives([[trinity -e'print(1)' other.lua]], 0, '1\nother\n')
    gives([[echo '1 + 1' | trinity -i other.lua]], 0, 'other\n> 2\n> ')
    gives([[trinity -e 'print(1)' -e 'error("no", 0)' -e 'print(2)']], 1, '1\ntrinity: no\n')
    gives([[echo 'print(3)' | trinity -e 'os.exit(0)' -e 'print(2)' -i]], 0, '')
    says('trinity -l not_there', 1, "module 'not_there' not found:\n\tno field package.preload")
  end)
  it('follows a shebang line', function()
    write('bin/run.lua', "#!/usr/bin/env trinity\nprint(arg[1], debug.getinfo(1, 'l').currentline)\n")
    gives([[chmod +x bin/run.lua; ln -sf "]] .. program .. [[" bin/trinity; PATH="$PWD/bin:$PATH" ./bin/run.lua x]], 0, 'x\t2\n')
  end)
  it('runs scripts of its own by name, also next to a folder of that name', function()
    gives('mkdir -p info; trinity info --help | head -1', 0,
      'Prints the operators, weights and FLOP of a model, and its step on one device.\n')
    says('trinity inffo', 2, "^trinity: no command 'inffo', did you mean 'info'%? %(known: [%w_, ]+%)\n$")
    gives('trinity not/there.lua', 1, 'trinity: not/there.lua: no such script\n')
    gives('mkdir -p bin; trinity ./bin', 1, 'trinity: ./bin: is a folder, expected a script\n')
  end)
  it('explains itself', function()
    says('trinity help', 0, '^usage: trinity .*%-%-time%-limit.*\n  quickstart +Searches for a placement')
    says('trinity --help', 0, '^usage: trinity ')
    says('trinity help info', 0, 'options:\n.*%-%-batch%-size')
    says('trinity help methods', 0, '  round_robin +devices in turn')
    says('trinity help inffo', 2, "did you mean 'info'%?")
    says('trinity help quux plugh', 2, "help: nothing about 'quux plugh'")
    says('WORLD_SIZE=4 trinity help --check', 1, '\ntrinity: wrong: launcher: WORLD_SIZE is set but RANK is not')
    says('trinity --version', 0, '^trinity %d+%.%d+%.%d+ %(' .. (core.has_torch() and '' or 'no ') .. 'LibTorch.*LuaJIT 2')
    gives('trinity -v > v.txt; trinity --version | cmp - v.txt', 0, '')
  end)
  it('refuses unknown options and wrong values in one line, status 2', function()
    gives('trinity --sfae x.lua', 2, "trinity: unknown option '--sfae', did you mean '--safe'? (--help lists them)\n")
    gives('trinity --run none x.lua', 2, "trinity: option '--run' belongs after the script: trinity SCRIPT.lua --run ...\n")
    says('trinity --help', 0, '\n  %-%-run NAME [^\n]+\n  %-%-runs FOLDER ')
    gives("trinity --memory-limit 1GiB -e 'print(1)'; trinity --memory-limit 900MB -e 'print(2)'", 0, '1\n2\n')
    gives('trinity -x', 2, "trinity: unknown option '-x' (--help lists them)\n")
    gives('trinity --threads', 2, "trinity: option '--threads' needs a value\n")
    gives('trinity --threads=two', 2, "trinity: --threads: expected an integer from 0 to 4096, got 'two'\n")
    gives('trinity --safe=1', 2, "trinity: option '--safe' takes no value\n")
    gives('trinity --memory-limit 12Q', 2, "trinity: --memory-limit: expected a number of bytes, such as 64M or 1.5GiB, got '12Q'\n")
    gives('trinity --memory-limit=', 2, "trinity: --memory-limit: expected a number of bytes, such as 64M or 1.5GiB, got ''\n")
    gives('trinity --time-limit -1', 2, "trinity: --time-limit: expected a number of seconds, got '-1'\n")
    gives('trinity --safe -joff', 2, 'trinity: -j and -O cannot be used with --safe\n')
  end)
  it('passes -j and -O on to LuaJIT', function()
    gives("trinity -joff -e 'print((jit.status()))'", 0, 'false\n')
    says("trinity -jv -e 'for i = 1, 1000 do end'", 0, 'TRACE +1 %(command line%):1 loop')
    says("trinity -j v=trace.txt -e 'for i = 1, 1000 do end'; cat trace.txt", 0, 'TRACE +1 ')
    says("trinity -O0 -e 'print(jit.status())'", 0, '^true')
    says("trinity -O-loop -e 'print(jit.status())'", 0, 'fold')
    says('trinity -jbogus', 1, "unknown command 'bogus'")
  end)
end)

describe('exit statuses', function()
  it('are what os.exit is given, whatever catches errors', function()
    gives("trinity -e 'io.write(1) os.exit(7) print(2)'", 7, '1')
    gives("trinity -e 'os.exit(true)'", 0, '')
    gives("trinity -e 'os.exit(false)'", 1, '')
    gives("trinity -e 'pcall(os.exit, 3) print(2)'", 3, '')
    gives("trinity -e 'while true do pcall(os.exit, 4) end'", 4, '')
    gives("trinity -e 'xpcall(function() os.exit(5) end, function(m) return debug.traceback(m) end) print(2)'", 5, '')
    gives("trinity -e 'coroutine.wrap(function() os.exit(6) end)() print(2)'", 6, '')
    gives("trinity -e 'local function f() os.exit(8) end for i = 1, 1000 do if i == 999 then f() end end'", 8, '')
  end)
  it('are 1 after an error, 2 after a usage error, 130 after Ctrl-C', function()
    gives([[trinity -e 'error("no", 0)']], 1, 'trinity: no\n')
    gives([[trinity -e 'error({ usage = true, message = "wrong option" })']], 2, 'trinity: wrong option\n')
    says([[trinity -e 'local pid = io.open("/proc/self/stat"):read "*l":match "%d+"
      io.popen("kill -INT " .. pid):close()
      while true do end']], 130, '^trinity: %(command line%):%d: interrupted\n$')
  end)
end)

describe('messages', function()
  it('have the position, and a traceback when the script has several frames', function()
    script("local t = nil\nprint(t.x)", 1, "trinity: script.lua:2: attempt to index local 't' (a nil value)\n")
    script("local function f() error 'boom' end\nlocal function g() f() return 1 end\ng()", 1,
      "trinity: script.lua:1: boom\nstack traceback:\n\tscript.lua:1: in function 'f'\n\tscript.lua:2: in function 'g'\n" ..
      '\tscript.lua:3: in main chunk\n')
    script('x y', 1, "trinity: script.lua:1: '=' expected near 'y'\n")
    gives([[trinity -e 'x y']], 1, "trinity: (command line):1: '=' expected near 'y'\n")
  end)
  it('show no frames of the library, unless asked', function()
    local text = "local trinity = require 'trinity'\nlocal function f() trinity.model 'vgg17' return 1 end\nf()"
    write('script.lua', text)
    says('trinity script.lua', 1, "^trinity: script.lua:2: no model 'vgg17', did you mean 'vgg16'%?[^\n]*\nstack traceback:\n" ..
      "\tscript.lua:2: in function 'f'\n\tscript.lua:3: in main chunk\n$")
    says('TRINITY_TRACEBACK=1 trinity script.lua', 1, 'lib/trinity/graph/model.lua.*%[C%]')
  end)
  it('make something of any error value', function()
    prompt([[
error()
error({})
error(false)
error(12)
error({ message = "mine" })
error(setmetatable({}, { __tostring = function() return "own" end }))
error(setmetatable({}, { __tostring = error }))
error(setmetatable({}, { __index = error }))
]], [[
trinity: (error object is a nil value)
trinity: (error object is a table value)
trinity: (error object is a boolean value)
trinity: stdin:1: 12
trinity: mine
trinity: own
trinity: error in error handling
trinity: error in error handling
]], '2>&1')
    gives([[trinity -e 'error("a\0b", 0)' 2>&1 | od -c | head -1]], 0, '0000000   t   r   i   n   i   t   y   :       a   \\   x   0   0   b  \\n\n')
    gives([[trinity -e 'error({})']], 1, 'trinity: (error object is a table value)\n')
  end)
  it('end with the stack, memory and finalisers', function()
    says("trinity -e 'local function f() return 1 + f() end f()'", 1, '^trinity: %(command line%):1: stack overflow\n')
    local status, output = shell [[trinity -e 'local p = newproxy(true) getmetatable(p).__gc = function() error "gc" end p = nil
      collectgarbage()']]
    if status == 0 then -- LuaJIT of 2024 and later goes on
      expect(output):equals 'trinity: in a finaliser: (command line):1: gc\n'
    else
      expect(output):matches '^trinity: %(command line%):1: gc\n'
      expect(status):equals(1)
    end
    gives([[trinity -e 'local p = newproxy(true) getmetatable(p).__gc = function() error "gc" end']], 0, '')
    says([[trinity --memory-limit 16M -e 'print(pcall(string.rep, "x", 1e9)) print "on"']], 0, '^false\tnot enough memory\non\n$')
  end)
end)

describe('the search path', function()
  it("has the script's folder first, then the library", function()
    write('project/main.lua', "print(require 'part', require 'whole', require('trinity').system.version)")
    write('project/part.lua', "return 'part'")
    write('project/whole/init.lua', "return 'whole'")
    says('trinity project/main.lua', 0, '^part\twhole\t%d')
    says('cd project; trinity main.lua', 0, '^part\twhole\t%d')
    says([[trinity -e 'require "part"']], 1, "module 'part' not found:\n")
  end)
  it('honours LUA_PATH and LUA_CPATH with ;;', function()
    write('project/part.lua', "return 'part'")
    says([[LUA_PATH="$PWD/project/?.lua;;" trinity -e 'print(require "part", package.path)']], 0, '^part.*/project/%?%.lua;%./lua_modules/')
    says([[LUA_PATH='/x/?.lua' trinity -e 'print(package.path)']], 0, '/lib/%?/init%.lua;/x/%?%.lua\n$')
    says([[LUA_PATH=';;/x/?.lua' trinity -e 'print(package.path)']], 0, '%./%?%.lua;.*;/x/%?%.lua\n$')
    says([[LUA_CPATH='/x/?.so;;' trinity -e 'print(package.cpath)']], 0, '^/x/%?%.so;%./lua_modules/lib/lua/5%.1/%?%.so;')
  end)
  it('knows the trees of LuaRocks', function()
    write('lua_modules/share/lua/5.1/near.lua', "return 'near'")
    write('.luarocks/share/lua/5.1/far/init.lua', "return 'far'")
    gives([[trinity -e 'print(require "near", require "far")']], 0, 'near\tfar\n')
    says([[trinity -e 'print(package.cpath)']], 0, '/%.luarocks/lib/lua/5%.1/%?%.so;')
  end)
end)

describe('strict globals', function()
  it('refuse names that nobody declared, with position and suggestion', function()
    write('strict.lua', [[
local learning_rate = 1
local function tell(body) print(select(2, pcall(body))) end
tell(function() pritn 'x' end)
tell(function() print(learing_rate) end)
tell(function() return nothing, count, Print end)
tell(function() count = 1 end)
tell(function() function f() end end)
tell(function() return Print end)
return learning_rate]])
    gives('trinity strict.lua', 0, [[
strict.lua:3: variable 'pritn' is not declared, did you mean 'print'?
strict.lua:4: variable 'learing_rate' is not declared, did you mean 'learning_rate'?
strict.lua:5: variable 'nothing' is not declared
strict.lua:6: assignment to variable 'count', which is not declared (write 'local count' or trinity.global('count', value))
strict.lua:7: assignment to variable 'f', which is not declared (write 'local f' or trinity.global('f', value))
strict.lua:8: variable 'Print' is not declared, did you mean 'print'?
]])
    script("\npritn 'x'", 1, "trinity: script.lua:2: variable 'pritn' is not declared, did you mean 'print'?\n")
    says("trinity -e 'x = 1'", 1, "%(command line%):1: assignment to variable 'x'")
    says("echo 'x = 1' | trinity -", 1, "stdin:1: assignment to variable 'x'")
  end)
  it('take rawset and trinity.global as declarations', function()
    script("rawset(_G, 'a', 1) a = a + 1 print(a)", 0, '2\n')
    script("local trinity = require 'trinity'\nprint(trinity.global('b', 1)) b = nil print(b) b = 3 print(b)\n" ..
      "trinity.global 'c' print(c)", 0, '1\nnil\n3\nnil\n')
    script("require('trinity').global(1)", 1, "trinity: script.lua:1: trinity.global: argument 1 ('name'): expected string, got 1\n")
    script("print(rawget(_G, 'nothing'), pcall(function() return nothing end))", 0,
      "nil\tfalse\tscript.lua:1: variable 'nothing' is not declared\n")
  end)
  it("hold files below the script's folder to them, and no packages", function()
    write('strict/part/mine.lua', 'return function() return undeclared end')
    write('strict/lua_modules/share/lua/5.1/old.lua',
      "module('old', package.seeall)\n_G.from_old = 1\nfunction f() return not_there end\nif maybe then error() end")
    write('strict/lua_modules/share/lua/5.1/older.lua', 'leaked = 2 if maybe then error() end return true')
    write('strict/main.lua', "require 'old' require 'older'\nprint(old.f(), from_old, leaked)\n" ..
      "print(load('made = 5 return made')())\nprint(pcall(require 'part.mine'))")
    gives('cd strict; trinity main.lua', 0,
      "nil\t1\t2\n5\nfalse\t./part/mine.lua:1: variable 'undeclared' is not declared\n")
  end)
  it('can be switched off', function()
    gives("trinity --no-strict -e 'x = 1 print(x, y)'", 0, '1\tnil\n')
  end)
end)

describe('standard output', function()
  it('arrives line by line at a pipe, while the script runs', function()
    write('slow.lua', "print 'first' local start, seen = os.clock() repeat seen = io.open 'seen' "
      .. "until seen or os.clock() - start > 20 print(seen and 'then' or 'late')")
    gives('rm -f seen; trinity slow.lua | { read line; touch seen; echo "$line"; cat; }', 0, 'first\nthen\n')
  end)
end)

describe('the prompt', function()
  it('prints results without =, and keeps the last as _', function()
    prompt('1 + 1\n"a", 2, nil, false\n_\n= 7\nx = 5\nx\nprint(x)\nnil\nreturn 8\n', '2\na\t2\tnil\tfalse\na\n7\n5\n5\nnil\n8\n')
  end)
  it('goes on over several lines', function()
    prompt('for i = 1, 2 do\nprint(i)\nend\n3 +\n4\n\n-- nothing\nfunction f()\nreturn 9 end\nf()\n', '1\n2\n7\n9\n')
    prompt('s = [[a\nb]]\ns\n', 'a\nb\n')
  end)
  it('prints tables with short ones within, sorted and bounded', function()
    prompt("{ 1, 'two', {}, { 3 }, n = 1.5, f = print, ['a b'] = true, [10] = 0, [true] = 1 }\n",
      "{\n  1,\n  'two',\n  {},\n  { 3 },\n  [10] = 0,\n  ['a b'] = true,\n  f = function,\n  n = 1.5,\n  [true] = 1\n}\n")
    prompt('{}\n{ a = { b = 1 } }\nsetmetatable({}, { __tostring = function() return "own" end })\n', '{}\n{ a = { b = 1 } }\nown\n')
    prompt('{ a = { { 1 } }, b = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, c = { x = { } } }\n', '{ a = {...}, b = {...}, c = {...} }\n')
    prompt("t = {} for i = 1, 100 do t[i] = i end\nn = #t\nselect(2, require('string').format('%d', n))\n", '')
    write('lines.txt', 't = {} for i = 1, 1000 do t[i] = i t["k" .. i] = i end\nt\n')
    says('trinity -i < lines.txt', 0, '  64,\n  %.%.%. 1936 more\n}')
  end)
  it('has the library, and shows its objects', function()
    prompt("g = trinity.model 'vgg16'\ng\n#trinity.methods.names() > 5\n", 'graph vgg16: 98 operators, 142 edges, 138.4 M parameters\ntrue\n')
  end)
  it('shows functions of the library by name, and the elements of arrays', function()
    prompt("trinity.model\nprint\n", '^function trinity%.model%(name, options%?%)  %-%- help%(trinity%.model%)\nfunction: ', nil, true)
    prompt("p = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }\na = p:placement()\na[2] = 2\na\n",
      'int32_array[98] { 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... 82 more }\n')
    prompt("p = trinity.problem { graph = trinity.model 'vgg16', cluster = trinity.cluster 'p100x2' }\ntrinity.methods.heft(p)\n",
      '^heft: step [^\n\t]+\n$', nil, true) -- and no nil after it
  end)
  it('has help(x)', function()
    prompt("help()\n", "^help 'NAME' .*help%(VALUE%)", nil, true)
    prompt("help(trinity.compare)\n", '^trinity%.compare%(problem: trinity%.Problem, list: .*%): trinity%.Comparison\n', nil, true)
    prompt("help 'serching'\nhelp(3)\nhelp {}\n", "help: nothing about 'serching', did you mean 'searching'? (help() shows the usage)\n"
      .. 'no help about number 3\nno help about table\n')
    prompt("help 'alexnet'\n", '^alexnet: ', '--safe', true)
    prompt("help = 3\nhelp\n", '3\n')
  end)
  it('completes names in quotes and fields of metrics', function()
    local complete = require('trinity.command.prompt').complete
    local function completed(line, word, globals) return table.concat(complete(line, word, globals or {}) or { 'nil' }, ' ') end
    expect(completed("trinity.model 'ale", 'ale')):equals 'alexnet'
    expect(completed("trinity.cluster('p100_", 'p100_')):equals 'p100_ib p100_paper'
    expect(completed('trinity.compare(p, { "single_device", "hie', 'hie')):equals 'hierarchical'
    expect(completed("trinity.devices.with('h100_p", 'h100_p')):equals 'h100_pcie'
    expect(completed("print 'x", 'x')):equals 'nil'
    expect(completed("help 'tut", 'tut')):equals 'tutorial'
    local p = trinity.problem { graph = trinity.model 'alexnet', cluster = trinity.cluster 'p100x2' }
    local globals = { m = p:evaluate(p:placement()), found = p:strategy(p:placement()) }
    expect(completed('x = m.peak_m', 'm.peak_m', globals)):equals 'm.peak_memory_bytes'
    expect(completed('found.metrics.step', 'found.metrics.step', globals)):equals 'found.metrics.step_time_s'
    expect(completed('found.me', 'found.me', globals)):equals 'nil'
  end)
  it('completes them in a terminal', function()
    if os.execute 'command -v script >/dev/null' ~= 0 then skip 'script (of util-linux) is not here' end
    write('keys.txt', "trinity.model 'ale\t'\n")
    says(("(until grep -q '> $' shown; do sleep 0.1; done; cat keys.txt) | script -qfc '%s' shown | tail -2"):format(program),
      0, 'graph alexnet: 50 operators')
  end)
  it('survives errors', function()
    prompt('error("boom")\nx y\nundefined_name\nlocal q = 1\nq\n1\nfor\n',
      "trinity: stdin:1: boom\ntrinity: stdin:1: '=' expected near 'y'\ntrinity: stdin:1: variable 'undefined_name' is not declared\n" ..
      "trinity: stdin:1: variable 'q' is not declared: 'local q' ended with its line; leave out 'local' at the prompt\n1\n" ..
      "trinity: stdin:1: '<name>' expected near '<eof>'\n", '2>&1')
  end)
  it('ends at os.exit, and runs with limits', function()
    gives([[printf 'os.exit(9)\n1\n' | trinity -i]], 9, '> ')
    says([[printf 'while true do end\n1 + 1\n' | trinity --time-limit 0.2 -i]], 0, 'time limit.*\n')
    says([[printf 'x = {} while true do x[#x + 1] = {} end\nx = nil\n1 + 1\n' | trinity --memory-limit 32M -i]], 0, '> 2\n')
    says([[printf 'os\n1 + 1\n' | trinity --safe -i]], 0, '> 2\n')
  end)
end)

describe('a terminal', function()
  --- Runs the program on a terminal of its own. Give texts to type and patterns to wait for ({ pattern })
  --- in what the terminal shows from then on; returns all of it.
  local function converse(steps)
    if not io.popen 'command -v script':read '*l' then skip 'the command script (util-linux) is not here' end
    local refusal = io.popen 'script -qefc true /dev/null < /dev/null 2>&1':read '*a'
    if refusal:find 'pseudo%-terminal' then skip(refusal:gsub('%s+$', '') .. ' (is /dev/pts mounted?)') end
    os.execute(("cd '%s'; rm -f keys shown; mkfifo keys; touch shown; XDG_STATE_HOME='%s/state' TRINITY_HOME='%s' TERM=xterm " ..
      "timeout -k 2 120 script -qefc '%s' shown < keys > /dev/null 2>&1 &"):format(folder, folder, root, program))
    local keys, seen = io.open(folder .. '/keys', 'w'), 0
    local function shown() return (io.open(folder .. '/shown'):read '*a':gsub('\r', '')) end
    for _, step in ipairs(steps) do
      if type(step) == 'string' then
        keys:write(step)
        keys:flush()
      else
        local start = os.time()
        local from, to
        repeat
          from, to = shown():find(step[1], seen + 1)
          if os.time() > start + 60 then error(('the terminal never showed %s, but:\n%s'):format(step[1], shown()), 2) end
          if not from then os.execute 'sleep 0.05' end
        until from
        seen = to
      end
    end
    keys:close()
    expect(0):below(seen)
    return shown()
  end
  it('completes fields and methods, and remembers lines', function()
    converse { { '\n> ' }, 'x = trinity.system.vers\t', { 'trinity%.system%.vers.*ion' }, '\n', { '\n> ' }, 'x\n', { '\n%d+%.%d+%.%d+\n> ' },
      'g = trinity.model "vgg16"\n', { '\n> ' }, 'g:to_js\t', { 'on' }, '\3', { '\n> ' },
      'trinity.methods.names\t\t()\n', { "'annealing'.*\n> " }, '\4', { 'D' } }
    expect(io.open(folder .. '/state/trinity/history'):read '*a'):matches 'trinity%.system%.version'
    converse { { '\n> ' }, '\16\16\16\16', { 'x = trinity%.system%.version' }, '\n', { '\n> ' }, 'x\n', { '\n%d+%.%d+%.%d+\n> ' }, '\4', { 'D' } }
  end)
  it('comes back after Ctrl-C', function()
    converse { { '\n> ' }, 'io.write "busy\\n" while true do end\n', { '\nbusy\n' }, '\3', { 'stdin:1: interrupted\n> ' },
      '"still " .. "here"\n', { '\nstill here\n> ' }, '(1 +\n', { '\n>> ' }, '\3', { '\n> ' }, '2 + 3\n', { '\n5\n> ' }, '\4', { 'D' } }
  end)
end)

describe('output', function()
  it('may be cut by its reader, and complains when it is lost', function()
    gives("trinity -e 'for i = 1, 1e5 do print(i) end' | head -1", 0, '1\n')
    gives("trinity help | head -1 | cut -c1-14", 0, 'usage: trinity\n')
    gives("trinity -e 'print(1)' > /dev/full", 1, 'trinity: cannot write standard output: No space left on device\n')
    gives("trinity -e 'io.stdout:close() print(2)'", 0, '2\n')
    gives([[trinity -e 'io.write("x") error("y", 0)' 2>&1]], 1, 'xtrinity: y\n')
  end)
end)

