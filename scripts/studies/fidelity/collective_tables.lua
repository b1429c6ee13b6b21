-- Rows of comparison collectives from tables of others: AIConfigurator's of NCCL's tests (nccl.csv; github
-- ai-dynamo/aiconfigurator), and a folder of vTrain's all-reduces of A100 by GPUs (AR_GPU2_1M_1024M_LUT ...; github
-- VIA-Research/vTrain, trace/a100), of whose steps of 1 MiB the powers of two are rows, as NCCL's tests have them, so
-- that small messages count.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local tables = {}

-- Systems whose links are stated: GPUs on NVSwitches, and how many.
local systems = { a100_sxm = 8, h100_sxm = 8, h200_sxm = 8, b200_sxm = 8, b300_sxm = 8, gb200 = 72, gb300 = 72 }

local function row_of(run, system, collective, gpus, bytes, time_us)
  local domain = systems[system]
  return { run = run, system = ('%d of %d x %s'):format(gpus, domain or 8, system:gsub('_sxm', ''):upper()),
    gpus = gpus, nodes = '1', inside = domain and ('NVSwitch (domain %d)'):format(domain) or '', between = '',
    collective = collective, bytes = bytes, time_us = ('%.10g'):format(time_us) }
end

--- Columns of the first line come twice, out of place and in place; the latter are taken.
local function of_vtrain(path)
  local names, rows = core.list_folder(path), {}
  table.sort(names)
  for _, name in ipairs(names) do
    local gpus = name:match '^AR_GPU(%d+)_.*_LUT$'
    local lines = gpus and util.read_file(('%s/%s'):format(path, name)) or ''
    for bytes, in_place_ns in lines:gmatch '(%d+),%d+,%a+,[%d.]+,[%d.]+,([%d.]+),[%d.]+' do
      if math.frexp(bytes) == 0.5 then -- a power of two
        rows[#rows + 1] = row_of('vtrain_a100', 'a100_sxm', 'all_reduce', gpus, bytes, in_place_ns / 1e3)
        rows[#rows].number = #rows
      end
    end
  end
  if #rows > 0 then return rows end
  util.fail("%s: no measured collectives: expected files 'AR_GPU8_1M_1024M_LUT' and their like", util.shortened(path))
end

--- The rows of AIConfigurator's table, repeated measurements averaged. Systems whose links the source does not state
--- have none.
local function of_aiconfigurator(rows, path)
  return util.map(util.grouped(rows, function(row)
    return table.concat({ row.system, row.nccl, row.collective, row.gpus, row.bytes }, ' ')
  end), function(same)
    local row, times_us = same[1], util.map(same, function(one) return csv.number(path, one, 'time_us') end)
    return row_of(('%s_nccl_%s'):format(row.system, row.nccl), row.system, row.collective, row.gpus, row.bytes,
      statistics.mean(times_us))
  end)
end

--- The rows of a file, or of all tables of a folder, by csv.read; columns: that other files must have.
function tables.read(path, columns)
  if core.exists(path .. '/.') then return of_vtrain(path) end
  local rows = csv.read(path)
  if rows[1] and rows[1].nccl and not rows[1].inside then return of_aiconfigurator(rows, path) end
  csv.check(path, unpack(columns))
  return rows
end

return tables
