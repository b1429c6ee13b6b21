-- trinity study fidelity collectives: words of systems become clusters, whose collectives the engine prices.

local collectives = require 'studies.fidelity.collectives'
local constants = require 'trinity.cluster.collective_constants'
local core = require 'trinity.core'
local solver = require 'studies.fidelity.fitted'
local json = require 'trinity.base.json'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local head = 'run,system,gpus,nodes,inside,between,collective,bytes,time_us,busbw_GBps,algorithm\n'
local function table_of(...)
  local path = temporary '.csv'
  core.write_file(path, head .. table.concat({ ... }, '\n') .. '\n')
  return path
end

local function row(changes)
  local fields = { run = 'r', system = '8 x H100', gpus = '8', nodes = '1', inside = '"NVSwitch, NVLink4 x18"', between = '',
    collective = 'all_reduce', bytes = '1073741824', time_us = '', busbw_GBps = '', algorithm = '' }
  local list = {}
  for i, name in ipairs { 'run', 'system', 'gpus', 'nodes', 'inside', 'between', 'collective', 'bytes', 'time_us',
    'busbw_GBps', 'algorithm' } do list[i] = (changes or {})[name] or fields[name] end
  return table.concat(list, ',')
end

local function predicted(...)
  local output = trinity_says(("study fidelity collectives --json --quiet --rows '%s'"):format(table_of(...)), 0)
  return json.decode(output:match '{.*}').rows
end

local values = constants.fitted()

local function cluster_of(words)
  local found, why = collectives.describe(words)
  if not found then return nil, why end
  return trinity.cluster(collectives.cluster(found, values)), found
end

local function described(changes)
  local words = { gpus = 8, nodes = 1, inside = '', between = '', system = '', algorithm = '' }
  for name, value in trinity.system.sorted_pairs(changes) do words[name] = value end
  return cluster_of(words)
end

--- Bytes that a GPU copies per second in its memory.
local function copy_bandwidth(device, share)
  return (share or values.copy_share) * trinity.devices[device].memory_bandwidth_bytes_per_s / 2
end

describe('words of a system', function()
  it('says what is not stated', function()
    for words, reason in trinity.system.sorted_pairs { [''] = 'links inside are not stated', carrier_pigeons = 'unknown links inside',
      ['xGMI full mesh'] = 'rate of an xGMI link is not stated' } do
      local cluster, why = described { inside = words }
      expect(cluster):equals(nil)
      expect(why):matches(reason)
    end
    expect(select(2, described { gpus = 2, nodes = 2 })):matches 'links between nodes are not stated'
  end)
end)

