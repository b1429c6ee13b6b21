-- Options that several commands share: model, cluster, strategy, method, limits, uneven work and output.

local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = {
  model = { default = 'inception_v3', position = true,
    help = 'name, file or folder of a config.json (trinity help models)' },
  set = settings.of_model,
  batch_size = { type = 'number', min = 1, integer = true, help = "samples per micro-batch (default: the model's)" },
  cluster = { default = 'p100x2', help = "cluster ('dgx_a100:2'), its Lua file, or a profile (trinity help clusters)" },
  rules = { default = 'standard',
    help = 'simulator rules: standard, changes to them (queue=fair), or placeto, doppler without --cluster' },
  devices = { default = 2, help = 'devices under --rules placeto and doppler', min = 1, max = 64, integer = true },
  cost = { type = 'string', help = 'operator times from a CSV file: columns operator or type, device_type, time_s' },
  strategy = { type = 'string', help = 'a saved strategy (JSON); it contains its model, batch and cluster' },
  reevaluate = { default = false, help = 'evaluate --strategy on another model or cluster, which other options give' },
  schedule = { type = 'string',
    help = "fifo, lifo, critical_path, gpipe, 1f1b, interleaved, ... (default: the strategy's)" },
  micro_batches = { type = 'number', min = 1, integer = true,
    help = "micro-batches per step (default: the strategy's)" },
  method = { default = 'best', help = 'the method that makes the placement (trinity help methods)' },
  method_set = settings.of_method,
  evaluations = { type = 'number', min = 1, integer = true, help = 'placements that a method simulates at most' },
  seconds = { type = 'number', min = 0, help = 'wall-clock limit; results then depend on the machine' },
  seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
  lengths = { type = 'string', help = 'sample sequence lengths per step from a CSV file (length, count)' },
  fill = { default = 'padded',
    help = 'with --lengths: sequences of a micro-batch are padded to the longest, or packed' },
  deal = { default = 'drawn',
    help = "with --lengths: micro-batches per replica 'drawn' (random), 'sorted' by length, 'balanced' by work" },
  expert_load = { type = 'string', help = 'load of the experts: zipf:EXPONENT, or a JSON file with counts per layer' },
  dispatcher = { type = 'string', help = "with --expert-load: token dispatcher 'alltoall', 'deepep' or 'hybridep' "
    .. "(default: the strategy's all-to-alls)" },
  capacity_factor = { type = 'number', min = 0, help = 'with --expert-load: maximum load over the mean; '
    .. 'further tokens are dropped' },
  json = { default = false, help = 'print JSON and nothing else' },
}

--- Returns a declaration for trinity.options with the shared options `names` and the options `own`. Fields of `own`
--- replace fields of a shared option of the same name (another default or help). `rare` are left to --help-all. Names
--- have blanks between them.
return function(names, own, rare)
  local declaration = util.merged(own)
  for name in names:gmatch '%S+' do declaration[name] = util.merged(options[name], own[name]) end
  for name in (rare or ''):gmatch '%S+' do declaration[name] = util.merged(declaration[name], { rare = true }) end
  return declaration
end
