-- Learned list schedulers: what they build, their files, their training.

local trinity = require 'trinity'
local core = require 'trinity.core'
local list_training = require 'trinity.methods.list_training'

local function problem_of(model, batch_size, cluster)
  return trinity.problem { graph = trinity.model(model, { batch_size = batch_size }),
    cluster = trinity.cluster(cluster or 'p100x4') }
end
local shipped = trinity.schedulers.load(trinity.schedulers.shipped)

local function same(a, b)
  for op = 1, #a do if a[op] ~= b[op] then return false end end
  return #a == #b
end

local function plain(by_term) return trinity.schedulers.new { list_training.plain(by_term) } end

describe('a learned list scheduler', function()
  it('is no worse than every list scheduler on networks that it was not trained on', function()
    local logs, rows = 0, { problem_of('vgg16', 16, 'p100x2'), problem_of('vgg16', 8), problem_of('vit_b16', 8),
      problem_of('vit_b16', 16, 'p100x3'), problem_of('alexnet', 64) }
    for _, problem in ipairs(rows) do
      local best_s = list_training.best_of(problem, { 'etf', 'heft', 'cpop', 'm_etf', 'm_sct', 'single_device' })
      local found = trinity.methods.learned_list(problem, { quiet = true })
      expect(found.metrics.feasible):equals(true)
      expect(found.evaluations):equals(1)
      logs = logs + math.log(found.metrics.step_time_s / best_s)
    end
    expect(math.exp(logs / #rows)):below(1.0001)
  end)
  it('is the earliest finish by the weights of that, and its own schedule is close to the simulator', function()
    local problem = problem_of('inception_v3', 64)
    local placement, own_s = plain({ start = 1, time = 1 }):construct(problem, 1)
    local step_time_s = problem:evaluate(placement).step_time_s
    expect(math.abs(own_s / step_time_s - 1)):below(0.03)
    local single_s = trinity.methods.single_device(problem, { quiet = true }).metrics.step_time_s
    expect(step_time_s):below(0.9 * single_s)
    local apart = plain({ wires = 1 }):construct(problem, 1) -- nothing is worth a transfer
    expect(problem:evaluate(apart).step_time_s):equals(single_s)
  end)
  it('keeps to memory where one device is too small', function()
    local problem = problem_of('hrnet_w48', 16)
    expect(trinity.methods.single_device(problem, { quiet = true }).metrics.feasible):equals(false)
    expect(problem:evaluate((shipped:construct(problem))).feasible):equals(true)
  end)
end)

describe('files of schedulers', function()
  it('are what was saved, with notes', function()
    local path, problem = temporary '.safetensors', problem_of('vgg16', 8)
    shipped:save(path, { trained_on = 'much' })
    local loaded = trinity.schedulers.load(path)
    expect(loaded.notes.trained_on):equals 'much'
    expect(loaded.members):equals(shipped.members)
    expect(same((loaded:construct(problem)), (shipped:construct(problem)))):equals(true)
    expect(shipped.notes.command):matches 'trinity train %-%-learns schedulers'
  end)
  it('that are foreign, damaged or missing are refused in a sentence', function()
    expect(function() trinity.schedulers.load(trinity.rankers.shipped) end):raises 'not a list scheduler saved by trinity'
    expect(function() trinity.rankers.load(trinity.schedulers.shipped) end):raises 'not a ranker of moves'
    expect(function() trinity.schedulers.load '/nowhere.safetensors' end):raises 'nowhere'
    local path, text = temporary '.safetensors', core.read_file(trinity.schedulers.shipped)
    local file = io.open(path, 'wb')
    file:write(text:sub(1, -5), 'oops')
    file:close()
    expect(function() trinity.schedulers.load(path) end):raises 'changed or cut short'
  end)
end)

describe('their training', function()
  it('keeps no more after many rounds than after a few', function()
    local kept = list_training.kept_rounds
    list_training.kept_rounds = 3
    local ok, message = pcall(function()
      local trainer, held = list_training.new(list_training.cases('alexnet:8', 'p100x2'), 1), {}
      for round = 1, 22 do
        trainer:round()
        trainer.rounds = round
        held[round] = #trainer.pool
      end
      expect(held[11] - held[10]):equals(16) -- weights tried in a round
      expect(held[13] - held[10]):equals(3 * 16)
      expect(held[22]):equals(held[13])
      expect((trainer:members(4))):matches '.'
    end)
    list_training.kept_rounds = kept
    if not ok then error(message, 0) end
  end)
  it('makes the same weights from the same seed, and better ones than it begins with', function()
    local function trained(seed)
      local scheduler, first, all = list_training.train({ graphs = 'inception_v3:16', clusters = 'p100x2', rounds = 14,
        members = 4, seed = seed }, function() end)
      return scheduler, first, all
    end
    local scheduler, first, all = trained(1)
    local again = trained(1)
    local a, b = scheduler:weights(), again:weights()
    for m = 1, #a do for i = 1, #a[m] do expect(a[m][i]):equals(b[m][i]) end end
    expect(trained(2):weights()[1][1] ~= a[1][1]):equals(true)
    expect(all <= first):equals(true)
    local problem = problem_of('inception_v3', 16, 'p100x2')
    local function built(of) return problem:evaluate((of:construct(problem))).step_time_s end
    expect(built(scheduler)):below(built(plain { start = 1, time = 1, wires = 0.1 }))
  end)
end)
