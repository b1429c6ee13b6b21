-- The space of a plan: dimensions, their values, and the points that they make together. A point has the fields of a
-- mesh strategy in short, and `micro_batch`, the samples that a replica works on at a time.

local check = require 'trinity.base.check'
local dimensions = require 'trinity.plan.dimensions'
local model = require 'trinity.graph.model'
local parallelism = require 'trinity.strategy.parallelism'
local rules = require 'trinity.cluster.runtime_rules'
local util = require 'trinity.base.util'

local space = { family = {}, rest = {}, names = {} }
space.offload_fractions = { 0, 0.25, 0.5, 0.75, 1 }
space.offloads = { 'optimizer_offload_fraction', 'activation_offload_fraction' }
local is_offload = util.set(space.offloads)
space.buckets = { 12.5e6, 5e7, 2e8, 8e8, 3.2e9 } -- sizes of buckets that moves try

local words, integers, reals = {}, {}, {} -- that a dimension takes
for _, entry in ipairs(dimensions.list) do
  local name, values = entry[1], entry[2]
  table.insert(entry.family and space.family or space.rest, name)
  space.names[name] = true
  local of = entry.real and reals or type(values[1]) == 'number' and integers or words
  of[name] = values
end

local split_backward = { ['zb-h1'] = true, ['zb-h2'] = true, ['zb-interleaved'] = true, ['zb-v'] = true,
  ['dualpipe-v'] = true }
local v_shaped = { ['zb-v'] = true, ['dualpipe-v'] = true }

--- Whether a schedule delays gradients of weights.
function space.delays(schedule, pipeline) return pipeline > 1 and split_backward[schedule] or false end

