---@meta _
-- Options that functions of lib/trinity/methods take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.Preset 'default'|'paper'|'code'
---@alias trinity.TableFormat 'text'|'markdown'|'latex'|'csv'
---@alias trinity.TappMode 'cuts'|'isotonic'|'literal'

--- Settings of methods.trinity: its stages, then those of the policy, with the defaults of the default preset.
---@class trinity.AgentOptions: trinity.StageOptions
---@field policy? boolean|number whether the policy of placements searches, or its share of the budget (default: true where nothing is refined, or a share)
---@field rank? boolean|string|trinity.Ranker|fun(candidates: trinity.MoveCandidates): number[] who chooses among moves: true for the weights that come with trinity, a file, a ranker, a function (default: true; of the paper's presets false)
---@field patience? integer policy updates without a better placement after which the refinement begins (default 4; 1 or more)
---@field load? string weights of a trained policy to start from
---@field save? string where the weights of the trained policy go
---@field preset? trinity.Preset 'paper': the settings that the paper prints; 'code': those of the released code (default 'default')
---@field node2vec? trinity.Node2VecOptions|false columns of the surroundings in the graph; false: none
---@field groups? integer groups of units; 0: min(256, 20 x devices, units) (item 8) (default 0; 0 to 4096)
---@field samples? integer placements per policy update (default 16; 1 to 4096)
---@field epochs? integer gradient steps on one batch of samples (default 4; 1 to 100)
---@field learning_rate? number of Adam (item 7) (default 0.002; 1e-9 to 10)
---@field learning_rate_decay? number factor after every decay_every gradient steps beyond decay_after; 1: none (default 1; 1e-6 to 1)
---@field decay_every? integer gradient steps between two decays (default 50; 1 to 1e9)
---@field decay_after? integer gradient steps without decay (default 400; 0 to 1e9)
---@field clip? number PPO's epsilon (item 14) (default 0.2; 1e-6 to 10)
---@field ratio? 'action'|'group_mean'|'joint' what PPO takes for a ratio of probabilities (item 13) (default 'action')
---@field credit? 'sample'|'action' what an action learns from: its sample's reward, or what it contributes to it by the timeline of the sample's step (default 'sample')
---@field entropy_weight? number bonus per action, in units of the advantage (default 0.01; 0 to 100)
---@field entropy_updates? integer updates in which entropy_weight falls to entropy_last, by the same factor each; 0: never (default 0; 0 to 1e9)
---@field entropy_last? number where entropy_weight ends (default 0.05; 1e-9 to 100)
---@field gradient_norm? number global norm that gradients are clipped to (default 1; 1e-9 to 1e9)
---@field temperature? number T of logits C tanh(u / T) (eq. 9) (default 10; 1e-6 to 1e6)
---@field tanh_constant? number C of logits C tanh(u / T) (default 5; 1e-6 to 80)
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (eq. 15) (default 19; 1 to 1e9)
---@field baseline_every_epoch? boolean every gradient step moves the baseline (the released code), not every batch (default false)
---@field exclude_failing_after? integer gradient steps after which samples that failed are left out of loss and baseline (the released code: 2000); -1: never (default -1; -1 to 1e9)
---@field noise_amplitude? number uniform noise on logits while sampling, outside the ratio (default 0; 0 to 100)
---@field noise_steps? integer batches during which there is noise (item 16) (default 0; 0 to 1e9)
---@field dropout? number in the partition network, behind its first layer (default 0; 0 to 0.99)
---@field dropout_mask? 'batch'|'sample'|'fresh'|'off' when the dropout mask is drawn: for a batch, for every sample, for every evaluation, or while sampling alone (item 12) (default 'batch')
---@field partition_network? 'mlp'|'linear' 64 and 128 wide with ReLU, or one linear layer of 64 (the released code) (default 'mlp')
---@field normalise_advantage? boolean advantages divided by their root mean square in the batch or its moving average, whichever is larger: noise does not shake a policy that has settled (default true)
---@field order_groups? boolean groups of a sample numbered in topological order, empty ones last: the schedule network walks from inputs to loss (default true)
---@field switch_probability? number with which the untrained schedule network leaves the previous group's device: first placements then have few cuts; 0: every device alike (default 0.1; 0 to 0.99)
---@field dealt? number probability that the untrained schedule network gives group g to device g mod devices; 0: every device alike (default 0; 0 to 0.99)
---@field schedule_learns? boolean whether the schedule network is trained, or keeps its first weights (default true)
---@field contiguity? number how strongly the untrained partition network puts neighbours in the order of work into one group; 0: not at all (default 6; 0 to 1e6)
---@field hidden? integer width of each direction of the encoder; the decoder's is twice that (default 96; 1 to 4096)
---@field layers? integer LSTM layers of encoder and decoder; two run on LibTorch's operators, several times slower (default 1; 1 to 2)
---@field actions? 'units'|'operators' what draws a group: what has to share a device, or every operator (the paper), the first of those that have to share one deciding for all (default 'units')
---@field device? string where the policy trains: 'cpu', or 'cuda:0' and the like where LibTorch has CUDA (default 'cpu')
---@field plain_torch? boolean LibTorch's own operators and autograd also on the processor, a slow reference (default false)
---@field raw_time? boolean times instead of their logarithms (the paper) (default false)
---@field raw_output? boolean output sizes of units and groups instead of their logarithms (the paper) (default false)
---@field mean_output_size? boolean mean output size of a group's members (the paper's prose) instead of the sum (its Table 2) (default false)
---@field group_time? boolean the time of a group's members in its embedding (default true)
---@field adjacency? 'both'|'out' which groups a group's embedding names: where edges go and come from, or go (the paper) (default 'both')
---@field depth_feature? boolean depth in the graph as a column (default true)
---@field depth_waves? integer pairs of sine and cosine of the depth, of doubling frequency (default 5; 0 to 64)
---@field scale_by_mean? boolean times and sizes divided by their mean instead of Z-scores (the released code) (default false)
---@field type_feature? 'embedding'|'index' how the type of an operator is told; 'index': by its rank (the released code) (default 'embedding')
---@field group_counts? boolean counts of types and edges instead of shares and bits in group embeddings, rows divided by their largest entry plus 1 (the released code) (default false)

