-- Slow devices and links of a cluster's description (option `slow` of trinity.cluster).

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local slow = {}

local most_factor = 1e6

local function numbered(name, number)
  return type(name) == 'string' and (name:gsub('%*', tostring(number), 1)) or name
end

--- A machine of a description by itself, with its number in the place of '*'.
local function one_machine(machine, number)
  local function renamed(list, ...)
    local keys = { ... }
    return list and util.map(list, function(entry)
      local copy = util.merged(entry)
      for _, key in ipairs(keys) do copy[key] = numbered(entry[key], number) end
      return copy
    end)
  end
  return util.merged(machine, { count = 1, first = number, devices = renamed(machine.devices, 'name', 'node'),
    links = renamed(machine.links, 'from', 'to'), switches = renamed(machine.switches, 'name') })
end

--- The factor of a link: that of its name 'A -> B' or 'B -> A', and of each end that is no device.
local function link_factor(link, factors, is_device, used)
  local factor = 1
  for _, name in ipairs { ('%s -> %s'):format(link.from, link.to), ('%s -> %s'):format(link.to, link.from) } do
    if factors[name] then
      factor, used[name] = factor * factors[name], true
    end
  end
  for _, name in ipairs { link.from, link.to } do
    if factors[name] and not is_device[name] then
      factor, used[name] = factor * factors[name], true
    end
  end
  return factor
end

--- Lists of devices and links with the factors; used: names that were met.
local function changed(of, factors, used)
  local is_device, result = {}, util.merged(of)
  result.devices = of.devices and util.map(of.devices, function(device)
    is_device[device.name] = true
    local factor = factors[device.name]
    if not factor then return device end
    used[device.name] = true
    return util.merged(device, { speed = (device.speed or 1) / factor })
  end)
  result.links = of.links and util.map(of.links, function(link)
    local factor = link_factor(link, factors, is_device, used)
    if factor == 1 then return link end
    return util.merged(link, { bandwidth_bytes_per_s = link.bandwidth_bytes_per_s / factor })
  end)
  return result
end

--- The numbers of a machine's copies that any of the names belongs to, ascending.
local function met(machine, factors)
  local first, numbers, list = machine.first or 0, {}, {}
  local function look(name)
    if type(name) ~= 'string' or not name:find('*', 1, true) then return end
    local before, after = name:match '^([^*]*)%*(.*)$'
    for key in util.sorted_pairs(factors) do
      for word in (key .. ' -> '):gmatch '(.-) %-> ' do
        local number = word:sub(1, #before) == before and word:sub(#before + 1, -#after - 1):match '^%d+$'
        if number and word == before .. number .. after then numbers[tonumber(number)] = true end
      end
    end
  end
  for _, device in ipairs(machine.devices or {}) do look(device.name) end
  for _, link in ipairs(machine.links or {}) do
    look(link.from)
    look(link.to)
  end
  for _, number in ipairs(util.sorted_keys(numbers)) do
    if number >= first and number < first + (machine.count or 1) then list[#list + 1] = number end
  end
  return list
end

local function split(machine, factors, used, result)
  local at, last = machine.first or 0, (machine.first or 0) + (machine.count or 1) - 1
  local function add(to)
    if to >= at then result[#result + 1] = util.merged(machine, { first = at, count = to - at + 1 }) end
  end
  for _, number in ipairs(met(machine, factors)) do
    add(number - 1)
    result[#result + 1] = changed(one_machine(machine, number), factors, used)
    at = number + 1
  end
  add(last)
end

local function known_names(spec)
  local names = {}
  for _, of in ipairs { spec, unpack(spec.machines or {}) } do
    for _, device in ipairs(of.devices or {}) do names[#names + 1] = numbered(device.name, of.first or 0) end
    for _, link in ipairs(of.links or {}) do
      names[#names + 1] = numbered(link.from, of.first or 0)
      names[#names + 1] = numbered(link.to, of.first or 0)
    end
  end
  return names
end

--- The factors that a text says: 'n7/gpu3=1.3,n1/nic0=2'; nil of an empty one.
---@param text? string
---@return table<string, number>?
function slow.read(text)
  if text == nil or text == '' then return nil end
  local factors = {}
  for part in text:gmatch '[^,]+' do
    local name, factor = part:match '^%s*(.-)%s*=([^=]+)$'
    if not tonumber(factor) then
      util.fail_usage("option '--slow': expected names with factors as n7/gpu3=1.3,n1/nic0=2, got %s",
        util.quoted(part))
    end
    factors[name] = tonumber(factor)
  end
  return factors
end

--- A description in which devices and links are slower. factors: by name of a device (its operators take so many times
--- as long), of another end of links or of a link 'A -> B' (they have so many times less bandwidth).
---@param owner string
---@param spec table
---@param factors table<string, number>
---@return table
function slow.apply(owner, spec, factors)
  for name, factor in util.sorted_pairs(factors) do
    if type(name) ~= 'string' or type(factor) ~= 'number' or not (factor > 0 and factor <= most_factor) then
      util.fail("%s: option 'slow': expected names with a factor above 0, at most %.0f, got %s = %s", owner,
        most_factor, tostring(name), util.describe(factor))
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
      util.fail("%s: option 'slow': no device, end of a link or link %s%s", owner, util.quoted(name),
        core.suggestion(name, known_names(spec)))
    end
  end
  return result
end

return slow
