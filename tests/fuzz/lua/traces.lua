-- Steps that PyTorch's profiler traced: an input that says rf_id is an execution trace, any other Kineto's.

local core = require 'trinity.core'
local trinity = require 'trinity'
local frame = require 'frame'

local traces = core.home .. '/tests/data/traces/'
local traced -- the graph of a traced step

return {
  seeds = { core.read_file(traces .. 'unet.kineto.json'), core.read_file(traces .. 'unet.et.json') },
  run = function(text)
    local execution = text:find('rf_id', 1, true)
    traced = traced or trinity.model(traces .. 'unet.pt2')
    local file = frame.file('input.json', text)
    local ok, step = frame.try(trinity.profile.trace, traced, {
      kineto = execution and traces .. 'unet.kineto.json' or file, execution_trace = execution and file or nil })
    if not ok then return end
    local attributed = step.attributed
    if not (attributed >= 0 and attributed <= 1.000001) then frame.finding('attributed %.17g', attributed) end
  end,
}
