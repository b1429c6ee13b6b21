-- trinity.profile.file: reads and checks profiles, JSON files of format 'trinity-profile'. Their fields: classes
-- trinity.Profile, ProfileKind and ProfileLink (trinity help --markdown).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local file = { format = 'trinity-profile', version = 2 }

-- Rules of values: 'text', 'number' (from 0), 'positive', an object by its fields, or { each = rule of every entry }.
local residuals = { count = 'number', median = 'number', mean = 'number', largest = 'number' }
local efficiencies = { compute_efficiency = 'positive', memory_efficiency = 'positive', contention = 'positive' }
local rules = { format = 'text', version = 'number', trinity = 'text', date = 'text',
  machine = { processor = 'text', cores = 'number', memory_bytes = 'number' },
  libraries = { torch = 'text', threads = 'number' },
  model = { name = 'text', batch_size = 'number', operators = 'number', fingerprint = 'text' },
  settings = { steps = 'number', warm_up = 'number', copies = 'number' },
  devices = { each = { name = 'text', kind = 'text', speed = 'positive' } },
  kinds = { each = { memory_bytes = 'positive', peak_flops_per_s = 'positive',
    memory_bandwidth_bytes_per_s = 'positive', launch_s = 'number', compute_efficiency = 'positive',
    memory_efficiency = 'positive', contention = 'positive', operators = { each = efficiencies },
    residuals = residuals, operator_time_s = { each = 'number' } } },
  links = { each = { from = 'text', to = 'text', bytes = { each = 'number' }, time_s = { each = 'number' },
    latency_s = 'number', bandwidth_bytes_per_s = 'positive', residuals = residuals } },
}
local optional = { [efficiencies] = true } -- objects whose fields may be missing
local expected = { text = 'a text', number = 'a number from 0', positive = 'more than 0' }

local most_devices = 256

local function is_valid(rule, value)
  if rule == 'text' then return type(value) == 'string' end
  return type(value) == 'number' and value < math.huge and (value > 0 or rule == 'number' and value == 0)
end

local function check_value(where, rule, value)
  if expected[rule] then
    if is_valid(rule, value) then return end
    util.fail('%s: expected %s, got %s', where, expected[rule], util.describe(value))
  end
  if type(value) ~= 'table' then util.fail('%s: expected a list or an object, got %s', where, util.describe(value)) end
  if rule.each then
    for key, entry in util.sorted_pairs(value) do
      local name = type(key) == 'number' and tostring(key) or util.quoted(util.shortened(key, 40))
      check_value(('%s: %s'):format(where, name), rule.each, entry)
    end
    return
  end
  util.refuse_unknown(where, value, rule, 'field')
  for name, inner in util.sorted_pairs(rule) do
    if value[name] ~= nil then
      check_value((expected[inner] and "%s: field '%s'" or '%s: %s'):format(where, name), inner, value[name])
    elseif not optional[rule] then
      util.fail("%s: field '%s' is missing", where, name)
    end
  end
end

local function check_devices(source, profile)
  local known = {}
  if #profile.devices < 1 or #profile.devices > most_devices then
    util.fail('%s: devices: expected 1 to %d, got %d', source, most_devices, #profile.devices)
  end
  for i, device in ipairs(profile.devices) do
    local where = ('%s: device %d'):format(source, i)
    if known[device.name] then util.fail("%s: expected different names, got '%s' twice", where,
      util.shortened(device.name, 40)) end
    if not profile.kinds[device.kind] then
      util.fail("%s: kind '%s' is not among kinds", where, util.shortened(device.kind, 40))
    end
    known[device.name] = true
  end
  return known
end

local function check_links(source, profile, known)
  local there = {}
  for i, link in ipairs(profile.links) do
    local where = ('%s: link %d'):format(source, i)
    for _, name in ipairs { 'from', 'to' } do
      if not known[link[name]] then
        util.fail("%s: field '%s': no device '%s'", where, name, util.shortened(link[name], 40))
      end
    end
    for _, name in ipairs { 'bytes', 'time_s' } do
      check.list(where, 'field', name, link[name], 'number')
    end
    if #link.bytes ~= #link.time_s then util.fail('%s: expected equal numbers of sizes and times, got %d and %d',
      where, #link.bytes, #link.time_s) end
    there[link.from .. ' ' .. link.to] = true
  end
  for _, a in ipairs(profile.devices) do
    for _, b in ipairs(profile.devices) do
      if a ~= b and not there[a.name .. ' ' .. b.name] then
        util.fail("%s: expected a link from '%s' to '%s', got none", source, util.shortened(a.name, 40),
          util.shortened(b.name, 40))
      end
    end
  end
end

--- Checks a profile; `source` begins every message.
function file.check(source, profile)
  if type(profile) ~= 'table' or profile.format ~= file.format then
    util.fail("%s: expected a profile (field 'format' = '%s'); trinity execute --profile makes profiles", source,
      file.format)
  end
  if profile.version ~= file.version then
    util.fail('%s: got a profile of format version %s, expected version %d; profile again', source,
      util.shortened(tostring(profile.version), 20), file.version)
  end
  check_value(source, rules, profile)
  check_links(source, profile, check_devices(source, profile))
  return profile
end

--- Reads and checks a profile. Warns if another version of trinity made it.
function file.read(path)
  local profile = file.check(path, json.decode(util.read_file(path), path))
  if profile.trinity ~= core.version then
    require('trinity.base.progress').warn(('%s was made by trinity %s, this is %s: kernel times may differ')
      :format(path, util.shortened(profile.trinity, 20), core.version))
  end
  return profile
end

function file.write(path, profile)
  util.write_file('profile:save', path, core.to_json(util.picked(profile, util.sorted_keys(rules))) .. '\n')
end

return file
