---@meta _
-- Options that functions of lib/trinity/strategy take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.ContextKind 'all_gather'|'ring'|'all_to_all'
---@alias trinity.MdpeMode 'linear'|'hinge'|'both'
---@alias trinity.MdpeScale 'log'|'log_time'|'sqrt'|'linear'
---@alias trinity.MeshAlgorithm 'automatic'|'ring'|'halving_doubling'|'tree'|'hierarchical'|'leader'
---@alias trinity.MeshSchedule 'gpipe'|'1f1b'|'interleaved'|'zb-h1'|'zb-h2'|'zb-interleaved'|'zb-v'|'dualpipe-v'|'order'
---@alias trinity.MeshSynchronisationKind 'all_reduce'|'hierarchical'|'local_sgd'|'parameter_server'|'daso'
---@alias trinity.RecomputeWord 'none'|'selective'|'full'

--- How many plans are priced.
---@class trinity.BatchOptions
---@field reject_above_s? number plans with longer steps are given up as soon as that is certain (default: none; 0 or more)

--- Seconds of operators in place of the cost model's, by name or, where no row has the name, by type.
---@class trinity.CostRow
---@field operator? string name of one
---@field type? string of operators, as Conv or ConvGrad
---@field device_type? string of the device, at speed 1 (default: any)
---@field time_s number of one run (0 to 1e6)

--- What problem:load takes.
---@class trinity.LoadOptions
---@field reevaluate? boolean evaluates a strategy that was made for something else; it says so in `reevaluated` (default false)

--- What trinity.lower takes.
---@class trinity.LowerSpec
---@field graph trinity.Graph whose operators are cut
---@field cluster trinity.Cluster where it runs
---@field splits? trinity.Splits parts of operators
---@field placement? trinity.Placement of operators that are not split (default: device 1)

--- What rewards.mdpe takes.
---@class trinity.MdpeOptions
---@field alpha? number weight of the step time (default 0.5; 0 or more)
---@field beta? number weight of the peak communication (default 0.3; 0 or more)
---@field gamma? number weight of the peak memory (default 0.2; 0 or more)
---@field communication_tolerance_bytes? number of the largest device (default 8e9; above 0)
---@field memory_tolerance_bytes? number of the largest device (default 8e9; above 0)
---@field mode? trinity.MdpeMode what lies below and above the tolerance (default 'both')
---@field hinge_factor? number slope above the tolerance (default 10; 0 or more)
---@field failing_factor? number on the cost of a placement that does not fit (default 10; 0 or more)
---@field scale? trinity.MdpeScale what is taken of the cost (default 'log')
---@field failing_signal? number the reward of a placement that does not fit is minus this (default: failing_factor counts; 0 or more)

--- Devices by axis, tensor innermost, pipeline outermost; those left over stay idle.
---@class trinity.Mesh
---@field data? integer replicas (default 1; 1 to 4096)
---@field tensor? integer devices that share every operator (default 1; 1 to 4096)
---@field pipeline? integer stages (default 1; 1 to 4096)
---@field context? integer devices that share the sequence (default 1; 1 to 4096)
---@field expert? integer of data: devices that share the experts (default 1; 1 to 4096)
---@field placement? integer places in a replica's stage on which single operators run (`inside`) (default 1; 1 to 4096)

