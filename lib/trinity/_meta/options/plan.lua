---@meta _
-- Options that functions of lib/trinity/plan take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What trinity.plan takes.
---@class trinity.PlanOptions
---@field graph trinity.Graph|fun(micro_batch: integer): trinity.Graph a training step; a function of the samples of a micro-batch where these may vary
---@field cluster trinity.Cluster where it runs
---@field global_batch integer samples of a step of all replicas (1 to 2^30)
---@field space? table<string, any> values of dimensions: one, a list, or a function of the point so far that returns a list (default: all of it)
---@field reward? trinity.Reward is maximised; by any other than the default the simulated are those of the least bounds on the step (default: minus the step time)
---@field plans? integer that are kept: bounds prune what cannot be among them (default 5; 1 to 1000)
---@field simulations? integer strategies that are simulated at most (default 24; 1 to 2^30)
---@field tasks? integer operators in all micro-batches that one simulation runs at most; what has more is left (default 2e7; 1 to 2^50)
---@field refinements? integer of moves from the best, beside these (default 12; 0 to 2^30)
---@field seconds? number limit; results then depend on the machine (default inf; 0 or more)
---@field quiet? boolean shows no progress (default false)
