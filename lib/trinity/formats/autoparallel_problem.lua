-- The problem that AutoParallel hands to its integer program (meta-pytorch/autoparallel, optimize_sharding.py), JSON:
--   mesh { shape, dim_names }
--   nodes [{ name, op, choices: [placement], inputs?: [[placement]] by choice, linked?: [names of nodes that choose
--     the same, whose costs are in this one's] }]
--   tables [{ node, argument, from: node or null, compute: [o], comm: [o][i], transition: [o][i] }], null = forbidden;
--     `as`: an earlier table, instead of costs, that has the same
--   equal [[[[node, choice]..], [[node, choice]..]]]: as many of the one as of the other are chosen
--   pinned [[[node, choice]..]]: one of these is chosen
--   memory { low, high, weights: [[node, choice, weight]] }, objective
-- Nodes and choices count from 0. One choice o a node; an argument costs compute[o] + comm[o][i] + transition[o][i]
-- where i is the choice of the node that it comes from. Everything is costs of nodes and of pairs (what the same two
-- nodes cost several times the engine adds up) but the memory, whose lower bound becomes a limit on what copies of the
-- weighted nodes leave unused.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

jit.off(true, true) -- loops of a few turns each, with what is long in the engine: compiling them takes longer

local autoparallel = {}

local forbidden = math.huge
local scale = 2 ^ 30 -- usages are whole numbers; weights are shares of an array, sums of halves mostly
local most_memory = 2 ^ 53 / scale -- what whole numbers hold exactly

local function fail(path, what, ...) util.fail('%s: %s', util.shortened(path), what:format(...)) end

-- Places come in two parts, joined only in an error: there are hundreds of thousands of them.

--- A list in an object that was read, or an error that names it.
local function list_in(path, where, part, value, length)
  if type(value) ~= 'table' or #value == 0 and next(value) ~= nil or length and #value ~= length then
    local got = type(value) ~= 'table' and util.describe(value) or ('one of %d'):format(#value)
    if type(value) == 'table' and #value == 0 and next(value) ~= nil then got = 'an object' end
    fail(path, '%s%s: expected a list%s, got %s', where, part, length and (' of %d'):format(length) or '', got)
  end
  return value
end

--- A number from 0 below `count` as an index from 1.
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

--- A cost; null in a list is false.
local function cost_in(path, where, part, value)
  if value == false then return forbidden end
  if type(value) ~= 'number' then
    fail(path, '%s%s: expected a number or null, got %s', where, part, util.describe(value))
  end
  return value
end

--- Whether a value that was read is such a problem.
function autoparallel.is(read)
  return type(read) == 'table' and type(read.tables) == 'table' and type(read.nodes) == 'table'
    and type(read.mesh) == 'table'
end

--- The pairs of choices that equalities and copies forbid: a list of edges, and a function that gives the flat costs of
--- the edge of two nodes, first 0.
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

--- The table whose costs a table has: its own, or those of the earlier one that it names.
local function costs_of(path, where, tables, t)
  if tables[t].as == nil then return tables[t] end
  local other = tables[index_in(path, where, ": field 'as'", tables[t].as, t - 1)]
  if other.as ~= nil then fail(path, "%s: field 'as': expected a table with costs of its own", where) end
  return other
end

--- Names what is wrong with the rows of a table's comm or transition, if anything: `count` rows of `others`.
local function check_rows(path, where, field, rows, count, others)
  for o, row in ipairs(list_in(path, where, (": field '%s'"):format(field), rows, count)) do
    local part = (": choice %d: field '%s'"):format(o - 1, field)
    for _, value in ipairs(list_in(path, where, part, row, others)) do cost_in(path, where, part, value) end
  end
end

--- The sums of a table's comm and transition, one row after the other: `count` choices by `others` of the other node.
local function sums_of(path, where, of, count, others)
  local comm, transition = of.comm, of.transition
  if type(comm) == 'table' and #comm == count and type(transition) == 'table' then
    local sums = core.summed_rows(comm, transition, others)
    if sums then return { count = count, others = others, flat = sums } end
  end
  check_rows(path, where, 'comm', comm, count, others)
  check_rows(path, where, 'transition', transition, count, others)
end

--- Adds what a table costs to its node and, where it has another, to the edges. `known`: sums by table.
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

--- The choices of one side of an equality: its node, and which of them count.
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

--- The memory as usages: of the weighted nodes between times 0 and 1, of copies of them between 1 and 2, which use what
--- the nodes leave of their largest weight. Returns usages by node and the limit, and adds copies and what keeps them.
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
    fail(path, 'memory: expected weights whose largest of every node come to %d at most, got %.6g', most_memory, total)
  end
  -- Beyond what weights come to, bounds say no more: any selection keeps them, or none does.
  local low = memory.low == nil and 0 or number_in(path, 'memory: ', "field 'low'", memory.low)
  local high = memory.high == nil and total or number_in(path, 'memory: ', "field 'high'", memory.high)
  low, high = math.max(0, math.min(low, total + 1)), math.max(-1, math.min(high, total))
  local limit = math.max(high, total - low, 0)
  local slack = nodes + 1 -- of rounding, one a node
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
  for at, used in ipairs { limit - high, limit - (total - low) } do -- what the other bound leaves of the limit
    local filler = #costs + 1
    costs[filler], usages[filler], intervals[filler] = { 0 }, { math.max(0, whole(used)) }, { at - 1, at }
  end
  return usages, whole(limit) + slack
end

local function add_pinned(path, p, literals, costs)
  local node, set = side_of(path, ('pinned %d'):format(p - 1), literals, costs)
  for o = 1, #costs[node] do if not set[o] then costs[node][o] = forbidden end end
end

--- A text in an object that was read.
local function text_in(path, where, part, value)
  if type(value) ~= 'string' then fail(path, '%s%s: expected a text, got %s', where, part, util.describe(value)) end
end

--- A list of texts in an object that was read.
local function texts_in(path, where, part, value, length)
  for i, text in ipairs(list_in(path, where, part, value, length)) do
    if type(text) ~= 'string' then text_in(path, where, ('%s[%d]'):format(part, i - 1), text) end
  end
end

--- How many choices a node has; an error where one of its fields is wrong.
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

---@class trinity.AutoparallelProblem
---@field problem table what trinity.select takes
---@field nodes table[] as they were read
---@field mesh { shape: integer[], dim_names: string[] }
---@field objective? number that AutoParallel states

--- Refuses a name that two nodes have, by which placements are told apart. `linked` ones have it of another node.
local function check_names(path, nodes)
  local owner = {}
  local function take(v, name)
    if owner[name] then
      fail(path, "node %d: name '%s': expected one of its own, node %d has it", v - 1, util.shortened(name),
        owner[name] - 1)
    end
    owner[name] = v
  end
  for v, node in ipairs(nodes) do
    take(v, node.name)
    for _, name in ipairs(node.linked or {}) do take(v, name) end
  end
end

--- The choice problem of such a file; an error names the file and the field.
---@param path string
---@param read table its JSON
---@return trinity.AutoparallelProblem
function autoparallel.problem(path, read)
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

--- The solution as AutoParallel's load_placements reads it; inputs only where the file has them.
---@param read trinity.AutoparallelProblem
---@param solution integer[] choices from 1
function autoparallel.placements(read, solution)
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

return autoparallel
