-- A small training problem that several targets share.

local core = require 'trinity.core'
local trinity = require 'trinity'
local graphs = dofile(core.home .. '/tests/lua/support/graphs.lua')

local small = {}

--- Two branches a block.
function small.graph(blocks) return graphs.branches(blocks, 8, 4, 8) end

function small.problem(blocks)
  return trinity.problem { graph = small.graph(blocks), cluster = trinity.cluster 'p100x2' }
end

return small
