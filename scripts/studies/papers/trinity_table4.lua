-- Table 4 of the Trinity paper and its figures 6 to 8, which show the same numbers: step time, peak communication and
-- peak memory on two and four GPUs. One section each; the searches are run once (trinity_cells.lua).

local cells = require 'studies.papers.trinity_cells'
local page = require 'studies.papers.page'
local plot = require 'trinity.report.plot'
local util = require 'trinity.base.util'

local fitted_time = 'the dispatch of p100_paper, to this cell'
local fitted_memory = 'the units of its network, so that one GPU is too small'

-- The text of a paper's cell: seconds or GB, or that it is out of memory.
local function claim_of(claimed, unit)
  return type(claimed) == 'number' and ('%g %s'):format(claimed, unit) or claimed
end

--- The verdict on the claim of a cell by runs that should reproduce it. one_card: what is said where these use one
--- GPU, which is no agreement with a strategy for several.
local function verdict_of(claimed, values, fitted, one_card)
  if not claimed then return { text = 'the paper has no number' } end
  if claimed == 'OOM' or #values == 0 then return page.memory(claimed ~= 'OOM', #values > 0, fitted) end
  local verdict = page.verdict { claimed = claimed, got = util.median(values), fitted = fitted, by = one_card }
  verdict.agrees = verdict.agrees and not one_card
  return verdict
end

local function text_of(values, unit) return #values == 0 and 'OOM' or page.runs(values, unit) end

--- A note where a policy's best strategy is one GPU.
local function end_of(runs)
  local one = util.sum(runs, function(run) return (run.metrics.peak_communication_bytes == 0 and 1 or 0) end)
  return one > 0 and (#runs > 1 and ('%d of %d runs are one GPU'):format(one, #runs) or 'it is one GPU') or nil
end

local function add_times(rows, settings, label, row, cell, runs)
  local function seconds(name) return cells.values(runs[name], 'step_time_s') end
  local is_gnmt, is_nmt = row.model == 'gnmt', row.model == 'nmt'
  if cell == row[1] then
    rows:add { what = label .. ', one GPU', claimed = claim_of(row.one, 's'), ours = text_of(seconds 'single', 's'),
      verdict = verdict_of(row.one, seconds 'single', is_gnmt and fitted_time or is_nmt and fitted_memory or nil) }
  end
  rows:add { what = label .. ', expert', claimed = claim_of(cell.expert, 's'), ours = text_of(seconds 'expert', 's'),
    verdict = verdict_of(cell.expert, seconds 'expert') }
  local theirs = runs.hierarchical_literal
  rows:add { what = label .. ', Hierarchical', claimed = claim_of(cell.hierarchical[1], 's'),
    literal = theirs and text_of(seconds 'hierarchical_literal', 's'), ours = text_of(seconds 'hierarchical', 's'),
    updates = theirs and cells.updates(theirs, runs.hierarchical) or cells.updates(runs.hierarchical),
    seeds = theirs and ('1 / %d'):format(settings.seeds) or settings.seeds,
    verdict = verdict_of(cell.hierarchical[1], seconds(theirs and 'hierarchical_literal' or 'hierarchical'), nil,
      end_of(theirs or runs.hierarchical)) }
  local called = runs.trinity[1]:found_by()
  local what = called == 'trinity' and 'Trinity' or 'Trinity / ' .. called
  rows:add { what = ('%s, %s'):format(label, what), claimed = claim_of(cell.trinity[1], 's'),
    literal = text_of(seconds 'literal', 's'), ours = text_of(seconds 'trinity', 's'),
    updates = cells.updates(runs.literal, runs.trinity), seeds = ('1 / %d'):format(settings.seeds),
    verdict = verdict_of(cell.trinity[1], seconds 'literal', nil, end_of(runs.literal)) }
  rows:add { what = label .. ', without the policy', ours = text_of(seconds 'best', 's'), seeds = settings.seeds,
    verdict = page.against(seconds 'trinity', seconds 'best') }
end

--- Rows of another figure of a cell: { field, unit, column in the paper's cell }.
local function add_figure(rows, settings, figure, label, cell, runs)
  local theirs = runs.hierarchical_literal
  for _, row in ipairs { { 'hierarchical', theirs, runs.hierarchical }, { 'trinity', runs.literal, runs.trinity } } do
    local name, literal, ours = unpack(row, 1, 3)
    local claimed = cell[name][figure.column]
    local function values(of) return of and cells.values(of, figure.field, 1e9) end
    if claimed then
      rows:add { what = ('%s, %s'):format(label, name), claimed = claim_of(claimed, 'GB'),
        literal = literal and text_of(values(literal), 'GB'), ours = text_of(values(ours), 'GB'),
        seeds = literal and ('1 / %d'):format(settings.seeds) or settings.seeds,
        updates = literal and cells.updates(literal, ours) or cells.updates(ours),
        verdict = verdict_of(claimed, values(literal or ours), nil, end_of(literal or ours)) }
    end
  end
end

local series = { 'single', 'expert', 'hierarchical', 'literal', 'best', 'trinity' }

--- Plots a figure as the paper does: bars by method, diamonds for what the paper measured.
local function draw(settings, figure)
  local spec = { groups = {}, series = { 'one GPU', 'expert', 'Hierarchical', 'Trinity, paper settings',
    'without policy', 'Trinity' }, values = {}, marks = {}, mark = 'measured in the paper', y = figure.y, width = 1100,
    height = 520 }
  cells.each(settings, function(label, row, cell, runs)
    local g = #spec.groups + 1
    spec.groups[g], spec.values[g] = label, {}
    for i, name in ipairs(series) do
      local values = cells.values(runs[name], figure.field, figure.scale)
      spec.values[g][i] = #values > 0 and util.median(values) or 'OOM'
    end
    spec.marks[g] = { figure.column == 1 and row.one or nil, figure.column == 1 and cell.expert or nil,
      cell.hierarchical[figure.column], cell.trinity[figure.column] }
  end)
  local picture, reason = plot.bars(('%s/%s'):format(settings.output, figure.name), spec)
  return picture and ('picture: %s'):format(picture) or 'no picture: ' .. reason
end

local about = 'Every search has the same placements, 20 per update; the reward is MDPE. Paper settings of Trinity are '
  .. 'the preset paper, its policy alone, with one layer (two: section literal). Ours is warm start, policy and '
  .. 'annealing; the row without the policy is the same search with its policy off, which its verdict compares with '
  .. 'it. The expert is among the warm starts: that ours is not worse says nothing.'

local figures = {
  { name = 'table4', field = 'step_time_s', scale = 1, column = 1, y = 'step time in s',
    title = 'Table 4 and figure 6: step time' },
  { name = 'figure7', field = 'peak_communication_bytes', scale = 1e9, column = 2, y = 'peak communication in GB',
    title = 'Figure 7: peak communication' },
  { name = 'figure8', field = 'peak_memory_bytes', scale = 1e9, column = 3, y = 'peak memory in GB',
    title = 'Figure 8: peak memory' } }

return util.map(figures, function(figure)
  return { name = figure.name, title = figure.title, learns = true,
    about = figure.column == 1 and about or 'Of the strategies of table4, whose reward weighs this too.',
    quick = 'in layers on two GPUs, two networks where --models names none',
    run = function(rows, settings)
      cells.each(settings, function(label, row, cell, runs)
        if figure.column == 1 then add_times(rows, settings, label, row, cell, runs)
        else add_figure(rows, settings, figure, label, cell, runs) end
      end)
      return draw(settings, figure)
    end }
end)
