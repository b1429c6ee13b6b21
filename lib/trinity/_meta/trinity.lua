---@meta trinity
-- What editors know about `require 'trinity'` (LuaLS annotations); nothing runs it. Objects are in
-- classes.lua, tables that functions take or give in tables.lua. tests/lua/meta_spec.lua compares
-- all three with what is there at run time.
error 'this file is for editors'

---@class trinity
---@field version string version of the program
---@field devices trinity.DevicesModule kinds of devices, from published figures
---@field topology trinity.TopologyModule words to write clusters with
---@field graph trinity.GraphModule operators and tensors, one by one
---@field layers trinity.LayersModule networks in layers
---@field rewards trinity.RewardsModule published reward formulas
---@field methods trinity.MethodsModule what makes strategies
---@field tensor trinity.TensorModule arrays of LibTorch, with gradients
---@field nn trinity.NnModule networks and optimisers
---@field search trinity.SearchModule the frame of a search of your own
---@field policies trinity.PoliciesModule distributions over placements, to be learned
---@field profile trinity.ProfileModule operators and copies measured on this machine
---@field dist trinity.DistModule the processes of one training
---@field daso trinity.DasoModule the schedule of DASO
---@field synchronisation trinity.SynchronisationModule how long data-parallel training takes
---@field run trinity.Run the folder of the running script
---@field pipeline trinity.PipelineModule cuts networks into pipelines: trinity.pipeline(source, options)
local trinity = {}

--- The layers of a graph with their splits over devices and what each costs, as PaSE has it.
---@param graph trinity.Graph
---@param options? trinity.PaseOptions
---@return trinity.Pase
function trinity.pase(graph, options) end

--- A graph with its operators cut into parts, with slices, joins and collectives between them.
---@param spec trinity.LowerSpec
---@return trinity.Lowered
function trinity.lower(spec) end

--- The dimensions along which operator `i` can be split.
---@param graph trinity.Graph
---@param i integer|string
---@return trinity.Dimension[]
function trinity.iteration_space(graph, i) end

--- Reads the script's command line (`words`, by default the global `arg`) against a declaration by
--- name; [1] describes the script. An option is typed by its default; --help prints all and ends.
---@param spec table<string|integer, trinity.OptionSpec|string>
---@param words? string[]
---@return table<string, any> values by name
function trinity.options(spec, words) end

--- Declares a global variable: scripts may only use globals that were declared (--no-strict lifts
--- this). Returns the value.
---@param name string
---@param value? any
---@return any
function trinity.global(name, value) end

--- The graph of a model: a name in models/, a Lua file like those, or a file .onnx, .json (own,
--- dnn-partitioning, Piper) or .txt (PipeDream, DAPPLE). Options: those of the model and those of
--- every model.
---@param name string
---@param options? trinity.ModelOptions
---@return trinity.Graph
function trinity.model(name, options) end

--- Names of the models in models/.
---@return string[]
function trinity.models() end

--- A cluster: a name in models/clusters, with a count of devices or machines where it takes one
--- ('p100x4', 'dgx_a100x2'), a Lua file, or a description.
---@param description string|trinity.ClusterSpec
---@return trinity.Cluster
function trinity.cluster(description) end

--- Names of the clusters in models/clusters.
---@return string[]
function trinity.clusters() end

--- Chooses a strategy for every node of a graph so that costs of nodes and edges are least within a limit on usages
--- over time: a file in the IOPDDL contest's format (.json or .json.gz), a table of the same fields, or a problem object
--- of the engine. Exact where dynamic programming can, else as good as found in the time, with a bound.
---@param problem string|trinity.SelectionTable
---@param options? trinity.SelectOptions
---@return trinity.SelectResult
function trinity.select(problem, options) end

--- Runs training steps of a problem's graph for real, as a placement or strategy places it: a worker thread a device,
--- LibTorch's kernels, transfers as copies. Every placement computes the same losses.
---@param problem trinity.Problem
---@param plan trinity.Placement|trinity.Strategy of one micro-batch
---@param options? trinity.ExecuteOptions
---@return trinity.Execution
function trinity.execute(problem, plan, options) end

--- What methods work on. Refuses a graph that no placement can fit.
---@param spec trinity.ProblemSpec
---@return trinity.Problem
function trinity.problem(spec) end

--- Prices plans without a reward.
---@param spec trinity.SimulatorSpec
---@return trinity.Simulator
function trinity.simulator(spec) end

--- Runs methods (or takes strategies already found) with one seed under one budget. Print it.
---@param problem trinity.Problem
---@param list (string|trinity.Strategy)[]
---@param options? trinity.CompareOptions
---@return trinity.Comparison
function trinity.compare(problem, list, options) end

--- Runs body(item, i, seed) for every item of a list (or for 1 to a number) in worker processes, copies of
--- the running script, and returns the results in the order of the items; with on_error = 'collect' also
--- messages by item. Results should depend on item, i and seed alone. Bodies return plain values, arrays,
--- metrics, strategies (lib/trinity/transfer.lua); what they print appears in the order of the items.
---@param items any[]|integer
---@param body fun(item: any, i: integer, seed: integer): any
---@param options? trinity.ParallelOptions
---@return any[] results
---@return table<integer, string>? errors
function trinity.parallel_map(items, body, options) end

