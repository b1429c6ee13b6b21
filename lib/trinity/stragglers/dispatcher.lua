-- Token dispatchers of experts (--moe-token-dispatcher-type and --moe-flex-dispatcher-backend of Megatron-LM): their
-- messages, and the passes over memory that order rows by expert (core/transformer/moe/token_dispatcher.py with
-- --moe-permute-fusion).

local dispatcher = { names = { 'alltoall', 'deepep', 'hybridep' } }

-- DeepEP in normal mode, fitted to 432 messages of AIConfigurator on one node of B200, GB200 or GB300 (mean error 6 %):
-- time of a call, bytes/s that one multiprocessor copies, bytes of a row in addition to its values, and how many copies
-- reading a token is worth.
local deepep = { call_s = 46e-6, copy_bytes_per_s = 28.2e9, row_bytes = 2018, read_copies = 1.78, multiprocessors = 20 }

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
--- send a token once to each node and once to each GPU, deepep with some of the multiprocessors.
function dispatcher.message_s(name, cluster, devices, about)
  local bytes, inside, nodes = about.tokens * about.token_bytes, {}, {}
  local function exchange_s(members, copies)
    local query = { kind = 'all_to_all', devices = members, bytes = math.floor(bytes * copies + 0.5) }
    return cluster:collective(query).time_s
  end
  if name == 'alltoall' then return exchange_s(devices, about.top_k) end
  local home = cluster.devices[devices[1]].node
  for _, device in ipairs(devices) do
    local node = cluster.devices[device].node
    if node == home then inside[#inside + 1] = device
    elseif not nodes[node] then nodes[#nodes + 1], nodes[node] = device, true end
  end
  local copies, copy_s, far_s = copies_of(about, #devices), 0, 0
  if name == 'deepep' then
    copy_s = deepep.call_s + about.tokens * (about.token_bytes + deepep.row_bytes) * (copies + deepep.read_copies)
      / ((about.multiprocessors or deepep.multiprocessors) * deepep.copy_bytes_per_s)
  end
  if #nodes > 0 then -- by network to one GPU of every node, which forwards
    local latency_s, bytes_per_s = cluster:wire(devices[1], nodes[1])
    local count = dispatcher.destinations(#nodes + 1, about.experts, about.top_k)
    far_s = (name == 'deepep' and 2 * deepep.call_s or latency_s) + bytes * count * #nodes / (#nodes + 1) / bytes_per_s
  end
  return math.max(copy_s, far_s, #inside > 1 and exchange_s(inside, copies) or 0)
end

--- Returns the bytes that one rank reads and writes to order rows by expert, before or after a message. received:
--- tokens that it receives, relative to an even load.
function dispatcher.permuted_bytes(name, ranks, about, received)
  if name == 'hybridep' then return 0 end -- part of the message
  local rows, copies = about.top_k, (about.padded and 2 or 0) * about.top_k * received
  if name == 'deepep' then copies = copies + (copies_of(about, ranks) + rows) * received
  else -- by rank, then by expert
    copies = copies + 1 + rows + (about.experts > ranks and ranks > 1 and 2 * rows * received or 0)
  end
  return copies * about.tokens * about.token_bytes
end

return dispatcher
