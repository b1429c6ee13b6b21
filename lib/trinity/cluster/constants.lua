-- Constants of kinds of GPU: what training reaches of a data sheet. trinity.cluster takes them as option `constants`:
-- 'calibrated' (calibrated.lua), 'data_sheet', or one's own as a table or a file of Lua that returns it,
--
--   { h100 = { compute_efficiency = 0.6, memory_efficiency = 0.7 } }
--
-- whose kinds have the calibrated values of what they do not state. A file that a fit wrote has `kinds`, and fields of
-- `runtimes` and of `sources` that the fit moved together with them. `start` and `spread` are priors of fits: the
-- deviation of the logarithm that costs the fit as much as a row that is off by its noise.

local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local constants = { list = {}, by_name = {} }

local function constant(name, unit, start, least, most, spread, meaning)
  local one = { name = name, unit = unit, start = start, least = least, most = most, spread = spread,
    meaning = meaning }
  table.insert(constants.list, one)
  constants.by_name[name] = one
end

constant('compute_efficiency', '1', 0.68, 0.4, 0.9, 0.15, 'share of the 16-bit peak that wide matmuls reach')
constant('half_width', 'columns', 200, 10, 800, 0.5, 'columns at which a matmul reaches half of its efficiency')
constant('unaligned', '1', 0.35, 0.05, 1.5, 0.3,
  'part by which matmuls with weights take longer whose rows are no multiple of 128 bytes')
constant('memory_efficiency', '1', 0.75, 0.5, 1.05, 0.15,
  'share of the memory bandwidth that memory-bound kernels reach; above 1 where some of them are fused')
constant('attention', '1', 0.8, 0.4, 1.3, 0.2,
  'share of the 16-bit peak that fused attention reaches, with all of the causal square counted')
constant('launch_s', 's', 5e-6, 1e-6, 40e-6, 0.5, 'launch of a kernel and the gap before it')
constant('fp8', '1', 0.6, 0.35, 0.8, 0.15, 'share of the FP8 peak that matmuls scaled per tensor reach')
constant('mxfp8', '1', 0.6, 0.4, 0.75, 0.15, 'share of the FP8 peak that matmuls scaled in blocks of 32 reach')
constant('nvfp4', '1', 0.45, 0.3, 0.6, 0.15, 'share of the FP4 peak that NVFP4 matmuls reach')
constant('expert', '1', 0.9, 0.3, 1, 0.2, "efficiency of experts' matmuls over other matmuls'")
constant('routing', '1', 0.12, 0.01, 0.6, 0.4,
  'share of memory-bound kernels that dispatch to experts and combination reach: several passes, of which one counts')
constant('inside_share', '1', 2, 0.6, 6, 0.5,
  'bandwidth of links inside a node over the description: 1 over what overlap leaves exposed')
constant('network_share', '1', 3, 0.1, 20, 0.6,
  'bandwidth of the network between nodes over the description: 1 over what overlap leaves exposed')
constant('expert_dispatch_s', 's', 95e-6, 5e-6, 300e-6, 0.3,
  "host time per kernel of experts and their routing that no CUDA graph holds; a layer takes that or its kernels' time")
constant('layer_dispatch_s', 's', 95e-6, 5e-6, 400e-6, 0.5,
  'host time per other kernel of a mixture of experts, where no CUDA graph holds attention and router')

-- Where fits start otherwise: links of A100 are described for software that overlaps little.
constants.priors = {
  a100_80gb = { compute_efficiency = 0.75, inside_share = 1.2 },
}

-- Not fitted: how FP8 operands are scaled where the runtime does not say; the FP4 peak relative to the FP8 peak (data
-- sheets "NVIDIA GB200 NVL72", "NVIDIA GB300 NVL72"); the matmul clock relative to the GPU whose constants a GPU
-- borrows: the cube root of the ratio of their power limits, as power grows with the clock and the square of the
-- voltage, and the voltage with the clock. H100 of 96 GB: (500 W / 700 W)^(1/3).
local others = { float8 = 'fp8', nvfp4_rate = 2, clock = 1 }

local function starts()
  local values = util.merged(others)
  for _, one in ipairs(constants.list) do values[one.name] = one.start end
  values.unaligned = nil -- but on kinds with runs that show it
  return values
end

local function calibrated() return require('trinity.cluster.calibrated').kinds end

--- The calibrated constants of a kind of GPU, complete, and { rows, mean_error, like, fitted (names) }; nil for a kind
--- that was never compared with a run.
function constants.calibrated(kind)
  local found = calibrated()[kind]
  if not found then return nil end
  local base = found.like and calibrated()[found.like] or found
  return util.merged(starts(), base.assumed, base.values, found.like and found.assumed or nil),
    { rows = base.rows, mean_error = base.mean_error, like = found.like, fitted = util.sorted_keys(base.values) }
