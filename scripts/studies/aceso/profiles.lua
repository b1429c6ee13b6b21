-- Profiles of operators and links as Aceso's planner reads them (Liu et al., "Aceso: Efficient Parallel DNN Training
-- through Iterative Bottleneck Alleviation", EuroSys 2024; github microsoft/SuperScaler, branch Aceso, profiler/):
-- NAME_mbsM_tpT_algoA.csv has the operators of a model on T GPUs with M sequences a GPU group, prim_NAME_KIND_Ggpus.csv
-- collectives by size, p2p_{intra,inter}_node.csv bandwidths by powers of two of MB.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

-- The profiles of a model: { name, operators = names in the model's order (the first, then one layer's, then the
-- last two), degrees, sequences = those that are profiled, tables = by profiles.key: lists by field and operator,
-- collectives = ms by kind, GPUs and MB, bandwidths = { intra, inter }: GB/s by powers of two of MB from 1 }.
local profiles = {}

-- Columns of a table of operators by field.
local columns = { forward_us = 'forward-compute', backward_us = 'backward-compute', input_mb = 'input_size',
  output_mb = 'output_size', weights_mb = 'weights', activations_mb = 'activations',
  forward_reserved_mb = 'fwd_reserved', backward_reserved_mb = 'bwd_reserved' }
local kinds = { 'all_gather', 'all_to_all' }
local degrees = { 1, 2, 4, 8 }

--- The key of a table: sequences of a micro-batch, tensor-parallel degree, algorithm (0, 1).
function profiles.key(sequences, degree, algorithm) return (sequences * 16 + degree) * 2 + algorithm end

local function number(path, row, column)
  local value = csv.number(path, row, column)
  if value >= 0 and value < math.huge then return value end
  csv.refuse(path, row, "column '%s': expected a number that is not negative, got %s", column, row[column])
end

--- One table of operators: its columns by field, each from 1, and the operators' names.
local function read_operators(path)
  local rows, read = csv.read(path, 'op_name', unpack(util.map(util.sorted_keys(columns), function(field)
    return columns[field]
  end))), {}
  if #rows < 4 then
    util.fail('%s: expected one operator before the layers, the operators of a layer and two after them, got %d rows',
      util.shortened(path), #rows)
  end
  for field, column in util.sorted_pairs(columns) do
    read[field] = util.map(rows, function(row) return number(path, row, column) end)
  end
  return read, util.map(rows, function(row) return row.op_name end)
end

local function read_collective(path)
  local by_mb = {}
  for _, row in ipairs(csv.read(path, 'data_size(MB)', 'time(ms)')) do
    by_mb[number(path, row, 'data_size(MB)')] = number(path, row, 'time(ms)')
  end
  return by_mb
end

--- The head of a table of bandwidths has the MB: 1, 2, 4, ...
local function read_bandwidths(path)
  local row, list = csv.read(path, '1')[1], {}
  while row and row[('%d'):format(2 ^ #list)] do
    local column = ('%d'):format(2 ^ #list)
    list[#list + 1] = number(path, row, column)
    if list[#list] == 0 then csv.refuse(path, row, "column '%s': expected a bandwidth above 0, got 0", column) end
  end
  if not row then util.fail('%s: expected a line of MB and a line of GB/s', util.shortened(path)) end
  return list
end

--- The profiles that a folder has of a model. A file of operators that is missing leaves its choices out; an error
--- names what a folder without any lacks, and the models that it has.
function profiles.read(folder, name)
  local self = { name = name, tables = {}, degrees = {}, sequences = {}, collectives = {}, bandwidths = {} }
  local has_degree, has_sequences = {}, {}
  for _, sequences in ipairs(degrees) do
    for _, degree in ipairs(degrees) do
      for algorithm = 0, 1 do
        local path = ('%s/%s_mbs%d_tp%d_algo%d.csv'):format(folder, name, sequences, degree, algorithm)
        if core.exists(path) then
          local read, names = read_operators(path)
          self.operators = self.operators or names
          if #names ~= #self.operators then
            util.fail('%s: expected %d operators as in the other files, got %d', util.shortened(path), #self.operators,
              #names)
          end
          self.tables[profiles.key(sequences, degree, algorithm)] = read
          has_degree[degree], has_sequences[sequences] = true, true
        end
      end
    end
  end
  if not self.operators then profiles.refuse(folder, name) end
  for _, d in ipairs(degrees) do
    if has_degree[d] then table.insert(self.degrees, d) end
    if has_sequences[d] then table.insert(self.sequences, d) end
  end
  for _, kind in ipairs(kinds) do
    self.collectives[kind] = {}
    for gpus = 2, 64 do
      local path = ('%s/prim_%s_%s_%dgpus.csv'):format(folder, name, kind, gpus)
      if core.exists(path) then self.collectives[kind][gpus] = read_collective(path) end
    end
  end
  for _, where in ipairs { 'intra', 'inter' } do
    self.bandwidths[where] = read_bandwidths(('%s/p2p_%s_node.csv'):format(folder, where))
  end
  return self
end

--- Says that a folder has no profiles of a model, and which it has.
function profiles.refuse(folder, name)
  if not core.exists(folder .. '/.') then util.fail('%s: no such folder of profiles', util.shortened(folder)) end
  local found, seen = {}, {}
  for _, file in ipairs(core.list_folder(folder)) do
    local model = file:match '^(.*)_mbs%d+_tp%d+_algo%d+%.csv$'
    if model and not seen[model] then seen[model], found[#found + 1] = true, model end
  end
  if #found == 0 then
    util.fail('%s: no profiles of operators (NAME_mbsM_tpT_algoA.csv) in this folder', util.shortened(folder))
  end
  util.fail('%s: no profiles of model %s', util.shortened(folder), util.unknown(name, found))
end

return profiles
