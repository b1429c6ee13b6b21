-- trinity.profile.object: profiles as objects (see trinity.profile), and their use in problems.

local check = require 'trinity.base.check'
local file = require 'trinity.profile.file'
local fit = require 'trinity.profile.fit'
local model = require 'trinity.graph.model'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local profile = {}

--- Measurements and fitted parameters. All fields except `path` are read from its file.
---@class trinity.Profile
---@field format string
---@field version integer version of the format
---@field trinity string version of the program that made it
---@field date string UTC
---@field machine trinity.Machine
---@field libraries table torch (LibTorch and its BLAS), threads
---@field model table name, batch_size, operators, fingerprint
---@field settings table steps, warm_up, copies
---@field devices table[] name, kind
---@field kinds table<string, trinity.ProfileKind> by device type
---@field path? string file that it was read from
---@field links trinity.ProfileLink[] links of all ordered pairs of devices
local Profile = { __name = 'profile' }
Profile.__index = Profile

function Profile.__tostring(self)
  return ('profile: %s at batch size %d on %s, trinity %s, %s'):format(self.model.name, self.model.batch_size,
    self.machine.processor, self.trinity, self.date)
end

--- Makes a profile from the table of a file; `source` begins error messages.
function profile.new(source, fields) return setmetatable(file.check(source, fields), Profile) end

--- Reads and checks a profile that profile:save() wrote. Warns if another version of trinity made it. trinity.cluster
--- and trinity.problem also accept its path. Example: `trinity.profile.load 'profile.json'`
---@param path string
---@return trinity.Profile
function profile.load(path)
  local found = file.read(check.path('trinity.profile.load', 1, 'path', path))
  found.path = path
  return setmetatable(found, Profile)
end

--- Writes the profile as JSON. Raises an error if the file cannot be written. Example: `profile:save 'profile.json'`
---@param path string
function Profile:save(path)
  file.write(check.path('profile:save', 1, 'path', path), self)
end

