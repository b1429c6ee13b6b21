---@meta _
-- The objects of trinity. See trinity.lua.
error 'this file is for editors'

---@class trinity.Cluster
---@field name string
---@field queue trinity.QueueModel what transfers contend for
---@field fingerprint string equal for equal clusters
---@field devices trinity.Device[]
local Cluster = {}

--- The route between two devices, folded.
---@param from integer
---@param to integer
---@return number latency_s
---@return number bandwidth_bytes_per_s
function Cluster:wire(from, to) end

--- The names of the channels on a route, in order: 'a -> b', 'a - b' (half duplex), a switch.
---@param from integer
---@param to integer
---@return string[]
function Cluster:route(from, to) end

--- What a collective costs.
---@param spec trinity.CollectiveQuery
---@return trinity.CollectiveCost
function Cluster:collective(spec) end

function Cluster:close() end

--- A cluster that is being written.
---@class trinity.Topology
local Topology = {}

--- Defines a kind of device for this cluster. Those of trinity.devices need no definition.
---@param name string
---@param fields trinity.DeviceTypeSpec
function Topology:device_type(name, fields) end

--- Adds devices to machine `node`: node/gpu0, ... `which`: how many, or the numbers behind their names.
---@param node string
---@param which integer|(integer|string)[]
---@param type string
---@param options? trinity.TopologyDevices
---@return string[] names
function Topology:devices(node, which, type, options) end

--- A switch that all its traffic together shares; switches without a limit need no mention.
---@param name string
---@param bandwidth_bytes_per_s number
function Topology:switch(name, bandwidth_bytes_per_s) end

--- Links two endpoints; an end that is a list gets a link each. `count` parallel wires add up.
---@param from string|string[]
---@param to string|string[]
---@param wire trinity.WireName|trinity.Wire
---@param count? integer
function Topology:link(from, to, wire, count) end

--- Links every two of a list of endpoints.
---@param endpoints string[]
---@param wire trinity.WireName|trinity.Wire
---@param count? integer
function Topology:mesh(endpoints, wire, count) end

--- The description so far, as trinity.cluster takes it.
---@return trinity.ClusterSpec
function Topology:spec() end

---@class trinity.Simulator
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field rules trinity.Rules|string
---@field default_schedule? trinity.PlanSpec how plain placements are scheduled
local Simulator = {}

--- Simulates one plan.
---@param plan trinity.Plan
---@return trinity.Metrics
function Simulator:run(plan) end

--- Simulates a list of plans on all threads.
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.Metrics[]
function Simulator:run_batch(plans, options) end

--- Simulates one plan and keeps what happened when.
---@param plan trinity.Plan
---@return trinity.Timeline
function Simulator:timeline(plan) end

--- What no strategy can beat, by default with the simulator's micro-batches and schedule.
---@param micro_batches? integer
---@param schedule? trinity.ScheduleName 'pipedream': mini-batches overlap, and work alone binds them
---@return trinity.Bounds
function Simulator:bounds(micro_batches, schedule) end

--- The placement of a plan and what says how it is scheduled (nil: the default).
---@param plan trinity.Plan
---@return trinity.Placement
---@return trinity.PlanSpec?
function Simulator:parts(plan) end

function Simulator:close() end

---@class trinity.Problem
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field reward trinity.Reward
---@field rules trinity.Rules|string
---@field simulator trinity.Simulator
---@field lower_bound_s number seconds that no strategy's step is below
local Problem = {}

--- A placement to fill, all on device 1.
---@return trinity.Placement
function Problem:placement() end

--- A placement from a device per colocation unit, `choose(unit, first_operator)`, in order.
---@param choose fun(unit: integer, operator: integer): integer
---@return trinity.Placement
function Problem:placement_by_unit(choose) end

--- A list of `count` placements to fill.
---@param count integer
---@return trinity.Placement[]
function Problem:placements(count) end

--- Prices one plan.
---@param plan trinity.Plan
---@return trinity.Metrics
function Problem:evaluate(plan) end

--- Prices a list of plans on all threads.
---@param plans trinity.Plan[]
---@param options? trinity.BatchOptions
---@return trinity.Metrics[]
function Problem:evaluate_batch(plans, options) end

--- What happened when in a step.
---@param plan trinity.Plan
---@return trinity.Timeline
function Problem:timeline(plan) end

--- What no strategy can beat, by default with the problem's number of micro-batches and schedule.
---@param micro_batches? integer
---@param schedule? trinity.ScheduleName 'pipedream': mini-batches overlap, and work alone binds them
---@return trinity.Bounds
function Problem:bounds(micro_batches, schedule) end