end

--- Kinds of GPU with fitted constants of their own, sorted.
function constants.kinds()
  local list = {}
  for name, one in util.sorted_pairs(calibrated()) do if not one.like then list[#list + 1] = name end end
  return list
end

--- Kinds whose convolutions were fitted to published throughputs (devices.lua).
local compared = { k80 = true, p100 = true, p100_12gb = true, p100_sxm2 = true, cpu_core = true }

--- Whether any number of a kind was ever compared with a run.
function constants.is_compared(kind) return compared[kind] or calibrated()[kind] ~= nil end

local function check_kind(owner, kind, given)
  check.argument(owner, 'field', kind, given, 'table')
  for name, value in util.sorted_pairs(given) do
    local one = constants.by_name[name]
    if not one and others[name] == nil then
      local known = util.sorted_keys(util.merged(constants.by_name, others))
      util.fail('%s: %s: unknown constant %s', owner, kind, util.unknown(tostring(name), known))
    end
    local is_number = one or type(others[name]) == 'number'
    if is_number and (type(value) ~= 'number' or not (value > 0 and value < math.huge)) then
      util.fail("%s: %s: field '%s': expected a number above 0, got %s", owner, kind, name, util.describe(value))
    end
  end
  return given
end

--- Runtimes' fields of a file that a fit wrote, checked.
local function own_runtimes(owner, given)
  local runtimes = require 'trinity.cluster.runtimes'
  check.argument(owner, 'field', 'runtimes', given, 'table')
  for name, values in util.sorted_pairs(given) do
    if not runtimes.list[name] then
      util.fail('%s: unknown runtime %s', owner, util.unknown(tostring(name), runtimes.names()))
    end
    check.argument(owner, 'field', name, values, 'table')
    runtimes.declared:check(('%s: %s'):format(owner, name), values)
  end
  return given
end

--- A person's own constants, checked against the kinds that there are. Files that fits write have them as `kinds`.
local function own(owner, name, given)
  local devices = require 'trinity.cluster.devices'
  local kinds, fit = {}, {}
  if given.kinds then
    local all = given.kinds
    for field in util.sorted_pairs(given) do
      if field ~= 'kinds' and field ~= 'runtimes' and field ~= 'sources' then
        util.fail('%s: unknown field %s', owner, util.unknown(tostring(field), { 'kinds', 'runtimes', 'sources' }))
      end
    end
    if given.sources ~= nil then check.argument(owner, 'field', 'sources', given.sources, 'table') end
    fit = { runtimes = own_runtimes(owner, given.runtimes or {}), sources = given.sources }
    given = {}
    for kind, about in util.sorted_pairs(all) do given[kind] = (about.like and all[about.like] or about).values end
  end
  for kind, values in util.sorted_pairs(given) do
    if not devices.find(tostring(kind)) then
      util.fail('%s: unknown kind of GPU %s', owner, util.unknown(tostring(kind), devices.names()))
    end
    kinds[kind] = check_kind(owner, kind, values)
  end
  return util.merged(fit, { name = name, kinds = kinds })
end

local function from_file(path)
  if not util.exists(path) then
    util.fail("option 'constants': expected 'calibrated', 'data_sheet' or a file of Lua, got %s", util.quoted(path))
  end
  local chunk, why = util.load_file(path)
  if not chunk then util.fail('%s', why) end
  local ok, value = pcall(setfenv(chunk, {}))
  if not ok then util.fail('%s', tostring(value)) end
  if type(value) ~= 'table' then
    util.fail('%s: expected a table of constants by kind of GPU, got %s', util.shortened(path), util.describe(value))
  end
  return own(util.shortened(path), path, value)
end

--- The meaning of the option `constants`: { name =, kinds = own values by kind or nil }, and of a file that a fit wrote
--- its `runtimes` (for runtimes.read) and `sources`.
function constants.read(given)
  if given == nil or given == 'calibrated' or given == '' then return { name = 'calibrated', kinds = {} } end
  if given == 'data_sheet' then return { name = 'data_sheet' } end
  if type(given) == 'table' then return own("option 'constants'", 'a table', given) end
  if type(given) ~= 'string' then
    check.wrong('trinity.cluster', 'option', 'constants', given, 'a word, a file or a table')
  end
  return from_file(given)
end

--- The constants of a kind under such a choice, and what they rest on; nil where it is the data sheet alone.
function constants.of(choice, kind)
  if not choice.kinds then return nil end
  local values, about = constants.calibrated(kind)
  local mine = choice.kinds[kind]
  if not mine then return values, about end
  return util.merged(values or starts(), mine), { own = choice.name }
end

return constants
