-- The page of TAPP: its cases, baselines and what its policy contributes, at a size that takes seconds.

local baselines = require 'studies.papers.tapp_baselines'
local studies = require 'studies.papers.tapp_studies'

with_torch()

describe('shards', function()
  it('sum to the batch, one each at least, in proportion to the speed', function()
    expect(table.concat(baselines.shards(64, { 1, 1, 1, 1 }), ' ')):equals '16 16 16 16'
    expect(table.concat(baselines.shards(10, { 1, 1, 1 }), ' ')):equals '4 3 3'
    expect(table.concat(baselines.shards(64, { 100, 1 }), ' ')):equals '62 2'
    expect(table.concat(baselines.shards(3, { 100, 1, 1 }), ' ')):equals '1 1 1'
  end)
end)

describe('the page of TAPP', function()
  local settings = { quick = true, seeds = 2, seed = 1, updates = 2, json = true, quiet = true, models = { vgg16 = true },
    format = 'text' }
  local function cases_of() return studies.of(settings) end -- studied once
  it('has no run faster than the fastest cut, proved', function()
    local cases = cases_of()
    local best = studies.find(cases[1], 'fastest').step_time_s
    for _, variant in ipairs(studies.variants) do
      for _, step_s in ipairs(studies.find(cases[1], variant.name).steps_s) do
        expect(best <= step_s * (1 + 1e-9)):truthy()
      end
    end
  end)
end)