--- The reward of metrics; refuses anything but a finite number.
---@param metrics trinity.Metrics
---@return number
function Problem:score(metrics) end

--- Prices a plan and makes a strategy of it; `about` may hold method, seed, evaluations, seconds,
--- curve.
---@param plan trinity.Plan
---@param about? table<string, any>
---@return trinity.Strategy
function Problem:strategy(plan, about) end

--- Loads a strategy that strategy:save() wrote, schedule included, and simulates it.
---@param path string
---@return trinity.Strategy
function Problem:load(path) end

--- A plan as JSON text; `notes` are its further facts by name.
---@param plan trinity.Plan
---@param notes table<string, string|number>
---@return string
function Problem:to_json(plan, notes) end

--- Whether strategy or result `a` is better than `b`: one that fits before one that does not; of two
--- that do not fit the one with the smaller excess of memory; then
--- the larger reward.
---@param a trinity.Strategy|{ metrics: trinity.Metrics, reward: number }
---@param b? trinity.Strategy|{ metrics: trinity.Metrics, reward: number }
---@return boolean
function Problem.better(a, b) end

--- The graph with the devices of a plan as colours, in Graphviz's DOT language.
---@param plan trinity.Plan
---@param options? trinity.DotOptions
---@return string
function Problem:to_dot(plan, options) end

