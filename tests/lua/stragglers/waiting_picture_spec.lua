-- The pictures of the manual's page on waiting: what its own block plots.

local trinity = require 'trinity'

describe('the page on waiting', function()
  local folder = temporary()

  --- Runs the block of the page in a folder: the picture of a name.
  local function picture(name)
    local block = trinity.files.read(root .. '/lib/trinity/manual/waiting.md'):match '```lua\n(.-)```'
    os.execute(("mkdir -p '%s'"):format(folder))
    trinity.files.write(folder .. '/page.lua', block)
    output_of(("cd '%s' && '%s' page.lua --run none 2>&1"):format(folder, program))
    return trinity.files.read(('%s/%s.svg'):format(folder, name))
  end

  for _, name in ipairs { 'waiting_healthy', 'waiting_slow' } do
    it_golden(name, function() return picture(name) end, ('lib/trinity/report/pictures/%s.svg'):format(name))
  end
end)
