---@meta _
-- Options that functions of lib/trinity/formats take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.ExportFormat 'accelerate'|'autoparallel'|'chakra'|'deepspeed'|'megatron'|'pytorch_schedule'|'torchtitan'

--- How a plan is written for another program.
---@class trinity.ExportOptions
---@field format trinity.ExportFormat whose file ('trinity help formats' lists them)
---@field folder? string where the files go; otherwise a single one is returned as text
---@field lossless? boolean refuse what cannot be said, instead of naming it on standard error (default false)
---@field cut_blocks? boolean accelerate: layers may be on several devices (default false)
---@field device_names? string[] accelerate: what devices are called (default: numbers from 0)
---@field nodes? string autoparallel: the file of get_json(), whose nodes get placements
