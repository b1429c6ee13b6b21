-- Rule-based splits of layers, the baselines of trinity.pase. Each function takes a pase object and returns a list of
-- factors per layer, or nil and a reason.

local util = require 'trinity.base.util'

local rules = {}

--- Returns the largest factor up to `most` that divides `size`.
local function factor(size, most)
  for c = math.min(size, most), 1, -1 do
    if size % c == 0 then return c end
  end
end

local function find(layer, test)
  for i, dimension in ipairs(layer.dimensions) do
    if dimension.splits and test(dimension) then return i, dimension.size end
  end
end

local function named(name)
  return function(dimension) return dimension.name == name end
end

local function of_role(role)
  return function(dimension) return dimension.role == role end
end

local function ones(layer) return util.listed(#layer.dimensions, function() return 1 end) end

--- Returns factors of 1 except for dimension `i`, split in up to `most` parts.
local function only(layer, i, most)
  local factors = ones(layer)
  if i then factors[i] = factor(layer.dimensions[i].size, most) end
  return factors
end

local function each(pase, make)
  local list = {}
  for i, layer in ipairs(pase.layers) do
    local factors, reason = make(layer)
    if not factors then return nil, reason end
    list[i] = factors
  end
  return list
end

--- Nothing is split.
function rules.serial(pase) return each(pase, ones) end

function rules.data_parallel(pase)
  return each(pase, function(layer)
    local batch = find(layer, named 'b')
    if not batch then return nil, ("layer '%s' has no batch dimension"):format(layer.name) end
    return only(layer, batch, pase.devices)
  end)
end

--- Returns the dimension that a dense layer splits, or that its loss continues.
local function dense(layer)
  if layer.type == 'Gemm' then return find(layer, of_role 'columns') end
  if layer.kind == 'loss' then return find(layer, of_role 'coupled') end
end

function rules.owt(pase)
  return each(pase, function(layer)
    return only(layer, dense(layer) or find(layer, named 'b'), pase.devices)
  end)
end

--- GNMT's rule: LSTM layers on different devices, the batch split over the remaining factor.
local function layers_apart(pase)
  return each(pase, function(layer)
    if layer.kind ~= 'lstm' then return only(layer, find(layer, named 'b'), pase.devices) end
    local l, b = find(layer, named 'l'), find(layer, named 'b')
    local factors = only(layer, l, pase.devices)
    factors[b] = factor(layer.dimensions[b].size, math.floor(pase.devices / factors[l]))
    return factors
  end)
end

--- Mesh-TensorFlow's rule: the batch over `devices / m`; heads, inner widths and vocabulary over m.
local function mesh(pase, m)
  return each(pase, function(layer)
    local factors = only(layer, find(layer, named 'b'), pase.devices / m)
    for _, name in ipairs { 'h', 'f', 'v' } do
      local i, size = find(layer, named(name))
      if i then
        factors[i] = factor(size, m)
        break
      end
    end
    return factors
  end)
end

local function holds(pase, test)
  return util.find(pase.layers, function(layer) return test(layer) end) ~= nil
end

function rules.expert(pase)
  if holds(pase, function(layer) return layer.kind == 'lstm' end) then return layers_apart(pase) end
  if not holds(pase, function(layer) return layer.kind == 'softmax' end) then return rules.owt(pase) end
  local best, least
  for m = 1, pase.devices do
    local list = pase.devices % m == 0 and mesh(pase, m)
    local cost = list and pase.handle:price(list)
    if cost and (not least or cost < least) then best, least = list, cost end
  end
  return best
end

return rules
