---@meta _
-- What trinity.execute takes and gives (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.ExecuteOptions
---@field steps? integer default 15
---@field warm_up? integer steps that are not measured; default 5
---@field seed? integer of weights, data and dropout; default 1
---@field learning_rate? number of stochastic gradient descent; default 0.01
---@field devices? string[] per device of the cluster 'cpu:N', the N-th core from 0, or 'cuda:N'; default 'cpu:0', 'cpu:1', ...
---@field memory_limit_bytes? integer the most that tensors of a device may take; more is an error

--- What was measured. Losses depend on the problem's graph, the micro-batches and the options alone, not on the placement.
---@class trinity.Execution
---@field losses number[] by step: the mean over its micro-batches
---@field step_time_s number median of the steps after the warm-up
---@field step_times_s number[] of these
---@field operator_time_s trinity.DoubleArray by operator: the median of its runs in these
---@field operator_start_s trinity.DoubleArray by task: see last.start_s
---@field transferred_bytes number copied between devices in a step
---@field peak_memory_bytes number[] by device: the most that LibTorch's allocator had handed out, weights included
---@field cores integer[] by device: the core that its thread is bound to, -1 for none
---@field steps integer
---@field warm_up integer
---@field micro_batches integer
---@field last trinity.ExecutedStep

--- One step, measured. Tasks are numbered (micro_batch - 1) * operators + operator; seconds count from its beginning.
---@class trinity.ExecutedStep
---@field loss number
---@field step_time_s number
---@field busy_s number[] by device: in operators
---@field start_s number[] by task; updates run in the last micro-batch
---@field end_s number[] by task; 0 for those that do not run
---@field memory_bytes number[] by task: what its device's tensors took after it
---@field copies trinity.ExecutedCopy[]
---@field peak_memory_bytes number[] by device
---@field transferred_bytes number

---@class trinity.ExecutedCopy
---@field task integer its producer
---@field output integer which of the producer's outputs
---@field from integer device
---@field to integer device
---@field bytes number
---@field start_s number
---@field end_s number
