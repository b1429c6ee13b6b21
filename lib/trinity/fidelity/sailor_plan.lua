-- A plan of Sailor (Strati et al., "Sailor", SOSP 2025; github.com/eth-easl/sailor, plans of its validation) as it is
-- read and checked: { path, network, layers, stages (layers of each), groups [stage][replica], replicas, micro_batch,
-- batch, micro_batches, measured_s?, measured_bytes? }. A group { gpu, tp, zone } is tp GPUs that share every layer.

local util = require 'trinity.base.util'

local sailor_plan = {}

--- GPUs by Sailor's names: kind here; card: bytes/s of a network card that each has for itself (Slingshot 11: 200
--- Gbit/s), without it a node's groups reach others at the rates that Sailor measured.
sailor_plan.gpus = { ['GH-96'] = { kind = 'gh200', card = 25e9 }, ['A100-40'] = { kind = 'a100' },
  ['A100-80'] = { kind = 'a100_80gb' }, ['V100-16'] = { kind = 'v100' }, ['RTX-3090'] = { kind = 'rtx3090' },
  ['RTX-2080'] = { kind = 'rtx2080ti' }, ['Titan-RTX'] = { kind = 'titan_rtx' } }

--- What of the constants holds for a plan: of nodes with a card for each GPU, or of mixed ones with one card.
---@param plan table
---@return 'gh200'|'mixed'
function sailor_plan.family(plan) return sailor_plan.gpus[plan.groups[1][1].gpu].card and 'gh200' or 'mixed' end

local function refuse(plan, message, ...) util.fail('%s: %s', plan.path, message:format(...)) end

--- An entry of nested tables; refuses by naming the one that is missing.
---@param plan table
---@param what string the file
---@param list table
---@param ... string
function sailor_plan.entry(plan, what, list, ...)
  for _, key in ipairs { ... } do
    local found = type(list) == 'table' and list[key]
    if not found then
      local known = type(list) == 'table' and util.sorted_keys(list) or {}
      refuse(plan, '%s: no entry %s', what, util.unknown(key, known))
    end
    list = found
  end
  return list
end

local function field(plan, owner, name, kind)
  local value = owner[name]
  if type(value) ~= kind then refuse(plan, "field '%s': expected a %s, got %s", name, kind, util.describe(value)) end
  return value
end

local function whole(plan, owner, name)
  local value = field(plan, owner, name, 'number')
  if not (value >= 1 and value % 1 == 0 and value <= 2 ^ 20) then
    refuse(plan, "field '%s': expected a whole number from 1 to 2^20, got %s", name, util.describe(value))
  end
  return value
end

--- Sailor's form of a group is [[[gpu, GPUs of the node, zone], ...], tp].
local function group_of(plan, given)
  local node = type(given) == 'table' and type(given[1]) == 'table' and given[1][1]
  local gpu, tp = type(node) == 'table' and node[1], type(given) == 'table' and given[2]
  if type(gpu) ~= 'string' or type(tp) ~= 'number' or type(node[3]) ~= 'string' then
    refuse(plan, "field 'tmp_per_stage': expected groups of the form [[[gpu, count, zone]], tp], got %s",
      util.describe(given))
  end
  if not sailor_plan.gpus[gpu] then
    refuse(plan, 'unknown GPU %s', util.unknown(gpu, util.sorted_keys(sailor_plan.gpus)))
  end
  return { gpu = gpu, tp = tp, zone = node[3] }
end

local function count(list)
  local n = 0
  for _ in pairs(list) do n = n + 1 end -- in any order: counted
  return n
end

--- The network with so many layers; of several the one that the path names.
local function network_of(plan, info)
  local found
  for name, by_tp in util.sorted_pairs(info) do
    local _, layers = next(by_tp)
    if type(layers) == 'table' and count(layers) == plan.layers
      and (not found or plan.path:upper():find(name:upper(), 1, true)) then
      found = name
    end
  end
  return found or refuse(plan, 'llm_info.json has no network of %d layers', plan.layers)
end

local function read_stages(plan, pipeline)
  local groups = field(plan, pipeline, 'tmp_per_stage', 'table')
  for s, layers in ipairs(field(plan, pipeline, 'layers_per_stage', 'table')) do
    if type(layers) ~= 'table' or #layers == 0 then
      refuse(plan, "field 'layers_per_stage': stage %d: expected a list of layers, got %s", s, util.describe(layers))
    end
    plan.stages[s], plan.layers = #layers, plan.layers + #layers
    if type(groups[s]) ~= 'table' or #groups[s] == 0 then
      refuse(plan, "field 'tmp_per_stage': stage %d has no GPUs", s)
    end
    plan.groups[s] = util.map(groups[s], function(group) return group_of(plan, group) end)
    if #plan.groups[s] ~= #plan.groups[1] then
      refuse(plan, 'stage %d has %d replicas and the first %d: expected as many', s, #plan.groups[s], #plan.groups[1])
    end
  end
  if #plan.stages == 0 then refuse(plan, "field 'layers_per_stage': expected a stage") end
end

--- A measurement; nil where there is none.
local function measured(plan, given, name)
  local text = given[name]
  if text == nil or text == '' then return nil end
  local value = tonumber(text)
  if not (value and value > 0) then
    refuse(plan, "field '%s': expected a number above 0, or none, got %s", name, util.describe(text))
  end
  return value
end

--- A plan from what its file holds.
---@param path string for messages
---@param given any
---@param info table llm_info.json: layers by network and tp
---@return table
function sailor_plan.read(path, given, info)
  local plan = { path = util.shortened(path), layers = 0, stages = {}, groups = {} }
  if type(given) ~= 'table' then refuse(plan, 'expected an object, got %s', util.describe(given)) end
  plan.micro_batch, plan.batch = whole(plan, given, 'mbs'), whole(plan, given, 'gbs')
  local pipeline = field(plan, given, 'pipeline_list', 'table')[1]
  if type(pipeline) ~= 'table' then
    refuse(plan, "field 'pipeline_list': entry 1: expected an object, got %s", util.describe(pipeline))
  end
  read_stages(plan, pipeline)
  plan.replicas = #plan.groups[1]
  plan.micro_batches = math.ceil(plan.batch / (plan.micro_batch * plan.replicas))
  plan.network = network_of(plan, info)
  plan.measured_s, plan.measured_bytes = measured(plan, given, 'real'), measured(plan, given, 'max_mem')
  return plan
end

--- What plans share that differ in the number of replicas alone.
---@param plan table
---@return string
function sailor_plan.configuration(plan)
  local gpus = util.map(plan.groups, function(groups)
    return table.concat(util.map(groups, function(group) return ('%s/%d'):format(group.gpu, group.tp) end), ' ')
  end)
  local mixed = sailor_plan.family(plan) == 'mixed' and table.concat(gpus, ';') or gpus[1]:match '%S+'
  return ('%s, layers %s, micro-batch %d, %s'):format(plan.network, table.concat(plan.stages, '+'), plan.micro_batch,
    mixed)
end

return sailor_plan
