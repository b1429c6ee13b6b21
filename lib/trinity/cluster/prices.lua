-- Costs of GPUs: list prices per GPU hour on demand and board power, by kind of device (trinity.devices). A user's own
-- rows take the place of these: a table, or a CSV file with the columns kind, dollars_per_hour and watts.
--
-- Prices: AWS, on demand, Linux, us-east-1, one GPU of the instance (aws.amazon.com/ec2/pricing/on-demand); otherwise
-- the provider that the source names. Power: the data sheet of the kind (devices.lua names it), all of the board, of a
-- superchip the part of one GPU; an upper bound of the power during training, without hosts, network and cooling.

local check = require 'trinity.base.check'
local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

local prices = {}

---@class trinity.PriceRow
---@field dollars_per_hour? number of one device
---@field watts? number
---@field source? string where the list price was read

local function aws(instance, count, dollars) return dollars / count, ('AWS %s'):format(instance) end

local list = {}
local function add(kind, watts, dollars_per_hour, source)
  list[kind] = { watts = watts, dollars_per_hour = dollars_per_hour, source = source }
end

add('k80', 150, aws('p2.xlarge, 2018', 1, 0.90)) -- half of a board of 300 W
add('p100', 250)
add('p100_12gb', 250)
add('p100_sxm2', 300)
add('gtx1080ti', 250)
add('v100', 300, aws('p3.2xlarge', 1, 3.06))
add('v100_32gb', 300, aws('p3dn.24xlarge', 8, 31.212))
add('v100_pcie', 250)
add('v100_pcie_32gb', 250)
add('t4', 70, aws('g4dn.xlarge', 1, 0.526))
add('rtx2080ti', 250)
add('titan_rtx', 280)
add('rtx3090', 350)
add('rtx4090', 450)
add('a10', 150)
add('a40', 300)
add('l4', 72)
add('l40s', 350)
add('a100', 400, aws('p4d.24xlarge, November 2026', 8, 21.957642))
add('a100_80gb', 400, aws('p4de.24xlarge, November 2026', 8, 27.44705))
add('a800_80gb', 400)
add('a100_pcie', 250)
add('a100_pcie_80gb', 300, 3.673, 'Azure Standard_NC24ads_A100_v4, eastus, November 2026')
add('h100', 700, aws('p5.48xlarge, November 2026', 8, 55.04))
add('h100_96gb', 500)
add('gh200', 700) -- the GPU; the superchip has up to 1,000 W
add('gh200_141gb', 700)
add('h100_pcie', 350, 2.89, 'RunPod, Secure Cloud, October 2026')
add('h800', 700)
add('h20', 400)
add('h200', 700, aws('p5en.48xlarge, August 2026', 8, 63.296))
add('b200', 1000, 6.69, 'Lambda, 8x B200, September 2026')
add('b300', 1400, 7.89, 'RunPod, October 2026')
add('gb200', 1200)
add('gb300', 1400)
add('mi250x', 560)
add('mi250x_die', 280)
add('mi300x', 750)
add('mi325x', 1000)
add('mi355x', 1400)

local units = { dollars = { field = 'dollars_per_hour', per_s = 1 / 3600, unit = '$' },
  joules = { field = 'watts', per_s = 1, unit = 'J' } }

--- The quantities that exist.
prices.set = { dollars = true, joules = true }

local function check_row(owner, kind, row)
  local place = ("%s: prices: '%s'"):format(owner, kind)
  check.argument(owner, 'prices', kind, row, 'table')
  util.refuse_unknown(place, row, { dollars_per_hour = true, watts = true, source = true }, 'field')
  for _, field in ipairs { 'dollars_per_hour', 'watts' } do
    local value = row[field]
    if value ~= nil and not (type(value) == 'number' and value >= 0 and value < 1e9) then
      util.fail('%s: %s: expected a number from 0, got %s', place, field, util.describe(value))
    end
  end
  return row
end

local function rows_of(owner, given)
  if given == nil then return {} end
  local rows = {}
  if type(given) == 'string' then
    for _, row in ipairs(csv.read(given, 'kind', 'dollars_per_hour', 'watts')) do
      local function number(column) return row[column] ~= '' and csv.number(given, row, column) or nil end
      rows[row.kind] = check_row(given, row.kind, { dollars_per_hour = number 'dollars_per_hour',
        watts = number 'watts', source = row.source or given })
    end
    return rows
  end
  for kind, row in util.sorted_pairs(check.argument(owner, 'option', 'prices', given, 'table')) do
    rows[kind] = util.merged({ source = 'given' }, check_row(owner, kind, row))
  end
  return rows
end

--- The cost of a cluster's devices per second: a list by device, the unit, and a text with its basis. what:
--- 'dollars' or 'joules'. given: a user's rows, or the CSV file that has them.
function prices.of(owner, what, cluster, given)
  local asked, own = units[what], rows_of(owner, given)
  local per_s, said, words = {}, {}, {}
  for d, device in ipairs(cluster.devices) do
    local kind = device.type
    local row = util.merged(list[kind] or {}, own[kind] or {})
    local value = row[asked.field]
    if not value then
      util.fail("%s: no %s of '%s' is known: give prices = { ['%s'] = { %s = ... } } (--prices FILE, a CSV with "
        .. 'columns kind, dollars_per_hour, watts)', owner, what == 'dollars' and 'list price' or 'power', kind, kind,
        asked.field)
    end
    per_s[d] = value * asked.per_s
    if not said[kind] then
      said[kind] = true
      words[#words + 1] = what == 'dollars' and ('%s %.4g $/h (%s)'):format(kind, value, row.source)
        or ('%s %.4g W'):format(kind, value)
    end
  end
  return per_s, asked.unit, table.concat(words, ', ')
end

return prices
