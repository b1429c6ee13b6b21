-- One door to the file system: engine/base opens, writes and removes files for everything else.

local core = require 'trinity.core'

-- What may not stand in a line of C++ or Lua, and where it may all the same.
local forbidden = {
  cpp = { '%f[%w_]ofstream%f[^%w_]', '%f[%w_]i?fstream%f[^%w_]', '%f[%w_]freopen%f[^%w_]', '%f[%w_]fopen%f[^%w_]', 'gzopen *%(',
    'mkstemp', 'tmpfile', 'opendir', 'openat', 'renameat', 'unlinkat', 'mkdirat', '%f[%w_]mkdir *%(', '%f[%w_]unlink *%(', '[^%w_.>:]::open *%(',
    '[^%w_.>:]open *%([%w_.]+c_str', 'std::rename', 'fs::create_', 'fs::remove', 'fs::rename', 'fs::copy', 'fs::resize',
    'filesystem::create_', 'filesystem::remove', 'filesystem::copy', 'filesystem::rename', 'filesystem::file_size', 'fs::file_size' },
  lua = { '%f[%w_]io%.open', 'files%.open', '%f[%w_]io%.lines', 'os%.remove', 'os%.rename', '%f[%w_]loadfile', '%f[%w_]dofile' },
}
forbidden.h = forbidden.cpp
local allowed = {
  ['lib/trinity/command/safe.lua'] = 'loadfile', -- loads the library itself, and takes these functions away
  ['engine/lua/repl.cpp'] = 'create_directories', -- of the prompt's history, which its library reads and writes
}

it('everything but engine/base opens and changes files through it', function()
  local seen, wrong = 0, {}
  for path in output_of(("cd '%s' && find engine lib scripts models -name '*.cpp' -o -name '*.h' -o -name '*.lua'"):format(root))
    :gmatch '[^\n]+' do
    local kind, number = path:match '(%w+)$', 0
    seen = seen + 1
    for line in (path:find '^engine/base/' and '' or core.read_file(root .. '/' .. path)):gmatch '([^\n]*)\n' do
      number = number + 1
      local code = line:gsub(kind == 'lua' and '%-%-.*' or '//.*', ''):gsub('#include.*', '')
      for _, pattern in ipairs(forbidden[kind]) do
        local hit = code:find(pattern)
        if hit and not (allowed[path] and code:find(allowed[path])) then wrong[#wrong + 1] = ('%s:%d:%s'):format(path, number, line) end
      end
    end
  end
  expect(table.concat(wrong, '\n')):equals ''
  expect(seen > 500):equals(true)
end)

it('containers that share a folder of runs, with equal numbers of processes, lose none', function()
  if os.execute 'unshare -p -f --mount-proc true 2>/dev/null' ~= 0 then skip 'needs the right to make namespaces' end
  local folder = temporary()
  os.execute(("mkdir '%s'"):format(folder))
  core.write_file(folder .. '/s.lua', [[
    local trinity = require 'trinity'
    trinity.run:log { a = 1 }
    for i = 1, 20 do trinity.run:result('mine', { i }) end]])
  local output = output_of(("cd '%s' && unset TRINITY_RUNS; for i in 1 2 3 4 5 6; do unshare -p -f --mount-proc '%s' s.lua & "
    .. "done 2>&1; wait; '%s' runs --json"):format(folder, program, program))
  local runs = require('trinity').json.decode(output:match '(%[.*)$')
  expect(#runs):equals(6)
  for _, run in ipairs(runs) do expect(run.status):equals 'done' end
  expect(output_of(("ls '%s'/runs/*/results/*.json | wc -l"):format(folder))):equals '120\n'
  expect(output_of(("find '%s' -name '*.part'"):format(folder))):equals ''
end)
