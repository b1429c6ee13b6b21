-- Strategies that are the same for all layers, in the field's words: a mesh of devices, a pipeline's schedule, what is
-- recomputed. The rules: engine/strategy/lower.h, manual/strategy_fields.md.

local array = require 'trinity.base.array'
local core = require 'trinity.core'
local check = require 'trinity.base.check'
local layout = require 'trinity.strategy.layout'
local options = require 'trinity.base.options'
local util = require 'trinity.base.util'

local parallelism = {}

-- Numbers, flags and words that the engine lists (engine/strategy/mesh_words.h).
local listed = core.strategy_words()
local aliases = { cp_comm_type = 'trinity.ContextKind', ['sync.algorithm'] = 'trinity.MeshAlgorithm',
  ['sync.kind'] = 'trinity.MeshSynchronisationKind' }
for _, word in ipairs(listed) do
  if word.words then word.words = options.words(aliases[word.name], word.words) end
  if word.name == 'bucket_bytes' then
    word.default, word.otherwise = nil, "the runtime's, of a cluster without one 25 MB"
  elseif word.name == 'overlap_tp_grad_allreduce' then
    word.default, word.otherwise = nil, "the runtime's"
  end
end

local mesh = options.declare('trinity.Mesh', options.of_engine({ kind = 'axis',
  help = 'Number of devices per axis, tensor innermost, pipeline outermost. Other devices stay idle.' }, listed,
  'mesh.'))

local schedules = { 'gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v', 'dualpipe-v',
  'order' }

local sync = options.declare('trinity.MeshSynchronisation', options.of_engine({ kind = 'field',
  help = 'How the replicas of a mesh are synchronized.' }, listed, 'sync.'))

--- Parts of layers that Megatron-LM recomputes by name (engine/strategy/recompute_modules.h), in its order.
parallelism.recompute_modules = { 'core_attn', 'layernorm', 'mla_up_proj', 'mlp', 'moe', 'moe_act', 'shared_experts' }

local words = options.words('trinity.RecomputeWord', { 'none', 'selective', 'full',
  unpack(parallelism.recompute_modules) })

local function is_strategy(value) return type(value) == 'table' and getmetatable(value) ~= nil end

local function check_inside(owner, place, name, value)
  if type(value) == 'function' or array.is_int32(value) or is_strategy(value) then return end
  if type(value) ~= 'table' then
    check.wrong(owner, place, name, value, 'a placement, a list of places, a strategy or a function')
  end
  check.integers(owner, place, name, value, 1, 4096)
end

local modules = util.set(parallelism.recompute_modules)

--- Returns whether a word is a list of modules joined by '+'.
function parallelism.is_modules(word)
  for name in (word .. '+'):gmatch '([^+]*)%+' do
    if not modules[name] then return false end
  end
  return true
end

local function check_recompute(owner, place, name, value) -- the engine checks the value
  if type(value) ~= 'function' then check.argument(owner, place, name, value, 'string') end
end

local function check_tasks(owner, place, name, value)
  if type(value) == 'string' then return end
  for i, row in ipairs(check.argument(owner, place, name, value, 'table')) do
    if type(row) == 'table' then check.list(owner, place, ('%s[%d]'):format(name, i), row, 'string')
    else check.argument(owner, place, ('%s[%d]'):format(name, i), row, 'string') end
  end
end

