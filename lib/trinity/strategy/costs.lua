-- Custom costs (option `cost` of trinity.problem and trinity.plan): a function, rows with seconds by operator or type
-- and device type, or a CSV file with such rows. Also counts the operators that they cover.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local csv = require 'trinity.base.csv'
local devices = require 'trinity.cluster.devices'
local options = require 'trinity.base.options'
local util = require 'trinity.base.util'

local costs = {}

local row = options.declare('trinity.CostRow', { kind = 'field',
  help = 'Time of operators that replaces the cost model, by name or, if no row has the name, by type.',
  { 'operator', 'string', help = 'name of one operator' },
  { 'type', 'string', help = 'type of operators, for example Conv or ConvGrad' },
  { 'device_type', 'string', otherwise = 'any', help = 'device type, at speed 1' },
  { 'time_s', 'number', least = 0, most = 1e6, needed = true, help = 'seconds of one execution' },
})

local columns = { operator = true, type = true, device_type = true, time_s = true }

--- Reads rows of a CSV file with the columns of trinity.CostRow; `place` is the position of a row for messages.
local function read(path)
  local found = csv.read(path, 'time_s')
  for _, of in ipairs(found) do
    local place = csv.place(path, of)
    for name in util.sorted_pairs(of) do
      if name ~= 'line' and not columns[name] then
        util.fail('%s: unknown column %s', util.shortened(path), util.unknown(name, util.sorted_keys(columns)))
      end
      if of[name] == '' then of[name] = nil end
    end
    of.time_s, of.line, of.place = csv.number(path, of, 'time_s'), nil, place
  end
  return found
end

--- Groups the rows by operator and type: { operator = { NAME = { DEVICE_TYPE or '' = time_s } }, type = likewise }.
local function by_key(owner, rows)
  local found = { operator = {}, type = {} }
  for i, given in ipairs(rows) do
    local place = given.place or ("%s: option 'cost': row %d"):format(owner, i)
    local of = util.merged(given)
    of.place = nil
    row:check(place, of)
    if (of.operator == nil) == (of.type == nil) then util.fail("%s: expected either 'operator' or 'type'", place) end
    local key = of.operator and 'operator' or 'type'
    local times = found[key][of[key]] or {}
    local device_type = of.device_type or ''
    if times[device_type] then
      util.fail('%s: expected one time of %s on %s, got a second', place, util.quoted(of[key]),
        of.device_type or 'any device')
    end
    times[device_type], found[key][of[key]] = of.time_s, times
  end
  return found
end

--- Raises an error for rows with operators or types that are not in the graph, or with unknown device types.
local function check_rows(owner, rows, graph, cluster)
  local names, types, kinds = {}, {}, util.set(devices.names())
  for i = 1, graph.operators do
    local op = graph:operator(i)
    names[op.name], types[op.type] = true, true
  end
  local of_cluster = {}
  for _, device in ipairs(cluster.devices) do kinds[device.type], of_cluster[device.type] = true, true end
  local applies = false
  for i, of in ipairs(rows) do
    applies = applies or of.device_type == nil or of_cluster[of.device_type]
    local place = of.place or ("%s: option 'cost': row %d"):format(owner, i)
    for field, known in util.sorted_pairs { operator = names, type = types, device_type = kinds } do
      if of[field] ~= nil and not known[of[field]] then
        util.fail("%s: %s: unknown %s", place, field == 'device_type' and field or ("graph '%s'"):format(graph.name),
          (field == 'device_type' and '' or field .. ' ') .. util.unknown(of[field], util.sorted_keys(known)))
      end
    end
  end
  if not applies then
    util.fail("%s: option 'cost': no row applies: expected one with device_type %s, or without", owner,
      table.concat(util.sorted_keys(of_cluster), ' or '))
  end
end

local function of_rows(owner, rows, graph, cluster)
  local times = by_key(owner, rows)
  check_rows(owner, rows, graph, cluster)
  return function(op, device)
    for _, found in ipairs { times.operator[op.name] or {}, times.type[op.type] or {} } do
      local time_s = found[device.type] or found['']
      if time_s then return time_s / device.speed end
    end
  end
end

--- Returns the cost function of option `cost`: a function, rows, or the path of a CSV file.
function costs.of(owner, cost, graph, cluster)
  if type(cost) == 'function' then return cost end
  if type(cost) ~= 'string' and type(cost) ~= 'table' or array.is_int32(cost) then
    check.wrong(owner, 'option', 'cost', cost, 'a function, a list of rows or the path of a CSV file')
  end
  return of_rows(owner, type(cost) == 'string' and read(cost) or cost, graph, cluster)
end

--- Returns the function that the engine calls with an operator's number. It fills `coverage` by device type: operators
--- that take time there, how many of them the cost function covers, and the others by type (by_model).
function costs.asked(owner, cost, graph, coverage)
  return function(i, device, default_s)
    local op = graph:operator(i)
    local time_s = cost(op, device, default_s)
    if time_s ~= nil and (type(time_s) ~= 'number' or not (time_s >= 0 and time_s < 1e6)) then
      util.fail("%s: the cost function at %s returned %s for the cost of operator '%s' on device '%s', expected "
        .. '0 or more seconds or nil%s', owner, util.function_place(cost), util.describe(time_s), op.name, device.name,
        type(time_s) == 'number' and time_s >= 1e6 and ', below 1e6' or '')
    end
    local of = coverage[device.type] or { operators = 0, covered = 0, by_model = {} }
    coverage[device.type] = of
    if time_s or default_s > 0 then of.operators = of.operators + 1 end
    if time_s then of.covered = of.covered + 1
    elseif default_s > 0 then of.by_model[op.type] = (of.by_model[op.type] or 0) + 1 end
    return time_s
  end
end

local shown_types = 6

--- Returns a text on the operators that custom costs cover; nil without custom costs.
function costs.text(problem)
  if not problem.cost_coverage then return nil end
  local parts, by_model = {}, {}
  for name, of in util.sorted_pairs(problem.cost_coverage) do
    parts[#parts + 1] = ('%d of %d operators on %s'):format(of.covered, of.operators, name)
    for kind, count in util.sorted_pairs(of.by_model) do by_model[kind] = math.max(by_model[kind] or 0, count) end
  end
  local rest = util.sorted_keys(by_model)
  table.sort(rest, function(a, b)
    if by_model[a] ~= by_model[b] then return by_model[a] > by_model[b] end
    return a < b
  end)
  local shown = { unpack(rest, 1, shown_types) }
  local named = util.map(shown, function(kind) return ('%s %d'):format(kind, by_model[kind]) end)
  if #rest > shown_types then named[#named + 1] = ('%d more types'):format(#rest - shown_types) end
  return ('own times of %s; by the cost model: %s'):format(table.concat(parts, ', '),
    table.concat(named, ', ') .. (#named > 0 and ', ' or '') .. 'messages and operators that a strategy adds')
end

return costs
