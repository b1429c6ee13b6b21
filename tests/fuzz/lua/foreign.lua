-- What other programs write for theirs: PyTorch's exported programs, steps that its profiler traced, AutoParallel's
-- problems. An input that begins like an archive is the first, one that says traceEvents or rf_id the second, any
-- other the third.

local core = require 'trinity.core'
local trinity = require 'trinity'
local frame = require 'frame'

local problem = [==[{"mesh":{"shape":[2],"dim_names":["dp"]},"nodes":[{"name":"a","op":"a","choices":["R","S(0)"]},
{"name":"b","op":"mm","choices":["R","S(0)"]}],"tables":[{"node":0,"argument":0,"from":null,"compute":[1,2],
"comm":[[0],[0]],"transition":[[0],[0]]},{"node":1,"argument":0,"from":0,"compute":[3,1],"comm":[[0,null],[2,0]],
"transition":[[0,1],[1,0]]}],"equal":[[[[0,0]],[[1,0]]]],"pinned":[[[1,0],[1,1]]],
"memory":{"low":0.5,"high":1,"weights":[[0,0,1],[0,1,0.5]]},"objective":4}]==]

local function exported(text)
  local ok, graph = frame.try(trinity.model, frame.file('input.pt2', text), { training = false })
  if not ok then return end
  if not (graph.flops >= 0) then frame.finding('FLOP %.17g', graph.flops) end
  graph:close()
end

local function autoparallel(text)
  local ok, result = frame.try(trinity.select, frame.file('input.json', text), { seconds = 0.2, quiet = true })
  if ok and result.feasible and result.bound > result.cost + 1e-6 * math.abs(result.cost) then
    frame.finding('bound %.17g above cost %.17g', result.bound, result.cost)
  end
end

local traces = core.home .. '/tests/data/traces/'
local traced -- the graph of a traced step

local function trace(text, execution)
  traced = traced or trinity.model(traces .. 'unet.pt2')
  local file = frame.file('input.json', text)
  local ok, step = frame.try(trinity.profile.trace, traced, {
    kineto = execution and traces .. 'unet.kineto.json' or file, execution_trace = execution and file or nil })
  if not ok then return end
  local attributed = step.attributed
  if not (attributed >= 0 and attributed <= 1.000001) then frame.finding('attributed %.17g', attributed) end
end

return {
  seeds = { core.read_file(core.home .. '/tests/data/exported/lstm.pt2'), problem,
    core.read_file(traces .. 'unet.kineto.json'), core.read_file(traces .. 'unet.et.json') },
  run = function(text)
    if text:sub(1, 2) == 'PK' then return exported(text) end
    if text:find('traceEvents', 1, true) then return trace(text, false) end
    if text:find('rf_id', 1, true) then return trace(text, true) end
    autoparallel(text)
  end,
}
