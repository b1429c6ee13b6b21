-- Chakra's execution traces: the file of rank 0, with or without the file of rank 1; an input that begins with a brace
-- is groups.json, of two good traces. What can be read can be simulated.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'
local frame = require 'frame'
local wire = require 'trinity.formats.wire'

local own = json.read(core.home .. '/tests/data/clients/chakra_own.json').traces

local function text_of(name)
  return (own[name].hex:gsub('%x%x', function(digits) return string.char(tonumber(digits, 16)) end))
end

local function attribute(name, field, value)
  return wire.bytes(10, wire.text(1, name) .. (type(value) == 'string' and wire.bytes(field, value)
    or wire.chosen_integer(field, value)))
end

local head = wire.record(wire.text(1, '1.0.0'))
local ends = attribute('comm_src', 7, 0) .. attribute('comm_dst', 7, 1) .. attribute('comm_size', 9, 64)
  .. attribute('comm_tag', 7, 1)
local sum = attribute('comm_type', 9, 0) .. attribute('comm_size', 9, 64) .. attribute('pg_name', 29, '1')

local function node(id, kind, more) return wire.record(wire.integer(1, id) .. wire.integer(3, kind) .. more) end

-- Rank 0 computes and sends, rank 1 receives; then both add something up.
local sends = head .. node(0, 4, wire.integer(7, 5) .. attribute('num_ops', 9, 100))
  .. node(1, 5, wire.packed(5, { 0 }) .. ends) .. node(2, 7, wire.packed(5, { 0, 1 }) .. sum)
local receives = head .. node(0, 6, ends) .. node(1, 7, wire.packed(5, { 0 }) .. sum)

local cluster

local function simulate(graph)
  cluster = cluster or trinity.cluster 'p100x2'
  if graph.operators > 2000 then return end
  local problem = trinity.problem { graph = graph, cluster = cluster }
  local ok, metrics = frame.try(problem.evaluate, problem, problem:placement_by_unit(function(_, op)
    return graph:operator(op).attributes.rank % 2 + 1
  end))
  if ok and not (metrics.step_time_s >= 0) then frame.finding('a step of %.17g s', metrics.step_time_s) end
  problem:close()
end

return {
  seeds = { sends, '{"1": [0, 1], "2": [1]}', text_of 'one_metadata_node_all_types.0.et', text_of 'ALL_GATHER.0.et',
    text_of 'two_comp_nodes_dependent.0.et', text_of 'BARRIER.0.et' },
  run = function(text)
    local groups = text:sub(1, 1) == '{'
    frame.file('groups.json', groups and text or '{ "1": [0, 1] }')
    local path = frame.file('input.0.et', groups and sends or text)
    local other = path:gsub('0%.et$', '1.et')
    if groups or #text % 2 == #sends % 2 then frame.file('input.1.et', receives) else os.remove(other) end
    local ok, graph = frame.try(trinity.model, path, { training = true })
    if not ok then return end
    simulate(graph)
    graph:close()
  end,
}
