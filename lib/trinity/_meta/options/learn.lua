---@meta _
-- Options that functions of lib/trinity/learn take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- Of trinity.cross_entropy.
---@class trinity.CrossEntropySettings: trinity.LearnerSettings
---@field epochs? integer gradient steps on one elite (default 4; 1 to 10000)
---@field elite? number share of the samples that are learned from (default 0.1; above 0, at most 1)
---@field samples? integer placements per update (default 64; 1 to 65536)
---@field learning_rate? number of Adam (default 0.02; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0; 0 to 1e6)

--- What trinity.features takes.
---@class trinity.FeatureOptions
---@field seed? integer of node2vec (default 1; 0 to 2^53)
---@field depth_waves? integer pairs of sine and cosine of the depth, of doubling frequency (default 5; 0 to 64)
---@field raw_time? boolean times instead of their logarithms (the paper) (default false)
---@field depth_feature? boolean depth in the graph as a column (default true)
---@field node2vec? trinity.Node2VecOptions|false columns of the surroundings in the graph; false: none
---@field vocabulary? 'shared'|'graph' whether types are numbered alike for all graphs (default 'shared')

--- How placements are imitated.
---@class trinity.ImitationSettings
---@field weights? number[] positive, one a placement (default: all alike)
---@field steps? integer gradient steps; -1: 0 for one placement, 40 for several (default -1; -1 to 100000)
---@field learning_rate? number of these steps (default 0.005; above 0, at most 10)
---@field smoothing? number share of probability that is left to other choices (default 0.05; 0 to 1)

--- What every learner takes; all but policy and name are also options of the method that it makes.
---@class trinity.LearnerSettings
---@field policy trinity.Policy|fun(problem: trinity.Problem, seed: integer): trinity.Policy a policy goes on learning
---@field name? string of the method (default: the learner's)
---@field samples? integer placements per update (default 16; 1 to 65536)
---@field learning_rate? number of Adam (default 0.002; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0.01; 0 to 1e6)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)

--- How node2vec walks and learns.
---@class trinity.Node2VecOptions
---@field dimensions? integer columns; 0: none (default 64; 0 to 100000)
---@field return_parameter? number p: below 1 favours going back (default 0.25; 1e-9 to 1e9)
---@field in_out_parameter? number q: above 1 keeps the walk local (default 4; 1e-9 to 1e9)
---@field walk_length? integer nodes of a walk (default 8; 1 to 100000)
---@field walks_per_node? integer walks that begin at a node (default 10; 1 to 100000)
---@field window? integer nodes on either side that are predicted (default 2; 1 to 100000)
---@field epochs? integer passes over all walks (default 3; 1 to 100000)
---@field negatives? integer drawn nodes per predicted one (default 5; 1 to 100000)
---@field learning_rate? number of the skip-gram model (default 0.025; 0 to 100)

--- Settings of methods.colocrl and methods.hierarchical, with the defaults of the default preset.
---@class trinity.PlacerOptions: trinity.SearchOptions
---@field groups? integer 0: colocrl min(units, 128), hierarchical min(units, 20 x devices, 256), preset 'paper' min(units, 256) (default 0; 0 to the units)
---@field samples? integer placements per update (default 16; 1 to 65536)
---@field hidden? integer width of the LSTMs (default 64; 1 to 8192)
---@field published_reward? boolean learn from minus the root of the step time, not the problem's reward (default true)
---@field learning_rate? number of Adam (default 0.01; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0.01; 0 to 1e6)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (default 19; 1 to 1e9)
---@field normalise_advantage? boolean divides advantages by their root mean square (default true)
---@field preset? 'default'|'paper' 'paper': what its authors say, where no option says otherwise (manual/papers.md) (default 'default')
---@field features? 'node2vec'|'paper' 'paper': a learned embedding of the type, shapes of outputs, neighbours; and of a group theirs (default 'node2vec')
---@field attention? 'scaled'|'additive' of the decoder: by products, or v . tanh(W2 h + W1 h_j) (default 'scaled')
---@field decoder_start? 'zero'|'encoder' the decoder's first state: zeros, or the encoder's last (default 'zero')
---@field decoder_input? 'group_and_device'|'device' what the decoder reads: the encoded group and the device before, or the device before (default 'group_and_device')
---@field noise_amplitude? number placements are drawn by logits with even noise up to it, of both signs (default 0; 0 to 1000)
---@field noise_steps? integer updates with noise (default 500; 0 to 1e9)
---@field valid_only_after? integer updates after which only placements that fit teach; 0: never (default 0; 0 to 1e9)

--- What policies.network takes.
---@class trinity.PolicyNetworkOptions
---@field hidden? integer width of the hidden layer (default 64; 1 to 65536)
---@field seed? integer of the initial weights (default 1; 0 to 2^53)
---@field features? trinity.FeatureOptions what the network is told

--- What a policy is made of.
---@class trinity.PolicySpec
---@field problem trinity.Problem what placements are of
---@field logits function of every choice
---@field learned trinity.Module|(trinity.Module|trinity.TorchTensor)[] what the logits depend on
---@field choices? integer how many (default: the colocation units; 1 to 4194304)
---@field choice_of_unit? integer[]|trinity.Placement the choice of every unit (default: one each)

--- What policies.table takes.
---@class trinity.PolicyTableOptions
---@field groups? integer how many (default: min(units, 20 x devices); 1 to the units)

--- Of trinity.ppo.
---@class trinity.PpoSettings: trinity.ReinforceSettings
---@field epochs? integer gradient steps on one batch (default 4; 1 to 10000)
---@field clip? number epsilon, per choice (default 0.2; above 0, at most 1e6)

--- Of trinity.reinforce.
---@class trinity.ReinforceSettings: trinity.LearnerSettings
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (default 19; 1 to 1e9)
---@field normalise_advantage? boolean divides advantages by their root mean square (default true)
---@field advantage? 'moving_average'|'batch'|'ranks'|fun(rewards: number[]): number[] what is learned from: rewards less their moving average, less the batch's mean over its deviation, their ranks from -0.5 to 0.5, or a function of the batch's rewards (default 'moving_average')
