-- What predictions of published training speeds rest on beside data sheets: at most eight constants a kind of GPU, with
-- bounds and where the fit starts. Each is a field of the cluster's device type or of its links
-- (trinity.cluster.calibration, published_step.lua);
-- values are those of published_fitted.lua, which `trinity fidelity published --fit --save` writes. `spread` is the
-- deviation of the logarithm that costs the fit as much as a row that is a twentieth off.

local util = require 'trinity.base.util'

local constants = { families = { 'a100', 'h100', 'h100_96gb', 'b200', 'gb200', 'gb300' } }

local known = {
  compute_efficiency = { unit = '1', start = 0.68, least = 0.4, most = 0.87, spread = 0.15,
    meaning = 'what wide products of 16 bits reach of the data sheet' },
  fp8 = { unit = '1', start = 0.6, least = 0.35, most = 0.8, spread = 0.15,
    meaning = 'what products of FP8 scaled by tensor reach of its own peak' },
  rowwise = { unit = '1', start = 0.5, least = 0.15, most = 1, spread = 0.3,
    meaning = 'what copies to FP8 scaled by row, of columns too, reach of memory-bound operators' },
  mxfp8 = { unit = '1', start = 0.6, least = 0.4, most = 0.75, spread = 0.15,
    meaning = 'the same of FP8 scaled in blocks of 32' },
  nvfp4 = { unit = '1', start = 0.45, least = 0.3, most = 0.6, spread = 0.15,
    meaning = 'the same of FP4, of 10 or (GB300) 15 PFLOP/s' },
  attention = { unit = '1', start = 0.8, least = 0.4, most = 1.3, spread = 0.2,
    meaning = 'what fused attention reaches of the 16-bit peak, all of the causal square counted: it does half' },
  memory_efficiency = { unit = '1', start = 0.75, least = 0.5, most = 1.05, spread = 0.15,
    meaning = 'what memory-bound operators reach of the data sheet; more where some are fused' },
  launch_s = { unit = 's', start = 6e-6, least = 1e-6, most = 40e-6, spread = 0.5,
    meaning = 'gap before an operator: launch, small kernels beside it' },
  inside_share = { unit = '1', start = 2, least = 0.7, most = 6, spread = 0.5,
    meaning = 'links inside machines as splits of layers see them: 1 over what is exposed beside overlap' },
  network_share = { unit = '1', start = 3, least = 0.7, most = 20, spread = 0.6,
    meaning = 'network cards as reductions and gathers of data parallelism see them, likewise' },
  expert_dispatch_s = { unit = 's', start = 95e-6, least = 5e-6, most = 300e-6, spread = 0.3,
    meaning = "what the host needs for a kernel that no CUDA graph holds of those that map tokens to experts, and "
      .. "for each expert's products: a layer takes that or what its kernels take" },
  layer_dispatch_s = { unit = 's', start = 95e-6, least = 5e-6, most = 400e-6, spread = 0.5,
    meaning = "the same of a mixture's other kernels, where no graph holds those of attention and router either" },
  routing = { unit = '1', start = 0.12, least = 0.01, most = 0.6, spread = 0.4,
    meaning = 'what dispatching tokens to experts and combining them reaches of memory-bound operators: it is several '
      .. 'passes (permuting, padding, scaling), of which one is counted' },
  half_width = { unit = 'columns', start = 200, least = 20, most = 800, spread = 0.5,
    meaning = 'columns at which a product, of an expert too, reaches half of its efficiency' },
  eager = { unit = '1', start = 0.5, least = 0.2, most = 1, spread = 0.3,
    meaning = 'what memory-bound operators reach without a compiler, of what they do with one' },
  async = { unit = '1', start = 1.4, least = 1, most = 4, spread = 0.3,
    meaning = 'links inside machines under AsyncTP, whose messages go beside parts of products, of without' },
  early = { unit = '1', start = 0.7, least = 0.3, most = 1, spread = 0.2,
    meaning = 'what memory-bound operators reached under NeMo of 2024, of later: fewer of them were joined' },
  zero3 = { unit = '1', start = 0.12, least = 0.03, most = 0.5, spread = 0.3,
    meaning = 'what gathers of weights reach of network cards in DeepSpeed ZeRO-3' },
  release = { unit = '1', start = 2, least = 1, most = 4, spread = 0.3,
    meaning = 'speed of what maps and moves the tokens of experts (dispatch, combination, gates, casts, all-to-alls '
      .. 'that overlap) where recipes record whole iterations, of where they do not' },
  expert = { unit = '1', start = 0.9, least = 0.3, most = 1, spread = 0.2,
    meaning = "what experts' products reach of what others do" },
}