--- Joins the two directions of a link: the bandwidth from one fit to the points of both, and their mean latency.
local function joined(links, a, b)
  local points, latency_s = {}, 0
  for _, link in ipairs(links) do
    if (link.from == a and link.to == b) or (link.from == b and link.to == a) then
      for i, bytes in ipairs(link.bytes) do points[#points + 1] = { bytes = bytes, time_s = link.time_s[i] } end
      latency_s = latency_s + link.latency_s / 2
    end
  end
  return fit.link(points).bandwidth_bytes_per_s, latency_s
end

--- Returns the devices as a description for trinity.cluster: fitted efficiencies, measured links, and copies made by
--- the receiving device (queue 'receiver'). Example: `trinity.cluster(profile:cluster_spec())`
---@return trinity.ClusterSpec
function Profile:cluster_spec()
  local spec = { name = 'profile', queue = 'receiver', device_types = {}, devices = {}, links = {} }
  for kind, of in util.sorted_pairs(self.kinds) do
    spec.device_types[kind] = { peak_flops_per_s = { float32 = of.peak_flops_per_s },
      memory_bandwidth_bytes_per_s = of.memory_bandwidth_bytes_per_s, memory_bytes = of.memory_bytes,
      launch_s = of.launch_s, contention = of.contention,
      compute_efficiency = of.compute_efficiency, memory_efficiency = of.memory_efficiency,
      operators = of.operators }
  end
  for d, device in ipairs(self.devices) do
    spec.devices[d] = { name = device.name, type = device.kind, speed = device.speed, node = 'host' }
    for e = 1, d - 1 do
      local bandwidth, latency_s = joined(self.links, self.devices[e].name, device.name)
      spec.links[#spec.links + 1] = { from = self.devices[e].name, to = device.name,
        bandwidth_bytes_per_s = bandwidth, latency_s = latency_s }
    end
  end
  return spec
end

--- Returns the cluster of the profile's devices. Example: `profile:cluster()`
---@return trinity.Cluster
function Profile:cluster() return model.cluster(self:cluster_spec()) end

--- Returns whether the profile was measured on this graph. Example: `profile:is_of(graph)`
---@param graph trinity.Graph
---@return boolean
function Profile:is_of(graph)
  return check.object('profile:is_of', 1, 'graph', graph, 'graph').fingerprint == self.model.fingerprint
end

local function refuse_graph(owner, self, graph)
  local about = ('%s at batch size %d (%d operators)'):format(self.model.name, self.model.batch_size,
    self.model.operators)
  local why = self.model.operators == graph.operators and 'the same network at another batch size or other options'
    or ('%s with %d operators'):format(graph.name, graph.operators)
  util.fail("%s: option 'profile': %s is a profile of %s, but the graph is %s; profile the graph, or use only the "
    .. "profile's devices: cluster = profile:cluster()", owner, self.path or 'this', about, why)
end

--- Returns a cost function (see trinity.problem) with the measured times of the profile's graph; `below` is called with
--- the measured time as its default. Raises an error for another graph. Example: `profile:cost(graph)`
---@param graph trinity.Graph
---@param below? fun(op: trinity.Operator, device: trinity.Device, default_s: number): number?
---@return fun(op: trinity.Operator, device: trinity.Device, default_s: number): number?
function Profile:cost(graph, below)
  check.object('profile:cost', 1, 'graph', graph, 'graph')
  if below ~= nil then check.argument('profile:cost', 2, 'below', below, 'function') end
  if not self:is_of(graph) then refuse_graph('profile:cost', self, graph) end
  local kinds = self.kinds
  return function(op, device, default_s)
    local kind = kinds[device.type]
    local measured_s = kind and kind.operator_time_s[op.name]
    local time_s = measured_s and measured_s / device.speed
    return below and below(op, device, time_s or default_s) or time_s
  end
end

--- Raises an error for a cluster without any device type of the profile, where its times would not be used.
local function check_kinds(owner, self, cluster)
  if util.class_of(cluster) ~= 'cluster' then return end -- trinity.problem raises an error
  local seen = {}
  for _, device in ipairs(cluster.devices) do
    if self.kinds[device.type] then return end
    seen[device.type] = true
  end
  util.fail("%s: option 'profile': expected a cluster with measured devices (%s), but %s has %s; omit the cluster to "
    .. "use the measured devices", owner, table.concat(util.sorted_keys(self.kinds), ', '),
    cluster.name, table.concat(util.sorted_keys(seen), ', '))
end

local noted = setmetatable({}, { __mode = 'k' }) -- clusters whose measured times are not used, reported once

--- For a problem on a cluster that was read from a profile: the measured network has its measured times; other networks
--- have times of the cost model with the fitted efficiencies.
local function of_cluster(owner, spec)
  local of, cluster = model.profile_of(spec.cluster), spec.cluster
  check.object(owner, 'option', 'graph', spec.graph, 'graph')
  if of:is_of(spec.graph) then return util.merged(spec, { cost = of:cost(spec.graph, spec.cost) }) end
  if not noted[cluster] then
    noted[cluster] = true
    progress.note(('trinity: %s is a profile of %s at batch size %d: only its devices are used, times are '
      .. 'estimated'):format(
      of.path, of.model.name, of.model.batch_size))
  end
  return spec
end

--- Applies a profile to a problem, given as an option or as the file of its cluster: returns `spec` with its cluster
--- and cost function.
function profile.apply(owner, spec)
  local of = spec.profile
  if of == nil then return of_cluster(owner, spec) end
  if type(of) == 'string' then of = profile.load(of) end
  if util.class_of(of) ~= 'profile' then
    check.wrong(owner, 'option', 'profile', spec.profile, 'a profile or its file')
  end
  check.object(owner, 'option', 'graph', spec.graph, 'graph')
  if not of:is_of(spec.graph) then refuse_graph(owner, of, spec.graph) end
  if spec.cluster then check_kinds(owner, of, spec.cluster) end
  local full = util.merged({ cluster = not spec.cluster and of:cluster() or nil }, spec)
  full.profile, full.cost = nil, of:cost(spec.graph, spec.cost)
  return full
end

check.methods(Profile, 'trinity.Profile')

return profile
