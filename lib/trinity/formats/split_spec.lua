-- Where torch.distributed.pipelining.pipeline() of PyTorch 2.13.0 cuts a traced model: { module path: 'BEGINNING' }, k
-- entries for k + 1 stages.

local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local split_spec = { name = 'split_spec', writes = 'where a traced model is cut into stages, JSON',
  of = 'PyTorch 2.13.0' }

local said = unsaid.set 'pipeline stages'

--- The files of a plan, and what they do not say.
---@param outline table
---@param options trinity.ExportOptions
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function split_spec.write(outline, options)
  if not outline.stages then
    util.fail('export: split_spec: expected stages of whole layers: %s', outline.broken or 'the plan has no stages')
  end
  local names, pairs_of = modules.of(outline, options.names), {}
  for s = 2, #outline.stages do
    local stage = outline.stages[s]
    local path = stage.first <= stage.last and names.block(stage.first) or stage.head and names.after[1]
    if not path then util.fail('export: split_spec: stage %d is empty, and nothing to cut before', s) end
    pairs_of[s - 1] = { path, 'BEGINNING' }
  end
  return { { name = 'split_spec.json', text = ordered.text(ordered.object(pairs_of)) } }, unsaid.of(outline, said)
end

return split_spec
