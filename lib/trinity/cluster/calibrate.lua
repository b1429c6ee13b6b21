-- A cluster's description with constants (constants.lua) and a runtime (runtimes.lua) in its fields, so that whatever
-- is simulated on it rests on them. Kinds of devices that the description defines itself stay as they are.

local constants = require 'trinity.cluster.constants'
local devices = require 'trinity.cluster.devices'
local progress = require 'trinity.base.progress'
local runtimes = require 'trinity.cluster.runtimes'
local util = require 'trinity.base.util'

local calibrate = {}

--- Constants of a kind that was never compared with a run: its data sheet, and where fits start.
local function of_sheet(known)
  return { compute_efficiency = known.compute_efficiency, memory_efficiency = known.memory_efficiency,
    attention = known.compute_efficiency, clock = 1, half_width = known.half_width, launch_s = known.launch_s,
    expert = constants.by_name.expert.start,
    routing = constants.by_name.routing.start, inside_share = 1, network_share = 1,
    expert_dispatch_s = constants.by_name.expert_dispatch_s.start,
    layer_dispatch_s = constants.by_name.layer_dispatch_s.start }
end

--- Peak of FP8 as matmuls reach it, so that the kind's efficiency of 16 bits gives it.
local function peaks_of(known, c, r)
  local peaks = util.merged(known.peak_flops_per_s)
  local recipe = r.float8 or c.float8
  if not peaks.float8 or not recipe then return peaks end
  local reached = c[recipe == 'fp8_rowwise' and 'fp8' or recipe]
  -- Row-wise matmuls reach 90 to 100 % of tensor-wise ones (github.com/pytorch/pytorch/issues/147971).
  if recipe == 'fp8_rowwise' then reached = 0.95 * reached end
  local rate = recipe == 'nvfp4' and c.nvfp4_rate or 1
  peaks.float8 = peaks.float8 * rate * reached / c.compute_efficiency
  return peaks
end

--- A kind of device with its constants under a runtime, for a network of these traits.
local function device_type(kind, known, c, r, traits)
  local mixture = traits.experts
  local wide, memory = c.clock * c.compute_efficiency * r.compute_share, c.memory_efficiency * r.memory_share
  local faster = mixture and r.cuda_graphs == 'all' and r.routing_speed or 1
  local host = mixture and r.cuda_graphs ~= 'all'
  local host_s = host and r.dispatch_share * c.expert_dispatch_s or nil
  local expert = { compute_efficiency = wide * c.expert, dispatch_s = host_s }
  local hopper = kind:find '^g?h%d' and r.hopper_attention_share or 1
  local attention = { compute_efficiency = c.attention * r.attention_share * hopper }
  local routing = { memory_efficiency = memory * c.routing * faster, dispatch_s = host_s }
  local fused = faster ~= 1 and { memory_efficiency = memory * faster } or nil
  local copies = traits.float8 and (r.float8 == 'fp8_rowwise' and r.rowwise_cast_share or r.cast_share) or 1
  local cast = faster * copies ~= 1 and { memory_efficiency = memory * faster * copies } or nil
  local mixed = r.mixed_share ~= 1 and { memory_efficiency = memory * r.mixed_share } or nil
  local operators = { Attention = attention, AttentionGrad = attention, Einsum = expert, EinsumGrad = expert,
    ExpertDispatch = routing, ExpertDispatchGrad = routing, ExpertCombine = routing, ExpertCombineGrad = routing,
    UnalignedMatMul = c.unaligned and { compute_efficiency = wide / (1 + c.unaligned) } or nil,
    SwiGLU = fused, SwiGLUGrad = fused, Cast = cast, CastGrad = fused, Mul = mixed, MulGrad = mixed,
    ['Cast:float32'] = { memory_efficiency = memory * r.logits_share },
    Update = traits.float8 and r.update_s > 0 and { dispatch_s = r.update_s } or nil }
  return util.merged(known, { peak_flops_per_s = peaks_of(known, c, r), compute_efficiency = wide,
    memory_efficiency = memory, half_width = c.half_width, launch_s = r.launch_share * c.launch_s,
    dispatch_s = mixture and r.cuda_graphs == 'none' and r.dispatch_share * c.layer_dispatch_s or nil,
    framework_bytes = runtimes.framework_bytes(r, kind, mixture), keeps_gradients = r.keeps_gradients,
    fuses_elementwise = r.fuses_elementwise, joins_products = r.joins_products, overlap = r.overlap,
    operators = util.merged(known.operators, operators) })
end

--- Where an endpoint is: the node, nil for what nodes share; and whether it is a NIC.
local function place_of(endpoint)
  if type(endpoint) ~= 'string' then return nil end
  return endpoint:match '^([^/]+)/', endpoint:find '/nic%d' ~= nil
end

--- Links with their shares; kind_of: { node = kind of GPU }. Those to NICs and between nodes are the network's.
local function scaled(links, kind_of, shares)
  if type(links) ~= 'table' then return links end
  return util.map(links, function(link)
    if type(link) ~= 'table' then return link end
    local from, from_nic = place_of(link.from)
    local to, to_nic = place_of(link.to)
    local share = shares[kind_of[from] or kind_of[to]]
    if not share or type(link.bandwidth_bytes_per_s) ~= 'number' then return link end
    local inside = from ~= nil and from == to and not from_nic and not to_nic
    return util.merged(link, { bandwidth_bytes_per_s = link.bandwidth_bytes_per_s
      * (inside and share.inside or share.network) })
  end)
end

