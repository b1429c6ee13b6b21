-- Forward and backward pass of one layer of experts on 8 H100, which Megatron-LM's functional tests time (common/moe_perf
-- there), by trinity.stragglers.expert_load of an even load and the test's token dispatcher.
--
-- The test runs the layer alone: after pauses, with nothing else on the GPU. So its constants are the constants of kernels
-- that run alone, and none is fitted to these rows: rates of matmuls by AIConfigurator's table, messages at the rate of
-- collectives, copies at 0.92 of the memory's bandwidth (3.07 TB/s, STREAM triad and copies on H100 of 80 GB). Its
-- configuration has experts without gates, a GELU of its own, probabilities in float32, no buffers of gradients, and no
-- shared expert: it does not pass shared_ffn on.

require 'trinity' -- all methods of problems

local constants = require 'trinity.cluster.constants'
local experts = require 'trinity.stragglers.experts'
local kernels = require 'studies.fidelity.kernels'
local layers = require 'trinity.graph.layers'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local runtimes = require 'trinity.cluster.runtimes'
local step_of = require 'trinity.stragglers.step'
local util = require 'trinity.base.util'

local moe_layer = {}

local kind, machine = 'h100', 'dgx_h100x1'
local copy_share = 0.92
-- PyTorch's kernels that convert dtypes as they load make 387e9 float32 of bfloat16 a second on a GPU of 8 TB/s
-- (github.com/PaddlePaddle/Paddle/pull/76988): by multiprocessors of an H100 (132 of 148) 2.07 TB/s, 0.67 of a copy.
local software = { base = 'megatron', fuses_elementwise = false, keeps_gradients = false, mixed_share = 0.67 }
local bytes_of_kind = 3.35e12

--- Constants of kernels that run alone. factor: what corrects the rate of wide matmuls, by their group.
local function constants_of(path)
  local own, ratios, factor = constants.calibrated(kind), {}, {}
  for _, row in ipairs(kernels.matmuls(path, 8, kind)) do
    if row.order > 2 then ratios[#ratios + 1] = { group = row.group, ratio = row.predicted / row.measured } end
  end
  for _, group in ipairs(util.grouped(ratios, function(one) return one.group end)) do
    factor[group.name] = util.median(util.map(group, function(one) return one.ratio end))
  end
  return { [kind] = { compute_efficiency = own.compute_efficiency * factor[kind .. ', bfloat16'],
    fp8 = own.fp8 * factor[kind .. ', float8'], memory_efficiency = copy_share, expert = 1, routing = 1,
    inside_share = 1, launch_s = 3e-6, expert_dispatch_s = 3e-6 } }
end

--- A layer as a graph: experts, a norm in place of what their input comes from, and a mean in place of what follows.
local function graph_of(one)
  local net = layers.new('layer', { dtype = one.float8 and 'float8' or 'bfloat16', batch_size = one.micro_batch })
  local x = net:rms_norm('before', net:input('x', { one.micro_batch, one.sequence, one.hidden }))
  local y = net:mixture_of_experts('layer_1/moe', x, { feed_forward = one.moe_ffn, experts = one.experts,
    top_k = one.top_k, kernels = 'flash', gated = false, apart = true, router_dtype = 'float32',
    router = one.is_deepseek and 'sigmoid' or 'softmax' })
  net:reduce_mean('loss', net:reshape('loss/input', y, { one.micro_batch * one.sequence * one.hidden }), 1)
  return net:build()
end

--- Seconds of a graph's passes with a dispatcher, without norm, loss and update, and the peak of a GPU's allocations.
local function passes_of(one, graph, cluster)
  local strategy = problems.simulator { graph = graph, cluster = cluster }:strategy { mesh = { data = one.ep,
    expert = one.ep } }
  local step, last_s, others_s = step_of('moe_layer', strategy), 0, 0
  for _, node in ipairs(step.nodes) do
    local op = node.op
    if op.phase ~= 'update' and op.type ~= 'AllReduce' then last_s = math.max(last_s, node.end_s) end
    local name = op.name:match '^[^@]*'
    local is_other = name:find '^loss' or name == 'before' or name == 'before/grad'
    if node.device == 1 and is_other then others_s = others_s + node.end_s - node.start_s end
  end
  local found = experts.expert_load(strategy, { load = 'uniform', dispatcher = one.dispatcher,
    group_topk = one.is_deepseek and 4 or nil }) -- moe_router_group_topk of its DeepSeek case
  local masters = 4 * 2 * one.experts / one.ep * one.hidden * one.moe_ffn -- of an optimizer, which the test has not
  return found.step_time_s - (strategy.metrics.step_time_s - last_s) - others_s,
    found.peak_memory_bytes - runtimes.read(software).context_bytes - masters
end

--- The cluster of the tests, with kernels at the rates of a table of matmuls.
function moe_layer.cluster(matmuls)
  return model.cluster(machine, { constants = constants_of(matmuls), runtime = software })
end

--- Seconds of the passes and the peak of a layer { ep, dispatcher, float8, is_deepseek, sequence, micro_batch, hidden,
--- moe_ffn, experts, top_k }. Copies to FP8 that the graph does not have come on top: Transformer Engine quantizes
--- everything by rows and by columns, weights in the first pass alone (extensions/transformer_engine.py,
--- is_first_microbatch): elements read in 16 bits and written twice in 8.
function moe_layer.predicted(one, cluster)
  local graph = graph_of(one)
  local forward_s = passes_of(one, graph, cluster)
  local both_s, peak_bytes = passes_of(one, graph:to_training { optimizer = 'sgd' }, cluster)
  local copied = one.float8 and one.sequence * one.micro_batch * one.top_k * (one.hidden + one.moe_ffn) or 0
  local kept = one.float8 and 2 * 2 * one.experts / one.ep * one.hidden * one.moe_ffn or 0
  local rate = copy_share * bytes_of_kind
  return { forward_s = forward_s + copied / rate, backward_s = both_s - forward_s + 4 * copied / rate,
    peak_bytes = peak_bytes + kept }
end

return moe_layer
