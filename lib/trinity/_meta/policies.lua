---@meta _
-- Policies and learners (LuaLS annotations); nothing runs it.
error 'this file is for editors'

--- What policies are told of a problem: a row per colocation unit.
---@class trinity.Features
---@field units integer
---@field width integer columns of `values`
---@field type_count integer
---@field edges integer
---@field values trinity.TorchTensor float32 [units, width], each column standardised over the units of the graph
---@field columns trinity.FeatureColumns where `values` has what
---@field types trinity.TorchTensor int64 [units]: the operator type of the unit's first operator, 1 to type_count
---@field type_names string[] by number. With vocabulary = 'shared' the same for all graphs: 'other 1' to 'other 32' for types that the engine does not know, by a hash of their name, then those that it knows, each with its gradient behind it (engine/features/features.h). With 'graph' those of this graph, the most common first; from the 200th on they share a number
---@field position trinity.DoubleArray share of the work that comes before the unit's middle
---@field time_s trinity.DoubleArray of every unit's operators, averaged over devices
---@field output_bytes trinity.DoubleArray of every unit's forward operators
---@field from trinity.Placement int32 array: the edges between units
---@field to trinity.Placement int32 array
---@field bytes trinity.DoubleArray

--- Groups of columns from left to right, and each under its name where there is one.
---@class trinity.FeatureColumns
---@field [integer] trinity.FeatureColumn
---@field time trinity.FeatureColumn of the unit's operators, log1p of microseconds or, with raw_time, microseconds
---@field output_bytes trinity.FeatureColumn log1p
---@field depth? trinity.FeatureColumn in the graph, 0 to 1
---@field depth_waves? trinity.FeatureColumn sine and cosine of pi 2^k depth for k = 0, 1, ...
---@field node2vec? trinity.FeatureColumn the unit's surroundings, in directions that every graph and seed has its own of

---@class trinity.FeatureColumn
---@field name string
---@field first integer from 1
---@field count integer

---@class trinity.FeatureOptions
---@field seed? integer of node2vec (1)
---@field depth_waves? integer pairs of sine and cosine of the depth (5)
---@field raw_time? boolean times instead of their logarithms
---@field depth_feature? boolean depth in the graph as a column (true)
---@field node2vec? trinity.Node2VecOptions|false false: no such columns
---@field vocabulary? 'shared'|'graph' whether types are numbered alike for all graphs ('shared')

---@class trinity.PolicySpec
---@field problem trinity.Problem
---@field logits function
---@field learned trinity.Module|(trinity.Module|trinity.TorchTensor)[]
---@field choices? integer default the colocation units
---@field choice_of_unit? integer[]|trinity.Placement the choice of every unit (default one each)

---@class trinity.PolicyTableOptions
---@field groups? integer default min(units, 20 x devices)

---@class trinity.PolicyNetworkOptions
---@field hidden? integer default 64
---@field seed? integer of the initial weights (1)
---@field features? trinity.FeatureOptions

--- What one update did.
---@class trinity.AgentReport
---@field mean_reward number
---@field loss number minus the clipped objective and the entropy bonus, before the last gradient step
---@field learning_rate number of the last gradient step
---@field baseline number after the update
---@field entropy_groups number mean per unit, nats
---@field entropy_devices number mean per group, nats
---@field clipped_share number of actions outside [1 - clip, 1 + clip] in the last epoch
---@field gradient_norm number before clipping, last epoch

---@class trinity.ImitationSettings
---@field weights? number[] positive, one a placement (all alike)
---@field steps? integer gradient steps (0 for one placement, 40 for several)
---@field learning_rate? number of these steps (5e-3)
---@field smoothing? number share of probability that is left to other choices (0.05)

---@class trinity.ImitationReport
---@field steps integer
---@field log_likelihood_groups number mean per unit, nats
---@field log_likelihood_devices number mean per group, nats
---@field agreement number share of the work that greedy() then places as the first placement does

---@class trinity.AgentActions
---@field groups trinity.TorchTensor int64 [samples, units], from 1
---@field devices trinity.TorchTensor int64 [samples, groups], from 1
---@field group_logs trinity.TorchTensor log-probabilities of `groups`
---@field device_logs trinity.TorchTensor log-probabilities of `devices`

---@class trinity.AgentProfile
---@field sample_s number
---@field forward_s number
---@field objective_s number
---@field backward_s number
---@field optimise_s number
---@field exchange_s number with the other ranks of a job, waiting for them included

--- What every learner takes; all but policy and name are also options of the method that it makes.
---@class trinity.LearnerSettings
---@field policy trinity.Policy|fun(problem: trinity.Problem, seed: integer): trinity.Policy a policy goes on learning
---@field name? string of the method
---@field samples? integer placements per update (16; cross_entropy 64)
---@field learning_rate? number of Adam (2e-3; cross_entropy 2e-2)
---@field entropy_weight? number bonus per choice (1e-2; cross_entropy 0)
---@field gradient_norm? number common norm that gradients are clipped to (1)

---@class trinity.ReinforceSettings: trinity.LearnerSettings
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (19)
---@field normalise_advantage? boolean divides advantages by their root mean square (true)
---@field advantage? 'moving_average'|'batch'|'ranks'|fun(rewards: number[]): number[] what is learned from: rewards less their moving average, less the batch's mean over its deviation, their ranks from -0.5 to 0.5, or a function of the batch's rewards

---@class trinity.PpoSettings: trinity.ReinforceSettings
---@field epochs? integer gradient steps on one batch (4)
---@field clip? number epsilon, per choice (0.2)

---@class trinity.CrossEntropySettings: trinity.LearnerSettings
---@field epochs? integer gradient steps on one elite (4)
---@field elite? number share of the samples that are learned from (0.1)

--- Settings of methods.post.
---@class trinity.PostOptions: trinity.SearchOptions
---@field groups? integer 0: min(units, 20 x devices)
---@field samples? integer placements per step of PPO (12)
---@field epochs? integer gradient steps on one batch (4)
---@field clip? number (0.2)
---@field elite? number share of the stretch that cross-entropy learns from (0.1)
---@field elite_every? integer batches in a stretch (5)
---@field learning_rate? number (5e-2)
---@field entropy_weight? number (1e-2)
---@field gradient_norm? number (1)
---@field baseline_n? number (19)
---@field normalise_advantage? boolean (true)

--- Settings of methods.colocrl and methods.hierarchical.
---@class trinity.PlacerOptions: trinity.SearchOptions
---@field groups? integer 0: colocrl min(units, 128), hierarchical min(units, 20 x devices, 256)
---@field samples? integer placements per update (16)
---@field hidden? integer width of the LSTMs (64)
---@field published_reward? boolean learn from minus the root of the step time, not the problem's reward (true)
---@field learning_rate? number (1e-2)
---@field entropy_weight? number (1e-2)
---@field gradient_norm? number (1)
---@field baseline_n? number (19)
---@field normalise_advantage? boolean (true)

--- Settings of methods.placeto.
---@class trinity.PlacetoOptions: trinity.SearchOptions
---@field groups? integer nodes; 0: min(units, 20 x devices, 64)
---@field samples? integer episodes at once (4)
---@field hidden? integer width of the network (32)
---@field rounds? integer of messages (4)
---@field baseline_episodes? integer updates that the baseline of a step looks back (10)
---@field learning_rate? number (1e-2)
---@field entropy_weight? number (1e-2)
---@field gradient_norm? number (1)
