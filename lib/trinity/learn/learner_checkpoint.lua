-- The state from which a learner (learn/training.lua) resumes an interrupted run: parameters and the optimiser's state
-- in a file next to the search's checkpoint, counts and averages in the checkpoint itself (runs/checkpoints.lua). A
-- policy's state is its parameters: other state (averages over batches, a random stream of its own) starts again.

local checkpoints = require 'trinity.runs.checkpoints'
local optimisers = require 'trinity.nn.optimisers'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local learner_checkpoint = {}

local function tensors_of(parameters, optimiser)
  local tensors = {}
  for i, parameter in ipairs(parameters) do tensors[('parameter.%d'):format(i)] = parameter:detach() end
  return optimisers.pack(optimiser, 'optimiser.', tensors)
end

local function same_shape(a, b) return table.concat(a:size(), ' ') == table.concat(b:size(), ' ') end

--- Takes parameters and the optimiser's state from the file at `path`, or raises why not, before anything is changed.
function learner_checkpoint.load(path, parameters, optimiser)
  local tensors, found = tensor.load(path), 0
  for i, parameter in ipairs(parameters) do
    local value = tensors[('parameter.%d'):format(i)]
    if value and same_shape(value, parameter) then found = found + 1 end
  end
  if found ~= #parameters then
    util.fail('%s: holds %d of the %d parameters of this policy', path, found, #parameters)
  end
  optimisers.unpack(optimiser, 'optimiser.', tensors, path)
  tensor.no_grad(function()
    for i, parameter in ipairs(parameters) do parameter:copy_(tensors[('parameter.%d'):format(i)]) end
  end)
end

--- Writes both to a file that load() takes.
function learner_checkpoint.save(path, parameters, optimiser)
  tensor.save(path, tensors_of(parameters, optimiser))
end

function learner_checkpoint.write(run, parameters, optimiser, notes)
  checkpoints.write_with_file(run, notes, function(path) learner_checkpoint.save(path, parameters, optimiser) end)
end

--- Brings search, parameters and optimiser to where the search's checkpoint was written. Returns its notes; nil where
--- there is none, or none that can be used.
function learner_checkpoint.restore(owner, run, parameters, optimiser)
  return checkpoints.restore_kept(owner, run, function(path)
    learner_checkpoint.load(path, parameters, optimiser)
  end)
end

return learner_checkpoint
