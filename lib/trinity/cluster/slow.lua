-- Slow devices and links of a cluster's description (option `slow` of trinity.cluster).

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local slow = {}

--- A machine of a description by itself, with its number in the place of '*'.
local function one_machine(machine, number)
  local function renamed(list)
    return list and util.map(list, function(entry)
      local copy = util.merged(entry)
      for _, key in ipairs { 'name', 'node', 'from', 'to' } do
        copy[key] = copy[key] and copy[key]:gsub('%*', tostring(number), 1)
      end
      return copy
    end)
  end
  return util.merged(machine, { count = 1, first = number, devices = renamed(machine.devices),
    links = renamed(machine.links), switches = renamed(machine.switches) })
end

--- Lists of devices and links with the factors; used: names that were met.
local function changed(of, factors, used)
  local is_device, result = {}, util.merged(of)
  local function factor_of(name)
    used[name] = used[name] or factors[name] ~= nil
    return factors[name] or 1
  end
  result.devices = of.devices and util.map(of.devices, function(device)
    is_device[device.name] = true
    local machine = device.name:match '^(.-)/'
    local factor = factor_of(device.name) * (machine and factor_of(machine) or 1)
    return factor == 1 and device or util.merged(device, { speed = (device.speed or 1) / factor })
  end)
  result.links = of.links and util.map(of.links, function(link)
    local factor = factor_of(link.from .. ' -> ' .. link.to) * factor_of(link.to .. ' -> ' .. link.from)
    for _, name in ipairs { link.from, link.to } do
      if not is_device[name] then factor = factor * factor_of(name) end
    end
    return factor == 1 and link
      or util.merged(link, { bandwidth_bytes_per_s = link.bandwidth_bytes_per_s / factor })
  end)
  return result
end

--- Adds the machine to a list, its copies that have slow parts by themselves.
local function split(machine, factors, used, result)
  local at, count = machine.first or 0, machine.count or 1
  local last, numbers = at + count - 1, {}
  local prefix = (machine.devices[1].name:match '^([^*]*)%*' or ''):gsub('%W', '%%%0')
  for key in util.sorted_pairs(factors) do
    for number in key:gmatch('%f[%w]' .. prefix .. '(%d+)%f[%W]') do numbers[tonumber(number)] = true end
  end
  if count == 1 then numbers[at] = true end
  local function add(to)
    if to >= at then result[#result + 1] = util.merged(machine, { first = at, count = to - at + 1 }) end
  end
  for _, number in ipairs(util.sorted_keys(numbers)) do
    if number >= at and number <= last then
      add(number - 1)
      result[#result + 1] = changed(one_machine(machine, number), factors, used)
      at = number + 1
    end
  end
  add(last)
end

-- The nearest name of the description, or else three of them as examples.
local function suggestion(name, spec)
  local names = {}
  for _, of in ipairs { spec, unpack(spec.machines or {}) } do
    local one = one_machine(of, of.first or 0)
    for _, device in ipairs(one.devices or {}) do names[#names + 1] = device.name end
    for _, link in ipairs(one.links or {}) do names[#names + 1] = link.to end
  end
  local near = core.suggestion(name, names)
  return near ~= '' and near or (" (names are '%s', ...)"):format(table.concat(names, "', '", 1, math.min(#names, 3)))
end

--- The factors that a text says: 'n7/gpu3=1.3,n1/nic0=2'; nil of an empty one.
function slow.read(text)
  if text == nil or text == '' then return nil end
  local factors = {}
  for part in text:gmatch '[^,]+' do
    local name, factor = part:match '^%s*(.-)%s*=([^=]+)$'
    if not tonumber(factor) then
      util.fail_usage("option '--slow': expected names with factors as n7/gpu3=1.3,n1=2, got %s",
        util.quoted(part))
    end
    factors[name] = tonumber(factor)
  end
  return factors
end

--- A description in which devices and links are slower. factors, by name: of a device, or of a machine for all its
--- devices (their operators take longer); of another end of links, or of a link 'A -> B' (their bandwidth falls).
function slow.apply(owner, spec, factors)
  for name, factor in util.sorted_pairs(factors) do
    if type(name) ~= 'string' or type(factor) ~= 'number' or not (factor > 0 and factor < math.huge) then
      util.fail("%s: option 'slow': expected names with a factor above 0, got %s = %s", owner, tostring(name),
        util.describe(factor))
    end
  end
  local used = {}
  local result = changed(spec, factors, used)
  if spec.machines then
    result.machines = {}
    for _, machine in ipairs(spec.machines) do split(machine, factors, used, result.machines) end
  end
  for name in util.sorted_pairs(factors) do
    if not used[name] then
      util.fail("%s: option 'slow': no device, machine, end of a link or link %s%s", owner, util.quoted(name),
        suggestion(name, spec))
    end
  end
  return result
end

return slow
