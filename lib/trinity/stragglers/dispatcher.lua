-- Token dispatchers of experts (--moe-token-dispatcher-type and --moe-flex-dispatcher-backend of Megatron-LM): their
-- messages, and the passes over memory that order rows by expert (core/transformer/moe/token_dispatcher.py with
-- --moe-permute-fusion).

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local dispatcher = { names = { 'alltoall', 'deepep', 'hybridep' } }
local host_s = require('trinity.cluster.constants').by_name.expert_dispatch_s.start

-- DeepEP in normal mode, fitted to 432 messages of AIConfigurator on one node of B200, GB200 or GB300 (mean error 4 %):
-- time of a call, seconds that each byte of a token and each GPU of the node add to it (channels fill a chunk for every
-- GPU), bytes/s that one multiprocessor copies, bytes of a row in addition to its values, and how many copies reading a
-- token is worth.
local deepep = { call_s = 25.7e-6, fill_s = 0.368e-9, copy_bytes_per_s = 32.7e9, row_bytes = 2545, read_copies = 2.41,
  multiprocessors = 20 }

-- Arguments `about` are of one rank: { tokens, token_bytes, experts (of all ranks), top_k, group_topk (groups whose
-- experts a token may use), expert_groups (one per rank), padded (rows are also copied to the multiples that FP8
-- matmuls take), multiprocessors }.

--- Returns how the engine's all-to-alls route tokens (engine/base/token_routing.h).
local function routing_of(about, ranks)
  local groups = about.group_topk and (about.expert_groups or ranks)
  return { experts = about.experts, experts_per_token = about.top_k, expert_groups = groups,
    group_topk = groups and math.min(about.group_topk, groups) }
end

--- Returns to how many ranks a token goes.
local function copies_of(about, ranks)
  return core.token_destinations(util.merged(routing_of(about, ranks), { parts = ranks }))
end

--- Predicts the seconds of one message, dispatch or combine. alltoall sends every copy of a token; deepep and hybridep
--- send it once to each node and once to each GPU, deepep with some of the multiprocessors. ordering_s: of the first
--- message, seconds in which rows are ordered. Ranks exchange their numbers of rows before it (DeepEP within its call),
--- and the host needs them to dispatch what follows; with alltoall rows are ordered meanwhile.
function dispatcher.message_s(name, cluster, devices, about, ordering_s)
  local bytes, ranks = about.tokens * about.token_bytes, #devices
  local first_s = ordering_s and math.max(0, host_s - (name == 'alltoall' and ordering_s or 0)) or 0
  if ordering_s and name ~= 'deepep' then
    local counts = { kind = 'all_gather', devices = devices, bytes = 8 * about.experts * ranks }
    first_s = first_s + cluster:collective(counts).time_s
  end
  local message_s = cluster:collective(util.merged({ kind = 'all_to_all', devices = devices,
    bytes = math.floor(bytes * about.top_k + 0.5) }, name ~= 'alltoall' and routing_of(about, ranks) or nil)).time_s
  if name ~= 'deepep' then return first_s + message_s end
  local home = cluster.devices[devices[1]].node
  local inside = #util.filtered(devices, function(device) return cluster.devices[device].node == home end)
  local start_s = deepep.call_s + deepep.fill_s * inside * about.token_bytes
  local copy_s = start_s + about.tokens * (about.token_bytes + deepep.row_bytes)
    * (copies_of(about, ranks) + deepep.read_copies)
    / ((about.multiprocessors or deepep.multiprocessors) * deepep.copy_bytes_per_s)
  return first_s + math.max(copy_s, message_s + (inside < ranks and 2 * start_s or 0)) -- a GPU of every node forwards
end

--- Returns the bytes that one rank reads and writes to order rows by expert, before or after a message. received:
--- tokens that it receives, relative to an even load.
function dispatcher.permuted_bytes(name, ranks, about, received)
  local rows = about.top_k
  local copies = about.padded and name ~= 'hybridep' and 2 * rows * received or 0 -- hybridep pads as it orders
  if name ~= 'alltoall' then copies = copies + (copies_of(about, ranks) + rows) * received
  else -- by rank, then by expert
    copies = copies + 1 + rows + (about.experts > ranks and ranks > 1 and 2 * rows * received or 0)
  end
  return copies * about.tokens * about.token_bytes
end

--- Returns the bytes of rows that Megatron-LM's functions refer to while experts compute (core/transformer/moe/
--- moe_layer.py), in addition to inputs of matmuls: as sent, received and not yet padded, and results in two orders.
function dispatcher.held_bytes(name, ranks, about, received)
  local copies = about.padded and 2 * about.top_k * received or 0
  if name == 'deepep' then copies = copies + 2 * copies_of(about, ranks) * received
  elseif name == 'alltoall' then
    copies = copies + (1 + received) * about.top_k + (about.experts > ranks and about.top_k * received or 0)
  end
  return copies * about.tokens * about.token_bytes
end

return dispatcher
