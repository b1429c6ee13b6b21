-- How torch.distributed.fsdp.fully_shard of PyTorch 2.13.0 is applied for a plan: it has no file, so this is a form of
-- ours: modules to wrap, from the inside out, and the arguments. Every wrapped module is gathered at once.

local deepspeed = require 'trinity.formats.deepspeed'
local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local fsdp2 = { name = 'fsdp2', writes = 'which modules fully_shard wraps, and how, JSON', of = 'PyTorch 2.13.0' }

local said = unsaid.set 'data shard'

-- Sizes of the mesh of replicas, and whether weights are given back after the forward pass.
local function mesh_of(outline, unspoken)
  local shard, data = outline.strategy.shard or 0, outline.mesh.data
  if shard == 0 then
    return { { 'replicate', data }, { 'shard', 1 } }, false
  elseif shard == 1 then
    unspoken[#unspoken + 1] = "shard = 1 (the optimiser's state): fully_shard shares out gradients, too, as shard = 2"
  end
  return { { 'shard', data } }, shard == 3
end

local function wrapped(outline, names)
  local list = {}
  for layer = 1, outline.layers do list[layer] = names.block(layer) end
  list[#list + 1] = ''
  return list
end

--- The files of a plan, and what they do not say.
---@param outline table
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function fsdp2.write(outline)
  if not outline.strategy.mesh then
    util.fail 'export: fsdp2: expected a mesh, the plan is a placement of operators'
  end
  local unspoken, names = unsaid.of(outline, said), modules.of(outline, nil)
  local mesh, reshard = mesh_of(outline, unspoken)
  local fields = { { 'mesh', ordered.object(mesh) }, { 'wrap', wrapped(outline, names) },
    { 'reshard_after_forward', reshard } }
  local dtype = deepspeed.dtype(outline.graph)
  if dtype == 'bfloat16' or dtype == 'float16' then
    fields[#fields + 1] = { 'mp_policy', ordered.object { { 'param_dtype', dtype }, { 'reduce_dtype', 'float32' } } }
  end
  return { { name = 'fsdp2.json', text = ordered.text(ordered.object(fields)) } }, unspoken
end

return fsdp2
