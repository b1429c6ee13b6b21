-- Schedules of pipelines as CSV, as torch.distributed.pipelining.schedules of PyTorch 2.13.0 reads and writes them
-- (format 'compute_only'): one row per rank, one cell per task (engine/strategy/own_order.h). Field `tasks` of a
-- strategy reads them.

local core = require 'trinity.core'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local pytorch_schedule = { name = 'pytorch_schedule', writes = 'task order of a pipeline, CSV',
  reads = 'the same: tasks = FILE of a strategy, trinity simulate --schedule-csv FILE', of = 'PyTorch 2.13.0' }

local said = util.set 'pipeline schedule micro_batches virtual_stages'

-- Returns the mesh fields that determine a pipeline's order.
local function spec_of(outline)
  local virtual = outline.virtual_stages
  if virtual % 1 ~= 0 then util.fail('export: pytorch_schedule: expected a multiple of the pipeline ranks as the '
    .. 'number of stages') end
  if outline.schedule == 'pipedream' then
    util.fail "export: pytorch_schedule: schedule 'pipedream' has no step boundary and cannot be exported"
  end
  return { mesh = { pipeline = outline.pipeline }, schedule = outline.schedule, virtual_stages = virtual,
    micro_batches = outline.micro_batches, tasks = outline.strategy.mesh and outline.strategy.tasks }
end

--- Returns the files of a plan, and the settings that they cannot represent.
function pytorch_schedule.write(outline)
  if not outline.stage_of then
    util.fail 'export: pytorch_schedule: expected a pipeline, got a schedule without stages'
  end
  local rows = core.pipeline_order(spec_of(outline))
  return { { name = 'schedule.csv', text = table.concat(rows, '\n') .. '\n' } }, unsaid.of(outline, said)
end

return pytorch_schedule
