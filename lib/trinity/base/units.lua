-- Parses readable numbers: 2.5M, 64Ki, 3,200, and for bytes 25GiB, 80 GB, 10Gbit/s, 3,200 Gbit/s.

local units = {}

local factors = { [''] = 1, k = 1e3, K = 1e3, M = 1e6, G = 1e9, T = 1e12,
  Ki = 1024, Mi = 1024 ^ 2, Gi = 1024 ^ 3, Ti = 1024 ^ 4 }

-- Units after the factor, in bytes.
local of_bytes = { B = 1, bit = 1 / 8 }
local sizes = { bytes = of_bytes, ['bytes/s'] = { B = 1, bit = 1 / 8, ['B/s'] = 1, ['bit/s'] = 1 / 8 } }

-- Names of numbers in each unit, for messages.
local texts = { bytes = 'bytes (500000, 80GB, 25GiB)', ['bytes/s'] = 'bytes a second (1e9, 25GB/s, 10Gbit/s)' }

--- Units of options: { NAME = name of a number in messages }.
units.texts = texts

--- Returns the number of a text, or nil. `unit`: its unit ('bytes', 'bytes/s'), which the text may contain.
function units.number(text, unit)
  local grouped = text:match '^%d+,[%d,]*' -- groups of three digits
  if grouped and grouped:gsub(',%d%d%d%f[%D]', ''):find '^%d%d?%d?$' then
    text = grouped:gsub(',', '') .. text:sub(#grouped + 1)
  end
  local digits, suffix = text:match '^([%d.eE+-]+) ?(.*)$'
  local value = digits and tonumber(digits)
  if not value then return nil end
  local factor, name = suffix:match '^([kKMGT]?i?)(.*)$'
  local size = name == '' and 1 or (sizes[unit] or {})[name]
  return factors[factor] and size and value * factors[factor] * size
end

return units
