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

return trinity
