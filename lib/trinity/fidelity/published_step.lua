-- The step of a published run: its network as a graph, its plan as a mesh, its machines as a cluster whose device type
-- and links the fitted constants change. The prediction is problem:evaluate's and nothing else.

local calibration = require 'trinity.cluster.calibration'
local devices = require 'trinity.cluster.devices'
local model = require 'trinity.graph.model'
local network = require 'trinity.graph.decoder.network'
local nodes = require 'trinity.cluster.nodes'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'
local vtrain_rows = require 'trinity.fidelity.vtrain_rows'

local published_step = {}

--- Constants that are fields of a description; the others are the device type's below.
local fields = { 'compute_efficiency', 'half_width' }
local most_lowered = 72 -- GPUs (of one rack) of a plan with rings, each of which is lowered by itself

local function attention_of(m)
  local d = m.deepseek
  if d then
    return { heads = m.heads, latent = d.latent, query_latent = d.query_latent, plain_width = d.plain_width,
      rotary_width = d.rotary_width, value_width = d.value_width }
  end
  return { heads = m.heads, key_heads = m.kv_heads, head_width = m.head_width, bias = not m.gated,
    output_bias = not m.gated }
end

local function feed_of(m, layer)
  local d = m.deepseek
  if m.experts > 0 and not (d and layer <= d.dense_layers) then
    return { feed_forward = d and d.expert_ffn or m.ffn, experts = m.experts, top_k = m.top_k,
      shared = d and d.shared or nil, router = d and 'sigmoid' or nil }
  end
  if m.gated then return { feed_forward = m.ffn } end
  return { plain = true, feed_forward = m.ffn, bias = true, approximate = 'tanh' }
end

--- Whether a row's rings of attention are priced with their messages. (FSDP shares weights out over parts of sequences,
--- too: torchtitan's mesh dp_shard_cp. As replicas, which then share out alike, their memory is
--- that of the rows; the ring's messages are a percent of the step.)
---@param row table
---@return boolean
function published_step.has_ring(row)
  local plan = row.plan
  return plan.context > 1 and plan.tensor == 1 and plan.pipeline == 1 and plan.gpus <= most_lowered and plan.shard < 3
end

--- Rings of attention as they are priced: { parts, sequence, data, share }. Every part of a ring is lowered by itself,
--- which networks in stages or with parts of layers are too large for. Those are priced as more replicas of shorter
--- sequences: a device has as many tokens, attention, which then sees `share` of its keys, reaches that much less, and
--- the ring's messages are left out, as what hides behind attention.
---@param row table
---@return { parts: integer, sequence: integer, data: integer, share: number }
function published_step.ring(row)
  local plan = row.plan
  local parts = published_step.has_ring(row) and plan.context or 1
  local share = parts / plan.context
  return { parts = parts, sequence = row.sequence * share, data = plan.data / share, share = share }
end

--- The training graph of a row's micro-batch.
---@param row table
---@return trinity.Graph
function published_step.graph(row)
  local m, plan, sequence = row.network, row.plan, published_step.ring(row).sequence
  local parts = plan.tensor
  local width = m.deepseek and m.deepseek.rotary_width or m.head_width or m.hidden / m.heads
  local about = { name = row.id, layers = m.layers, hidden = m.hidden, vocabulary = math.ceil(m.vocab / parts) * parts,
    tied = false, positions = m.gated and 0 or sequence, norm = m.gated and 'rms' or 'layer', epsilon = 1e-5,
    dropout = plan.unfused and 0.1 or 0, rotary_width = m.gated and 2 * math.floor(width / 2) or 0,
    attention = function() return attention_of(m) end, feed_forward = function(layer) return feed_of(m, layer) end }
  local forward = network.build(about, { batch_size = plan.micro_batch, sequence = sequence,
    dtype = row.precision == 'bf16' and 'bfloat16' or 'float8', kernels = plan.unfused and 'megatron' or 'flash',
    fused_loss = plan.fused_loss })
  return forward:to_training { optimizer = 'adam', gradient_dtype = 'float32' }
end

--- Arithmetic of products that is not in 16 bits, of the data sheet's FP8 rate: FP4 has twice, on GB300 and B300 three
--- times that (data sheets "NVIDIA GB200 NVL72", "NVIDIA GB300 NVL72").
local fp4_rate = { GB200 = 2, B200 = 2, GB300 = 3, B300 = 3 }

