---@meta _
-- Options that functions of lib/trinity/parallel take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.OnError 'raise'|'collect'

--- What trinity.parallel_map takes.
---@class trinity.ParallelOptions
---@field workers? integer processes; 1 runs the items in this one (default: trinity.threads(); 1 to 1024)
---@field seed? integer the seeds of items follow from it (default 1; 0 or more)
---@field quiet? boolean no progress line (default false)
---@field on_error? trinity.OnError raise the error of the first item that fails, or collect all (default 'raise')
