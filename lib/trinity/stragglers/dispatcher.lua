-- Token dispatchers of experts (--moe-token-dispatcher-type and --moe-flex-dispatcher-backend of Megatron-LM): their
-- messages, and the passes over memory that order rows by expert (core/transformer/moe/token_dispatcher.py with
-- --moe-permute-fusion).

local dispatcher = { names = { 'alltoall', 'deepep', 'hybridep' } }
local host_s = require('trinity.cluster.constants').by_name.expert_dispatch_s.start

-- DeepEP in normal mode, fitted to 432 messages of AIConfigurator on one node of B200, GB200 or GB300 (mean error 4 %):
-- time of a call, seconds that each byte of a token and each GPU of the node add to it (channels fill a chunk for every
-- GPU), bytes/s that one multiprocessor copies, bytes of a row in addition to its values, and how many copies reading a
-- token is worth.
local deepep = { call_s = 25.7e-6, fill_s = 0.368e-9, copy_bytes_per_s = 32.7e9, row_bytes = 2545, read_copies = 2.41,
  multiprocessors = 20 }

--- Returns how many of equal groups of `experts` have at least one of the `top_k` experts of a token, on average over
--- tokens with random experts.
function dispatcher.destinations(groups, experts, top_k)
  local none = 1
  for k = 0, top_k - 1 do none = none * math.max(0, experts - experts / groups - k) / (experts - k) end
  return groups * (1 - none)
end

-- Arguments `about` are of one rank: { tokens, token_bytes, experts (of all ranks), top_k, group_topk (ranks whose
-- experts a token may use), padded (rows are also copied to the multiples that FP8 matmuls take), multiprocessors }.

--- Returns to how many ranks a token goes.
local function copies_of(about, ranks)
  local used = math.min(about.group_topk or ranks, ranks)
  return dispatcher.destinations(used, about.experts * used / ranks, about.top_k)
end

--- Predicts the seconds of one message, dispatch or combine. alltoall sends every copy of a token; deepep and hybridep
--- send it once to each node and once to each GPU, deepep with some of the multiprocessors. ordering_s: of the first
--- message, seconds in which rows are ordered. Ranks exchange their numbers of rows before it (DeepEP within its call),
--- and the host needs them to dispatch what follows; with alltoall rows are ordered meanwhile.
function dispatcher.message_s(name, cluster, devices, about, ordering_s)
  local bytes, inside, nodes = about.tokens * about.token_bytes, {}, {}
  local function exchange_s(members, copies)
    local query = { kind = 'all_to_all', devices = members, bytes = math.floor(bytes * copies + 0.5) }
    return cluster:collective(query).time_s
  end
  local first_s = ordering_s and math.max(0, host_s - (name == 'alltoall' and ordering_s or 0)) or 0
  if ordering_s and name ~= 'deepep' then
    local counts = { kind = 'all_gather', devices = devices, bytes = 8 * about.experts * #devices }
    first_s = first_s + cluster:collective(counts).time_s
  end
  if name == 'alltoall' then return first_s + exchange_s(devices, about.top_k) end
  local home = cluster.devices[devices[1]].node
  for _, device in ipairs(devices) do
    local node = cluster.devices[device].node
    if node == home then inside[#inside + 1] = device
    elseif not nodes[node] then nodes[#nodes + 1], nodes[node] = device, true end
  end
  local copies, start_s, copy_s, far_s = copies_of(about, #devices), 0, 0, 0
  if name == 'deepep' then
    start_s = deepep.call_s + deepep.fill_s * #inside * about.token_bytes
    copy_s = start_s + about.tokens * (about.token_bytes + deepep.row_bytes) * (copies + deepep.read_copies)
      / ((about.multiprocessors or deepep.multiprocessors) * deepep.copy_bytes_per_s)
  end
  if #nodes > 0 then -- by network to one GPU of every node, which forwards
    local latency_s, bytes_per_s = cluster:wire(devices[1], nodes[1])
    local count = dispatcher.destinations(#nodes + 1, about.experts, about.top_k)
    far_s = 2 * start_s + latency_s + bytes * count * #nodes / (#nodes + 1) / bytes_per_s
  end
  return first_s + math.max(copy_s, far_s, #inside > 1 and exchange_s(inside, copies) or 0)
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
