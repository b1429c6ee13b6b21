-- The search of a plan: best first over families of points, points, and points with the engine's bound; what is at the
-- head is opened, bounded or simulated in turn, and what is bounded above the k-th best never. Everything that is done
-- goes by counts, so that neither threads nor clocks change a result that no limit in seconds cut short.

local Heap = require 'trinity.plan.heap'
local balance = require 'trinity.plan.balance'
local bounds = require 'trinity.plan.bounds'
local by_layer = require 'trinity.plan.by_layer'
local core = require 'trinity.core'
local inside = require 'trinity.plan.inside'
local infeasibility = require 'trinity.strategy.infeasibility'
local scout = require 'trinity.plan.scout'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local Search = {}
Search.__index = Search

-- Plans whose bound leaves less than this part of a device free are simulated behind all others.
local tight = 0.08

-- Operators of a simulation from which on it waits behind all others: a tenth of a second.
local dear = 1e5

-- How many are taken from the head of the queue at a time.
local at_once = { family = 1, point = 128, simulation = 8 }

--- options: networks, space, count (plans), simulations, tasks (of one of them), seconds, reward, own (dimensions),
--- say(text), capacity_bytes, methods (names) and method_options of placement inside stages.
function Search.new(options)
  local self = setmetatable(util.merged({}, options), Search)
  self.queue, self.number, self.results, self.seen = Heap.new(), 0, {}, {}
  self.counts = { points = 0, families = 0, opened = 0, bounded = 0, simulated = 0 }
  self.pruned = { contradictory = 0, memory = 0, bound = 0, duplicates = 0, refused = 0 }
  self.too_large = 0
  self.refused, self.splits, self.started_s = {}, {}, core.clock_s()
  self.near, self.late, self.large, self.grown, self.by_layer_seen = {}, {}, {}, {}, {}
  self.simulated_of, self.places = {}, {}
  return self
end

local function count(self, name, by) self.pruned[name] = self.pruned[name] + (by or 1) end

--- What is shown meanwhile.
function Search:progress_text()
  local best = self.results[1]
  local fits = not best or best.metrics.feasible
  return ('%d points, %d bounded, %d simulated%s'):format(self.counts.points, self.counts.bounded,
    self.counts.simulated,
    best and (', best %.4g s%s'):format(best.metrics.step_time_s, fits and '' or ' (does not fit)') or '')
end

--- The part of the simulations that is done.
function Search:share() return math.min(1, self.counts.simulated / self.simulations) end

