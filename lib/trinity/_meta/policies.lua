---@meta _
-- Policies and learners (LuaLS annotations); nothing runs it.
error 'this file is for editors'

--- Inputs of policies: one row per colocation unit of a problem.
---@class trinity.Features
---@field units integer
---@field width integer columns of `values`
---@field type_count integer
---@field edges integer
---@field values trinity.TorchTensor float32 [units, width], each column standardised over the units of the graph
---@field columns trinity.FeatureColumns where `values` has what
---@field types trinity.TorchTensor int64 [units]: the operator type of the unit's first operator, 1 to type_count
---@field type_names string[] by number. With vocabulary = 'shared' the same for all graphs: 'other 1' to 'other 32' for types that the engine does not know, by a hash of their name, then known types, each followed by its gradient (engine/features/features.h). With 'graph' the types of this graph, the most common first; from the 200th on they share a number
---@field position trinity.DoubleArray share of the work that comes before the unit's middle
---@field time_s trinity.DoubleArray of every unit's operators, averaged over devices
---@field output_bytes trinity.DoubleArray of every unit's forward operators
---@field from trinity.Placement int32 array: the edges between units
---@field to trinity.Placement int32 array
---@field bytes trinity.DoubleArray

--- Groups of columns from left to right, and each under its name where there is one.
---@class trinity.FeatureColumns
---@field [integer] trinity.FeatureColumn
---@field time trinity.FeatureColumn of the unit's operators, log1p of microseconds or, with raw_time, microseconds
---@field output_bytes trinity.FeatureColumn log1p
---@field depth? trinity.FeatureColumn in the graph, 0 to 1
---@field depth_waves? trinity.FeatureColumn sine and cosine of pi 2^k depth for k = 0, 1, ...
---@field node2vec? trinity.FeatureColumn the unit's surroundings, in directions that every graph and seed has its own of

---@class trinity.FeatureColumn
---@field name string
---@field first integer from 1
---@field count integer

--- The report of one update.
---@class trinity.AgentReport
---@field mean_reward number
---@field loss number minus the clipped objective and the entropy bonus, before the last gradient step
---@field learning_rate number of the last gradient step
---@field baseline number after the update
---@field entropy_groups number mean per unit, nats
---@field entropy_devices number mean per group, nats
---@field clipped_share number of actions outside [1 - clip, 1 + clip] in the last epoch
---@field gradient_norm number before clipping, last epoch

---@class trinity.ImitationReport
---@field steps integer
---@field log_likelihood_groups number mean per unit, nats
---@field log_likelihood_devices number mean per group, nats
---@field agreement number share of the work that greedy() then places as the first placement does
