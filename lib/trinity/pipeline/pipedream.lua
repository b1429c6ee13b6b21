-- PipeDream's optimiser (Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019)
-- as its released code computes it: a dynamic program that assigns layers to stages and replicas to stages, so that the
-- slowest stage is as fast as possible. The cluster is a list of levels, innermost first: `workers` units of the level
-- below, connected with `bandwidth_bytes_per_s`. A stage is what lies between two cuts of the network
-- (engine/search/pipeline/pipedream_states.h).
--
-- A stage of T seconds and W bytes of weights takes (T + 4 (m - 1) W / (b m)) / m on m workers with b bytes/s between
-- them; a cut that A bytes cross takes 2 A / (b m), activations and their gradients. The paper has max(T, 2 (m - 1) W /
-- b) / m and 2 A / b instead (option paper).

local ffi = require 'ffi'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local most_entries = 32e6 -- of a table
local huge = math.huge

local Level = {}
Level.__index = Level

--- Index of the entry of states i to j (i = 0: from the beginning) on one worker; the next ones have more workers.
function Level:entry(i, j) return (i * self.count - i * (i + 1) / 2 + j) * self.workers end

--- A byte each state: 1 where it contains state i - 1.
function Level:after(i) return i == 0 and self.any or self.cuts.after + (i - 1) * self.count end

--- Seconds of states i to j on one unit of the level below.
function Level:compute_s(i, j)
  local below = self.below
  return below and below.time_s[below:entry(i, j) + below.workers - 1] or self.cuts.time_s[j + 1] - self.cuts.time_s[i]
end

--- Seconds of states i to j as a stage on `replicas` units; each of the `shared` workers of a unit exchanges a part of
--- the weights.
function Level:stage_s(i, j, replicas, shared)
  local compute_s, weights = self:compute_s(i, j), self.cuts.parameter_bytes[j + 1] - self.cuts.parameter_bytes[i]
  if self.options.paper then return math.max(compute_s, 2 * (replicas - 1) * weights / self.bandwidth) / replicas end
  return (compute_s + 4 * (replicas - 1) * weights / (self.bandwidth * replicas) / shared) / replicas
end

--- Whether a worker of states i to j fits into its memory, with `left` workers in the stages after it.
function Level:fits(i, j, left, replicas)
  local cuts, limit = self.cuts, self.options.memory_bytes
  return limit <= 0 or math.ceil(left / replicas) * (cuts.activation_bytes[j + 1] - cuts.activation_bytes[i]
    + (cuts.parameter_bytes[j + 1] - cuts.parameter_bytes[i])) <= limit
end

--- States i to j as one stage on any number of workers.
function Level:fill_one_stage(i, j)
  local entry, shared = self:entry(i, j), self.below and self.below.workers or 1
  for m = 0, self.options.straight and 0 or self.workers - 1 do
    if self:fits(i, j, self.workers - m - 1, m + 1) then
      self.time_s[entry + m], self.replicas[entry + m] = self:stage_s(i, j, m + 1, shared), m + 1
    end
  end
end

--- The states before j, and for each of them and number of replicas the seconds of a last stage from there to j:
--- self.last_s[replicas * count + n].
function Level:fill_last_stages(j)
  local options, cuts, count, states = self.options, self.cuts, self.count, 0
  for k = 0, j - 1 do
    if cuts.after[k * count + j] ~= 0 then
      local sent = cuts.output_bytes[k + 1]
      if j + 1 < count then sent = math.max(sent, cuts.output_bytes[j + 1]) end
      local transfer_s = options.transfers and 2 * sent / (self.bandwidth * options.compression) or 0
      for replicas = 1, self.most_replicas do
        self.last_s[replicas * count + states] = math.max(self:stage_s(k + 1, j, replicas, 1),
          options.paper and transfer_s or transfer_s / replicas)
      end
      self.states[states], states = k, states + 1
    end
  end
  return states
end

--- Lists in self.within the indices in self.states, from `first`, of states that contain state i - 1.
function Level:list_within(i, first, states)
  local after, ks, within, count = self:after(i), self.states, self.within, 0
  for n = first, states - 1 do
    within[count] = n
    count = count + after[ks[n]]
  end
  return count
end