--- The axes of a value of rank_order, innermost first: 'tensor-pipeline-data'; nil: clients' order of them.
function space.axes(value)
  if not value or value == 'default' then return nil end
  local list = {}
  for axis in value:gmatch '[^-]+' do list[#list + 1] = axis end
  return list
end

local axes = { tensor = true, context = true, placement = true, expert = true, data = true, pipeline = true }

local function check_value(owner, name, value)
  if name == 'rank_order' then
    check.argument(owner, 'dimension', name, value, 'string')
    local seen = {}
    for _, axis in ipairs(space.axes(value) or {}) do
      if not axes[axis] or seen[axis] then
        check.refuse(owner, 'dimension', name, "expected 'default' or different axes from the innermost, as "
          .. "'tensor-pipeline-data', got '%s'", value)
      end
      seen[axis] = true
    end
    return
  end
  local range = reals[name]
  if range then return check.number(owner, 'dimension', name, value, range[1], range[2]) end
  range = integers[name]
  if range then return check.integer(owner, 'dimension', name, value, range[1], range[2]) end
  if name == 'recompute' and type(value) == 'string' and parallelism.is_modules(value) then return value end
  if name == 'stages' and type(value) == 'table' then
    return check.integers(owner, 'dimension', name, value, 0, 2 ^ 20)
  end
  if type(value) ~= 'boolean' then check.argument(owner, 'dimension', name, value, 'string') end
  for _, word in ipairs(words[name]) do
    if word == value then return value end
  end
  util.fail('%s: dimension \'%s\': %s', owner, name, util.unknown(tostring(value), util.map(words[name], tostring)))
end

--- Devices of a stage of one replica.
function space.width(point) return point.tensor * point.context * (point.placement or 1) end

function space.used(point) return space.width(point) * point.pipeline * point.data end

--- A list of what a dimension was given: a value, a list, or what a function of the point so far returns.
local function listed(owner, name, given, point)
  if type(given) == 'function' then
    local made = given(point)
    if made == nil then return nil end
    given = made
  end
  if type(given) ~= 'table' then given = { given } end
  for i = 1, #given do
    if space.names[name] then check_value(owner, name, given[i]) end
  end
  if #given == 0 then check.refuse(owner, 'dimension', name, 'expected one value or more, got an empty list') end
  return given
end

--- Checks a description of a space: known names, or names of the script's own dimensions.
function space.check(owner, given, own)
  if given.layout ~= nil then check.argument(owner, 'dimension', 'layout', given.layout, 'string') end
  local known = util.merged({ layout = true }, space.names)
  for name in pairs(own) do known[name] = true end
  util.refuse_unknown(owner .. ': space', given, known, 'dimension')
  for name, value in util.sorted_pairs(given) do
    if type(value) ~= 'function' and name ~= 'layout' then listed(owner, name, value) end
  end
end

local function powers_of_two(most)
  local list, n = {}, 1
  while n <= most do
    list[#list + 1] = n
    n = 2 * n
  end
  return list
end

--- Divisors of n, ascending, up to `most`.
function space.divisors(n, most)
  local list = {}
  for i = 1, math.min(n, most or n) do
    if n % i == 0 then list[#list + 1] = i end
  end
  return list
end

--- The largest number of replicas on `places` devices among which a batch divides into whole micro-batches.
local function most_replicas(places, batch)
  for d = math.min(places, batch), 1, -1 do
    if batch % d == 0 then return d end
  end
end

-- Numbers of devices that may be used: all, or the fastest kinds alone; where idle ones cost nothing halves, too.
local function counts_of(about)
  local counts = about.unequal and about.counts or { about.devices }
  if not about.fewer then return counts end
  local list = {}
  for _, count in ipairs(counts) do
    while count >= 1 do list[#list + 1], count = count, math.floor(count / 2) end
  end
  return list
end

-- Values that a function gives for each number of devices that may be used; in order of size.
local function of_counts(about, values)
  local seen, list = {}, {}
  for _, count in ipairs(counts_of(about)) do
    for _, value in ipairs(values(count)) do
      if not seen[value] then
        seen[value] = true
        list[#list + 1] = value
      end
    end
  end
  table.sort(list)
  return list
end

-- Default values of each dimension. about: devices, per_node, layers, batch (global), experts,
-- selective(point) (whether selective recomputation frees anything), unequal, fewer; of unequal devices counts and
-- natural_sorted (unequal.lua).
local defaults = {
  micro_batch = function(_, about)
    local list = {}
    for _, b in ipairs { 1, 2, 4, 8 } do
      if about.batch % b == 0 then list[#list + 1] = b end
    end
    return list
  end,
  tensor = function(_, about) return powers_of_two(about.per_node) end,
  context = function(point, about) return powers_of_two(math.max(1, math.floor(about.per_node / point.tensor))) end,
  expert = function(_, about) return about.experts and powers_of_two(math.min(about.devices, 256)) or { 1 } end,
  sequence_parallel = function(point, about) -- devices of a tensor group must not exchange the same tokens twice
    return point.tensor == 1 and { false } or about.experts and { true } or { true, false }
  end,
  recompute = function(point, about) -- moves try layer by layer
    if about.selective and not about.selective(point) then return { 'none', 'full' } end
    return { 'none', 'selective', 'full' }
  end,
  placement = function() return { 1 } end, -- of operators inside stages, where it is asked for
  pipeline = function(point, about)
    return of_counts(about, function(count)
      return space.divisors(math.floor(count / space.width(point)), math.max(1, about.layers))
    end)
  end,
  data = function(point, about)
    return of_counts(about, function(count)
      local places = math.floor(count / (space.width(point) * point.pipeline))
      return { places > 0 and most_replicas(places, about.batch / point.micro_batch) or nil }
    end)
  end,
  schedule = function(point) return point.pipeline > 1 and words.schedule or { '1f1b' } end,
  virtual_stages = function(point, about)
    if v_shaped[point.schedule] then return { 2 } end
    if point.schedule ~= 'interleaved' and point.schedule ~= 'zb-interleaved' then return { 1 } end
    local list = {}
    for v = 2, math.floor(about.layers / point.pipeline) do list[#list + 1] = v end
    return list
  end,
  stages = function(point, about)
    if point.pipeline == 1 then return { 'even' } end
    return about.layers % (point.pipeline * point.virtual_stages) == 0 and { 'even', 'balanced' } or { 'balanced' }
  end,
  zero_stage = function(point) return point.data * point.context > 1 and { 0, 1, 2, 3 } or { 0 } end,
  -- Megatron-LM's rule of float32 gradients, a million parameters per rank, among the sizes that moves try; gathered
  -- weights take the memory of such buckets.
  bucket_bytes = function(point, about)
    if about.own_buckets then return { 0 } end
    local wanted, i = point.zero_stage < 3 and 4e6 * point.data * point.context or 0, 3
    while space.buckets[i + 1] and wanted > 2 * space.buckets[i] do i = i + 1 end
    return { space.buckets[i] }
  end,
  algorithm = function() return { 'automatic' } end,
  rank_order = function() return { 'default' } end, -- moves try others where machines differ
  order = function(point, about)
    if not about.unequal then return { 'natural' } end
    local list, whole = {}, space.used(point) == about.devices
    if about.natural_sorted or whole then list[1] = 'natural' end
    if not about.natural_sorted and (point.pipeline > 1 or not whole) then list[#list + 1] = 'fastest_first' end
    if point.pipeline > 1 then list[#list + 1] = 'fastest_last' end
    return list
  end,
}

for _, name in ipairs(space.offloads) do -- more by offload.lua
  defaults[name] = function() return { 0 } end
end

--- Why the words of a point contradict each other; nil where they do not. Of what the whole point decides.
local function contradiction(point, about)
  local p, v, m = point.pipeline, point.virtual_stages, point.micro_batches
  local interleaved = point.schedule == 'interleaved' or point.schedule == 'zb-interleaved'
  if space.used(point) > about.devices then return 'the mesh has more devices than the cluster' end
  if point.data > integers.data[2] then return 'more replicas than a mesh takes' end
  if about.batch % (point.micro_batch * point.data) ~= 0 then
    return 'the global batch is no multiple of micro-batch x data'
  end
  if point.data % point.expert ~= 0 then return 'expert does not divide data' end
  if point.placement > 1 and point.expert > 1 then return 'placement above 1 cannot be combined with expert above 1' end
  if point.placement > 1 and point.recompute == 'by_layer' then
    return 'placement above 1 cannot be combined with recompute by_layer'
  end
  if p * v > math.max(1, about.layers) then return 'more stages than layers' end
  if v_shaped[point.schedule] and p > 1 then
    if v ~= 2 then return 'schedules in V shape have two virtual stages' end
    if m < 2 * p then return 'fewer micro-batches than fill a schedule in V shape' end
  elseif v > 1 then
    if p == 1 then return 'virtual stages without a pipeline' end
    if not interleaved then return 'virtual stages with a schedule that has none' end
    if m % p ~= 0 then return 'pipeline does not divide the micro-batches, with an interleaved schedule' end
  elseif p > 1 and interleaved then
    return 'an interleaved schedule without virtual stages' -- that is 1F1B or ZB-H1
  end
  if space.delays(point.schedule, p) and m < (point.schedule == 'zb-h2' and 2 * p - 1 or p) then
    return 'fewer micro-batches than fill a zero-bubble schedule'
  end
  if type(point.stages) == 'table' and #point.stages ~= p * v then
    return 'the layout has another number of virtual stages'
  end
  if point.stages == 'even' and about.layers > 0 and about.layers % (p * v) ~= 0 then
    return 'pipeline x virtual stages does not divide the layers, with even stages'
  end
  return nil
end

--- The values of a dimension at a point; nil: none.
local function values_of(self, name, point)
  local own, given = self.own[name], self.given[name]
  if given == nil and own then given = own.values end
  local list = given ~= nil and listed(self.owner, name, given, point) or defaults[name](point, self.about)
  if not self.rules[name] then return list end
  local allowed = {}
  for _, value in ipairs(list) do
    local rule = rules.broken(self.rules, name, type(value) == 'table' and 'balanced' or value, point,
      self.about.layers)
    if rule then self.broken = self.broken or rule else allowed[#allowed + 1] = value end
  end
  return allowed
end

local Space = {}
Space.__index = Space

-- A value that was given and that the runtime has at no point is an error.
local function check_rules(self, runtime)
  for name, by_name in util.sorted_pairs(self.rules) do
    local given = self.given[name]
    if given ~= nil and type(given) ~= 'function' then
      for _, value in ipairs(listed(self.owner, name, given)) do
        local rule = rules.broken({ [name] = util.map(by_name, function(one)
          return (one.values or name == 'rank_order') and one or nil -- other functions depend on the point
        end) }, name, value)
        if rule then
          check.refuse(self.owner, 'dimension', name, "runtime '%s' runs %s (%s), got %s; 'any' has no such rules",
            runtime, rule.text, rule.source, tostring(value))
        end
      end
    end
  end
end

--- A space over a network and a cluster; runtime: whose rules hold (rules.lua), nil: none.
function space.new(owner, given, about, own, runtime)
  local self = setmetatable({ owner = owner, given = given, about = about, own = own,
    rest = util.joined(space.rest, util.sorted_keys(own)), rules = rules.of(runtime) }, Space)
  for _, rule in ipairs(self.rules.recompute or {}) do self.uniform = self.uniform or rule.uniform end
  self.about = util.merged(about, { own_buckets = self.rules.bucket_bytes ~= nil })
  check_rules(self, runtime)
  return self
end

local function loop(self, list, i, point, visit)
  local name = list[i]
  if not name then return visit(point) end
  local fields = self.own[name] and point.own or point
  for _, value in ipairs(values_of(self, name, point)) do
    fields[name] = value
    loop(self, list, i + 1, point, visit)
  end
  fields[name] = nil
end

function Space:families()
  local list = {}
  loop(self, space.family, 1, {}, function(point)
    if point.tensor * point.context <= self.about.devices and self.about.batch % point.micro_batch == 0 then
      list[#list + 1] = util.merged({}, point)
    end
  end)
  return list
end

--- Calls visit(point, reason) for every point of a family; reason: what it contradicts, or nil. The point is one table.
function Space:each(family, visit)
  loop(self, self.rest, 1, util.merged(family, { own = next(self.own) and {} or nil }), function(point)
    point.micro_batches = self.about.batch / (point.micro_batch * point.data)
    visit(point, contradiction(point, self.about))
  end)
end

--- Why a point is none of this space, or contradicts itself; nil where it is fine.
function Space:wrong(point)
  point.micro_batches = self.about.batch / (point.micro_batch * point.data)
  for name in util.sorted_pairs(self.rules) do
    local value = point[name]
    if name == 'moved' then value = type(point.order) == 'table' and not point.segment_size end -- others are idle
    if name == 'rank_order' then value = value or 'default' end
    if is_offload[name] then value = value or 0 end
    if name == 'stages' and type(value) == 'table' then value = 'balanced' end
    local rule = rules.broken(self.rules, name, value, point, self.about.layers)
    if rule then return rule.text end
  end
  return contradiction(point, self.about)
end

--- The values of a dimension where the dimensions before it have the values of a point.
function Space:values(name, point)
  local known = {}
  for _, entry in ipairs(dimensions.list) do
    if entry[1] == name then return values_of(self, name, known) end
    known[entry[1]] = point[entry[1]]
  end
  return values_of(self, name, known)
end

--- Whether a value of a dimension is one that the space was given, or ranges over by itself.
function Space:takes(point, name, value)
  for _, other in ipairs(self:values(name, point)) do
    if other == value then return true end
  end
  return false
end

--- Whether a point's values are all ones that the space has, but for stages and devices that moves found. functions:
--- only of dimensions that functions give.
function Space:holds(point, functions)
  for _, entry in ipairs(dimensions.list) do
    local name = entry[1]
    local found = type(point[name]) == 'table' or name == 'bucket_bytes' or name == 'rank_order'
      or is_offload[name] and self.given[name] == nil
      or functions and type(self.given[name]) ~= 'function'
    if not found and not self:takes(point, name, point[name]) then return false end
  end
  return true
end

--- The point as a strategy of a mesh. stages: a list in place of 'balanced'; devices: of an unequal cluster.
function space.strategy(point)
  local plain = point.pipeline == 1 and '1f1b' or point.schedule
  return {
    mesh = { data = point.data, tensor = point.tensor, pipeline = point.pipeline, context = point.context,
      expert = point.expert, placement = point.placement },
    schedule = plain, micro_batches = point.micro_batches,
    virtual_stages = point.virtual_stages, stages = type(point.stages) == 'table' and point.stages or nil,
    recompute = point.recompute == 'by_layer' and 'full' or point.recompute,
    sequence_parallel = point.sequence_parallel, zero_stage = point.zero_stage,
    optimizer_offload_fraction = point.optimizer_offload_fraction,
    activation_offload_fraction = point.activation_offload_fraction,
    bucket_bytes = point.bucket_bytes > 0 and point.bucket_bytes or nil,
    sync = point.algorithm ~= 'automatic' and point.data > 1
      and { kind = 'all_reduce', algorithm = point.algorithm } or nil,
    order = space.axes(point.rank_order), devices = point.devices, inside = point.inside, tasks = point.tasks,
    operators = point.operators,
  }
end

function space.point_of(strategy, micro_batch)
  local mesh, way = strategy.mesh, strategy.sync or {}
  return { micro_batch = micro_batch, tensor = mesh.tensor or 1, context = mesh.context or 1, expert = mesh.expert or 1,
    sequence_parallel = strategy.sequence_parallel or false, recompute = strategy.recompute or 'none',
    placement = mesh.placement or 1, pipeline = mesh.pipeline or 1, data = mesh.data or 1,
    schedule = strategy.schedule or '1f1b', virtual_stages = strategy.virtual_stages or 1,
    stages = strategy.stages or 'even', zero_stage = strategy.zero_stage or 0,
    optimizer_offload_fraction = strategy.optimizer_offload_fraction or 0,
    activation_offload_fraction = strategy.activation_offload_fraction or 0,
    bucket_bytes = strategy.bucket_bytes or model.bucket_bytes(strategy.problem.cluster, strategy) or 25000000,
    algorithm = way.algorithm or 'automatic', order = strategy.devices or 'natural', devices = strategy.devices,
    rank_order = strategy.order and table.concat(strategy.order, '-') or 'default',
    micro_batches = strategy.micro_batches or 1, tasks = strategy.tasks, operators = strategy.operators }
end

--- A copy of a point that does not change any more. Where operators are placed follows from the rest.
function space.kept(point)
  local copy = util.merged({}, point)
  copy.inside = nil
  if type(point.stages) == "table" then copy.stages = util.merged({}, point.stages) end
  if point.own then copy.own = util.merged({}, point.own) end
  return copy
end

--- A copy of a point with other values; the layers that it recomputes follow from the rest.
function space.changed(point, fields)
  local copy = space.kept(point)
  copy.recomputed = nil
  return util.merged(copy, fields)
end

--- The shape of a plan: plans of equal shape are variants of one.
function space.shape(point)
  return ('%d %d %d %d %d %d %s %s %d %s %s'):format(point.tensor, point.context, point.expert, point.placement,
    point.pipeline, point.data, point.pipeline > 1 and point.schedule or '', point.recompute, point.zero_stage,
    (point.optimizer_offload_fraction or 0) > 0 and 'host' or '',
    (point.activation_offload_fraction or 0) > 0 and 'host' or '')
end

function space.text(point)
  local words_list = {}
  for _, name in ipairs { 'tensor', 'pipeline', 'data', 'context', 'expert', 'placement' } do
    if (point[name] or 1) > 1 then words_list[#words_list + 1] = ('%s %d'):format(name, point[name]) end
  end
  if #words_list == 0 then words_list[1] = 'one device' end
  local line = { table.concat(words_list, ' x '),
    ('micro-batch %d x %d'):format(point.micro_batch, point.micro_batches) }
  if point.pipeline > 1 then
    line[#line + 1] = point.schedule .. (point.virtual_stages > 1 and (' v %d'):format(point.virtual_stages) or '')
  end
  if type(point.stages) == 'table' then line[#line + 1] = 'uneven stages' end
  if point.recomputed then
    local layers = util.sum(point.recomputed)
    line[#line + 1] = ('recompute %d layer%s'):format(layers, layers > 1 and 's' or '')
  elseif point.recompute ~= 'none' then
    line[#line + 1] = 'recompute ' .. (point.recompute == 'by_layer' and 'by layer' or point.recompute)
  end
  if point.zero_stage > 0 then line[#line + 1] = ('ZeRO %d'):format(point.zero_stage) end
  for i, what in ipairs { 'the optimizer', 'activations' } do
    local fraction = point[space.offloads[i]] or 0
    if fraction > 0 then line[#line + 1] = ('%.3g %% of %s on the host'):format(100 * fraction, what) end
  end
  if point.sequence_parallel then line[#line + 1] = 'sequence' end
  if point.segment_size then
    line[#line + 1] = ('segments of %d ranks'):format(point.segment_size)
  elseif type(point.order) == 'table' then
    line[#line + 1] = 'devices moved'
  elseif point.order and point.order ~= 'natural' then
    line[#line + 1] = (point.order:gsub('_', ' '))
  end
  if (point.rank_order or 'default') ~= 'default' then line[#line + 1] = 'ranks ' .. point.rank_order end
  return table.concat(line, ', ')
end

local booleans = { ['true'] = true, ['false'] = false, yes = true, no = false }

--- The values of a space from the options of a command (dimensions.options).
function space.read(options)
  local given = {}
  for _, entry in ipairs(dimensions.list) do
    local name, kind = entry[1], type(entry[2][1])
    if options[name] then
      if kind == 'number' then
        given[name] = util.numbers(name, options[name], entry[2][1], entry.real and entry[2][2] or 2 ^ 50,
          not entry.real, name == 'bucket_bytes' and 'bytes' or nil)
      else
        given[name] = util.map(util.words(options[name]), function(word)
          if kind ~= 'boolean' then return word end
          if booleans[word] == nil then
            util.fail_usage("option '--%s': expected true or false, got '%s'", name, word)
          end
          return booleans[word]
        end)
      end
    end
  end
  if options.layout then given.layout = options.layout end
  local ok, message = pcall(space.check, 'plan', given, {})
  if not ok then
    local name, rest = util.unplaced(tostring(message)):match "dimension '?([%w_]+)'?:? ?(.*)$"
    util.fail_usage("option '--%s': %s", name or '?', rest or message)
  end
  return given
end

return space
