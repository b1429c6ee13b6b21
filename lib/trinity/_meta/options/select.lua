---@meta _
-- Options that functions of lib/trinity/select take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What trinity.select takes.
---@class trinity.SelectOptions
---@field seconds? number wall-clock limit, reading a file included (default 60; 0 or more)
---@field seed? integer fixes every random number (default 1; 0 or more)
---@field rounds? integer of search at most; what ends by rounds is the same on every machine (default: as many as there is time for; 0 or more)
---@field table_bytes? integer what tables of the exact solver may take (default 2147483648; 0 or more)
---@field quiet? boolean no progress line (default false)
