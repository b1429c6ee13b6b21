-- Finished runs that trinity.compare keeps in its option `out`, each with what it was computed from: a later comparison
-- takes a run from there only where all of that is equal.

local core = require 'trinity.core'
local identity = require 'trinity.runs.identity'
local methods = require 'trinity.methods'
local search = require 'trinity.search'
local strategy = require 'trinity.strategy.strategy'
local tensorboard = require 'trinity.runs.tensorboard'
local util = require 'trinity.base.util'

local kept_runs = {}

-- Options of methods that change no result.
local silent = { quiet = true, rescue = true, save = true }

--- A text of everything that the results of a problem depend on; nil if there is none. A cost function is also
--- identified by the times that it gives: it may read them from anywhere.
function kept_runs.problem(problem)
  local default = problem.default_schedule or {}
  local times = {}
  for d = 1, problem.cost and #problem.cluster.devices or 0 do times[d] = problem:operator_times(d) end
  return identity.of { trinity = core.version, graph = problem.graph, cluster = problem.cluster, rules = problem.rules,
    reward = problem.reward, cost = problem.cost, times = times, schedule = default.schedule,
    micro_batches = default.micro_batches }
end

--- Options of a method as text, with the contents of files that they name; nil where that cannot be written.
local function of_options(given)
  local decisive, files = {}, {}
  for key, value in util.sorted_pairs(given or {}) do
    if not silent[key] then decisive[key] = value end
    if not silent[key] and type(value) == 'string' then files[key] = identity.of_file(value) end
  end
  return identity.of { decisive, files }
end

--- Everything that run `seed` of a method depends on: { path =, text = }; nil without option `out`, or if something
--- has no text. about: what kept_runs.problem() returned.
function kept_runs.of(options, about, name, seed)
  if not options.out then return nil end
  local own, method = of_options(options[name]), methods.info(name)
  local run = identity.is_own(method.run) and name or identity.of { name, method.run }
  if not about or not own or not run then return nil end
  local text = ('%s; %s; %s; seed %d, %.17g evaluations, %.17g s'):format(about, run, own, seed, options.evaluations,
    options.seconds)
  local budget = (options.evaluations < search.unlimited and ('-%de'):format(options.evaluations) or '')
    .. (options.seconds < math.huge and ('-%gs'):format(options.seconds) or '')
  return { text = text, path = ('%s/%s%s-seed%d-%08x.json'):format(options.out, name, budget, seed,
    tensorboard.crc32c(text)) }
end

--- The run that an earlier comparison kept, or nil.
function kept_runs.load(problem, kept)
  if not kept or not util.exists(kept.path) then return nil end
  local ok, found = pcall(strategy.load, problem, kept.path)
  if not ok or found.saved.computed_from ~= kept.text then return nil end
  local notes = found.saved
  if tonumber(notes.reward) ~= found.reward then return nil end
  for _, key in ipairs { 'evaluations', 'updates', 'seconds', 'seed' } do found[key] = tonumber(notes[key]) end
  found.search_stages = notes.stages and { notes.stages }
  return found
end

--- Writes a finished run; nil, or why it cannot be written.
function kept_runs.save(problem, found, kept)
  local notes = { method = found.method, seed = found.seed, reward = found.reward, evaluations = found.evaluations,
    updates = found.updates, seconds = found.seconds,
    stages = found.search_stages and table.concat(found.search_stages, ' + '),
    step_time_s = found.metrics.step_time_s, computed_from = kept.text }
  local ok, message = pcall(core.write_file, kept.path, problem:to_json(found, notes))
  if ok or core.stop_requested() then return nil end
  return (util.unplaced(message):gsub('^trinity%.write_file: ', ''))
end

return kept_runs