describe('tables of others', function()
  local folder = temporary()
  local function write(name, content)
    os.execute(("mkdir -p '%s'"):format(folder))
    core.write_file(folder .. '/' .. name, content)
  end
  it('are rows: of vTrain the powers of two, in place', function()
    write('AR_GPU2_1M_1024M_LUT', 'size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n'
      .. '1048576,262144,float,44210,23.72,45100,23.25\n2097152,524288,float,53430,39.25,51130,41.01\n'
      .. '3145728,786432,float,56270,55.90,54160,58.08\n')
    local rows = {}
    for i, one in ipairs(collectives.read { rows = folder, also = {} }) do
      rows[i] = ('%s %s %s %s %s'):format(one.run, one.collective, one.gpus, one.bytes, one.time_us)
    end
    expect(table.concat(rows, '; ')):equals('vtrain_a100 all_reduce 2 1048576 45.1; vtrain_a100 all_reduce 2 2097152 51.13')
    local told = json.decode(trinity_says(("study fidelity collectives --json --quiet --rows '%s' --also '%s'"):format(folder,
      table_of(row())), 0)).rows
    expect(#told):equals(3)
    for _, one in ipairs(told) do expect(one.predicted_s > 0):truthy() end
    core.remove_tree(folder)
  end)
  it('are refused where a folder has none', function()
    local empty = temporary()
    os.execute(("mkdir '%s'"):format(empty))
    trinity_says(("study fidelity collectives --rows '%s'"):format(empty), 1, 'no measured collectives: expected files')
    core.remove_tree(empty)
  end)
end)

describe('trinity study fidelity collectives', function()
  it('predicts rows in their order, with or without measurements', function()
    local rows = predicted(row { bytes = '16777216' }, row { inside = '"?"', system = '?' },
      row { algorithm = 'Ring (NVLS off)' }, row { algorithm = 'NVLS' }, row { collective = 'gather' },
      row { gpus = '2', nodes = '2', inside = '', between = '1 x 200 Gbit/s Slingshot a GPU' })
    expect(#rows):equals(6)
    expect(rows[2].predicted_s):equals(nil)
    expect(rows[2].why):matches 'unknown links inside'
    expect(rows[3].algorithm):equals 'ring'
    expect(rows[4].algorithm):equals 'multicast'
    expect(rows[4].predicted_s < rows[3].predicted_s):truthy()
    expect(rows[5].why):matches "unknown collective 'gather'"
    expect(rows[6].predicted_s > 2 ^ 30 / 25e9):truthy()
  end)
  it('has constants with units and meanings, and values within their bounds', function()
    for _, one in ipairs(constants.list) do
      expect(one.least <= values[one.name] and values[one.name] <= one.most):truthy()
      expect(#one.unit > 0 and #one.meaning > 0):truthy()
    end
  end)
  it('refuses tables that it cannot read, in one line', function()
    local function refuses(path, pattern)
      trinity_says(("study fidelity collectives --rows '%s'"):format(path), 1, pattern)
    end
    refuses(table_of(row { gpus = 'eight' }), "line 2: column 'gpus': expected a number, got string 'eight'")
    refuses(table_of(row(), row { gpus = '0' }), "line 3: expected whole numbers 'gpus'")
    refuses(table_of(row { bytes = '-1' }), "column 'bytes': expected from 0 to 2%^50, got %-1")
    local path = temporary '.csv'
    core.write_file(path, 'gpus,nodes,inside,betwen,collective,bytes\n')
    refuses(path, "column 'between' is missing, did you mean 'betwen'")
    refuses(table_of() .. '.missing', 'missing')
  end)
  it('fits constants to the rows of a table, which tell these then', function()
    local rows = {}
    for size = 22, 34, 2 do rows[#rows + 1] = row { bytes = ('%d'):format(2 ^ size), busbw_GBps = '300', algorithm = 'Ring' } end
    local path, saved = table_of(unpack(rows)), temporary()
    trinity_says(("study fidelity collectives --fit --rows '%s' --save '%s'"):format(path, saved), 0, 'rows that the constants')
    local kept = dofile(saved)
    expect(json.read(saved .. '.json').rows.collectives[1]):equals 'r'
    local fitted = kept.sources.collectives.wires
    local function reached(v) -- by rings, of the line rate: 300 of 450 GB/s were measured, against a start of 0.83
      return 1.75 / (1.75 / v.nvlink4_share + 450e9 / 8 / copy_bandwidth('h100', v.copy_share))
    end
    expect(reached(fitted) < 0.78):truthy()
    trinity_says(("study fidelity collectives --fit --parameters nvlink4 --rows '%s' --save '%s'"):format(path, saved), 0)
    local wires = dofile(saved).sources.collectives.wires
    for name, value in trinity.system.sorted_pairs(constants.library()) do expect(wires[name] / value):near(1, 1e-3) end
    expect(wires.nvlink4_share < values.nvlink4_share):truthy()
  end)
end)

describe('runs that are left out', function()
  it('are recorded next to predictions by the fitted constants, and not predicted by their own rows', function()
    local rows, record = {}, temporary '.lua'
    for _, run in ipairs { 'slow', 'fast' } do
      for size = 26, 32, 2 do
        rows[#rows + 1] = row { run = run, bytes = ('%d'):format(2 ^ size), algorithm = 'Ring',
          busbw_GBps = run == 'slow' and '320' or '400' }
      end
    end
    trinity_says(("study fidelity collectives --cross_validate --rows '%s' --save '%s'"):format(table_of(unpack(rows)), record), 0,
      'predicted by constants that were fitted to the others')
    local found = json.read(record .. '.json').errors.collectives
    for _, run in ipairs { 'slow', 'fast' } do
      expect(found[run].rows):equals(4)
      expect(found[run].left_out.mean > 0.05):truthy()
    end
  end)
end)

describe('the fit', function()
  --- Fits v.a + v.b i to measured(i), i from 1 to 20, along its slopes at the last values, `rounds` times.
  local function fitted(list, noise, rounds, measured)
    local v = { a = list[1].start, b = list[2].start }
    local function errors()
      return util.listed(20, function(i)
        local now = v.a + v.b * i
        return { weight = 1, log = math.log(now / measured(i)), slopes = { a = v.a / now, b = v.b * i / now } }
      end)
    end
    for _ = 1, rounds do
      v = solver.solution(util.map(list, function(one) return util.merged(one, { from = v[one.id] }) end), errors(), noise)
    end
    return v
  end
  it('finds constants of exact data, whatever a disturbed row says', function()
    local list = { { id = 'a', start = 1, least = 0.1, most = 100, spread = 3 },
      { id = 'b', start = 1, least = 0.1, most = 100, spread = 3 } }
    local found = fitted(list, 0.01, 20, function(i) return (5 + 0.7 * i) * (i == 7 and 10 or 1) end)
    expect(found.a):near(5, 0.2)
    expect(found.b):near(0.7, 0.02)
  end)
  it('finds the best of others where one stands at its bound', function()
    -- 2 i + 3 with 1 for 3 at most, so that what i is multiplied by is more than 2.
    local list = { { id = 'a', start = 0.9, least = 0.1, most = 1, spread = 100 },
      { id = 'b', start = 1, least = 0.1, most = 100, spread = 100 } }
    local found = fitted(list, 0.5, 20, function(i) return 3 + 2 * i end)
    local function sum(v)
      local total = 0
      for i = 1, 20 do total = total + 2 * (math.sqrt(1 + (math.log((v.a + v.b * i) / (3 + 2 * i)) / 0.5) ^ 2) - 1) end
      return total
    end
    expect(found.a):near(1, 1e-6)
    for _, b in ipairs { found.b * 0.99, found.b * 1.01 } do expect(sum { a = 1, b = b } > sum(found)):truthy() end
  end)
end)
