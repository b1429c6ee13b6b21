-- Strategies: what a method returns, priced, saved and loaded.

local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local hooks = require 'trinity.base.hooks'
local options_of = require 'trinity.base.options'
local infeasibility = require 'trinity.strategy.infeasibility'
local made_for = require 'trinity.strategy.made_for'
local simulator = require 'trinity.strategy.simulator'
local parallelism = require 'trinity.strategy.parallelism'
local splits = require 'trinity.strategy.splits'
local util = require 'trinity.base.util'

--- What a ranker of moves came to in a search.
---@class trinity.Ranking
---@field seconds number spent on it: states, features and scores
---@field trials integer simulated moves that it chose
---@field improving integer those that were better than what they changed
---@field plain_trials integer moves tried as they were drawn
---@field plain_improving integer

---@class trinity.Strategy: trinity.PlanSpec
---@since 0.1.0
---@field mesh? trinity.Mesh of one that is the same for all layers, as the next five
---@field devices? integer[] that the mesh is made of
---@field virtual_stages? integer
---@field stages? integer[] layers of every virtual stage
---@field recompute? trinity.RecomputeWord
---@field operators? table<string, trinity.OperatorChoice> what holds for single operators instead
---@field inside? integer[] place of every operator inside its stage, where the mesh has several
---@field sequence_parallel? boolean
---@field scatter_gather? boolean
---@field overlap_tensor? boolean
---@field shard? integer
---@field bucket_bytes? integer
---@field context_kind? trinity.ContextKind
---@field synchronise? trinity.MeshSynchronisation
---@field problem trinity.Problem
---@field metrics trinity.Metrics
---@field reward number
---@field method? string what found it
---@field seed? integer
---@field evaluations? integer
---@field updates? integer of a policy, where the method learns one
---@field ranking? trinity.Ranking of a search whose moves a ranker chose
---@field search_stages? string[] what the search went through, where that depends on its options and budget
---@field seconds? number wall-clock time of the search
---@field curve? trinity.CurvePoint[]
---@field stopped? boolean whether Ctrl-C ended the search
---@field optimal? boolean of methods max_load_dp and pase: whether their own measure is proved to allow no better
---@field saved? table<string, string> notes of the file that it was loaded from
---@field reevaluated? string of a file that was evaluated on something else than it was made for: what that was
---@field replication? trinity.Replication copies of it on further devices and how they are kept together
local Strategy = { __name = 'strategy' }
Strategy.__index = Strategy

function Strategy.__tostring(self)
  local text = ('%s: %s%s'):format(self.method or 'strategy', tostring(self.metrics),
    self.reward and (', reward %.6g'):format(self.reward) or '') -- a reward's argument has none yet
  local why = infeasibility.of(self.metrics, self.problem.cluster)
  return why and ('%s; %s'):format(text, why.text) or text
end

--- Strategies are equal that say the same of one graph on one cluster, whatever found them.
function Strategy.__eq(a, b) return a.problem:to_json(a, {}, {}) == b.problem:to_json(b, {}, {}) end

local strategy = {}

function strategy.is(value) return getmetatable(value) == Strategy end

-- What a strategy says beside its placement and splits.
local function own_words(owner, problem, plan, schedule)
  return parallelism.is(plan) and parallelism.fields(owner, plan, problem.graph) or schedule or {}
end

--- Prices a plan. Fields: problem, placement, those of its schedule (schedule, micro_batches, ...),
--- metrics, reward, and those of `about`. any: see simulator.run. again: see problem:score.
function strategy.new(owner, problem, plan, about, any, again)
  local self = util.merged({ problem = problem }, about)
  local placement, schedule = simulator.parts(owner, problem, plan)
  self.placement = placement
  self.splits = type(plan) == 'table' and plan.splits or nil
  for key, value in util.sorted_pairs(own_words(owner, problem, plan, schedule)) do self[key] = value end
  self.metrics = simulator.run(owner, problem, plan, any)
  self.reward = problem:score(self.metrics, plan, again)
  return setmetatable(self, Strategy)
