---@meta _
-- The objects of trinity, and tables that its functions take or give. Unknown names in those that they take are refused.
-- See trinity.lua.
error 'this file is for editors'

--- Why a strategy does not fit. One whose schedule contradicts its placement has `text` alone.
---@class trinity.Infeasibility
---@field text string it in words
---@field device? integer the device that is over by most
---@field name? string its name
---@field needed_bytes? number its peak in a step
---@field capacity_bytes? number what a step may use
---@field over_bytes? number the difference
---@field devices_over? integer how many devices are over

--- The metrics of a simulated step. Read-only; an unknown field is an error.
---@class trinity.Metrics
---@field step_time_s number seconds of the step; of a rejected plan the limit plus 1 ns
---@field peak_memory_bytes number largest peak of a device
---@field peak_communication_bytes number largest sum of bytes sent and received by a device
---@field total_communication_bytes number bytes sent by all devices together
---@field excess_memory_bytes number largest excess of a device over its capacity, 0 where all fits
---@field transfers number copies between two devices; collectives are not counted
---@field samples number that the step trains on: the graph's batch x micro-batches x replicas of a mesh; 0: not known
---@field samples_per_s number
---@field feasible boolean whether it fits into memory, and was not rejected
---@field rejected boolean whether it was given up as slower than reject_above_s
---@field device_count integer
---@field compute_busy_s fun(self: trinity.Metrics, d: integer): number Seconds in which the device runs operators. Example: `metrics:compute_busy_s(1)`
---@field send_busy_s fun(self: trinity.Metrics, d: integer): number Seconds of the device's outgoing transfers and collectives, summed. Example: `metrics:send_busy_s(1)`
---@field memory_bytes fun(self: trinity.Metrics, d: integer): number Peak memory of the device in bytes. Example: `metrics:memory_bytes(1)`
---@field sent_bytes fun(self: trinity.Metrics, d: integer): number Example: `metrics:sent_bytes(1)`
---@field received_bytes fun(self: trinity.Metrics, d: integer): number Example: `metrics:received_bytes(1)`
---@field totable fun(self: trinity.Metrics): table<string, any> All fields by name, values per device as lists; pairs(metrics) goes through them in sorted order. Example: `metrics:totable().step_time_s`

---@class trinity.RandomStream
---@field uniform fun(self: trinity.RandomStream): number A number from 0 to below 1. Example: `stream:uniform()`
---@field normal fun(self: trinity.RandomStream): number A number of mean 0 and variance 1. Example: `stream:normal()`
---@field integer fun(self: trinity.RandomStream, bound: integer): integer An integer from 1 to `bound`. Example: `stream:integer(6)`
---@field close fun(self: trinity.RandomStream) Example: `stream:close()`

--- The device, from 1, of every operator.
---@class trinity.Placement
---@field [integer] integer
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.Placement): integer[] Example: `problem:placement():totable()[1]`
---@field each fun(self: trinity.Placement) for i, value in a:each() do ... end Example: `for operator, device in problem:placement():each() do print(operator, device) end`

---@class trinity.DoubleArray
---@field [integer] number
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.DoubleArray): number[] Example: `timeline.start_s:totable()[1]`
---@field each fun(self: trinity.DoubleArray) Example: `for task, start_s in timeline.start_s:each() do print(task, start_s) end`

--- A read-only array of the engine.
---@class trinity.Int32View
---@field [integer] integer
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.Int32View): integer[] Example: `graph.depth:totable()[1]`
---@field each fun(self: trinity.Int32View) Example: `for operator, depth in graph.depth:each() do print(operator, depth) end`

---@alias trinity.ScheduleName 'fifo'|'lifo'|'critical_path'|'priority'|'order'|'gpipe'|'1f1b'|'interleaved'|'zb-h1'|'zb-h2'|'zb-interleaved'|'zb-v'|'dualpipe-v'|'pipedream'
---@alias trinity.MemoryModel 'slots'|'none'
---@alias trinity.RulesName 'standard'|'compat'|'placeto'|'doppler'
---@alias trinity.CostFunction fun(op: trinity.Operator, device: { name: string, type: string, speed: number }, default_s: number): number?
---@alias trinity.WireName 'ethernet_100g'|'ethernet_10g'|'ethernet_1g'|'ethernet_25g'|'infiniband_edr'|'infiniband_hdr'|'infiniband_ndr'|'infiniband_xdr'|'infinity_fabric'|'nvlink1'|'nvlink2'|'nvlink3'|'nvlink3_bridge'|'nvlink4'|'nvswitch3'|'nvswitch4'|'nvswitch5'|'pcie3_x16'|'pcie3_x16_inner'|'pcie3_x16_root'|'pcie4_x16'|'pcie4_x16_inner'|'pcie5_x16'|'pcie5_x16_inner'|'pcie6_x16'|'pcie6_x16_inner'|'qpi'|'upi'|'upi2'|'xgmi_mi200'|'xgmi_mi300'
---@alias trinity.CollectiveKind 'all_reduce'|'reduce_scatter'|'all_gather'|'broadcast'|'all_to_all'

