-- Device maps of Hugging Face's accelerate 1.15.0: { module path: device }, the shortest paths whose operators share a
-- device. Blocks stay whole (a residual crosses them) unless that is asked; modules with a tied weight are together.

local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local accelerate = { name = 'accelerate', writes = 'a device map, JSON', of = 'accelerate 1.15.0' }

local said = unsaid.set 'pipeline stages placement'

-- The device of every operator: a number from 0, or what it is called.
local function devices_of(outline, options)
  local named = options.device_names
  local function call(device) return named and named[device + 1] or device end
  if outline.strategy.mesh then
    return function(i) return call(outline.stages[outline.stage_of[i]].rank) end
  end
  local placement = outline.strategy.placement
  return function(i) return call(placement[i] - 1) end
end

local Map = {}
Map.__index = Map

-- Notes that an operator of a module is on a device.
function Map:add(path, device, what)
  local known = self.device[path]
  if known == nil then
    self.device[path], self.paths[#self.paths + 1] = device, path
  elseif known ~= device then
    util.fail("export: accelerate: module '%s' is on devices %s and %s%s", path, tostring(known), tostring(device),
      what or '')
  end
end

-- Whether all operators of a block share a device.
local function devices_of_blocks(outline, device_of)
  local first, whole = {}, {}
  outline:each_operator(function(i)
    local layer, device = outline.layer_of[i], device_of(i)
    if layer > 0 and layer <= outline.layers then
      if first[layer] == nil then first[layer], whole[layer] = device, true end
      whole[layer] = whole[layer] and first[layer] == device
    end
  end)
  return first, whole
end

local function refuse_cut(names, layer)
  util.fail("export: accelerate: layer %d is on several devices, but %s is kept whole, since a residual crosses it "
    .. '(cut_blocks allows it)', layer, names.block_class or ("module '%s'"):format(names.block(layer)))
end

-- The path of an operator within a block that is cut, nil for what has no weights.
local function inner_path(outline, names, paths, i)
  if names.library == 'own' then return paths[i] end
  if next(names.inner) == nil then
    util.fail("export: accelerate: what is within the blocks of network '%s' is not known, so that none can be cut",
      outline.graph.name)
  end
  return modules.of_operator(names, outline, i)
end

-- Adds every module of the plan to the map.
local function fill(map, outline, options, names)
  local device_of, paths = devices_of(outline, options), modules.paths(outline)
  local first, whole = devices_of_blocks(outline, device_of)
  outline:each_operator(function(i)
    local layer = outline.layer_of[i]
    local in_block, path = layer > 0 and layer <= outline.layers, paths[i]
    if in_block and whole[layer] then
      path = names.block(layer)
    elseif in_block then
      if not options.cut_blocks then refuse_cut(names, layer) end
      path = inner_path(outline, names, paths, i)
    elseif names.library ~= 'own' then
      path = modules.of_operator(names, outline, i)
    end
    if path then map:add(path, device_of(i)) end
  end)
  return first
end

-- Modules that share a weight go where the first of them is.
local function join_tied(map, tied, unspoken)
  for k = 2, tied and #tied or 0 do
    local here, wanted = map.device[tied[k]], map.device[tied[1]]
    if here ~= wanted then
      unspoken[#unspoken + 1] = ("the device of '%s': it shares the weight of '%s' and is with it, on %s instead of %s")
        :format(tied[k], tied[1], tostring(wanted), tostring(here))
      map.device[tied[k]] = wanted
    end
  end
end

--- The files of a plan, and what they do not say.
---@param outline table
---@param options trinity.ExportOptions
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function accelerate.write(outline, options)
  local names, unspoken = modules.of(outline, nil), unsaid.of(outline, said)
  local map = setmetatable({ device = {}, paths = {} }, Map)
  fill(map, outline, options, names)
  for _, path in ipairs(names.plain) do map:add(path, map.device[names.before[1]]) end
  join_tied(map, names.tied, unspoken)
  if names.library == 'own' then
    unspoken[#unspoken + 1] = ("modules by the names of a library: those of network '%s' are its own"):format(
      outline.graph.name)
  end
  local entries = util.map(map.paths, function(path) return { path, map.device[path] } end)
  return { { name = 'device_map.json', text = ordered.text(ordered.object(entries)) } }, unspoken
end

return accelerate
