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

-- Systems: the GPUs of a domain of NVLink, its words. (Galvatron's profiles name no GPU: 230 GB/s of eight are what 12
-- NVLinks of the third generation carry.)
local systems = { a100_sxm = { 8, 'A100', 'NVSwitch, NVLink3 x12' }, h100_sxm = { 8, 'H100', 'NVSwitch, NVLink4 x18' },
  h200_sxm = { 8, 'H200', 'NVSwitch, NVLink4 x18' }, b200_sxm = { 8, 'B200', 'NVSwitch, NVLink5 x18' },
  b300_sxm = { 8, 'B300', 'NVSwitch, NVLink5 x18' }, gb200 = { 72, 'GB200', 'NVLink5 over the rack (domain 72)' },
  gb300 = { 72, 'GB300', 'NVLink5 over the rack (domain 72)' } }

local function row_of(run, of, collective, gpus, bytes, time_us)
  return { run = run, system = ('%d of %d x %s'):format(gpus, of[1], of[2]), gpus = gpus, nodes = '1', inside = of[3],
    between = '', collective = collective, bytes = bytes, time_us = ('%.10g'):format(time_us) }
end

--- Columns of the first line come twice, out of place and in place; vTrain takes the latter.
local function of_vtrain(path, gpus)
  local rows = {}
  for bytes, in_place_ns in util.read_file(path):gmatch '(%d+),%d+,%a+,[%d.]+,[%d.]+,([%d.]+),[%d.]+' do
    local power = math.floor(math.log(bytes) / math.log(2) + 0.5)
    if 2 ^ power == tonumber(bytes) then
      rows[#rows + 1] = row_of('vtrain_a100', systems.a100_sxm, 'all_reduce', gpus, bytes, in_place_ns / 1e3)
    end
  end
  return rows
end

local collectives = { allreduce = 'all_reduce', all2all = 'all_to_all' }

local function of_galvatron(path, whole)
  local rows, times = {}, json.read(path)
  if type(times) ~= 'table' then
    util.fail('%s: expected times by name, got %s', util.shortened(path), util.describe(times))
  end
  for key, time_ms in util.sorted_pairs(times) do
    local kind, gpus, size = tostring(key):match '^(%a[%a%d]-)_size_(%d+)_(%d+)MB_time$'
    kind = collectives[kind]
    if kind and type(time_ms) == 'number' then
      local row = row_of('galvatron_' .. kind, { whole, unpack(systems.a100_sxm, 2) }, kind, gpus,
        ('%d'):format(size * 2 ^ 20), time_ms * 1e3)
      rows[#rows + 1] = util.merged(row, { members = tonumber(gpus), size = size * 2 ^ 20 })
    end
  end
  table.sort(rows, util.by('run', 'members', 'size'))
  return rows
end

--- The rows of AIConfigurator's table, repeated measurements averaged; nil for another table. Systems whose links the
--- source does not state have none.
local function of_aiconfigurator(path)
  if not util.read_file(path):find '^system,nccl,collective,dtype,gpus,bytes,time_us' then return nil end
  return util.map(util.grouped(csv.read(path), function(row)
    return table.concat({ row.system, row.nccl, row.collective, row.gpus, row.bytes }, ' ')
  end), function(same)
    local row, times_us = same[1], util.map(same, function(one) return csv.number(path, one, 'time_us') end)
    return row_of(('%s_nccl_%s'):format(row.system, row.nccl), systems[row.system] or { 8, row.system, '' },
      row.collective, row.gpus, row.bytes, statistics.mean(times_us))
  end)
end

--- The rows of a file, or of all tables of a folder, by csv.read, with their `number`; nil where `path` is none.
function tables.read(path)
  if not core.exists(path .. '/.') then return of_aiconfigurator(path) end
  local names, found = core.list_folder(path), {}
  table.sort(names)
  for _, name in ipairs(names) do
    local file, gpus = path .. '/' .. name, name:match '^AR_GPU(%d+)_.*_LUT$'
    local whole = name:match '^sp_time_1nodes_(%d+)gpus_per_node%.json$'
    found = util.joined(found, gpus and of_vtrain(file, gpus) or whole and of_galvatron(file, tonumber(whole)) or {})
  end
  if #found == 0 then
    util.fail("%s: no measured collectives: expected files 'AR_GPU8_1M_1024M_LUT' or "
      .. "'sp_time_1nodes_8gpus_per_node.json' and their like", util.shortened(path))
  end
  for i, row in ipairs(found) do row.number = i end
  return found
end

return tables
