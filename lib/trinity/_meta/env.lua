---@meta _
-- Results of environments (LuaLS annotations); nothing runs it.
error 'this file is for editors'

--- Observations of all environments; rows beyond a problem's own nodes and devices are padding. 'mesh' has only
--- mask, current, words and facts; with option decode there is only the mask.
---@class trinity.EnvObservation
---@field mask trinity.TorchTensor bool [num_envs, num_actions]: actions that are allowed, of 'joint' for each node
---@field current? trinity.TorchTensor int64 [num_envs]: the node that 'place' puts next, or the word that 'mesh' chooses
---@field placement? trinity.TorchTensor int64 [num_envs, nodes]: devices, devices + 1 for none
---@field load? trinity.TorchTensor float32 [num_envs, devices]: time that a device computes, over the step's lower bound
---@field memory? trinity.TorchTensor float32 [num_envs, devices]: its share of the capacity, of incomplete placements what weights and optimizer states take
---@field step_time? trinity.TorchTensor float32 [num_envs], over its lower bound, where each step is simulated
---@field critical? trinity.TorchTensor float32 [num_envs, nodes]: shares of the step on the critical path, with critical_path
---@field nodes? trinity.TorchTensor float32 [num_envs, nodes, width]: trinity.learn.features as the option says
---@field types? trinity.TorchTensor int64 [num_envs, nodes]: operator types
---@field times? trinity.TorchTensor float32 [num_envs, nodes, devices], over the lower bound
---@field node_mask? trinity.TorchTensor bool [num_envs, nodes]: which nodes there are
---@field device_mask? trinity.TorchTensor bool [num_envs, devices]
---@field words? trinity.TorchTensor int64 [num_envs, words]: chosen values by number, 0 for none
---@field facts? trinity.TorchTensor float32 [num_envs, 4]: logarithms of parameters, flops, devices, memory of one

--- The episodes that a step ended.
---@class trinity.EnvInfo
---@field envs integer[] whose they are
---@field episode_returns number[] sums of their rewards
---@field step_time_s number[] infinite where the degrees of a mesh do not divide what they cut
---@field feasible boolean[]

--- A problem's nodes and the edges between them.
---@class trinity.EnvGraph
---@field nodes integer
---@field from integer[]
---@field to integer[]
---@field bytes number[] per edge
---@field node_of trinity.Int32Array of every colocation unit

--- The report of one update of a learner.
---@class trinity.UpdateReport
---@field timesteps integer steps of all environments so far
---@field episode_return? number mean of the episodes that ended meanwhile
---@field policy_loss? number
---@field value_loss? number
---@field entropy? number mean, nats
---@field approx_kl? number of the policy before and after
