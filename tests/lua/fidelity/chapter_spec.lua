-- The chapter "how far to trust it" (lib/trinity/manual/trust.md): its tables are what the commands say.

local core = require 'trinity.core'
local csv = require 'trinity.fidelity.csv'
local errors = require 'trinity.fidelity.errors'
local json = require 'trinity.base.json'
local published_constants = require 'trinity.fidelity.published_constants'
local published_row = require 'trinity.fidelity.published_row'
local summary = require 'trinity.fidelity.summary'
local util = require 'trinity.base.util'
local vtrain_rows = require 'trinity.fidelity.vtrain_rows'

local chapter = core.read_file(root .. '/lib/trinity/manual/trust.md')

--- That a line, or what begins one, stands in the chapter.
local function expect_line(line)
  if not chapter:find('\n' .. line, 1, true) then error(('the chapter lacks the line\n%s'):format(line), 0) end
end

--- That words stand in the chapter, lines broken somehow.
local function expect_words(words, ...)
  words = words:format(...)
  if not chapter:gsub('%s+', ' '):find(words, 1, true) then error(('the chapter lacks the words\n%s'):format(words), 0) end
end

local function percent(x) return ('%.1f %%'):format(100 * x) end

--- Rows of the errors that were recorded, by key, in the order of keys.
local function grouped(key)
  local by = {}
  for _, one in ipairs(published_constants.errors()) do
    local name = key(one)
    if name then
      by[name] = by[name] or {}
      table.insert(by[name], one)
    end
  end
  return by
end

local function of(list, field) return summary.of(util.map(list, function(one) return one[field] end)) end

