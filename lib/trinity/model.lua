-- trinity.model and trinity.cluster: inputs by name (a file in models/) or by path.

local core = require 'trinity.core'
local graph = require 'trinity.graph'
local util = require 'trinity.util'

local home = core.home

local function exists(path)
  local file = io.open(path, 'r')
  if file then file:close() end
  return file ~= nil
end

--- Names of the Lua files in a folder, sorted.
local function lua_names(folder)
  local names = {}
  for _, file in ipairs(core.list_folder(folder)) do
    names[#names + 1] = file:match('^(.*)%.lua$')
  end
  return names
end

--- Runs a Lua file and returns its value; its errors carry its own line.
local function load_file(path)
  local chunk, message = loadfile(path)
  if not chunk then util.fail('%s', message) end
  return chunk()
end

local function missing(kind, name, folder, note)
  local names = lua_names(folder)
  util.fail("no %s '%s'%s (known: %s%s)", kind, name, core.suggestion(name, names),
    table.concat(names, ', '), note)
end

--- The options of a model file with the caller's values, checked.
local function model_options(name, model, given)
  util.refuse_unknown(("model '%s'"):format(name), given, model.options)
  local values = {}
  for key, declared in util.sorted_pairs(model.options) do
    local value = given[key]
    if value == nil then value = declared.default end
    util.expect(("model '%s'"):format(name), key, value, type(declared.default))
    if type(value) == 'number' and ((declared.min and value < declared.min)
        or (declared.integer and value % 1 ~= 0) or value ~= value) then
      util.fail("model '%s': '%s': expected %s from %g, got %s", name, key,
        declared.integer and 'an integer' or 'a number', declared.min or -math.huge, tostring(value))
    end
    values[key] = value
  end
  return values
end

local training_options = { colocate = true, optimiser = true }

--- Splits the caller's options into those of the training step and those of the model.
local function split(options)
  local training, rest = {}, {}
  for key, value in util.sorted_pairs(options or {}) do
    if training_options[key] then training[key] = value
    elseif key ~= 'training' then rest[key] = value end
  end
  return training, rest
end

local function build(name, path, options)
  local model = load_file(path)
  if type(model) ~= 'table' or type(model.build) ~= 'function' then
    util.fail('%s: expected a table with a function `build`, got %s', path, util.describe(model))
  end
  model.options = model.options or {}
  return model.build(model_options(name, model, options))
end

local function read(name, options)
  local extension = name:match('%.(%w+)$')
  if extension == 'txt' then
    if not exists(name) then util.fail('no model file %s', name) end
    -- A profile was measured at its own batch size; ours does not apply to it.
    return graph.wrap(core.read_pipedream(name))
  elseif extension == 'lua' then
    if not exists(name) then util.fail('no model file %s', name) end
    return build(name, name, options)
  elseif name:find('/', 1, true) or extension then
    util.fail("model file %s: expected the ending .lua or .txt (a PipeDream profile)", name)
  end
  local path = ('%s/models/%s.lua'):format(home, name)
  if not exists(path) then
    missing('model', name, home .. '/models', '; or a file .lua, .txt (PipeDream profile)')
  end
  return build(name, path, options)
end

local model = {}

--- The graph of a model: a name in models/, a Lua file like those, or a PipeDream profile (.txt).
--- Options: those of the model file (batch_size, ...), and for the training step `training = false`
--- for the forward graph alone, colocate, optimiser (see graph:to_training). A profile ignores
--- batch_size: its times and sizes were measured at one.
function model.load(name, options)
  util.expect('trinity.model', 'name', name, 'string')
  local training, rest = split(options)
  local forward = read(name, rest)
  if options and options.training == false then return forward end
  return forward:to_training(training)
end

--- Names of the models in models/.
function model.names() return lua_names(home .. '/models') end

local Cluster = {}
Cluster.__index = Cluster

function Cluster.__tostring(self)
  return ('cluster %s: %d devices'):format(self.name, #self.devices)
end

--- latency_s, bandwidth_bytes_per_s of the route between two devices.
function Cluster:wire(from, to) return self.handle:wire(from, to) end

--- The names of the channels on the route between two devices, in order: a direction of a link
--- ('a -> b'), a half-duplex link ('a - b'), a switch with a bandwidth.
function Cluster:route(from, to) return self.handle:route(from, to) end

--- What a collective costs: { kind = 'all_reduce' | 'reduce_scatter' | 'all_gather' | 'broadcast' |
--- 'all_to_all', devices = { numbers }, bytes = full size of the tensor, algorithm = 'automatic' |
--- 'ring' | 'halving_doubling' | 'tree' | 'hierarchical' | 'leader' }. Returns { algorithm =, time_s =,
--- latency_s =, transfer_s =, sent_bytes = (by every device) }; see engine/cluster/collectives.h.
function Cluster:collective(spec)
  util.expect('collective', 'description', spec, 'table')
  return self.handle:collective(spec)
end

function Cluster:close() self.handle:close() end

local function cluster_spec(name)
  if name:match('%.lua$') then
    if not exists(name) then util.fail('no cluster file %s', name) end
    return load_file(name), name:match('([^/]*)%.lua$')
  end
  local folder = home .. '/models/clusters'
  if exists(('%s/%s.lua'):format(folder, name)) then
    return load_file(('%s/%s.lua'):format(folder, name)), name
  end
  local family, count = name:match('^(.-)x(%d+)$')
  if family and exists(('%s/%s.lua'):format(folder, family)) then
    return load_file(('%s/%s.lua'):format(folder, family)), name, tonumber(count)
  end
  missing('cluster', name, folder, ', each with a count as in p100x2; or a file .lua')
end

--- A cluster: a description (see models/clusters), a Lua file that returns one, or a name. A file
--- in models/clusters that returns a function of the number of devices answers to NAMExCOUNT.
--- Fields: name, queue, fingerprint, devices[i] = { name =, type =, speed =, node =,
--- capacity_bytes = }.
function model.cluster(description)
  local spec, name, count = description, nil, nil
  if type(description) == 'string' then spec, name, count = cluster_spec(description) end
  if type(spec) == 'function' then spec = spec(count or 1) end
  util.expect('trinity.cluster', 'description', spec, 'table')
  if name and not spec.name then spec.name = name end
  local handle = core.cluster(spec)
  local self = handle:summary()
  self.handle = handle
  return setmetatable(self, Cluster)
end

return model