--- What products scaled by row reach of those scaled by tensor ("Most shapes are within 90-100 % of tensor-wise
--- efficiency", github.com/pytorch/pytorch/issues/147971).
local rowwise_products = 0.95

--- How many times as fast as before recipes move and map the tokens of experts that record whole iterations.
local function release_of(row, values) return row.recorded == 'all' and values.release or 1 end

--- What copies of operands that the graph counts are of those that torchao makes (torchao/float8, its README and
--- benchmarks/float8/float8_roofline.py). Counted are 3 bytes of every element that a product reads, and the logits'
--- copies to float32. Made are those of gradients that come into products, too, and all in both orders, for products of
--- gradients sum over tokens. Scaled by tensor: read for the largest value, read and written (5 bytes), copied in the
--- other order (2). By row: one kernel finds a row's largest value and writes (3), that of a column reads twice (5);
--- what is gathered along a split of layers is copied behind that, whole on every device ("For rowwise recipes, we use
--- regular TP and all-gather happens in high precision", torchtitan/models/llama3/infra/parallelize.py), as are
--- gradients of what a split sums.
---@param row table
---@return number
function published_step.cast_share(row)
  local m, t = row.network, row.plan.tensor
  local again, rowwise = row.plan.recompute ~= 'none' and 2 or 1, row.precision == 'fp8_rowwise'
  local split = (m.hidden + m.ffn) / t
  local counted, gathered = 3 * again * (split + 2 * m.hidden / t), 2 * m.hidden / (rowwise and 1 or t)
  local come = (m.hidden * (1 + 2 * m.kv_heads / m.heads) + 2 * m.ffn) / t + 2 * m.hidden
  local made = rowwise and (3 * again + 5) * (split + gathered) + 8 * come
    or (5 * again + 2) * (split + gathered) + 7 * come
  local logits = 6 * m.vocab / t / m.layers
  return (counted + logits) / (made + logits)
end

--- A device type beside what calibration.apply() gives it: products of 8 and 4 bits reach their own share of their own
--- peak, fused attention and experts' products their own. Kernels are those of today: joined where they can be.
local function device_type(kind, row, values)
  local type = devices[kind]
  local rate = row.precision == 'nvfp4' and fp4_rate[row.gpu] or 1
  local peaks, wide = util.merged(type.peak_flops_per_s), values.compute_efficiency
  if peaks.float8 and row.precision ~= 'bf16' then
    local reached = row.precision == 'fp8_rowwise' and values.fp8 * rowwise_products or values[row.precision]
    peaks.float8 = peaks.float8 * rate * reached / wide
  end
  local faster = release_of(row, values)
  local expert = { compute_efficiency = wide * values.expert }
  local expert_backward = { compute_efficiency = wide * values.expert }
  -- rings without balance: the last part of a causal sequence has 2 - 1/c times the mean's work
  local unbalanced = row.plan.torchtitan and 2 - 1 / row.plan.context or 1
  local attention = { compute_efficiency = values.attention / unbalanced * published_step.ring(row).share }
  local routing = { memory_efficiency = values.memory_efficiency * values.routing * faster }
  local fused = row.recorded and { memory_efficiency = values.memory_efficiency * faster } or nil
  local cast = fused
  if row.plan.torchtitan and row.precision ~= 'bf16' then
    local way = row.precision == 'fp8_rowwise' and values.rowwise or 1
    cast = { memory_efficiency = values.memory_efficiency * way * published_step.cast_share(row) }
  end
  if row.recorded and row.recorded ~= 'all' then
    -- Every expert's products are kernels of their own, backward two for one.
    local own = row.network.experts / row.plan.expert_ranks * values.expert_dispatch_s
    expert.dispatch_s, expert_backward.dispatch_s, routing.dispatch_s = own, 2 * own, values.expert_dispatch_s
  end
  return util.merged(type, { peak_flops_per_s = peaks, joins_products = true,
    operators = { Attention = attention, AttentionGrad = attention, Einsum = expert, EinsumGrad = expert_backward,
      ExpertDispatch = routing, ExpertDispatchGrad = routing, ExpertCombine = routing, ExpertCombineGrad = routing,
      SwiGLU = fused, SwiGLUGrad = fused, Cast = cast, CastGrad = fused } })
end

--- Machines of `most` GPUs for a job of `gpus`, as a name that nodes.spec takes. Schedulers give a job segments of
--- equal size (64 of a rack's 72 GPUs for 256): so the fewest machines that divide the GPUs, up to twice the minimum;
--- otherwise full machines and a last one with the remainder.
---@param machine string
---@param gpus integer
---@return string
function published_step.machines(machine, gpus)
  local most = nodes.find(machine)
  local fewest = math.ceil(gpus / most)
  for count = fewest, 2 * fewest do
    if gpus % count == 0 then return ('%s:%dx%d'):format(machine, gpus / count, count) end
  end
  return ('%s:%dx%d+%s:%d'):format(machine, most, fewest - 1, machine, gpus - most * (fewest - 1))
end

--- The cluster of a row's GPUs.
---@param row table
---@param values table<string, number>
---@return trinity.ClusterSpec
function published_step.cluster(row, values)
  local spec = nodes.spec(published_step.machines(row.machine, row.plan.gpus))
  local _, kind = nodes.find(row.machine)
  -- A stage's last gradients go to the stage before at once: they do not wait for its reduction over replicas, which
  -- takes other pairs of devices. (All-to-alls take all pairs.)
  if row.network.experts == 0 then spec.queue = 'pair' end
  spec.device_types = util.merged(spec.device_types or {}, { [kind] = device_type(kind, row, values) })
  return calibration.apply(spec, util.merged(util.picked(values, fields), {
    inside_share = values.inside_share * release_of(row, values) * (row.plan.async and values.async or 1),
    network_share = row.plan.deepspeed and values.zero3 or values.network_share,
    memory_efficiency = values.memory_efficiency * (row.plan.eager and values.eager or 1)
      * (row.plan.early and values.early or 1),
    launch_s = values.launch_s, dispatch_s = row.recorded == 'none' and values.layer_dispatch_s or nil,
    overlap = 1 }))
end

--- torchtitan's selective recomputation: of every layer attention is kept and every second matrix product from the
--- first on; all else is computed again (torchtitan/distributed/activation_checkpoint.py, option "op").
local function selective()
  local products = {}
  return function(op)
    local layer = op.name:match '^layer_%d+'
    if op.type == 'Attention' or not layer then return nil end
    if op.type ~= 'Gemm' and op.type ~= 'MatMul' then return true end
    products[layer] = (products[layer] or 0) + 1
    return products[layer] % 2 == 0 or nil
  end
end

--- What a row's framework does where it says `word`: that word, or a function of operators.
---@param row table
---@param word string
---@return string|fun(op: table): boolean?
function published_step.recompute(row, word)
  return row.plan.torchtitan and word == 'selective' and selective() or word
end

--- What problem:evaluate is asked of a row; recompute: in place of its own.
---@param row table
---@param values table<string, number>
---@param recompute? string
---@param spec? trinity.ClusterSpec
---@return trinity.Problem
---@return trinity.MeshStrategy
function published_step.problem(row, values, recompute, spec)
  local plan, m = row.plan, row.network
  recompute = published_step.recompute(row, recompute or plan.recompute)
  local problem = problems.simulator { graph = published_step.graph(row),
    cluster = model.cluster(spec or published_step.cluster(row, values)) }
  local ring = published_step.ring(row)
  local stages = vtrain_rows.stages(m.layers, plan.pipeline * plan.virtual)
  return problem, { mesh = { data = ring.data, tensor = plan.tensor, pipeline = plan.pipeline, context = ring.parts,
    expert = plan.expert }, schedule = plan.virtual > 1 and 'interleaved' or '1f1b', virtual_stages = plan.virtual,
    stages = stages, micro_batches = plan.micro_batches, recompute = recompute, shard = plan.shard,
    sequence_parallel = plan.sequence_parallel, bucket_bytes = plan.pipeline > 1 and 2 ^ 50 or nil }
end

--- What is tried where a plan without recomputation does not fit: kernels that are not fused keep the scores of
--- attention.
local next_recompute = { none = 'selective', selective = 'full' }
local room = 0.9 -- of a GPU's memory: the allocator needs some

--- A mixture's row with one group of replicas, which have all experts once: the others do the same beside it, and what
--- gradients take over more of them is some tenths of a percent. Networks without experts are as they were.
---@param row table
---@return table
function published_step.folded(row)
  local plan = row.plan
  if row.network.experts == 0 or plan.data <= plan.expert then return row end
  local share = plan.expert / plan.data
  return util.merged(row, { tokens = row.tokens * share,
    plan = util.merged(plan, { data = plan.expert, gpus = plan.gpus * share }) })
end

--- Metrics of a strategy; `short`: with many micro-batches, of two smaller counts and the line through them, for every
--- further one takes as long once the pipeline is full.
local function metrics_of(problem, strategy, short)
  local count, few = strategy.micro_batches, 2 * math.max(1, strategy.mesh.pipeline)
  if not short or count <= 3 * few then return problem:evaluate(strategy) end
  local steps = util.map({ few, 2 * few }, function(some)
    return problem:evaluate(util.merged(strategy, { micro_batches = some }))
  end)
  local each_s = (steps[2].step_time_s - steps[1].step_time_s) / few
  return { step_time_s = steps[1].step_time_s + (count - few) * each_s, peak_memory_bytes = steps[2].peak_memory_bytes }
end

--- Tokens per second and GPU, bytes of the fullest GPU, and the recomputation that was priced: that of the row, or
--- where it is none and does not fit, of kernels without fused attention, the least that does.
--- look: is called with the problem, which is closed behind it. short: for fits, what costs less and is nearly the
--- same: the row folded, and few micro-batches.
---@param row table
---@param values table<string, number>
---@param spec? trinity.ClusterSpec
---@param look? fun(problem: trinity.Problem, recompute: string)
---@param short? boolean
---@return { tokens_per_s_per_gpu: number, memory_bytes: number, recompute: string }
function published_step.predict(row, values, spec, look, short)
  if short then row = published_step.folded(row) end
  local adapts = row.plan.unfused and row.plan.recompute == 'none'
  local function price(recompute)
    local problem, strategy = published_step.problem(row, values, recompute, spec)
    local metrics = metrics_of(problem, strategy, short)
    local most = room * problem.cluster.devices[1].capacity_bytes
    local again = adapts and next_recompute[recompute] and metrics.peak_memory_bytes > most
    if look and not again then look(problem, recompute) end
    problem:close()
    problem.graph:close()
    if again then return price(next_recompute[recompute]) end
    return { tokens_per_s_per_gpu = row.tokens / (metrics.step_time_s * row.plan.gpus),
      memory_bytes = metrics.peak_memory_bytes, recompute = recompute }
  end
  return price(row.plan.recompute)
end

return published_step
