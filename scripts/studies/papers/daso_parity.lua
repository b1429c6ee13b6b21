-- Whether a training with DASO ends with the loss of one in step, and what it saves over a slow link: real trainings.

local jobs = require 'studies.papers.daso_jobs'
local page = require 'studies.papers.page'
local statistics = require 'trinity.base.statistics'

local parity = {}

--- The tolerance of mean losses: two standard deviations of a difference of two means of that number of seeds, with the
--- spread of the synchronous trainings alone, and never less than 1 % of their mean.
function parity.tolerance(losses)
  return math.max(2 * statistics.deviation(losses) * math.sqrt(2 / #losses), 0.01 * statistics.mean(losses))
end

--- Whether DASO's losses on held-out data agree with bsp's: agrees, difference of means, tolerance.
function parity.compare(bsp, daso)
  local difference, tolerance = statistics.mean(daso) - statistics.mean(bsp), parity.tolerance(bsp)
  return math.abs(difference) <= tolerance, difference, tolerance
end

local function loss_verdict(bsp, daso)
  local agrees, difference, tolerance = parity.compare(bsp, daso)
  return { kind = 'order', agrees = agrees, text = ('%s: means differ by %+.4f, tolerance %.4f'):format(
    agrees and 'the same' or 'not the same', difference, tolerance) }
end

local function add_task(rows, task, settings)
  local seeds = math.max(settings.seeds, settings.quick and 3 or 4)
  local found = jobs.train(4, { task = task, method = 'both', seeds = seeds, lr_warmup = 2, lr_decay = 'plateau',
    link_mbit_s = 200, link_ms = 1, timeout_s = 60, epochs = settings.quick and 6 or 12 })
  local values = {}
  for _, field in ipairs { 'loss', 'seconds', 'waited_s' } do
    values[field] = { bsp = jobs.values(found, 'bsp', field), daso = jobs.values(found, 'daso', field) }
  end
  rows:add { what = task .. ', loss in step', ours = page.runs(values.loss.bsp), seeds = seeds }
  rows:add { what = task .. ', loss with DASO', claimed = 'similar', ours = page.runs(values.loss.daso), seeds = seeds,
    verdict = loss_verdict(values.loss.bsp, values.loss.daso) }
  rows:add { what = task .. ', time in step', ours = page.runs(values.seconds.bsp, 's'), seeds = seeds }
  rows:add { what = task .. ', time with DASO', claimed = 'less', ours = page.runs(values.seconds.daso, 's'),
    seeds = seeds, verdict = page.against(values.seconds.daso, values.seconds.bsp) }
  rows:add { what = task .. ', waiting in step', ours = page.runs(values.waited_s.bsp, 's'), seeds = seeds }
  rows:add { what = task .. ', waiting with DASO', ours = page.runs(values.waited_s.daso, 's'), seeds = seeds }
end

parity.section = { name = 'parity', title = 'The same loss, and time over a slow link, measured here',
  about = 'train_distributed (trinity.execute): four processes, two nodes of two, over an injected link of 200 Mbit/s '
    .. 'and 1 ms; in step gradients are\nadded up in a node and, share by share, between them. The learning rate warms '
    .. 'up over 2 epochs, then halves on plateaus (patience 5, threshold 0.05),\nas in the example code. Time of '
    .. 'steps; loss on 1000 samples that no rank saw. Run on this machine, not simulated.',
  run = function(rows, settings)
    for _, task in ipairs(settings.quick and { 'images' } or { 'images', 'characters' }) do
      if not settings.models or settings.models[task] then add_task(rows, task, settings) end
    end
    return 'Tolerance of losses: two standard deviations of a difference of means, from the spread over seeds in step '
      .. 'alone; at least 1 %.'
  end }

return parity
