---@meta _
-- Data-parallel training, simulated (trinity.synchronisation) and real (trinity.dist), and the schedule of DASO that
-- both follow (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.SyncAction
---@field what string 'send', 'merge', 'average' or 'broadcast'
---@field group integer from 0
---@field age? integer batches since the data of a 'merge' were sent
---@field batches? integer what their weight is of: that, or the age that was planned
---@field bfloat16? boolean of a 'send'

---@class trinity.Synchronisation
---@field kind string
---@field text string

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