---@alias trinity.Plan trinity.Placement|integer[]|trinity.Strategy|trinity.PlanSpec|trinity.MeshStrategy
--- `strategy` is what the metrics are of, and may be kept; it is made for rewards that declare it.
---@alias trinity.Reward fun(metrics: trinity.Metrics, strategy: trinity.Strategy): number
---@alias trinity.Splits table<string, table> by operator: { b = 8, n = 2, copies = 1, devices = { 1, 2, ... } }, factors by dimension; what is left out is 1, or all devices
---@alias trinity.Method fun(problem: trinity.Problem, options?: table<string, any>): trinity.Strategy|trinity.Placement|integer[]

--- A placement with what says how it is scheduled.
---@class trinity.PlanSpec
---@field placement trinity.Placement|integer[] a list: the device of every operator
---@field schedule? trinity.ScheduleName default 'fifo'
---@field micro_batches? integer forward and backward run this often, update once (default 1)
---@field priority? number[]|trinity.DoubleArray for 'priority': per operator, the larger first
---@field order? (integer[]|trinity.Placement)[] for 'order': per device, tasks in turn
---@field tasks? string[] for 'order' with `stage`: the tasks of every place on the pipeline, as '0F0,0F1,0B0,0B1'
---@field stage? integer[]|trinity.Placement for pipelines: per operator, from 1 (default: one a device)
---@field splits? trinity.Splits parts of operators; without priority and order

--- Deviations from the cluster's rules.
---@class trinity.Rules
---@field queue? trinity.QueueModel what transfers contend for
---@field memory? trinity.MemoryModel how memory is accounted (default 'slots')
---@field device_pause_s? number a device's pause after an operator
---@field link_pause_s? number a queue's pause after a transfer

---@class trinity.Bounds
---@field step_time_s number the largest of the next three
---@field critical_path_s number longest path, every operator at its minimum cost, links without cost
---@field work_s number the work divided equally among the devices
---@field interval_s number the work that must fall into some interval, divided equally
---@field peak_memory_bytes number what the fullest device holds at least
---@field least_devices integer the fewest devices that hold weights and optimiser state

---@class trinity.Transfer
---@field task integer (micro_batch - 1) * operators + operator of the producer
---@field operator string its producer
---@field micro_batch integer
---@field output integer which of the producer's outputs
---@field from integer device
---@field to integer device
---@field bytes number
---@field ready_s number when it was enqueued
---@field start_s number
---@field end_s number

---@class trinity.CollectiveRun
---@field collective string
---@field micro_batch integer
---@field ready_s number when its last member was ready
---@field start_s number
---@field end_s number

---@class trinity.MemoryLevel
---@field time_s number
---@field bytes number

--- A task ('compute'), or a transfer or collective with all their fields.
---@class trinity.PathStep
---@field kind 'compute'|'transfer'|'collective'
---@field task? integer
---@field operator? string
---@field collective? string
---@field micro_batch integer
---@field output? integer
---@field from? integer
---@field to? integer
---@field bytes? number
---@field ready_s number end of the step before
---@field start_s number
---@field end_s number

---@class trinity.CriticalPath
---@field steps trinity.PathStep[] in order of time
---@field compute_s number running on devices
---@field wire_s number in transfers
---@field collective_s number in collectives
---@field queue_s number waiting for a device, a send queue or a link

---@class trinity.TypeShare
---@field type string of operators
---@field tasks integer
---@field total_s number

---@class trinity.ClusterSpec: trinity.TopologyOptions
---@field device_types? table<string, trinity.DeviceTypeSpec> in addition to trinity.devices
---@field devices? trinity.DeviceSpec[] needed without machines
---@field links? trinity.LinkSpec[]
---@field switches? trinity.SwitchSpec[]
---@field machines? trinity.MachinesSpec[] after the lists above
---@field collectives? trinity.CollectiveLibrary what runs collectives (default: the plain formulas)

--- Equal machines: '*' in a name stands for the machine's number.
---@class trinity.MachinesSpec
---@field count integer
---@field first? integer number of the first (default 0)
---@field devices trinity.DeviceSpec[] of one
---@field links? trinity.LinkSpec[]
---@field switches? trinity.SwitchSpec[]

