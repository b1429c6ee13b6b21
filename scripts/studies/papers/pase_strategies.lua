-- Table 2 of the PaSE paper: its best strategies for 32 devices, layer by layer and dimension by dimension, next to the
-- optimum of the exact solver under the costs of the released code.

local networks = require 'studies.papers.pase_networks'
local page = require 'studies.papers.page'
local util = require 'trinity.base.util'

local strategies = { devices = 32 }

-- Per network its rows: label, pattern of our layers' names (whole), type of layer, the paper's dimensions with ours in
-- brackets where they are called otherwise, the paper's factors.
local conv = 'b c h w n r s'
strategies.rows = {
  alexnet = {
    { 'Conv1', 'conv_1', 'Conv', conv, { 32, 1, 1, 1, 1, 1, 1 } },
    { 'Conv2', 'conv_2', 'Conv', conv, { 32, 1, 1, 1, 1, 1, 1 } },
    { 'Conv3', 'conv_3', 'Conv', conv, { 32, 1, 1, 1, 1, 1, 1 } },
    { 'Conv4', 'conv_4', 'Conv', conv, { 32, 1, 1, 1, 1, 1, 1 } },
    { 'Conv5', 'conv_5', 'Conv', conv, { 16, 2, 1, 1, 1, 1, 1 } },
    { 'FC1', 'fc_6', 'Gemm', 'b n c', { 1, 4, 8 } },
    { 'FC2', 'fc_7', 'Gemm', 'b n c', { 1, 8, 4 } },
    { 'FC3', 'fc_8', 'Gemm', 'b n c', { 1, 4, 8 } },
    { 'Softmax', 'loss', 'SoftmaxCrossEntropyLoss', 'b n', { 1, 4 } },
  },
  inception_v3 = {
    { 'modules A-D', 'mixed_[a-d].*', 'Conv', conv, { 32, 1, 1, 1, 1, 1, 1 } },
    { 'module E', 'mixed_e.*', 'Conv', conv, { 16, 1, 1, 1, 2, 1, 1 } },
    { 'FC', 'classifier', 'Gemm', 'b n c', { 1, 2, 16 } },
    { 'Softmax', 'loss', 'SoftmaxCrossEntropyLoss', 'b n', { 1, 2 } },
  },
  rnnlm = {
    { 'Embedding', 'embedding', 'Gather', 'b s d v', { 1, 1, 1, 32 } },
    { 'LSTM', 'lstm_1', 'LSTM', 'l b s d(c) e(n)', { 2, 4, 1, 2, 2 } },
    { 'FC', 'projection', 'Gemm', 'b s v(n) d(c)', { 1, 1, 32, 1 } },
    { 'Softmax', 'loss', 'SoftmaxCrossEntropyLoss', 'b s v(d)', { 1, 1, 32 } },
  },
  transformer = {
    { 'Embedding', '.*embedding', 'Gather', 'b s d v', { 1, 1, 1, 16 } },
    { 'Attention', '.*/qkv', 'Einsum', 'b s(l) h c(e) k', { 16, 1, 2, 1, 1 } },
    { 'Attention, output', '.*/output', 'Einsum', 'b s(l) h c(e) k', { 16, 1, 2, 1, 1 } },
    { 'Feed forward', '.*/inner', 'Einsum', 'b s(l) d(e) e(f)', { 16, 1, 1, 2 } },
    { 'Feed forward, outer', '.*/outer', 'Einsum', 'b s(l) d(e) e(f)', { 16, 1, 1, 2 } },
    { 'FC', 'projection', 'Einsum', 'b s(l) v d(e)', { 1, 1, 16, 1 } },
    { 'Softmax', 'loss', 'SoftmaxCrossEntropyLoss', 'b s(l) v', { 1, 1, 16 } },
  },
}