--- Settings of methods.annealing.
---@class trinity.AnnealingOptions: trinity.SearchOptions
---@field starts? trinity.Placement[] placements that are priced first; the best is the start (default: everything on one device)
---@field rank? boolean|string|trinity.Ranker|fun(candidates: trinity.MoveCandidates): number[] who chooses among moves: true for the weights that come with trinity, a file, a ranker, a function (default: moves are tried as they are drawn)
---@field first_temperature? number in multiples of the start's value per unit (default 2; 1e-12 to 1e12)
---@field last_temperature? number in multiples of the start's value per unit, at most first_temperature (default 0.01; 1e-12 to 1e12)
---@field batch? integer trials of one state, simulated together (default 8; 1 to 4096)
---@field groups? boolean one move in eight takes a group of units of any level (default false)
---@field evenly_one_in? integer one seed in so many is drawn evenly, others by how long they hold up the step (default 2; 1 to 1e6)
---@field look_every? integer evaluations between two looks at the state (default 20; 1 to 1e9)
---@field candidates? integer moves drawn for each that is tried (default 10; 2 to 1024)
---@field sharpness? number one is drawn with odds exp(sharpness x score) (default 1.5; 0 to 100)
---@field plain_one_in? integer one move in so many is drawn as it comes (default 10; 1 to 1e6)

--- What trinity.compare takes: beside these, a table of its own options per method, under its name.
---@class trinity.CompareOptions: trinity.SearchOptions
---@field seeds? integer runs of every method that draws random numbers (default 1; 1 to 10000)
---@field out? string a folder that keeps finished runs; the same comparison goes on from there (default: none)
---@field labels? table<string, string> what tables call methods, by their names
---@field [string] any options of the method of that name

--- What comparison:table takes.
---@class trinity.ComparisonTableOptions
---@field columns? string[] which, in order (default: the usual ones, of several seeds with mean, deviation and p)
---@field format? trinity.TableFormat how it is written; 'csv' with all digits and units in its names (default 'text')
---@field ranges? boolean whether cells have the range beside the median (default false)

