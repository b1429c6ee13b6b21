-- Shared code of the sections of DASO's page: its networks, JUWELS Booster, and trainings under policies, simulated.

local devices = require 'trinity.cluster.devices'
local core = require 'trinity.core'
local model = require 'trinity.graph.model'
local training = require 'studies.papers.daso_training'
local util = require 'trinity.base.util'

local daso = { per_node = 4 }

-- The paper's two, with the batch of its example code and two crops of 512 x 1024 a GPU; training images of
-- ImageNet-2012 and of CityScapes' fine annotations; epochs of the example code and of the multi-scale attention paper.
-- VGG-16 is ours: many parameters for its computation, so that synchronising costs most.
daso.networks = {
  { name = 'resnet50', batch_size = 256, epochs = 90, samples = 1281167, claimed = 25 },
  { name = 'hrnet_w48', batch_size = 2, epochs = 175, samples = 2975, claimed = 34 },
  { name = 'vgg16', batch_size = 256, epochs = 90, samples = 1281167 },
}

--- Networks of --models; `papers`: only those that the paper trained.
function daso.chosen(settings, papers)
  local list = {}
  for _, network in ipairs(daso.networks) do
    local wanted = not settings.models or settings.models[network.name]
    if wanted and (network.claimed or not papers) then list[#list + 1] = network end
  end
  return list
end

-- Leaves only the first of a node's NICs, which all its GPUs then share.
local function share_card(spec)
  local links = {}
  for _, link in ipairs(spec.links) do
    local name = link.to:match '^(.*/nic)[1-9]$'
    if name then
      link.to = name .. '0'
    end
    if not link.from:match '/nic[1-9]$' then links[#links + 1] = link end
  end
  spec.links = links
end

--- JUWELS Booster with that many GPUs, convolutions in TF32, PyTorch's default. bandwidth_gb_s: of every NIC,
--- where it is not the machine's; one_card: one NIC per node instead of one per GPU.
function daso.cluster(gpus, bandwidth_gb_s, one_card)
  local nodes = gpus / daso.per_node
  local spec = assert(util.load_file(core.home .. '/models/clusters/juwels_booster.lua'))()(nodes)
  spec.name = ('juwels_boosterx%d%s'):format(nodes, one_card and '_one_card' or '')
  spec.device_types.a100 = devices.with(devices.a100, { peak_flops_per_s = { float32 = 156e12 },
    operators = { ['Conv:float32'] = { compute_efficiency = 0.5 } } })
  for _, link in ipairs(spec.links) do
    if bandwidth_gb_s and link.to == 'infiniband' then link.bandwidth_bytes_per_s = bandwidth_gb_s * 1e9 end
  end
  if one_card then share_card(spec) end
  return model.cluster(spec)
end

local Trainings = {}
Trainings.__index = Trainings

--- Trainings of a network on a cluster; what several policies have in common is simulated once.
function daso.trainings(network, gpus, bandwidth_gb_s, one_card)
  network.graph = network.graph or model.load(network.name, { batch_size = network.batch_size })
  return setmetatable({ network = network, cluster = daso.cluster(gpus, bandwidth_gb_s, one_card), times = {},
    batches = math.max(1, math.floor(network.samples / (network.batch_size * gpus))) }, Trainings)
end

--- A training under a way of synchronising: hours, and milliseconds of a batch on average.
function Trainings:of(synchronization)
  local network = self.network
  local run = training.new(network.graph, self.cluster, synchronization)
  run.times = self.times
  local time_s, epochs = run:train(network.epochs, self.batches)
  return { hours = time_s / 3600, batch_ms = time_s / (network.epochs * self.batches) * 1e3, epochs = epochs }
end

--- The baselines of DASO. The first is what Horovod and PyTorch do: the real one.
daso.baselines = {
  { key = 'bucketed', title = 'all-reduce in buckets, overlapped',
    synchronization = training.all_reduce('automatic', 25000000) },
  { key = 'hierarchical', title = 'hierarchical, after backward',
    synchronization = training.all_reduce('hierarchical', 0) },
  { key = 'flat', title = 'flat ring, after backward',
    synchronization = training.all_reduce('ring', 0) },
}

--- DASO as its example code has it, and settings among which the fastest is ours.
daso.example = training.daso { max_global_skips = 4 }
local held = { { 4, 1, 1 }, { 8, 1, 1 }, { 8, 2, 2 }, { 16, 4, 4 } }
daso.settings = util.map(held, function(skips)
  return { text = ('%d/%d/%d'):format(unpack(skips)), skips = skips, synchronization = training.daso {
    held = { global_skips = skips[1], local_skips = skips[2], batches_to_wait = skips[3] } } }
end)

--- The fastest of our settings, and its name.
function Trainings:best_of_ours()
  local best, text
  for _, setting in ipairs(daso.settings) do
    local found = self:of(setting.synchronization)
    if not best or found.hours < best.hours then best, text = found, setting.text end
  end
  return best, text
end

--- Less training time than with a baseline, in percent.
function daso.gain(base, found) return 100 * (1 - found.hours / base.hours) end

return daso
