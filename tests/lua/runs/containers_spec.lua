-- Runs of several containers in one folder.

local core = require 'trinity.core'

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
  local runs = require('trinity').files.json.decode(output:match '(%[.*)$')
  expect(#runs):equals(6)
  for _, run in ipairs(runs) do expect(run.status):equals 'done' end
  expect(output_of(("ls '%s'/runs/*/results/*.json | wc -l"):format(folder))):equals '120\n'
  expect(output_of(("find '%s' -name '*.part'"):format(folder))):equals ''
end)
