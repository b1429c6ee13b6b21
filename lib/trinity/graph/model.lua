-- trinity.model and trinity.cluster: load models and clusters by name (a file in models/) or by path.

local core = require 'trinity.core'
local calibrate = require 'trinity.cluster.calibrate'
local check = require 'trinity.base.check'
local constants = require 'trinity.cluster.constants'
local fields = require 'trinity.base.fields'
local devices = require 'trinity.cluster.devices'
local hooks = require 'trinity.base.hooks'
local json = require 'trinity.base.json'
local model_files = require 'trinity.graph.model_files'
local cluster_names = require 'trinity.cluster.names'
local nodes = require 'trinity.cluster.nodes'
local options_of = require 'trinity.base.options'
local runtimes = require 'trinity.cluster.runtimes'
local slow = require 'trinity.cluster.slow'
local suggestions = require 'trinity.cluster.suggestions'
local util = require 'trinity.base.util'
local with_named_types = require 'trinity.cluster.own_types'

local home = core.home
local descriptions = setmetatable({}, { __mode = 'k' }) -- descriptions by cluster
local load_cluster -- model.cluster

--- Runs a Lua file and returns its value. Errors have the position in the file.
local function load_file(path)
  local chunk, message = util.load_file(path)
  if not chunk then util.fail('%s', message) end
  return chunk()
end