local declared = options.declare('trinity.MeshStrategy', options.of_engine({ kind = 'field',
  help = 'A strategy that is the same for all layers. The batch of the graph is a micro-batch of one replica.',
  { 'mesh', mesh, needed = true, help = 'number of devices per axis' },
  { 'order', 'table', as = "('tensor'|'context'|'placement'|'expert'|'data'|'pipeline')[]",
    otherwise = 'tensor, context, placement, expert, data, pipeline', help = 'order of the axes on the devices, '
      .. 'innermost first' },
  { 'devices', 'integers', least = 1, most = 2 ^ 20, otherwise = "the cluster's", help = 'devices of the mesh' },
  { 'schedule', options.words('trinity.MeshSchedule', schedules), '1f1b', help = "pipeline schedule; 'order': given "
    .. "by `tasks`" },
  { 'tasks', 'any', check = check_tasks, as = 'string[]|string[][]|string',
    otherwise = "the schedule's",
    help = "a custom pipeline order as in PyTorch: one row of tasks per pipeline rank, '0F0,0F1,0B0,0B1' or a list "
      .. "(virtual stage, F, B, I or W, micro-batch, from 0), or a CSV file with such rows" },
  { 'stages', 'integers', least = 0, most = 2 ^ 20, otherwise = 'the same number each',
    help = 'number of layers of every virtual stage' },
  { 'layout', 'string', otherwise = 'given by `stages`',
    help = "in place of `stages` and `virtual_stages`: Megatron-LM's layout, 'Et*3|(tt|)*29mL'" },
  { 'recompute', words, 'none', check = check_recompute,
    as = 'trinity.RecomputeWord|string|fun(op: trinity.Operator): boolean?',
    help = "activation recomputation: 'selective' recomputes core attention, 'full' whole layers, Megatron-LM's "
      .. "module names ('layernorm+mlp') these modules of every layer, a function the forward operators for which it "
      .. "returns true" },
  { 'split', 'function', as = 'fun(op: trinity.Operator): string|false|nil', otherwise = "Megatron-LM's pattern",
    help = 'returns the dimension along which `tensor` splits a forward operator; false: none; nil: by the pattern' },
  { 'inside', 'any', check = check_inside,
    as = 'trinity.Placement|integer[]|trinity.Strategy|fun(op: trinity.Operator): integer?',
    otherwise = 'needed if the axis `placement` is above one',
    help = 'device of every operator on that axis: a placement on that many devices, a strategy with one, or a '
      .. 'function of forward operators (nil: 1), which the other operators follow' },
  { 'operators', 'table', as = 'table<string, trinity.OperatorChoice>',
    help = 'settings of single operators by name, which override these functions' },
  { 'sync', sync, help = 'how replicas are synchronized' },
}, listed))

local fields = util.map(declared.all, function(word) return word.name end)

local rule = options.declare('trinity.OperatorChoice', { kind = 'field',
  help = 'Settings of one forward operator that override settings of the mesh.',
  { 'recompute', 'boolean', otherwise = '`recompute` of the mesh', help = 'recompute it before its backward operator' },
  { 'split', 'any', as = 'string|false', otherwise = 'by the pattern',
    help = 'dimension along which `tensor` splits it; false: none' },
})

local function is_split(value) return value == nil or value == false or type(value) == 'string' end

local function check_rules(owner, rules)
  for name, said in util.sorted_pairs(rules) do
    if type(name) ~= 'string' then check.wrong(owner, 'field', 'operators', name, 'names of operators') end
    local of = ("%s: operators: '%s'"):format(owner, name)
    rule:check(of, check.argument(owner, 'operators', name, said, 'table'))
    if not is_split(said.split) then
      check.wrong(of, 'field', 'split', said.split, 'the name of a dimension or false')
    end
  end
end

--- Calls the functions of a plan for the forward operators of a graph and stores the results by operator name; existing
--- settings stay. Without a graph, the functions are ignored.
local function resolve(owner, given, graph)
  local rules = {}
  for name, said in util.sorted_pairs(given.operators or {}) do rules[name] = util.merged({}, said) end
  local recompute = type(given.recompute) == 'function' and given.recompute or nil
  for i = 1, graph and graph.operators or 0 do
    local op = graph:operator(i)
    local said = op.phase == 'forward' and (rules[op.name] or {}) or nil
    if said and recompute and said.recompute == nil then said.recompute = recompute(op) and true or nil end
    if said and given.split and said.split == nil then
      said.split = given.split(op)
      if not is_split(said.split) then
        util.fail("%s: split: the function at %s returned %s for operator '%s', expected the name of a dimension, "
          .. 'false or nil', owner, util.function_place(given.split), util.describe(said.split), op.name)
      end
    end
    if said and next(said) ~= nil then rules[op.name] = said end
  end
  given.operators, given.split = next(rules) ~= nil and rules or nil, nil
  if recompute then given.recompute = nil end
end

