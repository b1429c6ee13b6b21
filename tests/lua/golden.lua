-- Writes golden texts again, by the specs that compare them: trinity tests/lua/golden.lua --accept NAME
-- NAME is a file below tests/golden without .txt, a folder there, fields (lib/trinity/base/field_names.lua), or all.

local core = require 'trinity.core'

local name = arg[2]
if arg[1] ~= '--accept' or not name then
  io.stderr:write 'usage: trinity tests/lua/golden.lua --accept NAME\n'
  os.exit(2)
end
local pipe = io.popen('readlink -f /proc/$PPID/exe')
local program = pipe:read '*l'
pipe:close()
local specs = dofile(core.home .. '/tests/lua/support/specs.lua')
local owners = {}
for _, spec in ipairs(specs.all()) do
  if core.read_file(('%s/tests/lua/%s_spec.lua'):format(core.home, spec)):find 'it_golden' then
    owners[#owners + 1] = spec
  end
end
local run = io.popen(("cd '%s' && TRINITY_ACCEPT='%s' '%s' tests/lua/run.lua %s"):format(core.home, name, program,
  table.concat(owners, ',')))
local accepted, failed = 0, 0
for line in run:lines() do
  print(line)
  if line:find '^accepted ' then accepted = accepted + 1 end
  if line:find '^FAIL ' then failed = failed + 1 end
end
run:close()
if accepted + failed == 0 then io.stderr:write(("no test has a golden text '%s'; tests/golden has them\n"):format(name)) end
os.exit(accepted > 0 and failed == 0 and 0 or 1)
