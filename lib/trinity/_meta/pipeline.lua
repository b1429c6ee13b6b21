---@meta _
-- Pipelines: planners, settings of methods.tapp, recomputation, replicated stages. See trinity.lua.
error 'this file is for editors'

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

---@class trinity.RecomputeOptions
---@field stage trinity.Placement|integer[] per operator; 0: it is left as it is
---@field eager? boolean a stage may begin before a gradient comes in (false)

---@class trinity.StageReplicaOptions
---@field stage trinity.Placement|integer[] per operator
---@field replicas integer[] per stage
---@field bucket_bytes? integer gradients that are reduced together (default 25e6)
---@field algorithm? trinity.CollectiveAlgorithm default 'automatic'
---@field at_share? (trinity.Graph|false)[] per stage the network at a replica's part of the batch; without: costs divided
