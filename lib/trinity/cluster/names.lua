-- Names of GPUs and clusters as people write them ('A100-80GB', '8xH100', 'DGX-H100').

local devices = require 'trinity.cluster.devices'
local nodes = require 'trinity.cluster.nodes'
local suggestions = require 'trinity.cluster.suggestions'
local util = require 'trinity.base.util'

local names = {}

local makers = { 'nvidia_', 'amd_', 'tesla_', 'geforce_', 'instinct_' }

--- The GPU that a word names: its family ('a100', 'rtx3090'), its memory in GiB, and whether it is a PCIe board.
local function parts_of(text)
  local word = suggestions.plain(text)
  for _, maker in ipairs(makers) do word = word:gsub('^' .. maker, '') end
  local memory_gib, pcie
  word = word:gsub('_(%d+)_?gi?b', function(digits)
    memory_gib = tonumber(digits)
    return ''
  end)
  word = word:gsub('_pcie', function()
    pcie = true
    return ''
  end)
  return (word:gsub('_sxm%d?', ''):gsub('_', '')), memory_gib, pcie or false
end

local usual_gib = { a100 = 80 } -- of families whose device type of that name has another

--- The device type that a word names, nil where there is none. plain_memory: the usual memory if the word does not
--- say it.
function names.device_type(text, plain_memory)
  local family, memory_gib, pcie = parts_of(text)
  if not memory_gib and usual_gib[family] and not plain_memory then return nil end
  memory_gib = memory_gib or usual_gib[family]
  local found, found_pcie
  for _, name in ipairs(devices.names()) do
    local of, _, of_pcie = parts_of(name)
    local has_gib = math.floor(devices.find(name).memory_bytes / 2 ^ 30 + 0.5)
    local better = not found or of_pcie == pcie and found_pcie ~= pcie or of_pcie == found_pcie and #name < #found
    if of == family and (pcie or not of_pcie) and (memory_gib or has_gib) == has_gib and better then
      found, found_pcie = name, of_pcie
    end
  end
  return found
end

--- The machine with most GPUs of a type; of several a DGX.
local function machine_of(device_type)
  local found, most
  for _, name in ipairs(nodes.names()) do
    local gpus, of = nodes.find(name)
    if of == device_type and (not found or gpus > most or gpus == most and name:find '^dgx') then
      found, most = name, gpus
    end
  end
  return found, most
end

--- The cluster that a text means but does not name exactly: a machine in another spelling, or a number of GPUs
--- ('A100', '8xH100', 'h200x16'), which is part of a machine or whole machines. nil: no such cluster.
function names.cluster(text)
  local word = suggestions.plain(text)
  if word ~= text and nodes.is(word) then return word end
  local device_type, count = names.device_type(word, true), 1
  if not device_type then
    local number, gpu = word:match '^(%d+)_?[x*]_?(.+)$'
    if not number then gpu, number = word:match '^(.-)_?x_?(%d+)$' end
    device_type, count = gpu and names.device_type(gpu, true), tonumber(number)
  end
  local machine, gpus = machine_of(device_type)
  if not device_type or not machine then return nil end
  if count >= 1 and count < gpus then return ('%s:%d'):format(machine, count) end
  if count < 1 or count % gpus ~= 0 then
    local below = math.floor(count / gpus) * gpus
    util.fail('cluster %s: expected whole machines of %d GPUs (%s): %s%d GPUs', util.quoted(text), gpus, machine,
      below > 0 and ('%d or '):format(below) or '', below + gpus)
  end
  return count == gpus and machine or ('%sx%d'):format(machine, count / gpus)
end

return names
