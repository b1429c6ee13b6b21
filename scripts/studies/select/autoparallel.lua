-- The problem of AutoParallel's integer program (meta-pytorch/autoparallel, optimize_sharding.py), as JSON:
--   mesh { shape, dim_names }
--   nodes [{ name, op, choices: [placement], inputs?: [[placement]] by choice, linked?: [names of
--     nodes with the same choice, whose costs are included] }]
--   tables [{ node, argument, from: node or null, compute: [o], comm: [o][i], transition: [o][i] }], null = forbidden;
--     `as`: an earlier table with the same costs, instead of costs
--   equal [[[[node, choice]..], [[node, choice]..]]]: both sides have equal numbers of chosen entries
--   pinned [[[node, choice]..]]: one of these is chosen
--   memory { low, high, weights: [[node, choice, weight]] }, objective
-- Nodes and choices are numbered from 0. Every node has one choice o; an argument costs compute[o] + comm[o][i] +
-- transition[o][i], where i is the choice of the node that it comes from. Everything is expressed as costs of nodes and
-- pairs of nodes (the engine adds up repeated pairs), except the memory, whose lower bound becomes a limit on the
-- unused part of copies of the weighted nodes.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local select_strategies = require 'trinity.select'
local util = require 'trinity.base.util'

jit.off(true, true) -- short loops, whose compilation takes longer than their execution

local autoparallel = {}

local forbidden = math.huge
local scale = 2 ^ 30 -- usages are integers; weights are fractions of an array, mostly sums of powers of 1/2
local most_memory = 2 ^ 53 / scale -- largest exact integer

local function fail(path, what, ...) util.fail('%s: %s', util.shortened(path), what:format(...)) end

-- Positions have two parts, which are only joined for an error, because there are hundreds of thousands of them.

