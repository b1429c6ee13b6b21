-- Strategies: results of methods, which can be simulated, saved and loaded.

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

--- Statistics of a move ranker in a search.
---@class trinity.Ranking
---@field seconds number time spent on states, features and scores
---@field trials integer simulated moves that the ranker chose
---@field improving integer chosen moves that improved the placement
---@field plain_trials integer simulated moves without ranking
---@field plain_improving integer

---@class trinity.Strategy: trinity.PlanSpec
---@field mesh? trinity.Mesh mesh of a regular strategy, as the following fields
---@field devices? integer[] devices of the mesh
---@field virtual_stages? integer
---@field stages? integer[] layers of every virtual stage
---@field recompute? trinity.RecomputeWord
---@field operators? table<string, trinity.OperatorChoice> settings that override the mesh for single operators
---@field inside? integer[] device of every operator within its stage, if the mesh axis `placement` is above 1
---@field sequence_parallel? boolean
---@field scatter_gather? boolean
---@field overlap_tp_grad_allreduce? boolean
---@field zero_stage? integer
---@field optimizer_offload_fraction? number
---@field activation_offload_fraction? number
---@field bucket_bytes? integer
---@field cp_comm_type? trinity.ContextKind
---@field sync? trinity.MeshSynchronisation
---@field problem trinity.Problem
---@field metrics trinity.Metrics
---@field reward number
---@field method? string method that found it
---@field seed? integer
---@field evaluations? integer
---@field updates? integer policy updates, if the method learns a policy
---@field ranking? trinity.Ranking statistics of the move ranker
---@field search_stages? string[] stages of the search, if they depend on its options and budget
---@field seconds? number wall-clock time of the search
---@field curve? trinity.CurvePoint[]
---@field stopped? boolean true: Ctrl-C ended the search
---@field optimal? boolean max_load_dp and pase: true if the result is proved optimal by the method's own measure
---@field saved? table<string, string> notes from the file that it was loaded from
---@field reevaluated? string problem that a re-evaluated file was made for
local Strategy = { __name = 'strategy' }
Strategy.__index = Strategy

function Strategy.__tostring(self)
  local text = ('%s: %s%s'):format(self.method or 'strategy', tostring(self.metrics),
    self.reward and (', reward %.6g'):format(self.reward) or '') -- the argument of a reward function has no reward yet
  local why = infeasibility.of(self.metrics, self.problem.cluster)
  return why and ('%s; %s'):format(text, why.text) or text
end

--- Strategies are equal if they have equal settings for one graph and cluster, whatever method found them.
function Strategy.__eq(a, b) return a.problem:to_json(a, {}, {}) == b.problem:to_json(b, {}, {}) end

local strategy = {}

function strategy.is(value) return getmetatable(value) == Strategy end

-- Returns the strategy of a plan without metrics: problem, placement, splits, and fields of its mesh or schedule, over
-- fields of `about`.
local function of_plan(owner, problem, plan, about)
  local placement, schedule = simulator.parts(owner, problem, plan)
  return setmetatable(util.merged(about, { problem = problem, placement = placement,
    splits = type(plan) == 'table' and plan.splits or nil },
    parallelism.is(plan) and parallelism.fields(owner, plan, problem.graph) or schedule), Strategy)
end

--- Simulates a plan and makes a strategy. Fields: problem, placement, fields of its schedule (schedule, micro_batches,
--- ...), metrics, reward, and fields of `about`. any: see simulator.run. again: see problem:score.
function strategy.new(owner, problem, plan, about, any, again)
  local self = of_plan(owner, problem, plan, about)
  self.metrics = simulator.run(owner, problem, plan, any)
  self.reward = problem:score(self.metrics, plan, again)
  return self
end

--- Returns the strategy that a reward function gets: it may be kept and has no reward.
function strategy.unrewarded(owner, problem, plan, metrics)
  local self = of_plan(owner, problem, plan)
  self.placement, self.metrics = array.copy(self.placement), metrics
  return self
end

