-- Runs that others measured: figures with their sources, and which of them are nearest to a job.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local measured_runs = require 'trinity.job.measured_runs'
local published_row = require 'studies.fidelity.published_row'
local trinity = require 'trinity'

describe('measured runs of others', function()
  it('have a source each, and rates below the peak of their GPU', function()
    local runs = measured_runs.all()
    expect(#runs > 200):truthy()
    for _, run in ipairs(runs) do
      expect(#run.source > 10):truthy()
      local peaks = trinity.devices[run.gpu].peak_flops_per_s
      local peak = run.precision == 'bf16' and peaks.bfloat16 or run.precision == 'nvfp4' and 3 * peaks.float8 or peaks.float8
      expect(run.flops_per_s_per_gpu):below(peak, run.id)
      expect(run.flops_per_s_per_gpu > 1e13):truthy()
    end
  end)
  it('equal the rows of their source tables', function()
    local folder, by = core.home .. '/../shared/data/', {}
    if not core.exists(folder .. 'mlperf/steps.csv') then skip 'needs ../shared/data' end
    for _, path in ipairs { 'llm-published/throughput.csv', 'mlperf/steps.csv' } do
      for _, row in ipairs(published_row.all(folder .. path)) do by[row.id] = row end
    end
    for _, run in ipairs(measured_runs.all()) do
      local row = by[run.id]
      expect(run.tokens_per_s_per_gpu):near(row.measured, 1e-5 * row.measured)
      expect(run.gpus):equals(row.gpus)
      expect(run.gpu):equals(row.kind)
    end
  end)
  it('nearest to a job are of its kind of network, GPU and size; each configuration once', function()
    local job = { flops_per_token = 6 * 8e9, gpus = 64, sequence = 8192, gpu = 'h100', mixture = false, precision = 'float8' }
    local function nearest(changes) return measured_runs.nearest(merged(job, changes), 5) end
    local seen = {}
    for _, run in ipairs(nearest {}) do
      expect(run.gpu == 'h100' and not run.mixture):truthy()
      local key = table.concat({ run.network, run.gpus, run.plan, run.precision }, ' ')
      expect(seen[key]):equals(nil)
      seen[key] = true
    end
    expect(nearest({ mixture = true })[1].mixture):truthy()
    expect(nearest({ gpu = 'gb300' })[1].gpu):equals 'gb300'
    local large = nearest({ flops_per_token = 6 * 405e9, gpus = 1024 })[1]
    expect(large.network:lower()):matches '405b'
    expect(#measured_runs.nearest(job, 1)):equals(1)
  end)
  it('stand below what trinity expect says, with the job itself', function()
    local path = ("'%s/tests/data/jobs/pretrain.sh'"):format(root)
    local found = json.decode(trinity_says(('expect %s --measured 20ms --json'):format(path), 0))
    expect(#found.nearest):equals(3)
    for _, run in ipairs(found.nearest) do expect(#run.source > 0 and run.tokens_per_s_per_gpu > 0):truthy() end
    expect(found.ratio):near(found.measured_s / found.predicted_s, 1e-9)
    trinity_says(('expect %s --measured 20ms'):format(path), 0, 'nearest runs that others measured, per GPU')
    trinity_says(('expect %s'):format(path), 0, 'this job, predicted')
    expect(#csv.read(measured_runs.path)):equals(#measured_runs.all())
  end)
end)
