---@meta _
-- Options that functions of lib/trinity/execute take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What trinity.execute takes.
---@class trinity.ExecuteOptions
---@field steps? integer how many (default 15; 1 to 1e6)
---@field warm_up? integer steps of these that are not measured (default 5; 0 or more)
---@field seed? integer of weights, data and dropout (default 1; 0 or more)
---@field learning_rate? number of stochastic gradient descent (default 0.01; 0 or more)
---@field devices? string[] per device of the cluster 'cpu:N', the N-th core from 0, or 'cuda:N' (default: 'cpu:0', 'cpu:1', ...)
---@field memory_limit_bytes? integer the most that tensors of a device may take; more is an error (default: no limit; 0 to 2^53)
---@field seconds? number after which no step begins (default: no limit; above 0)
---@field quiet? boolean no progress line (default false)

--- What trinity.profile.measure takes.
---@class trinity.ProfileOptions
---@field devices? string[] 'cpu:0', 'cuda:0', ... (default { 'cpu:0' })
---@field steps? integer measured steps, whose medians count (default 10; 1 or more)
---@field warm_up? integer steps before (default 5; 0 or more)
---@field sizes? number[] bytes of copies (default: 1 KiB to 256 MiB, each four times the last)
---@field copies? integer of every size (default 7; 1 to 10000)
---@field seed? integer of weights and data (default 1; 0 or more)
---@field gpu_memory_bytes? number of a GPU (default 2^34; above 0)
---@field model? string the name that the profile says (default: the graph's)
---@field batch_size? integer what the profile says (default 0; 0 or more)
---@field quiet? boolean nothing on standard error (default false)
---@field seconds? number after which no step begins, once one is measured (default: no limit; above 0)