local function refuse_place(owner, choose, op, place)
  util.fail("%s: inside: the function at %s returned %s for operator '%s', expected a device on the axis `placement` "
    .. 'or nil', owner, util.function_place(choose), util.describe(place), op.name)
end

--- Returns the places of all operators as a list. A function gives places of forward operators. Their backward and
--- update operators follow them; other operators follow the first operator that they read.
local function places_of(owner, inside, graph)
  if is_strategy(inside) then return inside.placement:totable() end
  if array.is_int32(inside) then return inside:totable() end
  if type(inside) ~= 'function' then return inside end
  local places = {}
  for i = 1, graph and graph.operators or 0 do
    local op = graph:operator(i)
    if op.phase == 'forward' then
      local place = inside(op)
      if place == nil then place = 1 end
      if type(place) ~= 'number' or place % 1 ~= 0 then refuse_place(owner, inside, op, place) end
      places[i] = place
    else
      places[i] = places[op.forward or graph:predecessors(i)[1]] or 1
    end
  end
  return graph and places or nil
end

--- Reads a custom order and derives micro-batches, virtual stages, and the schedule that has this order, or 'order'.
local function resolve_tasks(owner, given)
  local rows, source = given.tasks, 'tasks'
  if type(rows) == 'string' then
    source, rows = util.shortened(rows), util.words(util.read_file(rows):gsub('\r?\n$', '') .. '\n', '([^\n]*)\n')
  end
  rows = util.map(rows, function(row) return type(row) == 'table' and table.concat(row, ',') or row end)
  local ok, found = pcall(core.read_order, rows)
  if not ok then util.fail_as(found, ('%s: %s'):format(owner, source)) end
  if #found.tasks ~= (given.mesh.pipeline or 1) then
    util.fail('%s: %s: expected pipeline = %d rows, got %d', owner, source, given.mesh.pipeline or 1, #found.tasks)
  end
  if given.schedule == 'order' then given.schedule = nil end
  for _, name in ipairs { 'schedule', 'micro_batches', 'virtual_stages' } do
    if given[name] ~= nil and given[name] ~= found[name] then
      util.fail('%s: %s: expected %s = %s as in the tasks, got %s', owner, source, name, tostring(found[name]),
        tostring(given[name]))
    end
    given[name] = found[name]
  end
  given.tasks = found.schedule == 'order' and found.tasks or nil
end

--- Converts a Megatron-LM layout to stages. Its virtual stages are assigned to pipeline ranks round-robin.
local function resolve_layout(owner, given, graph)
  local p = given.mesh.pipeline or 1
  local stages = layout.stages(given.layout, p, graph, owner .. ': layout')
  if given.stages then util.fail("%s: layout: cannot be combined with 'stages'", owner) end
  if given.virtual_stages and given.virtual_stages ~= #stages / p then
    util.fail('%s: layout: expected virtual_stages = %d as in the layout, got %d', owner, #stages / p,
      given.virtual_stages)
  end
  given.stages, given.virtual_stages, given.layout = p > 1 and stages or nil, #stages / p, nil
  if given.virtual_stages > 1 and given.schedule == nil then given.schedule = 'interleaved' end
  if parallelism.is_v_shaped(given) then
    util.fail("%s: layout: expected a schedule that assigns virtual stages round-robin (not V-shaped), got '%s'",
      owner, given.schedule)
  end
end

--- Returns whether a plan has a mesh.
function parallelism.is(plan) return type(plan) == 'table' and rawget(plan, 'mesh') ~= nil end

--- Returns the checked fields of a plan with a mesh, with its functions evaluated for the operators of `graph`.
--- selective: a function of operators that replaces core attention as the meaning of recompute = 'selective'.
function parallelism.fields(owner, plan, graph, selective)
  local given = plan
  if getmetatable(plan) ~= nil then given = util.picked(plan, fields) end -- a strategy has further fields
  declared:check(owner, given)
  given = util.picked(given, fields)
  if given.recompute == 'selective' and selective then given.recompute = selective end
  if given.tasks then resolve_tasks(owner, given) end
  if given.layout then resolve_layout(owner, given, graph) end
  if given.operators then check_rules(owner, given.operators) end
  if given.split or type(given.recompute) == 'function' then resolve(owner, given, graph) end
  if given.inside then given.inside = places_of(owner, given.inside, graph) end
  return given
end

--- Returns a strategy with a custom order (`tasks`) instead of its schedule. Its stages are kept if their number is
--- equal.
function parallelism.with_tasks(strategy, tasks)
  local plan = util.picked(strategy, fields)
  plan.schedule, plan.micro_batches, plan.virtual_stages, plan.tasks = nil, nil, nil, tasks
  plan = parallelism.fields('strategy', plan, strategy.problem.graph)
  if plan.virtual_stages ~= (strategy.virtual_stages or 1) then plan.stages = nil end
  return strategy.problem:strategy(plan, util.picked(strategy, { 'method', 'seed', 'evaluations' }))
end

--- Returns whether virtual stages visit the pipeline ranks forwards and then backwards (V) instead of round-robin.
function parallelism.is_v_shaped(plan)
  if plan.schedule ~= 'order' then return plan.schedule == 'zb-v' or plan.schedule == 'dualpipe-v' end
  local last = #plan.tasks * (plan.virtual_stages or 1) - 1
  return (',' .. plan.tasks[1]):find((',%dF'):format(last), 1, true) ~= nil
end

--- Returns the pipeline rank (from 1, of p) of a virtual stage (from 1).
function parallelism.place_of(chunk, p, v_shaped)
  local turn, place = math.floor((chunk - 1) / p), (chunk - 1) % p + 1
  return v_shaped and turn % 2 == 1 and p + 1 - place or place
end

--- Returns for every pipeline rank its virtual stages in the order of a micro-batch: { first, last } layer, from 1. For
--- a stage without layers, last is first - 1.
function parallelism.chunks(plan, layers)
  local p, v, before = plan.mesh.pipeline or 1, plan.virtual_stages or 1, 0
  local list, v_shaped = util.listed(p, function() return {} end), parallelism.is_v_shaped(plan)
  for chunk = 1, p * v do
    local last = before + (plan.stages and plan.stages[chunk] or layers / (p * v))
    table.insert(list[parallelism.place_of(chunk, p, v_shaped)], { before + 1, last })
    before = last
  end
  return list
end

--- Returns a plan whose steps are at most as expensive as any step of `plan`: replicas that synchronize every few steps
--- then never synchronize.
function parallelism.cheapest(plan)
  local way = plan.sync
  if not way or (way.every or 1) < 2 then return plan end
  return util.merged(util.picked(plan, fields), { sync = util.merged(way, { every = 0 }) })
end

--- Returns the first device of the first replica in every pipeline stage of a lowered plan.
function parallelism.first_devices(low)
  local first, at = {}, low.coordinates
  for device, stage in util.sorted_pairs(at.pipeline) do
    if at.data[device] == 0 and at.context[device] == 0 and at.tensor[device] == 0 and at.placement[device] == 0 then
      first[stage + 1] = device
    end
  end
  return first
end

--- Returns the bubble fraction of a mesh's schedule: idle time divided by ideal time, for equal stages and free
--- messages, where forward pass, input gradients (B) and weight gradients (W) take equal time. The first number
--- belongs to the device with the longest time from its first to its last task, as papers define it; the second one to
--- the whole step, in which the last stage starts later. Raises an error if the strategy has no mesh or its fields
--- contradict each other. Example:
--- `trinity.pipeline.schedule_bubble { mesh = { pipeline = 4 }, schedule = '1f1b', micro_batches = 8 }`
---@param strategy trinity.MeshStrategy|trinity.Strategy
---@return number of_device
---@return number of_step
function parallelism.schedule_bubble(strategy)
  local owner = 'pipeline.schedule_bubble'
  if not parallelism.is(strategy) then check.wrong(owner, 1, 'strategy', strategy, 'a strategy with a mesh') end
  local ok, of_device, of_step = pcall(core.schedule_bubble, parallelism.fields(owner, strategy))
  if not ok then util.fail_as(of_device, owner) end
  return of_device, of_step
end

return parallelism
