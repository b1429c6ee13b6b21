---@meta _
-- What trinity.parallel_map takes (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@alias trinity.OnError 'raise'|'collect'

---@class trinity.ParallelOptions
---@field workers? integer processes; default trinity.threads(); 1 runs the items in this process
---@field seed? integer the seeds of items follow from it; default 1
---@field quiet? boolean no progress line; default false
---@field on_error? trinity.OnError 'raise' (default) the error of the first item that fails, or 'collect' all
