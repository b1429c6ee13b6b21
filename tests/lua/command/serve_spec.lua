-- `trinity serve`: requests and answers as lines of JSON, against the library's own answers.

local json = require 'trinity.base.json'
local trinity = require 'trinity'

-- The answers to requests (tables or texts), and the exit status.
local function ask(requests, words)
  local lines = {}
  for i, request in ipairs(requests) do
    lines[i] = type(request) == 'string' and request or json.encode(request)
  end
  local path, answers = file_with(table.concat(lines, '\n') .. '\n'), {}
  local text = output_of(('"%s" %s < "%s"; echo "status=$?"'):format(program, words or 'serve', path))
  for line in text:gmatch '(%b{})\n' do answers[#answers + 1] = json.decode(line) end
  return answers, tonumber(text:match 'status=(%d+)\n$')
end

local spec = { model = 'alexnet', batch_size = 4, cluster = 'p100x2' }
local problem = trinity.problem { graph = trinity.model(spec.model, { batch_size = 4 }), cluster = trinity.cluster(spec.cluster) }
local units, operators = problem.graph.units, problem.graph.operators

-- A random placement of units, by a seed: devices from 0 as a list and as a text, and the library's placement.
local function drawn(seed)
  local stream, list = trinity.random(seed, 'serve'), {}
  for unit = 1, units do list[unit] = stream:integer(2) - 1 end
  return list, table.concat(list), problem:placement_by_unit(function(unit) return list[unit] + 1 end)
end

describe('serve', function()
  it('evaluates what the library evaluates', function()
    local list, text, placement = drawn(1)
    local by_operator = {}
    for op = 1, operators do by_operator[op] = placement[op] - 1 end
    local answers, status = ask {
      { id = 'one', method = 'evaluate', params = { problem = spec, placement = list } },
      { method = 'evaluate_batch', params = { problem = spec, placements = { list, text, by_operator } } },
      { id = 3, method = 'bounds', params = { problem = spec } },
      { id = 4, method = 'explain', params = { problem = spec, placement = text } },
      { id = { 5 }, method = 'info', params = { problem = spec } },
    }
    expect(status):equals(0)
    local m = problem:evaluate(placement)
    expect(answers[1].id):equals 'one'
    expect(answers[1].result.step_time_s):equals(m.step_time_s)
    expect(answers[1].result.memory_bytes[2]):equals(m:memory_bytes(2))
    expect(answers[2].id):equals(nil)
    for i = 1, 3 do
      expect(answers[2].result.step_time_s[i]):equals(m.step_time_s)
      expect(answers[2].result.reward[i]):equals(problem:score(m, placement))
    end
    expect(answers[3].result.step_time_s):equals(problem:bounds().step_time_s)
    expect(answers[4].result.text):equals(problem:strategy(placement):explain())
    expect(answers[5].result.units):equals(units)
    expect(answers[5].result.unit_of[operators]):equals(problem.graph.unit_of[operators] - 1)
    expect(answers[5].id[1]):equals(5)
  end)

  it('simulates strategies with a mesh, plans and checks', function()
    local gpt2 = { model = 'gpt2', cluster = 'p100x2', set = { layers = 2, batch_size = 1 } }
    local answers = ask {
      { id = 1, method = 'evaluate', params = { problem = gpt2, strategy = { mesh = { pipeline = 2 }, micro_batches = 4 } } },
      { id = 2, method = 'plan', params = { problem = gpt2, global_batch = 8, simulations = 6, plans = 2 } },
      { id = 3, method = 'check', params = { path = root .. '/tests/data/jobs/pretrain.sh' } },
      { id = 4, method = 'evaluate', params = { problem = gpt2, strategy = { mesh = { data = 2 }, tasks = '/etc/passwd' } } },
    }
    local own = trinity.problem { graph = trinity.model('gpt2', { layers = 2, batch_size = 1 }), cluster = trinity.cluster 'p100x2' }
    expect(answers[1].result.step_time_s):equals(own:evaluate({ mesh = { pipeline = 2 }, micro_batches = 4 }).step_time_s)
    local best, second = answers[2].result.plans[1], answers[2].result.plans[2]
    expect(best.step_time_s <= second.step_time_s):equals(true)
    expect(best.strategy.mesh.data * best.strategy.mesh.tensor * best.strategy.mesh.pipeline <= 2):equals(true)
    local on_h100 = { problem = { model = 'gpt2', cluster = 'dgx_h100:2', set = { layers = 4 } }, global_batch = 8, simulations = 2,
      space = { schedule = 'zb-v', pipeline = 2 } }
    local planned = ask { { id = 1, method = 'plan', params = on_h100 }, { id = 2, method = 'plan', params = merged(on_h100, { runtime = 'any' }) } }
    expect(planned[1].error.message):matches "runtime 'megatron' runs 1F1B, interleaved 1F1B"
    expect(planned[2].result.plans[1].strategy.schedule):equals 'zb-v'
    expect(answers[3].result.legal):equals(trinity.job(root .. '/tests/data/jobs/pretrain.sh', {}).legal)
    expect(answers[4].error.message):matches "unknown field 'tasks'"
  end)

  it('steps environments as the library does', function()
    with_torch()
    local requests = { { method = 'env.reset', params = { problem = spec, seed = 5, options = { groups = 4, num_envs = 2 } } } }
    local env, actions = trinity.env(problem, { groups = 4, num_envs = 2 }), { { 0, 1 }, { 1, 1 }, { 0, 0 }, { 1, 0 } }
    for i, pair in ipairs(actions) do requests[i + 1] = { method = 'env.step', params = { actions = pair } } end
    requests[6] = { method = 'env.best' }
    local answers = ask(requests)
    env:reset(5)
    expect(answers[1].result.num_actions):equals(2)
    expect(answers[1].result.max_steps):equals(4)
    expect(#answers[1].result.observation.nodes[2]):equals(4)
    for i, pair in ipairs(actions) do
      local observation, reward, done, info = env:step { pair[1] + 1, pair[2] + 1 }
      local got = answers[i + 1].result
      expect(got.done[2]):equals(done:totable()[2] == 1)
      expect(got.reward[2]):equals(reward:totable()[2])
      expect(got.observation.load[1][2]):equals(observation.load:totable()[1][2])
      expect(got.observation.placement[1][1]):equals(observation.placement:totable()[1][1] - 1)
      expect(got.observation.nodes):equals(nil)
      expect(#got.ended):equals(#info.envs)
    end
    expect(answers[5].result.ended[1].env):equals(0)
    expect(answers[6].result.step_time_s):equals(env:best().metrics.step_time_s)
    expect(answers[6].result.placement[1]):equals(env:best().placement[1] - 1)
  end)

  it('answers errors of one form, and goes on', function()
    local answers, status = ask({
      'no json', '[1]', '{"id": 7, "method": 3}', { id = 8, method = 'evaluat' }, { id = 9, method = 'evaluate', params = { placment = {} } },
      { id = 10, method = 'evaluate', params = { problem = spec, placement = { 0, 1 } } },
      { id = 11, method = 'evaluate', params = { problem = spec, placement = ('2'):rep(units) } },
      { id = 12, method = 'evaluate', params = { problem = { model = 'alexnett' } } },
      { id = 13, method = 'evaluate', params = { problem = merged(spec, { batch_siz = 3 }) } },
      { id = 14, method = 'env.step', params = { actions = { 0 } } },
      { id = 15, method = 'evaluate_batch', params = { problem = spec, placements = { '0', '0', '0' } } },
      { id = 16, method = 'plan', params = { problem = spec } },
      { id = 17, method = 'bounds', params = { problem = spec } },
      '{"id": 18, "method": "bounds", "params": "' .. ('x'):rep(2000) .. '"}',
    }, 'serve --max-placements 2 --max-line-bytes 1024')
    local expected = { { 'parse_error', 'request:1:' }, { 'invalid_request', '"method"' }, { 'invalid_request', '"method"', nil, 7 },
      { 'unknown_method', "'evaluat', did you mean 'evaluate'%?", nil, 8 }, { 'invalid_params', "did you mean 'placement'%?", 'placment', 9 },
      { 'invalid_params', "'placement': expected %d+ entries %(operators%) or %d+ %(colocation units%), got 2", 'placement', 10 },
      { 'invalid_params', 'entry 0: expected a device from 0 to 1', 'placement', 11 }, { 'invalid_params', "did you mean 'alexnet'%?", nil, 12 },
      { 'invalid_params', "'batch_siz', did you mean 'batch_size'%?", 'batch_siz', 13 }, { 'invalid_params', 'no environment', 'env', 14 },
      { 'limit_exceeded', 'expected at most 2, got 3', 'placements', 15 }, { 'invalid_params', "'global_batch' is missing", 'global_batch', 16 },
      {}, { 'limit_exceeded', 'expected at most 1024' } }
    expect(status):equals(0)
    expect(#answers):equals(#expected)
    for i, row in ipairs(expected) do
      local answer = answers[i]
      if not row[1] then
        expect(answer.result.step_time_s):equals(problem:bounds().step_time_s)
      else
        expect(answer.error.code):equals(row[1])
        expect(answer.error.message):matches(row[2])
        if row[3] then expect(answer.error.field):equals(row[3]) end
        expect(answer.id):equals(row[4])
        expect(answer.result):equals(nil)
      end
    end
  end)

  it('ends a request that takes longer than --max-seconds, and answers the next', function()
    local answers = ask({ { id = 1, method = 'plan', params = { problem = { model = 'llama-3-70b', cluster = 'dgx_h100x64' },
      runtime = 'any', global_batch = 512, simulations = 10000 } }, { id = 2, method = 'check',
      params = { arguments = { '--num-layers', '4' } } } }, 'serve --max-seconds 0.2')
    expect(answers[1].error.code):equals 'limit_exceeded'
    expect(answers[1].error.message):matches 'did not end within 0.2 s'
    expect(answers[2].result.client):equals 'Megatron-LM'
  end)

  it('reads no file outside of the working directory under --safe', function()
    local outside = temporary '.sh'
    require('trinity.core').write_file(outside, 'torchrun pretrain_gpt.py --num-layers 2\n')
    local answers = ask({ { id = 1, method = 'check', params = { path = outside } }, { id = 2, method = 'bounds', params = { problem = spec } } },
      '--safe serve')
    expect(answers[1].error.code):equals 'invalid_params'
    expect(answers[1].error.message):matches '%-%-safe opens'
    expect(answers[2].result.step_time_s):equals(problem:bounds().step_time_s)
  end)

  it('names the version of its schema', function() -- which golden text scripts/commands/serve.txt has
    local schema = json.decode(output_of(('"%s" serve --schema'):format(program)))
    expect(ask { { method = 'info', params = { problem = spec } } }[1].result.schema):equals(schema.version)
  end)

  for what, module in trinity.system.sorted_pairs { check = 'gymnasium', train = 'stable_baselines3' } do
    local try = what == 'train' and it_all or it
    try(('is a gymnasium.Env for %s'):format(module), function()
      with_torch()
      if output_of(("python3 -c 'import gymnasium, %s' 2>&1 && echo there"):format(module)):sub(-6) ~= 'there\n' then
        skip(('no Python with gymnasium and %s'):format(module))
      end
      local text = output_of(('OMP_NUM_THREADS=1 python3 "%s/tests/clients/gymnasium_env.py" "%s" %s 2>&1'):format(root, program, what))
      if what == 'check' then expect(text):matches 'env_checker: passed' end
      if what == 'train' then
        local found, bound = text:match 'PPO: ([%d.]+) s, bound ([%d.]+) s'
        expect(tonumber(found)):below(1.3 * tonumber(bound))
      end
    end)
  end
end)