--- Every list of devices of a description.
local function device_lists(spec)
  local lists = { type(spec.devices) == 'table' and spec.devices or {} }
  for _, machine in ipairs(type(spec.machines) == 'table' and spec.machines or {}) do
    if type(machine) == 'table' and type(machine.devices) == 'table' then lists[#lists + 1] = machine.devices end
  end
  return lists
end

local said = { 'rows', 'mean_error', 'like', 'own' }

--- Kinds of GPU of a description that are trinity.devices, and the kind of every node.
local function kinds_of(spec)
  local kinds, kind_of, own = {}, {}, spec.device_types or {}
  for _, list in ipairs(device_lists(spec)) do
    for _, device in ipairs(list) do
      local kind = type(device) == 'table' and device.type
      if type(kind) == 'string' and own[kind] == nil and devices.find(kind) then
        kinds[kind] = true
        local node = device.node or place_of(device.name)
        if node then kind_of[node] = kind end
      end
    end
  end
  return kinds, kind_of
end

--- Applies fitted constants and a runtime to a description. Returns it and what it rests on: { name, runtime, kinds =
--- { { kind, rows, mean_error, like } } }. choice: of constants.read; runtime: of runtimes.read; asked: whether the
--- caller named the runtime, which then applies to device types without constants too; traits: of the network, or nil,
--- which leaves links unchanged: the part of messages that overlap hides is a property of a step, not of a link.
function calibrate.apply(spec, choice, runtime, asked, traits)
  local mixture = traits and traits.experts
  if type(spec.device_types or {}) ~= 'table' then return spec, { name = choice.name, kinds = {} } end
  local kinds, kind_of = kinds_of(spec)
  local types, shares, basis, changed = {}, {}, { name = choice.name, kinds = {} }, false
  for kind in util.sorted_pairs(kinds) do
    local values, about = constants.of(choice, kind)
    local known = devices.find(kind)
    table.insert(basis.kinds, util.merged({ kind = kind }, about and util.picked(about, said)))
    -- Data sheets state nothing of experts: kernels that dispatch tokens to them reach the start of fits on every GPU.
    local experts_alone = mixture and choice.kinds and not values and not asked and devices.is_gpu(kind)
    if values or asked or experts_alone then
      local c = values or of_sheet(known)
      types[kind], changed = device_type(kind, known, c, runtime, traits or {}), true
      if experts_alone then types[kind] = util.merged(known, { operators = types[kind].operators }) end
      local faster = mixture and runtime.cuda_graphs == 'all' and runtime.routing_speed or 1
      shares[kind] = { inside = (runtime.tensor_overlap and c.inside_share or 1) * runtime.inside_share * faster
        * (runtime.async_tensor and runtime.async_share or 1),
        network = c.network_share * runtime.network_share }
    end
  end
  if not changed then return spec, basis end
  basis.runtime = runtime.name
  local result = util.merged(spec, { device_types = util.merged(spec.device_types, types) })
  if not traits then return result, basis end
  result.links = scaled(spec.links, kind_of, shares)
  local once, library, share = mixture and runtime.dispatcher == 'flex', spec.collectives, math.huge
  if library and once then
    library = util.merged(library, { sends_tokens_once = true })
    result.collectives = library
  end
  for _, one in util.sorted_pairs(shares) do share = math.min(share, one.inside) end
  if library and share < math.huge then -- what overlap hides of a ring's copy, as of its messages
    result.collectives = util.merged(library, { copy_bandwidth = (library.copy_bandwidth or 0) * share })
  end
  -- A stage sends its last gradients at once: they do not wait for its reduction over replicas, which takes other
  -- pairs of devices. All-to-alls of experts take all pairs.
  if spec.queue == 'route' and not mixture then result.queue = 'pair' end
  if type(spec.machines) == 'table' then
    result.machines = util.map(spec.machines, function(machine)
      return util.merged(machine, { links = scaled(machine.links, kind_of, shares) })
    end)
  end
  return result, basis
end

local function kind_text(one)
  if one.own then return ('%s: own (%s)'):format(one.kind, one.own) end
  if not one.rows then
    local note = constants.is_compared(one.kind) and '' or ', never compared with a run'
    return ('%s: data sheet%s'):format(one.kind, note)
  end
  return ('%s: %sfitted to %d runs, mean error %.1f %% left out'):format(one.kind,
    one.like and ('as %s, '):format(one.like) or '', one.rows, 100 * one.mean_error)
end

local warned = {}

--- Warns once of every kind whose numbers are its data sheet's though no run confirms them.
function calibrate.warn(basis)
  for _, one in ipairs(basis.name ~= 'data_sheet' and basis.kinds or {}) do
    if not one.rows and not one.own and not constants.is_compared(one.kind) and not warned[one.kind] then
      warned[one.kind] = true
      progress.warn(('%s has the numbers of its data sheet: it was never compared with a training run'):format(
        one.kind))
    end
  end
end

--- The basis of numbers on a cluster, as a line.
function calibrate.text(basis)
  local kinds = util.map(basis.kinds, kind_text)
  if #kinds == 0 then kinds = { "the cluster's own" } end
  return ('constants: %s%s'):format(table.concat(kinds, '; '),
    basis.runtime and ('; runtime: %s'):format(basis.runtime) or '')
end

--- The same for JSON.
function calibrate.data(basis)
  return { constants = { name = basis.name, kinds = util.map(basis.kinds, function(one)
    return { kind = one.kind, rows = one.rows, mean_error = one.mean_error, like = one.like,
      compared = one.rows ~= nil or one.own ~= nil }
  end) }, runtime = basis.runtime }
end

return calibrate
