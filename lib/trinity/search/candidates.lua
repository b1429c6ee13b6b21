-- Candidate moves for a rank function, with their features (engine/search/placement/move_features.h).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local names = core.move_features()
local column, width = {}, #names
for i, name in ipairs(names) do column[name] = i end

--- Candidate moves for a rank function, with the features in rankers.features.
---@class trinity.MoveCandidates
---@field count integer
---@field features trinity.DoubleArray [count, #trinity.search.rankers.features], one row per move
---@field device_of trinity.Int32Array current device of every unit
local Candidates = { __name = 'candidates' }
Candidates.__index = Candidates

--- Returns feature `name` of move i (from 1). Raises an error for an unknown feature. Example: `candidates:get(1,
--- 'transfer_blame')`
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

--- Returns the units of move i, its destination device and its kind, for custom features. Example: `local units,
--- device, kind = candidates:move(1)`
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
