-- Meshes of up to 512 devices on machines by name, some of which are unlike the others: what is priced by devices that
-- behave alike (`trinity help symmetry`) beside the simulation of every operator on every device.

local trinity = require 'trinity'

local machines = { 'dgx_h100', 'dgx_h100', 'dgx_h100', 'dgx1_v100', 'dgx_h100:4', 'dgx_h100:6', 'h100_pcie_8' }
local compared = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes', 'total_communication_bytes',
  'excess_memory_bytes', 'transfers' }

local function decoder(layers)
  return trinity.model('gpt2', { layers = layers, hidden = 512, heads = 32, sequence = 128, vocabulary = 1024,
    batch_size = 1, fused = false, dropout = 0 })
end

--- A network of 16 experts a layer, from a config.json.
local function mixture(layers)
  local taken = os.tmpname()
  local file = assert(io.open(taken .. '.json', 'w'))
  file:write(trinity.json.encode { model_type = 'mixtral', hidden_size = 256, intermediate_size = 512,
    num_attention_heads = 32, num_key_value_heads = 16, vocab_size = 512, max_position_embeddings = 4096,
    rms_norm_eps = 1e-5, num_local_experts = 16, num_experts_per_tok = 2, torch_dtype = 'bfloat16',
    num_hidden_layers = layers })
  file:close()
  local graph = trinity.model(taken .. '.json', { sequence = 64 })
  os.remove(taken .. '.json')
  return graph
end

local function plan_of(pick)
  local mesh = { pipeline = pick { 1, 2, 3, 4, 5, 6, 8, 8, 16 }, tensor = pick { 1, 2, 4, 8, 8, 16, 16, 32 },
    context = pick { 1, 1, 1, 2, 2, 4 }, data = pick { 1, 2, 3, 4, 6, 8, 16 }, expert = pick { 1, 1, 1, 1, 2, 4 } }
  local schedule = pick { '1f1b', '1f1b', 'gpipe', 'interleaved', 'zb-h1', 'zb-h2', 'zb-v', 'dualpipe-v' }
  local in_a_v = schedule == 'zb-v' or schedule == 'dualpipe-v'
  return { mesh = mesh, schedule = schedule, shard = pick { 0, 1, 2, 3 }, micro_batches = mesh.pipeline * pick { 1, 2, 3 },
    virtual_stages = schedule == 'interleaved' and pick { 2, 3 } or in_a_v and 2 or nil,
    sequence_parallel = mesh.tensor > 1 and (mesh.expert > 1 or pick { true, false }),
    recompute = pick { 'none', 'none', 'selective', 'full' }, bucket_bytes = pick { 25e6, 25e6, 25e6, 1e6, 1e5 },
    context_kind = pick { 'ring', 'all_gather', 'all_to_all' },
    order = pick { { 'tensor' }, { 'tensor' }, { 'data', 'tensor', 'pipeline' }, { 'tensor', 'pipeline', 'data' } } }
end

--- How many devices, or nothing where the simulation of all would take long.
local function devices_of(plan, layers)
  local mesh = plan.mesh
  local devices = mesh.pipeline * mesh.tensor * mesh.context * mesh.data
  local long = layers * devices / mesh.pipeline * plan.micro_batches > 12000 or devices > 512 or layers > 64
  return not long and mesh.data % mesh.expert == 0 and devices or nil
end

local function cluster_of(pick, devices)
  local kind = pick(machines)
  local count = math.ceil(devices / (tonumber(kind:match ':(%d)') or 8)) + pick { 0, 0, 1 }
  if count > 1 and pick { true, false, false, false } then return ('%sx%d+dgx_a100x1'):format(kind, count) end
  return ('%sx%d'):format(kind, count)
end

--- Compares what is found by a plan; how many devices that took, or nothing where it is refused.
local function compare(graph, cluster, queue, plan)
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster(cluster), rules = { queue = queue } }
  local ok, found = pcall(problem.strategy, problem, plan)
  if not ok then
    expect(tostring(found)):matches 'problem:strategy: '
    return nil
  end
  local whole = problem:timeline(found).metrics
  for _, field in ipairs(compared) do
    if tonumber(whole[field]) ~= tonumber(found.metrics[field]) then
      error(('%s of %s on %s, queue %s: %.17g, of all devices %.17g'):format(field, trinity.json.encode(plan), cluster,
        queue, tonumber(found.metrics[field]), tonumber(whole[field])), 0)
    end
  end
  for d = 1, #problem.cluster.devices do
    for _, field in ipairs { 'compute_busy_s', 'memory_bytes', 'sent_bytes', 'received_bytes' } do
      if found.metrics[field](found.metrics, d) ~= whole[field](whole, d) then
        error(('%s of device %d of %s on %s'):format(field, d, trinity.json.encode(plan), cluster), 0)
      end
    end
  end
  return problem:simulated_devices(found)
end

local function draw(seed, wanted)
  local stream = trinity.random(seed, 'machines')
  local function pick(list) return list[1 + math.floor(stream:uniform() * #list)] end
  local done, folded = 0, 0
  while done < wanted do
    local plan = plan_of(pick)
    local layers = plan.mesh.pipeline * (plan.virtual_stages or 1) * pick { 1, 2, 3, 4, 5, 6, 8 }
    local queue = pick { 'sender', 'sender', 'pair', 'route', 'none' }
    local devices = devices_of(plan, layers)
    if devices then
      local graph = (plan.mesh.expert > 1 and mixture or decoder)(layers)
      local simulated = compare(graph, cluster_of(pick, devices), queue, plan)
      if simulated then done, folded = done + 1, folded + (simulated < devices and 1 or 0) end
    end
  end
  return folded
end

describe('a mesh on machines by name', function()
  for seed = 1, 3 do
    it(('is priced as all of its devices, seed %d'):format(seed), function() expect(6):below(draw(seed, 12)) end)
  end
end)
