-- Moves among which a rank function chooses, with what it is told of each (engine/search/placement/move_features.h).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local names = core.move_features()
local column, width = {}, #names
for i, name in ipairs(names) do column[name] = i end

--- Moves among which a rank function chooses; numbers are those of rankers.features.
---@class trinity.MoveCandidates
---@since 0.1.0
---@field count integer
---@field features trinity.DoubleArray count x #trinity.rankers.features numbers, a row a move
---@field device_of trinity.Int32Array of every unit now
local Candidates = { __name = 'candidates' }
Candidates.__index = Candidates

--- Feature `name` of move i.
---@param i integer
---@param name string
---@return number
function Candidates:get(i, name)
  check.integer('candidates:get', 1, 'i', i, 1, self.count)
  local at = column[name]
  if not at then
    check.refuse('candidates:get', 2, 'name', 'unknown feature %s', util.unknown(tostring(name), names))
  end
  return self.features[(i - 1) * width + at]
end

--- The units of move i, whatever their device is now, its device, and its kind: what features of one's own are made of.
---@param i integer
---@return integer[] units
---@return integer device
---@return 'unit'|'cluster'|'chain'|'range'|'group' kind
function Candidates:move(i)
  check.integer('candidates:move', 1, 'i', i, 1, self.count)
  return self.handle:candidate(i)
end

check.methods(Candidates, 'trinity.MoveCandidates')

return { class = Candidates, names = names }
