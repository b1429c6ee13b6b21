---@meta _
-- Options that functions of lib/trinity/job take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What trinity.job takes beside a file.
---@class trinity.JobFileOptions
---@field gpus? integer GPUs of the job (default: what the file says; 1 to 2^30)
---@field launch? string the line that launches it: degrees of DeepSpeed's program (default: none)
---@field capability? number compute capability of the GPUs (Hopper: 9, Blackwell: 10) (default 9)
