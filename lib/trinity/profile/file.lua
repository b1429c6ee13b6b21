-- trinity.profile.file: reads and checks profiles, JSON files of format 'trinity-profile'. Their fields: classes
-- trinity.Profile, ProfileKind and ProfileLink (trinity help --markdown).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local file = { format = 'trinity-profile', version = 2 }

local residual_fields = { count = 'number', median = 'number', mean = 'number', largest = 'number' }
local fields = {
  profile = { format = 'string', version = 'number', trinity = 'string', date = 'string', machine = 'table',
    libraries = 'table', model = 'table', settings = 'table', devices = 'table', kinds = 'table', links = 'table' },
  machine = { processor = 'string', cores = 'number', memory_bytes = 'number' },
  libraries = { torch = 'string', threads = 'number' },
  model = { name = 'string', batch_size = 'number', operators = 'number', fingerprint = 'string' },
  settings = { steps = 'number', warm_up = 'number', copies = 'number' },
  device = { name = 'string', kind = 'string', speed = 'number' },
  kind = { memory_bytes = 'number', peak_flops_per_s = 'number',
    memory_bandwidth_bytes_per_s = 'number', launch_s = 'number', compute_efficiency = 'number',
    memory_efficiency = 'number', operators = 'table', residuals = 'table', operator_time_s = 'table',
    contention = 'number' },
  link = { from = 'string', to = 'string', bytes = 'table', time_s = 'table', latency_s = 'number',
    bandwidth_bytes_per_s = 'number', residuals = 'table' },
}

local most_devices = 256

--- Checks the types of a table's fields; numbers must be finite and not negative.
local function check_table(where, value, rules)
  if type(value) ~= 'table' then util.fail('%s: expected an object, got %s', where, util.describe(value)) end
  util.refuse_unknown(where, value, rules, 'field')
  for name, kind in util.sorted_pairs(rules) do
    local got = value[name]
    if got == nil then util.fail("%s: field '%s' is missing", where, name) end
    if type(got) ~= kind or (kind == 'number' and not (got >= 0 and got < math.huge)) then
      local expected = kind == 'number' and 'a number from 0' or kind == 'table' and 'a list or an object' or 'a text'
      util.fail("%s: field '%s': expected %s, got %s", where, name, expected, util.describe(got))
    end
  end
  return value
end

local function check_positive(where, value, ...)
  for _, name in ipairs { ... } do
    if not (value[name] > 0) then util.fail("%s: field '%s': expected more than 0", where, name) end
  end
end

local function check_efficiencies(where, operators)
  for key, of in util.sorted_pairs(operators) do
    local place = ("%s: operators: '%s'"):format(where, util.shortened(tostring(key), 40))
    if type(of) ~= 'table' then util.fail('%s: expected an object, got %s', place, util.describe(of)) end
    util.refuse_unknown(place, of, { compute_efficiency = true, memory_efficiency = true, contention = true }, 'field')
    for name, value in util.sorted_pairs(of) do
      if type(value) ~= 'number' or not (value > 0 and value < 1e9) then
        util.fail("%s: field '%s': expected a positive number, got %s", place, name, util.describe(value))
      end
    end
  end
end

local function check_times(where, times)
  for name, value in util.sorted_pairs(times) do
    if type(name) ~= 'string' or type(value) ~= 'number' or not (value >= 0 and value < 1e6) then
      util.fail("%s: operator_time_s: '%s': expected seconds from 0, got %s", where,
        util.shortened(tostring(name), 60), util.describe(value))
    end
  end
end

local function check_kinds(source, kinds)
  for name, kind in util.sorted_pairs(kinds) do
    local where = ("%s: kinds: '%s'"):format(source, util.shortened(tostring(name), 40))
    check_table(where, kind, fields.kind)
    check_positive(where, kind, 'memory_bytes', 'peak_flops_per_s', 'memory_bandwidth_bytes_per_s',
      'compute_efficiency', 'memory_efficiency', 'contention')
    check_table(where .. ': residuals', kind.residuals, residual_fields)
    check_efficiencies(where, kind.operators)
    check_times(where, kind.operator_time_s)
  end
end

local function check_devices(source, profile)
  local known = {}
  if #profile.devices < 1 or #profile.devices > most_devices then
    util.fail('%s: devices: expected 1 to %d, got %d', source, most_devices, #profile.devices)
  end
  for i, device in ipairs(profile.devices) do
    local where = ('%s: device %d'):format(source, i)
    check_table(where, device, fields.device)
    check_positive(where, device, 'speed')
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
    check_table(where, link, fields.link)
    check_positive(where, link, 'bandwidth_bytes_per_s')
    check_table(where .. ': residuals', link.residuals, residual_fields)
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
  check_table(source, profile, fields.profile)
  for _, name in ipairs { 'machine', 'libraries', 'model', 'settings' } do
    check_table(('%s: %s'):format(source, name), profile[name], fields[name])
  end
  check_kinds(source, profile.kinds)
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
  local plain = {}
  for name in util.sorted_pairs(fields.profile) do plain[name] = profile[name] end
  util.write_file('profile:save', path, core.to_json(plain) .. '\n')
end

return file
