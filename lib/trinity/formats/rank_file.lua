-- Rank files of Open MPI (`mpirun --rankfile`): the machine and GPU of every rank of a mesh. Ranks are numbered as
-- Megatron-LM does by default: tensor, context, expert, data, pipeline, innermost first.

local rank_order = require 'trinity.strategy.rank_order'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local rank_file = { name = 'rank_file', writes = 'machine and GPU of every rank', of = 'Open MPI 4.1.4' }

local said = util.set 'data tensor pipeline context expert inside order devices'

--- Returns the files of a plan, and the settings that they cannot represent.
function rank_file.write(outline)
  if not outline.strategy.mesh then
    util.fail 'export: rank_file: expected a strategy with a mesh, got a placement of operators'
  end
  return { { name = 'rank_file.txt', text = rank_order.file(outline.strategy) } }, unsaid.of(outline, said)
end

return rank_file