---@class trinity.DeviceTypeSpec: trinity.EfficiencySpec
---@field peak_flops_per_s table<string, number> by dtype
---@field memory_bandwidth_bytes_per_s number
---@field memory_bytes number
---@field reserved_memory_bytes? number of the driver: open to no step
---@field framework_bytes? number what the training software holds on a device that it uses, a part of peaks (default 0)
---@field keeps_gradients? boolean whether gradients of weights have buffers that stay from step to step
---@field half_width? number columns at which a matmul reaches half of compute_efficiency at the float16 peak (default 0)
---@field fuses_elementwise? boolean whether element-wise operators that follow each other are one kernel
---@field joins_products? boolean whether matmuls of one input are one kernel
---@field overlap? number how much of the lesser of arithmetic and traffic the greater hides (default 1: all)
---@field host_bandwidth_bytes_per_s? number between device and host, each direction: what offloading needs
---@field host_memory_bandwidth_bytes_per_s? number of the host's memory, the device's share of its node's
---@field operators? table<string, trinity.EfficiencySpec> by operator type, in all dtypes (Conv) or in one ('Conv:float16')

---@class trinity.EfficiencySpec
---@field launch_s? number per operator
---@field dispatch_s? number what the host needs to dispatch a kernel, for which the device waits (default 0)
---@field compute_efficiency? number share of the peak that matrix operators reach
---@field memory_efficiency? number share of the bandwidth that other operators reach
---@field contention? number how many times as long operators take while all such devices of a node compute

---@class trinity.DeviceSpec
---@field name string
---@field type string|trinity.DeviceTypeSpec one of device_types or of trinity.devices, or what it is itself
---@field speed? number times the type's (default 1)
---@field node? string its machine (default: what comes before the '/' of its name)

---@class trinity.LinkSpec: trinity.Wire
---@field from string device or switch
---@field to string

---@class trinity.SwitchSpec
---@field name string
---@field bandwidth_bytes_per_s number of all its traffic together

---@class trinity.Device
---@field name string
---@field type string
---@field speed number
---@field node string
---@field capacity_bytes number memory that operators can use

--- The basis of numbers on a cluster.
---@class trinity.ClusterBasis
---@field name string 'calibrated', 'data_sheet', a file, or 'a table'
---@field runtime? string the training software; none where all kinds have their data sheets' numbers
---@field kinds trinity.KindBasis[]

---@class trinity.KindBasis
---@field kind string of GPU
---@field rows? integer published runs that its constants were fitted to
---@field mean_error? number of networks left out of the fit, as a share
---@field like? string the kind whose constants it has
---@field own? string the file or table that states constants

--- Waits of a step: its critical path by device, stage and type of work.
---@class trinity.StepWait
---@field device string device; for collectives the first member, for sends the sender
---@field stage? integer with a mesh: pipeline stage, from 1
---@field replica? integer with a mesh: replica, from 1
---@field type 'forward'|'backward'|'update'|'send'|'collective'
---@field time_s number mean over the samples

--- Wait of a replica for the slowest one.
---@class trinity.ReplicaWait
---@field stage integer pipeline stage, from 1
---@field replica integer from 1
---@field time_s number longest wait of one of its collectives for backward passes of others, mean over the samples

---@class trinity.Remedy
---@field what string
---@field step_time_s number without noise, of even work
---@field samples_per_s number
---@field gain number samples_per_s / samples_per_s of the strategy - 1
---@field stages? integer[] layers of every virtual stage, if layers move
---@field devices? integer[] devices of the mesh, if a replica is dropped
---@field micro_batches? integer micro-batches, if a replica is dropped

---@class trinity.Stragglers
---@field step_time_s number without noise, with the slow devices of the cluster and the load of experts
---@field mean_s number mean over the samples
---@field p50_s number median of the samples
---@field p95_s number 95th percentile of the samples
---@field error_s number standard error of the mean
---@field draws_s number[] sampled step times
---@field degrees table<integer, number> with option `lengths`: fraction of micro-batches by context-parallel degree
---@field waits trinity.StepWait[] longest time first
---@field replica_waits trinity.ReplicaWait[] by stage and replica; empty with one replica
---@field remedies trinity.Remedy[] best first; empty unless the cluster has option `slow`

---@class trinity.ExpertLoad
---@field step_time_s number
---@field slowdown number step time / step time with even load
---@field rank_factor number maximum tokens of a rank in any layer / tokens of an even load
---@field expert_factor number same, for the fullest expert
---@field dropped number fraction of tokens that capacity_factor drops
---@field peak_memory_bytes number of the fullest device
---@field fullest_device string

