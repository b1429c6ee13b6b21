-- Table 5 of the Trinity paper, and its claim: up to 5 % less run time, communication and memory than Hierarchical,
-- and a search up to 40 % faster (its table says 3.1, 13.9, -0.4 and 36.4 % on average). Both policies start from
-- nothing here: no warm start, no refinement; equal numbers of placements.

local cells = require 'studies.papers.trinity_cells'
local page = require 'studies.papers.page'
local util = require 'trinity.base.util'

-- Per cent less than Hierarchical by model and GPUs: time, communication, memory, search.
local stated = {
  ['inception_v3 64 2'] = { 0, 6.8, 8.6, 41.7 }, ['inception_v3 64 4'] = { 0, -0.8, 43.4, 44.4 },
  ['gnmt 64 2'] = { 5.1, 16.1, -18.8, 52.9 }, ['gnmt 64 4'] = { -5.0, -7.1, -14.6, 52.4 },
  ['nmt 64 2'] = { 8.3, 20.9, -4.5, 62.9 }, ['nmt 64 4'] = { 4.1, 14.7, -0.3, 43.9 },
  ['nasnet_large 8 2'] = { 1.6, 12.5, 20.0, 21.6 }, ['nasnet_large 8 4'] = { 0, 1.6, 2.7, 27.8 },
  ['nasnet_large 32 4'] = { nil, nil, nil, 23.1 },
  ['pnasnet_large 8 2'] = { 9.0, 13.8, 0, -0.5 }, ['pnasnet_large 8 4'] = { 7.6, 60.2, -40.0, 30.2 } }

local columns = { { 'time', 'step_time_s' }, { 'communication', 'peak_communication_bytes' },
  { 'memory', 'peak_memory_bytes' } }

-- Per cent that the medians of `ours` are below the medians of `theirs`; nil where nothing fits.
local function less(ours, theirs)
  local own, other = util.median(ours), util.median(theirs)
  if #ours == 0 or #theirs == 0 then return nil end
  return other > 0 and 100 * (1 - own / other) or own == 0 and 0 or nil
end

--- Placements that a search had seen when its best was first as good as `reward`; its whole budget where it never was.
local function placements_until(run, reward)
  for _, point in ipairs(run.curve) do
    if point.best_reward >= reward then return point.evaluations end
  end
  return run.evaluations
end

local function percent(value) return value and ('%+.1f %%'):format(value) or '-' end

--- Claim and finding have the same sign, or both are within 1 % of nothing.
local function verdict_of(claimed, got)
  if not claimed or not got then return { text = 'cannot be compared' } end
  local function sign(x) return math.abs(x) <= 1 and 0 or x > 0 and 1 or -1 end
  return { kind = 'order', agrees = sign(claimed) == sign(got),
    text = sign(claimed) == sign(got) and 'the same direction' or 'another direction' }
end

local function add(rows, settings, label, row, cell, runs, sums)
  local claims = stated[('%s %d %d'):format(row.model, row.batch_size, cell.cards)]
  local updates = cells.updates(runs.policy, runs.hierarchical)
  for c, column in ipairs(columns) do
    local ours, theirs = cells.values(runs.policy, column[2]), cells.values(runs.hierarchical, column[2])
    local got = less(ours, theirs)
    if claims[c] then
      rows:add { what = ('%s, less %s'):format(label, column[1]), claimed = percent(claims[c]), ours = percent(got),
        updates = updates, seeds = settings.seeds, verdict = verdict_of(claims[c], got) }
      for i = 1, math.min(#ours, #theirs) do
        table.insert(sums[c].ours, ours[i])
        table.insert(sums[c].theirs, theirs[i])
      end
    end
  end
  local shares = util.map(runs.policy, function(run, i)
    return 100 * (1 - placements_until(run, runs.hierarchical[i].reward) / runs.hierarchical[i].evaluations)
  end)
  rows:add { what = label .. ', less search', claimed = percent(claims[4]), ours = percent(util.median(shares)),
    updates = updates, seeds = settings.seeds, verdict = verdict_of(claims[4], util.median(shares)) }
end

-- The means that table 5 gives in all.
local means = { 3.07, 13.87, -0.35 }

local function run(rows, settings)
  local sums = util.listed(3, function() return { ours = {}, theirs = {} } end)
  cells.each(settings, function(label, row, cell, runs) add(rows, settings, label, row, cell, runs, sums) end)
  for c, column in ipairs(columns) do
    local own, other = sums[c].ours, sums[c].theirs
    local ratios, all = {}, 0
    for i = 1, #own do ratios[i] = other[i] > 0 and own[i] / other[i] or 1 end
    for _, ratio in ipairs(ratios) do all = all + ratio / #ratios end
    local comparable = #own > 0 and util.median(other) > 0
    if #own > 0 then
      rows:add { what = ('all cells, less %s on average'):format(column[1]), claimed = percent(means[c]),
        ours = percent(comparable and 100 * (1 - all) or nil), seeds = settings.seeds, verdict = {
          text = comparable and 'runs in pairs: ' .. page.against(own, other).text
            or 'cannot be compared: half of its runs send nothing' } }
    end
  end
end

return { name = 'table5', title = 'Table 5: less than Hierarchical, both from nothing', learns = true,
  quick = 'in layers on two GPUs, two networks where --models names none',
  about = 'Both policies without warm start and refinement, with equal placements; ours is the default policy. '
    .. 'Search is counted in placements: how many fewer the policy had sampled when its best was as good as all of '
    .. "Hierarchical's. The paper's unit of search time is not known.",
  run = run }