end

--- What a reward is given of a plan: a strategy that may be kept, without a reward.
function strategy.unrewarded(owner, problem, plan, metrics)
  local placement, schedule = simulator.parts(owner, problem, plan)
  local self = { problem = problem, placement = array.copy(placement), metrics = metrics,
    splits = type(plan) == 'table' and plan.splits or nil }
  for key, value in util.sorted_pairs(own_words(owner, problem, plan, schedule)) do self[key] = value end
  return setmetatable(self, Strategy)
end

--- A strategy whose metrics and reward are known: `result` of a search, with the fields of `about`.
function strategy.of_result(problem, plan, result, about)
  local self = strategy.unrewarded('search', problem, plan, result.metrics)
  return setmetatable(util.merged(self, { reward = result.reward }, about), Strategy)
end

local saved_metrics = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes',
  'total_communication_bytes', 'excess_memory_bytes' }

--- What no strategy of whole operators with as many micro-batches can beat; one with splits may. Of a strategy with a
--- mesh: what no placement of the graph that it lowers to can beat.
---@return trinity.Bounds
function Strategy:bounds()
  if self.mesh then
    local inner, there = simulator.lowered('strategy:bounds', self.problem, parallelism.cheapest(self))
    return inner.handle:bounds(self.micro_batches or 1, there.schedule == 'round-robin')
  end
  return self.problem:bounds(self.micro_batches or 1, self.schedule or 'fifo')
end

--- What found it, for a table: the method, or where its policy was never updated what else it went through.
---@return string
function Strategy:found_by()
  if self.updates ~= 0 then return self.method or 'strategy' end
  local stages = self.search_stages or {}
  return #stages > 0 and table.concat(stages, ' + ') or self.method .. ', untrained'
end

--- The time of a training with its replication.
---@param options trinity.ReplicatedTraining
---@return trinity.TrainingTime
function Strategy:train(options)
  if not self.replication then
    util.fail 'strategy:train: this strategy has no replication (replication:strategy gives one that has)'
  end
  return self.replication:train(options)
end

--- What keeps it from fitting: which device is over its memory and by how much; nil where it fits.
---@return trinity.Infeasibility?
function Strategy:infeasibility() return infeasibility.of(self.metrics, self.problem.cluster) end

--- What it says and what that costs, in words: devices, stages, work, waiting, memory.
---@return string
function Strategy:explain() return require 'trinity.strategy.explain'(self) end

--- What every device holds, computes and exchanges in a step, by kind; of a strategy with a mesh by stage, too.
---@return trinity.Account
function Strategy:account() return (require('trinity.strategy.account')(self)) end

--- What happened when in a step of it.
---@return trinity.Timeline
function Strategy:timeline() return simulator.timeline('strategy:timeline', self.problem, self) end

--- Writes a picture of it (SVG): one row per stage of the pipeline or, of a placement, per device, with its layers,
--- what it does in a step, and who owns its memory.
---@param path string
---@return string path
function Strategy:picture(path)
  check.path('strategy:picture', 1, 'path', path)
  util.write_file('strategy:picture', path, hooks.picture(self))
  return path
end

--- A strategy as JSON text: see strategy:save.
function strategy.text(self)
  local notes = util.merged(util.picked(self.metrics, saved_metrics), util.picked(self, { 'method', 'seed',
    'evaluations' }), { reward = self.reward,
    updates = self.updates ~= 0 and self.updates or nil, -- none is what a search without a policy writes
    lower_bound_s = not self.splits and self:bounds().step_time_s or nil, -- it binds whole operators
    feasible = self.metrics.feasible })
  return self.problem:to_json(self, notes)
end

