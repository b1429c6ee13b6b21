-- Tensor parallelism for torch.distributed.tensor.parallel.parallelize_module of PyTorch 2.13.0, which has no file: a
-- form of ours, { mesh, plan: { module path: { style, its arguments } } }. Placements are 'R' and 'S(d)'; '*' stands
-- for the number of any layer.

local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local styles = require 'trinity.formats.styles'
local unsaid = require 'trinity.formats.unsaid'

local dtensor = { name = 'dtensor', writes = 'a plan of parallelize_module, JSON', of = 'PyTorch 2.13.0' }

local said = unsaid.set 'tensor sequence_parallel operators'

-- The arguments of a style; along the sequence what is between blocks is cut.
local function arguments_of(entry, sequence)
  local list = { { 'style', entry.style } }
  if entry.table then list[#list + 1] = { 'input_layouts', 'R' } end
  if entry.head then
    if sequence then list[#list + 1] = { 'input_layouts', 'S(1)' } end
    list[#list + 1] = { 'output_layouts', 'R' }
  elseif entry.style == 'RowwiseParallel' and sequence then
    list[#list + 1] = { 'output_layouts', 'S(1)' }
  end
  return ordered.object(list)
end

-- Whether every layer has an entry of that name within, with one style: it is written once.
local function starred(entries, outline, names)
  local count, style_of, prefix = {}, {}, names.block(1):match '^(.*)1?%d$'
  prefix = prefix or ''
  local function within(entry) return entry.path:sub(#names.block(entry.layer) + 1) end
  for _, entry in ipairs(entries) do
    if entry.layer > 0 and entry.layer <= outline.layers then
      local name = within(entry)
      count[name] = (count[name] or 0) + 1
      style_of[name] = style_of[name] or entry.style
      if style_of[name] ~= entry.style then style_of[name] = 'several' end
    end
  end
  return function(entry)
    local inside = entry.layer > 0 and entry.layer <= outline.layers
    local name = inside and within(entry)
    if not inside or count[name] ~= outline.layers or style_of[name] == 'several' then return entry.path end
    return prefix .. '*' .. name
  end
end

-- What a block's parts are given where the sequence is cut: all of it.
local function gathers(names)
  if names.library ~= 'transformers' then return {} end
  local prefix = names.block(1):match '^(.*)%d$'
  return {
    { prefix .. '*.self_attn', ordered.object { { 'style', 'PrepareModuleInput' },
      { 'input_kwarg_layouts', ordered.object { { 'hidden_states', 'S(1)' } } },
      { 'desired_input_kwarg_layouts', ordered.object { { 'hidden_states', 'R' } } } } },
    { prefix .. '*.mlp', ordered.object { { 'style', 'PrepareModuleInput' }, { 'input_layouts', 'S(1)' },
      { 'desired_input_layouts', 'R' } } },
  }
end

--- The files of a plan, and what they do not say.
---@param outline trinity.Outline
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function dtensor.write(outline)
  local entries = styles.of(outline, 'export: dtensor')
  local names, unspoken = modules.of(outline, nil), unsaid.of(outline, said)
  local sequence = outline.strategy.sequence_parallel
  local name_of, seen, plan = starred(entries, outline, names), {}, sequence and gathers(names) or {}
  for _, entry in ipairs(entries) do
    local path = name_of(entry)
    if not seen[path] then
      seen[path], plan[#plan + 1] = true, { path, arguments_of(entry, sequence) }
    end
    if entry.head then
      unspoken[#unspoken + 1] = ("the loss of split logits: '%s' gathers them"):format(path)
    end
  end
  return { { name = 'dtensor.json', text = ordered.text(ordered.object {
    { 'mesh', ordered.object { { 'tp', outline.mesh.tensor } } }, { 'plan', ordered.object(plan) } }) } }, unspoken
end

return dtensor
