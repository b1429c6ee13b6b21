-- Options that several commands share: model, cluster, strategy, method, limits and output.

local settings = require 'trinity.command.settings'
local util = require 'trinity.base.util'

local options = {
  model = { default = 'inception_v3', position = true,
    help = 'model by name, a file (.lua .onnx .pt2 .et .json .txt), or a directory with config.json' },
  set = settings.of_model,
  batch_size = { type = 'number', min = 1, integer = true, help = "samples per micro-batch (default: the model's "
    .. "own)" },
  cluster = { default = 'p100x2', help = "cluster by name ('p100x2', 'dgx_a100:2'), a Lua file, or a profile (.json)" },
  rules = { default = 'standard',
    help = 'simulation rules: standard, deviations (queue=fair), or a published simulator (placeto, doppler), which '
      .. 'replaces --cluster' },
  devices = { default = 2, help = 'number of devices with --rules placeto or doppler', min = 1, max = 64,
    integer = true },
  cost = { type = 'string', help = 'CSV file of operator times with columns operator or type, device_type, time_s' },
  strategy = { type = 'string', help = 'saved strategy (JSON); model and cluster are those that it was made for' },
  reevaluate = { default = false, help = 'evaluate --strategy on the model and cluster of the other options' },
  schedule = { type = 'string',
    help = "schedule: fifo, lifo, critical_path, gpipe, 1f1b, interleaved, ... (default: the strategy's)" },
  micro_batches = { type = 'number', min = 1, integer = true, help = "micro-batches per step (default: the "
    .. "strategy's)" },
  method = { default = 'best', help = 'method that makes the placement (trinity help methods)' },
  method_set = settings.of_method,
  evaluations = { type = 'number', min = 1, integer = true, help = 'maximum number of placements that a method '
    .. 'simulates' },
  seconds = { type = 'number', min = 0, help = 'time limit; results then depend on the speed of the machine' },
  seed = { default = 1, help = 'random seed', min = 0, integer = true },
  json = { default = false, help = 'print JSON on standard output, and nothing else' },
}

--- Returns a declaration for trinity.options with the shared options `names` and the options `own`. Fields of `own`
--- replace those of a shared option of the same name (another default or help).
---@param names string names with spaces
---@param own table
---@return table
return function(names, own)
  local declaration = util.merged(own)
  for name in names:gmatch '%S+' do declaration[name] = util.merged(options[name], own[name]) end
  return declaration
end