--- What policies are told of a problem.
---@param problem trinity.Problem
---@param options? trinity.FeatureOptions
---@return trinity.Features
function trinity.features(problem, options) end

--- A method that trains a policy by proximal policy optimisation, with a ratio per choice.
---@param settings trinity.PpoSettings
---@return trinity.Method
function trinity.ppo(settings) end

--- A method that trains a policy by REINFORCE with a moving-average baseline.
---@param settings trinity.ReinforceSettings
---@return trinity.Method
function trinity.reinforce(settings) end

--- A method that trains a policy by the cross-entropy method: it raises the likelihood of the best samples.
---@param settings trinity.CrossEntropySettings
---@return trinity.Method
function trinity.cross_entropy(settings) end

--- Iterates over a table with string keys in sorted order.
---@generic V
---@param t table<string, V>
---@return fun(): string, V
function trinity.sorted_pairs(t) end

--- The middle of numbers in any order; of an even count the mean of the two in the middle.
---@param list number[] at least one
---@return number
function trinity.median(list) end

--- Bytes as text: '3.21 GB'.
---@param bytes number
---@return string
function trinity.format_bytes(bytes) end

--- Rows of text as a table under a head, the first column flush left, the others flush right.
---@param head string[]
---@param rows string[][]
---@return string
function trinity.format_table(head, rows) end

--- A stream of random numbers that seed, name and index (default 0) determine.
---@param seed integer
---@param name string
---@param index? integer
---@return trinity.RandomStream
function trinity.random(seed, name, index) end

--- Number of worker threads; results do not depend on it.
---@return integer
function trinity.threads() end

--- LibTorch and the BLAS in use, as a line of text; warns on standard error about a slow BLAS.
---@return string
function trinity.describe_torch() end

--- Every access gives a table of its own. Sources of the figures: lib/trinity/devices.lua.
---@class trinity.DevicesModule
---@field a100 trinity.DeviceTypeSpec 40 GB
---@field a100_80gb trinity.DeviceTypeSpec
---@field cpu_core trinity.DeviceTypeSpec of a Xeon E5-2690 v3
---@field gtx1080ti trinity.DeviceTypeSpec
---@field h100 trinity.DeviceTypeSpec SXM5, 80 GB
---@field h200 trinity.DeviceTypeSpec
---@field k80 trinity.DeviceTypeSpec one of the board's two GPUs
---@field p100 trinity.DeviceTypeSpec PCIe, 16 GB
---@field p100_12gb trinity.DeviceTypeSpec
---@field p100_sxm2 trinity.DeviceTypeSpec
---@field rtx2080ti trinity.DeviceTypeSpec
---@field rtx3090 trinity.DeviceTypeSpec
---@field t4 trinity.DeviceTypeSpec
---@field v100 trinity.DeviceTypeSpec SXM2, 16 GB
---@field v100_32gb trinity.DeviceTypeSpec
---@field v100_pcie trinity.DeviceTypeSpec
local devices = {}

--- Names of all kinds, sorted.
---@return string[]
function devices.names() end

--- The kind called `name`, or nil.
---@param name string
---@return trinity.DeviceTypeSpec?
function devices.find(name) end

--- A copy of a kind with fields changed; tables such as peak_flops_per_s are changed entry by entry.
---@param base string|trinity.DeviceTypeSpec
---@param changes table<string, any>
---@return trinity.DeviceTypeSpec
function devices.with(base, changes) end

---@class trinity.TopologyModule
local topology = {}

--- An empty cluster.
---@param options? trinity.TopologyOptions
---@return trinity.Topology
function topology.new(options) end

--- Names of all wires, sorted.
---@return string[]
function topology.wires() end

--- The wire called `name`, a table of its own, with changes to its fields.
---@param name trinity.WireName
---@param changes? trinity.Wire
---@return trinity.Wire
function topology.wire(name, changes) end

---@class trinity.GraphModule
local graph = {}

--- A new, empty graph builder.
---@param options { name: string }
---@return trinity.Builder
function graph.new(options) end

--- Wraps a graph of the engine.
---@param handle userdata
---@return trinity.Graph
function graph.wrap(handle) end

---@class trinity.RewardsModule
local rewards = {}

--- Minus the step time in seconds; a placement that does not fit counts ten times its time.
---@return trinity.Reward
function rewards.step_time() end

--- Trinity's multi-dimensional performance evaluation: -log(alpha T + beta q(C) + gamma q(M)), T the
--- step time in seconds, C and M the peaks of traffic and memory over their tolerances.
---@param options? trinity.MdpeOptions
---@return trinity.Reward
function rewards.mdpe(options) end

---@class trinity.MethodsModule
local methods = {}

