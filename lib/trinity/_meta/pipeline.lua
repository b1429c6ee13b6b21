---@meta _
-- Pipelines: planners, settings of methods.tapp, recomputation, replicated stages. See trinity.lua.
error 'this file is for editors'

---@class trinity.PipelineOptions
---@field method? string see trinity.pipeline.methods(); default 'max_load_annealing'
---@field devices? integer|integer[] accelerators, or a number a level, innermost first; default the file's, the cluster's (in a node and nodes, where these hold equally many), or 4
---@field bandwidth_bytes_per_s? number|number[] between devices, or a number a level; default the file's, or the slowest wire of the cluster between as many devices
---@field memory_bytes? number of a device; default the file's, or the least of the cluster's devices; 0: no limit
---@field cpus? integer that take nodes too; default the file's
---@field micro_batches? integer of a batch (piper); default the file's, or 32
---@field seconds? number wall-clock limit of planning: the best by then, optimal only if that is proved; results then depend on the machine
---@field seed? integer default 1
---@field rounds? integer of max_load_annealing; default 10, or any number within `seconds`
---@field quiet? boolean no progress line
---@field cluster? string what our own models and ONNX files are costed for: a kind of device (default 'p100') or a whole cluster ('dgx_a100x2'), whose devices count too; a problem has its own
---@field expert? string a split of the authors' (method expert); default where their repository has it
---@field cost? 'code'|'paper' pipedream: whose costs
---@field straight? boolean pipedream: no replicas, as many stages as devices
---@field fewer_devices? boolean pipedream: devices may stay idle
---@field activation_compression? number pipedream: transfers are so many times smaller; 0: they are ignored
---@field compress_branches? 'auto'|'yes'|'no' pipedream: chains behind branches made one layer
---@field data_parallel? boolean piper: stages may be replicated (true)
---@field tensor_parallel? boolean piper: layers may be split (true)

---@class trinity.PipelineMachine
---@field devices integer accelerators, of all levels
---@field cpus integer
---@field memory_bytes integer of an accelerator; 0: no limit
---@field bandwidth_bytes_per_s number of the outermost level
---@field micro_batches integer

---@class trinity.PipelineStage
---@field nodes integer[] numbers of nodes, in the order of the file
---@field devices integer how many it is on
---@field first_device integer the first of them; 0 and below are CPUs
---@field load? number of the device, transfers included (piper: time per sample)
---@field compute? number its times alone (pipedream)
---@field replicas? integer[] by level, innermost first (pipedream)
---@field data_parallel? integer (piper)
---@field tensor_parallel? integer (piper)
---@field memory_bytes? number of a device (piper)
---@field recomputed_layers? integer that compute their activations again (piper)

--- Why a split does not fit.
---@class trinity.PipelineInfeasibility
---@field text string in words
---@field device? integer the accelerator that is over its memory by most, from 1
---@field needed_bytes? integer of that device
---@field capacity_bytes? integer of a device
---@field over_bytes? integer the difference
---@field node? integer the first on an accelerator that only CPUs support

---@class trinity.PipelineResult
---@field method string
---@field network string
---@field format string of the file
---@field unit string of times: 's' or 'ms'
---@field max_load? number of the slowest device or stage; nil where nothing fits
---@field feasible boolean whether the split fits
---@field optimal boolean whether nothing better can be, by the method's own measure
---@field seconds number of planning
---@field stages trinity.PipelineStage[] in pipeline order
---@field assignment integer[] the device of every node: accelerators from 1, 0 the CPU, -1, ... more of them
---@field nodes (string|number)[] what the file calls its nodes
---@field machine trinity.PipelineMachine
---@field loads? number[] of every device: accelerators, then CPUs
---@field contiguous_max_load? number what max_load_annealing began with
---@field states? integer cuts that pipedream chose from
---@field cuts? string what these are: 'antichains', 'antichains of compressed branches', 'one order', 'few of one order' (when time was up, or tables would be too large)
---@field data_parallel? number pipedream: all devices as replicas of one stage
---@field ideals? integer down-sets that were looked at
---@field by? string whose split expert is: 'the authors' or 'equal layers'
---@field infeasibility? trinity.PipelineInfeasibility where it does not fit
---@field least_infeasible? trinity.PipelineResult where the method has no split: cuts that balance memory (assignment, loads, max_load)
---@field stopped? boolean true after Ctrl-C

--- What a method of your own is given, beside network, levels and about.
---@class trinity.PipelinePlan
---@field source string|trinity.Problem
---@field options trinity.PipelineOptions with seconds and seed
---@field machine trinity.PipelineMachine

---@class trinity.PipelineMethod
---@field run fun(plan: trinity.PipelinePlan): trinity.PipelineResult gives feasible, max_load, optimal, stages, assignment
---@field help? string a line
---@field own? table<string, any> its own options, with rules as lib/trinity/base/check.lua has them

---@alias trinity.TappMode 'cuts'|'isotonic'|'literal'

--- Settings of methods.tapp; all defaults are proposals, the paper states none (lib/trinity/methods/tapp.lua).
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
