-- Schedules of pipelines as CSV, as torch.distributed.pipelining.schedules of PyTorch 2.13.0 reads and writes them
-- (format 'compute_only'): one row per rank, one cell per task (engine/strategy/own_order.h). Field `tasks` of a
-- strategy reads them.

local core = require 'trinity.core'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local pytorch_schedule = { name = 'pytorch_schedule', writes = 'the order of a pipeline, CSV',
  reads = 'the same: tasks = FILE of a strategy, trinity simulate --schedule_csv FILE', of = 'PyTorch 2.13.0' }

local said = unsaid.set 'pipeline schedule micro_batches virtual_stages'

-- The words of a mesh that a pipeline's order follows from.
local function spec_of(outline)
  local virtual = outline.virtual_stages
  if virtual % 1 ~= 0 then util.fail('export: pytorch_schedule: stages are no multiple of the devices') end
  if outline.schedule == 'pipedream' then
    util.fail "export: pytorch_schedule: schedule 'pipedream' has no end of a step, which PyTorch's schedules have"
  end
  return { mesh = { pipeline = outline.pipeline }, schedule = outline.schedule, virtual_stages = virtual,
    micro_batches = outline.micro_batches, tasks = outline.strategy.mesh and outline.strategy.tasks }
end

--- The files of a plan, and what they do not say.
---@param outline table
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function pytorch_schedule.write(outline)
  if not outline.stage_of then
    util.fail "export: pytorch_schedule: expected a pipeline, the plan's schedule has no stages"
  end
  local rows = core.pipeline_order(spec_of(outline))
  return { { name = 'schedule.csv', text = table.concat(rows, '\n') .. '\n' } }, unsaid.of(outline, said)
end

return pytorch_schedule
