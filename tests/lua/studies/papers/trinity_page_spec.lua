-- The page of the Trinity paper: what its rows are called, what counts, what was never updated.

local page = require 'studies.papers.page'
local paper = require('studies.papers.pages').trinity()

with_torch()

local function section(name)
  for _, entry in ipairs(paper.sections) do if entry.name == name then return entry end end
end

local function rows_of(name, settings)
  return page.run(section(name), merged({ quick = true, seeds = 1, seed = 1, updates = 2, models = { gnmt = true },
    output = temporary '.folder', format = 'text', quiet = true }, settings))
end

local function row_of(rows, what)
  for _, row in ipairs(rows) do if row.what:find(what, 1, true) then return row end end
end

describe("Trinity's page", function()
  it('has every table and figure of the paper but figure 4, which is a script', function()
    local names = {}
    for i, entry in ipairs(paper.sections) do names[i] = entry.name end
    expect(table.concat(names, ' ')):equals
      'table3 table4 figure7 figure8 table5 literal figure5 scratch stages unseen rivals figure9'
  end)
  it_all('never counts what was fitted, and calls a search without updates what it was', function()
    local rows = rows_of 'table4'
    expect(row_of(rows, 'one GPU').verdict.kind):equals 'fitted'
    expect(row_of(rows, 'Trinity / warm start + ').updates):equals '2 / 0'
    expect(row_of(rows, 'Hierarchical').updates):equals '2'
    expect(row_of(rows, 'without the policy').verdict.text):equals '+0.0 %'
  end)
  it_all('compares Trinity with Hierarchical with the same prior: none', function()
    local rows = rows_of 'table5'
    expect(row_of(rows, 'less time').updates):equals '2 / 2'
    expect(row_of(rows, 'less time').verdict.kind):equals 'order'
    expect(row_of(rows, 'all cells, less time').claimed):equals '+3.1 %'
  end)
  it('compares a policy from nothing with one that is never updated', function()
    local rows = rows_of('scratch', { updates = 20 })
    local function reward_of(what) return tonumber(row_of(rows, what).ours) end
    expect(row_of(rows, 'learned').updates):equals(20)
    expect(row_of(rows, 'never updated').updates):equals(0)
    expect(reward_of 'learned' > reward_of 'never updated'):equals(true)
    expect(reward_of 'learned' > reward_of 'one GPU'):equals(true)
  end)
end)