local function line_of(name, list)
  local cells = {}
  for _, field in ipairs { 'fitted', 'left_out' } do
    local s = of(list, field)
    cells[#cells + 1] = ('%s, %s, %s'):format(percent(s.mean), percent(s.median), percent(s.worst))
  end
  return ('| %s | %d | %s | %s |'):format(name, #list, cells[1], cells[2])
end

local function is_mixture(one) return one.group:find('mixtures', 1, true) ~= nil end

describe('published speeds in the manual', function()
  it('are those that the command recorded, group by group', function()
    local count = 0
    for name, list in util.sorted_pairs(grouped(function(one) return one.group end)) do
      expect_line(line_of(name, list))
      count = count + 1
    end
    expect(count > 8):truthy()
  end)
  it('are signed by network and release where experts are mixed', function()
    local by = grouped(function(one)
      return is_mixture(one) and ('%s | %s | %s'):format(one.network, one.group:match '^[^,]+', one.recent and 'from 26.06'
        or 'before') or nil
    end)
    for name, list in util.sorted_pairs(by) do
      expect_line(('| %s | %d | %s | %s |'):format(name, #list, summary.percent(of(list, 'fitted').signed),
        summary.percent(of(list, 'left_out').signed)))
    end
    expect(#util.sorted_keys(by) > 8):truthy()
  end)
  it('were recorded of all rows that the constants were fitted to', function()
    local recorded = {}
    for _, one in ipairs(published_constants.errors()) do recorded[one.id] = true end
    for _, id in ipairs(published_constants.fitted().rows) do
      if not recorded[id] then error(('no error of row %s is recorded'):format(id), 0) end
    end
    expect(#published_constants.fitted().rows > 100):truthy()
  end)
  it_shared('are what the command says of rows on at most 64 GPUs', function()
    local path, kept, lines, off = shared 'llm-published/throughput.csv', {}, {}, {}
    for _, one in ipairs(published_constants.errors()) do off[one.id] = one.fitted end
    for _, row in ipairs(csv.read(path, 'id')) do kept[row.id] = tonumber(row.gpus) <= 64 and off[row.id] ~= nil end
    for line in core.read_file(path):gmatch '[^\n]+' do
      if #lines == 0 or kept[line:match '^[^,]+'] then lines[#lines + 1] = line end
    end
    local some = temporary '.csv'
    core.write_file(some, table.concat(lines, '\n') .. '\n')
    local output = trinity_says(("fidelity published --rows '%s' --json"):format(some), 0)
    local told = json.decode(output:match '{.*}').rows
    expect(#told >= 60):truthy()
    for i, row in ipairs(published_row.all(some)) do
      expect(told[i].predicted_tokens_per_s_per_gpu / row.measured - 1):near(off[row.id], 2e-3)
    end
  end)
  it_shared("of the Llama 3 report are told by half of attention's square, too", function()
    local left, found = {}, {}
    for _, one in ipairs(published_constants.errors()) do left[one.id] = one.left_out end
    for _, row in ipairs(published_row.all(shared 'llm-published/throughput.csv', true)) do
      if row.id == 'p043' or row.id == 'p044' or row.id == 'p045' then
        local m = row.network
        local products = 6 * (m.layers * m.hidden * (2 * m.hidden * (1 + m.kv_heads / m.heads) + 3 * m.ffn) + m.vocab * m.hidden)
        local square = 12 * m.layers * row.sequence * m.hidden
        local half = (1 + left[row.id]) * (products + square / 2) / (products + square) - 1
        found[#found + 1] = ('%.0f %.0f'):format(100 * left[row.id], 100 * half)
      end
    end
    expect(table.concat(found, ', ')):equals '7 3, 4 0, 28 -8'
  end)
end)

describe('published memory in the manual', function()
  it_shared('is what the command says, of the two smaller networks', function()
    local path, by, lines = shared 'llm-published/memory.csv', {}, {}
    for line in io.lines(path) do
      if not line:find('530B', 1, true) and not line:find('1T', 1, true) then lines[#lines + 1] = line end
    end
    local some = temporary '.csv'
    core.write_file(some, table.concat(lines, '\n') .. '\n')
    local told = json.decode(trinity_says(("fidelity published --memory '%s' --json"):format(some), 0):match '{.*}').rows
    for i, row in ipairs(csv.read(some, 'model', 'value')) do
      by[row.model] = by[row.model] or {}
      table.insert(by[row.model], told[i].predicted / tonumber(row.value) - 1)
    end
    for model, off in util.sorted_pairs(by) do
      local s = summary.of(off)
      expect_line(('| %s | %d | %.2f %% | %.2f %% |'):format(model, #off, 100 * s.mean, 100 * s.worst))
    end
    expect(#util.sorted_keys(by)):equals(2)
  end)
end)

--- Lines of a table that a command printed: cells by the name in the first.
local function table_of(output)
  local found = {}
  for line in output:gmatch '[^\n]+' do
    local cells = {}
    for cell in (line .. '  '):gmatch '(.-)  +' do if cell ~= '' then cells[#cells + 1] = cell end end
    if #cells > 2 then found[cells[1]] = cells end
  end
  return found
end

--- '8.3 %, 51.6 %' of a mean and the worst.
local function pair(values) return ('%s, %s'):format(percent(values[1]), percent(values[2])) end

describe('collectives in the manual', function()
  local recorded = require 'trinity.fidelity.collective_errors'
  local fitted_to = require('trinity.cluster.collective_constants').fitted
  it('are those that the command recorded, run by run, of all runs that the constants were fitted to', function()
    local totals = { ['`collectives.csv`'] = {}, ['all of these'] = {} }
    local runs = select(2, fitted_to()).runs
    for i, one in ipairs(recorded) do
      expect(one.run):equals(runs[i])
      expect_line(('| `%s` | %d | %s | %s |'):format(one.run, one.rows, pair(one.fitted), pair(one.left_out)))
      for name, list in util.sorted_pairs(totals) do
        if name == 'all of these' or one.run ~= 'vtrain_a100' then list[#list + 1] = one end
      end
    end
    expect(#recorded):equals(#runs)
    for name, list in util.sorted_pairs(totals) do
      local rows, sums = 0, { fitted = { 0, 0 }, left_out = { 0, 0 } }
      for _, one in ipairs(list) do
        rows = rows + one.rows
        for field, sum in util.sorted_pairs(sums) do
          sum[1], sum[2] = sum[1] + one.rows * one[field][1], math.max(sum[2], one[field][2])
        end
      end
      for _, sum in util.sorted_pairs(sums) do sum[1] = sum[1] / rows end
      expect_line(('| %s | %d | %s | %s |'):format(name, rows, pair(sums.fitted), pair(sums.left_out)))
      expect(sums.fitted[1] <= 0.12 and sums.left_out[1] <= 0.2):truthy()
    end
  end)
  it_shared('are what the command says of fitted runs, and of those that no constant knows', function()
    local output = trinity_says(("fidelity collectives --rows '%s' --also '%s'"):format(
      shared 'collectives/collectives.csv', shared 'vtrain/a100'), 0)
    local found = table_of(output)
    for _, one in ipairs(recorded) do
      local cells = found[one.run]
      expect(('%s, %s'):format(cells[3], cells[5])):equals(pair(one.fitted))
    end
    found = table_of(trinity_says(("fidelity collectives --rows '%s'"):format(shared 'galvatron'), 0))
    for _, run in ipairs { 'galvatron_all_reduce', 'galvatron_all_to_all' } do
      expect_line(('| `%s` | %s | | %s, %s |'):format(run, found[run][2], found[run][3], found[run][5]))
    end
  end)
  it('are told by constants that are counted, and stand at bounds, as it says', function()
    local sets, bounds = {}, {}
    for _, one in ipairs(json.decode(trinity_says('fidelity --constants --json', 0)).constants) do
      local set = ('%s %s'):format(one.comparison, one.name:match '^(.-)%.' or '')
      sets[set] = (sets[set] or 0) + 1
      if one.value <= one.least * 1.001 or one.value >= one.most * 0.999 then bounds[#bounds + 1] = one.name end
    end
    local words = {}
    for set, count in util.sorted_pairs(sets) do words[#words + 1] = ('%s %d'):format(set, count) end
    expect(table.concat(words, ', ')):equals('collectives  26, published a100 5, published b200 4, published gb200 8, '
      .. 'published gb300 8, published h100 8, published h100_96gb 8, sailor gh200 6, sailor mixed 6, '
      .. 'vtrain a100_vtrain 8, vtrain a100_vtrain_composed 8')
    expect_words('A100 5, H100 with 80 GB 8 and with 96 GB 8, B200 and B300 together 4, GB200 8, GB300 8')
    expect_words('At a bound stand `%s`, `%s` and `%s`', unpack(bounds))
    expect(#bounds):equals(3)
  end)
end)

describe('measured runs of vTrain in the manual', function()
  it_shared('are what the command says', function()
    local found = table_of(trinity_says(("fidelity vtrain --rows '%s'"):format(shared 'vtrain/multi.csv'), 0))
    for _, name in ipairs { 'hidden 3072, 30 layers', 'hidden 6144, 40 layers', 'all' } do
      expect_line(('| %s |'):format(table.concat(found[name], ' | ', 1, 7)))
    end
    expect(tonumber(found.all[3]:match '%S+') <= 5):truthy()
  end)
  it_shared('and so are the times that it put together', function()
    local path, others, in_line = shared 'vtrain/single.csv', {}, {}
    local output = trinity_says(("fidelity vtrain --rows '%s' --json"):format(path), 0)
    local told = json.decode(output:match '{.*}').rows
    local out_of_line = { ['2048 2 4'] = true, ['2048 2 2'] = true, ['1024 4 2'] = true } -- hidden, micro-batch, tensor
    for i, row in ipairs(vtrain_rows.read(path)) do
      row.told_s = told[i].predicted_s
      if row.layers ~= 16 then
        others[#others + 1] = row
        local cell = ('%d %d %d'):format(row.hidden, row.micro_batch, row.tensor)
        if not out_of_line[cell] then in_line[#in_line + 1] = row end
      end
    end
    local all = errors.summary(util.map(others, function(row) return row.told_s / row.measured_s - 1 end))
    expect_words('%d rows, mean %s, median %s, worst %.0f %%, tau %.3f within', all.count, percent(all.mean),
      percent(all.median), 100 * all.worst, errors.ranking(others, 4).tau)
    expect_words('without the %d rows of three cells', #others - #in_line)
    expect_words('tau is %.3f. vTrain', errors.ranking(in_line, 4).tau)
    expect(all.mean <= 0.06):truthy()
  end)
end)

describe('plans of Sailor in the manual', function()
  it_shared('are what the command says, fitted and left out', function()
    local folder = shared 'sailor'
    local command = ("fidelity sailor --plans '%s/plans' --data '%s'"):format(folder, folder)
    local fitted, left = table_of(trinity_says(command, 0)), table_of(trinity_says(command .. ' --left_out', 0))
    local bars = { ['OPT-350, GH200'] = { 8, 4 }, ['GPT-Neo-2.7, GH200'] = { 8, 4 }, ['OPT-350, mixed nodes'] = { 12, 12 } }
    for name, bar in util.sorted_pairs(bars) do
      local time, memory = name .. ': time', name .. ': memory'
      expect_line(('| %s | %s | %s | %s | %s | %s |'):format(name, fitted[time][2], fitted[time][3], left[time][3],
        fitted[memory][3], left[memory][3]))
      expect(tonumber(left[time][3]:match '%S+') <= bar[1]):truthy()
      expect(tonumber(left[memory][3]:match '%S+') <= bar[2]):truthy()
    end
  end)
end)