--- Adds a method. It returns a strategy, or a placement or plan to be priced, or nil and why there is none.
---@param name string
---@param method trinity.Method
---@param options? trinity.MethodOptions
---@return trinity.Method
function methods.register(name, method, options) end

--- Names of all methods, sorted.
---@return string[]
function methods.names() end

--- What is known of a method.
---@param name string
---@return trinity.MethodInfo
function methods.info(name) end

--- The method called `name`; methods.NAME is the same.
---@param name string
---@return trinity.Method
function methods.get(name) end

--- Simulated annealing over moves of units, clusters and ranges.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.annealing(problem, options) end

--- The house's own: cheap placements first, then annealing from the best.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.best(problem, options) end

--- List scheduling along the critical path.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.cpop(problem, options) end

--- List scheduling by the earliest start.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.etf(problem, options) end

--- Every placement once: the optimum of small graphs.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.exhaustive(problem, options) end

--- Fiduccia-Mattheyses partition by moves of least cut.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.fm(problem, options) end

--- Consecutive parts, the largest least.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.gpipe(problem, options) end

--- List scheduling by upward rank and earliest finish.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.heft(problem, options) end

--- Iterated local search over the simulator.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.local_search(problem, options) end

--- Baechi's earliest start within memory.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.m_etf(problem, options) end

--- Baechi's favourite children from a linear programme.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.m_sct(problem, options) end

--- Baechi's devices filled in topological order.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.m_topo(problem, options) end

--- Contiguous parts of least load, transfers counted.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.max_load(problem, options) end

--- FlexFlow's Markov chain over placements.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.mcmc(problem, options) end

--- METIS k-way partition of least cut.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.metis(problem, options) end

--- Scotch static mapping onto the cluster.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.scotch(problem, options) end

--- Partition by the Fiedler vector.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy?
---@return string? reason why there is none
function methods.spectral(problem, options) end

--- What a person does by hand, by rules for each network.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy
function methods.expert(problem, options) end

--- Everything on one device, the best one.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy
function methods.single_device(problem, options) end

--- Devices in turn by depth in the graph.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy
function methods.round_robin(problem, options) end

--- Consecutive parts of equal work along the forward pass.
---@param problem trinity.Problem
---@param options? trinity.SearchOptions
---@return trinity.Strategy
function methods.contiguous(problem, options) end

--- A uniform device for every unit, the best of the budget.
---@param problem trinity.Problem
---@param options? trinity.RandomOptions
---@return trinity.Strategy
function methods.random(problem, options) end

--- A table of distributions over groups, by PPO and cross-entropy (Gao et al. 2018).
---@param problem trinity.Problem
---@param options? trinity.PostOptions
---@return trinity.Strategy
function methods.post(problem, options) end

--- A recurrent placer of given groups, by REINFORCE (Mirhoseini et al. 2017).
---@param problem trinity.Problem
---@param options? trinity.PlacerOptions
---@return trinity.Strategy
function methods.colocrl(problem, options) end

--- A grouper and a recurrent placer, by REINFORCE (Mirhoseini et al. 2018).
---@param problem trinity.Problem
---@param options? trinity.PlacerOptions
---@return trinity.Strategy
function methods.hierarchical(problem, options) end

--- Messages along the graph, one node after the other, by REINFORCE (Addanki et al. 2019).
---@param problem trinity.Problem
---@param options? trinity.PlacetoOptions
---@return trinity.Strategy
function methods.placeto(problem, options) end

--- Layers into groups, groups to devices with attention, by REINFORCE (Appl. Sci. 2021, 11(11), 4785).
---@param problem trinity.Problem
---@param options? trinity.TappOptions
---@return trinity.Strategy
function methods.tapp(problem, options) end

--- Every layer split over all devices, exactly by PaSE's cost model (IPDPS 2021), or by a rival's rule.
---@param problem trinity.Problem
---@param options? trinity.PaseMethodOptions
---@return trinity.Strategy
function methods.pase(problem, options) end

--- PPO over a partition and a schedule network (Algorithms 2022, 15(4), 108).
---@param problem trinity.Problem
---@param options? trinity.AgentOptions
---@return trinity.Strategy
function methods.trinity(problem, options) end

---@class trinity.SearchModule
---@field common trinity.SearchOptions options that every method takes, with their defaults
---@field rules table<string, any> what those options may be (lib/trinity/check.lua)
---@field unlimited integer a number of evaluations that no search reaches
local search = {}

--- Merges a method's own defaults, the common ones and the caller's; refuses unknown names.
---@param method string
---@param defaults table<string, any>
---@param given? table<string, any>
---@return table<string, any>
function search.options(method, defaults, given) end

--- Runs `body(search)`, which calls search:evaluate while search:more(). Returns the best strategy.
--- Ctrl-C ends it early; an error in it saves the best so far first.
---@param method string
---@param problem trinity.Problem
---@param options trinity.SearchOptions as search.options returns them
---@param body fun(search: trinity.Search)
---@return trinity.Strategy
function search.run(method, problem, options, body) end

return trinity
