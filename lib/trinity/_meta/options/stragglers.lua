---@meta _
-- Options that functions of lib/trinity/stragglers take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- Which operations of a replay are chosen: those that all fields say.
---@class trinity.ReplayChoice
---@field type? string type of operations, one of replay.types
---@field worker? integer replica of the model, from 0 (0 or more)
---@field stage? integer stage of the pipeline, from 0 (0 or more)
