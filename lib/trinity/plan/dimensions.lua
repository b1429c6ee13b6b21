-- The dimensions of a plan, each declared once, in the order of the loops: a name, the minimum and maximum of integers
-- or the words that it takes, what options of commands say of it, and
--   family   it decides what one device does for one micro-batch: points that share these dimensions share a profile
--   real     it takes any numbers, not only integers
--   rare     --help leaves it to --help-all

local prices = require 'trinity.cluster.prices'
local util = require 'trinity.base.util'

local dimensions = {}

--- Words for what of a step is minimized in place of its time.
dimensions.rewards = util.merged({ p95 = true }, prices.set)

dimensions.list = {
  { 'micro_batch', { 1, 2 ^ 20 }, 'samples that a replica works on at a time', family = true },
  { 'tensor', { 1, 4096 }, 'devices that share every operator; powers of two within a machine', family = true },
  { 'context', { 1, 4096 }, 'devices that share the sequence', family = true },
  { 'expert', { 1, 4096 }, 'of data: devices that share the experts', family = true },
  { 'sequence_parallel', { true, false }, 'what tensor leaves whole is cut along the sequence', family = true,
    rare = true },
  { 'recompute', { 'none', 'selective', 'full', 'by_layer' },
    'none, selective, full, by_layer, or modules joined by +: core_attn+mlp, ...', family = true },
  { 'placement', { 1, 4096 }, 'places in a stage on which methods place single operators; 1 unless it is given',
    rare = true },
  { 'pipeline', { 1, 4096 }, 'stages' },
  { 'data', { 1, 4096 }, 'replicas; the most that the other axes leave devices for', rare = true },
  { 'schedule', { 'gpipe', '1f1b', 'interleaved', 'zb-h1', 'zb-h2', 'zb-interleaved', 'zb-v', 'dualpipe-v' },
    'gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-interleaved, zb-v, dualpipe-v' },
  { 'virtual_stages', { 1, 4096 }, 'of a device', rare = true },
  { 'stages', { 'even', 'balanced' }, 'even, balanced', rare = true },
  { 'zero_stage', { 0, 3 }, 'ZeRO stage, 0 to 3' },
  { 'bucket_bytes', { 0, 2 ^ 50 }, 'of gradients that are reduced together; 0: as the runtime does by itself',
    rare = true },
  { 'algorithm', { 'automatic', 'ring', 'halving_doubling', 'tree', 'hierarchical', 'leader' },
    'of all-reduces: automatic, ring, tree, ...', rare = true },
  { 'order', { 'natural', 'fastest_first', 'fastest_last' },
    'of the devices of an unequal cluster: natural, fastest_first, fastest_last', rare = true },
  { 'rank_order', { 'default' }, "axes of the mesh from the innermost, as 'tensor-pipeline-data'; searched where racks "
    .. 'differ', rare = true },
  { 'optimizer_offload_fraction', { 0, 1 }, 'share of the optimizer on the host (CPU offload), 0 to 1; searched for '
    .. 'plans that do not fit without it', real = true, rare = true },
  { 'activation_offload_fraction', { 0, 1 }, "share of the layers' activations on the host, 0 to 1; searched for plans "
    .. 'that do not fit without it on GPUs with NVLink-C2C', real = true, rare = true },
}

--- Their declarations, for trinity.options.
function dimensions.options()
  local list = { layout = { type = 'string', rare = true,
    help = "Megatron-LM's layout of stages, in place of --stages and --virtual_stages: 'Et*3|(tt|)*29mL'" } }
  for _, entry in ipairs(dimensions.list) do
    list[entry[1]] = { type = 'string', help = entry[3], rare = entry.rare }
  end
  return list
end

return dimensions
