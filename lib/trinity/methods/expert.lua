-- Layered expert placements: what a person does by hand, by rules for each network. Sources: the Trinity paper
-- (Algorithms 2022, 15(4), 108, section 5) keeps InceptionV3 on a single device, gives each LSTM layer of NMT a
-- device with attention and softmax together, and cuts NASNet and PNASNet by layers; in the table of Hierarchical
-- (Mirhoseini et al., ICLR 2018) the expert of ResNet is one GPU too. Other networks are cut by layers.

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local rules = {
  gnmt = 'lstm', inception_v3 = 'single', nasnet_large = 'layers', nmt = 'lstm', pnasnet_large = 'layers',
  resnet50 = 'single',
}

local declared = options_of.declare('trinity.ExpertOptions', { extends = search.declared,
  help = 'Settings of methods.expert.',
  { 'rule', { 'automatic', 'depth', 'layers', 'lstm', 'single' }, 'automatic',
    help = "how: the network's own rule (layers for others), by depth, by layers, by LSTM layers, on one device" },
})

-- Names are taken as layers only if they form at least this number of groups per device.
local layers_per_device = 2

--- The first `count` parts of an operator's path: of its module in PyTorch, or its name.
local function path(op, count)
  local parts = util.words(op.attributes.module or op.name, '[^/.]+')
  return table.concat(parts, '/', 1, math.min(count, #parts))
end

--- The first forward operator of every unit (a table by unit, empty entries for units without one), and the
--- seconds of all operators of every unit, on device 1.
local function units_of(problem)
  local graph, alone = problem.graph, problem:timeline(problem:placement())
  local leaders, work = {}, {}
  for i = 1, graph.operators do
    local unit, op = graph.unit_of[i], graph:operator(i)
    work[unit] = (work[unit] or 0) + alone.end_s[i] - alone.start_s[i]
    if not leaders[unit] and op.phase == 'forward' then
      leaders[unit] = { op = op, depth = graph.depth[i] }
    end
  end
  return leaders, work
end

--- A device per unit: elements (a key per unit, `order` sorts the keys) cut into parts of equal work.
local function cut_by(keys, work, devices, order)
  local sums, names = {}, {}
  for unit = 1, #work do
    local key = keys[unit]
    if key then
      if not sums[key] then names[#names + 1] = key end
      sums[key] = (sums[key] or 0) + work[unit]
    end
  end
  if order then table.sort(names, order) end
  local loads, device = {}, {}
  for i, name in ipairs(names) do loads[i] = sums[name] end
  local part = core.cut_row(loads, devices)
  for i, name in ipairs(names) do device[name] = part[i] end
  return util.listed(#work, function(unit) return keys[unit] and device[keys[unit]] or 1 end)
end

--- Layers as keys by unit: the shortest part of the names that distinguishes enough layers. Nothing when names
--- show no layers: too few, or almost one per operator.
local function layers_of(leaders, units, devices)
  for count = 1, 3 do
    local keys, seen, distinct, led = {}, {}, 0, 0
    for unit = 1, units do
      local leader = leaders[unit]
      if leader then
        keys[unit], led = path(leader.op, count), led + 1
        if not seen[keys[unit]] then seen[keys[unit]], distinct = true, distinct + 1 end
      end
    end
    if distinct > led / 2 then return nil end
    if distinct >= layers_per_device * devices then return keys end
  end
end

local function by_depth(leaders, work, devices)
  local keys = util.listed(#work, function(unit) return leaders[unit] and leaders[unit].depth end)
  return cut_by(keys, work, devices, function(a, b) return a < b end)
end

local function by_layers(leaders, work, devices)
  local keys = layers_of(leaders, #work, devices)
  return keys and cut_by(keys, work, devices) or by_depth(leaders, work, devices)
end

--- The LSTM layer that an operator of NMT or GNMT belongs to or prepares the input of.
local function lstm_layer(name)
  local layer = name:match '^([ed][ne]coder/layer_%d+)/' or name:match '^(encoder/forward)/'
    or name:match '^(encoder/backward)/'
  if layer then return layer end
  if name:match '^encoder/both/' then return 'encoder/layer_2' end
  local input = name:match '^decoder/input_(%d+)/'
  if input then return 'decoder/layer_' .. input end
  if name:match '^decoder/input/' or name:match '^decoder/no_context' then return 'decoder/layer_1' end
end

--- LSTM layers in turn, in the order of the network; embeddings on the first device, attention and what comes
--- after it on the last. Nothing for a network without such layers.
local function by_lstm_layers(leaders, work, devices)
  local device, layers = {}, 0
  for unit = 1, #work do
    local layer = leaders[unit] and lstm_layer(leaders[unit].op.name)
    if layer and not device[layer] then
      device[layer], layers = layers % devices + 1, layers + 1
    end
  end
  if layers == 0 then return nil end
  local placed = {}
  for unit = 1, #work do
    local name = leaders[unit] and leaders[unit].op.name or 'source'
    local layer = lstm_layer(name)
    placed[unit] = layer and device[layer] or (name:match '^source' or name:match '^target') and 1 or devices
  end
  return placed
end

--- Devices by unit, or nothing for everything on one device.
local function place(rule, leaders, work, devices)
  if rule == 'single' then return nil end
  if rule == 'depth' then return by_depth(leaders, work, devices) end
  return rule == 'lstm' and by_lstm_layers(leaders, work, devices) or by_layers(leaders, work, devices)
end

--- Units without forward operators go to device 1.
local function expert(problem, options)
  options = search.options('expert', declared, options)
  local rule = options.rule == 'automatic' and (rules[problem.graph.name] or 'layers') or options.rule
  return search.run('expert', problem, options, function(self)
    local devices = #problem.cluster.devices
    local leaders, work = units_of(problem)
    local placed = place(rule, leaders, work, devices)
    if placed then
      self:evaluate { problem:placement_by_unit(function(unit) return placed[unit] end) }
      return
    end
    local candidates = problem:placements(devices)
    for device, placement in ipairs(candidates) do
      for op = 1, #placement do placement[op] = device end
    end
    self:evaluate(candidates)
  end)
end

return function(methods)
  methods.register('expert', expert, { help = 'layers as a person places them, by rules for each network',
    source = 'Algorithms 2022, 15(4), 108', deterministic = true, options = declared })
end