--- The dimensions of a row: the paper's names, and per name the number of the layer's own dimension.
local function dimensions_of(text, layer)
  local theirs, at = {}, {}
  for word in text:gmatch '%S+' do
    local own = word:match '%((.*)%)' or word
    theirs[#theirs + 1] = word:match '^[^(]*'
    for i, dimension in ipairs(layer.dimensions) do if dimension.name == own then at[#theirs] = i end end
    if not at[#theirs] then util.fail("table 2: layer '%s' has no dimension %s", layer.name, own) end
  end
  return theirs, at
end

local function layers_of(search, row)
  local list = {}
  for i, layer in ipairs(search.pase.layers) do
    if layer.type == row[3] and layer.name:match('^' .. row[2] .. '$') then list[#list + 1] = i end
  end
  if #list == 0 then util.fail("table 2: no layer '%s'", row[2]) end
  return list
end

local function text_of(factors) return '(' .. table.concat(factors, ',') .. ')' end

--- A row of table 2 against a strategy: layers (how many), equal (how many of them), ours (their most frequent factors
--- as text, the first where some are as frequent), cells and cells_equal (layers times dimensions), differs (names of
--- dimensions that differ somewhere).
function strategies.compare(search, row, configurations)
  local result = { layers = 0, equal = 0, cells = 0, cells_equal = 0, differs = {} }
  local count, most, off = {}, 0, {}
  for _, i in ipairs(layers_of(search, row)) do
    local theirs, at = dimensions_of(row[4], search.pase.layers[i])
    local factors, same = {}, true
    for d, name in ipairs(theirs) do
      factors[d] = configurations[i][at[d]]
      local agrees = factors[d] == row[5][d]
      result.cells, result.cells_equal = result.cells + 1, result.cells_equal + (agrees and 1 or 0)
      same = same and agrees
      off[name] = off[name] or not agrees
    end
    local text = text_of(factors)
    count[text] = (count[text] or 0) + 1
    if count[text] > most then most, result.ours = count[text], text end
    result.layers, result.equal = result.layers + 1, result.equal + (same and 1 or 0)
  end
  for word in row[4]:gmatch '%S+' do
    local name = word:match '^[^(]*'
    if off[name] then result.differs[#result.differs + 1] = name end
  end
  result.most = most
  return result
end

--- A strategy with the layers that table 2 states as it states them, the others as in `configurations`.
function strategies.stated(search, name, configurations)
  local list = { unpack(configurations) }
  for _, row in ipairs(strategies.rows[name]) do
    for _, i in ipairs(layers_of(search, row)) do
      local _, at = dimensions_of(row[4], search.pase.layers[i])
      local factors = util.listed(#search.pase.layers[i].dimensions, function() return 1 end)
      for d, own in ipairs(at) do factors[own] = row[5][d] end
      list[i] = factors
    end
  end
  return list
end

local function add(rows, name, row, found)
  local ours, otherwise = found.ours, 'differs in ' .. table.concat(found.differs, ', ')
  if found.layers > 1 then
    ours = ('%s in %d of %d layers'):format(ours, found.most, found.layers)
    otherwise = ('equal in %d of %d layers; else %s'):format(found.equal, found.layers, otherwise)
  end
  rows:add { what = ('%s, %s (%s)'):format(name, row[1], (row[4]:gsub('%(%w+%)', ''))), claimed = text_of(row[5]),
    ours = ours, verdict = page.equal(found.equal == found.layers, otherwise) }
end

strategies.section = { name = 'table2', title = 'Table 2: the best strategies for 32 devices',
  quick = 'Transformer only where --models names it',
  heads = { literal = 'cost of the stated strategy', ours = 'the exact optimum' },
  about = "Factors of every dimension that the paper's table states, next to the optimum of the exact solver under the "
    .. "released code's costs (ours equal its tables entry by entry: tests/lua/pase/pase_spec.lua). The last "
    .. 'row of a network prices the stated strategy by the same costs, other layers as in the optimum.',
  run = function(rows, settings)
    local cells, equal = 0, 0
    for _, name in ipairs(networks.names) do
      local skipped = settings.models and not settings.models[name]
        or settings.quick and not settings.models and name == 'transformer'
      local search = not skipped and networks.search(name, strategies.devices)
      for _, row in ipairs(search and strategies.rows[name] or {}) do
        local found = strategies.compare(search, row, search.best.configurations)
        cells, equal = cells + found.cells, equal + found.cells_equal
        add(rows, name, row, found)
      end
      if search then
        local stated = search.pase:price(strategies.stated(search, name, search.best.configurations))
        rows:add { what = name .. ', all that is stated', claimed = 'the optimum', ours = 'the optimum',
          literal = ('%.4f of the optimum'):format(stated.cost / search.best.cost),
          verdict = { text = stated.cost > search.best.cost * (1 + 1e-9)
            and "no optimum of the released code's costs" or 'an optimum too' } }
      end
    end
    return ('Cells (a dimension of a layer) equal: %d of %d.'):format(equal, cells)
  end }

return strategies
