-- torchtitan's job configuration for a plan (torchtitan/config/configs.py and distributed/pipeline_parallel.py at
-- commit b5bcd76): a Python fragment for the function that returns Trainer.Config, and a schedule as CSV if torchtitan
-- has no name for the plan's schedule.

local core = require 'trinity.core'
local modules = require 'trinity.formats.modules'
local pytorch_schedule = require 'trinity.formats.pytorch_schedule'
local text = require 'trinity.base.text'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

local torchtitan = { name = 'torchtitan', writes = 'parallelism of a job, Python (and a schedule, CSV)',
  of = 'torchtitan b5bcd76' }

local said = util.set [[data tensor pipeline context expert stages schedule virtual_stages micro_batches
  sequence_parallel]]

local schedules = { gpipe = 'GPipe', ['1f1b'] = '1F1B', interleaved = 'Interleaved1F1B',
  ['zb-interleaved'] = 'InterleavedZeroBubble', ['zb-v'] = 'ZBVZeroBubble', ['dualpipe-v'] = 'DualPipeV' }

-- Networks for which torchtitan has models.
local known = { llama = true, qwen3 = true, qwen3_moe = true, deepseek_v3 = true }

--- Returns the module names of every stage. Each module is in exactly one stage, which torchtitan does not check.
function torchtitan.stage_modules(outline)
  local names = modules.of(outline, 'torchtitan')
  return util.map(outline.stages, function(stage)
    local list = {}
    if stage.embedding then list = util.map(names.before, function(name) return name end) end
    for layer = stage.first, stage.last do list[#list + 1] = names.block(layer) end
    for _, name in ipairs(stage.head and names.after or {}) do list[#list + 1] = name end
    return list
  end)
end

local function python_lists(lists)
  local lines = {}
  for i, list in ipairs(lists) do
    lines[i] = '        ["' .. table.concat(list, '", "') .. '"],\n'
    if #list == 0 then lines[i] = '        [],\n' end
  end
  return '[\n' .. table.concat(lines) .. '    ]'
end

-- Returns the degrees of replicas: number of replicas with their own weights, and of ranks that shard them.
-- Context-parallel ranks shard weights, too (its mesh 'fsdp' is data_parallel_shard x context_parallel).
local function degrees(outline, unspoken)
  local shard, data, expert = outline.strategy.zero_stage or 0, outline.mesh.data, outline.mesh.expert
  if outline.mesh.context > 1 and shard == 0 then
    unspoken[#unspoken + 1] = ('zero_stage = 0 (torchtitan shards the weights over the %d ranks of context)'):format(
      outline.mesh.context)
  end
  if shard > 0 then
    if shard == 1 then
      unspoken[#unspoken + 1] = 'zero_stage = 1 (torchtitan also shards gradients, as with zero_stage = 2)'
    end
    return 1, data, shard == 3 and 'always' or 'never'
  end
  if expert > 1 and outline.mesh.context * outline.mesh.tensor % expert ~= 0 then
    unspoken[#unspoken + 1] = ('zero_stage = 0 (torchtitan shards the weights over the %d ranks of expert)'):format(
      expert)
    return data / expert, expert, 'never'
  end
  return data, 1
end

-- Schedule1F1B needs at least one micro-batch per stage; with a CSV file the same order works.
local function has_name(outline, word)
  return schedules[word] and (word ~= '1f1b' or outline.micro_batches >= outline.pipeline)
end

local function add_pipeline(add, outline, unspoken)
  if outline.pipeline == 1 then return nil end
  if modules.is_tied(outline.graph) then
    util.fail 'export: torchtitan: expected untied embeddings with a pipeline, got a network with tied embeddings'
  end
  add('pipeline_parallel_degree', outline.pipeline)
  add('num_pp_microbatches', outline.micro_batches)
  local v = outline.virtual_stages
  local word = v == 1 and outline.schedule:gsub('interleaved', '1f1b'):gsub('^zb%-1f1b$', 'zb-h1') or outline.schedule
  local csv = not has_name(outline, word) and pytorch_schedule.write(outline)[1] or nil
  add('pipeline_parallel_schedule', ('"%s"'):format(schedules[word] or '1F1B'))
  if csv then add('pipeline_parallel_schedule_csv', '"schedule.csv"') end
  if outline.stages then
    add('module_fqns_per_model_part', python_lists(torchtitan.stage_modules(outline)))
  else
    unspoken[#unspoken + 1] = 'layers per stage: ' .. (outline.broken or 'the plan has no stages')
  end
  if not known[outline.graph.name] then
    unspoken[#unspoken + 1] = ("module names of network '%s' (torchtitan has no model of it; the names follow "
      .. "its decoders)"):format(core.printable(outline.graph.name))
  end
  return csv
end

-- Returns the import and the setting of recomputation, or nil.
local function recompute_of(outline, unspoken)
  local word = outline.strategy.recompute or 'none'
  if word ~= 'none' and word ~= 'full' then
    unspoken[#unspoken + 1] = ("recompute = '%s' (torchtitan recomputes single operators)"):format(word)
  end
  return word == 'full' and 'FullAC' or nil
end

--- Returns the files of a plan, and the settings that they cannot represent.
function torchtitan.write(outline)
  if not outline.strategy.mesh and not outline.stage_of then
    util.fail("export: torchtitan: expected a mesh or a pipeline, got a placement of operators; use a plan of "
      .. "'trinity plan', or a strategy with a mesh")
  end
  if not modules.is_decoder(outline) then
    util.fail("export: torchtitan: expected a decoder that a config.json describes, got network '%s'",
      outline.graph.name)
  end
  local gathers = (outline.strategy.cp_comm_type or 'all_gather') == 'all_gather'
  local lines, unspoken = {}, unsaid.of(outline, util.merged(said, { zero_stage = true, recompute = true,
    cp_comm_type = gathers }))
  local function add(name, value) lines[#lines + 1] = ('    %s=%s,\n'):format(name, tostring(value)) end
  local replicate, shard, reshard = degrees(outline, unspoken)
  add('data_parallel_replicate_degree', replicate)
  add('data_parallel_shard_degree', shard)
  if reshard then add('fsdp_reshard_after_forward', ('"%s"'):format(reshard)) end
  add('tensor_parallel_degree', outline.mesh.tensor)
  add('enable_sequence_parallel', outline.strategy.sequence_parallel and 'True' or 'False')
  add('context_parallel_degree', outline.mesh.context)
  if outline.mesh.context > 1 and gathers then add('context_parallel_rotate_method', '"allgather"') end
  add('expert_parallel_degree', outline.mesh.expert)
  local csv = add_pipeline(add, outline, unspoken)
  local again = recompute_of(outline, unspoken)
  local name = text.one_line(core.printable(outline.graph.name))
  local fragment = ('# %s: %d ranks; for the function that returns Trainer.Config\nfrom torchtitan.config import '
    .. 'ParallelismConfig\n%s\nparallelism = ParallelismConfig(\n%s)\n%s'):format(name, outline:device_count(),
    again and 'from torchtitan.distributed.activation_checkpoint import FullAC\n' or '',
    table.concat(lines), again and 'activation_checkpoint = FullAC.Config()\n' or '')
  local files = { { name = 'parallelism.py', text = fragment } }
  files[2] = csv
  return files, unspoken
end

return torchtitan