--- Returns a strategy with known metrics and reward: `result` of a search, with the fields of `about`.
function strategy.of_result(problem, plan, result, about)
  local self = strategy.unrewarded('search', problem, plan, result.metrics)
  return setmetatable(util.merged(self, { reward = result.reward }, about), Strategy)
end

local saved_metrics = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes',
  'total_communication_bytes', 'excess_memory_bytes' }

--- Returns lower bounds of step time (seconds) and memory (bytes) over all strategies without splits and with the same
--- number of micro-batches; a strategy with splits may be faster. For a mesh: over all placements of the lowered graph.
--- Example: `strategy:bounds().step_time_s`
---@return trinity.Bounds
function Strategy:bounds()
  if self.mesh then
    local inner, there = simulator.lowered('strategy:bounds', self.problem, parallelism.cheapest(self))
    return inner.handle:bounds(self.micro_batches or 1, there.schedule == 'round-robin')
  end
  return self.problem:bounds(self.micro_batches or 1, self.schedule or 'fifo')
end

--- Returns the method for a table or, if its policy was never updated, the other stages of the search. Example:
--- `strategy:found_by()`
---@return string
function Strategy:found_by()
  if self.updates ~= 0 then return self.method or 'strategy' end
  local stages = self.search_stages or {}
  return #stages > 0 and table.concat(stages, ' + ') or self.method .. ', untrained'
end

--- Returns which device exceeds its memory and by how much, or nil if the strategy fits. Example:
--- `strategy:infeasibility()`
---@return trinity.Infeasibility?
function Strategy:infeasibility() return infeasibility.of(self.metrics, self.problem.cluster) end

--- Explains the strategy in a text: devices, stages, computation, waiting, memory. Example: `print(strategy:explain())`
---@return string
function Strategy:explain() return require 'trinity.strategy.explain'(self) end

--- Returns memory (bytes), computation (seconds) and messages of every device in a step, by purpose, and with a mesh
--- also by stage. Example: `strategy:breakdown().devices[1].weight_bytes`
---@return trinity.Account
function Strategy:breakdown() return (require('trinity.strategy.account')(self)) end

--- Simulates a strategy with a mesh in every order of its axes on the devices. Returns the orders, fastest first; of
--- equally fast orders, the default of training software comes first. Raises an error if the strategy has no mesh.
--- Example: `strategy:rank_orders()[1].order`
---@return trinity.RankOrder[]
function Strategy:rank_orders() return require('trinity.strategy.rank_order').all(self) end

--- Simulates one step and returns its timeline. Example: `strategy:timeline():critical_path()`
---@return trinity.Timeline
function Strategy:timeline() return simulator.timeline('strategy:timeline', self.problem, self) end

--- Writes a picture (SVG) with one row per pipeline stage or, for a placement, per device: its layers, its tasks in a
--- step, and its memory by owner. Returns the path. Raises an error if the file cannot be written. Example:
--- `strategy:picture 'plan.svg'`
---@param path string
---@return string path
function Strategy:picture(path)
  check.path('strategy:picture', 1, 'path', path)
  util.write_file('strategy:picture', path, hooks.picture(self))
  return path
end

--- Returns a strategy as JSON text: see strategy:save.
function strategy.text(self)
  local notes = util.merged(util.picked(self.metrics, saved_metrics), util.picked(self, { 'method', 'seed',
    'evaluations' }), { reward = self.reward,
    updates = self.updates ~= 0 and self.updates or nil, -- a search without a policy writes none
    lower_bound_s = not self.splits and self:bounds().step_time_s or nil, -- it holds without splits
    feasible = self.metrics.feasible })
  return self.problem:to_json(self, notes)
end

--- Writes the strategy as JSON: the device of every operator by name, the schedule and its metrics.
--- Wall-clock times are omitted, so that equal searches write equal bytes. Returns the path. Raises an error if the
--- file cannot be written. Example: `strategy:save 'strategy.json'`
---@param path string
---@return string path
function Strategy:save(path)
  check.path('strategy:save', 1, 'path', path)
  util.write_file('strategy:save', path, strategy.text(self))
  return path
end