local function missing_model(name, folder)
  local known = util.lua_names(folder)
  for _, published in ipairs(util.sorted_keys(require 'trinity.graph.decoder.published')) do
    known[#known + 1] = published
  end
  util.fail("no model %s%s ('trinity help catalog' lists them; or use a folder with config.json, or a file %s)",
    util.quoted(name), suggestions.near(name, known), model_files.endings)
end

local function missing_cluster(name, folder)
  local known = util.lua_names(folder)
  for _, machine in ipairs(nodes.names()) do
    if not util.exists(('%s/%s.lua'):format(folder, machine)) then known[#known + 1] = machine end
  end
  table.sort(known)
  util.fail("no cluster %s%s (expected a name of 'trinity help clusters', most with a count as p100x2, GPUs as 8xH100, "
    .. 'a file .lua or .luax2, or a profile .json)', util.quoted(name), suggestions.near(name, known))
end

local common = require('trinity.graph.options').model -- options of all models

--- Checks the caller's options for a model file and adds defaults.
local function model_options(name, model, given)
  local owner, values = ("trinity.model: model '%s'"):format(name), {}
  util.refuse_unknown(owner, given, util.merged(common.by_name, model.options))
  for key, declared in util.sorted_pairs(model.options) do
    local value = given[key]
    if value == nil then value = declared.default end
    if type(declared.default) ~= 'number' then
      check.argument(owner, 'option', key, value, type(declared.default))
    elseif declared.integer then
      check.integer(owner, 'option', key, value, declared.min, declared.max)
    else
      check.number(owner, 'option', key, value, declared.min, declared.max)
    end
    values[key] = value
  end
  return values
end

--- Splits the caller's options into common ones and the model's own.
local function split(options)
  local shared, rest = {}, {}
  for key, value in util.sorted_pairs(options or {}) do
    if common.by_name[key] then shared[key] = value else rest[key] = value end
  end
  local given = common:read('trinity.model', 2, 'options', shared)
  given.dtype = shared.dtype -- builders and files have different defaults
  return given, rest, shared
end

local model_fields = util.set 'build float8 help mixed_precision optimizer options'

--- Returns whether all devices of a cluster (given by itself or name) support bfloat16; nil without a cluster.
local function has_bfloat16(cluster)
  if cluster == nil then return nil end
  if type(cluster) == 'string' then cluster = load_cluster(cluster) end
  check.object('trinity.model', 'option', 'cluster', cluster, 'cluster')
  return not util.find(cluster.devices, function(device)
    return not descriptions[cluster].device_types[device.type].peak_flops_per_s.bfloat16
  end)
end

local function build(name, path, options, dtype, cluster)
  local model = load_file(path)
  if type(model) ~= 'table' or type(model.build) ~= 'function' then
    util.fail('%s: expected a table with a function `build`, got %s', path, util.describe(model))
  end
  util.refuse_unknown(path, model, model_fields, 'field')
  if dtype == 'float8' and not model.float8 then
    util.fail("trinity.model: model '%s': dtype 'float8' needs a decoder: a config.json file or model 'decoder'", name)
  end
  model.options = model.options or {}
  local values = model_options(name, model, options)
  local mixed = not dtype and model.mixed_precision and has_bfloat16(cluster) or false
  values.dtype = dtype or mixed and 'bfloat16' or 'float32'
  local built = model.build(values)
  if util.class_of(built) ~= 'graph' then
    util.fail("model '%s': the function `build` at %s returned %s, expected a graph (net:build())", name,
      util.function_place(model.build), util.describe(built))
  end
  built.own_optimizer = model.optimizer
  local gradient_dtype = mixed and 'float32' or nil
  return built, { gradient_dtype = gradient_dtype }, model.mixed_precision
    and { dtype = values.dtype, gradient_dtype = gradient_dtype } or nil
end

local function published_name(name)
  local lower = name:lower()
  return not name:find '[/_]' and require('trinity.graph.decoder.published')[lower] and lower or nil
end

--- Returns the network of a config.json and its default training options.
local function decoder(path, shared, rest)
  local otherwise = has_bfloat16(shared.cluster) == false and 'float16' or nil
  local config, published = require 'trinity.graph.decoder.config', published_name(path)
  local load = published and config.published or config.load
  local forward, training, dtype = load(published or path, rest, shared.dtype, otherwise)
  model_files.warn(path, forward.source.warnings)
  return forward, training, { dtype = dtype }
end

--- Returns whether a .json file is a config.json.
local function is_decoder(path)
  return require('trinity.graph.decoder.config').is(util.read_file(path))
end

local function read(name, shared, rest)
  if published_name(name) then return decoder(name, shared, rest) end
  local extension = name:match('%.(%w+)$')
  local within = name:gsub('/+$', '') .. '/config.json'
  if util.exists(within) and not util.exists(('%s/models/%s.lua'):format(home, name)) then
    return decoder(within, shared, rest)
  end
  local known = extension == 'lua' or extension == 'onnx' or extension == 'pt2' or extension == 'et'
    or extension and require('trinity.graph.instances').reads(extension)
  if known then
    if not util.exists(name) then util.fail('no model file %s', util.shortened(name)) end
    if extension == 'lua' then return build(name, name, rest, shared.dtype, shared.cluster) end
    if extension == 'pt2' then return model_files.exported(name, rest) end
    if extension == 'et' then return model_files.chakra(name, rest) end
    if extension == 'json' and is_decoder(name) then return decoder(name, shared, rest) end
    return model_files.import(name, rest, shared)
  elseif name:find('/', 1, true) or extension then
    util.fail('model file %s: expected the ending %s', util.shortened(name), model_files.endings)
  end
  local path = ('%s/models/%s.lua'):format(home, name)
  if not util.exists(path) then
    missing_model(name, home .. '/models')
  end
  return build(name, path, rest, shared.dtype, shared.cluster)
end

local model = {}

-- Recipes of graphs and clusters, which a strategy's file stores, so that commands can rebuild them.
local recipes = setmetatable({}, { __mode = 'k' })

--- Returns how trinity.model or trinity.cluster made a graph or a cluster: { name =, options = }, or nil if a script
--- described it.
function model.recipe(of) return recipes[of] end

local function with_recipe(made, name, options)
  recipes[made] = { name = name, options = util.merged({}, options) }
  return made
end

--- Loads the graph of a model: a name in models/, a published decoder ('llama-3-8b', ...: trinity help networks;
--- options trinity.DecoderOptions), a Lua file like those, or a file .onnx, .pt2 (torch.export.save), .json (trinity,
--- dnn-partitioning, Piper, or a decoder's config.json or its folder: options trinity.DecoderOptions) or .txt
--- (PipeDream, DAPPLE, Doppler). Files with measured times ignore batch_size; graphs of a whole step are not changed.
--- Raises an error with a suggestion for an unknown name or option. Example: `trinity.model('gpt2', { batch_size = 4,
--- layers = 2 })`
---@param name string
---@param options? trinity.ModelOptions
---@return trinity.Graph
function model.load(name, options)
  check.argument('trinity.model', 1, 'name', name, 'string')
  if options ~= nil then check.argument('trinity.model', 2, 'options', options, 'table') end
  return model.load_by_default(name, options, nil)
end

--- Loads a model with a default micro-batch size, which a file with fixed sizes ignores.
function model.load_by_default(name, options, batch_size)
  local shared, rest, given = split(util.merged({ batch_size = batch_size }, options))
  shared.is_default_batch = rest.batch_size ~= (options or {}).batch_size
  local forward, defaults, resolved = read(name, shared, rest)
  local keeps_own = forward.source and forward.batch_size ~= rest.batch_size
  options = util.merged({ batch_size = not keeps_own and batch_size or nil }, options, resolved)
  options.cluster = nil
  local whole = forward.training or (forward.source and forward.source.whole_step)
  if not shared.training or whole then return with_recipe(forward, name, options) end
  local training = util.merged({ colocate = shared.colocate, optimizer = forward.own_optimizer or shared.optimizer,
    gradient_dtype = shared.gradient_dtype }, defaults, util.picked(given, { 'optimizer', 'gradient_dtype' }))
  return with_recipe(forward:to_training(training), name, options)
end

--- Returns the description of a model in models/: { help =, options = { NAME = { default =, help =, ... } } }, or nil.
function model.about(name)
  local path = ('%s/models/%s.lua'):format(home, name)
  if name:match '^[%w_]+$' and util.exists(path) then return load_file(path) end
end

function model.common_options() return util.sorted_keys(common.by_name) end

function model.names() return util.lua_names(home .. '/models') end

---@class trinity.Cluster
---@field name string
---@field queue trinity.QueueModel resources for which transfers contend
---@field fingerprint string equal for equal clusters
---@field device_count integer
---@field devices trinity.Device[]
---@field basis trinity.ClusterBasis calibration of its numbers
local Cluster = { __name = 'cluster' }
Cluster.__index = Cluster

function Cluster.__tostring(self)
  return ('cluster %s: %d devices'):format(self.name, self.device_count)
end

-- Devices of a list are result objects; the fingerprint does not change.
local function as_devices(list)
  for i = 1, type(list) == 'table' and #list or 0 do fields.result('trinity.Device', list[i]) end
  return list
end

-- The fingerprint covers all pairs of devices, and the list has one table per device, so large clusters make them at
-- the first access.
local large, LargeCluster = 256, { __name = 'cluster', __tostring = Cluster.__tostring }
local read_late = { fingerprint = true, devices = true }

function LargeCluster.__index(self, key)
  if not read_late[key] then return Cluster[key] end
  local list = self.handle[key](self.handle)
  self[key] = as_devices(list)
  return self[key]
end

--- Returns latency (seconds) and bandwidth (bytes/s) of the route between two devices (from 1). Example: `local
--- latency_s, bytes_per_s = cluster:wire(1, 2)`
---@param from integer
---@param to integer
---@return number latency_s
---@return number bandwidth_bytes_per_s
function Cluster:wire(from, to) return self.handle:wire(from, to) end

--- Returns the names of the channels on the route between two devices, in order: a direction of a link ('a -> b'), a
--- half-duplex link ('a - b'), or a switch with a bandwidth. Example: `cluster:route(1, 2)`
---@param from integer
---@param to integer
---@return string[]
function Cluster:route(from, to) return self.handle:route(from, to) end

--- Predicts the cost of a collective (engine/cluster/collectives.h). Raises an error for unknown devices or kinds.
--- Example: `cluster:collective { kind = 'all_reduce', devices = { 1, 2 }, bytes = 1e6 }`
---@param spec trinity.CollectiveQuery
---@return trinity.CollectiveCost
function Cluster:collective(spec)
  check.argument('cluster:collective', 1, 'spec', spec, 'table')
  return self.handle:collective(spec)
end

--- Example: `cluster:close()`
function Cluster:close() check.closing('cluster:close', self, 'cluster').handle:close() end

check.methods(Cluster, 'trinity.Cluster')

local most_devices = 131072 -- maximum devices of a cluster
local sheets = setmetatable({}, { __mode = 'k' }) -- by cluster: its data-sheet version, chosen constants and path
local profiles = setmetatable({}, { __mode = 'k' }) -- profiles by cluster

--- Returns the description of a cluster file: a table, or a function of a count that returns one.
local function cluster_file(path, name, count)
  local spec = load_file(path)
  if type(spec) == 'function' then
    if count and (count < 1 or count > most_devices) then
      util.fail("cluster '%s': expected a count from 1 to %d, got %.0f", name, most_devices, count)
    end
    spec = spec(count or 1)
  elseif count then
    util.fail("cluster '%s': %s takes no count", name, path:match '[^/]*$')
  end
  if type(spec) ~= 'table' then
    util.fail('%s: expected a table or a function that returns one, got %s', path, util.describe(spec))
  end
  return spec, name, path
end

local cluster_folder = home .. '/models/clusters'

local function cluster_path(name)
  if name:match '%.lua$' then
    if not util.exists(name) then util.fail('no cluster file %s', util.shortened(name)) end
    return name
  end
  local path = ('%s/%s.lua'):format(cluster_folder, name)
  return util.exists(path) and path or nil
end

local kept_kind = 'trinity cluster 1'

--- Returns the description in a file of model.cluster_json, or nil if the file has other JSON.
local function kept_cluster(path)
  local text = util.read_file(path)
  if not text:find(kept_kind, 1, true) then return nil end
  local kept = json.decode(text, path)
  if kept.kind ~= kept_kind then return nil end
  return check.argument(path, 'field', 'cluster', kept.cluster, 'table'), kept.choice
end

--- Returns the description for a name or path: the table, the cluster's name, the file, its profile, and the constants
--- and runtime of a saved cluster.
local function cluster_spec(name)
  if name:match('%.json$') then
    if not util.exists(name) then util.fail('no profile or cluster file %s', util.shortened(name)) end
    local kept, choice = kept_cluster(name)
    if kept then return kept, nil, name, nil, choice end
    local profile = hooks.read_profile(name)
    return profile:cluster_spec(), name, name, profile
  end
  local path = cluster_path(name)
  if path then return cluster_file(path, name:match '([^/]*)%.lua$' or name) end
  local family, count = name:match '^(.-)x(%d+)$'
  path = family and cluster_path(family)
  if path then
    return cluster_file(path, ('%sx%s'):format(family:match '([^/]*)%.lua$' or family, count), tonumber(count))
  end
  local machines, unknown = nodes.is(name)
  if machines then return nodes.spec(name), name end
  if unknown then
    util.fail("cluster %s: no machine %s%s (NAME:GxN: N machines of G GPUs each)", util.quoted(name),
      util.quoted(unknown), suggestions.near(unknown, nodes.names()))
  end
  local meant = name:lower() ~= name and cluster_path(name:lower()) and name:lower() or cluster_names.cluster(name)
  if meant then return cluster_spec(meant) end
  missing_cluster(name, cluster_folder)
end

--- Adds `count` to the name of a cluster that can have a count and has none: 'p100' becomes 'p100x2', 'p100x4' stays.
function model.counted(name, count)
  local path = not name:match '%.json$' and cluster_path(name)
  if not path and nodes.find(name) then return ('%sx%d'):format(name, count) end
  if not path and cluster_names.device_type(name, true) then return ('%dx%s'):format(count, name) end
  if not path or type(load_file(path)) ~= 'function' then return name end
  return ('%sx%d'):format(name, count)
end

--- Adds the types of trinity.devices that a list of devices names to `types`.
local function add_types(list, owner, types, listed)
  for i, device in ipairs(list) do
    local wanted = type(device) == 'table' and device.type
    if type(wanted) == 'string' and types[wanted] == nil then
      types[wanted] = devices.find(wanted) or devices.find(cluster_names.device_type(wanted) or '')
      if not types[wanted] then
        for _, preset in ipairs(devices.names()) do listed[#listed + 1] = preset end
        util.fail("%s: device %d: unknown device type %s%s (trinity.devices.names() lists the library's)", owner, i,
          util.quoted(wanted), suggestions.near(wanted, listed))
      end
    end
  end
end

--- Returns the device types of a description, including types of trinity.devices that its devices name.
local function device_types(spec, name)
  local types, listed, owner = {}, {}, ("cluster '%s'"):format(tostring(name or 'unnamed'))
  for key, value in util.sorted_pairs(spec.device_types or {}) do
    types[key] = value
    listed[#listed + 1] = tostring(key)
    for _, field in ipairs(type(value) == 'table' and { 'compute_efficiency', 'memory_efficiency' } or {}) do
      local share = value[field] -- above 1 of kernels that need less than the listed FLOP, or of TF32
      if type(share) == 'number' and share > 10 then
        util.fail("trinity.cluster: %s: device type %s: field '%s': expected a share of the peak, at most 10, got %s",
          owner, util.quoted(tostring(key)), field, util.describe(share))
      end
    end
  end
  if type(spec.devices) == 'table' then add_types(spec.devices, owner, types, listed) end
  if type(spec.machines) ~= 'table' then return types end
  for i, machine in ipairs(spec.machines) do
    if type(machine) == 'table' and type(machine.devices) == 'table' then
      add_types(machine.devices, ('%s: machines %d'):format(owner, i), types, listed)
    end
  end
  return types
end

--- Converts a description for the engine, which checks field types.
local function complete(spec, name)
  local full = with_named_types(spec)
  full.name = spec.name or name
  if type(full.device_types) == 'table' then full.device_types = device_types(full, full.name) end
  return full
end

--- Makes the engine's cluster. Errors name the file of the description.
local function build_cluster(spec, path)
  if not path then return core.cluster(spec) end
  local ok, result = pcall(core.cluster, spec)
  if not ok then util.fail('%s: %s', path, util.unplaced(tostring(result))) end
  return result
end

local cluster_options = options_of.declare('trinity.ClusterOptions', { help = 'Options of trinity.cluster.',
  { 'constants', 'any', as = "'calibrated'|'data_sheet'|string|table<string, table<string, number>>",
    otherwise = "'calibrated'", help = "efficiency constants of GPUs: 'calibrated', 'data_sheet', a Lua "
      .. 'file or a table by type of GPU (trinity help accuracy)' },
  { 'runtime', 'any', as = 'string|trinity.Runtime', otherwise = "'megatron'",
    help = 'training software, by name or as a table' },
  { 'slow', 'table', as = 'table<string, number>', otherwise = 'none', help = "parts slower than described: { "
    .. "['n7/gpu3'] = 1.3 } divides the speed of a device by 1.3; for a NIC, a switch or a link 'A -> B', the "
    .. "bandwidth" },
})

local chosen = {} -- options of the command line, unless a script gives its own

--- Sets default options of trinity.cluster, from a command line.
function model.set_cluster_options(options)
  chosen = { constants = options.constants ~= 'calibrated' and options.constants or nil,
    runtime = options.runtime ~= '' and options.runtime or nil, slow = slow.read(options.slow) }
end

local function calibrated(how)
  local spec, basis = calibrate.apply(how.spec, how.constants, how.runtime, how.asked)
  local whole = complete(spec, how.name)
  local handle = build_cluster(whole, how.path)
  local self = handle:summary()
  self.handle, self.basis = handle, fields.result('trinity.ClusterBasis', basis)
  descriptions[self], profiles[self], sheets[self] = whole, how.profile, how
  if self.device_count > large then return setmetatable(self, LargeCluster) end
  self.fingerprint, self.devices = handle:fingerprint(), as_devices(handle:devices())
  return setmetatable(self, Cluster)
end

--- Makes a cluster from a name in models/clusters, with a count of devices or machines if it has one ('p100x4',
--- 'dgx_a100x2'); from names of machines, parts of them and heterogeneous ones (trinity.cluster.nodes:
--- 'dgx_h200:4x2+dgx_b200'); from a Lua file that returns a description ('mine.lua') or a function of a count
--- ('mine.luax2'; default 1); from a profile (.json: see trinity.profile); or from a description (see
--- trinity.devices.topology). GPU types given by name have calibrated constants (`trinity help accuracy`); types that a
--- description defines are not changed. Raises an error with a suggestion for an unknown name. Example:
--- `trinity.cluster('dgx_a100x2', { constants = 'data_sheet' })`
---@param description string|trinity.ClusterSpec
---@param options? trinity.ClusterOptions
---@return trinity.Cluster
function model.cluster(description, options)
  if type(description) ~= 'string' and type(description) ~= 'table' then
    check.wrong('trinity.cluster', 1, 'description', description, 'a name or a table')
  end
  options = util.merged(chosen, cluster_options:read('trinity.cluster', 2, 'options', options))
  local spec, name, path, profile, kept = description, nil, nil, nil, nil
  if type(description) == 'string' then spec, name, path, profile, kept = cluster_spec(description) end
  kept = kept or {}
  local healthy = options.slow and function()
    return model.cluster(description, util.merged(options, { slow = {} }))
  end
  if options.slow then spec = slow.apply('trinity.cluster', spec, options.slow) end
  local rests_on = not options.constants and kept.constants or constants.read(options.constants)
  local made = calibrated { spec = with_named_types(spec), healthy = healthy, name = name, path = path,
    profile = profile,
    constants = rests_on,
    runtime = not options.runtime and kept.runtime or runtimes.read(options.runtime, rests_on.runtimes),
    asked = options.runtime ~= nil or kept.asked == true,
    own = type(description) == 'table' or path ~= nil and path:sub(1, #home) ~= home }
  return type(description) == 'string' and with_recipe(made, description, options) or made
end
load_cluster = model.cluster

local variants = setmetatable({}, { __mode = 'k' }) -- the engine's clusters for steps, by properties of networks

local function has_float8(network)
  for i = 1, network.operators do
    for _, tensor in ipairs(network:operator(i).outputs) do if tensor.dtype == 'float8' then return true end end
  end
  return false
end

--- Returns the engine's cluster for steps of a network: with link constants for messages within a step, and the
--- efficiencies of expert kernels and FP8 copies.
function model.handle_for(network, cluster)
  local how = sheets[cluster]
  calibrate.warn(cluster.basis)
  local experts = network.active_parameters < network.parameters
  if not how or not (cluster.basis.runtime or experts and how.constants.kinds) then return cluster.handle end
  local traits = { experts = experts,
    float8 = (how.runtime.cast_share ~= 1 or how.runtime.update_s > 0) and has_float8(network) }
  local key = ('%s %s'):format(traits.experts, traits.float8)
  local all = variants[cluster] or {}
  variants[cluster] = all
  if not all[key] then
    local spec = calibrate.apply(how.spec, how.constants, how.runtime, how.asked, traits)
    if how.own then spec = util.merged(spec, { queue = how.spec.queue }) end -- as described
    all[key] = build_cluster(complete(spec, how.name), how.path)
  end
  return all[key]
end

--- Returns the cluster without option `slow`, or nil if it slows nothing.
function model.healthy(cluster)
  local how = sheets[cluster]
  return how and how.healthy and how.healthy() or nil
end

--- Returns the profile that a cluster was read from, or nil.
function model.profile_of(cluster) return profiles[cluster] end

--- Returns a cluster as JSON text, which trinity.cluster reads from a file FILE.json.
function model.cluster_json(cluster)
  local how = sheets[cluster]
  if not cluster.basis.runtime then return json.encode { kind = kept_kind, cluster = descriptions[cluster] } end
  return json.encode { kind = kept_kind, cluster = util.merged(how.spec, { name = cluster.name }),
    choice = util.picked(how, { 'constants', 'runtime', 'asked' }) }
end

function model.device_type(cluster, name) return descriptions[cluster].device_types[name] end

--- Returns the data-sheet peak rates of a type.
function model.peak_flops_per_s(cluster, name)
  local own = (sheets[cluster].spec.device_types or {})[name]
  return (own or devices.find(name)).peak_flops_per_s
end

--- Returns the meaning of recompute = 'selective' in the cluster's runtime, as a function of operators; nil: core
--- attention.
function model.selective(cluster)
  local how = sheets[cluster]
  if how and cluster.basis.runtime and how.runtime.selective == 'operators' then
    return runtimes.selective_operators()
  end
end

--- Bytes of gradients that the cluster's runtime reduces together where a strategy does not say; nil without one.
function model.bucket_bytes(cluster, strategy)
  local how = sheets[cluster]
  local holds = how and (how.asked or cluster.basis.runtime)
  return holds and runtimes.bucket_bytes(how.runtime, strategy) or nil
end

--- Returns whether the cluster's runtime overlaps reductions of input gradients with weight gradients where a strategy
--- does not say; nil: it does not.
function model.overlaps_tp_grad_allreduce(cluster)
  local how = sheets[cluster]
  return how and (how.asked or cluster.basis.runtime) and how.runtime.overlap_tp_grad_allreduce or nil
end

--- Returns the token dispatcher with which all-to-alls of experts are simulated on a cluster: 'alltoall' or 'flex'.
function model.token_dispatcher(cluster)
  local how = sheets[cluster]
  return how and (how.asked or cluster.basis.runtime) and how.runtime.dispatcher or 'alltoall'
end

--- Returns the names of the clusters in models/clusters. Most take a count, as in dgx_h100x4.
function model.cluster_names() return util.lua_names(cluster_folder) end

return model
