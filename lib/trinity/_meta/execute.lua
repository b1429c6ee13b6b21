---@meta _
-- What is executed, measured and mapped on this machine. See trinity.lua.
error 'this file is for editors'

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
---@field stopped boolean by Ctrl-C: it holds fewer steps than were asked for

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

---@class trinity.ProfileKind
---@field memory_bytes number of one device
---@field peak_flops_per_s number of a product of float32 matrices
---@field memory_bandwidth_bytes_per_s number read and written
---@field launch_s number
---@field compute_efficiency number of all operators together
---@field memory_efficiency number
---@field operators table<string, table> compute_efficiency, memory_efficiency, contention by type of operator
---@field residuals trinity.ProfileResiduals
---@field operator_time_s table<string, number> by name, on a device of speed 1
---@field contention number how many times as long operators take while all devices of the kind compute

---@class trinity.ProfileLink
---@field from string
---@field to string
---@field bytes number[] sizes of the copies
---@field time_s number[] their medians
---@field latency_s number what its copies within steps take beyond their bytes over the bandwidth
---@field bandwidth_bytes_per_s number
---@field residuals trinity.ProfileResiduals

--- Of |predicted / measured - 1|.
---@class trinity.ProfileResiduals
---@field count integer
---@field median number
---@field mean number
---@field largest number