--- Returns a list of an object, or raises an error that names it.
local function list_in(path, where, part, value, length)
  if type(value) ~= 'table' or #value == 0 and next(value) ~= nil or length and #value ~= length then
    local got = type(value) ~= 'table' and util.describe(value) or ('one of %d'):format(#value)
    if type(value) == 'table' and #value == 0 and next(value) ~= nil then got = 'an object' end
    fail(path, '%s%s: expected a list%s, got %s', where, part, length and (' of %d'):format(length) or '', got)
  end
  return value
end

--- Converts a number from 0 to count - 1 to an index from 1.
local function index_in(path, where, part, value, count)
  if type(value) ~= 'number' or value < 0 or value >= count or value % 1 ~= 0 then
    fail(path, '%s%s: expected a number from 0 to %d, got %s', where, part, count - 1, util.describe(value))
  end
  return value + 1
end

local function number_in(path, where, part, value)
  if type(value) ~= 'number' then
    fail(path, '%s%s: expected a number, got %s', where, part, util.describe(value))
  end
  return value
end

--- Returns a cost; null in a list is false.
local function cost_in(path, where, part, value)
  if value == false then return forbidden end
  if type(value) ~= 'number' then
    fail(path, '%s%s: expected a number or null, got %s', where, part, util.describe(value))
  end
  return value
end

--- Returns whether a value is such a problem.
local function is_problem(read)
  return type(read) == 'table' and type(read.tables) == 'table' and type(read.nodes) == 'table'
    and type(read.mesh) == 'table'
end

--- The pairs of choices that equalities and copies forbid: returns a list of edges, and a function for the flat costs
--- of the edge of two nodes, initially 0.
local function pairs_of(costs)
  local list, by_key = {}, {}
  return list, function(u, v)
    local key = u * (#costs + 1) + v
    if not by_key[key] then
      local flat = {}
      for i = 1, #costs[u] * #costs[v] do flat[i] = 0 end
      by_key[key] = { nodes = { u, v }, flat = flat }
      list[#list + 1] = by_key[key]
    end
    return by_key[key].flat
  end
end

--- Returns the table with the costs of a table: itself, or the earlier one that it names.
local function costs_of(path, where, tables, t)
  if tables[t].as == nil then return tables[t] end
  local other = tables[index_in(path, where, ": field 'as'", tables[t].as, t - 1)]
  if other.as ~= nil then fail(path, "%s: field 'as': expected a table with its own costs", where) end
  return other
end

--- Raises an error if the rows of a table's comm or transition are malformed; expects `count` rows of `others`.
local function check_rows(path, where, field, rows, count, others)
  for o, row in ipairs(list_in(path, where, (": field '%s'"):format(field), rows, count)) do
    local part = (": choice %d: field '%s'"):format(o - 1, field)
    for _, value in ipairs(list_in(path, where, part, row, others)) do cost_in(path, where, part, value) end
  end
end

--- Returns the sums of a table's comm and transition, row by row: `count` choices by `others` of the other node.
local function sums_of(path, where, of, count, others)
  local comm, transition = of.comm, of.transition
  if type(comm) == 'table' and #comm == count and type(transition) == 'table' then
    local sums = core.summed_rows(comm, transition, others)
    if sums then return { count = count, others = others, flat = sums } end
  end
  check_rows(path, where, 'comm', comm, count, others)
  check_rows(path, where, 'transition', transition, count, others)
end

--- Adds the costs of a table to its node and, if it has another node, to the edges. `known`: sums by table.
local function add_table(path, t, read, costs, edges, known)
  local where = ('table %d'):format(t - 1)
  local given = read.tables[t]
  if type(given) ~= 'table' then fail(path, '%s: expected an object, got %s', where, util.describe(given)) end
  local node = index_in(path, where, ": field 'node'", given.node, #costs)
  local from = given.from and index_in(path, where, ": field 'from'", given.from, #costs)
  local own, of = costs[node], costs_of(path, where, read.tables, t)
  local compute = list_in(path, where, ": field 'compute'", of.compute, #own)
  local others, sums = from and #costs[from] or 1, known[of]
  if not sums or sums.count ~= #own or sums.others ~= others then
    sums = sums_of(path, where, of, #own, others)
    known[of] = sums
  end
  for o = 1, #own do
    local alone = compute[o]
    if type(alone) ~= 'number' then
      alone = cost_in(path, where, (": choice %d: field 'compute'"):format(o - 1), alone)
    end
    own[o] = own[o] + (from and alone or alone + sums.flat[o])
  end
  if from then edges[#edges + 1] = { nodes = { node, from }, flat = sums.flat } end
end

--- Returns one side of an equality: its node, and the set of its choices.
local function side_of(path, where, side, costs)
  local node, set = nil, {}
  for _, literal in ipairs(list_in(path, where, '', side)) do
    list_in(path, where, ': choice', literal, 2)
    local v = index_in(path, where, ': node', literal[1], #costs)
    if node and node ~= v then fail(path, '%s: expected choices of one node, got two nodes', where) end
    node = v
    set[index_in(path, where, ': choice', literal[2], #costs[v])] = true
  end
  if not node then fail(path, '%s: expected a choice, got none', where) end
  return node, set
end

local function add_equality(path, e, equality, costs, pair)
  local where = ('equal %d'):format(e - 1)
  list_in(path, where, '', equality, 2)
  local u, left = side_of(path, where, equality[1], costs)
  local v, right = side_of(path, where, equality[2], costs)
  if u == v then
    for o = 1, #costs[u] do if left[o] ~= right[o] then costs[u][o] = forbidden end end
    return
  end
  if v < u then u, v, left, right = v, u, right, left end
  local flat, columns = pair(u, v), #costs[v]
  for a = 1, #costs[u] do
    for b = 1, columns do if left[a] ~= right[b] then flat[(a - 1) * columns + b] = forbidden end end
  end
end

--- Expresses the memory as usages: of the weighted nodes between times 0 and 1, and of their copies between 1 and 2,
--- which use the rest of their largest weight. Returns usages by node and the limit, and adds the copies with their
--- constraints.
local function add_memory(path, memory, costs, intervals, pair)
  local usages, weight, most, total = {}, {}, {}, 0
  for v = 1, #costs do
    usages[v], weight[v] = {}, {}
    for o = 1, #costs[v] do usages[v][o] = 0 end
  end
  for w, given in ipairs(list_in(path, 'memory: ', "field 'weights'", memory.weights)) do
    local where = ('memory: weight %d'):format(w - 1)
    list_in(path, where, '', given, 3)
    local v = index_in(path, where, ': node', given[1], #costs)
    local value = number_in(path, where, ': weight', given[3])
    if not (value >= 0 and value <= most_memory) then
      fail(path, '%s: weight: expected a number from 0 to %d, got %s', where, most_memory, util.describe(value))
    end
    weight[v][index_in(path, where, ': choice', given[2], #costs[v])] = value
    most[v] = math.max(most[v] or 0, value)
  end
  local nodes = #costs
  for v = 1, nodes do total = total + (most[v] or 0) end
  if total > most_memory then
    fail(path, 'memory: expected largest weights per node that sum to at most %d, got %.6g', most_memory, total)
  end
  -- Bounds beyond the sum of weights have no effect: every selection satisfies them, or none does.
  local low = memory.low == nil and 0 or number_in(path, 'memory: ', "field 'low'", memory.low)
  local high = memory.high == nil and total or number_in(path, 'memory: ', "field 'high'", memory.high)
  low, high = math.max(0, math.min(low, total + 1)), math.max(-1, math.min(high, total))
  local limit = math.max(high, total - low, 0)
  local slack = nodes + 1 -- for rounding, one per node
  local function whole(value) return math.floor(value * scale + 0.5) end
  for v = 1, nodes do
    if most[v] then
      local copy, costs_of_copy, left = #costs + 1, {}, {}
      for o = 1, #costs[v] do
        usages[v][o] = whole(weight[v][o] or 0)
        left[o], costs_of_copy[o] = whole(most[v] - (weight[v][o] or 0)), 0
      end
      costs[copy], usages[copy], intervals[copy] = costs_of_copy, left, { 1, 2 }
      local flat, columns = pair(v, copy), #costs[copy]
      for i = 0, #flat - 1 do flat[i + 1] = i % (columns + 1) == 0 and 0 or forbidden end
    end
  end
  for at, used in ipairs { limit - high, limit - (total - low) } do -- rest of the limit after the other bound
    local filler = #costs + 1
    costs[filler], usages[filler], intervals[filler] = { 0 }, { math.max(0, whole(used)) }, { at - 1, at }
  end
  return usages, whole(limit) + slack
end

local function add_pinned(path, p, literals, costs)
  local node, set = side_of(path, ('pinned %d'):format(p - 1), literals, costs)
  for o = 1, #costs[node] do if not set[o] then costs[node][o] = forbidden end end
end

--- Returns a text of an object.
local function text_in(path, where, part, value)
  if type(value) ~= 'string' then fail(path, '%s%s: expected a text, got %s', where, part, util.describe(value)) end
end

--- Returns a list of texts of an object.
local function texts_in(path, where, part, value, length)
  for i, text in ipairs(list_in(path, where, part, value, length)) do
    if type(text) ~= 'string' then text_in(path, where, ('%s[%d]'):format(part, i - 1), text) end
  end
end

--- Returns the number of choices of a node. Raises an error if one of its fields is wrong.
local function check_node(path, v, node)
  local where = ('node %d'):format(v - 1)
  if type(node) ~= 'table' then fail(path, '%s: expected an object, got %s', where, util.describe(node)) end
  text_in(path, where, ": field 'name'", node.name)
  texts_in(path, where, ": field 'choices'", node.choices)
  local count = #node.choices
  if count == 0 then fail(path, "%s: field 'choices': expected a choice, got none", where) end
  if node.inputs ~= nil then
    for o, inputs in ipairs(list_in(path, where, ": field 'inputs'", node.inputs, count)) do
      texts_in(path, where, (": field 'inputs'[%d]"):format(o - 1), inputs)
    end
  end
  if node.linked ~= nil then texts_in(path, where, ": field 'linked'", node.linked) end
  return count
end

--- Raises an error if two nodes have the same name, because placements are identified by name. `linked` nodes may
--- repeat a name.
local function check_names(path, nodes)
  local owner = {}
  local function take(v, name)
    if owner[name] then
      fail(path, "node %d: name '%s': expected a unique name, got the name of node %d", v - 1, util.shortened(name),
        owner[name] - 1)
    end
    owner[name] = v
  end
  for v, node in ipairs(nodes) do
    take(v, node.name)
    for _, name in ipairs(node.linked or {}) do take(v, name) end
  end
end

--- Returns { problem = (for lib/trinity/select), nodes, count, mesh, objective } of a file's JSON. Errors name the file
--- and the field.
local function problem_of(path, read)
  local costs, intervals = {}, {}
  for v, node in ipairs(list_in(path, '', "field 'nodes'", read.nodes)) do
    costs[v], intervals[v] = util.listed(check_node(path, v, node), function() return 0 end), { 0, 1 }
  end
  if #costs == 0 then fail(path, "field 'nodes': expected a node, got none") end
  check_names(path, read.nodes)
  for axis, size in ipairs(list_in(path, 'mesh: ', "field 'shape'", read.mesh.shape)) do
    number_in(path, 'mesh: ', ("field 'shape'[%d]"):format(axis - 1), size)
  end
  texts_in(path, 'mesh: ', "field 'dim_names'", read.mesh.dim_names, #read.mesh.shape)
  local nodes = #costs
  local list, pair = pairs_of(costs)
  local edges, known = {}, {}
  for t = 1, #list_in(path, '', "field 'tables'", read.tables) do add_table(path, t, read, costs, edges, known) end
  local equal = list_in(path, '', "field 'equal'", read.equal or {})
  for e, equality in ipairs(equal) do add_equality(path, e, equality, costs, pair) end
  local pinned = list_in(path, '', "field 'pinned'", read.pinned or {})
  for p, literals in ipairs(pinned) do add_pinned(path, p, literals, costs) end
  if read.objective ~= nil then number_in(path, '', "field 'objective'", read.objective) end
  local problem = { name = util.shortened(path), nodes = { costs = costs, intervals = intervals } }
  if read.memory ~= nil and type(read.memory) ~= 'table' then
    fail(path, "field 'memory': expected an object, got %s", util.describe(read.memory))
  end
  if read.memory then
    problem.nodes.usages, problem.usage_limit = add_memory(path, read.memory, costs, intervals, pair)
  end
  for _, edge in ipairs(list) do edges[#edges + 1] = edge end
  problem.edges = { nodes = util.map(edges, function(edge) return edge.nodes end),
    costs = util.map(edges, function(edge) return edge.flat end) }
  return { problem = problem, nodes = read.nodes, count = nodes, mesh = read.mesh, objective = read.objective }
end

--- Returns the solution in the format of AutoParallel's load_placements; with inputs only if the file has them.
local function placements_of(read, solution)
  local placements = {}
  for v = 1, read.count do
    local node, o = read.nodes[v], solution[v]
    local chosen = { output = node.choices[o], inputs = node.inputs and node.inputs[o] or nil }
    placements[node.name] = chosen
    for _, other in ipairs(node.linked or {}) do placements[other] = chosen end
  end
  return { version = 1, mesh_shape = read.mesh.shape, mesh_dim_names = read.mesh.dim_names,
    placements = placements }
end

--- Returns the object or list in a file .json or .json.gz, compressed or not whatever its name; nil if there is none.
local function read_json(path)
  if not path:find '%.json$' and not path:find '%.json%.gz$' then return nil end
  local fine, value = pcall(json.decode, json.text(path))
  return fine and type(value) == 'table' and value or nil
end

--- Solves the problem in a file: AutoParallel's, or one that lib/trinity/select reads. Options and result are its
--- own. Of AutoParallel's problems the result has only the file's nodes, without the copies that represent
--- the lower bound of the memory, and also `placements` for its load_placements and the file's `objective`.
function autoparallel.select(path, options)
  local start_s = core.clock_s()
  local read = not core.begins_selection(path) and read_json(path)
  if not is_problem(read) then return select_strategies(path, options) end
  local made = problem_of(path, read)
  local left_s = math.max(0, (options.seconds or 60) - (core.clock_s() - start_s))
  local result = select_strategies(made.problem, util.merged(options, { seconds = left_s }))
  for v = #result.solution, made.count + 1, -1 do result.solution[v] = nil end
  local solution = result.solution
  return util.merged(result, { nodes = made.count, objective = made.objective, seconds = core.clock_s() - start_s,
    placements = placements_of(made, solution) })
end

return autoparallel
