-- The search of a plan: one queue of candidates with a bound (families of points, points of one kind, plans), one
-- protocol of neighbours (moves.lua), one policy (below), one loop: what promises the shortest step is refined, a
-- family into points, these into plans, and plans are simulated. A search of more simulations goes on from one of
-- fewer; threads and clocks change nothing where no limit in seconds cuts it short.

local Pricing = require 'trinity.plan.pricing'
local bounds = require 'trinity.plan.bounds'
local by_layer = require 'trinity.plan.by_layer'
local core = require 'trinity.core'
local infeasibility = require 'trinity.strategy.infeasibility'
local growth = require 'trinity.plan.growth'
local moves = require 'trinity.plan.moves'
local offload = require 'trinity.plan.offload'
local space = require 'trinity.plan.space'
local stages = require 'trinity.plan.stages'
local util = require 'trinity.base.util'

local Search = {}
Search.__index = Search

local policy = {
  round = 8, -- plans that are chosen before any of them is simulated
  cautious = 0.5, bold = 2, -- standard deviations below the mean that estimates are of the best, and of what is shown
  refined = 32, points = 4, -- families or kinds that are refined at a time, and points of each kind
  roomy = 0.9, -- of a device's memory: a bound below it will fit
  patience = 16, -- neighbours that are simulated in vain before only those go on that promise to be the best
  fitting = 6, -- shapes whose best plans have neighbours
  partly = 256, full = 4 / 3, -- families and kinds that recompute less, of those within this share of the best
  uneven = 24, -- plans that are sampled with uneven work
  listed = 16, -- simulations of what may be better than a plan that is shown, once the list is full
  -- After the last simulation: families that are opened and points that are bounded at most to raise the bound on all
  -- plans, until the best is so near.
  proof = { opened = 256, bounded = 8192, gap = 0.03 },
}

--- Goals of a search, one after another: limit_s(search) that bounds must be below; of(search): results whose
--- neighbours are tried; promise(search, entry): a number, the less the better, or false (the estimate of its cost
--- without one); enough(search, simulations since its begin).
local goals = {
  best = { limit_s = function(search) return search:best_s() * (1 + (search.slack or 0)) end,
    of = function(search) return search:leading(search:best_of_shapes(policy.fitting), search:best_s()) end },
  -- what is shown: the best of each of the best shapes, and by memory; none slower than its neighbours
  list = { limit_s = function() return math.huge end,
    of = function(search)
      return search:leading(util.joined(search.shown, search.best_by_memory), search:last_shown_s())
    end,
    promise = function(search, entry)
      local share = entry.estimate_s / search:replaced_s(entry)
      return share < 1 and share
    end,
    enough = function(search, simulated) return simulated >= policy.listed and #search.shown >= search.count end },
  proof = { limit_s = function(search) return search:best_s() / (1 + policy.proof.gap) end },
}

--- options: networks, space, count (plans), simulations, tasks (of one of them), seconds, reward (a function),
--- rate(point) (what a second of a step costs: bounds are on the cost of a step, which is minimised), own (dimensions),
--- quantile(problem, strategy) in seconds, with slack (how much more than the step it may be, a share), uneven (it
--- may be less), say(text), capacity_bytes, methods (names) and method_options of placement inside stages, included
--- (points).
function Search.new(options)
  local self = setmetatable(util.merged({}, options), Search)
  self.pricing = Pricing.new(util.picked(options, { 'networks', 'space', 'own', 'unequal', 'capacity_bytes', 'methods',
    'method_options' }))
  self.queue, self.beyond, self.number, self.results, self.seen, self.tried = {}, {}, 0, {}, {}, {}
  self.counts = { points = 0, families = 0, opened = 0, bounded = 0, simulated = 0, neighbours = 0,
    simulated_neighbours = 0 }
  self.pruned = { contradictory = 0, memory = 0, bound = 0, duplicates = 0, refused = 0 }
  self.refused, self.reasons, self.invalid, self.near, self.started_s = {}, {}, {}, {}, core.clock_s()
  self.features, self.estimates, self.vain = {}, 0, 0
  self.time, self.goal = growth.new(0.05, 0.1), goals.best
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

--- The cost of a step of the best plan that fits. By a reward that is a function no bound decides.
function Search:best_s()
  local best = not self.reward and self.results[1]
  return best and best.metrics.feasible and best.cost or math.huge
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
      wrong, self.invalid[reason] = wrong + 1, (self.invalid[reason] or 0) + 1
    elseif open then
      visit(point, 0, 0)
    else
      local stages_like = self.unequal and self.unequal:stages_of(point, totals.slower)
      offload.each(self.space, point, totals, self.capacity_bytes, function(bytes)
        visit(point, bounds.step_time_s(point, totals, stages_like) * self.rate(point), bytes)
      end)
    end
  end)
  return wrong
