---@meta _
-- Profiles of real devices (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@class trinity.ProfileModule
local profile = {}

--- Measures a training graph on devices of this machine: times of its operators on the first device of every kind,
--- copies between every two devices, and the cost model's parameters fitted to both.
---@param graph trinity.Graph
---@param options? trinity.ProfileOptions
---@return trinity.Profile
function profile.measure(graph, options) end

--- Reads a profile that profile:save() wrote; trinity.cluster and trinity.problem take its path as well.
---@param path string
---@return trinity.Profile
function profile.load(path) end

---@class trinity.ProfileOptions
---@field devices? string[] 'cpu:0', 'cuda:0', ...; default cpu:0 alone
---@field steps? integer measured steps, whose medians count; default 10
---@field warm_up? integer steps before; default 5
---@field sizes? number[] bytes of copies; default 1 KiB to 256 MiB, each four times the last
---@field copies? integer copies of every size; default 7
---@field seed? integer of weights and data; default 1
---@field gpu_memory_bytes? number of a GPU; default 16 GiB
---@field model? string the name that the profile says; default the graph's
---@field batch_size? integer what the profile says; default 0
---@field quiet? boolean nothing on standard error

--- What was measured and fitted. The fields are those of its file (lib/trinity/profile/file.lua).
---@class trinity.Profile
---@field format string
---@field version integer of the format
---@field trinity string version of the program that measured
---@field date string UTC
---@field machine table processor, cores, memory_bytes
---@field libraries table torch (LibTorch and its BLAS), threads
---@field model table name, batch_size, operators, fingerprint
---@field settings table steps, warm_up, copies
---@field devices table[] name, kind
---@field kinds table<string, trinity.ProfileKind> by kind of device
---@field links trinity.ProfileLink[] of every ordered pair of devices
local Profile = {}

--- Writes it as JSON.
---@param path string
function Profile:save(path) end

--- The devices as trinity.cluster takes them.
---@return trinity.ClusterSpec
function Profile:cluster_spec() end

--- The cluster of the devices: fitted efficiencies, measured links, copies that receivers make themselves.
---@return trinity.Cluster
function Profile:cluster() end

--- Whether it is a profile of this very graph.
---@param graph trinity.Graph
---@return boolean
function Profile:is_of(graph) end

--- The measured times of a graph that it is of, as a cost function. `below` is asked with them as its default.
---@param graph trinity.Graph
---@param below? fun(op: trinity.Operator, device: trinity.Device, default_s: number): number?
---@return fun(op: trinity.Operator, device: trinity.Device, default_s: number): number
function Profile:cost(graph, below) end

---@class trinity.ProfileKind
---@field memory_bytes number of one device
---@field peak_flops_per_s number of a product of float32 matrices
---@field memory_bandwidth_bytes_per_s number read and written
---@field launch_s number
---@field compute_efficiency number of all operators together
---@field memory_efficiency number
---@field operators table<string, table> compute_efficiency, memory_efficiency, contention by type of operator
---@field residuals trinity.ProfileResiduals
---@field operator_time_s table<string, number> by name, on a device of speed 1
---@field contention number how many times as long operators take while all devices of the kind compute

---@class trinity.ProfileLink
---@field from string
---@field to string
---@field bytes number[] sizes of the copies
---@field time_s number[] their medians
---@field latency_s number what its copies within steps take beyond their bytes over the bandwidth
---@field bandwidth_bytes_per_s number
---@field residuals trinity.ProfileResiduals

--- Of |predicted / measured - 1|.
---@class trinity.ProfileResiduals
---@field count integer
---@field median number
---@field mean number
---@field largest number
