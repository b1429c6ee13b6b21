-- Whatever takes `seconds` returns in time, with something that is feasible and honestly marked. Limits are short and
-- problems large: without deadlines (engine/base/deadline.h, core.begin_limit) methods here take from
-- ten seconds to hours. Bounds are generous, for busy machines.

local core = require 'trinity.core'
local trinity = require 'trinity'
local pipeline = trinity.pipeline

local limit_s, most_s = 0.5, 5

-- The results of f(...), after a check of the clock.
local function in_time(what, f, ...)
  local start = core.clock_s()
  local found, reason = f(...)
  local taken_s = core.clock_s() - start
  if taken_s > most_s then error(('%s took %.1f s of %g s'):format(what, taken_s, limit_s)) end
  return found, reason
end

-- Methods of a fresh process: other specs register methods of their own in this one.
local function names_of(list)
  local status, output = run_trinity(([[-e 'print(table.concat(require("trinity").%s(), " "))']]):format(list))
  assert(status == 0, output)
  local names = {}
  for name in output:gmatch '%S+' do names[#names + 1] = name end
  return names
end

local function check_stages(found)
  local nodes = {}
  for _, stage in ipairs(found.stages) do
    for _, node in ipairs(stage.nodes) do
      expect(nodes[node]):equals(nil)
      nodes[node] = true
    end
  end
  expect(#nodes):equals(#found.nodes)
end

describe('planners of pipelines', function()
  local xl = trinity.problem { graph = trinity.model('gpt2', { size = 'xl', batch_size = 1, kernels = 'onnx' }), cluster = trinity.cluster 'dgx_a100x2' }
  local nasnet = trinity.problem { graph = trinity.model 'nasnet_large', cluster = trinity.cluster 'p100x8' }
  local methods = names_of 'pipeline.methods'
  for i, method in ipairs(methods) do
    for k, case in ipairs { { 'GPT-2 XL', xl, { 8, 2 } }, { 'NASNet', nasnet, { 16 } } } do
      local try = (i + k + law_seed()) % 4 == 0 and it or it_all
      try(('%s keeps its seconds on %s'):format(method, case[1]), function()
        local found = in_time(method, pipeline, case[2], { method = method, devices = case[3], seconds = limit_s,
          micro_batches = 16, tensor_parallel = true, quiet = true })
        expect(found.feasible):equals(true)
        expect(found.max_load > 0):equals(true)
        if method ~= 'pipedream' then expect(found.optimal):equals(false) end -- the others need minutes for a proof
        check_stages(found)
      end)
    end
  end
  it('have a plan without any time, which they prove to be nothing', function()
    for _, method in ipairs(methods) do
      local found = in_time(method, pipeline, nasnet, { method = method, seconds = 0, quiet = true })
      expect(found.feasible):equals(true)
      expect(found.optimal):equals(false)
      check_stages(found)
    end
  end)
  it('prove what they prove where the time is enough', function()
    local problem = trinity.problem { graph = trinity.model 'alexnet', cluster = trinity.cluster 'p100x2' }
    for _, method in ipairs { 'max_load_dp', 'piper', 'pipedream' } do
      local found, free = pipeline(problem, { method = method, seconds = 60 }), pipeline(problem, { method = method })
      expect(found.optimal):equals(true)
      expect(found.max_load):equals(free.max_load)
      expect(table.concat(found.assignment, ' ')):equals(table.concat(free.assignment, ' '))
    end
  end)
end)

describe('methods', function()
  -- 5,200 units: a first batch of some policies takes longer than the limit, as the tables of others do.
  local large = trinity.problem { graph = trinity.model('gpt2', { layers = 200, batch_size = 1, sequence = 128 }),
    cluster = trinity.cluster 'dgx_a100x2' }
  local function keeps(name)
    local about = trinity.methods.info(name)
    local found, reason = in_time(name, trinity.methods.get(name), large, { seconds = limit_s, quiet = true,
      evaluations = about.budget and 2 ^ 50 or nil })
    if found then
      expect(found.metrics.feasible):equals(true)
      expect(found.stopped):equals(nil)
    else
      expect(reason):matches 'within 0%.5 s$'
      expect(about.budget):equals(false)
    end
  end
  for i, name in ipairs(names_of 'methods.names') do
    local small = trinity.methods.info(name).needs:find('million placements', 1, true) -- exhaustive refuses more
    local try = (i + law_seed()) % 5 == 0 and it or it_all -- a fifth for a commit
    if not small then try(name .. ' keeps its seconds', function() keeps(name) end) end
  end
  it('leave the script as it was', function()
    expect(core.stop_requested()):equals(false)
    expect(large:evaluate(large:placement()).step_time_s > 0):equals(true)
  end)
end)
