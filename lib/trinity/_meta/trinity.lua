---@meta trinity
-- Types for editors (LuaLS annotations) of C++ bindings, of objects made at run time and of tables that functions take
-- or return; nothing runs these files. The types of functions written in Lua are above them in lib/trinity.
-- tests/lua/tree/meta_spec.lua compares all of it with what is there at run time.
error 'this file is for editors'

---@class trinity
---@field global fun(name: string, value?: any): any Declares a global variable: scripts may only use globals that were declared (--no-strict lifts this). Returns the value. Example: `trinity.global('best_so_far', 1)`
---@field random fun(seed: integer, name: string, index?: integer): trinity.RandomStream A stream of random numbers that seed, name and index (default 0) determine. Example: `trinity.random(1, 'my search'):uniform()`
local trinity = {}

---@class trinity.SystemModule
---@field format_bytes fun(bytes: number): string Bytes as text: '3.21 GB'. Example: `trinity.system.format_bytes(1.5e9)`
---@field threads fun(): integer Number of worker threads; results do not depend on it. Example: `trinity.system.threads()`
---@field clock_s fun(): number Seconds of a clock that only goes forward, to measure with. Example: `trinity.system.clock_s()`
---@field describe_machine fun(): trinity.Machine The machine that runs the script. Example: `trinity.system.describe_machine()`
---@field stop_requested fun(): boolean Whether Ctrl-C or a time limit asked what runs to end: within trinity.system.stoppable and searches. Example: `if trinity.system.stop_requested() then return end`
---@field was_interrupted fun(): boolean Whether Ctrl-C was pressed or SIGTERM came since the script began; the program then exits with stop_status(). Example: `trinity.system.was_interrupted()`
---@field stop_status fun(): integer What the program exits with after what stopped it: 130 after Ctrl-C, 143 after SIGTERM (and SIGUSR1, with --stop-on-usr1). Example: `trinity.system.stop_status()`
---@field stop_name fun(): string What stopped it: 'Ctrl-C', 'SIGTERM' or 'SIGUSR1'. Example: `trinity.system.stop_name()`

---@class trinity.Machine
---@field processor string name of the CPU
---@field cores integer that this process may use
---@field memory_bytes integer

---@alias trinity.SearchMethod fun(problem: trinity.Problem, options?: trinity.SearchOptions): trinity.Strategy?, reason_why_there_is_none: string?

