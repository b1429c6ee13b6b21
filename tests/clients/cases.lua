-- Plans that are written in every format that takes them, for the scripts next to this one and the specs of formats.
-- `trinity tests/clients/cases.lua FOLDER` writes each to FOLDER/FORMAT/CASE/ and its losses to `UNSAID` there.

local core = require 'trinity.core'
local layout = require 'trinity.strategy.layout'
local trinity = require 'trinity'

local data = core.home .. '/tests/data/clients/'

local cases = {}

-- name, model (tests/data/clients/models), cluster, plan, and by format the options of strategy:export.
cases.list = {
  { name = 'llama_pipeline', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 8 },
    formats = { megatron = {}, torchtitan = {}, accelerate = {}, chakra = {}, pytorch_schedule = {} } },
  { name = 'llama_uneven', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 4, stages = { 1, 3, 3, 1 }, schedule = 'gpipe' },
    formats = { megatron = {}, torchtitan = {}, accelerate = {}, pytorch_schedule = {} } },
  { name = 'llama_few', model = 'llama', cluster = 'p100x4', plan = { mesh = { pipeline = 4 }, micro_batches = 2 },
    formats = { megatron = {}, torchtitan = {}, pytorch_schedule = {} } },
  { name = 'llama_interleaved', model = 'llama', cluster = 'p100x2',
    plan = { mesh = { pipeline = 2 }, micro_batches = 4, virtual_stages = 2, schedule = 'interleaved' },
    formats = { megatron = {}, torchtitan = {}, accelerate = {}, pytorch_schedule = {} } },
  { name = 'llama_zero_bubble', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 8, schedule = 'zb-h1' },
    formats = { megatron = {}, torchtitan = {}, chakra = {}, pytorch_schedule = {} } },
  { name = 'llama_zb_interleaved', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 8, virtual_stages = 2, schedule = 'zb-interleaved' },
    formats = { torchtitan = {}, pytorch_schedule = {} } },
  { name = 'llama_v', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 8, virtual_stages = 2, schedule = 'zb-v' },
    formats = { megatron = {}, torchtitan = {}, accelerate = {}, chakra = {}, pytorch_schedule = {} } },
  { name = 'llama_dual', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { pipeline = 4 }, micro_batches = 8, virtual_stages = 2, schedule = 'dualpipe-v' },
    formats = { torchtitan = {}, pytorch_schedule = {} } },
  { name = 'llama_mesh', model = 'llama', cluster = 'p100x8',
    plan = { mesh = { data = 2, tensor = 2, pipeline = 2 }, micro_batches = 4, sequence_parallel = true, zero_stage = 1,
      recompute = 'full' },
    formats = { megatron = {}, torchtitan = {}, deepspeed = {},
      chakra = {}, pytorch_schedule = {}, accelerate = {} } },
  { name = 'llama_tensor', model = 'llama', cluster = 'p100x2', plan = { mesh = { tensor = 2 } },
    formats = { megatron = {}, torchtitan = {}, rank_file = {} } },
  { name = 'llama_context', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { data = 2, context = 2 }, cp_comm_type = 'ring' }, formats = { megatron = {}, torchtitan = {} } },
  { name = 'llama_fsdp', model = 'llama', cluster = 'p100x4',
    plan = { mesh = { data = 4 }, zero_stage = 3, micro_batches = 2 },
    formats = { megatron = {}, torchtitan = {}, chakra = {}, deepspeed = {} } },
  { name = 'qwen3_sharded', model = 'qwen3', cluster = 'p100x8',
    plan = { mesh = { data = 4, tensor = 2 }, zero_stage = 2, micro_batches = 2, sequence_parallel = true },
    formats = { megatron = {}, deepspeed = {} } },
  { name = 'gpt2_replicas', model = 'gpt2', cluster = 'p100x2', plan = { mesh = { data = 2 } },
    formats = { deepspeed = {} } },
  { name = 'gpt2_tied', model = 'gpt2', cluster = 'p100x2', plan = { mesh = { pipeline = 2 }, micro_batches = 2 },
    formats = { megatron = {}, accelerate = {} } },
  { name = 'deepseek_pipeline', model = 'deepseek_v3', cluster = 'p100x4',
    plan = { mesh = { pipeline = 2, data = 2, expert = 2 }, micro_batches = 4, stages = { 2, 4 } },
    formats = { megatron = {}, torchtitan = {}, chakra = {}, accelerate = {} } },
  { name = 'deepseek_interleaved', model = 'deepseek_v3', cluster = 'p100x2',
    plan = { mesh = { pipeline = 2 }, micro_batches = 4, virtual_stages = 2, schedule = 'interleaved',
      stages = { 1, 2, 2, 1 } }, formats = { megatron = {}, torchtitan = {} } },
  { name = 'gpt_neox_pipeline', model = 'gpt_neox', cluster = 'p100x2',
    plan = { mesh = { pipeline = 2 }, micro_batches = 2 }, formats = { accelerate = {} } },
  { name = 'mixtral_pipeline', model = 'mixtral', cluster = 'p100x2',
    plan = { mesh = { pipeline = 2 }, micro_batches = 2 }, formats = { chakra = {}, accelerate = {} } },
}

--- The strategy of a case.
function cases.strategy(case)
  local graph = trinity.model(data .. 'models/' .. case.model .. '.json', { sequence = 32 })
  return trinity.problem { graph = graph, cluster = trinity.cluster(case.cluster) }:strategy(case.plan)
end

--- The files of a case in a format, and what they do not say.
function cases.files(strategy, format)
  return trinity.formats.files(strategy, { format = format })
end

--- Layouts of contiguous plans of all kinds: { ranks, text, layers = of every stage }.
function cases.layouts()
  local random, list = trinity.random(1, 'contiguous plans'), {}
  for i = 1, 300 do
    local pipeline, virtual, stages, counts = random:integer(16), random:integer(4), {}, {}
    for s = 1, pipeline * virtual do
      local again = s > 1 and random:integer(2) == 1
      counts[s] = again and counts[s - 1] or random:integer(9)
      stages[s] = { embedding = s == 1, layers = counts[s], head = s == pipeline * virtual }
    end
    list[i] = { pipeline = pipeline, text = layout.text(stages), layers = counts }
  end
  return list
end

local function write_all(folder)
  trinity.files.write(folder .. '/layouts.json', core.to_json(cases.layouts()))
  for _, case in ipairs(cases.list) do
    local strategy = cases.strategy(case)
    for format in trinity.system.sorted_pairs(case.formats) do
      local files, unsaid = cases.files(strategy, format)
      local within = ('%s/%s/%s/'):format(folder, format, case.name)
      for _, file in ipairs(files) do trinity.files.write(within .. file.name, file.text) end
      trinity.files.write(within .. 'UNSAID', table.concat(unsaid, '\n') .. '\n')
    end
  end
end

if arg and arg[0] and arg[0]:match 'clients/cases%.lua$' then
  if #arg ~= 1 then error('usage: trinity tests/clients/cases.lua FOLDER', 0) end
  write_all(arg[1])
end

return cases
