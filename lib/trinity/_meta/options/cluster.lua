---@meta _
-- Options that functions of lib/trinity/cluster take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.Duplex 'full'|'half'
---@alias trinity.QueueModel 'sender'|'pair'|'none'|'route'|'fair'|'receiver'

--- What topology:devices takes.
---@class trinity.TopologyDevices
---@field name? string what stands before the number in their names (default 'gpu')
---@field speed? number times the type's (default 1; above 0)

--- What topology.new takes.
---@class trinity.TopologyOptions
---@field name? string of the cluster
---@field queue? trinity.QueueModel what transfers contend for (default 'sender')

--- What a link is made of, without its ends.
---@class trinity.Wire
---@field bandwidth_bytes_per_s? number a direction, or of both together when half duplex (above 0)
---@field latency_s? number of a transfer (default 0; 0 or more)
---@field duplex? trinity.Duplex whether both directions go at once (default 'full')
