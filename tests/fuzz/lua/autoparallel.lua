-- AutoParallel's integer programs in the study `select`: a bound is never above a cost.

local core = require 'trinity.core'
local frame = require 'frame'

package.path = core.home .. '/scripts/?.lua;' .. package.path
local autoparallel = require 'studies.select.autoparallel'

local problem = [==[{"mesh":{"shape":[2],"dim_names":["dp"]},"nodes":[{"name":"a","op":"a","choices":["R","S(0)"]},
{"name":"b","op":"mm","choices":["R","S(0)"]}],"tables":[{"node":0,"argument":0,"from":null,"compute":[1,2],
"comm":[[0],[0]],"transition":[[0],[0]]},{"node":1,"argument":0,"from":0,"compute":[3,1],"comm":[[0,null],[2,0]],
"transition":[[0,1],[1,0]]}],"equal":[[[[0,0]],[[1,0]]]],"pinned":[[[1,0],[1,1]]],
"memory":{"low":0.5,"high":1,"weights":[[0,0,1],[0,1,0.5]]},"objective":4}]==]

return {
  seeds = { problem },
  run = function(text)
    local ok, result = frame.try(autoparallel.select, frame.file('input.json', text), { seconds = 0.2, quiet = true })
    if ok and result.feasible and result.bound > result.cost + 1e-6 * math.abs(result.cost) then
      frame.finding('bound %.17g above cost %.17g', result.bound, result.cost)
    end
  end,
}
