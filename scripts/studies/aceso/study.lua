#!/usr/bin/env trinity
-- Plans of GPT by Aceso's profiles and rules. With --json one object: plan, as Aceso's runtime reads it, predicted_s
-- and bound_s. Exit status 1 where no plan fits, 130 after Ctrl-C (143 after SIGTERM).

local trinity = require 'trinity'
local aceso = require 'studies.aceso'
local price = require 'studies.aceso.price'
local progress = require 'trinity.base.progress'
local shared = require 'studies.shared'
local util = require 'trinity.base.util'

local options = trinity.options {
  "Searches for a training plan of GPT by Aceso's profiles and rules.",
  profiles = { default = '', position = true, help = "a folder of Aceso's profiles; '': ../shared/data" },
  model = { default = 'gpt_1_3B', help = 'as the profiles name it' },
  gpus = { default = 4, help = 'a power of two', min = 1, max = 4096, integer = true },
  gpus_per_node = { default = 8, help = 'of a machine', min = 1, integer = true },
  layers = { default = 0, help = "0: the model's", min = 0, integer = true },
  seconds = { default = math.huge, help = 'limit: the best by then, with its bound', min = 0 },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local function table_of(found)
  local rows = {}
  for s, stage in ipairs(found.plan.stages) do
    local recomputed, degrees, seen = 0, {}, {}
    for o = stage.first, stage.last do
      recomputed = recomputed + found.plan.recompute[o]
      local word = ('%dx%d'):format(found.plan.tensor[o], found.plan.data[o])
      if not seen[word] then seen[word], degrees[#degrees + 1] = true, word end
    end
    rows[s] = { tostring(s), tostring(stage.gpus), tostring(stage.last - stage.first + 1), table.concat(degrees, ' '),
      tostring(recomputed), ('%.3f'):format(found.priced.stage_us[s] / 1000),
      ('%.1f'):format(found.priced.stage_mb[s]) }
  end
  return trinity.system.format_table({ 'stage', 'GPUs', 'operators', 'tensor x data', 'recomputed', 'ms', 'MB' }, rows)
end

local found = aceso.plan(util.merged(options, { folder = shared(options.profiles, 'aceso/profiles'),
  layers = options.layers > 0 and options.layers or false }))
if options.json then
  print(trinity.files.json.encode { plan = found.plan and aceso.export(found.plan, options.model, found.layers),
    predicted_s = found.predicted_s, bound_s = found.bound_s })
elseif not found.plan then
  print(('no plan of %s on %d GPUs keeps every stage within %g MB'):format(options.model, options.gpus,
    price.limit_mb))
else
  print(('%s on %d GPUs, %d sequences an iteration, micro-batches of %d: %.3f s by Aceso\'s rules (bound %.3f s)')
    :format(options.model, options.gpus, price.sequences, found.plan.micro_batch, found.predicted_s, found.bound_s))
  print(table_of(found))
  print "(these rules charge nothing for data-parallel all-reduces, nor for the optimiser)"
end
trinity.run:result('plan', util.picked(found, { 'plan', 'predicted_s', 'bound_s', 'partitions' }))
if found.stopped then
  progress.warn(('stopped by %s with the best so far; a new search starts from scratch')
    :format(trinity.system.stop_name()))
  os.exit(trinity.system.stop_status())
end
if not found.plan then os.exit(1) end
