-- Networks of searched cells: NASNet-A (Zoph et al. 2018, "Learning Transferable Architectures for
-- Scalable Image Recognition") and PNASNet-5 (Liu et al. 2018, "Progressive Neural Architecture
-- Search"), in their ImageNet form, as TensorFlow's slim builds them (nasnet.py, pnasnet.py, nasnet_utils.py).
--
-- A cell reads the outputs of the two cells before it, 'current' (the last) and 'previous', both
-- brought to the cell's width. Its blocks each add two operations: { operation, source } and
-- { operation, source }, where a source is 'current', 'previous' or the number of an earlier block.
-- Its output joins the blocks (and inputs) listed in `output` along the channels.
-- Operations: separable_3x3, _5x5, _7x7 (ReLU, separable convolution and batch normalisation, twice),
-- average_pool, max_pool (3 x 3), none. Where the cell has stride 2, operations on its inputs have it.

local layers = require 'trinity.graph.layers'
local util = require 'trinity.base.util'

local nasnet = {}

-- ReLU, 1 x 1 convolution, batch normalisation.
local function projection(net, name, x, channels, stride)
  x = net:conv(name .. '/conv', net:relu(name .. '/relu', x), { channels = channels, kernel = 1, stride = stride })
  return net:batch_norm(name .. '/bn', x)
end

-- Halves height and width: two 1 x 1 convolutions with stride 2, the second shifted by one pixel, give half of the
-- channels each.
local function factorised_reduction(net, name, x, channels)
  x = net:relu(name .. '/relu', x)
  local function path(label, y)
    y = net:average_pool(name .. label .. '/pool', y, { kernel = 1, stride = 2 })
    return net:conv(name .. label .. '/conv', y, { channels = channels / 2, kernel = 1 })
  end
  local moved = net:crop(name .. '/path_2/crop', net:zero_pad(name .. '/path_2/pad', x, { 0, 0, 1, 1 }), { 1, 1, 0, 0 })
  x = net:concat(name .. '/concat', { path('/path_1', x), path('/path_2', moved) })
  return net:batch_norm(name .. '/bn', x)
end

local function separable(net, name, x, kernel, channels, stride)
  for i = 1, 2 do
    local part = ('%s/separable_%d'):format(name, i)
    x = net:relu(part .. '/relu', x)
    x = net:separable_conv(part, x, { channels = channels, kernel = kernel, padding = 'same',
      stride = i == 1 and stride or 1 })
    x = net:batch_norm(part .. '/bn', x)
  end
  return x
end

-- Drop path: zeroes the operation's result for some images of the batch, with one mask value per image.
local function drop_path(net, name, x, probability)
  if probability == 0 then return x end
  return net:dropout(name .. '/drop_path', x, { ratio = probability, noise_shape = { x.shape[1], 1, 1, 1 } })
end

local function operation(net, name, kind, x, o)
  local kernel = kind:match '^separable_(%d)x'
  local y
  if kernel then
    y = separable(net, name, x, tonumber(kernel), o.filters, o.stride)
  elseif kind == 'none' then
    local fits = o.stride == 1 and x.shape[2] == o.filters
    return fits and x or projection(net, name, x, o.filters, o.stride)
  else
    if kind ~= 'average_pool' and kind ~= 'max_pool' then
      util.fail("cell: %s: expected separable_3x3 (or 5x5, ...), average_pool, max_pool or none, got '%s'", name, kind)
    end
    y = net[kind](net, name .. '/pool', x, { kernel = 3, stride = o.stride, padding = 'same' })
    if x.shape[2] ~= o.filters then
      y = net:batch_norm(name .. '/bn', net:conv(name .. '/conv', y, { channels = o.filters, kernel = 1 }))
    end
  end
  return drop_path(net, name, y, o.drop)
end

-- Returns the output of the cell before the last with the height and width of the last one and the cell's channels. The
-- first cell has the same input twice, which stays unchanged.
local function adjusted(net, name, previous, current, filters)
  if previous == current then return previous end
  if previous.shape[4] ~= current.shape[4] then return factorised_reduction(net, name, previous, filters) end
  if previous.shape[2] ~= filters then return projection(net, name, previous, filters) end
  return previous
end

--- Adds a cell: current and previous are tensors, description = { blocks =, output = }, o = { filters =,
--- stride =, drop = probability of a dropped path }.
function nasnet.cell(net, name, current, previous, description, o)
  local states = { previous = adjusted(net, name .. '/previous', previous, current, o.filters),
    current = projection(net, name .. '/current', current, o.filters) }
  for i, block in ipairs(description.blocks) do
    local sides = {}
    for s, label in ipairs { 'left', 'right' } do
      local kind, source = block[s][1], block[s][2]
      local stride = type(source) == 'string' and o.stride or 1
      sides[s] = operation(net, ('%s/block_%d/%s'):format(name, i, label), kind, states[source],
        { filters = o.filters, stride = stride, drop = o.drop })
    end
    states[i] = net:add(('%s/block_%d/add'):format(name, i), sides[1], sides[2])
  end
  local joined = util.map(description.output, function(source) return states[source] end)
  return net:concat(name .. '/concat', joined)
end

local function auxiliary_head(net, x, labels, classes)
  x = net:average_pool('auxiliary/pool', net:relu('auxiliary/relu', x), { kernel = 5, stride = 3 })
  x = net:batch_norm('auxiliary/bn_1', net:conv('auxiliary/conv_1', x, { channels = 128, kernel = 1 }))
  x = net:relu('auxiliary/relu_1', x)
  x = net:conv('auxiliary/conv_2', x, { channels = 768, kernel = { x.shape[3], x.shape[4] } })
  x = net:relu('auxiliary/relu_2', net:batch_norm('auxiliary/bn_2', x))
  local logits = net:linear('auxiliary/classifier', net:flatten('auxiliary/flatten', x), classes)
  return net:softmax_cross_entropy('auxiliary/loss', logits, labels)
end

--- Returns the options of such a network; batch_size: default batch size.
function nasnet.options(batch_size)
  return {
    batch_size = { default = batch_size, help = 'images per step', min = 1, integer = true },
    image_size = { default = 331, help = 'height and width of an image', min = 32, integer = true },
    classes = { default = 1000, help = 'number of classes', min = 1, integer = true },
    auxiliary = { default = false, help = 'add the auxiliary head, with loss weight 0.4' },
    drop_path = { default = false, help = 'drop paths, with the final probabilities of the training' },
  }
end

-- The stem's two cells, then three stages of normal cells with a reduction cell before the second and
-- third. Returns the outputs of the last cell and of the second stage.
local function stack(net, x, a, drops)
  local outputs, total = { x }, 4
  for _, count in ipairs(a.normal_cells) do total = total + count end
  local function add(name, description, filters, stride, skip)
    -- Later cells drop more paths. The first cell only follows the stem.
    local drop = drops and #outputs / total * (1 - a.keep_path) or 0
    local previous = outputs[math.max(#outputs - (skip and 2 or 1), 1)]
    outputs[#outputs + 1] = nasnet.cell(net, name, outputs[#outputs], previous, description,
      { filters = filters, stride = stride, drop = drop })
  end
  add('stem_1', a.reduction, a.filters / 4, 2)
  add('stem_2', a.reduction, a.filters / 2, 2)
  local number, filters, middle = 0, a.filters, nil
  for stage, count in ipairs(a.normal_cells) do
    if stage > 1 then
      filters = filters * 2
      add('reduction_' .. stage - 1, a.reduction, filters, 2)
    end
    for i = 1, count do
      number = number + 1
      add('cell_' .. number, a.normal, filters, 1, a.skips_reduction and stage > 1 and i == 1)
    end
    if stage == 2 then middle = outputs[#outputs] end
  end
  return outputs[#outputs], middle
end

--- Builds a network with options o. a: name; filters (of a cell after the stem); normal_cells, number per stage (three
--- stages); normal and reduction, the cells; keep_path, the probability that the last cell keeps a path;
--- skips_reduction: the first normal cell after a reduction takes the input before the reduction as its previous one.
function nasnet.build(a, o)
  local net = layers.new(a.name, o)
  local x = net:input('image', { o.batch_size, 3, o.image_size, o.image_size })
  local labels = net:input('labels', { o.batch_size }, 'int64')
  local middle, auxiliary
  x = net:batch_norm('stem/bn', net:conv('stem/conv', x, { channels = 96, kernel = 3, stride = 2 }))
  x, middle = stack(net, x, a, o.drop_path)
  if o.auxiliary then auxiliary = auxiliary_head(net, middle, labels, o.classes) end
  x = net:global_average_pool('pool', net:relu('relu', x))
  x = net:flatten('flatten', net:dropout('dropout', x, { ratio = 0.5 }))
  local loss = net:softmax_cross_entropy('loss', net:linear('classifier', x, o.classes), labels)
  if auxiliary then net:add_loss('total_loss', loss, auxiliary, 0.4) end
  return net:build()
end

return nasnet
