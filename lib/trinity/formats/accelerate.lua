-- Device maps of Hugging Face's accelerate 1.15.0: { module path: device }, the shortest paths whose operators share a
-- device. Layers stay whole (a residual crosses them) unless that is asked; modules with a tied weight are together.

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
function Map:add(path, device)
  local known = self.device[path]
  if known == nil then
    self.device[path], self.paths[#self.paths + 1] = device, path
  elseif known ~= device then
    util.fail("export: accelerate: module '%s' is on devices %s and %s", path, tostring(known), tostring(device))
  end
end

-- Of every layer whether its operators share a device.
local function whole_blocks(outline, device_of)
  local first, whole = {}, {}
  outline:each_operator(function(i)
    local layer, device = outline.layer_of[i], device_of(i)
    if layer > 0 and layer <= outline.layers then
      if first[layer] == nil then first[layer], whole[layer] = device, true end
      whole[layer] = whole[layer] and first[layer] == device
    end
  end)
  return whole
end

local function refuse_cut(what, class)
  util.fail("export: accelerate: %s is on several devices, but %s is kept whole, since a residual crosses it "
    .. '(cut_blocks allows it)', what, class)
end

-- The path of an operator within a block that is cut, nil for what has no weights.
local function inner_path(outline, names, i)
  if names.partial or next(names.inner) == nil then
    util.fail("export: accelerate: what is within the blocks of network '%s' is not known, so that none can be cut",
      outline.graph.name)
  end
  return modules.of_operator(names, outline, i)
end

-- Adds every module of a network that a library has: layers whole.
local function fill(map, outline, options, names)
  local device_of = devices_of(outline, options)
  local whole = whole_blocks(outline, device_of)
  outline:each_operator(function(i)
    local layer, path = outline.layer_of[i], modules.of_operator(names, outline, i)
    if layer > 0 and layer <= outline.layers then
      if not whole[layer] and not options.cut_blocks then refuse_cut(('layer %d'):format(layer), names.block_class) end
      path = whole[layer] and names.block(layer) or inner_path(outline, names, i)
    end
    if path then map:add(path, device_of(i)) end
  end)
end

-- Calls body(prefix) for every beginning of a path that ends before a dot, the shortest first, and the path.
local function each_prefix(path, body)
  for at in path:gmatch '()%.' do
    if body(path:sub(1, at - 1)) then return end
  end
  body(path)
end

-- What is said of a module that goes where another one with its weight is.
local function tie(unspoken, path, first, wanted, here)
  unspoken[#unspoken + 1] = ("the device of '%s': it shares the weight of '%s' and is with it, on %s instead of %s")
    :format(path, first, tostring(wanted), tostring(here))
end

-- The devices of another network's operators, where modules that read one weight are with the first of them.
local function tied_devices(outline, device_of, paths, unspoken)
  local home, first = {}, {} -- a path's device where it shares a weight, a weight's first reader
  local function device(i)
    if home[paths[i]] ~= nil then return home[paths[i]] end
    return device_of(i)
  end
  modules.each_weight_read(outline, function(weight, i)
    local other = first[weight]
    first[weight] = other or i
    if not other or paths[i] == paths[other] or device(i) == device(other) then return end
    tie(unspoken, paths[i], paths[other], device(other), device(i))
    home[paths[i]] = device(other)
  end)
  return device
end

-- Refuses what cuts a block of another network.
local function check_blocks(outline, device_of)
  local blocks, device = modules.blocks(outline), {}
  outline:each_operator(function(i)
    local block = blocks[i]
    if not block then return end
    if device[block] == nil then device[block] = device_of(i) end
    if device[block] ~= device_of(i) then refuse_cut(("block '%s'"):format(block), 'a block') end
  end)
end

-- Adds the modules of another network: the shortest paths whose operators share a device.
local function fill_own(map, outline, options, unspoken)
  local paths, shared = modules.paths(outline), {}
  local device_of = tied_devices(outline, devices_of(outline, options), paths, unspoken)
  if not options.cut_blocks then check_blocks(outline, device_of) end
  outline:each_operator(function(i)
    each_prefix(paths[i], function(prefix)
      if shared[prefix] == nil then shared[prefix] = device_of(i) end
      if shared[prefix] ~= device_of(i) then shared[prefix] = false end
    end)
  end)
  outline:each_operator(function(i)
    each_prefix(paths[i], function(prefix)
      if shared[prefix] or prefix == paths[i] then
        map:add(prefix, device_of(i))
        return true
      end
    end)
  end)
end

-- Modules that share a weight go where the first of them is.
local function join_tied(map, tied, unspoken)
  for k = 2, tied and #tied or 0 do
    local here, wanted = map.device[tied[k]], map.device[tied[1]]
    if here ~= wanted then
      tie(unspoken, tied[k], tied[1], wanted, here)
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
  if names.library == 'own' then
    fill_own(map, outline, options, unspoken)
  else
    fill(map, outline, options, names)
  end
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
