-- Profiles of operators and links as Aceso's planner reads them (Liu et al., "Aceso: Efficient Parallel DNN Training
-- through Iterative Bottleneck Alleviation", EuroSys 2024; github microsoft/SuperScaler, branch Aceso, profiler/):
-- NAME_mbsM_tpT_algoA.csv has the operators of a model on T GPUs with M sequences a GPU group, prim_NAME_KIND_Ggpus.csv
-- collectives by size, p2p_{intra,inter}_node.csv bandwidths by powers of two of MB.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local profiles = {}

---@class trinity.AcesoProfiles
---@field name string of the model: gpt_1_3B
---@field operators string[] names in the model's order: the first, then one layer's, then the last two
---@field degrees integer[] tensor-parallel degrees that are profiled
---@field sequences integer[] micro-batches of an operator that are profiled
---@field tables table<integer, table> by profiles.key: columns of numbers by operator
---@field collectives table<string, table<integer, table<integer, number>>> ms by kind, GPUs and MB
---@field bandwidths { intra: number[], inter: number[] } GB/s by powers of two of MB from 1

local columns = { 'forward-compute', 'backward-compute', 'input_size', 'output_size', 'weights', 'activations',
  'fwd_reserved', 'bwd_reserved' }
local fields = { 'forward_us', 'backward_us', 'input_mb', 'output_mb', 'weights_mb', 'activations_mb',
  'forward_reserved_mb', 'backward_reserved_mb' }
local kinds = { 'all_gather', 'all_to_all' }
local degrees = { 1, 2, 4, 8 }

--- The key of a table: sequences of a micro-batch, tensor-parallel degree, algorithm (0, 1).
function profiles.key(sequences, degree, algorithm) return (sequences * 16 + degree) * 2 + algorithm end

--- Lines of a file as lists of fields without spaces around them.
local function lines_of(path)
  local lines = {}
  for line in util.read_file(path):gmatch '[^\r\n]+' do
    local row = {}
    for part in (line .. ','):gmatch '([^,]*),' do row[#row + 1] = part:match '^%s*(.-)%s*$' end
    lines[#lines + 1] = row
  end
  return lines
end

local function number(path, line, column, text)
  local value = tonumber(text)
  if value and value >= 0 and value < math.huge then return value end
  util.fail('%s: line %d: %s: expected a number that is not negative, got %s', util.shortened(path), line, column,
    util.describe(text))
end

local function check_head(path, line, expected)
  for i, name in ipairs(expected) do
    if not line or line[i] ~= name then
      util.fail("%s: line 1: column %d: expected '%s', got %s", util.shortened(path), i, name,
        util.describe(line and line[i]))
    end
  end
end

--- One table of operators: its columns by name, each from 1, and the operators' names.
local function read_operators(path)
  local lines = lines_of(path)
  check_head(path, lines[1], { 'op_name', unpack(columns) })
  local read, names = {}, {}
  for _, field in ipairs(fields) do read[field] = {} end
  for l = 2, #lines do
    names[l - 1] = lines[l][1]
    for c, field in ipairs(fields) do read[field][l - 1] = number(path, l, columns[c], lines[l][c + 1]) end
  end
  if #names < 4 then
    util.fail('%s: expected one operator before the layers, the operators of a layer and two after them, got %d rows',
      util.shortened(path), #names)
  end
  return read, names
end

local function read_collective(path)
  local lines, by_mb = lines_of(path), {}
  check_head(path, lines[1], { 'data_size(MB)', 'time(ms)' })
  for l = 2, #lines do
    by_mb[number(path, l, 'data_size(MB)', lines[l][1])] = number(path, l, 'time(ms)', lines[l][2])
  end
  return by_mb
end

local function read_bandwidths(path)
  local lines = lines_of(path)
  if #lines < 2 or #lines[2] < 1 then
    util.fail('%s: expected a line of MB and a line of GB/s', util.shortened(path))
  end
  return util.map(lines[2], function(text)
    local value = number(path, 2, 'GB/s', text)
    if value == 0 then util.fail('%s: line 2: expected bandwidths above 0, got 0', util.shortened(path)) end
    return value
  end)
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
