-- The page of TAPP: its cases, baselines and what its policy contributes, at a size that takes seconds.

local baselines = require 'studies.papers.tapp_baselines'
local page = require 'studies.papers.page'
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
  it('studies its cases once, by all methods', function()
    local cases = cases_of()
    expect(#cases):equals(1)
    expect(cases_of()):equals(cases)
    local names = {}
    for i, row in ipairs(cases[1].rows) do names[i] = row.method end
    expect(table.concat(names, ' ')):equals('bsp bsp_speed gpipe pipedream pipedream_1 least_load fastest moves frozen '
      .. 'trained frozen_moves default')
  end)
  it('says how often every policy was updated, under equal budgets', function()
    local updates, cases = {}, cases_of()
    for _, name in ipairs { 'moves', 'frozen', 'trained', 'frozen_moves', 'default' } do
      updates[#updates + 1] = studies.updates(cases, name)
    end
    expect(table.concat(updates, ' ')):equals '0 0 4 0 2'
    expect(studies.evaluations(settings)):equals(32)
    expect(studies.find(cases[1], 'moves').found_by):equals 'untrained policy + moves'
    expect(studies.find(cases[1], 'frozen').found_by):equals 'tapp, untrained'
  end)
  it('has no run faster than the fastest cut, proved', function()
    local cases = cases_of()
    local best = studies.find(cases[1], 'fastest').step_time_s
    for _, variant in ipairs(studies.variants) do
      for _, step_s in ipairs(studies.find(cases[1], variant.name).steps_s) do
        expect(best <= step_s * (1 + 1e-9)):truthy()
      end
    end
  end)
  it('names a case and method in every row of its table', function()
    local rows = page.run(require 'studies.papers.tapp_table', settings)
    expect(#rows):equals(12)
    expect(rows[1].what):equals 'vgg16, 4 machines: bsp'
    expect(rows[1].literal):equals '1.00'
    expect(rows[12].updates):equals(2)
  end)
end)