--- Which a kind of GPU has: those that its rows tell apart.
local own = {
  a100 = { 'compute_efficiency', 'memory_efficiency', 'launch_s', 'inside_share', 'zero3' },
  h100 = { 'compute_efficiency', 'fp8', 'attention', 'memory_efficiency', 'inside_share', 'network_share',
    'expert_dispatch_s', 'early' },
  h100_96gb = { 'compute_efficiency', 'fp8', 'rowwise', 'attention', 'memory_efficiency', 'inside_share',
    'async', 'eager' },
  b200 = { 'mxfp8', 'routing', 'expert_dispatch_s', 'layer_dispatch_s' }, -- and of B300, whose rows are too few
  gb200 = { 'compute_efficiency', 'fp8', 'mxfp8', 'nvfp4', 'inside_share', 'routing', 'release', 'expert_dispatch_s' },
  gb300 = { 'compute_efficiency', 'fp8', 'mxfp8', 'nvfp4', 'inside_share', 'routing', 'release', 'expert_dispatch_s' },
}

--- Where the fit starts otherwise. H100 of 500 W reach less of the data sheet's rates, which are those of 700 W.
local starts = {
  h100 = { half_width = { start = 60 } },
  h100_96gb = { half_width = { start = 60 }, inside_share = { start = 1 }, compute_efficiency = { start = 0.52 },
    fp8 = { start = 0.38 }, attention = { start = 0.65 } },
  a100 = { half_width = { start = 60 }, network_share = { start = 1 }, inside_share = { start = 1.2 },
    compute_efficiency = { start = 0.75 } },
}

--- Those that rows of mixtures alone tell: the fit finds the others first, from dense rows where there are some.
constants.of_mixtures = { routing = true, release = true, expert_dispatch_s = true,
  layer_dispatch_s = true }

--- Constants of a kind of GPU, for trinity.fidelity.fit: all, or those that `serves` (their names) says.
---@param family string
---@param serves? fun(name: string): boolean?
---@return table[]
function constants.list(family, serves)
  local found = {}
  for _, name in ipairs(own[family]) do
    if not serves or serves(name) then
      found[#found + 1] = util.merged(known[name], (starts[family] or {})[name], { name = name })
    end
  end
  return found
end

--- Whose fitted values a kind of GPU has where its own rows tell nothing: its nearest relative's.
local relatives = { b200 = { of = 'gb200', names = { 'compute_efficiency', 'fp8', 'nvfp4', 'release' } } }

--- Values by name: of constants that a kind of GPU does not have, those of its relative, or where the fit starts.
---@param family string
---@param fitted? table<string, number>
---@return table<string, number>
function constants.values(family, fitted)
  local values = {}
  for name, one in util.sorted_pairs(known) do
    values[name] = ((starts[family] or {})[name] or one).start
  end
  local near = relatives[family]
  if near then values = util.merged(values, util.picked(constants.fitted().values[near.of], near.names)) end
  return util.merged(values, fitted)
end

--- Fitted values by kind of GPU and name, and the rows that they were fitted to.
function constants.fitted() return require 'trinity.fidelity.published_fitted' end

--- Errors of rows, for the manual's tables: { id, group, network, recent, fitted, left_out } each.
---@return table[]
function constants.errors() return require 'trinity.fidelity.published_errors' end

return constants