--- Counts a refusal under its sentence.
function Search:refuse(reason, by, example)
  for _, entry in ipairs(self.refused) do
    if entry.reason == reason then
      entry.points = entry.points + by
      return
    end
  end
  self.refused[#self.refused + 1] = { reason = reason, points = by, example = example }
end

--- Whether to end: asked to, or out of time.
function Search:stopping()
  if core.stop_requested() then
    self.stopped = core.stop_name()
  elseif core.clock_s() - self.started_s > self.seconds then
    self.stopped = 'seconds'
  end
  return self.stopped ~= nil
end

--- The step that a plan must beat to be among those kept; infinite before there are that many. By any other reward than
--- the step time no bound decides.
function Search:limit_s()
  if self.reward or #self.results < math.max(self.count, self.least) then return math.huge end
  local kept = self.results[self.count]
  return kept.metrics.feasible and kept.metrics.step_time_s or math.huge
end

--- Numbers an entry, in the order in which they come.
local function numbered(self, entry)
  self.number = self.number + 1
  entry.number = self.number
  return entry
end

local function push(self, entry)
  self.queue:push(numbered(self, entry))
end

--- The nearest that does not fit, by the bound of the fullest device, of every split of layers and micro-batch.
function Search:note_memory(point, memory_bytes)
  memory_bytes = math.ceil(memory_bytes)
  local key = ('%d %d %d %d'):format(point.tensor, point.context, point.expert, point.micro_batch)
  local excess, known = memory_bytes - self.capacity_bytes, self.near[key]
  if not known or excess < known.excess_bytes then
    self.near[key] = { point = space.kept(point), excess_bytes = excess, memory_bytes = memory_bytes }
  end
end

--- Where nothing fits: the nearest whose layers can be split so; nil where the reasons of self.refused forbid all.
function Search:find_nearest()
  local list = {}
  for _, entry in util.sorted_pairs(self.near) do list[#list + 1] = entry end
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

--- Puts a family into the queue by the least bound of its points, from the profile of one device.
function Search:add_family(family)
  local ok, totals = pcall(self.networks.totals, self.networks, family, false)
  if not ok and core.stop_requested() then error(totals, 0) end
  local open = next(self.own) ~= nil -- what a dimension of one's own does is known behind it alone
  local entry = { kind = 'family', family = family, bound_s = math.huge, points = 0, fitting = 0 }
  self.counts.families = self.counts.families + 1
  local twin = ok and family.recompute == 'selective' and self.networks:frees_nothing(family)
  local least, fitting, points, wrong = math.huge, 0, 0, 0
  local most = self.capacity_bytes
  local near, near_bytes
  self.space:each(family, function(point, reason)
    points = points + 1
    if reason then
      wrong = wrong + 1
    elseif twin then
      return
    elseif ok and open then
      least, fitting = 0, fitting + 1
    elseif ok then
      local memory = bounds.memory_bytes(point, totals)
      if memory <= most then
        fitting = fitting + 1
        least = math.min(least, bounds.step_time_s(point, totals))
      elseif not near_bytes or memory < near_bytes then
        near, near_bytes = space.kept(point), memory
      end
    end
  end)
  self.counts.points = self.counts.points + points
  count(self, 'contradictory', wrong)
  if not ok then return self:lose(util.unplaced(tostring(totals)), points - wrong, family) end
  if twin then return count(self, 'duplicates', points - wrong) end
  count(self, 'memory', points - wrong - fitting)
  if near then self:note_memory(near, near_bytes) end
  if fitting == 0 then return end
  entry.bound_s, entry.points = least, fitting
  push(self, entry)
end

--- What lowering refuses; Ctrl-C's end of it is no refusal.
function Search:lose(reason, by, example)
  if core.stop_requested() and reason:find('interrupted', 1, true) then error(reason, 0) end
  count(self, 'refused', by)
  self:refuse((reason:gsub('^problem:[%w_]+: ', '')), by, space.kept(example))
end

--- Takes more of one kind from the head of the queue, at most so many in all; those above the limit stay.
function Search:take(first, most)
  local list = { first }
  while #list < most do
    local head = self.queue[1]
    if not head or head.kind ~= first.kind or head.bound_s >= self:limit_s() then break end
    list[#list + 1] = self.queue:pop()
  end
  self.taken = list
  return list
end

--- Opens families: their own profiles, and their points into the queue.
function Search:open(entries)
  for _, entry in ipairs(entries) do
    local family = entry.family
    self.counts.opened = self.counts.opened + 1
    local ok, totals = pcall(self.networks.totals, self.networks, family, true)
    if not ok then
      self:lose(util.unplaced(tostring(totals)), entry.points, family)
    else
      self:add_points(family, totals, entry.points)
    end
  end
end

function Search:add_points(family, totals, known)
  local limit, most, seen = self:limit_s(), self.capacity_bytes, 0
  self.space:each(family, function(point, reason)
    if reason then return end
    local bound = 0
    if not next(self.own) then
      local memory = bounds.memory_bytes(point, totals)
      if memory > most then return self:note_memory(point, memory) end
      bound = bounds.step_time_s(point, totals)
    end
    seen = seen + 1
    if bound >= limit then return count(self, 'bound') end
    push(self, { kind = 'point', bound_s = bound, point = space.kept(point) })
  end)
  count(self, 'memory', math.max(0, known - seen))
end

--- The problem that bounds of a point are of, and the layers that it stands for.
function Search:bounder(point)
  if next(self.own) then return self.networks:problem(point.micro_batch) end
  return self.networks:bounder(by_layer.is(point) and util.merged(point, { recompute = 'full' }) or point)
end

--- Settles what of a point is words: stages and devices; false where it is one that is there already.
function Search:settle(entry)
  local point = entry.point
  if entry.settled then return true end
  entry.settled = true
  point.devices = self.unequal and self.unequal:devices_of(point) or nil
  if point.stages == 'balanced' and point.pipeline > 1 then
    local ok, list = pcall(balance.of, self, point)
    if not ok then
      self:lose(util.unplaced(tostring(list)), 1, point)
      return false
    end
    if not list and self.space.about.layers % (point.pipeline * point.virtual_stages) == 0
      and self.space:takes(point, 'stages', 'even') then
      count(self, 'duplicates')
      return false
    end
    point.stages = list or 'even'
    entry.balanced = true
  end
  return true
end

--- The strategy of an entry, with what dimensions of one's own make of it; nil and why where no method places its
--- operators.
function Search:strategy(entry)
  local point = entry.point
  local strategy = space.strategy(point)
  if point.placement > 1 then
    local places, why = inside.of(self, self.networks:problem(point.micro_batch), strategy, point.micro_batch)
    if not places then return nil, why end
    point.inside, strategy.inside = places, places
  end
  for name, value in util.sorted_pairs(entry.point.own or {}) do
    strategy = self.own[name].apply(strategy, value, entry.point) or strategy
  end
  return strategy
end

--- Calls body(entries) for entries of equal micro-batches, experts and recomputation: of one problem.
local function by_problem(entries, body)
  local groups, order = {}, {}
  for _, entry in ipairs(entries) do
    local key = ('%d %d %s %s'):format(entry.point.micro_batch, entry.point.expert, entry.point.recompute,
      tostring(entry.point.placement > 1))
    if not groups[key] then
      groups[key] = {}
      order[#order + 1] = key
    end
    table.insert(groups[key], entry)
  end
  for _, key in ipairs(order) do body(groups[key]) end
end

--- Bytes of the least device of a stage of a strategy.
function Search:room(strategy, stage)
  return self.unequal and self.unequal:room(strategy, stage) or self.capacity_bytes
end

--- What the fullest stage exceeds its device by, of the engine's bound; and its bytes.
function Search:excess(entry, memory)
  local most, worst = 0, -math.huge
  for stage, bytes in ipairs(memory) do
    most, worst = math.max(most, bytes), math.max(worst, bytes - self:room(entry.strategy, stage))
  end
  return worst, most
end

--- Gives entries the engine's bounds; those that may be among the best go on.
function Search:bound(entries)
  local settled = {}
  for _, entry in ipairs(entries) do
    if self:settle(entry) then
      local strategy, why = self:strategy(entry)
      entry.strategy, entry.closed_s = strategy, entry.bound_s
      if strategy then settled[#settled + 1] = entry else self:lose(why, 1, entry.point) end
    end
  end
  by_problem(settled, function(list)
    local problem, layers = self:bounder(list[1].point)
    local found
    if by_layer.is(list[1].point) then
      found = by_layer.bounds(self, problem, list, layers)
    else
      found = problem.handle:mesh_bounds(util.map(list, function(entry) return entry.strategy end), layers)
    end
    for i, entry in ipairs(list) do self:bounded(entry, found[i]) end
  end)
end

function Search:bounded(entry, found)
  self.counts.bounded = self.counts.bounded + 1
  if found.refused then return self:lose(found.refused, 1, entry.point) end
  if found.duplicate or scout.knows(self, entry.strategy) then return count(self, 'duplicates') end
  local worst, most = self:excess(entry, found.memory_bytes)
  entry.bounds = found
  if worst > 0 then
    local again = balance.again(self, entry, found.memory_bytes)
    if again then return push(self, again) end
    count(self, 'memory')
    return self:note_memory(entry.point, most)
  end
  entry.kind, entry.bound_s = 'simulation', found.step_time_s
  if entry.bound_s >= self:limit_s() then return count(self, 'bound') end
  if found.tasks > self.tasks then
    if not entry.moved then self.large[#self.large + 1] = entry end -- never simulated: what is left to prove
  elseif (worst > -tight * self.capacity_bytes or found.tasks > dear) and not entry.moved then
    self.late[#self.late + 1] = numbered(self, entry) -- it will hardly fit, or takes long
  else
    push(self, entry)
  end
end

-- What points have in common as to how far simulations exceed their bounds on memory and on time: kinds of them, the
-- closest first.
local function memory_kinds(point)
  return { ('memory %s %s %d'):format(point.schedule, point.recompute, point.pipeline),
    ('memory %s %s'):format(point.schedule, point.recompute), 'memory ' .. point.recompute }
end
local function time_kinds(point, unequal)
  if unequal then
    -- what messages wait for on unlike links depends most on which devices there are stages of
    local used = ('%d %d'):format(point.pipeline, space.width(point) * point.data)
    return { ('time %s %d %d %d %s'):format(point.schedule, point.shard, point.tensor, point.context, used),
      ('time %d %s'):format(point.shard, used), 'time ' .. used }
  end
  local placed = point.placement > 1 and ' placed' or ''
  return { ('time %s %d %d %d %d%s'):format(point.schedule, point.shard, point.tensor, point.context, point.pipeline,
    placed), ('time %s %d%s'):format(point.schedule, point.shard, placed) }
end

--- By how much at least simulations of a point's kind exceeded their bounds on memory; nil where there was none.
function Search:memory_growth(point)
  local kinds = memory_kinds(point)
  return self.grown[kinds[1]] or self.grown[kinds[2]] or self.grown[kinds[3]]
end

--- Seconds of a step, and bytes of the fullest device, if a simulation exceeds the bounds by as much as the least so
--- far of its kind (of unlike devices half as much, as a power, where only the sharding is another). An order of what
--- is simulated; what rules out is the bound alone.
function Search:estimate(entry)
  local _, most = self:excess(entry, entry.bounds.memory_bytes)
  local time = time_kinds(entry.point, self.unequal)
  local grown = self.grown[time[1]] or self.grown[time[2]] or math.sqrt(self.grown[time[3]] or 1)
  return entry.bounds.step_time_s * grown,
    most * (self:memory_growth(entry.point) or 1)
end

function Search:note_growth(entry, metrics)
  local _, most = self:excess(entry, entry.bounds.memory_bytes)
  local function note(kinds, grown)
    for _, kind in ipairs(kinds) do self.grown[kind] = math.min(self.grown[kind] or math.huge, grown) end
  end
  local kinds = time_kinds(entry.point, self.unequal)
  self.simulated_of[kinds[#kinds]] = (self.simulated_of[kinds[#kinds]] or 0) + 1
  note(memory_kinds(entry.point), metrics.peak_memory_bytes / most)
  note(time_kinds(entry.point, self.unequal), metrics.step_time_s / entry.bounds.step_time_s)
end

-- How many of the closest kind are simulated before what they say of it is heard.
local at_once_alike = 2

--- A function of entries that is true of the first of each kind.
local function few_of_a_kind(unequal)
  local seen = {}
  return function(entry)
    local kinds = time_kinds(entry.point, unequal)
    local kind = kinds[unequal and #kinds or 1]
    seen[kind] = (seen[kind] or 0) + 1
    return seen[kind] <= at_once_alike
  end
end

--- Whether of unlike devices enough was simulated of an entry's kind, in the first three quarters of the simulations:
--- the others go by what all kinds said.
function Search:heard_enough(entry)
  if not self.unequal or self.reward or 4 * self.counts.simulated >= 3 * self.simulations then return false end
  local kinds = time_kinds(entry.point, self.unequal)
  return (self.simulated_of[kinds[#kinds]] or 0) >= at_once_alike
end

--- Of entries those that may be the best by their estimates; the others are simulated behind all else, but not before
--- there is a limit or, of unlike devices, a plan that fits.
function Search:promising(entries)
  local list, few = {}, few_of_a_kind(self.unequal)
  local best = self.results[1]
  local heard = self:limit_s() < math.huge or self.unequal and best and best.metrics.feasible and not self.reward
  local best_s = heard and best.metrics.step_time_s or math.huge
  for _, entry in ipairs(entries) do
    local time_s, bytes = self:estimate(entry)
    if bytes > self.capacity_bytes or time_s > best_s or self:heard_enough(entry) then
      self.late[#self.late + 1] = entry
    elseif few(entry) then
      list[#list + 1] = entry
    else
      self.queue:push(entry)
    end
  end
  return list
end

--- Takes from those that wait the most promising, at most so many; those that a bound rules out go.
function Search:take_late(most)
  local limit, rest, list = self:limit_s(), {}, {}
  for _, entry in ipairs(self.late) do
    if entry.bound_s >= limit then
      count(self, 'bound')
    else
      local time_s, bytes = self:estimate(entry)
      entry.fits, entry.estimate_s = bytes <= self.capacity_bytes, time_s
      rest[#rest + 1] = entry
    end
  end
  table.sort(rest, function(a, b)
    if a.fits ~= b.fits then return a.fits end
    if a.estimate_s ~= b.estimate_s then return a.estimate_s < b.estimate_s end
    return a.number < b.number
  end)
  self.late = {}
  local few = few_of_a_kind(self.unequal)
  for _, entry in ipairs(rest) do table.insert(#list < most and few(entry) and list or self.late, entry) end
  return list
end

--- Prices entries; a plan that contradicts its graph is refused with its sentence.
function Search:simulate(entries)
  by_problem(entries, function(list)
    local problem = self.networks:problem(list[1].point.micro_batch)
    local plans = util.map(list, function(entry) return entry.strategy end)
    local ok, metrics = pcall(problem.evaluate_batch, problem, plans)
    for i, entry in ipairs(list) do
      local priced, what = ok, ok and metrics[i] or nil
      if not ok then priced, what = pcall(problem.evaluate, problem, plans[i]) end
      if priced then
        self:priced(entry, what, problem)
      elseif tostring(what):find('interrupted', 1, true) then
        error(what, 0)
      else
        self:lose(util.unplaced(tostring(what)), 1, entry.point)
      end
    end
  end)
end

--- Whether result a is better than b; of equal ones the first.
local function better(a, b)
  if infeasibility.better(a, b) then return true end
  return not infeasibility.better(b, a) and a.number < b.number
end

function Search:priced(entry, metrics, problem)
  self.counts.simulated = self.counts.simulated + 1
  self:note_growth(entry, metrics)
  local reward = -metrics.step_time_s
  if self.reward then
    reward = self.reward(metrics, problem:strategy(entry.strategy))
    if type(reward) ~= 'number' or reward ~= reward then
      util.fail('%s: the reward function at %s returned %s, expected a number', self.owner,
        util.function_place(self.reward), util.describe(reward))
    end
  end
  local result = { point = entry.point, strategy = entry.strategy, bounds = entry.bounds, bound_s = entry.bound_s,
    metrics = metrics, reward = reward, number = entry.number, moved = entry.moved }
  local at = #self.results + 1
  while at > 1 and better(result, self.results[at - 1]) do at = at - 1 end
  table.insert(self.results, at, result)
  return result
end

--- Simulations between two looks at the clock.
function Search:at_once() return self.seconds < math.huge and math.max(1, core.threads()) or at_once.simulation end

--- One turn: what is at the head. False when there is nothing left to do.
function Search:turn()
  local head = self.queue[1]
  if not head or head.bound_s >= self:limit_s() then return false end
  self.queue:pop()
  if head.kind == 'family' then
    self:open(self:take(head, at_once.family))
  elseif head.kind == 'point' then
    self:bound(self:take(head, at_once.point))
  else
    local left = self.simulations - self.counts.simulated
    if left <= 0 then
      self.queue:push(head)
      return false
    end
    self:simulate(self:promising(self:take(head, math.min(self:at_once(), left))))
  end
  return true
end

--- Adds all families; false where it was stopped before.
function Search:begin()
  for _, family in ipairs(self.space:families()) do
    if self:stopping() then return false end
    self:add_family(family)
  end
  return true
end

--- Runs until nothing can be among the best, or a limit.
function Search:run()
  local whole = false
  local ok, message = pcall(function()
    whole = self:begin()
    self.taken = nil
    while not self:stopping() and self:turn() do
      self.taken = nil
      if scout.due(self) then scout.run(self) end
      self.say(self)
    end
    while self.late[1] and not self:stopping() and self.counts.simulated < self.simulations do
      self.taken = self:take_late(math.min(self:at_once(), self.simulations - self.counts.simulated))
      self:simulate(self.taken)
      self.taken = nil
      self.say(self)
    end
  end)
  if not ok and not self:stopping() then error(message, 0) end
  self:put_back(self.taken or {})
  self:conclude(whole)
end

--- What Ctrl-C broke off in the middle may hold the best: none of it is done.
function Search:put_back(taken)
  local late = {}
  for _, entry in ipairs(self.late) do late[entry] = true end
  for _, entry in ipairs(taken) do
    if not late[entry] then self.queue:push(entry) end
  end
end

--- What is known of all that was left. `whole`: every family was looked at.
function Search:conclude(whole)
  local rest = 0
  local limit = self:limit_s()
  self.lower_bound_s = self.results[1] and self.results[1].metrics.feasible and self.results[1].metrics.step_time_s
    or math.huge
  for _, list in ipairs { self.queue, self.late, self.large } do
    for _, entry in ipairs(list) do
      local points = entry.points or 1
      if entry.bound_s >= limit then
        count(self, 'bound', points)
      else
        rest = rest + points
        if list == self.large then self.too_large = self.too_large + 1 end
      end
      self.lower_bound_s = math.min(self.lower_bound_s, entry.bound_s)
    end
  end
  if not whole then self.lower_bound_s = 0 end -- of what was not looked at nothing is known
  self.left = rest
end

return Search
