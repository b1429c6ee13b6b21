-- The styles of modules in a tensor-parallel plan in torch.distributed.tensor.parallel, 'ColwiseParallel' or
-- 'RowwiseParallel', derived from the splits of operators.

local core = require 'trinity.core'
local modules = require 'trinity.formats.modules'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

-- A style:
--   path           string
--   style          'ColwiseParallel'|'RowwiseParallel'

local styles = {}

local products = { Gemm = true, MatMul = true, Einsum = true, Gather = true }
local by_role = { columns = 'ColwiseParallel', reduced = 'RowwiseParallel' }

--- Returns the styles of all modules that `tensor` splits, in order, each once. `owner` begins messages.
---@param outline table
---@param owner string
---@return table[] list
function styles.of(outline, owner)
  local strategy, names = outline.strategy, modules.of(outline, nil)
  if not strategy.mesh then util.fail('%s: expected a mesh, got a placement of operators', owner) end
  if names.fused and outline.mesh.tensor > 1 then
    util.fail("%s: network '%s' has queries, keys and values in one module (%s), which no style can split correctly",
      owner,
      outline.graph.name, names.fused)
  end
  local _, roles = core.tensor_dimensions(outline.graph.handle,
    parallelism.fields(owner, strategy, outline.graph))
  local path_of, list, seen = modules.path_of(names, outline), {}, {}
  outline:each_operator(function(i, op)
    local style, path = products[op.type] and by_role[roles[i]], path_of(i)
    if style and path and not seen[path] then
      seen[path] = true
      list[#list + 1] = { path = path, style = style }
    end
  end)
  return list
end

return styles
