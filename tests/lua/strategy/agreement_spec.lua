-- Strategies of decoders against an independent count: memory by kind and stage within 1 %, messages by kind and axis equal
-- in number and bytes, refusals. Small decoders (tests/data/decoders/counts.json) and published ones (data/strategies of
-- the shared folder, whose ORIGIN.md has the conventions of the count).

local core = require 'trinity.core'
local strategies = require 'studies.fidelity.strategies'
local trinity = require 'trinity'

-- Bytes and number by kind and axis.
local function sums(rows)
  local found = {}
  for _, row in ipairs(rows) do
    local key = ('%s %s'):format(row.kind, tostring(row.axis))
    found[key] = found[key] or { count = 0, bytes = 0 }
    found[key].count = found[key].count + row.count
    found[key].bytes = found[key].bytes + row.count * row.bytes
  end
  local words = {}
  for key, sum in trinity.system.sorted_pairs(found) do words[#words + 1] = ('%s %d x, %.0f'):format(key, sum.count, sum.bytes) end
  return table.concat(words, '; ')
end

local function near(what, got, wanted)
  if math.abs(got - wanted) > 0.01 * wanted then
    error(('%s: expected %.6g within 1 %%, got %.6g'):format(what, wanted, got), 0)
  end
end

local function compare(case, result)
  if case.refused then
    expect(result.refused):matches '.'
    expect(#result.stages):equals(0)
    return
  end
  expect(result.refused ~= result.refused or result.refused):equals(true) -- null
  expect(result.bubble_fraction):near(case.expected.bubble_fraction, 1e-9)
  expect(#result.stages):equals(#case.expected.stages)
  for s, wanted in ipairs(case.expected.stages) do
    local got, at = result.stages[s], ('%s, stage %d, '):format(case.name, wanted.stage)
    for _, field in ipairs { 'parameters', 'weight_bytes', 'gradient_bytes', 'optimizer_bytes',
      'gathered_weight_bytes' } do
      near(at .. field, got[field], wanted[field])
    end
    for part, bytes in trinity.system.sorted_pairs(wanted.activation_bytes) do
      near(at .. 'activations of ' .. part, got.activation_bytes[part], bytes)
    end
    expect(at .. sums(got.collectives)):equals(at .. sums(wanted.collectives))
    local seen = {}
    for _, row in ipairs(got.collectives) do
      local key = ('%s %s %d'):format(row.kind, row.axis, row.bytes)
      if seen[key] then error(('%stwo entries of messages %s'):format(at, key), 0) end
      seen[key] = true
    end
  end
end

describe('agreement with an independent count', function()
  local function cases_of(path, test)
    for _, case in ipairs(trinity.files.json.read(path).cases) do
      test(case.name, function() compare(case, strategies.cases(path, { case })[1]) end)
    end
  end
  cases_of(core.home .. '/tests/data/decoders/counts.json', it)
  local published = core.home .. '/../shared/data/strategies/expected.json'
  local here = io.open(published)
  if not here then return it_shared('of published decoders', function() end) end
  here:close()
  cases_of(published, it_shared)
end)