--- Writes the strategy as JSON: the device of every operator by name, the schedule, its replication, and the facts
--- behind them. Wall-clock times stay out, so that equal searches write equal bytes.
---@param path string
---@return string path
function Strategy:save(path)
  check.path('strategy:save', 1, 'path', path)
  util.write_file('strategy:save', path, strategy.text(self))
  return path
end

--- Writes the strategy as a file of another program (trinity.formats): returns its text, or with option folder the
--- paths of the files written there, and what they do not say, which is told on standard error, too.
---@param options trinity.ExportOptions
---@return string|string[] text_or_paths
---@return string[] unsaid
function Strategy:export(options) return hooks.export(self, options) end

--- What a strategy costs as plain data.
function strategy.facts(found)
  local m = found.metrics
  local memory = util.listed(m.device_count, function(d) return m:memory_bytes(d) end)
  return { seed = found.seed, step_time_s = m.step_time_s, fits = m.feasible, infeasibility = found:infeasibility(),
    peak_memory_bytes = memory,
    peak_communication_bytes = m.peak_communication_bytes, total_communication_bytes = m.total_communication_bytes,
    lower_bound_s = found:bounds().step_time_s, reward = found.reward, evaluations = found.evaluations,
    updates = found.updates, seconds = found.seconds }
end

--- The plan of a file: what the engine read of it, and its placement.
function strategy.plan_of(problem, loaded, placement)
  local plan = loaded.parallelism or loaded.schedule or {}
  if not plan.mesh then plan.placement = placement end
  plan.splits = loaded.splits and splits.named(problem.graph, loaded.splits) or nil
  return plan
end

--- Refuses a file that was made for something else, unless it is to be evaluated anew; then what it was made for.
local function other_than_made_for(problem, path, notes, differs, reevaluate)
  local of, _, names = made_for.read(path)
  local text = made_for.text(of, names.graph, names.cluster)
  local step_s = tonumber(notes.step_time_s)
  if not reevaluate then
    util.fail('%s: made for %s; this is %s; use reevaluate = true (--reevaluate) to evaluate it here', path, text,
      differs)
  end
  return ('made for %s%s; evaluated anew for %s on %s'):format(text,
    step_s and (' (a step of %.10g s)'):format(step_s) or '', problem.graph.name, problem.cluster.name)
end

local load_options = options_of.declare('trinity.LoadOptions', { help = 'What problem:load takes.',
  { 'reevaluate', 'boolean', false, help = 'evaluates a strategy that was made for something else; it says so in '
    .. '`reevaluated`' },
})

--- Loads a file that save() wrote, schedule and replication included. Field `saved` holds the notes as text.
function strategy.load(problem, path, options)
  local reevaluate = load_options:read('problem:load', 2, 'options', options).reevaluate
  local placement = problem:placement()
  local ok, loaded = pcall(problem.handle.from_json, problem.handle, util.read_file(path), path, placement)
  if not ok then
    local why = not reevaluate and made_for.difference_of_file(problem, path)
    if why then other_than_made_for(problem, path, {}, why) end
    util.fail('%s', (util.unplaced(tostring(loaded)):gsub('^problem:from_json', 'problem:load')))
  end
  local differs = made_for.difference(problem, loaded)
  local other = differs and other_than_made_for(problem, path, loaded.notes, differs, reevaluate)
  local plan = strategy.plan_of(problem, loaded, placement)
  local fits, metrics = pcall(problem.evaluate, problem, plan)
  if not fits then util.fail('%s: %s', path, util.unplaced(metrics)) end
  differs = not other and made_for.changed(loaded, metrics.step_time_s)
  other = other or differs and other_than_made_for(problem, path, loaded.notes, differs, reevaluate)
  local found = strategy.new('problem:load', problem, plan, { method = loaded.notes.method, saved = loaded.notes,
    reevaluated = other })
  found.replication = loaded.replication and hooks.read_replication(problem, placement, path, loaded.replication)
  return found
end

check.methods(Strategy, 'trinity.Strategy', 'split layout')

return strategy
