-- trinity fidelity collectives: what cluster:collective says of systems whose collectives others measured. A system's
-- words become a cluster (collective_systems.lua), and its collectives are those that strategies on it would pay.

local constants = require 'trinity.cluster.collective_constants'
local core = require 'trinity.core'
local csv = require 'trinity.fidelity.csv'
local fit = require 'trinity.fidelity.fit'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local picture = require 'trinity.fidelity.picture'
local systems = require 'trinity.fidelity.collective_systems'
local tables = require 'trinity.fidelity.collective_tables'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local collectives = {
  help = 'measured all-reduces and others',
  options = {
    rows = { default = '',
      help = 'table of measurements, or of what is asked (CSV), or a folder of vTrain or Galvatron' },
    also = { default = '', help = 'another table or folder, whose rows come behind' },
    keep_library = { default = false,
      help = 'fits the constants of wires and memories; those of the library, which clusters have, stay' },
    fit = { default = false, help = 'fits the constants to the rows and prints these' },
    cross_validate = { default = false, help = 'fits without each system in turn, and tells that one' },
    record = { default = '', help = 'with --cross_validate: the file for errors of runs' },
    save = { default = '', help = 'with --fit: the file for the constants' },
    picture = { default = '', help = 'told against measured times from 1 MiB up, as PATH.svg and PATH.png' },
  },
}

--- Where errors are counted from, by the bar of 1 MiB; smaller ones are mostly a call.
local least_bytes = 2 ^ 20
local noise, most_steps = 0.1, 30

local kinds = { all_reduce = 'all_reduce', allreduce = 'all_reduce', all_gather = 'all_gather',
  allgather = 'all_gather', reduce_scatter = 'reduce_scatter', reducescatter = 'reduce_scatter',
  all_to_all = 'all_to_all', alltoall = 'all_to_all', all2all = 'all_to_all', broadcast = 'broadcast',
  reduce = 'broadcast', -- the same backwards
  sendrecv = 'broadcast' } -- between neighbours
local whole_column = { 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes', 'system', 'algorithm', 'run',
  'time_us', 'algbw_GBps', 'busbw_GBps' }

--- Bytes that pass a ring's link, in parts of the array (NVIDIA/nccl-tests, doc/PERFORMANCE.md).
local function bus_factor(kind, members)
  if kind == 'all_reduce' then return 2 * (members - 1) / members end
  return kind == 'broadcast' and 1 or (members - 1) / members
end

--- Seconds that were measured; nil where the row has none.
local function measured_s(path, row)
  local function number(column) return csv.number(path, row, column, 0) end
  if number 'time_us' > 0 then return number 'time_us' * 1e-6 end
  if number 'busbw_GBps' > 0 then
    return bus_factor(row.kind, row.members) * row.size / (number 'busbw_GBps' * 1e9)
  end
  if number 'algbw_GBps' > 0 then return row.size / (number 'algbw_GBps' * 1e9) end
end

--- The algorithm that a row names; automatic where the library chose.
local function algorithm_of(words, size)
  local lower = words:lower()
  if lower:find('sharp', 1, true) or lower:find('collnet', 1, true) then return 'in_network' end
  if lower:find('take as ring', 1, true) or lower == 'ring' or lower:find '^ring %(' then return 'ring' end
  if lower:find 'ring.*nvls' then return 'automatic' end -- both, by size
  if lower:find('nvls', 1, true) then return size >= 2 * 2 ^ 20 and 'multicast' or 'automatic' end
  return lower:find('tree', 1, true) and 'tree' or 'automatic'
end

