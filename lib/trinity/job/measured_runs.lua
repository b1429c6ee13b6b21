-- Training runs that others measured (measured_runs.csv: figures, each with its source), and those that are nearest to
-- a job.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

local measured_runs = { path = core.home .. '/lib/trinity/job/measured_runs.csv' }

--- All runs, in the order of the file: { id, network, mixture, gpu, gpus, sequence, precision, plan,
--- tokens_per_s_per_gpu, flops_per_token, flops_per_s_per_gpu, source }.
function measured_runs.all()
  return util.map(csv.read(measured_runs.path), function(row)
    local run = util.picked(row, { 'id', 'network', 'gpu', 'precision', 'plan', 'source' })
    for _, column in ipairs { 'gpus', 'sequence', 'tokens_per_s_per_gpu', 'flops_per_token' } do
      run[column] = csv.number(measured_runs.path, row, column)
    end
    run.mixture, run.flops_per_s_per_gpu = row.mixture == '1', run.tokens_per_s_per_gpu * run.flops_per_token
    return run
  end)
end

-- Weights of the distance between runs: a factor of e in the network's size is 1, another type of GPU 2.
local weights = { flops_per_token = 1, gpus = 0.5, sequence = 0.5 }
local mismatch = { mixture = 4, gpu = 2, bits = 1 }

local function bits(precision) return (precision == 'bf16' or precision == 'bfloat16') and 16 or 8 end

local function distance(run, job)
  local sum = 0
  for name, weight in util.sorted_pairs(weights) do sum = sum + weight * math.abs(math.log(run[name] / job[name])) end
  if run.mixture ~= job.mixture then sum = sum + mismatch.mixture end
  if run.gpu ~= job.gpu then sum = sum + mismatch.gpu end
  if bits(run.precision) ~= bits(job.precision) then sum = sum + mismatch.bits end
  return sum
end

--- The runs nearest to a job, at most `count`, of each network, GPU and plan the nearest.
function measured_runs.nearest(job, count)
  local runs = measured_runs.all()
  for i, run in ipairs(runs) do run.distance, run.place = distance(run, job), i end
  table.sort(runs, util.by('distance', '-place')) -- later releases stand below
  local groups = util.grouped(runs, function(run)
    return table.concat({ run.network:upper(), run.gpu, run.gpus, run.plan, run.precision }, ' ')
  end)
  return util.listed(math.min(count, #groups), function(i) return groups[i][1] end)
end

return measured_runs
