-- Strategies of decoders against an independent count: memory by kind and stage within 1 %, messages by kind and axis equal
-- in number and bytes, refusals. Small decoders (tests/data/decoders/counts.json) and published ones (data/strategies of
-- the shared folder, whose ORIGIN.md has the conventions of the count).

local core = require 'trinity.core'
local counts = dofile(root .. '/tests/lua/support/decoder_counts.lua')
local csv = require 'trinity.base.csv'
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

local function compare(case)
  local result, why = counts.of(case)
  if case.refused then
    expect(result):equals(nil)
    expect(why):matches '.'
    return
  end
  expect(why):equals(nil)
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
      test(case.name, function() compare(case) end)
    end
  end
  cases_of(core.home .. '/tests/data/decoders/counts.json', it)
  local published = core.home .. '/../shared/data/strategies/expected.json'
  local here = io.open(published)
  if not here then return it_shared('of published decoders', function() end) end
  here:close()
  cases_of(published, it_shared)
end)

describe('messages of the weights of rows of experts', function()
  it('are counted apart', function()
    local stage = counts.of({ model = { layers = 2, hidden = 64, heads = 4, ffn = 96, gated = true, experts = 4, top_k = 2,
      vocabulary = 100 }, batch = { micro_batch = 2, sequence = 32, micro_batches = 4 },
      strategy = { mesh = { data = 2, expert = 2 } } }).stages[1]
    local rows = 2 * 32 * 2 -- tokens of a micro-batch, a copy a choice
    expect(stage.row_weights.count):equals(4 * 2 * 2) -- forwards, and their gradients back
    expect(stage.row_weights.bytes):equals(4 * 2 * 2 * 2 * rows)
  end)
end)

describe('bytes of the layers of GPT (Korthikanti et al. 2022)', function()
  --- A case of a row of the published table; changes: of its strategy.
  local function case_of(row, changes)
    local function whole(column, otherwise) return csv.whole('table', row, column, otherwise) end
    local pipeline, virtual, hidden, layers = whole('pp', 1), whole('vpp', 1), whole 'hidden', whole 'layers'
    return { model = { layers = layers, hidden = hidden, heads = whole 'heads', ffn = 4 * hidden, dropout = true,
      vocabulary = whole('vocab', 51200) }, batch = { micro_batch = whole('micro_batch', 1), sequence = whole 'sequence',
        micro_batches = virtual > 1 and 2 * pipeline or pipeline },
      strategy = merged({ mesh = { tensor = whole('tp', 1), pipeline = pipeline }, virtual_stages = virtual, flash = false,
        schedule = virtual > 1 and 'interleaved' or '1f1b', recompute = row.recompute,
        stages = require('studies.fidelity.case').stages(layers, pipeline * virtual),
        sequence_parallel = row.sequence_parallel == '1' }, changes) }
  end
  local small = { hidden = 256, layers = 4, heads = 8, sequence = 128, micro_batch = 2, tp = 2, recompute = 'none' }
  local none = 4 * 128 * 2 * 256 * (10 + 24 / 2 + 5 * 8 * 128 / (256 * 2)) -- s b h (10 + 24 / t + 5 a s / h t): equation 2
  it('equal the formula', function() expect((counts.of_layers(case_of(small)))):near(none, 1) end)
  it('are the inputs of layers where all else is recomputed', function()
    expect(counts.of_layers(case_of(small, { recompute = 'full' })) / none):near(2 / (none / (4 * 128 * 2 * 256)), 1e-4)
  end)
  it('are 18 a weight of layers and their norms', function()
    local _, states = counts.of_layers(case_of(merged(small, { pp = 2 })))
    expect(states):near(18 * 12 * 256 ^ 2 * 2 / 2 + 18 * 4 * 256 * 2, 1)
  end)
  it_shared('are within 3 % of the published ones of all models but the two largest', function()
    for _, row in ipairs(csv.read(shared 'llm-published/memory.csv')) do
      if not row.model:find '530B' and not row.model:find '1T' then
        local activations, states = counts.of_layers(case_of(row))
        local found = (row.what:lower():find 'optimi[sz]er' and states or activations) / 2 ^ 30
        if row.unit == 'percent' then
          local plain = counts.of_layers(case_of(row, { recompute = 'none', sequence_parallel = false }))
          found = 100 * activations / plain
        end
        expect(('%s %s'):format(row.id, math.abs(found / row.value - 1) < 0.03)):equals(row.id .. ' true')
      end
    end
  end)
end)
