-- Placements for AutoParallel (autoparallel/serialization.py at commit a54c252): input of ShardingOptimizer's
-- load_placements(). Its nodes are the nodes of a traced graph, whose names are in the file of get_json(). A mesh gives
-- the placements of parameters and inputs; AutoParallel finds the others.

local json = require 'trinity.base.json'
local ordered = require 'trinity.formats.ordered'
local styles = require 'trinity.formats.styles'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local autoparallel = { name = 'autoparallel', writes = 'placements of parameters and inputs, JSON (needs --nodes FILE)',
  of = 'AutoParallel a54c252' }

local said = unsaid.set 'data tensor zero_stage'

local axis_of = { dp = 'data', data = 'data', fsdp = 'data', dp_shard = 'data', dp_replicate = 'data', tp = 'tensor',
  tensor = 'tensor', model = 'tensor' }

local function field(value, path, name, kind)
  if type(value) ~= kind then
    util.fail('%s: field %s: expected a %s, got %s', path, name, kind, util.describe(value))
  end
  return value
end

-- Returns the axes of the file's mesh, which must equal the axes of the plan.
local function axes_of(mesh, outline, path)
  local axes, seen = {}, {}
  local names = field(mesh.dim_names, path, 'mesh.dim_names', 'table')
  local shape = field(mesh.shape, path, 'mesh.shape', 'table')
  for k, name in ipairs(names) do
    local axis = axis_of[name]
    if not axis then
      util.fail('%s: field mesh.dim_names: unknown axis %s', path,
        util.unknown(tostring(name), util.sorted_keys(axis_of)))
    end
    if shape[k] ~= outline.mesh[axis] then
      util.fail("%s: axis '%s': expected the size of the plan's axis, got %s where the plan has %s = %d", path, name,
        tostring(shape[k]), axis,
        outline.mesh[axis])
    end
    axes[k], seen[axis] = axis, true
  end
  for _, axis in ipairs { 'data', 'tensor' } do
    if outline.mesh[axis] > 1 and not seen[axis] then
      util.fail('%s: field mesh.dim_names: expected an axis for %s = %d of the plan, got none', path, axis,
        outline.mesh[axis])
    end
  end
  return axes
end

local cut = { ColwiseParallel = { weight = 'S(0)', bias = 'S(0)' }, RowwiseParallel = { weight = 'S(1)', bias = 'R' } }

-- Returns the placement of a parameter along every axis.
local function of_parameter(style, entry, axes, shard)
  local text = {}
  for k, axis in ipairs(axes) do
    if axis == 'data' then
      text[k] = shard == 3 and 'S(0)' or 'R'
    elseif entry and entry.table then
      text[k] = 'S(0)'
    else
      text[k] = style and style or 'R'
    end
  end
  return table.concat(text)
end

local function of_input(axes)
  return table.concat(util.map(axes, function(axis) return axis == 'data' and 'S(0)' or 'R' end))
end

-- Returns the placement of a node, or nil if the plan has none.
local function placement_of(node, by_path, axes, shard)
  if node.placeholder_kind == 'input' then return of_input(axes) end
  if node.placeholder_kind ~= 'param' or type(node.module_path) ~= 'string' then return nil end
  local path, parameter = node.module_path:match '^(.*)%.([^.]*)$'
  local entry = path and by_path[path]
  local style = entry and cut[entry.style]
  return of_parameter(style and style[parameter], entry, axes, shard)
end

--- Returns the files of a plan, and the settings that they cannot represent.
---@param outline table
---@param options trinity.ExportOptions
---@return trinity.ExportedFile[] files
---@return string[] lost
function autoparallel.write(outline, options)
  local path = options.nodes
  if not path then
    util.fail('export: autoparallel: expected option nodes (the file of get_json() with the nodes of its graph), '
      .. 'got none')
  end
  local solved = field(json.read(path), path, 'of the file', 'table')
  local axes = axes_of(field(solved.mesh, path, 'mesh', 'table'), outline, path)
  local by_path, placements, counted = {}, {}, 0
  if outline.mesh.tensor > 1 then
    for _, entry in ipairs(styles.of(outline, 'export: autoparallel')) do by_path[entry.path] = entry end
  end
  for k, node in ipairs(field(solved.nodes, path, 'nodes', 'table')) do
    field(node, path, ('nodes[%d]'):format(k), 'table')
    field(node.name, path, ('nodes[%d].name'):format(k), 'string')
    local text = placement_of(node, by_path, axes, outline.strategy.zero_stage or 0)
    if text then
      placements[#placements + 1] = { node.name, ordered.object { { 'output', text }, { 'inputs', { text } } } }
    else
      counted = counted + 1
    end
  end
  local unspoken = unsaid.of(outline, said)
  unspoken[#unspoken + 1] = ('placements of %d nodes that are no parameters or inputs (AutoParallel finds them)')
    :format(counted)
  return { { name = 'placements.json', text = ordered.text(ordered.object { { 'version', 1 },
    { 'mesh_shape', solved.mesh.shape }, { 'mesh_dim_names', solved.mesh.dim_names },
    { 'placements', ordered.object(placements) } }) } }, unspoken
end

return autoparallel
