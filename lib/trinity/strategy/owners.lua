-- Who owns a device's peak memory (trinity.PeakBytes): names and colours, in the order of tables and pictures. Colours:
-- Okabe and Ito, 2008, as in report/colours.js, and paler ones of these.

local util = require 'trinity.base.util'

local owners = {}

owners.list = {
  { key = 'weights', name = 'weights', colour = '#56B4E9' },
  { key = 'optimizer', name = 'optimizer state', colour = '#CC79A7' },
  { key = 'gradients', name = 'gradients', colour = '#D55E00' },
  { key = 'activations', name = 'activations', colour = '#F0E442' },
  { key = 'activation_gradients', name = 'gradients of activations', colour = '#E69F00' },
  { key = 'delayed', name = 'waiting for weight gradients', colour = '#B59A00' },
  { key = 'received', name = 'received', colour = '#009E73' },
  { key = 'gathered', name = 'gathered weights', colour = '#0072B2' },
  { key = 'workspace', name = 'workspace', colour = '#999999' },
  { key = 'framework', name = 'framework', colour = '#666666' },
}

--- Those that own anything of one of these peaks.
---@param peaks trinity.PeakBytes[]
---@return { key: string, name: string, colour: string }[]
function owners.of_any(peaks)
  local found = {}
  for _, owner in ipairs(owners.list) do
    local most = 0
    for _, peak in ipairs(peaks) do most = math.max(most, peak[owner.key] or 0) end
    if most > 0 then found[#found + 1] = owner end
  end
  return found
end

--- The sum over owners.
---@param peak trinity.PeakBytes
---@return number
function owners.sum(peak)
  local sum = 0
  for _, bytes in util.sorted_pairs(peak) do sum = sum + bytes end
  return sum
end

return owners
