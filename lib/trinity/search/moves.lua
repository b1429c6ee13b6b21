-- Moves of a placement and what its step looks like, for searches and rankers of a script
-- (engine/search/placement/moves.h, step_state.h): problem:moves(), problem:step_state(), problem:operator_times().

local array = require 'trinity.base.array'
local move_candidates = require 'trinity.search.candidates'
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local printed = require 'trinity.base.printed'
local util = require 'trinity.base.util'

local width = #move_candidates.names

local moves_options = options_of.declare('trinity.MovesOptions', { help = 'What problem:moves takes.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of what is drawn' },
  { 'evenly_one_in', 'integer', 2, least = 1, most = 1e6,
    help = 'one seed in so many is drawn evenly, others by how long they hold up the step' },
  { 'groups', 'boolean', false, help = 'one move in eight takes a group of units of any level' },
  { 'memory_share', 'number', 0, least = 0, most = 1, help = 'feature of that name' },
})

--- Draws changes of placements as annealing does: a set of units around a seed goes to another device.
---@class trinity.Moves
---@since 0.1.0
---@field problem trinity.Problem
local Moves = { __name = 'moves' }
Moves.__index = Moves

--- Simulates a placement: seeds are drawn by what holds up its step from then on, and features are beside it.
---@param placement trinity.Placement
function Moves:look(placement)
  self.handle:look(array.placement('moves:look', 1, 'placement', placement, self.problem.graph))
  self.description.looked = true
end

--- Moves that were drawn, the last ones of their source: features as rankers have them (candidates:get), and what they
--- change.
---@class trinity.DrawnMoves: trinity.MoveCandidates
---@since 0.1.0
local Drawn = { __name = 'candidates', get = move_candidates.class.get }
Drawn.__index = Drawn

local function fresh(self, method)
  local source, number = unpack(self.description)
  if number ~= source.description.number then
    util.fail('candidates:%s: moves:draw() was called since; only its last moves can be applied', method)
  end
  return source.handle
end

--- The units of move i, whatever their device was, its device, and its kind.
---@param i integer
---@return integer[] units
---@return integer device
---@return 'unit'|'cluster'|'chain'|'range'|'group' kind
function Drawn:move(i)
  check.integer('candidates:move', 1, 'i', i, 1, self.count)
  return fresh(self, 'move'):move(i)
end

--- Makes move i: changes a placement, which is that of draw() or another.
---@param i integer
---@param placement trinity.Placement
function Drawn:apply(i, placement)
  check.integer('candidates:apply', 1, 'i', i, 1, self.count)
  fresh(self, 'apply'):apply(i, placement)
end

check.methods(Drawn, 'trinity.DrawnMoves')

--- Draws at most `count` moves of a placement, which is near that of look(): different ones, each of which changes
--- something. Looks at it where nothing was looked at. temperature: feature of that name, a share of the step.
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

--- Frees the engine's memory; any further use is an error.
function Moves:close() check.closing('moves:close', self, 'moves').handle:close() end

check.methods(Moves, 'trinity.Moves')

--- What a step looks like to somebody who wants to shorten it, first in, first out. Blame is time along the critical
--- path: running, waiting for the device, running while one there waited, between it and another.
---@class trinity.StepState
---@field step_time_s number
---@field computation_blame_s trinity.DoubleArray per unit
---@field held_blame_s trinity.DoubleArray per unit
---@field queue_blame_s trinity.DoubleArray per unit
---@field transfer_blame_s trinity.DoubleArray per unit
---@field wait_s trinity.DoubleArray per unit: from when its operators were ready to their start, summed
---@field slack_s trinity.DoubleArray per unit: the least by which an operator may end later, all else as it ran
---@field tight_s trinity.DoubleArray per unit: time of its operators with a slack under 1 % of the step
---@field peak_bytes trinity.DoubleArray per unit: held when its device's memory is at its peak, copies elsewhere aside
---@field operator_slack_s trinity.DoubleArray per operator
---@field collision_s trinity.DoubleArray per unit and device: its time there x the share in which others run there
---@field crowd_s trinity.DoubleArray the same from when its operators are ready to when they must have ended
---@field busy_s trinity.DoubleArray per device
---@field memory_bytes trinity.DoubleArray per device: its peak
---@field room_s trinity.DoubleArray per edge of graph:unit_edges(): what a transfer may take unseen
---@field critical_s trinity.DoubleArray per edge: of its transfers on the critical path, queueing included

local by_unit = { 'computation_blame_s', 'held_blame_s', 'queue_blame_s', 'transfer_blame_s', 'wait_s', 'slack_s',
  'tight_s', 'peak_bytes' }

local state_of = printed.as('step state', { 'step_time_s' })
local moves = {}

--- A source of moves of a problem.
function moves.new(problem, options)
  options = moves_options:read('problem:moves', 1, 'options', options)
  if #problem.cluster.devices < 2 then
    util.fail('problem:moves: expected a cluster of two devices or more, got %d', #problem.cluster.devices)
  end
  return setmetatable({ problem = problem, description = { number = 0 },
    handle = core.moves(problem.handle, options) }, Moves)
end

--- The state of a placement's step.
function moves.state(problem, placement)
  placement = array.placement('problem:step_state', 1, 'placement', placement, problem.graph)
  local handle = core.step_state(problem.handle, placement)
  local step_time_s, edges = handle:counts()
  local units, devices = problem.graph.units, #problem.cluster.devices
  local state = state_of { step_time_s = step_time_s }
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

--- Times of all operators on a device.
function moves.operator_times(problem, device)
  check.integer('problem:operator_times', 1, 'device', device, 1, #problem.cluster.devices)
  local times_s = array.double(problem.graph.operators)
  problem.handle:operator_times(device, times_s)
  return times_s
end

--- The task graph of a problem.
moves.task_graph = require 'trinity.search.task_graph'

return moves
