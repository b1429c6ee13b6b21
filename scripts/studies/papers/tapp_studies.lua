-- The cases of TAPP's page, networks on numbers of machines, each by all methods; its sections share them. Of TAPP:
--   moves         one scheme of a policy that is never updated, then moves of it alone (refine = 1)
--   frozen        a policy that is never updated samples all schemes (learn = false, refine = 0): the same first
--                 weights and random numbers as `trained`
--   trained       the policy learns and samples all schemes (refine = 0): the paper's method
--   frozen_moves  the default without its updates
--   default       half of the budget for the policy, half for moves of its best scheme
-- All simulate the same number of schemes.

local baselines = require 'studies.papers.tapp_baselines'
local dist = require 'trinity.dist'
local layer_chain = require 'trinity.search.layer_chain'
local methods = require 'trinity.methods'
local page = require 'studies.papers.page'
local parallel_map = require 'trinity.parallel'
local statistics = require 'trinity.base.statistics'
local util = require 'trinity.base.util'

local studies = { quick = '4 machines only' }

studies.variants = {
  { name = 'moves', options = { refine = 1, learn = false } },
  { name = 'frozen', options = { refine = 0, learn = false } },
  { name = 'trained', options = { refine = 0 } },
  { name = 'frozen_moves', options = { learn = false } },
  { name = 'default', options = {} },
}

local samples, greedy_every = 8, 10 -- of methods.tapp

--- Schemes that a run simulates: the number that the default's policy needs for its updates, and again for moves.
function studies.evaluations(settings)
  return 2 * (samples * settings.updates + math.floor(settings.updates / greedy_every))
end

-- Runs of a variant with all seeds: the baselines' fields of the median run (of an even number the slower
-- one), and lists over the seeds.
local function learned(variant, problem, settings)
  local row, placements = { steps_s = {}, rhos = {}, updates = {} }, {}
  local results = {}
  for i = 1, settings.seeds do
    local found = methods.tapp(problem, util.merged({ seed = settings.seed + i - 1,
      evaluations = studies.evaluations(settings), quiet = true }, variant.options))
    page.unless_stopped(found)
    results[i] = baselines.result(variant.name, problem, found)
    row.steps_s[i], row.rhos[i], row.updates[i] = results[i].step_time_s, results[i].rho, found.updates
    row.found_by, placements[i] = found:found_by(), found.placement
  end
  local order = util.order_of(row.steps_s)
  local best = { step_time_s = row.steps_s[order[1]], fits = results[order[1]].fits, placement = placements[order[1]] }
  return util.merged(results[order[math.floor(#order / 2) + 1]], row), best
end

local function study(case, settings)
  local cluster, rows, known = baselines.cluster(case.nodes), {}, {}
  baselines.add_replicas(rows, case.model, cluster)
  local problem = baselines.problem(case.model, cluster)
  local chain = layer_chain.of(problem)
  baselines.add_pipelines(rows, case.model, problem, chain)
  for _, row in ipairs(rows) do
    if row.placement then known[#known + 1] = row end
  end
  local own = {}
  for i, variant in ipairs(studies.variants) do
    own[i], known[#known + 1] = learned(variant, problem, settings)
  end
  rows[#rows + 1] = baselines.fastest(problem, chain, known)
  for _, row in ipairs(own) do rows[#rows + 1] = row end
  for _, row in ipairs(rows) do row.placement = nil end
  return { number = case.number, model = case.model, nodes = case.nodes, rows = rows }
end

--- The row of a method in a study; nil where it has none.
function studies.find(case, method)
  for _, row in ipairs(case.rows) do if row.method == method then return row end end
end

local function cases_of(settings)
  local cases = {}
  for _, name in ipairs(baselines.models) do
    for _, nodes in ipairs(settings.quick and { 4 } or { 2, 4, 8 }) do
      if not settings.models or settings.models[name] then
        cases[#cases + 1] = { number = #cases + 1, model = name, nodes = nodes }
      end
    end
  end
  table.sort(cases, util.by('-nodes', 'number')) -- the longest first: processes end together
  return cases
end

local made = setmetatable({}, { __mode = 'k' }) -- by settings

--- All cases that settings ask for, in order, each { model =, nodes =, rows = }; studied once.
function studies.of(settings)
  local key = settings.shared or settings
  if not made[key] then
    -- Ranks of a job share every search, so they study the cases in turn.
    made[key] = parallel_map(cases_of(settings), function(case) return study(case, settings) end,
      { quiet = settings.json, workers = dist.current() and 1 or nil })
    table.sort(made[key], function(a, b) return a.number < b.number end)
  end
  return made[key]
end

--- The mean over cases of what `of(case, row)` says of a method's row; nil where a case has no such row.
function studies.mean(cases, method, of)
  local values = {}
  for i, case in ipairs(cases) do
    local row = studies.find(case, method)
    if not row then return nil end
    values[i] = of(case, row)
  end
  return #values > 0 and statistics.mean(values) or nil
end

--- The updates of a method's policy in all cases and runs as a row of a page has them; nil for one without.
function studies.updates(cases, method)
  local least, most = math.huge, -math.huge
  for _, case in ipairs(cases) do
    for _, count in ipairs(studies.find(case, method).updates or {}) do
      least, most = math.min(least, count), math.max(most, count)
    end
  end
  if most < 0 then return nil end
  return least == most and most or ('%d - %d'):format(least, most)
end

return studies
