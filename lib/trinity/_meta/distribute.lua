---@meta _
-- Data-parallel training, simulated (trinity.synchronisation) and real (trinity.dist), and the schedule of DASO that
-- both follow (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.DistModule
local dist = {}

--- Joins the job that a launcher started this process in (trinity launch, torchrun, mpirun, srun); without one, a
--- job of one process. Once a process: a second call gives the same job.
---@param options? trinity.JobOptions
---@return trinity.Job
function dist.init(options) end

--- The job that this process has joined, when it has several ranks; nil in dist.alone() and in workers of
--- trinity.parallel_map. Under `trinity launch` it joins if that has not been done.
---@return trinity.Job?
function dist.current() end

--- Runs a function in which this rank shares its searches with no other; returns what it returns.
---@param body function
---@return any ...
function dist.alone(body) end

--- A trainer of a network of trinity.nn on all ranks of a job. All begin with rank 0's parameters.
---@param job trinity.Job
---@param options trinity.TrainerOptions
---@return trinity.Trainer
function dist.trainer(job, options) end

--- Runs the trinity command in several processes on this machine, as `trinity launch` does.
---@param arguments string[] of the command: a script and its arguments
---@param options? trinity.LaunchOptions
---@return integer status of the first rank that failed, 0 when none did
function dist.launch(arguments, options) end

---@class trinity.JobOptions
---@field timeout_s? number a rank that others wait for this long hangs (20)
---@field silence_s? number a rank that gives no sign for this long is dead (10)
---@field join_timeout_s? number for all ranks to come (25)
---@field backend? string 'gloo' or 'nccl' (needs CUDA); default: TRINITY_BACKEND, else 'gloo'
---@field arguments_differ? boolean default false: ranks whose scripts have other arguments are refused
---@field link? trinity.InjectedLink makes what crosses nodes slower

---@class trinity.InjectedLink
---@field latency_s? number of a message (0)
---@field bandwidth_bytes_per_s? number 0, the default: no limit

---@class trinity.LaunchOptions
---@field processes? integer default 1
---@field per_node? integer ranks on each of several pretended nodes; 0, the default: all are on one
---@field threads? integer worker threads of each rank; 0, the default: the cores divided by the processes
---@field backend? string of collectives: 'gloo' or 'nccl'; '', the default: as the ranks choose
---@field all_output? boolean standard output of every rank, not of rank 0 alone

---@class trinity.Job
---@field rank integer of this process, from 0
---@field size integer ranks
---@field node integer of this rank, from 0
---@field nodes integer
---@field local_rank integer within the node, from 0
---@field local_size integer ranks a node
---@field source string the launcher: 'torchrun' (also of trinity launch), 'Open MPI', 'MPICH', 'Slurm', 'none'
local Job = {}

--- Starts to reduce a tensor in place over the ranks of a scope. Leave it alone until work:wait().
---@param x trinity.TorchTensor contiguous, on the processor, without gradients
---@param options? trinity.AllReduceOptions
---@return trinity.Work
function Job:start_all_reduce(x, options) end

--- Reduces a tensor in place over the ranks of a scope.
---@param x trinity.TorchTensor
---@param options? trinity.AllReduceOptions
---@return trinity.TorchTensor x
function Job:all_reduce(x, options) end

--- Copies a tensor in place from one member of a scope to all.
---@param x trinity.TorchTensor
---@param options? trinity.BroadcastOptions
---@return trinity.TorchTensor x
function Job:broadcast(x, options) end

--- The mean of a number over all ranks.
---@param number number
---@return number
function Job:mean(number) end

--- Averages the gradients of parameters over all ranks.
---@param parameters trinity.TorchTensor[]
function Job:average_gradients(parameters) end

--- Of the strategies that all ranks found for the same problem the best, on every rank.
---@param strategy trinity.Strategy
---@return trinity.Strategy
function Job:best(strategy) end

--- Waits for all ranks.
function Job:barrier() end

--- Ends the job, naming the rank that differs, unless all ranks give the same text.
---@param what string what it is about
---@param text string
function Job:agree(what, text) end

--- Prints a text on rank 0 alone.
---@param text string
function Job:print(text) end

--- Says goodbye to the other ranks.
function Job:close() end

---@class trinity.AllReduceOptions
---@field scope? trinity.Scope default 'world'
---@field reduction? trinity.Reduction default 'sum'
---@field bfloat16? boolean values travel, and come back, rounded
---@field chunk_elements? integer of one message (10,000,000)

---@class trinity.BroadcastOptions
---@field scope? trinity.Scope default 'world'
---@field root? integer the member that gives, counted from 0 in the scope; default 0

---@alias trinity.Scope 'world'|'node'|'across'
---@alias trinity.Reduction 'sum'|'mean'|'max'
---@alias trinity.TrainingMethod 'bsp'|'daso'

--- A reduction that was started.
---@class trinity.Work
---@field job trinity.Job
local Work = {}

--- Waits until it has ended.
function Work:wait() end

--- Whether it has ended.
---@return boolean
function Work:done() end

---@class trinity.TrainerOptions
---@field module trinity.Module parameters of float32 on the processor
---@field optimiser trinity.NetworkOptimiser of these parameters
---@field method? trinity.TrainingMethod 'bsp' (default): gradients averaged in every batch
---@field schedule? table of method 'daso': as trinity.ScheduleOptions, groups and nodes are the job's
---@field chunk_elements? integer of one message (10,000,000)

---@class trinity.Trainer
---@field job trinity.Job
---@field module trinity.Module
---@field optimiser trinity.NetworkOptimiser
---@field method trinity.TrainingMethod
---@field schedule? trinity.DasoSchedule
---@field parameters trinity.TorchTensor[]
---@field count integer elements of all parameters
---@field chunk_elements integer
---@field epochs_done integer
---@field wait_s number seconds spent in communication so far
local Trainer = {}

--- Trains an epoch on this rank's part of the data.
---@param batches integer
---@param loss_of fun(batch: integer): trinity.TorchTensor
---@return number loss mean of all batches and ranks
function Trainer:epoch(batches, loss_of) end

--- All parameters as one new vector.
---@return trinity.TorchTensor
function Trainer:pack() end

--- Sets all parameters from such a vector.
---@param flat trinity.TorchTensor
function Trainer:unpack(flat) end

--- Saves the state of all ranks in a folder, between epochs.
---@param folder string
function Trainer:save(folder) end

--- Takes back what all ranks saved last.
---@param folder string
---@return boolean found false when there is nothing
function Trainer:load(folder) end

---@class trinity.DasoModule
---@field rules table what daso.schedule takes, for checks
local daso = {}

--- What a rank has after a stale sum arrives: numbers or tensors.
---@param x number|trinity.TorchTensor its own value
---@param sum number|trinity.TorchTensor of what all members sent
---@param batches integer that passed since
---@param members integer
---@return number|trinity.TorchTensor
function daso.merge(x, sum, batches, members) end

--- The schedule of a training.
---@param options trinity.ScheduleOptions
---@return trinity.DasoSchedule
function daso.schedule(options) end

---@alias trinity.DataAge 'true'|'code'

---@class trinity.ScheduleOptions
---@field epochs integer of the whole training
---@field warmup_epochs? integer that synchronise every batch at the start (4)
---@field cooldown_epochs? integer and at the end (4)
---@field stability_level? number a loss improves when it is below the best by this share (0.05)
---@field patience? integer epochs without, before the skips change (2)
---@field max_global_skips? integer default 8; 0: nothing is skipped
---@field skip_reduction_factor? integer default 2
---@field local_skip_factor? integer default 4
---@field held? trinity.HeldSkips skips for the whole cycling phase
---@field groups? integer GPUs a node (1)
---@field nodes? integer default 2
---@field age? trinity.DataAge stale data are weighed by their 'true' age, or by the one that was planned ('code')
---@field bfloat16? boolean what blocking phases send is rounded (true)

---@class trinity.HeldSkips
---@field global_skips integer
---@field local_skips? integer default 1
---@field batches_to_wait? integer default 1

---@class trinity.DasoSchedule
---@field epoch integer from 0
---@field batch integer from 0
---@field group integer the one that synchronises next, from 0
---@field global_skips integer
---@field local_skips integer
---@field batches_to_wait integer
---@field gradients? string over whom gradients of the next batch are averaged: 'node', 'world', nil
---@field local_sync boolean
---@field best_loss number
---@field bad_epochs integer
---@field epochs integer
---@field warmup_epochs integer
---@field cooldown_epochs integer
---@field stability_level number
---@field patience integer
---@field max_global_skips integer
---@field skip_reduction_factor integer
---@field local_skip_factor integer
---@field groups integer
---@field nodes integer
---@field age trinity.DataAge
---@field bfloat16 boolean
---@field held? trinity.HeldSkips
local DasoSchedule = {}

--- What to do after the optimiser's step of the running batch.
---@param batches integer of the epoch
---@return trinity.SyncAction[]
function DasoSchedule:after_batch(batches) end

--- Sets the skips of the next epoch.
---@param loss number mean of all ranks
function DasoSchedule:after_epoch(loss) end

--- 'warm-up', 'cycling' or 'cool-down'.
---@return string
function DasoSchedule:phase() end

--- What changes from epoch to epoch.
---@return table<string, number>
function DasoSchedule:state() end

--- Takes back what state() gave.
---@param state table<string, number>
function DasoSchedule:load_state(state) end

---@class trinity.SyncAction
---@field what string 'send', 'merge', 'average' or 'broadcast'
---@field group integer from 0
---@field batches? integer since the data of a 'merge' were sent
---@field bfloat16? boolean of a 'send'

---@class trinity.SynchronisationModule
local synchronisation = {}

--- Gradients of all replicas are averaged in every batch.
---@param options? trinity.BspOptions
---@return trinity.SyncPolicy
function synchronisation.bsp(options) end

--- Gradients go to servers, parameters come back.
---@param options? trinity.ServerOptions
---@return trinity.SyncPolicy
function synchronisation.parameter_server(options) end

--- Replicas train alone; parameters are averaged now and then.
---@param options? trinity.LocalSgdOptions
---@return trinity.SyncPolicy
function synchronisation.local_sgd(options) end

--- DASO: the options of daso.schedule but epochs, groups and nodes.
---@param options? table
---@return trinity.SyncPolicy
function synchronisation.daso(options) end

--- Replicas of a network on a cluster.
---@param spec trinity.ReplicationSpec
---@return trinity.Replication
function synchronisation.replicate(spec) end

---@class trinity.BspOptions
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'
---@field bucket_bytes? integer default 25e6; 0: one all-reduce after the backward pass

---@class trinity.ServerOptions
---@field servers? integer default 1
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

---@class trinity.Replication
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field policy trinity.SyncPolicy
---@field placement? trinity.Placement
---@field replicas integer
---@field nodes integer
---@field per_node integer replicas a node
---@field width integer devices a replica
---@field parameter_bytes integer
---@field device_bytes integer[] of parameters, by device of a replica
---@field times table<string, number> what was simulated so far, in seconds
local Replication = {}

--- The time of a training.
---@param options trinity.ReplicatedTraining
---@return trinity.TrainingTime
function Replication:train(options) end

--- A strategy of one replica that carries this replication, in its file too.
---@param problem trinity.Problem of the same graph and cluster
---@return trinity.Strategy
function Replication:strategy(problem) end

---@class trinity.ReplicatedTraining
---@field epochs? integer default 1
---@field batches integer an epoch, on every replica
---@field loss? number[]|fun(epoch: integer): number what DASO's schedule is told; default: a constant

---@class trinity.TrainingTime
---@field time_s number
---@field compute_s number of one replica alone
---@field epochs trinity.EpochTime[]

---@class trinity.EpochTime
---@field time_s number
---@field phase? string of DASO, as all below
---@field global_skips? integer
---@field local_skips? integer
---@field batches_to_wait? integer
---@field synchronisations? integer
---@field global_bytes? number sent by every member of a group