--- Settings of methods.doppler.
---@class trinity.DopplerOptions: trinity.SearchOptions
---@field groups? integer nodes; 0: min(units, 256) (default 0; 0 to the units or 512)
---@field samples? integer episodes an update (default 4; 1 to 65536)
---@field hidden? integer width of the networks (default 32; 1 to 256)
---@field rounds? integer of messages (default 6; 1 to 100)
---@field imitation? integer updates that imitate a list scheduler first, at most a quarter of the budget (default 30; 0 to 1e9)
---@field learning_rate? number of Adam (default 0.001; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0.001; 0 to 1e6)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)
---@field last_learning_rate? number what the rate falls to, evenly over the evaluations of the budget; 0: it stays (default 0; 0 to 1000)
---@field discount? number of the reward, a decision before the last (default 1; above 0, at most 1)
---@field baseline_episodes? integer over which the mean reward is the baseline (default 40; 1 to 1e9)
---@field epsilon? number share of choices drawn evenly while it learns from rewards; falls to 0 over the budget (default 0; 0 to 1)
---@field greedy? boolean other choices are the likeliest, instead of drawn by their probabilities (default false)
---@field preset? 'default'|'paper' 'paper': what its authors say, where no option says otherwise (manual/papers.md) (default 'default')
---@field learn? boolean false: the policies draw and stay as they are (default true)
---@field load? string weights of another search to begin with
---@field save? string where the weights go

--- Settings of methods.expert.
---@class trinity.ExpertOptions: trinity.SearchOptions
---@field rule? 'automatic'|'depth'|'layers'|'lstm'|'single' how: the network's own rule (layers for others), by depth, by layers, by LSTM layers, on one device (default 'automatic')

--- Settings of methods.fm.
---@class trinity.FmOptions: trinity.SearchOptions
---@field imbalance? number share by which a device may exceed what falls to it of work and memory (default 0.05; 1e-6 to 10)

--- Settings of methods.heuristics.
---@class trinity.HeuristicsOptions: trinity.SearchOptions
---@field warm_start? boolean|(string|trinity.Placement)[] whether heuristics come first, or which (default: true; of the paper's presets false)

--- Settings of methods.learned_list.
---@class trinity.LearnedListOptions: trinity.SearchOptions
---@field weights? string|trinity.Scheduler a file, or what trinity.schedulers makes (default: those that come with trinity)

--- Settings of list schedulers: methods.heft and the like.
---@class trinity.ListScheduleOptions: trinity.SearchOptions
---@field order? boolean whether the strategy has their order of operators too (default false)

--- Settings of methods.local_search.
---@class trinity.LocalSearchOptions: trinity.SearchOptions
---@field starts? trinity.Placement[] placements that are priced first; the best is the start (default: everything on one device)

--- Settings of methods.mcmc.
---@class trinity.McmcOptions: trinity.SearchOptions
---@field starts? trinity.Placement[] placements that are priced first; the best is the start (default: everything on one device)
---@field alpha_per_ms? number alpha per millisecond; 0: 100 over the start's (default 0; 0 to 1e12)

--- What methods.register takes about a method.
---@class trinity.MethodOptions
---@field help? string a line about it
---@field source? string who published it
---@field needs? string what it asks of a problem
---@field budget? boolean whether it spends evaluations (default false)
---@field deterministic? boolean whether the seed changes nothing (default false)
---@field options? table what it takes, of the library's own methods (lib/trinity/base/options.lua)

--- Settings of methods.metis.
---@class trinity.MetisOptions: trinity.SearchOptions
---@field imbalance? number share by which a device may exceed what falls to it of work and memory (default 0.03; 1e-6 to 10)

--- Settings of methods.pase.
---@class trinity.PaseMethodOptions: trinity.SearchOptions
---@field seconds? number wall-clock limit (default 60; above 0)
---@field choose? 'best'|'mcmc'|'data_parallel'|'owt'|'expert'|'tofu' PaSE's optimum, or what it is compared with (default 'best')
---@field cutoff? integer the smallest block of a dimension (default 1; 1 to 2^40)
---@field factors? trinity.PaseFactors how many parts a dimension may have (default 'divisors')
---@field peak_flops? number of a device, for the cost model (default 1e13; above 0)
---@field bandwidth_bytes_per_s? number of the cost model; 0: that of the slowest route (default 0; 0 or more)
---@field iterations? integer of 'mcmc' (default 250000; 1 to 2^40)

--- Settings of methods.placeto.
---@class trinity.PlacetoOptions: trinity.SearchOptions
---@field groups? integer nodes; 0: min(units, 20 x devices, 64) (default 0; 0 to the units or 1024)
---@field samples? integer episodes at once (default 4; 1 to 65536)
---@field hidden? integer width of the network (default 32; 1 to 8192)
---@field rounds? integer of messages (default 4; 1 to 100)
---@field baseline_episodes? integer updates that the baseline of a step looks back (default 10; 1 to 1e6)
---@field learning_rate? number of Adam (default 0.01; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0.01; 0 to 1e6)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)
---@field preset? 'default'|'paper' 'paper': what its authors say, where no option says otherwise (manual/papers.md) (default 'default')
---@field episodes? integer after which the search ends, and evaluations where they are not given are what these take; 0: no bound (default 0; 0 to 1e9)
---@field last_learning_rate? number what the learning rate falls to, evenly over the budget; 0: it stays (default 0; 0 to 1000)
---@field features? 'node2vec'|'paper' 'paper': time, bytes of outputs and weights over the largest, which mean the same in every graph (default 'node2vec')
---@field learn? boolean false: the policy draws and stays as it is (default true)
---@field load? string weights of another search to begin with; features = 'paper'
---@field save? string where the weights go; features = 'paper'