--- Rows as they are asked: with found (nil and a reason where a system is not described), kind, algorithm, size.
local function read(path)
  local rows = tables.read(path) or csv.read(path, 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes')
  for _, row in ipairs(rows) do
    for _, column in ipairs(whole_column) do row[column] = row[column] or '' end
    row.members = csv.number(path, row, 'gpus')
    local nodes = csv.number(path, row, 'nodes')
    row.size = csv.number(path, row, 'bytes')
    if row.members < 1 or row.members % 1 ~= 0 or nodes < 1 or nodes % 1 ~= 0 or row.members > 65536 then
      csv.refuse(path, row, "expected whole numbers 'gpus' (at most 65536) and 'nodes', got %s and %s", row.gpus,
        row.nodes)
    end
    if row.size < 0 or row.size > 2 ^ 50 then
      csv.refuse(path, row, "column 'bytes': expected from 0 to 2^50, got %s", row.bytes)
    end
    local word = row.collective:lower():gsub('[ (].*', ''):gsub('%-', '_')
    row.kind, row.algorithm_asked = kinds[word], algorithm_of(row.algorithm, row.size)
    if row.kind then row.found, row.why = systems.describe(row)
    else row.why = 'unknown collective ' .. util.quoted(row.collective) end
    row.measured_s = row.kind and measured_s(path, row)
    row.pair = word == 'sendrecv'
    row.trap = row.system:find('(trap)', 1, true) ~= nil
  end
  return rows
end

--- A function from rows to what the engine says of them: { predicted_s, algorithm }.
local function teller(values)
  local clusters = {}
  local function cluster_of(row)
    local key = table.concat({ row.gpus, row.nodes, row.inside, row.between, row.system,
      tostring(row.found.in_network) }, '|')
    clusters[key] = clusters[key] or model.cluster(systems.cluster(row.found, values), { constants = 'data_sheet' })
    return clusters[key]
  end
  return function(row)
    local members = {}
    for i = 1, row.pair and math.min(2, row.members) or row.members do members[i] = i end
    local cluster = cluster_of(row)
    local query = { kind = row.kind, algorithm = row.algorithm_asked, devices = members, bytes = row.size }
    local ok, cost = pcall(cluster.collective, cluster, query)
    if not ok then -- switches that the row names but its system has not
      query.algorithm = 'automatic'
      cost = cluster:collective(query)
    end
    return { predicted_s = cost.time_s, algorithm = cost.algorithm }
  end
end

--- Rows that errors are counted over.
local function scored(row)
  return row.found ~= nil and row.measured_s ~= nil and row.size >= least_bytes and not row.trap
end

--- Constants fitted to the scored rows for which serves(row); those of the library stay with keep_library.
local function fitted_to(rows, serves, keep_library)
  local used = {}
  for _, row in ipairs(rows) do if scored(row) and serves(row) then used[#used + 1] = row end end
  if #used == 0 then util.fail('no row to fit to: expected measured ones from 1 MiB up whose links are stated') end
  local kept, moved = keep_library and constants.library() or {}, {}
  for _, one in ipairs(constants.list) do if not kept[one.name] then moved[#moved + 1] = one end end
  local found = fit.constants(moved, function(values)
    local tell, errors = teller(util.merged(kept, values)), {}
    for i, row in ipairs(used) do errors[i] = math.log(tell(row).predicted_s / row.measured_s) end
    return errors
  end, noise, most_steps)
  return util.merged(kept, found), used
end

local function runs_of(rows)
  local names, seen = {}, {}
  for _, row in ipairs(rows) do
    if not seen[row.run] then
      seen[row.run] = true
      names[#names + 1] = row.run
    end
  end
  return names
end

--- The file that collective_constants.lua reads.
local function fitted_file(values, used, keep_library)
  local lines = { '-- Fitted by `trinity fidelity collectives --fit --save`: values by name (collective_constants.lua',
    '-- has units and meanings), and the runs that they were fitted to.', 'return {', '  runs = {' }
  if keep_library then
    lines[2] = lines[2] .. ' Those of the library'
    table.insert(lines, 3, '-- are of a fit before, and were kept (--keep_library).')
  end
  for _, name in ipairs(runs_of(used)) do lines[#lines + 1] = ('    %q,'):format(name) end
  lines[#lines + 1] = '  },\n  values = {'
  for _, one in ipairs(constants.list) do lines[#lines + 1] = ('    %s = %.4g,'):format(one.name, values[one.name]) end
  return (table.concat(lines, '\n') .. '\n  },\n}\n'):gsub('"', "'")
end

--- Mean and worst error of runs, in order: { run, rows, mean, worst, signed }.
local function errors_by_run(rows, told)
  local by, order = {}, {}
  for i, row in ipairs(rows) do
    if scored(row) then
      local entry = by[row.run]
      if not entry then
        entry = { run = row.run, system = row.system, rows = 0, sum = 0, worst = 0, signed = 0 }
        by[row.run], order[#order + 1] = entry, entry
      end
      local e = told[i].predicted_s / row.measured_s - 1
      entry.rows, entry.sum, entry.signed = entry.rows + 1, entry.sum + math.abs(e), entry.signed + e
      entry.worst = math.max(entry.worst, math.abs(e))
    end
  end
  return order
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

local function line_of(entry)
  return { entry.run, ('%d'):format(entry.rows), percent(entry.sum / entry.rows), percent(entry.signed / entry.rows),
    percent(entry.worst) }
end

local function total_of(name, entries)
  local all = { run = name, rows = 0, sum = 0, signed = 0, worst = 0 }
  for _, entry in ipairs(entries) do
    all.rows, all.sum, all.signed = all.rows + entry.rows, all.sum + entry.sum, all.signed + entry.signed
    all.worst = math.max(all.worst, entry.worst)
  end
  return all
end

--- Prints runs under a heading, with what they come to together.
local function print_runs(heading, entries)
  if #entries == 0 then return end
  local lines = util.map(entries, line_of)
  lines[#lines + 1] = line_of(total_of('all', entries))
  print(heading)
  print(text.format_table({ 'run', 'rows', 'mean error', 'mean, signed', 'worst' }, lines))
  print ''
end

local function print_others(rows)
  local small, traps, unstated, asked = 0, 0, 0, 0
  for _, row in ipairs(rows) do
    if not row.found then unstated = unstated + 1
    elseif row.trap then traps = traps + 1
    elseif not row.measured_s then asked = asked + 1
    elseif row.size < least_bytes then small = small + 1 end
  end
  print(('not counted: %d rows below 1 MiB, %d of systems marked as a trap, %d whose links are not stated, %d without '
    .. 'a measurement'):format(small, traps, unstated, asked))
end

local function tell_all(rows, values)
  local tell = teller(values)
  return util.map(rows, function(row) return row.found and tell(row) or { why = row.why } end)
end

--- Draws counted rows by kind of GPU.
local function draw(path, rows, told)
  local points = {}
  for i, row in ipairs(rows) do
    if scored(row) then
      points[#points + 1] = { group = row.found.device or 'others', given = row.measured_s, told = told[i].predicted_s }
    end
  end
  picture.draw(path, points, 'seconds', true)
end

local function show(rows, as_json, path)
  local values, fitted = constants.fitted()
  local told, served = tell_all(rows, values), {}
  if as_json then return print(json.encode { rows = told }) end
  for _, run in ipairs(fitted.runs) do served[run] = true end
  local entries, groups = errors_by_run(rows, told), { [true] = {}, [false] = {} }
  for _, entry in ipairs(entries) do table.insert(groups[served[entry.run] == true], entry) end
  print_runs('runs that the constants were fitted to, from 1 MiB up', groups[true])
  print_runs('runs that are left out, from 1 MiB up', groups[false])
  print_others(rows)
  if path ~= '' then draw(path, rows, told) end
end

--- The file that the manual's table is of: errors of runs, mean and worst, told by the fitted constants and left out.
local function record(fitted, left)
  local lines = { '-- Written by `trinity fidelity collectives --cross_validate --record FILE`: errors of runs'
      .. ' from 1 MiB up',
    '-- (mean, worst of told over measured, less one), by the fitted constants, and by those fitted without the run.',
    'return {' }
  local function pair(entry) return ('{ %.6f, %.6f }'):format(entry.sum / entry.rows, entry.worst) end
  for i, entry in ipairs(fitted) do
    lines[#lines + 1] = ("  { run = '%s', rows = %d, fitted = %s, left_out = %s },"):format(entry.run, entry.rows,
      pair(entry), pair(left[i]))
  end
  return table.concat(lines, '\n') .. '\n}\n'
end

--- Every run told by constants that were fitted without it.
local function leave_each_out(rows, keep_library, path)
  local used = {}
  for _, row in ipairs(rows) do if scored(row) then used[#used + 1] = row end end
  local entries, stopped = fit.each(runs_of(used), 'runs', function(run)
    local values = fitted_to(rows, function(row) return row.run ~= run end, keep_library)
    local own = {}
    for _, row in ipairs(rows) do if row.run == run then own[#own + 1] = row end end
    return errors_by_run(own, tell_all(own, values))[1]
  end)
  print_runs('every run told by constants that were fitted to the others, from 1 MiB up', entries)
  if path == '' or stopped then return end
  core.write_file(path, record(errors_by_run(used, tell_all(used, (constants.fitted()))), entries))
end

local function show_fit(rows, options)
  local used
  local values = fit.keeping(function()
    local found
    found, used = fitted_to(rows, function() return true end, options.keep_library)
    return found
  end)
  local written = fitted_file(values, used, options.keep_library)
  if options.save ~= '' then core.write_file(options.save, written) else io.write(written) end
  print_runs('runs that the constants were fitted to, from 1 MiB up', errors_by_run(used, tell_all(used, values)))
end

function collectives.run(options)
  if options.rows == '' then
    util.fail_usage("trinity fidelity collectives: option '--rows' is missing: a table of measurements (CSV)")
  end
  local rows = read(options.rows)
  if options.also ~= '' then for _, row in ipairs(read(options.also)) do rows[#rows + 1] = row end end
  if options.fit then return show_fit(rows, options) end
  if options.cross_validate then return leave_each_out(rows, options.keep_library, options.record) end
  return show(rows, options.json, options.picture)
end

--- The constants of this comparison with their values.
function collectives.constants()
  local values = constants.fitted()
  return util.map(constants.list, function(one) return util.merged(one, { value = values[one.name] }) end)
end

return collectives
