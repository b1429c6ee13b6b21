-- A plan of Sailor (Strati et al., "Sailor", SOSP 2025; github.com/eth-easl/sailor, plans of its validation), read and
-- checked: { path, network, layers, stages (layers of each), groups [stage][replica], replicas, micro_batch, batch,
-- micro_batches, measured_s?, measured_bytes? }. A group { gpu, tp, zone } is a tensor-parallel group of tp GPUs.

local util = require 'trinity.base.util'

local sailor_plan = {}

--- GPUs by Sailor's names. kind: our name; `card`: bytes/s of the NIC of each GPU (Slingshot 11: 200 Gbit/s); without
--- it, the groups of a node have the inter-node bandwidth that Sailor measured.
sailor_plan.gpus = { ['GH-96'] = { kind = 'gh200', card = 25e9 }, ['A100-40'] = { kind = 'a100' },
  ['A100-80'] = { kind = 'a100_80gb' }, ['V100-16'] = { kind = 'v100' }, ['RTX-3090'] = { kind = 'rtx3090' },
  ['RTX-2080'] = { kind = 'rtx2080ti' }, ['Titan-RTX'] = { kind = 'titan_rtx' } }

--- Returns the constants for a plan: for nodes with one NIC per GPU, or for mixed nodes with one NIC.
function sailor_plan.family(plan) return sailor_plan.gpus[plan.groups[1][1].gpu].card and 'gh200' or 'mixed' end

local function refuse(plan, message, ...) util.fail('%s: %s', plan.path, message:format(...)) end

--- Returns an entry of nested tables. Raises an error that names a missing one. what: the file.
function sailor_plan.entry(plan, what, list, ...)
  for _, key in ipairs { ... } do
    local found = type(list) == 'table' and list[key]
    if not found then
      refuse(plan, '%s: no entry %s', what, util.unknown(key, util.sorted_keys(type(list) == 'table' and list or {})))
    end
    list = found
  end
  return list
end

local function field(plan, owner, name, good, expected)
  if not good(owner[name]) then
    refuse(plan, "field '%s': expected %s, got %s", name, expected, util.describe(owner[name]))
  end
  return owner[name]
end

local function is_table(value) return type(value) == 'table' end

local function whole(plan, owner, name)
  field(plan, owner, name, function(value) return type(value) == 'number' end, 'a number')
  return field(plan, owner, name, function(value) return value >= 1 and value % 1 == 0 and value <= 2 ^ 20 end,
    'a whole number from 1 to 2^20')
end

--- Returns a measurement, or nil.
local function measured(plan, owner, name)
  return tonumber(field(plan, owner, name, function(value)
    return value == nil or value == '' or (tonumber(value) or 0) > 0
  end, 'a number above 0, or none'))
end

--- Sailor's form of a group is [[[gpu, GPUs of the node, zone], ...], tp].
local function group_of(plan, given)
  local node = is_table(given) and is_table(given[1]) and given[1][1]
  local gpu, tp = is_table(node) and node[1], is_table(given) and given[2]
  if type(gpu) ~= 'string' or type(tp) ~= 'number' or type(node[3]) ~= 'string' then
    refuse(plan, "field 'tmp_per_stage': expected groups of the form [[[gpu, count, zone]], tp], got %s",
      util.describe(given))
  end
  if not sailor_plan.gpus[gpu] then
    refuse(plan, 'unknown GPU %s', util.unknown(gpu, util.sorted_keys(sailor_plan.gpus)))
  end
  return { gpu = gpu, tp = tp, zone = node[3] }
end

--- Returns the network with this number of layers; if there are several, the one that the path names.
local function network_of(plan, info)
  local found
  for name, by_tp in util.sorted_pairs(info) do
    local _, layers = next(by_tp)
    if is_table(layers) and #util.sorted_keys(layers) == plan.layers
      and (not found or plan.path:upper():find(name:upper(), 1, true)) then
      found = name
    end
  end
  return found or refuse(plan, 'expected a network with %d layers in llm_info.json, got none', plan.layers)
end

local function read_stages(plan, pipeline)
  local groups = field(plan, pipeline, 'tmp_per_stage', is_table, 'a table')
  for s, layers in ipairs(field(plan, pipeline, 'layers_per_stage', is_table, 'a table')) do
    if not is_table(layers) or #layers == 0 then
      refuse(plan, "field 'layers_per_stage': stage %d: expected a list of layers, got %s", s, util.describe(layers))
    end
    if not is_table(groups[s]) or #groups[s] == 0 then
      refuse(plan, "field 'tmp_per_stage': stage %d: expected at least one GPU, got none", s)
    end
    plan.stages[s], plan.layers = #layers, plan.layers + #layers
    plan.groups[s] = util.map(groups[s], function(group) return group_of(plan, group) end)
    if #plan.groups[s] ~= #plan.groups[1] then
      refuse(plan, 'stage %d: expected the replicas of the first stage, got %d where the first has %d', s,
        #plan.groups[s], #plan.groups[1])
    end
  end
  if #plan.stages == 0 then refuse(plan, "field 'layers_per_stage': expected a stage") end
end

--- Returns a plan from the content of its file. info: llm_info.json, layers by network and tp.
function sailor_plan.read(path, given, info)
  local plan = { path = util.shortened(path), layers = 0, stages = {}, groups = {} }
  if not is_table(given) then refuse(plan, 'expected an object, got %s', util.describe(given)) end
  plan.micro_batch, plan.batch = whole(plan, given, 'mbs'), whole(plan, given, 'gbs')
  read_stages(plan, field(plan, field(plan, given, 'pipeline_list', is_table, 'a table'), 1, is_table, 'an object'))
  plan.replicas = #plan.groups[1]
  plan.micro_batches = math.ceil(plan.batch / (plan.micro_batch * plan.replicas))
  plan.network = network_of(plan, info)
  plan.measured_s, plan.measured_bytes = measured(plan, given, 'real'), measured(plan, given, 'max_mem')
  return plan
end

--- Returns a text that is equal for plans that differ only in the number of replicas.
function sailor_plan.configuration(plan)
  local gpus = util.map(plan.groups, function(groups)
    return table.concat(util.map(groups, function(group) return ('%s/%d'):format(group.gpu, group.tp) end), ' ')
  end)
  local mixed = sailor_plan.family(plan) == 'mixed' and table.concat(gpus, ';') or gpus[1]:match '%S+'
  return ('%s, layers %s, micro-batch %d, %s'):format(plan.network, table.concat(plan.stages, '+'), plan.micro_batch,
    mixed)
end

return sailor_plan