--- Settings of methods.post.
---@class trinity.PostOptions: trinity.SearchOptions
---@field groups? integer 0: min(units, 20 x devices) (default 0; 0 to the units)
---@field samples? integer placements per step of PPO (default 12; 1 to 65536)
---@field epochs? integer gradient steps on one batch (default 4; 1 to 10000)
---@field clip? number PPO's epsilon, per choice (default 0.2; above 0, at most 1e6)
---@field elite? number share of the stretch that cross-entropy learns from (default 0.1; above 0, at most 1)
---@field elite_every? integer batches in a stretch (default 5; 1 to 1e6)
---@field learning_rate? number of Adam (default 0.05; above 0, at most 1000)
---@field entropy_weight? number bonus per choice (default 0.01; 0 to 1e6)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (default 19; 1 to 1e9)
---@field normalise_advantage? boolean divides advantages by their root mean square (default true)

--- Settings of methods.random.
---@class trinity.RandomOptions: trinity.SearchOptions
---@field batch? integer placements simulated at once (default 64; 1 to 1048576)

--- Settings of methods.scotch.
---@class trinity.ScotchOptions: trinity.SearchOptions
---@field imbalance? number share by which a device may exceed what falls to it of work and memory (default 0.05; 1e-6 to 10)

--- Settings of methods.best: the stages of the Trinity search but for its policy.
---@class trinity.StageOptions: trinity.HeuristicsOptions
---@field refine? boolean|number whether moves refine the best, or their share of the budget (default: true: the rest; of the paper's presets false)
---@field checkpoint? string a file that keeps what the search goes on from
---@field checkpoint_every? integer policy updates, or as many evaluations, between two checkpoints (default 10; 1 or more)
---@field resume? string a checkpoint to go on from

--- Settings of methods.tapp; all defaults are proposals, the paper states none (lib/trinity/methods/tapp.lua).
---@class trinity.TappOptions: trinity.SearchOptions
---@field groups? integer the most groups of layers; 0: as many as there are devices (default 0; 0 to the units or 4096)
---@field mode? trinity.TappMode contiguous groups by their ends, or a group a layer, repaired or not (default 'cuts')
---@field samples? integer placements per update (default 8; 1 to 65536)
---@field hidden? integer width of the allocation network's LSTMs (default 64; 1 to 8192)
---@field explore? number share of choices that are drawn uniformly (default 0.1; 0 to 1)
---@field repeats? integer evaluations of a placement that are averaged (default 5; 1 to 1e6)
---@field noise? number deviation of the factor that each of them is off by (default 0.02; 0 to 10)
---@field greedy_every? integer batches between evaluations of the most likely placement (default 10; 1 to 1e9)
---@field refine? number share of the budget that moves ends and nodes of the best placement's stages (default 0.5; 0 to 1)
---@field learn? boolean whether the policy is updated; false: its first state draws all along (default true)
---@field published_reward? boolean learn from minus the root of the step time, not the problem's reward (default true)
---@field learning_rate? number of Adam (default 0.006; above 0, at most 1000)
---@field entropy_weight? number bonus per choice, at least (default 0.01; 0 to 1e6)
---@field entropy_start? number bonus per choice at first (default 0.1; 0 to 1e6)
---@field entropy_decay? number factor per batch in between (default 0.99; 0 to 1)
---@field gradient_norm? number common norm that gradients are clipped to (default 1; above 0, at most 1e9)
---@field baseline_n? number the baseline decays by (N - 1) / (N + 1) (default 19; 1 to 1e9)
---@field normalise_advantage? boolean divides advantages by their root mean square (default true)
