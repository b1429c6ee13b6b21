---@meta _
-- Profiles of real devices (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.ProfileOptions
---@field devices? string[] 'cpu:0', 'cuda:0', ...; default cpu:0 alone
---@field steps? integer measured steps, whose medians count; default 10
---@field warm_up? integer steps before; default 5
---@field sizes? number[] bytes of copies; default 1 KiB to 256 MiB, each four times the last
---@field copies? integer copies of every size; default 7
---@field seed? integer of weights and data; default 1
---@field gpu_memory_bytes? number of a GPU; default 16 GiB
---@field model? string the name that the profile says; default the graph's
---@field batch_size? integer what the profile says; default 0
---@field quiet? boolean nothing on standard error

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
