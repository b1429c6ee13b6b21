-- Rows of comparison collectives from files and folders in which others keep measured collectives in forms of
-- their own:
--   nccl.csv                                 NCCL's tests of AIConfigurator (github ai-dynamo/aiconfigurator)
--   AR_GPU2_1M_1024M_LUT ...        all-reduces of vTrain's A100 (github VIA-Research/vTrain, trace/a100), by GPUs
--   sp_time_1nodes_8gpus_per_node.json ...   Galvatron's profiles (github PKU-DAIR/Hetu-Galvatron), ms by GPUs and MB
-- All were made with NCCL's tests. Of vTrain's steps of 1 MiB the powers of two are rows, as those tests have them and
-- Galvatron's profiles, so that small messages count. Galvatron's bandwidths (allreduce_bandwidth_*, p2p_bandwidth_*:
-- of strided groups, and of two nodes) are means over sizes that are not stated, so that no row is made of them.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local tables = {}

-- Galvatron's profiles name no GPU: 230 GB/s of eight are what 12 NVLinks of the third generation carry.
local inside = 'NVSwitch, NVLink3 x12'

local function row_of(run, collective, gpus, whole, bytes, time_us)
  return { run = run, system = ('%d of %d x A100, one node'):format(gpus, whole), gpus = ('%d'):format(gpus),
    nodes = '1', inside = inside, between = '', collective = collective, bytes = ('%d'):format(bytes),
    time_us = ('%.10g'):format(time_us) }
end

local function power_of_two(n) return 2 ^ math.floor(math.log(n) / math.log(2) + 0.5) == n end

--- Columns of the first line come twice, out of place and in place; vTrain takes the latter.
local function add_vtrain(found, path, gpus)
  for line in util.read_file(path):gmatch '[^\r\n]+' do
    local bytes, in_place_ns = line:match '^(%d+),%d+,%a+,[%d.]+,[%d.]+,([%d.]+),[%d.]+$'
    if bytes and power_of_two(tonumber(bytes)) then
      found[#found + 1] = row_of('vtrain_a100', 'all_reduce', gpus, 8, tonumber(bytes), in_place_ns / 1e3)
    end
  end
end

local collectives = { allreduce = 'all_reduce', all2all = 'all_to_all' }

local function add_galvatron(found, path, whole)
  local rows, times = {}, json.read(path)
  if type(times) ~= 'table' then
    util.fail('%s: expected times by name, got %s', util.shortened(path), util.describe(times))
  end
  for key, time_ms in util.sorted_pairs(times) do
    local kind, gpus, size = tostring(key):match '^(%a[%a%d]-)_size_(%d+)_(%d+)MB_time$'
    if collectives[kind] and type(time_ms) == 'number' then
      rows[#rows + 1] = row_of('galvatron_' .. collectives[kind], collectives[kind], tonumber(gpus), whole,
        size * 2 ^ 20, time_ms * 1e3)
    end
  end
  table.sort(rows, function(a, b)
    if a.run ~= b.run then return a.run < b.run end
    if a.gpus ~= b.gpus then return tonumber(a.gpus) < tonumber(b.gpus) end
    return tonumber(a.bytes) < tonumber(b.bytes)
  end)
  for _, row in ipairs(rows) do found[#found + 1] = row end
end

-- AIConfigurator's systems: the GPUs of a domain of NVLink, its words.
local systems = { a100_sxm = { 8, 'A100', inside }, h100_sxm = { 8, 'H100', 'NVSwitch, NVLink4 x18' },
  h200_sxm = { 8, 'H200', 'NVSwitch, NVLink4 x18' }, b200_sxm = { 8, 'B200', 'NVSwitch, NVLink5 x18' },
  b300_sxm = { 8, 'B300', 'NVSwitch, NVLink5 x18' }, gb200 = { 72, 'GB200', 'NVLink5 over the rack (domain 72)' },
  gb300 = { 72, 'GB300', 'NVLink5 over the rack (domain 72)' } }

--- The rows of AIConfigurator's table, repeated measurements averaged; nil for another table. Systems whose links the
--- source does not state have none.
local function aiconfigurator(path)
  if not util.read_file(path):find '^system,nccl,collective,dtype,gpus,bytes,time_us' then return nil end
  local found = {}
  for _, same in ipairs(util.grouped(csv.read(path), function(row)
    return table.concat({ row.system, row.nccl, row.collective, row.gpus, row.bytes }, ' ')
  end)) do
    local row, times_us = same[1], util.map(same, function(one) return csv.number(path, one, 'time_us') end)
    local count, gpu, words = unpack(systems[row.system] or { 8, row.system, '' })
    found[#found + 1] = { run = ('%s_nccl_%s'):format(row.system, row.nccl), gpus = row.gpus, nodes = '1',
      system = ('%s of %d x %s'):format(row.gpus, count, gpu), inside = words, between = '', bytes = row.bytes,
      collective = row.collective, time_us = ('%.10g'):format(statistics.mean(times_us)), number = row.number }
  end
  return found
end

--- The rows of a file, or of all tables of a folder, by csv.read, with their `number`; nil where `path` is none.
function tables.read(path)
  if not core.exists(path .. '/.') then return aiconfigurator(path) end
  local names, found = core.list_folder(path), {}
  table.sort(names)
  for _, name in ipairs(names) do
    local file, gpus = path .. '/' .. name, name:match '^AR_GPU(%d+)_.*_LUT$'
    if gpus then add_vtrain(found, file, tonumber(gpus)) end
    local whole = name:match '^sp_time_1nodes_(%d+)gpus_per_node%.json$'
    if whole then add_galvatron(found, file, tonumber(whole)) end
  end
  if #found == 0 then
    util.fail("%s: no measured collectives: expected files 'AR_GPU8_1M_1024M_LUT' or "
      .. "'sp_time_1nodes_8gpus_per_node.json' and their like", util.shortened(path))
  end
  for i, row in ipairs(found) do row.number = i end
  return found
end

return tables
