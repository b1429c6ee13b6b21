-- The two averages that the TAPP paper states, by every method and against both readings of its baseline.

local page = require 'studies.papers.page'
local studies = require 'studies.papers.tapp_studies'

local claimed = { step = 1.37, share = 48.92 } -- times as fast; percent less

local order = { 'default', 'trained', 'frozen', 'moves', 'frozen_moves', 'least_load', 'fastest', 'gpipe', 'pipedream',
  'pipedream_1', 'bsp_speed' }

local function times_as_fast(cases, method, baseline)
  return studies.mean(cases, method, function(case, row)
    return studies.find(case, baseline).step_time_s / row.step_time_s
  end)
end

local function percent_less(cases, method, baseline)
  return studies.mean(cases, method, function(case, row)
    return 100 * (1 - row.rho / studies.find(case, baseline).rho)
  end)
end

local notes_of = {
  default = 'policy, then moves', trained = "the paper's method: the policy alone",
  frozen = 'a policy that is never updated', moves = 'moves of one sampled scheme, no policy',
  frozen_moves = 'a policy that is never updated, then moves', least_load = 'an exact cut, no search',
  fastest = 'the fastest of all cuts, proved', gpipe = 'equal work, no search', pipedream = 'asynchronous, replicas',
  pipedream_1 = 'asynchronous', bsp_speed = 'data parallelism, shards by speed',
}

-- By what else the number of a method is reached.
local reached_without = { default = { 'moves', 'moves alone' }, trained = { 'frozen', 'never updated' } }

local questions = {
  { name = 'step', title = 'step, times as fast', unit = '', value = times_as_fast },
  { name = 'share', title = 'share of communication, less by', unit = '%', value = percent_less },
}

local function add(rows, cases, question, method, settings)
  local equal, fair = question.value(cases, method, 'bsp'), question.value(cases, method, 'bsp_speed')
  if not equal then return end
  local own = cases[1] and studies.find(cases[1], method).updates
  local without, by = reached_without[method], notes_of[method]
  if without then by = ('%s; %s: %.3g'):format(by, without[2], question.value(cases, without[1], 'bsp')) end
  local said = page.verdict { claimed = claimed[question.name], got = equal, unstated = true,
    by = ('%.2f over shards by speed; %s'):format(fair / claimed[question.name], by) }
  if method == 'bsp_speed' then said = { text = 'a fairer baseline, no pipeline' } end
  rows:add { what = ('%s: %s'):format(question.title, method), claimed = claimed[question.name], literal = equal,
    ours = fair, unit = question.unit, updates = studies.updates(cases, method), seeds = own and settings.seeds,
    verdict = said }
end

local function summary(cases)
  local by = {}
  for _, method in ipairs(order) do by[method] = times_as_fast(cases, method, 'bsp') end
  local so = by.moves >= 0.99 * by.default and "so that the default's number comes from moves, not from learning"
    or 'which is less: the policy has its part in it'
  return (('TAPP by default makes a step %.2f times as fast as data parallelism with equal shards and %.2f times as '
    .. 'fast as with shards by speed. The same budget of moves without a policy gives %.2f, %s. A policy that samples '
    .. "all schemes, the paper's method, gives %.2f, and %.2f where it is never updated; the exact cut of least "
    .. 'load, which searches nothing, gives %.2f.'):format(by.default, times_as_fast(cases, 'default', 'bsp_speed'),
    by.moves, so, by.trained, by.frozen, by.least_load or 0 / 0))
end

return { name = 'claims', title = 'The two averages: 1.37 times as fast, a share of communication 48.92 % lower',
  learns = true, quick = studies.quick, heads = { literal = 'over equal shards', ours = 'over shards by speed' },
  about = 'Means over the cases of section cases, of medians over seeds. The paper names neither networks nor '
    .. 'machines, batches or settings, so that nothing here can be its experiment, and no row counts as agreement. '
    .. 'Its BSP is read as equal shards; a fair one shards the batch by speed.',
  run = function(rows, settings)
    local cases = studies.of(settings)
    for _, question in ipairs(questions) do
      for _, method in ipairs(order) do add(rows, cases, question, method, settings) end
    end
    if #cases == 0 then return 'No case.' end
    return summary(cases)
  end }
