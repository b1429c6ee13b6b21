---@meta _
-- Data-parallel training, simulated (trinity.synchronisation) and real (trinity.dist), and the schedule of DASO that
-- both follow (LuaLS annotations); nothing runs it.
error 'this file is for editors'

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
