-- The search of a plan: one queue of families of points, points of one kind, and plans with the engine's bound; one
-- policy, which takes what promises the shortest step; one protocol of neighbours (moves.lua). A search of more
-- simulations goes on from one of fewer; threads and clocks change nothing where no limit in seconds cuts it short.

local bounds = require 'trinity.plan.bounds'
local by_layer = require 'trinity.plan.by_layer'
local core = require 'trinity.core'
local infeasibility = require 'trinity.strategy.infeasibility'
local growth = require 'trinity.plan.growth'
local inside = require 'trinity.plan.inside'
local moves = require 'trinity.plan.moves'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local util = require 'trinity.base.util'

local Search = {}
Search.__index = Search

-- Taken from the queue at a time: kinds of points (or families) and points of each; plans, and of these of one kind.
local at_once = { kind = 32, points = 4, simulation = 8, alike = 2 }
-- After the last simulation: families that are opened and points that are bounded at most to raise the bound on all
-- plans, until the best is so near.
local proof = { opened = 256, bounded = 8192, gap = 0.03 }
-- Standard deviations below the mean that estimates are.
local cautious, bold = 0.5, 2
-- Plans of a batch that cautious estimates choose while these promise anything better; others explore, the last by
-- bounds alone.
local careful = 6
local roomy = 0.9 -- of a device's memory: a bound below it will fit
local patience = 16 -- neighbours that are simulated in vain before only those go on that promise to be the best
local most_uneven = 24 -- plans that are sampled with uneven work
local fitted_from, other_from = 6, 1 -- numbers of shapes, that fit and that do not, whose best plans have neighbours

--- options: networks, space, count (plans), simulations, tasks (of one of them), seconds, reward (a function),
--- rate(point) (what a second of a step costs: bounds are on the cost of a step, which is minimised), own (dimensions),
--- quantile(problem, strategy) in seconds, with slack (how much more than the step it may be, a share), uneven (it
--- may be less), say(text), capacity_bytes, methods (names) and method_options of placement inside stages, included
--- (points).
function Search.new(options)
  local self = setmetatable(util.merged({}, options), Search)
  self.queue, self.beyond, self.number, self.results, self.seen, self.asked = {}, {}, 0, {}, {}, {}
  self.counts = { points = 0, families = 0, opened = 0, bounded = 0, simulated = 0, neighbours = 0,
    simulated_neighbours = 0 }
  self.pruned = { contradictory = 0, memory = 0, bound = 0, duplicates = 0, refused = 0 }
  self.refused, self.reasons, self.splits, self.started_s = {}, {}, {}, core.clock_s()
  self.near, self.places, self.tried, self.strata = {}, {}, {}, {}
  self.alike, self.estimates, self.features, self.vain = {}, 0, {}, 0
  self.time, self.memory = growth.new(0.05, 0.1), growth.new(0.02, 0.03)
  return self
end

-- Counts what became of points of the space; `entry`: of one point, which is none of the space if a move made it.
local function count(self, name, by, entry)
  if not (entry and entry.moved) then self.pruned[name] = self.pruned[name] + (by or 1) end
end

function Search:progress_text()
  local best, c = self.results[1], self.counts
  local now = best and (', best %.4g s%s'):format(best.metrics.step_time_s, best.metrics.feasible and ''
    or ' (does not fit)') or ''
  return ('%d points, %d bounded, %d simulated%s'):format(c.points, c.bounded, c.simulated, now)
end

--- Whether to end: asked to, or out of time.
function Search:stopping()
  self.stopped = core.stop_requested() and core.stop_name()
    or core.clock_s() - self.started_s > self.seconds and 'seconds' or self.stopped
  return self.stopped ~= nil
end

--- The cost of a step that a plan must beat to be the best. By a reward that is a function no bound decides.
function Search:limit_s()
  if self.shapes then return math.huge end
  local best = not self.reward and self.results[1]
  local factor = self.proving and 1 / (1 + proof.gap) or 1 + (self.slack or 0)
  return best and best.metrics.feasible and best.cost * factor or math.huge
end