--- Exports the strategy to the format of another program (trinity.formats). Returns the text or, with option folder,
--- the paths of the written files, and a list of settings that the format cannot represent, about which it also warns.
--- Example: `strategy:export { format = 'megatron' }`
---@param options trinity.ExportOptions
---@return string|string[] text_or_paths
---@return string[] lost
function Strategy:export(options) return hooks.export(self, options) end

--- Returns the costs of a strategy as plain data.
function strategy.facts(found)
  local m = found.metrics
  local memory = util.listed(m.device_count, function(d) return m:memory_bytes(d) end)
  return { seed = found.seed, step_time_s = m.step_time_s, fits = m.feasible, infeasibility = found:infeasibility(),
    peak_memory_bytes = memory,
    peak_communication_bytes = m.peak_communication_bytes, total_communication_bytes = m.total_communication_bytes,
    lower_bound_s = found:bounds().step_time_s, reward = found.reward, evaluations = found.evaluations,
    updates = found.updates, seconds = found.seconds }
end

--- Returns the plan of a file, from the engine's result and the placement.
function strategy.plan_of(problem, loaded, placement)
  local plan = loaded.parallelism or loaded.schedule or {}
  if not plan.mesh then plan.placement = placement end
  plan.splits = loaded.splits and splits.named(problem.graph, loaded.splits) or nil
  return plan
end

--- Raises an error for a file that was made for another problem, unless it is to be re-evaluated; then returns a text
--- on the problem that it was made for.
local function other_than_made_for(problem, path, notes, differs, reevaluate)
  local of, _, names = made_for.read(path)
  local text = made_for.text(of, names.graph, names.cluster)
  local step_s = tonumber(notes.step_time_s)
  if not reevaluate then
    util.fail('%s: made for %s; this is %s; use reevaluate = true (--reevaluate) to evaluate it here', path, text,
      differs)
  end
  return ('made for %s%s; re-evaluated for %s on %s'):format(text,
    step_s and (' (step time %.10g s)'):format(step_s) or '', problem.graph.name, problem.cluster.name)
end

local load_options = options_of.declare('trinity.LoadOptions', { help = 'What problem:load takes.',
  { 'reevaluate', 'boolean', false, help = 'also load a strategy that was made for another problem, and name that '
    .. 'problem in `reevaluated`' },
})

--- Loads a file that save() wrote, with its schedule. Field `saved` has its notes as text.
function strategy.load(problem, path, options)
  local reevaluate = load_options:read('problem:load', 2, 'options', options).reevaluate
  local placement = problem:placement()
  local ok, loaded = pcall(problem.handle.from_json, problem.handle, util.read_file(path), path, placement)
  if not ok then
    local is_strategy, message = pcall(made_for.read, path)
    if not is_strategy then util.fail('%s', util.unplaced(tostring(message))) end
    local why = not reevaluate and made_for.difference_of_file(problem, path)
    if why then other_than_made_for(problem, path, {}, why) end
    util.fail('%s', (util.unplaced(tostring(loaded)):gsub('^problem:from_json', 'problem:load')))
  end
  local differs = made_for.difference(problem, loaded)
  local other = differs and other_than_made_for(problem, path, loaded.notes, differs, reevaluate)
  local plan = strategy.plan_of(problem, loaded, placement)
  local batch = made_for.of(problem, plan).global_batch
  if not other and (loaded.made_for.global_batch or batch) ~= batch then
    util.fail("%s: made_for: field 'global_batch': expected micro-batch x micro-batches x data = %d, got %g", path,
      batch, loaded.made_for.global_batch)
  end
  local fits, metrics = pcall(problem.evaluate, problem, plan)
  if not fits then util.fail('%s: %s', path, util.unplaced(metrics)) end
  differs = not other and made_for.changed(loaded, metrics.step_time_s)
  other = other or differs and other_than_made_for(problem, path, loaded.notes, differs, reevaluate)
  local found = strategy.new('problem:load', problem, plan, { method = loaded.notes.method, saved = loaded.notes,
    reevaluated = other })
  return found
end

check.methods(Strategy, 'trinity.Strategy', 'split layout')

return strategy
