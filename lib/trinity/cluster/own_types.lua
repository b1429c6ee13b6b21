-- Devices that describe their type themselves, in place of the name of one: `type = { memory_bytes = ... }`.

local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

--- The device with the name of its type. Types that say the same are one, called after the first device that has it;
--- what is no description is left for the engine to refuse.
local function with_name(device, types, names)
  if type(device) ~= 'table' or type(device.type) ~= 'table' then return device end
  local ok, said = pcall(json.encode, device.type)
  if not ok then return device end
  if not names[said] then
    local name = 'like ' .. tostring(device.name)
    while types[name] ~= nil do name = name .. "'" end
    names[said], types[name] = name, device.type
  end
  return util.merged(device, { type = names[said] })
end

local function any_own(list)
  for _, device in ipairs(list) do
    if type(device) == 'table' and type(device.type) == 'table' then return true end
  end
  return false
end

--- The list with names of types, which are added to `types`.
local function named(list, types, names)
  if type(list) ~= 'table' or not any_own(list) then return list end
  local result = util.merged(list)
  for i, device in ipairs(list) do result[i] = with_name(device, types, names) end
  return result
end

--- A description of a cluster in which all types have names.
return function(spec)
  if spec.device_types ~= nil and type(spec.device_types) ~= 'table' then return spec end
  local types, names = util.merged(spec.device_types), {}
  local full = util.merged(spec, { device_types = types, devices = named(spec.devices, types, names) })
  if type(spec.machines) ~= 'table' then return full end
  full.machines = util.merged(spec.machines)
  for i, machine in ipairs(spec.machines) do
    if type(machine) == 'table' then
      full.machines[i] = util.merged(machine, { devices = named(machine.devices, types, names) })
    end
  end
  return full
end