--- States i to j on m + 1 workers with a cut at one of the listed states: the first of the best cuts, then the fewest
--- replicas of the last stage.
function Level:try_cuts(i, j, m, cuts)
  local time_s, last_s, ks, within, workers = self.time_s, self.last_s, self.states, self.within, self.workers
  local entry, limited = self:entry(i, j), self.options.memory_bytes > 0
  local best_s, best_k, best_replicas = time_s[entry + m], -1, 0
  for replicas = 1, math.min(m, self.most_replicas) do
    local last, earlier = replicas * self.count, self:entry(i, 0) + m - replicas
    for cut = 0, cuts - 1 do
      local n = within[cut]
      local k = ks[n]
      local slowest_s = math.max(last_s[last + n], time_s[earlier + k * workers])
      if slowest_s < best_s or slowest_s == best_s and k < best_k then
        if not limited or self:fits(k + 1, j, workers - m - 1, replicas) then
          best_s, best_k, best_replicas = slowest_s, k, replicas
        end
      end
    end
  end
  if best_k < 0 then return end
  time_s[entry + m], self.cut[entry + m], self.replicas[entry + m] = best_s, best_k, best_replicas
end

--- Solves a level: for every run of states and number of workers the time of its slowest stage, the state before its
--- last stage (-1: one stage) and this stage's replicas. Returns nil when the time is up.
local function solve(cuts, level, options, below, last, end_s)
  local count, workers = cuts.count, level.workers
  local starts = last and 1 or count
  local size = (starts * count - starts * (starts - 1) / 2) * workers
  local self = setmetatable({ cuts = cuts, count = count, workers = workers, bandwidth = level.bandwidth_bytes_per_s,
    options = options, below = below, most_replicas = options.straight and 1 or workers - 1,
    time_s = ffi.new('double[?]', size), cut = ffi.new('int32_t[?]', size), replicas = ffi.new('int32_t[?]', size),
    last_s = ffi.new('double[?]', workers * count), states = ffi.new('int32_t[?]', count),
    within = ffi.new('int32_t[?]', count + 1), any = ffi.new('uint8_t[?]', count, 1) }, Level)
  for entry = 0, size - 1 do self.time_s[entry], self.cut[entry] = huge, -1 end
  for j = 0, count - 1 do
    local states, first = workers > 1 and self:fill_last_stages(j) or 0, 0
    for i = 0, math.min(j, starts - 1) do
      if i % 64 == 0 then
        if core.stop_requested() then util.fail 'interrupted' end
        if core.clock_s() > end_s then return nil end
      end
      if self:after(i)[j] ~= 0 then
        while first < states and self.states[first] < i do first = first + 1 end
        self:fill_one_stage(i, j)
        local cuts_within = self:list_within(i, first, states)
        for m = 1, workers - 1 do self:try_cuts(i, j, m, cuts_within) end
      end
    end
  end
  return self
end

