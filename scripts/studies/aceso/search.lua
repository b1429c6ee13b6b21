-- A search for plans by Aceso's rules. Given the GPUs of each stage and the size of micro-batches, the minimum time of
-- the slowest stage is found by bisection: under a time limit every stage takes the most operators that it can. Equal
-- stages come first; then, from the best few, stages are split, joined and exchanged as long as there is time.

local core = require 'trinity.core'
local price = require 'studies.aceso.price'
local stages_of = require 'studies.aceso.stage'
local util = require 'trinity.base.util'

local search = {}

local most_stages = 16
local precision = 2e-6     -- of the bisection, relative
local kept = 1.1             -- of the best time: partitions within it are gone on from

-- Search: the state of a search.
local Search = {}
Search.__index = Search

--- The last operator of each stage where no stage takes longer than most_us; nil where there is none.
function Search:ends(micro_batch, gpus, most_us, guess)
  local n, first, before, ends = self.operators, 1, 0, {}
  for s, g in ipairs(gpus) do
    local choices = self.stages:choices(micro_batch, g)
    if not choices then return nil end
    local left, last_possible = #gpus - s + 1, n - (#gpus - s)
    local function fits(last)
      return self.stages:best(choices, first, last, left, before, g, most_us) ~= nil
    end
    if s == #gpus then
      if not fits(n) then return nil end
      ends[s] = n
    else
      local at = math.min(math.max(guess and guess[s] or first + math.floor((n - first) / left), first), last_possible)
      local good, bad = first - 1, last_possible + 1
      local width = 1
      while bad - good > 1 do
        if fits(at) then
          good = at
          at = math.min(at + width, bad - 1)
        else
          bad = at
          at = math.max(at - width, good + 1)
        end
        if good >= first and bad <= last_possible then at = math.floor((good + bad) / 2) else width = width * 2 end
      end
      if good < first then return nil end
      ends[s] = good
    end
    first, before = ends[s] + 1, before + g
  end
  return ends
end

--- The plan of given ends: the best choices of each stage.
function Search:plan(micro_batch, gpus, ends)
  local plan = { micro_batch = micro_batch, stages = {}, tensor = {}, data = {}, algorithm = {}, recompute = {} }
  local first, before = 1, 0
  for s, g in ipairs(gpus) do
    local found = self.stages:best(self.stages:choices(micro_batch, g), first, ends[s], #gpus - s + 1, before, g,
      math.huge, plan)
    if not found then return nil end
    plan.stages[s] = { gpus = g, first = first, last = ends[s] }
    first, before = ends[s] + 1, before + g
  end
  return plan
end

--- Whether the search should stop: its time is up, or Ctrl-C was pressed.
function Search:over()
  return core.clock_s() - self.start_s >= self.seconds or self.stop()
end

--- The best time for these GPUs by stage, at most what is known already; keeps the plan where it is the best so far.
function Search:try(micro_batch, gpus)
  local key = micro_batch .. ':' .. table.concat(gpus, ',')
  if self.seen[key] then return self.seen[key] end
  self.seen[key] = math.huge
  self.tried = self.tried + 1
  local steps = price.sequences / micro_batch
  local high = self.best and (kept * self.best.step_time_ms * 1000 - self.least_us * micro_batch) /
    math.max(1, steps - 1)
    or 1e12
  local ends = self:ends(micro_batch, gpus, high)
  if not ends then return math.huge end
  local low = self.least_us * micro_batch / self.gpus
  local best
  while high - low > precision * high and not self:over() do
    local at = high > 4 * low and math.sqrt(high * low) or (high + low) / 2
    local found = self:ends(micro_batch, gpus, at, ends)
    if found then ends, high = found, at else low = at end
  end
  local plan = self:plan(micro_batch, gpus, ends)
  local priced = plan and price.of(self.profiles, plan, self.stages.rows, self.stages.gpus_per_node)
  if not priced then return math.huge end
  for _, mb in ipairs(priced.stage_mb) do if mb > price.limit_mb then return math.huge end end
  best = priced.step_time_ms
  self.seen[key] = best
  table.insert(self.found, { step_time_ms = best, micro_batch = micro_batch, gpus = gpus })
  if not self.best or best < self.best.step_time_ms then
    self.best = { step_time_ms = best, plan = plan, priced = priced, seconds = core.clock_s() - self.start_s }
    if self.told then self.told(self.best) end
  end
  return best
