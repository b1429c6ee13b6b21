---@meta _
-- Data-parallel training, simulated (trinity.synchronisation) and real (trinity.dist), and the schedule of DASO that
-- both follow (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.JobOptions
---@field timeout_s? number a rank that others wait for this long hangs (20)
---@field silence_s? number a rank that gives no sign for this long is dead (10)
---@field join_timeout_s? number for all ranks to come (25)
---@field backend? string 'gloo', or 'nccl' where LibTorch has CUDA and every rank of a node a GPU: tensors stay on the processor and travel by way of the GPU; default: TRINITY_BACKEND, else 'gloo'
---@field arguments_differ? boolean default false: ranks whose program, script or arguments differ are refused by name; true: arguments may
---@field link? trinity.InjectedLink makes what crosses nodes slower by a ring's time over such a link, for experiments on one machine

---@class trinity.InjectedLink
---@field latency_s? number of a message (0)
---@field bandwidth_bytes_per_s? number 0, the default: no limit

---@class trinity.LaunchOptions
---@field processes? integer default 1
---@field per_node? integer ranks on each of several pretended nodes; 0, the default: all are on one
---@field threads? integer worker threads of each rank; 0, the default: the cores divided by the processes
---@field backend? string of collectives: 'gloo' or 'nccl'; '', the default: as the ranks choose
---@field all_output? boolean standard output of every rank, not of rank 0 alone

---@class trinity.AllReduceOptions
---@field scope? trinity.Scope default 'world'; 'across': ranks of the same local rank, one a node
---@field reduction? trinity.Reduction default 'sum'
---@field bfloat16? boolean values travel, and come back, rounded
---@field chunk_elements? integer of one message (10,000,000)

---@class trinity.BroadcastOptions
---@field scope? trinity.Scope default 'world'
---@field root? integer the member that gives, counted from 0 in the scope; default 0

---@alias trinity.Scope 'world'|'node'|'across'
---@alias trinity.Reduction 'sum'|'mean'|'max'
---@alias trinity.TrainingMethod 'bsp'|'daso'

---@class trinity.TrainerOptions
---@field module trinity.Module parameters of float32 on the processor
---@field optimiser trinity.NetworkOptimiser of these parameters
---@field method? trinity.TrainingMethod 'bsp' (default): gradients averaged in every batch
---@field schedule? table of method 'daso': as trinity.ScheduleOptions, groups and nodes are the job's
---@field chunk_elements? integer of one message (10,000,000)

---@alias trinity.DataAge 'true'|'code'

---@class trinity.ScheduleOptions
---@field epochs integer of the whole training
---@field warmup_epochs? integer that synchronise every batch at the start (4)
---@field cooldown_epochs? integer and at the end (4)
---@field stability_level? number a loss improves when it is below the best by this share (0.05)
---@field patience? integer epochs without, before the skips change (2)
---@field max_global_skips? integer default 8; 0: nothing is skipped, gradients are averaged over all ranks in every batch, as without DASO
---@field skip_reduction_factor? integer default 2
---@field local_skip_factor? integer default 4
---@field held? trinity.HeldSkips skips for the whole cycling phase
---@field groups? integer GPUs a node (1)
---@field nodes? integer default 2
---@field age? trinity.DataAge stale data are weighed by their 'true' age, or by the one that was planned ('code'); they differ for global_skips = 2
---@field bfloat16? boolean what blocking phases send is rounded (true)

---@class trinity.HeldSkips
---@field global_skips integer
---@field local_skips? integer default 1
---@field batches_to_wait? integer default 1

---@class trinity.SyncAction
---@field what string 'send', 'merge', 'average' or 'broadcast'
---@field group integer from 0
---@field batches? integer since the data of a 'merge' were sent
---@field bfloat16? boolean of a 'send'

---@class trinity.BspOptions
---@field algorithm? trinity.CollectiveAlgorithm of the all-reduce: 'ring' is flat, 'hierarchical' goes inside nodes, between, inside; default 'automatic'
---@field bucket_bytes? integer default 25e6: a bucket is reduced while the backward pass goes on; 0: one all-reduce when it has ended

---@class trinity.ServerOptions
---@field servers? integer how many replicas' devices keep a share of the parameters each, spread over the nodes (1)
---@field asynchronous? boolean replicas do not wait for each other

---@class trinity.LocalSgdOptions
---@field steps? integer batches between averages (8)
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'

---@class trinity.SyncPolicy
---@field kind string
---@field text string

---@class trinity.ReplicationSpec
---@field graph? trinity.Graph a training step on one replica's batch
---@field strategy? trinity.Strategy in place of graph and placement: a strategy for one replica
---@field cluster trinity.Cluster
---@field policy trinity.SyncPolicy
---@field placement? trinity.Placement of one replica, on the first devices; default: all on device 1
---@field replicas? integer default: as many as fit

---@class trinity.ReplicatedTraining
---@field epochs? integer default 1
---@field batches integer an epoch, on every replica
---@field loss? number[]|fun(epoch: integer): number what DASO's schedule is told after every epoch; default: a constant, on which its skips cycle every three epochs

---@class trinity.TrainingTime
---@field time_s number
---@field compute_s number of one replica alone, without communication
---@field epochs trinity.EpochTime[]

---@class trinity.EpochTime
---@field time_s number
---@field phase? string of DASO, as all below
---@field global_skips? integer
---@field local_skips? integer
---@field batches_to_wait? integer
---@field synchronisations? integer
---@field global_bytes? number sent by every member of a group
