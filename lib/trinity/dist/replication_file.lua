-- Reads the replication of a strategy's file: { kind =, replicas =, options = }.

local core = require 'trinity.core'
local synchronisation = require 'trinity.dist.synchronisation'
local util = require 'trinity.base.util'

local kinds = { bsp = true, parameter_server = true, local_sgd = true, daso = true }

local replication_file = {}

--- Returns the replication of a placement, from the file at `path`.
function replication_file.read(problem, placement, path, said)
  local ok, result = pcall(function()
    if not kinds[said.kind] then
      util.fail("replication: unknown kind %s%s", util.quoted(tostring(said.kind)),
        core.suggestion(tostring(said.kind), util.sorted_keys(kinds)))
    end
    return synchronisation.replicate { graph = problem.graph, cluster = problem.cluster, placement = placement,
      synchronisation = synchronisation[said.kind](said.options), replicas = said.replicas }
  end)
  if not ok then util.fail('%s: %s', path, util.unplaced(result)) end
  return result
end

return replication_file