--- Puts an entry into the queue: kind, point (whose features its estimate goes by), bound_s.
function Search:push(entry)
  self.number = self.number + 1
  entry.number = self.number
  local features = growth.features(entry.point)
  entry.key = table.concat(features, ' ')
  self.features[entry.key] = self.features[entry.key] or features -- one table for all of a kind
  entry.features = self.features[entry.key]
  self.queue[#self.queue + 1] = entry
end

--- The nearest that does not fit, by the bound of the fullest device, of every split of layers and micro-batch.
function Search:note_memory(point, memory_bytes)
  local key, bytes = ('%d %d %d %d'):format(point.tensor, point.context, point.expert, point.micro_batch), memory_bytes
  if self.near[key] and self.near[key].memory_bytes <= bytes then return end
  bytes = math.ceil(bytes)
  self.near[key] = { point = space.kept(point), excess_bytes = bytes - self.capacity_bytes, memory_bytes = bytes }
end

--- Where nothing fits: the nearest whose layers can be split so; nil where the reasons of self.refused forbid all.
function Search:find_nearest()
  local list = util.map(util.sorted_keys(self.near), function(key) return self.near[key] end)
  table.sort(list, function(a, b)
    if a.excess_bytes ~= b.excess_bytes then return a.excess_bytes < b.excess_bytes end
    return space.text(a.point) < space.text(b.point)
  end)
  for _, entry in ipairs(list) do
    local ok, why = pcall(self.networks.units, self.networks, entry.point, 1)
    if ok then return entry end
    if core.stop_requested() then return nil end
    if #self.refused == 0 then self.impossible = util.unplaced(tostring(why)):gsub('^problem:[%w_]+: ', '') end
  end
end

--- Counts what lowering refuses under its sentence; Ctrl-C's end of it is no refusal. of: see count().
function Search:lose(reason, by, example, of)
  reason = util.unplaced(tostring(reason))
  if core.stop_requested() and reason:find('interrupted', 1, true) then error(reason, 0) end
  count(self, 'refused', by, of)
  reason = reason:gsub('^problem:[%w_]+: ', '')
  local entry = self.reasons[reason]
  if not entry then
    entry = { reason = reason, points = 0, example = space.kept(example) }
    self.reasons[reason], self.refused[#self.refused + 1] = entry, entry
  end
  entry.points = entry.points + by
end

--- Calls visit(point, bound_s, memory_bytes) for the points of a family that do not contradict themselves; returns how
--- many do. What a dimension of one's own does is known only to the engine.
function Search:each(family, totals, visit)
  local wrong, open = 0, not totals or next(self.own) ~= nil
  self.space:each(family, function(point, reason)
    if reason then
      wrong = wrong + 1
    elseif open then
      visit(point, 0, 0)
    else
      local stages_like = self.unequal and self.unequal:stages_of(point, totals.slower)
      visit(point, bounds.step_time_s(point, totals, stages_like) * self.rate(point),
        bounds.memory_bytes(point, totals))
    end
  end)
  return wrong
end

--- Puts a family into the queue by the least bound of its points, from the profile of one device.
function Search:add_family(family)
  local ok, totals = pcall(self.networks.totals, self.networks, family, false)
  if not ok and core.stop_requested() then error(totals, 0) end
  local entry = { kind = 'family', family = family, bound_s = math.huge, points = 0 }
  self.counts.families = self.counts.families + 1
  if family.recompute == 'selective' then -- only where it was asked for, if it frees nothing
    self.fused = self.fused or (self.networks:selective_frees(family) or 1) <= 0.01
  end
  local points, near, near_bytes = 0, nil, nil
  local wrong = self:each(family, ok and totals or nil, function(point, bound_s, bytes)
    points = points + 1
    if bytes > self.capacity_bytes then
      if not near_bytes or bytes < near_bytes then near, near_bytes = space.kept(point), bytes end
      return
    end
    entry.points = entry.points + 1
    if bound_s < entry.bound_s then entry.bound_s, entry.point = bound_s, space.kept(point) end
  end)
  self.counts.points = self.counts.points + points + wrong
  count(self, 'contradictory', wrong)
  if not ok then return self:lose(totals, points, family) end
  count(self, 'memory', points - entry.points)
  if near then self:note_memory(near, near_bytes) end
  if entry.points > 0 then self:push(entry) end
end

-- The properties that points of one kind share in addition to their family.
local function kind_of(entry)
  local point = entry.point
  return ('%d %d %d %s %d %s %s'):format(point.placement, point.pipeline, point.data, point.schedule, point.zero_stage,
    point.algorithm, tostring(point.order))
end

--- Opens a family: its own profile, and its points into the queue, kind by kind.
function Search:open(entry)
  self.counts.opened = self.counts.opened + 1
  local ok, totals = pcall(self.networks.totals, self.networks, entry.family, true)
  if not ok then return self:lose(totals, entry.points, entry.family) end
  local list, limit, seen = {}, self:limit_s(), 0
  self:each(entry.family, totals, function(point, bound_s, bytes)
    if bytes > self.capacity_bytes then return self:note_memory(point, bytes) end
    seen = seen + 1
    if bound_s >= limit then return count(self, 'bound') end
    -- of one micro-batch it takes as long as ZeRO stage 1
    if point.zero_stage == 2 and point.micro_batches == 1 and self.space:takes(point, 'zero_stage', 1)
      and bounds.memory_bytes(util.merged(point, { zero_stage = 1 }), totals) < roomy * self.capacity_bytes then
      return count(self, 'duplicates')
    end
    list[#list + 1] = { point = space.kept(point), bound_s = bound_s, number = seen }
  end)
  count(self, 'memory', entry.points - seen) -- below 0 where its own profile takes less than one device's
  for _, kind in ipairs(util.grouped(list, kind_of)) do
    table.sort(kind, function(a, b)
      if a.bound_s ~= b.bound_s then return a.bound_s < b.bound_s end
      return a.number < b.number
    end)
    self:push_points(kind)
  end
end

--- Puts points of one kind into the queue, by the first of them.
function Search:push_points(list)
  self:push { kind = 'points', list = list, point = list[1].point, bound_s = list[1].bound_s, points = #list }
end

--- The problem that bounds of a point are of, and the layers that it stands for.
function Search:bounder(point)
  if next(self.own) then return self.networks:problem(point.micro_batch) end
  return self.networks:bounder(by_layer.is(point) and util.merged(point, { recompute = 'full' }) or point)
end

--- The strategy of an entry: settles stages and devices that are words, places operators inside stages, and applies
--- dimensions of one's own; nil where another point has the same stages. Throws why no method places its operators.
function Search:settle(entry)
  local point = entry.point
  local moved = type(point.order) == 'table' and point.order or nil
  point.devices = self.unequal and self.unequal:devices_of(point) or moved
  if not entry.settled and point.stages == 'balanced' and point.pipeline > 1 then
    local list = stages.balanced(self, point)
    if not list and self.space.about.layers % (point.pipeline * point.virtual_stages) == 0
      and self.space:takes(point, 'stages', 'even') then
      return count(self, 'duplicates', 1, entry)
    end
    point.stages, entry.balanced = list or 'even', true
  end
  local strategy = space.strategy(point)
  if point.placement > 1 then
    local places, why = inside.of(self, self.networks:problem(point.micro_batch), strategy, point.micro_batch)
    if not places then error(why, 0) end
    point.inside, strategy.inside = places, places
  end
  for name, value in util.sorted_pairs(point.own or {}) do
    strategy = self.own[name].apply(strategy, value, point) or strategy
  end
  return strategy
end

-- The key of the problem that entries share.
local function problem_of(entry)
  local point = entry.point
  return ('%d %s %s'):format(point.micro_batch, tostring(by_layer.is(point)), tostring(point.placement > 1))
end

--- Bytes of the least device of a stage of a strategy.
function Search:room(strategy, stage)
  return self.unequal and self.unequal:room(strategy, stage) or self.capacity_bytes
end

--- The bytes by which the fullest stage exceeds its device, by the engine's bound; and the stage's bytes.
function Search:excess(entry, memory)
  local most, worst = 0, -math.huge
  for stage, bytes in ipairs(memory) do
    most, worst = math.max(most, bytes), math.max(worst, bytes - self:room(entry.strategy, stage))
  end
  return worst, most
end

--- Gives points { point =, bound_s = } the engine's bounds; those that may be the best go into the queue.
function Search:bound(entries)
  local settled = {}
  for _, entry in ipairs(entries) do
    local ok, strategy = pcall(self.settle, self, entry)
    if not ok then
      self:lose(strategy, 1, entry.point, entry)
    elseif strategy then
      entry.strategy, settled[#settled + 1] = strategy, entry
    end
  end
  local again = {}
  for _, list in ipairs(util.grouped(settled, problem_of)) do
    local problem, layers = self:bounder(list[1].point)
    local found
    if by_layer.is(list[1].point) then
      found = by_layer.bounds(self, problem, list, layers)
    else
      found = problem.handle:mesh_bounds(util.map(list, function(entry) return entry.strategy end), layers)
    end
    for i, entry in ipairs(list) do again[#again + 1] = self:bounded(entry, found[i]) end
  end
  if again[1] then self:bound(again) end
end

--- Returns the entry once more where other stages may fit.
function Search:bounded(entry, found)
  self.counts.bounded = self.counts.bounded + 1
  if found.refused then return self:lose(found.refused, 1, entry.point, entry) end
  if found.duplicate then return count(self, 'duplicates', 1, entry) end
  local worst, most = self:excess(entry, found.memory_bytes)
  if worst > 0 and not entry.included then
    local again = stages.again(self, entry, found.memory_bytes)
    if again then return again end
    count(self, 'memory', 1, entry)
    return self:note_memory(entry.point, most)
  end
  local cost = found.step_time_s * self.rate(entry.point)
  entry.kind, entry.bounds, entry.bound_s = 'plan', found, cost
  entry.fullest = most / (most - worst) -- of a device's memory
  if entry.included then table.insert(self.asked, entry) end
  self:push(entry)
end

--- The cost that an entry promises: its bound, times what bounds grow by until a simulation, less self.deviations (nil:
--- the bound alone). And whether it will fit.
function Search:estimate(entry)
  local known, deviations = entry.features, self.deviations
  if not deviations then return entry.bound_s, true end
  if known.estimates ~= self.estimates then
    known.estimates = self.estimates
    known.time, known.memory = self.time:estimate(known, deviations), self.memory:estimate(known, deviations)
  end
  return entry.bound_s * known.time, entry.kind ~= 'plan' or entry.fullest * known.memory <= 1
end

-- Whether a goes before b: what fits, then the shorter.
local function before(a, b)
  if a.fits ~= b.fits then return a.fits end
  if a.estimate_s ~= b.estimate_s then return a.estimate_s < b.estimate_s end
  return a.number < b.number
end

-- Plans of one stratum have equally many stages and the same ZeRO stage.
local function stratum_of(point) return 4 * point.pipeline + point.zero_stage end

--- The most promising entries, best first, at most `count`; entries that a bound rules out leave the queue. By bounds
--- alone it has entries of strata without a simulated plan, unless all are to be proven.
function Search:promising(most)
  local limit, rest, list = self:limit_s(), {}, {}
  local novel = not self.deviations and not self.proving
  for _, entry in ipairs(self.queue) do
    if entry.bound_s >= limit and not entry.done then
      self.beyond[#self.beyond + 1] = entry
    elseif not entry.done then
      rest[#rest + 1] = entry
      local last = list[most]
      local later = entry.chosen or last and last.fits and last.estimate_s < entry.bound_s
        or self.shapes and self.shapes[space.shape(entry.point)] or novel and self.strata[stratum_of(entry.point)]
        or entry.bounds and (entry.bounds.tasks > self.tasks or (self.alike[entry.key] or 0) >= at_once.alike)
      if not later then
        entry.estimate_s, entry.fits = self:estimate(entry)
        local at = #list + 1
        while at > 1 and before(entry, list[at - 1]) do at = at - 1 end
        -- Points made by moves lie outside the space for which optimality is proved.
        if at <= most and not (entry.moved and self.vain >= patience and entry.estimate_s >= limit) then
          table.insert(list, at, entry)
          list[most + 1] = nil
        end
      end
    end
  end
  self.queue = rest
  return list
end

--- Simulates plans; one that contradicts its graph is refused with its sentence.
function Search:simulate(entries)
  for _, list in ipairs(util.grouped(entries, function(entry) return entry.point.micro_batch end)) do
    local problem = self.networks:problem(list.name)
    local plans = util.map(list, function(entry)
      local strategy = entry.strategy
      if by_layer.is(entry.point) then
        strategy.operators = util.merged(by_layer.operators(problem.graph, entry.point, self.space.about.layers),
          strategy.operators)
      end
      return strategy
    end)
    local ok, metrics = pcall(problem.evaluate_batch, problem, plans)
    for i, entry in ipairs(list) do
      local fine, what = ok, ok and metrics[i] or nil
      if not ok then fine, what = pcall(problem.evaluate, problem, plans[i]) end
      if not fine and tostring(what):find('interrupted', 1, true) then error(what, 0) end
      entry.done = true
      if fine then self:simulated(entry, what, problem) else self:lose(what, 1, entry.point, entry) end
    end
  end
end

--- Whether result a is better than b; of equal ones the one with less memory, then the first.
local function better(a, b)
  if infeasibility.better(a, b) or infeasibility.better(b, a) then return infeasibility.better(a, b) end
  local own, other = a.metrics.peak_memory_bytes, b.metrics.peak_memory_bytes
  return own < other or own == other and a.number < b.number
end

function Search:simulated(entry, metrics, problem)
  self.counts.simulated = self.counts.simulated + 1
  self.strata[stratum_of(entry.point)] = true
  if entry.moved then self.counts.simulated_neighbours = self.counts.simulated_neighbours + 1 end
  local _, most = self:excess(entry, entry.bounds.memory_bytes)
  local time, memory = metrics.step_time_s / entry.bounds.step_time_s, metrics.peak_memory_bytes / most
  self.time:add(entry.features, time)
  self.memory:add(entry.features, memory)
  local cost = metrics.step_time_s * self.rate(entry.point)
  local reward = -cost
  if self.reward then
    reward = self.reward(metrics, problem:strategy(entry.strategy))
    if type(reward) ~= 'number' or reward ~= reward then
      util.fail('%s: the reward function at %s returned %s, expected a number', self.owner,
        util.function_place(self.reward), util.describe(reward))
    end
  end
  local result = { point = entry.point, strategy = entry.strategy, bounds = entry.bounds, bound_s = entry.bound_s,
    metrics = metrics, reward = reward, cost = cost, number = entry.number, moved = entry.moved,
    included = entry.included }
  local at = #self.results + 1
  while at > 1 and better(result, self.results[at - 1]) do at = at - 1 end
  table.insert(self.results, at, result)
  if entry.moved then self.vain = at == 1 and 0 or self.vain + 1 end
end

--- Bounds the neighbours of the best plan of each of the best shapes, of those that fit and of faster ones that do not.
function Search:move()
  local made, fitting, others, limit, shapes = {}, 0, 0, self:limit_s(), {}
  for _, result in ipairs(self.results) do
    local fits, shape = result.metrics.feasible, space.shape(result.point)
    local from = fits and fitting < fitted_from and not shapes[shape]
      or not fits and others < other_from and result.cost < limit
    if from and fits then fitting, shapes[shape] = fitting + 1, true elseif from then others = others + 1 end
    if from and not result.left and not (result.included and not self.space:holds(result.point)) then
      result.left = true
      for _, entry in ipairs(moves.of(self, result)) do made[#made + 1] = entry end
    end
  end
  self.counts.neighbours = self.counts.neighbours + #made
  self:bound(made)
end

--- Simulates plans that were not yet, within the remaining budget, and bounds the neighbours of the best.
function Search:try(plans)
  local list = {}
  for _, entry in ipairs(plans) do
    local key = moves.key_of(entry.point)
    if self.tried[key] then
      entry.done = true
      count(self, 'duplicates', 1, entry)
    elseif #list < self.simulations - self.counts.simulated then
      self.tried[key], self.seen[key], list[#list + 1] = true, true, entry
    end
  end
  self:simulate(list)
  if self.counts.simulated < self.simulations then self:move() end
end

--- Opens families and bounds the first points of kinds.
function Search:expand(entries)
  local points = {}
  for _, entry in ipairs(entries) do
    if entry.kind == 'family' then
      self:open(entry)
      entry.done = true
    else
      for _ = 1, math.min(at_once.points, #entry.list) do points[#points + 1] = table.remove(entry.list, 1) end
    end
  end
  self:bound(points)
  for _, entry in ipairs(entries) do
    entry.done = true
    if entry.kind == 'points' and entry.list[1] then self:push_points(entry.list) end
  end
end

--- The plan that promises the shortest step, after all that promises a shorter one was opened and bounded; nil where
--- there is none, or a limit was met. deviations: see estimate(); bold where cautious ones promise nothing better.
function Search:next(deviations)
  self.deviations, self.estimates = deviations, self.estimates + 1
  while not self:stopping() do
    local list, others = self:promising(at_once.kind), {}
    if deviations == cautious and list[1] and list[1].estimate_s >= self:limit_s() then return self:next(bold) end
    while #others < #list and list[#others + 1].kind ~= 'plan' do others[#others + 1] = list[#others + 1] end
    if not others[1] then return list[1] end
    self:expand(others)
    self.say(self)
    if self.proving and self.proving() then return nil end
  end
end

--- Chooses plans by what is known before any of them is simulated, and simulates them; false where none is left.
function Search:round()
  local wanted = math.min(self.seconds < math.huge and core.threads() or at_once.simulation,
    self.simulations - self.counts.simulated)
  local chosen = {}
  while #chosen < wanted do
    local entry = #chosen == at_once.simulation - 1 and self:next(nil)
      or self:next((#chosen >= careful or self.deviations == bold and chosen[1]) and bold or cautious)
    if not entry then break end
    chosen[#chosen + 1], entry.chosen = entry, true
    self.alike[entry.key] = (self.alike[entry.key] or 0) + 1
    self.time:expect(entry.features)
  end
  self.time:forget()
  self.alike = {}
  if not chosen[1] or self:stopping() then return false end
  self:try(chosen)
  self.say(self)
  return true
end

-- Entries in the queue, and those that a bound took out of it.
function Search:left_over()
  return util.listed(#self.queue + #self.beyond, function(i) return self.queue[i] or self.beyond[i - #self.queue] end)
end

--- Simulates plans that cannot be the best until the number of plans to show is known, each of another shape.
function Search:fill()
  if self.reward then return end
  local shapes, known = {}, 0
  repeat
    for _, result in ipairs(self.results) do
      local shape = space.shape(result.point)
      if result.metrics.feasible and not shapes[shape] then shapes[shape], known = true, known + 1 end
    end
    self.queue, self.beyond, self.shapes = self:left_over(), {}, shapes
  until known >= self.count or not self:round()
  self.shapes = nil
end

--- Opens and bounds what has the least bounds, so that less is below the best than what no simulation was left for.
function Search:prove()
  local opened, bounded = self.counts.opened + proof.opened, self.counts.bounded + proof.bounded
  self.proving = function() return self.counts.opened >= opened or self.counts.bounded >= bounded end
  self:next(nil)
  self.proving = nil
end

--- Draws the quantile of the fastest plans: no plan whose quiet step is longer than the least of them is better, unless
--- work is uneven.
function Search:draw()
  local rest, list, least, failed = {}, {}, math.huge, nil
  for _, result in ipairs(self.results) do
    local may_be_best = self.uneven and #list < most_uneven or not self.uneven and result.cost < least
    local ok, cost = result.metrics.feasible and may_be_best and not self:stopping(), nil
    if ok then
      ok, cost = pcall(self.quantile, self.networks:problem(result.point.micro_batch), result.strategy)
      if not ok then
        self:lose(cost, 1, result.point, { moved = 'simulated' })
        failed = failed or cost
      end
    end
    if ok then
      cost = self.uneven and cost or math.max(result.cost, cost)
      result.cost, result.reward, result.drawn = cost, -cost, true
      least = math.min(least, result.cost)
    end
    table.insert(ok and list or rest, result)
  end
  if failed and not list[1] then error(failed, 0) end
  table.sort(list, better)
  for _, result in ipairs(rest) do list[#list + 1] = result end
  self.results, self.slack = list, nil
end

--- Runs until nothing can be better, or a limit.
function Search:run()
  local whole = false
  local ok, message = pcall(function()
    for _, family in ipairs(self.space:families()) do
      if self:stopping() then return end
      self:add_family(family)
    end
    whole = true
    self.counts.neighbours = #(self.included or {})
    self:bound(util.map(self.included or {}, function(point)
      return { point = space.kept(point), bound_s = 0, settled = true, included = true, moved = 'included' }
    end))
    if self.asked[1] then self:try({ unpack(self.asked) }) end
    repeat until not self:round()
    self:fill()
    self:prove()
    if self.quantile then self:draw() end
  end)
  if not ok and not self:stopping() then error(message, 0) end
  self:conclude(whole)
end

--- Records which bounds hold for the entries that remain. `whole`: every family was looked at.
function Search:conclude(whole)
  local best, limit = self.results[1], self.uneven and math.huge or self:limit_s()
  self.left, self.too_large = 0, 0
  self.lower_bound_s = best and best.metrics.feasible and best.cost or math.huge
  if not whole or self.uneven then self.lower_bound_s = 0 end -- unknown
  for _, entry in ipairs(self:left_over()) do
    if not entry.done and not entry.moved then
      local points = entry.points or 1
      if entry.bound_s >= limit then
        count(self, 'bound', points)
      else
        self.left = self.left + points
        if entry.bounds and entry.bounds.tasks > self.tasks then self.too_large = self.too_large + 1 end
      end
      self.lower_bound_s = math.min(self.lower_bound_s, entry.bound_s)
    end
  end
end

return Search