--- A strategy that is the same for all layers. The batch of the graph is a micro-batch of one replica.
---@class trinity.MeshStrategy
---@field mesh trinity.Mesh how devices are used
---@field order? ('tensor'|'context'|'placement'|'expert'|'data'|'pipeline')[] axes, innermost first (default: tensor, context, placement, expert, data, pipeline)
---@field devices? integer[] that the mesh is made of (default: the cluster's; 1 to 1048576)
---@field schedule? trinity.MeshSchedule of stages; 'order': as `tasks` say (default '1f1b')
---@field tasks? string[]|string[][]|string an order of one's own: one row of tasks per place on `pipeline`, '0F0,0F1,0B0,0B1' or a list (virtual stage, F, B, I or W, micro-batch, from 0), as PyTorch's schedules have them; or a CSV file of such rows (default: the schedule's)
---@field micro_batches? integer of a step (default 1; 1 to 1048576)
---@field virtual_stages? integer of a device: some of interleaved schedules, two of zb-v and dualpipe-v (default 1; 1 to 4096)
---@field stages? integer[] layers of every virtual stage (default: equally many; 0 to 1048576)
---@field layout? string in place of `stages` and `virtual_stages`: Megatron-LM's layout, 'Et*3|(tt|)*29mL' (default: as `stages` say)
---@field recompute? trinity.RecomputeWord|fun(op: trinity.Operator): boolean? before backward: the core of attention, or whole layers; a function: the forward operators for which it is true (default 'none')
---@field split? fun(op: trinity.Operator): string|false|nil dimension of a forward operator that `tensor` cuts; false: none; nil: what the pattern says (default: Megatron-LM's pattern)
---@field inside? trinity.Placement|integer[]|trinity.Strategy|fun(op: trinity.Operator): integer? place of every operator on that axis: a placement on as many devices, what found one, or a function of the forward operators (nil: 1), whom the others follow (default: refused where the axis `placement` is above one)
---@field operators? table<string, trinity.OperatorChoice> what these functions said of single operators, by name
---@field sequence_parallel? boolean what tensor leaves whole is cut along the sequence (default false)
---@field scatter_gather? boolean stages send each other parts of what tensor leaves whole, and gather them there (default false)
---@field overlap_tensor? boolean sums of input gradients over tensor go on while gradients of weights are computed (default false)
---@field shard? integer over data: 1 states of the optimiser, 2 gradients too, 3 weights too (default 0; 0 to 3)
---@field bucket_bytes? integer of gradients that are reduced together (default 2.5e7; 1 to 2^50)
---@field context_kind? trinity.ContextKind how parts of the sequence see keys and values of others: all at once, round a ring, or by heads (default 'all_gather')
---@field synchronise? trinity.MeshSynchronisation how replicas are kept alike

--- How the replicas of a mesh are kept alike.
---@class trinity.MeshSynchronisation
---@field kind? trinity.MeshSynchronisationKind gradients in every step (in one level or two), weights every few, servers, or gradients and weights (default 'all_reduce')
---@field algorithm? trinity.MeshAlgorithm of what replicas do together (default 'automatic')
---@field inner? integer hierarchical, daso: replicas of a run (default: 1, which hierarchical and daso refuse; 1 to 1048576)
---@field every? integer local_sgd, daso: steps from meeting to meeting (0: there is none) (default 1; 0 to 1048576)
---@field servers? integer parameter_server: replicas that are servers (default 1; 1 to 1048576)
---@field asynchronous? boolean parameter_server: gradients are applied one by one, and no replica waits for others; daso: weights that a step sends are merged behind the next (default false)

--- What holds for one forward operator in place of the words of a mesh.
---@class trinity.OperatorChoice
---@field recompute? boolean before backward (default: as `recompute` of the mesh says)
---@field split? string|false the dimension that `tensor` cuts; false: none (default: as the pattern says)

--- What trinity.problem takes.
---@class trinity.ProblemSpec
---@field graph trinity.Graph a training step or another graph
---@field cluster? trinity.Cluster where it runs (default: of the devices of `profile`)
---@field reward? trinity.Reward is maximised (default: minus the step time)
---@field cost? trinity.CostFunction|trinity.CostRow[]|string seconds of operators instead of the cost model's, by their share also of parts that plans make of them: a function (nil: the cost model holds), rows, or a CSV file with their fields as columns
---@field on_evaluated? fun(metrics: trinity.Metrics, strategy: trinity.Strategy) called with every strategy that is scored, which has its reward then and may be kept
---@field rules? trinity.RulesName|trinity.Rules 'compat', 'placeto', 'doppler': published simulators; a table: deviations from the cluster's rules (default: 'standard')
---@field schedule? trinity.ScheduleName of plain placements (default: 'fifo')
---@field micro_batches? integer of plain placements (default: 1; 1 to 2^30)
---@field profile? trinity.Profile|string of the graph, or its file: measured times, and devices where no cluster is given
