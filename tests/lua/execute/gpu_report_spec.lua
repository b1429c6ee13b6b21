-- tests/gpu/report.lua, which no test can run on a GPU: on CPUs over Gloo its parts pass and the report has them.

with_torch()

local core = require 'trinity.core'

describe('the report of GPUs', function()
  it_all('has all its parts, here on CPUs', function()
    local folder = temporary()
    core.make_folder(folder, {}, '')
    local output = output_of(("cd '%s' && timeout -k 5 400 '%s' '%s/tests/gpu/report.lua' --devices cpu:0,cpu:1 --quick "
      .. "--out report.md 2>/dev/null; echo status=$?")
      :format(folder, program, root))
    expect(output):equals ('executor   passed\nstrategies passed\nsame bytes passed\nGloo       passed\n'
      .. 'policy     passed\nprofile    passed\nFigure 9   passed\nthe report is in report.md\nstatus=0\n')
    local report = core.read_file(folder .. '/report.md')
    for _, part in ipairs { 'executor', 'strategies', 'same bytes', 'Gloo', 'policy', 'profile', 'Figure 9' } do
      expect(report):matches('## ' .. part .. ': passed\n')
    end
    expect(report):matches 'measured: step time'
    expect(report):matches 'sums and broadcasts are right'
  end)
  it('says where there is no GPU', function()
    if not pcall(function() return require('trinity').tensor.zeros(1, { device = 'cuda:0' }) end) then
      local output = output_of(("cd '%s' && '%s' tests/gpu/report.lua --run none 2>&1; echo status=$?"):format(root, program))
      expect(output):equals 'trinity: LibTorch sees no CUDA device here: nothing was run, and there is no report\nstatus=1\n'
    end
  end)
end)
