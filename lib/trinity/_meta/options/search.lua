---@meta _
-- Options that functions of lib/trinity/search take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What every method takes.
---@class trinity.SearchOptions
---@field seed? integer fixes every random number (default 1; 0 or more)
---@field evaluations? integer placements to simulate (default 2000; 1 or more)
---@field seconds? number wall-clock limit; results then depend on the machine's speed (default: no limit; above 0)
---@field quiet? boolean no progress line (default false)
---@field rescue? string a file for the best so far when the script fails (default: in the run's folder)
