---@meta _
-- Options that functions of lib/trinity/cluster take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.CudaGraphs 'none'|'attention'|'all'
---@alias trinity.Duplex 'full'|'half'
---@alias trinity.Float8Recipe 'fp8'|'fp8_rowwise'|'mxfp8'|'nvfp4'
---@alias trinity.QueueModel 'sender'|'pair'|'none'|'route'|'fair'|'receiver'
---@alias trinity.SelectiveRecompute 'core_attention'|'operators'

--- A library of collectives (engine/cluster/library.h); defaults are fitted to measurements.
---@class trinity.CollectiveLibrary
---@field call_s? number a call: launching it, and the members meeting (default 8.279e-6; 0 to 1)
---@field pipelining? number part of the steps' latency that chunks pay again (default 0.06081; 0 to 4)
---@field low_latency_hop? number latency of a step in small packets, of that in chunks (default 0.7; 0 to 1)
---@field low_latency_bandwidth? number bandwidth of small packets, of that of chunks; 0: no such packets (default 0.3315; 0 to 1)
---@field copy_bandwidth? number bytes/s at which a device copies the part that a ring brings it last; 0: in no time (default 0; 0 or more)
---@field multicast_bandwidth? number what switches in nodes that add up reach, of what a device sends; 0: they do not (default 0; 0 to 1)
---@field multicast_s? number their latency (default 4.197e-5; 0 to 1)
---@field rails? number maximum number of network cards that the rings of one node use (default 8.31; 1 or more)
---@field in_network? boolean whether switches between nodes add up (default false)
---@field trees? boolean whether it takes trees where they are faster than rings (default true)
---@field shared_bandwidth? number what of a node's inside a group gets that has some of its devices, beside others; 1: all (default 1; above 0, at most 1)

--- Training software; see runtimes.lua.
---@class trinity.Runtime
---@field base? string name of the runtime whose values hold otherwise (default: 'megatron')
---@field source? string where the values come from
---@field fuses_elementwise? boolean element-wise operators that follow each other are one kernel (default: the base's)
---@field joins_products? boolean matmuls of one input are one kernel (default: the base's)
---@field overlap? number how much of the lesser of arithmetic and memory traffic a kernel hides (default: the base's; 0 to 1)
---@field compute_share? number of compute_efficiency (default: the base's; above 0, at most 100)
---@field memory_share? number of memory_efficiency (default: the base's; above 0, at most 100)
---@field attention_share? number of attention (default: the base's; above 0, at most 100)
---@field hopper_attention_share? number of attention once more, on GPUs whose instructions its kernel does not use: Hopper (default: the base's; above 0, at most 100)
---@field launch_share? number of launch_s (default: the base's; above 0, at most 100)
---@field inside_share? number of the bandwidth inside nodes (default: the base's; above 0, at most 100)
---@field network_share? number of the bandwidth between nodes (default: the base's; above 0, at most 100)
---@field async_share? number of the bandwidth inside nodes once more, under AsyncTP: messages overlap parts of matmuls (default: the base's; above 0, at most 100)
---@field dispatch_share? number of host times per kernel (default: the base's; above 0, at most 100)
---@field update_s? number host time per weight of an update of a network of dtype 'float8': it is quantised by itself (default: the base's; 0 to 0.1)
---@field async_tensor? boolean whether AsyncTP is used (default: the base's)
---@field cast_share? number of memory_efficiency, for copies of operands to FP8: more are made than the graph counts (default: the base's; above 0, at most 100)
---@field rowwise_cast_share? number the same where float8 is 'fp8_rowwise' (default: the base's; above 0, at most 100)
---@field routing_speed? number speed of routing, gates and all-to-alls of experts under CUDA graphs of whole iterations (default: the base's; above 0, at most 100)
---@field float8? trinity.Float8Recipe how operands of dtype 'float8' are scaled (default: the kind's)
---@field cuda_graphs? trinity.CudaGraphs kernels of a mixture of experts in CUDA graphs: none, those of attention and router, all (default: the base's)
---@field selective? trinity.SelectiveRecompute what recompute = 'selective' repeats: core attention, or all but attention and every second matmul (default: the base's)

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