---@class trinity.MethodsModule
---@since 0.1.0
---@field annealing fun(problem: trinity.Problem, options?: trinity.AnnealingOptions): trinity.Strategy?, reason_why_there_is_none: string? Simulated annealing over moves of units, clusters and ranges. Example: `trinity.methods.annealing(problem, { evaluations = 32, quiet = true })`
---@field contiguous trinity.SearchMethod Consecutive parts along the forward pass, the largest least: the balance of GPipe. Example: `trinity.methods.contiguous(problem)`
---@field cpop fun(problem: trinity.Problem, options?: trinity.ListScheduleOptions): trinity.Strategy?, reason_why_there_is_none: string? List scheduling along the critical path. Example: `trinity.methods.cpop(problem)`
---@field etf fun(problem: trinity.Problem, options?: trinity.ListScheduleOptions): trinity.Strategy?, reason_why_there_is_none: string? List scheduling by the earliest start. Example: `trinity.methods.etf(problem)`
---@field exhaustive trinity.SearchMethod Every placement once: the optimum of small graphs. Example: `trinity.methods.exhaustive(problem)`
---@field fm fun(problem: trinity.Problem, options?: trinity.FmOptions): trinity.Strategy?, reason_why_there_is_none: string? Fiduccia-Mattheyses partition by moves of least cut. Example: `trinity.methods.fm(problem)`
---@field heft fun(problem: trinity.Problem, options?: trinity.ListScheduleOptions): trinity.Strategy?, reason_why_there_is_none: string? List scheduling by upward rank and earliest finish. Example: `trinity.methods.heft(problem)`
---@field local_search fun(problem: trinity.Problem, options?: trinity.LocalSearchOptions): trinity.Strategy?, reason_why_there_is_none: string? Iterated local search over the simulator. Example: `trinity.methods.local_search(problem, { evaluations = 32, quiet = true })`
---@field m_etf fun(problem: trinity.Problem, options?: trinity.ListScheduleOptions): trinity.Strategy?, reason_why_there_is_none: string? Baechi's earliest start within memory. Example: `trinity.methods.m_etf(problem)`
---@field m_topo trinity.SearchMethod Baechi's devices filled in topological order. Example: `trinity.methods.m_topo(problem)`
---@field max_load_dp trinity.SearchMethod Contiguous parts of least load, transfers counted. Example: `trinity.methods.max_load_dp(problem)`
---@field mcmc fun(problem: trinity.Problem, options?: trinity.McmcOptions): trinity.Strategy?, reason_why_there_is_none: string? FlexFlow's Markov chain over placements. Example: `trinity.methods.mcmc(problem, { evaluations = 32, quiet = true })`
---@field metis fun(problem: trinity.Problem, options?: trinity.MetisOptions): trinity.Strategy?, reason_why_there_is_none: string? METIS k-way partition of least cut. Example: `trinity.methods.metis(problem)`
---@field scotch fun(problem: trinity.Problem, options?: trinity.ScotchOptions): trinity.Strategy?, reason_why_there_is_none: string? Scotch static mapping onto the cluster. Example: `trinity.methods.scotch(problem)`
---@field expert fun(problem: trinity.Problem, options?: trinity.ExpertOptions): trinity.Strategy What a person does by hand, by rules for each network. Example: `trinity.methods.expert(problem)`
---@field single_device fun(problem: trinity.Problem, options?: trinity.SearchOptions): trinity.Strategy Everything on one device, the best one. Example: `trinity.methods.single_device(problem)`
---@field round_robin fun(problem: trinity.Problem, options?: trinity.SearchOptions): trinity.Strategy Devices in turn by depth in the graph. Example: `trinity.methods.round_robin(problem)`
---@field random fun(problem: trinity.Problem, options?: trinity.RandomOptions): trinity.Strategy A uniform device for every unit, the best of the budget. Example: `trinity.methods.random(problem, { evaluations = 32, quiet = true })`
---@field post fun(problem: trinity.Problem, options?: trinity.PostOptions): trinity.Strategy A table of distributions over groups, by PPO and cross-entropy (Gao et al. 2018). Example: `trinity.methods.post(problem, { evaluations = 32, quiet = true })`
---@field colocrl fun(problem: trinity.Problem, options?: trinity.PlacerOptions): trinity.Strategy A recurrent placer of given groups, by REINFORCE (Mirhoseini et al. 2017). Example: `trinity.methods.colocrl(problem, { evaluations = 32, quiet = true })`
---@field hierarchical fun(problem: trinity.Problem, options?: trinity.PlacerOptions): trinity.Strategy A grouper and a recurrent placer, by REINFORCE (Mirhoseini et al. 2018). Example: `trinity.methods.hierarchical(problem, { evaluations = 32, quiet = true })`
---@field placeto fun(problem: trinity.Problem, options?: trinity.PlacetoOptions): trinity.Strategy Messages along the graph, one node after the other, by REINFORCE (Addanki et al. 2019). Example: `trinity.methods.placeto(problem, { evaluations = 32, quiet = true })`
---@field doppler fun(problem: trinity.Problem, options?: trinity.DopplerOptions): trinity.Strategy Two policies that imitate a list scheduler, then learn by REINFORCE (Yao et al. 2026). Example: `trinity.methods.doppler(problem, { evaluations = 32, quiet = true })`
---@field tapp fun(problem: trinity.Problem, options?: trinity.TappOptions): trinity.Strategy Layers into groups, groups to devices with attention, by REINFORCE (Appl. Sci. 2021, 11(11), 4785). Example: `trinity.methods.tapp(problem, { evaluations = 32, quiet = true })`
---@field pase fun(problem: trinity.Problem, options?: trinity.PaseMethodOptions): trinity.Strategy Every layer split over all devices, exactly by PaSE's cost model (IPDPS 2021), or by a baseline's rule. Example: `trinity.methods.pase(problem, { evaluations = 32, quiet = true })`
---@field heuristics fun(problem: trinity.Problem, options?: trinity.HeuristicsOptions): trinity.Strategy The best of the cheap heuristics, without a search. Example: `trinity.methods.heuristics(problem)`
---@field best fun(problem: trinity.Problem, options?: trinity.StageOptions): trinity.Strategy Trinity without its policy. Example: `trinity.methods.best(problem, { evaluations = 32, quiet = true })`
---@field trinity fun(problem: trinity.Problem, options?: trinity.AgentOptions): trinity.Strategy PPO over a partition and a schedule network (Algorithms 2022, 15(4), 108). Example: `trinity.methods.trinity(problem, { evaluations = 32, quiet = true })`

return trinity
