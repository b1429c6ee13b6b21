---@meta _
-- What trinity.execute takes and gives (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.ExecuteOptions
---@field steps? integer default 15
---@field warm_up? integer steps that are not measured; default 5
---@field seed? integer of weights, data and dropout; default 1
---@field learning_rate? number of stochastic gradient descent; default 0.01

--- What was measured. Losses depend on the problem's graph and the options alone, not on the placement.
---@class trinity.Execution
---@field losses number[] by step
---@field step_time_s number median of the steps after the warm-up
---@field transferred_bytes number copied between devices in a step
---@field peak_memory_bytes number[] by device: tensors that are alive, with the weights
---@field steps integer
---@field warm_up integer
---@field last trinity.ExecutedStep

--- One step, measured. Lists by operator count seconds from the step's beginning.
---@class trinity.ExecutedStep
---@field loss number
---@field step_time_s number
---@field busy_s number[] by device
---@field start_s number[] by operator
---@field end_s number[] by operator
---@field peak_memory_bytes number[] by device
---@field transferred_bytes number
