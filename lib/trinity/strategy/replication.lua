-- The replication fields of a strategy's file. lib/trinity/dist/replication_file.lua reads them.

local util = require 'trinity.base.util'

--- Returns { kind =, replicas =, options = } for a result of trinity.synchronisation.replicate.
return function(run)
  local way, options = run.synchronisation, {}
  for key, value in util.sorted_pairs(way.kind == 'daso' and way.options or way) do
    if key ~= 'kind' and key ~= 'text' then options[key] = value end
  end
  return { kind = way.kind, replicas = run.replicas, options = options }
end
