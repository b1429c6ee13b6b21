-- `trinity study aceso`: plans of GPT under the search space and the cost rules of Aceso (Liu et al., EuroSys
-- 2024), found by our search and written as its runtime reads them. profiles.lua reads the measurements, `price.lua`
-- has the cost rules, stage.lua the best choices of a stage, search.lua the stages.

local core = require 'trinity.core'
local price = require 'studies.aceso.price'
local profiles = require 'studies.aceso.profiles'
local progress = require 'trinity.base.progress'
local search = require 'studies.aceso.search'
local util = require 'trinity.base.util'

local aceso = {}

--- Layers, width and heads of the sizes of GPT (Brown et al., "Language Models are Few-Shot Learners", 2020, table 2.1;
--- 1.3 B and 2.6 B with 32 heads as Zheng et al., "Alpa", OSDI 2022, table 4, has them).
local sizes = {
  ['350M'] = { layers = 24, hidden = 1024, heads = 16 },
  ['1_3B'] = { layers = 24, hidden = 2048, heads = 32 },
  ['2_6B'] = { layers = 32, hidden = 2560, heads = 32 },
  ['6_7B'] = { layers = 32, hidden = 4096, heads = 32 },
  ['13B'] = { layers = 40, hidden = 5120, heads = 40 },
}
local sequence_length = 2048

--- Parts of an array by stage.
local function by_stage(plan, values)
  return util.map(plan.stages, function(stage)
    local list = {}
    for o = stage.first, stage.last do list[#list + 1] = values[o] end
    return list
  end)
end

--- A plan as Aceso's runtime reads it.
function aceso.export(plan, model, layers)
  local name, size = model:match '^(%a+)_(.+)$'
  local known = sizes[size]
  local stages = plan.stages
  local function of_stages(value) return util.map(stages, value) end
  return {
    model_name = name, model_size = size, num_layers = layers, seq_length = sequence_length,
    max_position_embeddings = sequence_length, num_attention_heads = known and known.heads,
    hidden_size = known and known.hidden, global_batch_size = price.sequences, micro_batch_size = plan.micro_batch,
    num_stages = #stages, num_gpus = of_stages(function(s) return s.gpus end),
    checkpoint_activations = of_stages(function(s)
      for o = s.first, s.last do if plan.recompute[o] == 1 then return true end end
      return false
    end),
    resharding_stages = of_stages(function(s)
      for o = s.first + 1, s.last do
        if plan.tensor[o] ~= plan.tensor[s.first] or plan.algorithm[o] ~= plan.algorithm[s.first] then return true end
      end
      return false
    end),
    num_ops_in_each_stage = of_stages(function(s) return s.last - s.first + 1 end),
    model_parallel_size_of_each_op = by_stage(plan, plan.tensor),
    data_parallel_size_of_each_op = by_stage(plan, plan.data),
    recompute_ops = by_stage(plan, plan.recompute), algo_of_each_op = by_stage(plan, plan.algorithm),
  }
end

--- The cost of a plan by Aceso's rules. An error names an operator whose choice is not profiled.
function aceso.price(read, plan, layers, gpus_per_node)
  local rows = price.rows(#read.operators, layers)
  if #rows ~= plan.stages[#plan.stages].last then
    util.fail('a plan of %d operators: expected %d for %d layers', plan.stages[#plan.stages].last, #rows, layers)
  end
  for o, row in ipairs(rows) do
    if not price.table_of(read, plan, o) then
      util.fail('operator %d (%s): no profile of %s sequences, tensor degree %s, algorithm %s', o, read.operators[row],
        tostring(plan.micro_batch / plan.data[o]), tostring(plan.tensor[o]), tostring(plan.algorithm[o]))
    end
  end
  return price.of(read, plan, rows, gpus_per_node)
end

--- Searches for a plan: the best, its cost, and the number of partitions evaluated. `plan` is nil where nothing fits.
--- options: { folder = of profiles, model = 'gpt_1_3B', gpus = a power of two, gpus_per_node, layers = nil: the
--- model's, seconds }.
function aceso.plan(options)
  local gpus = options.gpus
  if gpus < 1 or math.log(gpus) / math.log(2) % 1 > 1e-9 then
    util.fail('gpus: expected a power of two, got %d', gpus)
  end
  local read = profiles.read(options.folder, options.model)
  local known = sizes[options.model:match '^%a+_(.+)$']
  local layers = options.layers or known and known.layers
  if not layers then util.fail('layers: expected a number for model %s, whose layers are not known', options.model) end
  local looks = progress.new('aceso', false)
  core.begin_search()
  local ok, found = pcall(search.run, read, { layers = layers, gpus = gpus, gpus_per_node = options.gpus_per_node,
    seconds = options.seconds, stop = core.stop_requested, told = function(best)
      looks:update { text = ('searching  best %.3f s'):format(best.step_time_ms / 1000) }
    end })
  looks:finish()
  local stopped = core.stop_requested()
  core.end_search()
  if not ok then error(found, 0) end
  local best = found.best
  return { plan = best and best.plan, priced = best and best.priced, layers = layers, partitions = found.tried,
    stopped = stopped, predicted_s = best and best.step_time_ms / 1000, bound_s = found.least_us
      * price.sequences / gpus / 1e6, seconds = core.clock_s() - found.start_s }
end

return aceso