--- Appends the stages of states i to j on all workers of a level: { first, last = states, replicas = by level }.
local function collect(level, i, j, outer, stages)
  local own, m = {}, level.workers - 1
  while j >= i do
    local entry = level:entry(i, j)
    local cut, replicas = level.cut[entry + m], level.replicas[entry + m]
    table.insert(own, 1, { first = cut < 0 and i or cut + 1, last = j, replicas = { replicas, unpack(outer) } })
    if cut < 0 then break end
    j, m = cut, m - replicas
  end
  for _, stage in ipairs(own) do
    if level.below then
      collect(level.below, stage.first, stage.last, stage.replicas, stages)
    else
      stages[#stages + 1] = stage
    end
  end
end

--- The columns of cuts as C arrays. Sums have an entry for what precedes the first state: [state + 1].
local function read(states)
  local columns = states:columns()
  local cuts = { states = states, count = #columns.time_s, bytes = columns.after }
  cuts.after = ffi.cast('const uint8_t *', cuts.bytes)
  for _, name in ipairs { 'time_s', 'parameter_bytes', 'activation_bytes', 'output_bytes' } do
    cuts[name] = ffi.new('double[?]', cuts.count + 1, 0)
    for state = 1, cuts.count do cuts[name][state] = columns[name][state] end
  end
  return cuts
end

--- Seconds of all workers as replicas of one stage, level by level.
local function data_parallel_s(cuts, levels, paper)
  local time_s, below = cuts.time_s[cuts.count], 1
  for _, level in ipairs(levels) do
    local others, weights_s = level.workers - 1, cuts.parameter_bytes[cuts.count] / level.bandwidth_bytes_per_s
    time_s = paper and math.max(time_s, 2 * others * weights_s) / level.workers
      or (time_s + 4 * others * weights_s / level.workers / below) / level.workers
    below = level.workers
  end
  return time_s
end

--- The best pipeline through these cuts; nil and why where its tables would be too large; nil when the time is up.
local function best_pipeline(cuts, levels, options, end_s)
  local level
  for l, about in ipairs(levels) do
    if (l < #levels and (cuts.count + 1) / 2 or 1) * cuts.count * about.workers > most_entries then
      return nil, ("PipeDream's optimiser: %d states and %d workers are more than its tables hold"):format(cuts.count,
        about.workers)
    end
  end
  for l, about in ipairs(levels) do
    level = solve(cuts, about, options, level, l == #levels, end_s)
    if not level then return nil end
  end
  local time_s, stages = level.time_s[level:entry(0, cuts.count - 1) + level.workers - 1], {}
  if time_s < huge then collect(level, 0, cuts.count - 1, {}, stages) end
  return { cuts = cuts, stages = stages, time_s = time_s,
    data_parallel_s = data_parallel_s(cuts, levels, options.paper) }
end

--- The number of cuts, a power of two to 1,024, with which the tables take about this many steps.
local function few_cuts(levels, straight, most_steps)
  local workers, all = 1, 1
  for _, level in ipairs(levels) do workers, all = math.max(workers, level.workers), all * level.workers end
  local function steps(cuts)
    return cuts * cuts / 2 * (#levels > 1 and cuts / 3 or 1) * workers * (straight and 1 or workers / 2)
  end
  local cuts = 1024
  while cuts > 1 and steps(cuts) > most_steps do cuts = cuts / 2 end
  -- Without replicas a pipeline needs one cut per worker.
  return straight and steps(all) <= 10 * most_steps and math.max(cuts, all) or cuts
end

--- Finds cuts and a pipeline within `options.seconds`: over the antichains (compress 'no'), the antichains of
--- compressed branches ('yes'), or ('auto') the first of these, and then all or few cuts of one order of the layers, if
--- they fit into the tables. When the time is up: few cuts of one order. options: { transfers, straight, paper,
--- compression, memory_bytes, compress, seconds }.
local function find(network, levels, options)
  local end_s, pipeline = core.clock_s() + options.seconds, nil
  local function try(which, kind, until_s, most)
    local states, why = network:pipedream_cuts(which, { seconds = math.min(1e9, math.max(0, until_s - core.clock_s())),
      most = most })
    if states then pipeline, why = best_pipeline(read(states), levels, options, until_s) end
    if not pipeline and why and options.compress ~= 'auto' then util.fail('%s', why) end
    if pipeline then pipeline.kind = kind end
    return pipeline or not why -- found, or no time
  end
  local function try_few(most_steps)
    try('few', 'few of one order', huge, few_cuts(levels, options.straight, most_steps))
    pipeline.complete = false
    return pipeline
  end
  local done = options.compress ~= 'yes' and try('antichains', 'antichains', end_s)
    or try('compressed', 'antichains of compressed branches', end_s) or try('chain', 'one order', end_s)
  if pipeline then
    pipeline.complete = true
    return pipeline
  end
  return try_few(done and 5e7 or 2e9)
end

--- The stages as trinity.pipeline returns them, and the stage's first device of every node.
local function describe(network, pipeline, unit_s)
  local last, stages, first_device = {}, {}, 1
  for s, stage in ipairs(pipeline.stages) do last[s] = stage.last + 1 end
  local assignment = pipeline.cuts.states:stages(network, last)
  for s, stage in ipairs(pipeline.stages) do
    local devices = 1
    for _, replicas in ipairs(stage.replicas) do devices = devices * replicas end
    stages[s] = { nodes = {}, replicas = stage.replicas, devices = devices, first_device = first_device,
      compute = (pipeline.cuts.time_s[stage.last + 1] - pipeline.cuts.time_s[stage.first]) / unit_s }
    first_device = first_device + devices
  end
  for node, s in ipairs(assignment) do
    table.insert(stages[s].nodes, node)
    assignment[node] = stages[s].first_device
  end
  return stages, assignment
end

--- Plans a pipeline network in the unit of its times: { feasible, complete, states, cuts, data_parallel, max_load,
--- stages, assignment }; see find() for the options.
return function(network, unit_s, levels, options)
  local pipeline = find(network, levels, options)
  local result = { feasible = pipeline.time_s < huge, complete = pipeline.complete, states = pipeline.cuts.count,
    cuts = pipeline.kind, data_parallel = pipeline.data_parallel_s / unit_s }
  if result.feasible then
    result.max_load = pipeline.time_s / unit_s
    result.stages, result.assignment = describe(network, pipeline, unit_s)
  end
  return result
end
