---@meta _
-- Pipelines: settings of methods.tapp, of recomputation and of replicated stages (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@alias trinity.TappMode 'cuts'|'isotonic'|'literal'

--- Settings of methods.tapp; all defaults are proposals, the article states none (lib/trinity/methods/tapp.lua).
---@class trinity.TappOptions: trinity.SearchOptions
---@field groups? integer the most groups of layers; 0: as many as there are devices
---@field mode? trinity.TappMode contiguous groups by their ends, or a group a layer, repaired or not ('cuts')
---@field samples? integer placements per update (8)
---@field hidden? integer width of the allocation network's LSTMs (64)
---@field explore? number share of choices that are drawn uniformly (0.1)
---@field repeats? integer evaluations of a placement that are averaged (5)
---@field noise? number deviation of the factor that each of them is off by (0.02)
---@field greedy_every? integer batches between evaluations of the most likely placement (10)
---@field refine? number share of the budget that moves ends and nodes of the best placement's stages (0.5)
---@field published_reward? boolean learn from minus the root of the step time, not the problem's reward (true)
---@field learning_rate? number (6e-3)
---@field entropy_weight? number at least (1e-2)
---@field entropy_start? number at first (0.1)
---@field entropy_decay? number factor per batch in between (0.99)
---@field gradient_norm? number (1)
---@field baseline_n? number (19)
---@field normalise_advantage? boolean (true)

---@class trinity.RecomputeOptions
---@field stage trinity.Placement|integer[] per operator; 0: it is left as it is
---@field eager? boolean a stage may begin before a gradient comes in (false)

---@class trinity.StageReplicaOptions
---@field stage trinity.Placement|integer[] per operator
---@field replicas integer[] per stage
---@field bucket_bytes? integer gradients that are reduced together (default 25e6)
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'
---@field at_share? (trinity.Graph|false)[] per stage the network at a replica's part of the batch; without: costs divided
