-- What a strategy's file says of its replication: the reverse is lib/trinity/dist/replication_file.lua.

local util = require 'trinity.base.util'

--- { kind =, replicas =, options = } of what trinity.synchronisation.replicate gave.
return function(run)
  local way, options = run.synchronisation, {}
  for key, value in util.sorted_pairs(way.kind == 'daso' and way.options or way) do
    if key ~= 'kind' and key ~= 'text' then options[key] = value end
  end
  return { kind = way.kind, replicas = run.replicas, options = options }
end