end

--- Puts a family into the queue by the least bound of its points, from the profile of one device.
function Search:add_family(family)
  local ok, totals = pcall(self.networks.totals, self.networks, family, false)
  if not ok and core.stop_requested() then error(totals, 0) end
  local entry = { kind = 'family', family = family, bound_s = math.huge, points = 0, fastest = {} } -- by ZeRO stage
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
    local fastest = entry.fastest[point.zero_stage]
    if not fastest or bound_s < fastest.bound_s then
      entry.fastest[point.zero_stage] = { bound_s = bound_s, point = space.kept(point), number = entry.points }
    end
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
  local list, limit, seen = {}, self.goal.limit_s(self), 0
  self:each(entry.family, totals, function(point, bound_s, bytes)
    if bytes > self.capacity_bytes then return self:note_memory(point, bytes) end
    seen = seen + 1
    if bound_s >= limit then return count(self, 'bound') end
    -- of one micro-batch it takes as long as ZeRO stage 1
    if point.zero_stage == 2 and point.micro_batches == 1 and self.space:takes(point, 'zero_stage', 1)
      and bounds.memory_bytes(util.merged(point, { zero_stage = 1 }), totals) < policy.roomy * self.capacity_bytes then
      return count(self, 'duplicates')
    end
    list[#list + 1] = { point = space.kept(point), bound_s = bound_s, number = seen }
  end)
  count(self, 'memory', entry.points - seen) -- below 0 where its own profile takes less than one device's
  for _, kind in ipairs(util.grouped(list, kind_of)) do
    table.sort(kind, util.by('bound_s', 'number'))
    self:push_points(kind)
  end
end

--- Puts points of one kind into the queue, by the first of them.
function Search:push_points(list)
  self:push { kind = 'points', list = list, point = list[1].point, bound_s = list[1].bound_s, points = #list }
end

--- Gives points { point =, bound_s = } the engine's bounds; those that may be the best go into the queue as plans,
--- those that are too large once more where other stages or shares on the host may fit.
function Search:bound(plans)
  if not plans[1] then return end
  self.pricing:bound(plans)
  local again = {}
  for _, plan in ipairs(plans) do
    if plan.bounds then self.counts.bounded = self.counts.bounded + 1 end
    if plan.refused then
      self:lose(plan.refused, 1, plan.point, plan)
    elseif plan.duplicate then
      count(self, 'duplicates', 1, plan)
    elseif plan.excess_bytes > 0 and not plan.included then
      local others = { stages.again(self.pricing, plan) }
      if not others[1] then others = moves.of(self, plan, { 'offload' }) end
      for _, other in ipairs(others) do
        other.moved, other.balanced, again[#again + 1] = plan.moved, plan.balanced or other.balanced, other
      end
      if not plan.moved then self.counts.points = self.counts.points + #others end
      count(self, 'memory', 1, plan)
      self:note_memory(plan.point, plan.fullest_bytes)
    else
      local rate = self.rate(plan.point)
      plan.own_s, plan.bound_s = plan.bounds.step_time_s * rate, (plan.bounds.least_s or plan.bounds.step_time_s) * rate
      plan.kind = 'plan'
      plan.fullest = plan.fullest_bytes / (plan.fullest_bytes - plan.excess_bytes) -- of a device's memory
      self:push(plan)
    end
  end
  self:bound(again)
end

--- Sets the cost that an entry promises: its bound, times what bounds grow by until a simulation (to prove, the bound
--- alone). And whether it will fit.
function Search:estimate(entry)
  local known = entry.features
  entry.estimate_s, entry.fits = entry.bound_s, true
  if self.goal == goals.proof then return end
  local deviations = self.goal == goals.best and policy.cautious or policy.bold
  if known.estimates ~= self.estimates then
    known.estimates = self.estimates
    known.time = self.time:estimate(known, deviations)
    known.memory = self.pricing.memory:estimate(known, deviations)
  end
  entry.estimate_s = (entry.own_s or entry.bound_s) * known.time
  entry.fits = entry.kind ~= 'plan' or entry.fullest * known.memory <= 1
end

-- Whether a goes before b: what fits, then the shorter.
local function before(a, b)
  if a.fits ~= b.fits then return a.fits end
  if a.promise ~= b.promise then return a.promise < b.promise end
  return a.number < b.number
end

--- The most promising entries, best first, at most `most`; entries that a bound rules out leave the queue.
function Search:promising(most)
  local goal, rest, list = self.goal, {}, {}
  local limit = goal.limit_s(self)
  for _, entry in ipairs(self.queue) do
    if entry.bound_s >= limit and not entry.done then
      self.beyond[#self.beyond + 1] = entry
    elseif not entry.done then
      rest[#rest + 1] = entry
      local last = list[most]
      local later = entry.chosen or last and last.fits and not goal.promise and last.promise < entry.bound_s
        or entry.bounds and entry.bounds.tasks > self.tasks
      if not later then
        self:estimate(entry)
        -- Points made by moves lie outside the space for which optimality is proved.
        entry.promise = entry.estimate_s
        if goal.promise then entry.promise = goal.promise(self, entry) end
        later = not entry.promise or entry.moved and self.vain >= policy.patience and entry.estimate_s >= limit
      end
      if not later then
        local at = #list + 1
        while at > 1 and before(entry, list[at - 1]) do at = at - 1 end
        table.insert(list, at, entry)
        list[most + 1] = nil
      end
    end
  end
  self.queue = rest
  return list
end

--- Whether result a is better than b; of equal ones the one with less memory, then the first.
local function better(a, b)
  if infeasibility.better(a, b) or infeasibility.better(b, a) then return infeasibility.better(a, b) end
  local own, other = a.metrics.peak_memory_bytes, b.metrics.peak_memory_bytes
  return own < other or own == other and a.number < b.number
end

--- Records a plan that was simulated.
function Search:simulated(plan)
  self.counts.simulated = self.counts.simulated + 1
  if plan.moved then self.counts.simulated_neighbours = self.counts.simulated_neighbours + 1 end
  self.time:add(plan.features, plan.metrics.step_time_s / plan.bounds.step_time_s)
  plan.cost = plan.metrics.step_time_s * self.rate(plan.point)
  plan.reward = -plan.cost
  if self.reward then
    plan.reward = self.reward(plan.metrics, plan.problem:strategy(plan.strategy))
    if type(plan.reward) ~= 'number' or plan.reward ~= plan.reward then
      util.fail('%s: the reward function at %s returned %s, expected a number', self.owner,
        util.function_place(self.reward), util.describe(plan.reward))
    end
  end
  local at = #self.results + 1
  while at > 1 and better(plan, self.results[at - 1]) do at = at - 1 end
  table.insert(self.results, at, plan)
  if plan.moved then self.vain = at == 1 and 0 or self.vain + 1 end
end

--- Bounds neighbours.
function Search:add_neighbours(plans)
  self.counts.neighbours = self.counts.neighbours + #plans
  self:bound(plans)
end

--- Bounds the neighbours of results, of each once.
function Search:move(results)
  local made = {}
  for _, result in ipairs(results) do
    if not result.left and not (result.included and not self.space:holds(result.point)) then
      result.left = true
      for _, point in ipairs(moves.of(self, result)) do made[#made + 1] = point end
    end
  end
  self:add_neighbours(made)
end

--- The plans whose neighbours are tried: these, and the first that does not fit and takes less.
function Search:leading(plans, limit_s)
  for _, result in ipairs(self.results) do
    if not result.metrics.feasible and result.cost < limit_s then return util.joined(plans, { result }) end
  end
  return plans
end

--- Simulates plans that were not yet, within the remaining budget.
function Search:try(plans)
  local list = {}
  for _, plan in ipairs(plans) do
    local key = moves.key_of(plan.point)
    if self.tried[key] then
      plan.done = true
      count(self, 'duplicates', 1, plan)
    elseif #list < self.simulations - self.counts.simulated then
      self.tried[key], self.seen[key], list[#list + 1], plan.done = true, true, plan, true
    end
  end
  self.pricing:simulate(list)
  local again = {}
  for _, plan in ipairs(list) do
    if plan.metrics then self:simulated(plan) else self:lose(plan.refused, 1, plan.point, plan) end
    local point = plan.metrics and by_layer.again(self.pricing, plan)
    if point then again[#again + 1] = { point = point, moved = 'recompute', bound_s = 0 } end
    local large = plan.metrics and not plan.metrics.feasible
    again = util.joined(again, large and moves.of(self, plan, { 'offload' }) or {})
  end
  self:add_neighbours(again)
end

--- Refines families into points, and the first points of kinds into plans.
function Search:refine(entries)
  local points = {}
  for _, entry in ipairs(entries) do
    if entry.kind == 'family' then
      self:open(entry)
    else
      for _ = 1, math.min(policy.points, #entry.list) do points[#points + 1] = table.remove(entry.list, 1) end
    end
    entry.done = true
  end
  self:bound(points)
  for _, entry in ipairs(entries) do
    if entry.kind == 'points' and entry.list[1] then self:push_points(entry.list) end
  end
end

--- The plan that promises the shortest step, after all that promises a shorter one was refined; nil where there is
--- none, or a limit was met.
function Search:next()
  local c, opened, bounded = self.counts, self.counts.opened, self.counts.bounded
  self.estimates = self.estimates + 1
  while not self:stopping() do
    local list, others = self:promising(policy.refined), {}
    while #others < #list and list[#others + 1].kind ~= 'plan' do others[#others + 1] = list[#others + 1] end
    if not others[1] then return list[1] end
    self:refine(others)
    self.say(self)
    local proof = self.goal == goals.proof and policy.proof
    if proof and (c.opened - opened >= proof.opened or c.bounded - bounded >= proof.bounded) then return nil end
  end
end

--- Chooses plans by what is known before any of them is simulated, and simulates them; false where none is left.
function Search:round()
  local wanted = math.min(self.seconds < math.huge and core.threads() or policy.round,
    self.simulations - self.counts.simulated)
  local chosen = {}
  while #chosen < wanted do
    local entry = self:next()
    if not entry then break end
    chosen[#chosen + 1], entry.chosen = entry, true
    self.shown[space.shape(entry.point)] = entry
    self.time:expect(entry.features)
  end
  self.time:forget()
  if not chosen[1] or self:stopping() then return false end
  self:try(chosen)
  self.say(self)
  return true
end

-- Entries in the queue, and those that a bound took out of it.
function Search:left_over()
  return util.listed(#self.queue + #self.beyond, function(i) return self.queue[i] or self.beyond[i - #self.queue] end)
end

--- The best plan that fits of each of the best shapes, at most `most`: as a list, and by shape.
function Search:best_of_shapes(most)
  local list = {}
  for _, result in ipairs(self.results) do
    local shape = space.shape(result.point)
    if result.metrics.feasible and not list[shape] and #list < most then
      list[shape], list[#list + 1] = result, result
    end
  end
  return list
end

--- Results (of those sampled, if any are) that nothing beats in both time and memory, by time.
function Search:front()
  local front, least = {}, math.huge
  for _, result in ipairs(self.sampled or self.results) do
    if result.metrics.feasible and result.metrics.peak_memory_bytes < least then
      least = result.metrics.peak_memory_bytes
      front[#front + 1] = result
    end
  end
  return front
end

--- The cost of the last plan that is shown; where there are not enough, of one that is worse than any.
function Search:last_shown_s()
  local last = self.shown[self.count]
  return last and last.cost or self:best_s() * 1e6
end

--- The cost of what is shown that an entry takes the place of, if it is faster: the plan of its shape (of another shape
--- the last, if there are enough), and what has at most the memory of a plan.
function Search:replaced_s(entry)
  local same, bytes = self.shown[space.shape(entry.point)], (entry.fullest_bytes or 0) * entry.features.memory
  local cost = same and entry.kind ~= 'family' and (same.cost or same.estimate_s) or self:last_shown_s()
  for _, result in ipairs(self.best_by_memory) do
    if result.metrics.peak_memory_bytes <= bytes then return math.max(result.cost, cost) end
  end
  return cost
end

--- Simulates what a goal wants until it has enough; what the last goal ruled out is in the queue again.
function Search:pursue(goal)
  local since = self.counts.simulated
  self.goal, self.queue, self.beyond = goal, self:left_over(), {}
  repeat
    self.shown, self.best_by_memory = self:best_of_shapes(self.count), self:front()
    if self.counts.simulated < self.simulations then self:move(goal.of(self)) end
  until goal.enough and goal.enough(self, self.counts.simulated - since) or not self:round()
end

--- Draws the quantile of the fastest plans: no plan whose quiet step is longer than the least of them is better, unless
--- work is uneven.
function Search:draw()
  local rest, list, least, failed = {}, {}, math.huge, nil
  for _, result in ipairs(self.results) do
    local may_be_best = self.uneven and #list < policy.uneven or not self.uneven and result.cost < least
    local ok, cost = result.metrics.feasible and may_be_best and not self:stopping(), nil
    if ok then
      ok, cost = pcall(self.quantile, result.problem, result.strategy)
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
  self.sampled = self.uneven and util.merged({}, list)
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
    local included = util.map(self.included or {}, function(point)
      return { point = space.kept(point), bound_s = 0, settled = true, included = true, moved = 'included' }
    end)
    self.counts.neighbours = #included
    self:bound(included)
    included = util.filtered(included, function(plan) return plan.kind == 'plan' end)
    if included[1] then self:try(included) end
    repeat
      self:pursue(goals.best)
      self:add_neighbours(moves.recompute_less(self, policy.full, policy.partly))
      self:pursue(goals.best)
      local best_s = self:best_s()
      if not self.reward then self:pursue(goals.list) end
    until self:best_s() >= best_s -- else what is shown led to a better one
    self.goal = goals.proof
    self:next()
    if self.quantile then self:draw() end
  end)
  if not ok and not self:stopping() then error(message, 0) end
  self:conclude(whole)
end

--- Records which bounds hold for the entries that remain. `whole`: every family was looked at.
function Search:conclude(whole)
  local best, limit = self.results[1], self.uneven and math.huge or goals.best.limit_s(self)
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