--- The cost of chosen operations.
---@class trinity.ReplayAnswer
---@field slowdown number mean step time with only these as recorded / with all typical
---@field alone_s number[] per step: these as recorded, all others typical
---@field without_s number[] per step: these typical, all others as recorded
---@field saved number fraction of the slowdown that disappears if these are typical

--- A cause of waiting of the step: a worker's operations of one type on the critical path.
---@class trinity.ReplayWait
---@field worker integer replica of the model
---@field stage integer
---@field type string
---@field time_s number mean over the steps

---@class trinity.ContextDegree
---@field what string 'context 4', or 'one per micro-batch'
---@field mesh trinity.Mesh
---@field micro_batches integer
---@field mean_s number step time, mean over the samples
---@field p50_s number median
---@field p95_s number 95th percentile
---@field error_s number standard error of the mean
---@field degrees table<integer, number> fraction of micro-batches by degree

---@class trinity.CollectiveQuery
---@field kind trinity.CollectiveKind
---@field devices integer[]
---@field bytes integer full size of the tensor
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'
---@field experts_per_token? integer all_to_all: bytes are this many copies of tokens, each sent once per node and device
---@field experts? integer of all devices (default: experts_per_token)
---@field expert_groups? integer groups of experts (default: 1)
---@field group_topk? integer groups whose experts a token may use (default: all)

---@class trinity.CollectiveCost
---@field algorithm trinity.CollectiveAlgorithm the one taken
---@field time_s number latency_s + transfer_s
---@field latency_s number part that does not depend on the size
---@field transfer_s number bytes over bandwidth
---@field sent_bytes number by every device

---@class trinity.CollectiveSpec
---@field name string
---@field kind trinity.CollectiveKind
---@field bytes integer full size of the tensor
---@field members string[] names of operators
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'

--- Fields of an operator that every way of adding one takes.
---@class trinity.AnyOperatorSpec
---@field name string
---@field inputs? trinity.Tensor[]
---@field outputs? trinity.TensorSpec[]
---@field attributes? table<string, number|string|integer[]>
---@field parameters? trinity.ParameterSpec[]
---@field parameter_bytes? integer in addition to `parameters`
---@field flops? number default: by type and shapes
---@field traffic_bytes? number default: by type and shapes
---@field workspace_bytes? integer memory while it runs
---@field phase? 'forward'|'backward'|'update' default 'forward'
---@field forward? string name of the operator that a backward or update one serves
---@field colocate_with? string name of an operator that shares its device

---@class trinity.OperatorSpec: trinity.AnyOperatorSpec
---@field type string ONNX's where it has one
---@field persistent_bytes? integer resident during the step in addition to the weights
---@field measured_time_s? number instead of what flops and traffic give
---@field measured_backward_time_s? number

---@class trinity.TensorSpec
---@field name? string
---@field shape? integer[]
---@field dtype? string default 'float32'
---@field bytes? integer where there is no shape
---@field gradient? boolean whether a gradient flows back through it (default true)

---@class trinity.ParameterSpec
---@field name string
---@field shape integer[]
---@field dtype? string default 'float32'
---@field trainable? boolean false for moving statistics (default true)

--- A tensor of a graph builder.
---@class trinity.Tensor
---@field number integer
---@field shape? integer[]
---@field dtype string

---@class trinity.Operator
---@field name string
---@field type string
---@field phase 'forward'|'backward'|'update'
---@field unit integer colocation unit, from 1
---@field flops number
---@field known boolean whether its type has a rule of its own
---@field forward? integer number of the operator that a backward or update one serves
---@field attributes table<string, any>
---@field parameters trinity.ParameterSpec[]
---@field traffic_bytes number that it reads and writes
---@field parameter_bytes number
---@field persistent_bytes number
---@field workspace_bytes number
---@field measured_time_s? number
---@field collective? string that it is a member of
---@field inputs trinity.TensorInfo[]
---@field outputs trinity.TensorInfo[]

---@class trinity.TensorInfo
---@field name string
---@field bytes number
---@field shape integer[]
---@field dtype string
---@field gradient boolean
---@field producer? integer number of the operator, of inputs only
---@field readers? integer how many operators read it, of outputs only

--- The results of a method in a comparison.
---@class trinity.ComparisonRow
---@field method string
---@field label? string what option `labels` calls it
---@field runs trinity.Strategy[] one a seed
---@field best? trinity.Strategy the best of them
---@field failures string[] why runs are missing
---@field by_seed table<integer, trinity.Strategy> the runs
---@field fixed boolean whether its one run stands for every seed

