-- trinity.profile.object: profiles as objects (what they are: trinity.profile), and what they mean to a problem.

local check = require 'trinity.base.check'
local file = require 'trinity.profile.file'
local fit = require 'trinity.profile.fit'
local model = require 'trinity.graph.model'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local profile = {}

--- What was measured and fitted. The fields except `path` are the fields of its file.
---@class trinity.Profile
---@since 0.1.0
---@field format string
---@field version integer of the format
---@field trinity string version of the program that measured
---@field date string UTC
---@field machine trinity.Machine
---@field libraries table torch (LibTorch and its BLAS), threads
---@field model table name, batch_size, operators, fingerprint
---@field settings table steps, warm_up, copies
---@field devices table[] name, kind
---@field kinds table<string, trinity.ProfileKind> by kind of device
---@field path? string the file that it was read from
---@field links trinity.ProfileLink[] of every ordered pair of devices
local Profile = { __name = 'profile' }
Profile.__index = Profile

function Profile.__tostring(self)
  return ('profile: %s at batch size %d on %s, trinity %s, %s'):format(self.model.name, self.model.batch_size,
    self.machine.processor, self.trinity, self.date)
end

--- A profile from the table that a file holds; `source` begins messages about what is wrong with it.
function profile.new(source, fields) return setmetatable(file.check(source, fields), Profile) end

--- Reads a profile that profile:save() wrote; checked, with a warning where another version of trinity made it.
--- trinity.cluster and trinity.problem take its path as well.
---@param path string
---@return trinity.Profile
function profile.load(path)
  local found = file.read(check.path('trinity.profile.load', 1, 'path', path))
  found.path = path
  return setmetatable(found, Profile)
end

--- Writes the profile as JSON.
---@param path string
function Profile:save(path)
  file.write(check.path('profile:save', 1, 'path', path), self)
end

--- The two directions of a link as one: the bandwidth from one fit of both their points, the mean of their latencies.
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

--- The devices as a description that trinity.cluster takes: fitted efficiencies, measured links, copies that the
--- receiving device makes itself (queue 'receiver').
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

--- The cluster of the profile's devices.
---@return trinity.Cluster
function Profile:cluster() return model.cluster(self:cluster_spec()) end

--- Whether this graph was measured.
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
  util.fail("%s: option 'profile': %s is a profile of %s, the graph is %s; profile it, or take the profile's devices "
    .. 'alone: cluster = profile:cluster()', owner, self.path or 'this', about, why)
end

--- A cost function (see trinity.problem) of the measured times of the profile's graph; `below` is asked
--- with the measured time as its default.
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

--- Refuses a cluster none of whose devices the profile has measured: its times would be used nowhere.
local function check_kinds(owner, self, cluster)
  if util.class_of(cluster) ~= 'cluster' then return end -- refused by trinity.problem
  local seen = {}
  for _, device in ipairs(cluster.devices) do
    if self.kinds[device.type] then return end
    seen[device.type] = true
  end
  util.fail("%s: option 'profile': it measured devices of kind %s, %s has %s: none of its times would be used; leave "
    .. 'the cluster out for the devices that were measured', owner, table.concat(util.sorted_keys(self.kinds), ', '),
    cluster.name, table.concat(util.sorted_keys(seen), ', '))
end

local noted = setmetatable({}, { __mode = 'k' }) -- clusters whose measured times are used nowhere, said once

--- A problem on a cluster that was read from a profile: the network that was measured has its measured times, others
--- have the times of the cost model with the fitted efficiencies.
local function of_cluster(owner, spec)
  local of, cluster = model.profile_of(spec.cluster), spec.cluster
  check.object(owner, 'option', 'graph', spec.graph, 'graph')
  if of:is_of(spec.graph) then return util.merged(spec, { cost = of:cost(spec.graph, spec.cost) }) end
  if not noted[cluster] then
    noted[cluster] = true
    progress.note(('trinity: %s is a profile of %s at batch size %d: its devices are used, times are estimated'):format(
      of.path, of.model.name, of.model.batch_size))
  end
  return spec
end

--- What a profile means to a problem, given as its option or as the file of its cluster: `spec` with its cluster and
--- cost function.
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
