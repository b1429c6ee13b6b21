-- Moves of a placement and the state of its step, for searches and rankers of a script
-- (engine/search/placement/moves.h, step_state.h): problem:moves(), problem:step_state(), problem:operator_times().

local array = require 'trinity.base.array'
local move_candidates = require 'trinity.search.candidates'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local util = require 'trinity.base.util'

local width = #move_candidates.names

local moves_options = options_of.declare('trinity.MovesOptions', { help = 'Options of problem:moves.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'random seed' },
  { 'evenly_one_in', 'integer', 2, least = 1, most = 1e6,
    help = 'one pivot unit in this many is sampled uniformly, the others by their critical-path time' },
  { 'groups', 'boolean', false, help = 'one move in eight moves a group of units of any level' },
  { 'memory_share', 'number', 0, least = 0, most = 1, help = "feature memory_share: the reward's memory weight" },
})

--- Samples moves of placements as in annealing: a set of units around a pivot unit goes to another device.
---@class trinity.Moves
---@field problem trinity.Problem
local Moves = { __name = 'moves' }
Moves.__index = Moves

--- Simulates a placement and analyses its critical path. From then on, pivot units are sampled and features computed by
--- this analysis. Example: `moves:look(problem:placement())`
---@param placement trinity.Placement
function Moves:look(placement)
  self.handle:look(array.placement('moves:look', 1, 'placement', placement, self.problem.graph))
  self.description.looked = true
end

--- The last sampled moves of a source: their features for rankers (candidates:get), and their changes.
---@class trinity.DrawnMoves: trinity.MoveCandidates
local Drawn = { __name = 'candidates', get = move_candidates.class.get }
Drawn.__index = Drawn

local function fresh(self, method)
  local source, number = unpack(self.description)
  if number ~= source.description.number then
    util.fail('candidates:%s: expected the moves of the last moves:draw(), got older ones', method)
  end
  return source.handle
end

--- Returns the units of move i, its destination device and its kind. Example: `local units, device =
--- moves:draw(placement):move(1)`
---@param i integer
---@return integer[] units
---@return integer device
---@return 'unit'|'cluster'|'chain'|'range'|'group' kind
function Drawn:move(i)
  check.integer('candidates:move', 1, 'i', i, 1, self.count)
  return fresh(self, 'move'):move(i)
end

--- Applies move i to a placement. Example: `moves:draw(placement):apply(1, placement)`
---@param i integer
---@param placement trinity.Placement
function Drawn:apply(i, placement)
  check.integer('candidates:apply', 1, 'i', i, 1, self.count)
  fresh(self, 'apply'):apply(i, placement)
end

check.methods(Drawn, 'trinity.DrawnMoves')

--- Samples at most `count` different moves of a placement, which should be similar to the placement of look(). Each
--- move changes the placement. Calls look() if it was never called. temperature: feature of that name, relative to the
--- step time. Example: `moves:draw(problem:placement(), 8)`
---@param placement trinity.Placement
---@param count? integer default 16
---@param temperature? number default 0
---@return trinity.DrawnMoves
function Moves:draw(placement, count, temperature)
  placement = array.placement('moves:draw', 1, 'placement', placement, self.problem.graph)
  if not array.is_int32(placement) then check.wrong('moves:draw', 1, 'placement', placement, 'a placement') end
  count = count == nil and 16 or check.integer('moves:draw', 2, 'count', count, 1, 2 ^ 20)
  temperature = temperature == nil and 0 or check.number('moves:draw', 3, 'temperature', temperature, 0, 1e12)
  if not self.description.looked then self:look(placement) end
  local features, device_of = array.double(count * width), array.int32(self.problem.graph.units)
  self.description.number = self.description.number + 1
  return setmetatable({ count = self.handle:draw(placement, count, temperature, features, device_of),
    features = features, device_of = device_of, description = { self, self.description.number } }, Drawn)
end

--- Frees the engine's memory. Any later use is an error. Example: `moves:close()`
function Moves:close() check.closing('moves:close', self, 'moves').handle:close() end

check.methods(Moves, 'trinity.Moves')

--- The state of a step with schedule fifo. Blame is critical-path time attributed to a unit: computing, waiting for its
--- device, computing while another operator waited for the device, or transfers to other units.
---@class trinity.StepState
---@field step_time_s number
---@field computation_blame_s trinity.DoubleArray per unit
---@field held_blame_s trinity.DoubleArray per unit
---@field queue_blame_s trinity.DoubleArray per unit
---@field transfer_blame_s trinity.DoubleArray per unit
---@field wait_s trinity.DoubleArray per unit: time from ready to start, summed over its operators
---@field slack_s trinity.DoubleArray per unit: minimum slack of its operators
---@field tight_s trinity.DoubleArray per unit: time of its operators with a slack below 1 % of the step
---@field peak_bytes trinity.DoubleArray per unit: memory at its device's peak, without copies on other devices
---@field operator_slack_s trinity.DoubleArray per operator
---@field collision_s trinity.DoubleArray per unit and device: its time there while other operators run there
---@field crowd_s trinity.DoubleArray same, between the times when its operators are ready and when they must end
---@field busy_s trinity.DoubleArray per device
---@field memory_bytes trinity.DoubleArray per device: peak memory
---@field room_s trinity.DoubleArray per edge of graph:unit_edges(): its slack, which a transfer may use
---@field critical_s trinity.DoubleArray per edge: time of its transfers on the critical path, including queueing

local by_unit = { 'computation_blame_s', 'held_blame_s', 'queue_blame_s', 'transfer_blame_s', 'wait_s', 'slack_s',
  'tight_s', 'peak_bytes' }

local moves = {}

--- Makes a source of moves for a problem.
function moves.new(problem, options)
  options = moves_options:read('problem:moves', 1, 'options', options)
  if #problem.cluster.devices < 2 then
    util.fail('problem:moves: expected a cluster with at least two devices, got %d', #problem.cluster.devices)
  end
  return setmetatable({ problem = problem, description = { number = 0 },
    handle = core.moves(problem.handle, options) }, Moves)
end

--- Returns the state of a placement's step.
function moves.state(problem, placement)
  placement = array.placement('problem:step_state', 1, 'placement', placement, problem.graph)
  local handle = core.step_state(problem.handle, placement)
  local step_time_s, edges = handle:counts()
  local units, devices = problem.graph.units, #problem.cluster.devices
  local state = { step_time_s = step_time_s }
  local function add(name, length)
    state[name] = array.double(length)
    handle:values(name, state[name])
  end
  for _, name in ipairs(by_unit) do add(name, units) end
  for _, name in ipairs { 'collision_s', 'crowd_s' } do add(name, units * devices) end
  for _, name in ipairs { 'busy_s', 'memory_bytes' } do add(name, devices) end
  for _, name in ipairs { 'room_s', 'critical_s' } do add(name, edges) end
  add('operator_slack_s', problem.graph.operators)
  handle:close()
  return state
end

--- Returns the times of all operators on a device.
function moves.operator_times(problem, device)
  check.integer('problem:operator_times', 1, 'device', device, 1, #problem.cluster.devices)
  local times_s = array.double(problem.graph.operators)
  problem.handle:operator_times(device, times_s)
  return times_s
end

--- The task graph of a problem.
moves.task_graph = require 'trinity.search.task_graph'

return moves