--- The description of a method.
---@class trinity.MethodInfo: trinity.MethodOptions
---@field run trinity.Method

--- An option of a script.
---@class trinity.OptionSpec
---@field default? any its type is the option's; a list collects texts
---@field type? 'string'|'number' of an option without a default, which is nil where it is not given
---@field position? boolean words without dashes are for it
---@field writes? string it names a file that the script writes: what follows in its name ('' or '.csv')
---@field help? string
---@field min? number
---@field max? number
---@field integer? boolean
---@field unit? 'bytes'|'bytes/s' values may name it: 25GiB, 10Gbit/s
---@field rare? boolean --help leaves it to --help-all

--- One batch of a search.
--- A search's first 1,000 steps have a point each, then every growth of the evaluations by 0.1 %, every new best and
--- the last.
---@class trinity.CurvePoint
---@field evaluations integer so far
---@field mean_reward number of the batch
---@field best_reward number so far
---@field best_step_time_s number of the best so far

---@class trinity.PlanResult
---@field plans trinity.FoundPlan[] that fit, the best first
---@field pareto trinity.FoundPlan[] of those simulated the ones that none beats both in time and in memory
---@field simulated trinity.FoundPlan[] all, the best first
---@field refused { reason: string, points: integer }[] what could not be lowered, and why
---@field counts { points: integer, families: integer, opened: integer, bounded: integer, simulated: integer, neighbours: integer, simulated_neighbours: integer }
---@field pruned { contradictory: integer, memory: integer, bound: integer, duplicates: integer, refused: integer }
---@field left integer points that a limit left, whose bound does not rule them out
---@field too_large integer of these the points whose simulation would run more operators than `tasks`
---@field lower_bound_s number that no plan's cost is below
---@field runtime string whose rules the space had
---@field straddles boolean whether groups of powers of two straddle the cluster's machines
---@field cost_of? { name: string, unit: string, text: string, line: string } by reward 'dollars', 'joules', 'p95': in words
---@field fused boolean whether 'selective' was asked for where attention is one operator, so that it frees nothing
---@field stopped? string what ended it early
---@field nearest? { point: trinity.PlanPoint, excess_bytes: number, memory_bytes: number, helps: string[] } by the bounds on memory
---@field impossible? string[] where no point is valid: why
---@field seconds number

--- A point of the space with its predicted cost.
---@class trinity.FoundPlan: trinity.PlanPoint
---@field strategy trinity.Strategy made when first asked for
---@field metrics trinity.Metrics
---@field reward number
---@field step_time_s number
---@field cost number of a step, that the search made least: seconds, by reward 'dollars' or 'joules' these, or the p95
---@field lower_bound_s number of its point
---@field samples_per_s number
---@field mfu number model FLOPs utilization: FLOP of matmuls without recomputation / peak FLOP of its devices
---@field memory_bytes number of the fullest device
---@field rank integer among plans of other shapes (mesh, schedule, recomputation, sharding)
---@field variants trinity.FoundPlan[] slower plans of its shape that were simulated
---@field included? boolean whether it is one of PlanOptions.included

--- A dimension of one's own, which trinity.plan lays over every point whose space names it.
---@class trinity.PlanDimension
---@field values any[] that it takes where the space does not list others
---@field apply trinity.PlanApply

--- Where a plan is in the space that is searched, the size of the micro-batch included, by which a graph is made:
--- coordinates, of which FoundPlan.strategy is the strategy.
---@class trinity.PlanPoint
---@field micro_batch integer samples of a micro-batch of a replica
---@field micro_batches integer of a step
---@field tensor integer
---@field context integer
---@field pipeline integer
---@field data integer
---@field expert integer
---@field sequence_parallel boolean
---@field recompute 'none'|'selective'|'full'|'by_layer'
---@field recomputed? integer[] recomputed layers per virtual stage, the first ones
---@field schedule trinity.MeshSchedule
---@field virtual_stages integer
---@field stages 'even'|'balanced'|integer[] how layers are divided into virtual stages
---@field zero_stage integer
---@field optimizer_offload_fraction number
---@field activation_offload_fraction number
---@field bucket_bytes integer 0: as the runtime does by itself
---@field algorithm trinity.MeshAlgorithm of all-reduces of gradients
---@field order 'natural'|'fastest_first'|'fastest_last'|integer[] of unequal devices; a list where moves changed them
---@field rank_order string axes of the mesh from the innermost, as 'tensor-pipeline-data', or 'default'
---@field segment_size? integer ranks that no machine divides; other devices of the machines are idle
---@field devices? integer[] of an unequal cluster: its devices in the order of ranks
---@field own table<string, any> values of dimensions of one's own