end

--- Sizes of micro-batches that the GPUs per stage allow: each operator has 1 to 8 sequences.
local function sizes_of(self)
  local list, most = {}, self.profiles.sequences[#self.profiles.sequences] * self.gpus
  local b = 1
  while b <= most and price.sequences % b == 0 do
    list[#list + 1], b = b, b * 2
  end
  return list
end

--- Partitions next to one: two neighbours joined, one split, two exchanged, sizes shifted by a factor of two.
local function neighbours(gpus)
  local list = {}
  local function with(change)
    local copy = util.map(gpus, function(g) return g end)
    change(copy)
    if #copy <= most_stages then list[#list + 1] = copy end
  end
  for s, g in ipairs(gpus) do
    if g > 1 then with(function(c) c[s] = g / 2; table.insert(c, s, g / 2) end) end
    if gpus[s + 1] == g then with(function(c) c[s] = 2 * g; table.remove(c, s + 1) end) end
    if gpus[s + 1] and gpus[s + 1] ~= g then with(function(c) c[s], c[s + 1] = c[s + 1], c[s] end) end
  end
  return list
end

--- Equal stages, most stages first, smallest micro-batches first.
function Search:equal()
  local stages = 1
  while stages * 2 <= math.min(self.gpus, most_stages) do stages = stages * 2 end
  while stages >= 1 do
    local gpus = util.listed(stages, function() return self.gpus / stages end)
    for _, micro_batch in ipairs(sizes_of(self)) do
      if self:over() then return end
      self:try(micro_batch, gpus)
    end
    stages = stages / 2
  end
end

--- Neighbours of the best few, round by round, until none is new or the time is up.
function Search:improve()
  local followed = {}
  while not self:over() do
    table.sort(self.found, function(x, y)
      if x.step_time_ms ~= y.step_time_ms then return x.step_time_ms < y.step_time_ms end
      return table.concat(x.gpus, ',') .. x.micro_batch < table.concat(y.gpus, ',') .. y.micro_batch
    end)
    local from
    for _, one in ipairs(self.found) do
      if not followed[one] then from = one; break end
    end
    if not from then return end
    followed[from] = true
    for _, gpus in ipairs(neighbours(from.gpus)) do
      if self:over() then return end
      self:try(from.micro_batch, gpus)
    end
    for _, micro_batch in ipairs { from.micro_batch / 2, from.micro_batch * 2 } do
      if micro_batch >= 1 and price.sequences % micro_batch == 0 and not self:over() then
        self:try(micro_batch, from.gpus)
      end
    end
  end
end

--- us that one sequence takes at the least on one GPU: every operator at its best.
local function least_us(self, rows)
  local total = 0
  for _, row in ipairs(rows) do
    local least = math.huge
    for key, t in util.sorted_pairs(self.tables) do
      local tensor, sequences = math.floor(key / 2) % 16, math.floor(key / 32)
      least = math.min(least, (t.forward_us[row] + t.backward_us[row]) * tensor / sequences)
    end
    total = total + least
  end
  return total
end

--- The best plan within the time limit; nil where none fits. options: { layers, gpus, gpus_per_node, seconds }, and
--- functions or nil: `stop`, whether to end, and `told`, called with the best so far.
function search.run(self, options)
  local stages = stages_of.new(self, options.layers, options.gpus_per_node)
  local run = setmetatable({ profiles = self, stages = stages, operators = #stages.rows, gpus = options.gpus,
    seconds = options.seconds, start_s = core.clock_s(), seen = {}, found = {}, tried = 0, told = options.told,
    stop = options.stop or function() return false end, least_us = least_us(self, stages.rows) }, Search)
  run:equal()
  run:improve()
  return run
end

return search
