-- Our executor and PyTorch's pipeline runtime train in the same way: the same weights, samples and exported schedules give the same
-- losses (tests/clients/pytorch_executor.py ran PyTorch's).

local core = require 'trinity.core'
local trinity = require 'trinity'
local executor = dofile(core.home .. '/tests/clients/executor.lua')

with_torch()

describe('losses of training steps', function()
  it("equal PyTorch's runtime's, schedule by schedule", function()
    local record = trinity.files.json.decode(trinity.files.read(core.home .. '/tests/data/clients/pytorch_executor.json'))
    local folder = temporary()
    local told, orders = executor.run(folder)
    local schedules = 0
    for schedule, run in trinity.system.sorted_pairs(record.runs) do
      schedules = schedules + 1
      expect(orders[schedule]):equals(run.schedule)
      expect(#told[schedule]):equals(#run.theirs)
      for step, loss in ipairs(run.theirs) do expect(told[schedule][step]):near(loss, record.tolerance) end
      expect(run.theirs[#run.theirs]):below(run.theirs[1] - 0.02)
    end
    expect(schedules):equals(3)
  end)
end)
