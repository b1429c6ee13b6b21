-- Tests leave nothing in the folder of temporary files, which is an empty one of its own here.

local mounts = dofile(root .. '/tests/lua/support/mounts.lua')

-- Files in /tmp after a command, which succeeds. Skips where nothing can be mounted.
local function left_by(command)
  local output = output_of(("unshare -m sh -c '%s && echo mounted && unset TMPDIR && { %s; } >/dev/null 2>&1\n"
    .. "echo status=$?; %s' '%s' 2>/dev/null"):format(mounts.over '/tmp', command, mounts.left, root))
  if not output:find '^mounted' then skip 'nothing can be mounted here' end
  return output
end

describe('no file is left', function()
  local build = program:match '^(.*)/'
  for _, names in ipairs { 'files/files', 'report/plot,whole/fuzz_findings', 'runs/containers' } do
    it('by specs ' .. names, function()
      expect(left_by(('"%s" tests/lua/run.lua %s'):format(program, names))):equals 'mounted\nstatus=0\n'
    end)
  end
  it('by tests of the engine', function()
    expect(left_by(('"%s/test_core" --folder=base'):format(build))):equals 'mounted\nstatus=0\n'
    expect(left_by(('tests/run "%s" base files/files'):format(build))):equals 'mounted\nstatus=0\n'
  end)
end)

it('names for files are handed out in the folder that goes', function()
  local path = os.tmpname()
  expect(path):matches '^/tmp/lua_%w+/lua_%d+$'
  expect(output_of 'echo $TMPDIR'):equals(path:match '^(.*)/' .. '/tmp\n')
end)

it('nothing visible stands at the top but what belongs there', function()
  local listed = output_of(("cd '%s' && git ls-files 2>/dev/null | cut -d/ -f1 | grep -v '^[.]' | sort -u | tr '\\n' ' '"):format(root))
  if listed == '' then skip 'no git checkout' end
  expect(listed):equals 'CMakeLists.txt README.md engine lib models scripts tests '
end)
