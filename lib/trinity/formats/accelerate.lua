-- Device maps of Hugging Face's accelerate 1.15.0: { module path: device }, with the shortest paths whose operators
-- share a device. Layers stay whole (a residual connection crosses them); modules with a tied weight are on one device.

local core = require 'trinity.core'
local modules = require 'trinity.formats.modules'
local ordered = require 'trinity.formats.ordered'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local accelerate = { name = 'accelerate', writes = 'device map, JSON', of = 'accelerate 1.15.0' }

local said = util.set 'pipeline stages placement'

-- Returns the device of every operator: a number from 0, or its name.
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

-- Records that an operator of a module is on a device.
function Map:add(path, device)
  local known = self.device[path]
  if known == nil then
    self.device[path], self.paths[#self.paths + 1] = device, path
  elseif known ~= device then
    util.fail("export: accelerate: module '%s': expected one device, got %s and %s", path, tostring(known),
      tostring(device))
  end
end

local function refuse_cut(what, class)
  util.fail('export: accelerate: %s is on several devices, but %s is kept whole, because a residual crosses it', what,
    class)
end

-- Adds every module of a network that a library has, with whole layers.
local function fill(map, outline, options, names)
  local device_of, device_of_layer = devices_of(outline, options), {}
  outline:each_operator(function(i)
    local layer, path = outline.layer_of[i], modules.outside_layers(names, outline, i)
    if layer > 0 and layer <= outline.layers then
      device_of_layer[layer] = device_of_layer[layer] or device_of(i)
      if device_of_layer[layer] ~= device_of(i) then refuse_cut(('layer %d'):format(layer), names.block_class) end
      path = names.block(layer)
    end
    if path then map:add(path, device_of(i)) end
  end)
end

-- Calls body(prefix) for every prefix of a path that ends before a dot, shortest first, and for the path.
local function each_prefix(path, body)
  for at in path:gmatch '()%.' do
    if body(path:sub(1, at - 1)) then return end
  end
  body(path)
end

-- Returns the text about a module that moves to the device of another module with its weight.
local function tie(unspoken, path, first, wanted, here)
  unspoken[#unspoken + 1] = ("the device of '%s' (it shares the weight of '%s', so it is on %s instead of %s)")
    :format(path, first, tostring(wanted), tostring(here))
end

-- Returns the devices of another network's operators; modules that share a weight are on the device of the first.
local function tied_devices(outline, device_of, paths, unspoken)
  local home, first = {}, {} -- device of a path that shares a weight; first reader of a weight
  local function device(i)
    if home[paths[i]] ~= nil then return home[paths[i]] end
    return device_of(i)
  end
  modules.each_weight(outline, function(parameter, i, weight)
    if not weight or not parameter.trainable then return end
    local other = first[weight]
    first[weight] = other or i
    if not other or paths[i] == paths[other] or device(i) == device(other) then return end
    tie(unspoken, paths[i], paths[other], device(other), device(i))
    home[paths[i]] = device(other)
  end)
  return device
end

-- Raises an error if a block of another network is cut.
local function check_blocks(outline, device_of)
  local blocks, device = modules.blocks(outline), {}
  outline:each_operator(function(i)
    local block = blocks[i]
    if not block then return end
    if device[block] == nil then device[block] = device_of(i) end
    if device[block] ~= device_of(i) then refuse_cut(("block '%s'"):format(block), 'a block') end
  end)
end

-- Adds the shortest prefixes of paths { path, device } with one device.
local function add_shortest(map, items)
  local shared = {}
  for _, item in ipairs(items) do
    each_prefix(item[1], function(prefix)
      if shared[prefix] == nil then shared[prefix] = item[2] end
      if shared[prefix] ~= item[2] then shared[prefix] = false end
    end)
  end
  for _, item in ipairs(items) do
    each_prefix(item[1], function(prefix)
      if not shared[prefix] and prefix ~= item[1] then return false end
      map:add(prefix, item[2])
      return true
    end)
  end
end

local function device_in(map, path)
  local found
  each_prefix(path, function(prefix)
    if map.device[prefix] ~= nil then found = map.device[prefix] end
  end)
  return found
end

-- Adds modules without weights that have no entry yet, and reports operators on other devices than their module.
local function add_weightless(map, outline, device_of, with_weights, unspoken)
  local module_of, count, first = core.module_paths(outline.graph.handle), 0, nil
  local above = {} -- prefixes of entries: modules in several parts
  for _, path in ipairs(map.paths) do
    for at in path:gmatch '()%.' do above[path:sub(1, at - 1)] = true end
  end
  outline:each_operator(function(i, op)
    local path = module_of[i]
    if with_weights[i] or path == '' then return end
    if device_in(map, path) == nil and not above[path] then map:add(path, device_of(i)) end
    if device_in(map, path) ~= device_of(i) then count, first = count + 1, first or op.name end
  end)
  if count > 0 then
    unspoken[#unspoken + 1] = ("the devices of %d operators without weights, such as '%s' (they run where their "
      .. "inputs are)"):format(count,
      core.printable(first))
  end
end

-- Adds the weights of an exported program by their names in its state, and modules that know a weight by another name:
-- its readers, and the modules around them (BERT has the bias of `predictions.decoder` also as `predictions.bias`).
local function fill_exported(map, outline, device_of, unspoken)
  local module_of, items, with_weights, around = core.module_paths(outline.graph.handle), {}, {}, {}
  modules.each_weight(outline, function(parameter, i, weight)
    with_weights[i] = true
    items[#items + 1] = { parameter.name, device_of(i) }
    local path = module_of[i]
    if weight and path ~= '' then
      if parameter.name:sub(1, #path + 1) ~= path .. '.' then items[#items + 1] = { path, device_of(i) } end
      around[#around + 1] = { path:match '^(.*)%.', device_of(i) }
    end
  end)
  add_shortest(map, items)
  for _, item in ipairs(around) do
    if item[1] and device_in(map, item[1]) == nil then map:add(item[1], item[2]) end
  end
  add_weightless(map, outline, device_of, with_weights, unspoken)
end

-- Adds the modules of another network.
local function fill_own(map, outline, options, unspoken)
  local paths = modules.paths(outline)
  local device_of = tied_devices(outline, devices_of(outline, options), paths, unspoken)
  check_blocks(outline, device_of)
  if modules.is_exported(outline) then return fill_exported(map, outline, device_of, unspoken) end
  local items = {}
  outline:each_operator(function(i) items[#items + 1] = { paths[i], device_of(i) } end)
  add_shortest(map, items)
  unspoken[#unspoken + 1] = ("module names of a library (network '%s' has its own)"):format(
    outline.graph.name)
end

-- Modules that share a weight go to the device of the first one.
local function join_tied(map, tied, unspoken)
  for k = 2, tied and #tied or 0 do
    local here, wanted = map.device[tied[k]], map.device[tied[1]]
    if here ~= wanted then
      tie(unspoken, tied[k], tied[1], wanted, here)
      map.device[tied[k]] = wanted
    end
  end
end

--- Returns the files of a plan, and the settings that they cannot represent.
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
  local entries = util.map(map.paths, function(path) return { path, map.device[path] } end)
  return { { name = 'device_map.json', text = ordered.text(ordered.object(entries)) } }, unspoken
end

return accelerate
