-- Graphs of Doppler (compute_graph/*.txt), each a whole step. Lines: the number of nodes, inputs included; a list whose
-- length is the number of inputs, which are no operators; the sources of all edges; their targets; one line
-- `compute,communication` per operator, in nanoseconds of Doppler's simulator. Lists are runs of digits.
--
-- Operators are called '0', '1', .... Each writes `communication` bytes, so that a link of one byte per nanosecond
-- takes that time, and again for every repetition of an edge. Attribute `file_position` counts operators from 1;
-- `input_positions` are the numbers, from 1, of the edges that an operator reads: the order that the simulation rules
-- follow (engine/simulator/published_engines.cpp).

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local doppler = { format = 'Doppler graph', whole_step = true }

local most_operators = 2 ^ 24
local most = 999999999999999 -- below 1e6 s, the simulator's limit per operator

local function fail(message, ...) error(message:format(...), 0) end

--- Returns whether the first line of a text that is not blank is a number, and the text thus no profile.
function doppler.is(text)
  local line = text:match '^%s*([^\n]*)'
  return line ~= '' and not line:find '[^%d \t\r]'
end

local function number(text, what, high)
  local digits = text:match '^%s*(%d+)%s*$'
  if not digits then fail("%s: expected a whole number, got '%s'", what, util.shortened(text:gsub('^%s+', ''), 40)) end
  if tonumber(digits) > high then fail('%s: expected at most %d, got %s', what, high, util.shortened(digits, 40)) end
  return tonumber(digits)
end

local function numbers(line, what)
  local wrong = line:find '[^%d, \t\r]'
  if wrong then fail("%s: expected numbers with commas, got '%s'", what, util.shortened(line:sub(wrong), 40)) end
  local list = {}
  for digits in line:gmatch '%d+' do list[#list + 1] = number(digits, what, most_operators) end
  return list
end

local function check_nodes(nodes, what, count)
  for e, node in ipairs(nodes) do
    if node >= count then fail('%s of edge %d: expected a node from 0 to %d, got %d', what, e, count - 1, node) end
  end
end

-- Returns the sources and targets of all edges, and { time_s =, bytes = } for every operator.
local function read_lines(text, place)
  local next_line = (text:find '[^\n]$' and text .. '\n' or text):gmatch '([^\n]*)\n'
  place.line = 0
  local function line_of(what)
    place.line = place.line + 1
    return next_line() or fail('expected %s, got the end of the file', what)
  end
  local line
  repeat line = line_of 'the number of nodes' until line:find '%S'
  local nodes, first = number(line, 'number of nodes', most_operators), place.line
  if nodes < 1 then fail 'number of nodes: expected at least 1, got 0' end
  local inputs = numbers(line_of 'a list of ids of input nodes', 'ids of input nodes')
  if #inputs >= nodes then
    fail('expected fewer input nodes than the %d nodes of line %d, got %d', nodes, first, #inputs)
  end
  local count = nodes - #inputs
  local sources = numbers(line_of 'a list of sources of edges', 'sources of edges')
  check_nodes(sources, 'source', count)
  local targets = numbers(line_of 'a list of targets of edges', 'targets of edges')
  check_nodes(targets, 'target', count)
  if #sources ~= #targets then fail('expected %d targets, one for each source, got %d', #sources, #targets) end
  local operators, edges_line = {}, place.line
  for i = 1, count do
    line = line_of(("line %d of %d with 'compute,communication'"):format(i, count))
    local compute, communication = line:match '^([^,]*),(.*)$'
    if not compute then
      fail("operator %d: expected 'compute,communication', got '%s'", i - 1, util.shortened(line, 40))
    end
    operators[i] = { time_s = number(compute, 'compute', most) * 1e-9,
      bytes = number(communication, 'communication', most) }
  end
  for rest in next_line do
    place.line = place.line + 1
    if rest:find '%S' then
      fail("expected the end of the file after %d lines of operators, got '%s'", count, util.shortened(rest, 40))
    end
  end
  place.line = edges_line
  return sources, targets, operators
end

function doppler.read(text, name, place)
  local sources, targets, operators = read_lines(text, place)
  for e, source in ipairs(sources) do
    if source == targets[e] then fail('edge %d goes from node %d to itself', e, source) end
    local reader = operators[targets[e] + 1]
    reader.positions = reader.positions or {}
    table.insert(reader.positions, e)
  end
  local builder = core.graph_builder(name)
  for i, op in ipairs(operators) do
    op.outputs = { builder:add_operator { name = tostring(i - 1), type = 'Operator', measured_time_s = op.time_s,
      flops = 0, outputs = { { bytes = op.bytes } },
      attributes = { file_position = i, input_positions = op.positions } } }
    op.read_by = {} -- [reader]: how many of the outputs it reads
  end
  for e, target in ipairs(targets) do
    local op, reader = operators[sources[e] + 1], tostring(target)
    local repetition = (op.read_by[target] or 0) + 1
    op.read_by[target] = repetition
    if op.outputs[repetition] then
      builder:add_edge(op.outputs[repetition], reader)
    else
      op.outputs[repetition] = builder:add_edge(tostring(sources[e]), reader, op.bytes)
    end
  end
  place.line = nil
  return builder:build()
end

return doppler
