-- Plans under Aceso's search space and rules: costs compared with their cost model's, times with their search's
-- (data/aceso of the shared folder).

local aceso = require 'studies.aceso'
local core = require 'trinity.core'
local profiles = require 'studies.aceso.profiles'
local trinity = require 'trinity'

local folder = '../shared/data/aceso'
local layers = { ['350M'] = 24, ['1_3B'] = 24, ['2_6B'] = 32 }

local function given() return core.exists(folder .. '/expected.json') end
local function expected() return trinity.files.json.decode(trinity.files.read(folder .. '/expected.json')) end

--- A list from run lengths: 3x1,2x4 is 1, 1, 1, 4, 4.
local function unrolled(text)
  local list = {}
  for count, value in text:gmatch '(%d+)x(%d+)' do
    for _ = 1, tonumber(count) do list[#list + 1] = tonumber(value) end
  end
  return list
end

local function plan_of(case)
  local plan, at = { micro_batch = case.micro_batch_size, tensor = unrolled(case.tp), data = unrolled(case.dp),
    algorithm = unrolled(case.algo), recompute = unrolled(case.recompute), stages = {} }, 1
  for s, count in ipairs(case.num_ops_in_each_stage) do
    plan.stages[s] = { gpus = case.num_gpus[s], first = at, last = at + count - 1 }
    at = at + count
  end
  return plan
end

--- A plan of what Aceso's runtime reads.
local function read_plan(path)
  local read = trinity.files.json.decode(trinity.files.read(path))
  local plan, at = { micro_batch = read.micro_batch_size, stages = {} }, 1
  for s, count in ipairs(read.num_ops_in_each_stage) do
    plan.stages[s] = { gpus = read.num_gpus[s], first = at, last = at + count - 1 }
    at = at + count
  end
  for name, field in trinity.system.sorted_pairs { tensor = 'model_parallel_size_of_each_op',
    data = 'data_parallel_size_of_each_op', algorithm = 'algo_of_each_op', recompute = 'recompute_ops' } do
    plan[name] = {}
    for _, stage in ipairs(read[field]) do
      for _, value in ipairs(stage) do table.insert(plan[name], value) end
    end
  end
  return plan
end

describe('aceso', function()
  it('prices mixed plans as its cost model does, to its nanosecond and kilobyte', function()
    if not given() then return skip 'no ../shared/data/aceso' end
    local read, cases = {}, expected().random_plans
    expect(#cases):equals(12)
    for _, case in ipairs(cases) do
      read[case.size] = read[case.size] or profiles.read(folder .. '/profiles', 'gpt_' .. case.size)
      local got = aceso.price(read[case.size], plan_of(case), layers[case.size], case.gpus_per_node)
      expect(got.step_time_ms):near(case.time_ms, 1e-5)
      for s, us in ipairs(case.stage_us) do
        expect(got.stage_us[s]):near(us, 1e-5)
        expect(got.stage_mb[s]):near(case.memory_mb[s], 1e-3)
      end
    end
  end)

  it('finds plans no slower than plans of its search, in a tenth of its time', function()
    if not given() then return skip 'no ../shared/data/aceso' end
    for model, row in trinity.system.sorted_pairs { gpt_1_3B = { gpus = 4, bar_s = 101.18 }, gpt_2_6B = { gpus = 8, bar_s = 87.13 } } do
      local found = aceso.plan { folder = folder .. '/profiles', model = model, gpus = row.gpus,
        gpus_per_node = row.gpus, seconds = 20 }
      expect(found.predicted_s < row.bar_s):equals(true)
      expect(found.predicted_s > found.bound_s):equals(true)
      for _, mb in ipairs(found.priced.stage_mb) do expect(mb <= 28000):equals(true) end
    end
  end)

  it('writes plans that read back at the same cost', function()
    if not given() then return skip 'no ../shared/data/aceso' end
    local read = profiles.read(folder .. '/profiles', 'gpt_1_3B')
    local theirs = read_plan(folder .. '/plans/gpt_1_3B.json')
    local priced = aceso.price(read, theirs, 24, 4)
    expect(priced.step_time_ms):near(101184.979, 1e-3)
    local path = os.tmpname()
    trinity.files.write(path, trinity.files.json.encode(aceso.export(theirs, 'gpt_1_3B', 24)))
    expect(aceso.price(read, read_plan(path), 24, 4).step_time_ms):equals(priced.step_time_ms)
    for key, value in trinity.system.sorted_pairs(trinity.files.json.decode(trinity.files.read(folder .. '/plans/gpt_1_3B.json'))) do
      expect(trinity.files.json.encode { trinity.files.json.decode(trinity.files.read(path))[key] })
        :equals(trinity.files.json.encode { value })
    end
  end)

  it('names what a folder lacks', function()
    expect(function() profiles.read('tests/data', 'gpt_1_3B') end):raises 'tests/data: no profiles of operators'
    expect(function() profiles.read('no/such', 'gpt_1_3B') end):raises 'no/such: no such folder of profiles'
    if not given() then return end
    expect(function() profiles.read(folder .. '/profiles', 'gpt_1_4B') end):raises 'no profiles of model'
    expect(function()
      aceso.plan { folder = folder .. '/profiles', model = 'gpt_1_3B', gpus = 3, gpus_per_node = 4, seconds = 1 }
    end):raises 'expected a power of two, got 3'
  end)
end)