--- A plan as a file for PyTorch: devices of operators and modules, stages, as JSON text.
---@param plan trinity.Plan
---@param device_names? string[] 'cuda:0', ... (default the cluster's)
---@return string
function Problem:placement_json(plan, device_names) end

function Problem:close() end

---@class trinity.Strategy: trinity.PlanSpec
---@field problem trinity.Problem
---@field metrics trinity.Metrics
---@field reward number
---@field method? string what found it
---@field seed? integer
---@field evaluations? integer
---@field seconds? number wall-clock time of the search
---@field curve? trinity.CurvePoint[]
---@field stopped? boolean whether Ctrl-C ended the search
---@field saved? table<string, string> notes of the file that it was loaded from
---@field same_graph? boolean whether the graph is the one of that file
---@field same_cluster? boolean
---@field replication? trinity.Replication copies of it on further devices and how they are kept together
local Strategy = {}

--- Seconds that no strategy with as many micro-batches is below.
---@return number
function Strategy:lower_bound_s() end

--- The time of a training with its replication.
---@param options trinity.ReplicatedTraining
---@return trinity.TrainingTime
function Strategy:train(options) end

--- What keeps it from fitting: which device is over its memory and by how much; nil where it fits.
---@return trinity.Misfit?
function Strategy:misfit() end

--- Writes it as JSON.
---@param path string
---@return string path
function Strategy:save(path) end

--- Why a strategy does not fit. One whose schedule contradicts its placement has `text` alone.
---@class trinity.Misfit
---@field text string it in words
---@field device? integer the device that is over by most
---@field name? string its name
---@field needed_bytes? number its peak in a step
---@field capacity_bytes? number what a step may use
---@field over_bytes? number the difference
---@field devices_over? integer how many devices are over

--- What a simulated step cost. Read-only; an unknown field is an error.
---@class trinity.Metrics
---@field step_time_s number seconds of the step; of a rejected plan the limit plus 1 ns
---@field peak_memory_bytes number largest peak of a device
---@field peak_communication_bytes number largest sum of bytes sent and received by a device
---@field total_communication_bytes number bytes sent by all devices together
---@field excess_memory_bytes number largest excess of a device over its capacity, 0 where all fits
---@field transfers number copies between two devices; collectives are not counted
---@field feasible boolean whether it fits into memory, and was not rejected
---@field rejected boolean whether it was given up as slower than reject_above_s
---@field device_count integer
local Metrics = {}

--- Seconds in which the device runs operators.
---@param d integer
---@return number
function Metrics:compute_busy_s(d) end

--- Seconds of the device's outgoing transfers and collectives, summed.
---@param d integer
---@return number
function Metrics:send_busy_s(d) end

--- Peak memory of the device in bytes.
---@param d integer
---@return number
function Metrics:memory_bytes(d) end

---@param d integer
---@return number
function Metrics:sent_bytes(d) end

---@param d integer
---@return number
function Metrics:received_bytes(d) end

---@class trinity.Timeline
---@field simulator trinity.Simulator
---@field metrics trinity.Metrics
---@field micro_batches integer
---@field tasks integer number of tasks: (micro_batch - 1) * operators + operator
---@field ready_s trinity.DoubleArray per task: when its inputs had arrived; NaN where it does not run
---@field start_s trinity.DoubleArray per task
---@field end_s trinity.DoubleArray per task
---@field device trinity.Placement per task
local Timeline = {}

--- Every copy of a tensor, by start.
---@return trinity.Transfer[]
function Timeline:transfers() end

--- Every run of a collective.
---@return trinity.CollectiveRun[]
function Timeline:collectives() end

--- Memory of device `d`: levels that each hold until the next.
---@param d integer
---@return trinity.MemoryLevel[]
function Timeline:memory(d) end

--- The chain of events that ends the step, and the time it spends in each way.
---@return trinity.CriticalPath
function Timeline:critical_path() end

--- Seconds in which a device runs nothing while one of its inputs is on its way.
---@return number any on at least one device
---@return number[] by_device
function Timeline:exposed_communication() end

--- Time per operator type, the largest first.
---@return trinity.TypeShare[]
function Timeline:by_type() end

--- The step as Chrome trace JSON, which ui.perfetto.dev opens.
---@return string
function Timeline:chrome_trace() end

--- Writes the trace to a file.
---@param path string
---@return string path
function Timeline:save(path) end

function Timeline:close() end

---@class trinity.Search
---@field problem trinity.Problem
---@field method string
---@field options table<string, any>
---@field evaluations integer how many plans were simulated
---@field step integer how often search:evaluate was called
---@field mean_reward? number of the placements of the last step
---@field sum_of_means? number the sum of that over all steps
---@field curve trinity.CurvePoint[]
---@field placement trinity.Placement the best so far
---@field best? { metrics: trinity.Metrics, reward: number }
---@field start number clock at the start in seconds
---@field stopped? boolean whether Ctrl-C came
---@field progress table the progress line
local Search = {}

--- Whether budget is left and nobody asked to stop.
---@return boolean
function Search:more() end

--- Adds what a learner says of its latest update to the run's row of this step.
---@param fields table<string, number> entropy, loss, ...
function Search:learned(fields) end

--- How many of `wanted` evaluations the budget still allows.
---@param wanted integer
---@return integer
function Search:allowance(wanted) end

--- Simulates placements, scores them, keeps the best.
---@param placements trinity.Placement[]
---@param options? trinity.BatchOptions
---@return trinity.DoubleArray rewards
---@return trinity.Metrics[] metrics
function Search:evaluate(placements, options) end

--- Draws the progress line.
---@param batch integer size of the last batch
function Search:show(batch) end

--- The best so far as a strategy.
---@return trinity.Strategy
function Search:result() end

--- Methods side by side; tostring() gives the table.
---@class trinity.Comparison
---@field problem trinity.Problem
---@field rows trinity.ComparisonRow[]
---@field seed integer the first
---@field seeds integer how many
---@field evaluations integer of each run, at most
---@field seconds number of each run, at most
---@field stopped? boolean whether Ctrl-C ended it
local Comparison = {}

--- The row of the best method: most runs that fit, then the largest median reward; nil where none fits.
---@return trinity.ComparisonRow?
function Comparison:best() end

--- The comparison as plain data, as scripts/compare.lua prints it as JSON.
---@return table
function Comparison:totable() end

--- What was found as a sentence.
---@return string
function Comparison:summary() end

--- The best run of a method, or nil when there is none.
---@param name string
---@return trinity.Strategy?
function Comparison:find(name) end

---@class trinity.RandomStream
local RandomStream = {}

--- A number from 0 to below 1.
---@return number
function RandomStream:uniform() end

--- A number of mean 0 and variance 1.
---@return number
function RandomStream:normal() end

--- An integer from 1 to `bound`.
---@param bound integer
---@return integer
function RandomStream:integer(bound) end

function RandomStream:close() end

--- The device, from 1, of every operator.
---@class trinity.Placement
---@field [integer] integer
---@field length integer
---@operator len: integer
local Placement = {}

---@return integer[]
function Placement:totable() end

--- for i, value in a:each() do ... end
function Placement:each() end

---@class trinity.DoubleArray
---@field [integer] number
---@field length integer
---@operator len: integer
local DoubleArray = {}

---@return number[]
function DoubleArray:totable() end

function DoubleArray:each() end

--- A read-only array of the engine.
---@class trinity.Int32View
---@field [integer] integer
---@field length integer
---@operator len: integer
local Int32View = {}

---@return integer[]
function Int32View:totable() end

function Int32View:each() end
