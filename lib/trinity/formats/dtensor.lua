-- Tensor parallelism for torch.distributed.tensor.parallel.parallelize_module of PyTorch 2.13.0, which has no file: a
-- form of ours, { mesh, plan: { module path: { style, its arguments } } }. Placements are 'R'; '*' stands for the
-- number of any layer. Models of transformers make masks and positions by the length of what the embedding gives, so
-- that nothing is cut along the sequence.

local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local styles = require 'trinity.formats.styles'
local unsaid = require 'trinity.formats.unsaid'

local dtensor = { name = 'dtensor', writes = 'a plan of parallelize_module, JSON', of = 'PyTorch 2.13.0' }

local said = unsaid.set 'tensor operators'

-- The arguments of a style: results are whole between blocks, and so are the logits.
local function arguments_of(entry)
  local list = { { 'style', entry.style } }
  if entry.table then list[#list + 1] = { 'input_layouts', 'R' } end
  if entry.head then list[#list + 1] = { 'output_layouts', 'R' } end
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

-- Says which modules of a plan share a weight with another: parallelize_module makes a parameter of each.
local function add_ties(unspoken, outline, names, entries)
  local path_of, first, styled = modules.path_of(names, outline), {}, {}
  for _, entry in ipairs(entries) do styled[entry.path] = true end
  modules.each_weight(outline, function(parameter, i, weight)
    if not weight or not parameter.trainable then return end
    local path = path_of(i)
    local other = first[weight] or path
    first[weight] = other
    if path and path ~= other and (styled[path] or styled[other]) then
      unspoken[#unspoken + 1] = ("the weight that '%s' shares with '%s': parallelize_module makes two of it"):format(
        path, other)
    end
  end)
end

--- The files of a plan, and what they do not say.
---@param outline table
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function dtensor.write(outline)
  local entries, homeless = styles.of(outline, 'export: dtensor')
  local names, unspoken = modules.of(outline, nil), unsaid.of(outline, said)
  local name_of, seen, plan = starred(entries, outline, names), {}, {}
  for _, entry in ipairs(entries) do
    local path = name_of(entry)
    if not seen[path] then
      seen[path], plan[#plan + 1] = true, { path, arguments_of(entry) }
    end
    if entry.head then
      unspoken[#unspoken + 1] = ("the loss of split logits: '%s' gathers them"):format(path)
    end
  end
  add_ties(unspoken, outline, names, entries)
  if #homeless > 0 then
    unspoken[#unspoken + 1] = ("the cut of %d products that are no nn.Linear, as '%s'"):format(#homeless, homeless[1])
  end
  return { { name = 'dtensor.json', text = ordered.text(ordered.object {
    { 'mesh', ordered.object { { 'tp', outline.mesh.tensor } } }, { 'plan', ordered.object(plan) } }) } }, unspoken
end

return dtensor
