---@meta _
-- Options that functions of lib/trinity/dist take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.Backend 'gloo'|'nccl'
---@alias trinity.DataAge 'true'|'code'
---@alias trinity.LearningRateDecay 'none'|'plateau'|'step'|'cosine'
---@alias trinity.Reduction 'sum'|'mean'|'max'
---@alias trinity.Scope 'world'|'node'|'across'

--- How tensors are reduced.
---@class trinity.AllReduceOptions
---@field scope? trinity.Scope over whom; 'across': ranks of the same local rank, one a node (default 'world')
---@field reduction? trinity.Reduction what of all values (default 'sum')

--- Who gives a tensor to whom.
---@class trinity.BroadcastOptions
---@field scope? trinity.Scope to whom; 'across': ranks of the same local rank, one a node (default 'world')
---@field root? integer the member that gives, counted from 0 in the scope (default 0; 0 to 1048576)

--- What synchronisation.bsp takes.
---@class trinity.BspOptions
---@field algorithm? trinity.CollectiveAlgorithm of the all-reduce: 'ring' is flat, 'hierarchical' goes inside nodes, between, inside (default 'automatic')
---@field bucket_bytes? integer a bucket is reduced while the backward pass goes on; 0: one all-reduce when it has ended (default 2.5e7; 0 to 2^50)

--- What synchronisation.daso takes.
---@class trinity.CyclingOptions
---@field warmup_epochs? integer that synchronise every batch at the start (default 4; 0 to 1e6)
---@field cooldown_epochs? integer and at the end (default 4; 0 to 1e6)
---@field stability_level? number a loss improves when it is below the best by this share (default 0.05; 0 to 1)
---@field patience? integer epochs without, before the skips change (default 2; 0 to 1e6)
---@field max_global_skips? integer 0: nothing is skipped, gradients are averaged over all ranks in every batch, as without DASO (default 8; 0 to 1e6)
---@field skip_reduction_factor? integer by which skips are divided (default 2; 2 to 1e6)
---@field local_skip_factor? integer global skips a local one (default 4; 1 to 1e6)
---@field held? trinity.HeldSkips skips for the whole cycling phase
---@field age? trinity.DataAge stale data are weighed by their 'true' age, or by the one that was planned ('code'); they differ for global_skips = 2 (default 'true')
---@field bfloat16? boolean what blocking phases send is rounded (default true)

--- Skips that stay as they are.
---@class trinity.HeldSkips
---@field global_skips integer batches between global synchronisations (1 to 1e6)
---@field local_skips? integer batches between those of a node (default 1; 1 to 1e6)
---@field batches_to_wait? integer until what was sent is merged (default 1; 0 to 1e6)

--- A link that is slower than the one there is.
---@class trinity.InjectedLink
---@field latency_s? number of a message (default 0; 0 or more)
---@field bandwidth_bytes_per_s? number 0: no limit (default 0; 0 or more)

--- What dist.init takes.
---@class trinity.JobOptions
---@field timeout_s? number a rank that others wait for this long hangs (default 20; 0.1 to 1e6)
---@field silence_s? number a rank that gives no sign for this long is dead (default 10; 0.1 to 1e6)
---@field join_timeout_s? number for all ranks to come (default: TRINITY_JOIN_TIMEOUT_S, else 25; 0.1 to 1e6)
---@field backend? string 'gloo', or 'nccl' where LibTorch has CUDA and every rank of a node a GPU: tensors stay on the processor and travel by way of the GPU (default: TRINITY_BACKEND, else 'gloo')
---@field arguments_differ? boolean false: ranks whose program, script or arguments differ are refused by name; true: arguments may (default false)
---@field link? trinity.InjectedLink makes what crosses nodes slower by a ring's time over such a link, for experiments on one machine

--- What dist.launch takes.
---@class trinity.LaunchOptions
---@field processes? integer how many (default 1; 1 to 1024)
---@field per_node? integer ranks on each of several pretended nodes; 0: all are on one (default 0; 0 to 1024)
---@field threads? integer worker threads of each rank; 0: the cores divided by the processes (default 0; 0 to 4096)
---@field backend? trinity.Backend of collectives (default: as the ranks choose)
---@field all_output? boolean standard output of every rank, not of rank 0 alone (default false)

--- The optimiser's learning rate by epoch; its own one is the full one.
---@class trinity.LearningRateOptions
---@field warmup_epochs? integer epoch e of these, from 1, has the share e / (warmup_epochs + 1) of the full rate (default 0; 0 to 1e6)
---@field decay? trinity.LearningRateDecay behind the warm-up; 'plateau': when the loss stops falling (default 'none')
---@field factor? number of 'plateau' and 'step': what the rate is multiplied by (default 0.5)
---@field patience? integer of 'plateau': epochs without a better loss, before (default 5; 0 to 1e6)
---@field threshold? number of 'plateau': a loss is better when it is below the best by this share (default 0.05; 0 to 1)
---@field step_epochs? integer of 'step': epochs between (default 30; 1 to 1e6)
---@field epochs? integer of 'cosine', which needs it: of the whole training (1 to 1e6)
---@field least_rate? number decay goes no lower (default 0; 0 or more)

--- What synchronisation.local_sgd takes.
---@class trinity.LocalSgdOptions
---@field steps? integer batches between averages (default 8; 1 to 2^30)
---@field algorithm? trinity.CollectiveAlgorithm of the averages (default 'automatic')

--- What replication:train takes.
---@class trinity.ReplicatedTraining
---@field epochs? integer how many (default 1; 1 to 100000)
---@field batches integer an epoch, on every replica (1 to 1e7)
---@field loss? number[]|fun(epoch: integer): number what DASO's schedule is told after every epoch (default: a constant, on which its skips cycle every three epochs)

--- What synchronisation.replicate takes: a graph, or a strategy in its place.
---@class trinity.ReplicationSpec
---@field graph? trinity.Graph a training step on one replica's batch
---@field strategy? trinity.Strategy in place of graph and placement: a strategy for one replica
---@field cluster trinity.Cluster where it runs
---@field synchronisation trinity.Synchronisation how replicas are kept together
---@field placement? trinity.Placement of one replica, on the first devices (default: all on device 1)
---@field replicas? integer how many (default: as many as fit; 1 to 4096)

--- What daso.schedule takes.
---@class trinity.ScheduleOptions: trinity.CyclingOptions
---@field epochs integer of the whole training (1 to 1e6)
---@field groups? integer GPUs a node (default 1; 1 to 1e6)
---@field nodes? integer how many (default 2; 1 to 1e6)

--- What synchronisation.parameter_server takes.
---@class trinity.ServerOptions
---@field servers? integer how many replicas' devices keep a share of the parameters each, spread over the nodes (default 1; 1 to 4096)
---@field asynchronous? boolean replicas do not wait for each other (default false)
