-- Programs that PyTorch exported (.pt2).

local core = require 'trinity.core'
local trinity = require 'trinity'
local frame = require 'frame'

return {
  seeds = { core.read_file(core.home .. '/tests/data/exported/lstm.pt2') },
  run = function(text)
    local ok, graph = frame.try(trinity.model, frame.file('input.pt2', text), { training = false })
    if not ok then return end
    if not (graph.flops >= 0) then frame.finding('FLOP %.17g', graph.flops) end
    graph:close()
  end,
}
