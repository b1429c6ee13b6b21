-- trinity study fidelity sailor: plans as problems over profiles of layers.

local calibrated = require 'trinity.cluster.calibrated'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local sailor = require 'studies.fidelity.sailor'
local util = require 'trinity.base.util'

local layers = 4

-- Four layers of 10 ms forward, 20 ms backward at every micro-batch; 1e6 weights, 1e6 elements sent, 5e6 kept.
local function data_of(times)
  local sizes, by_layer = {}, {}
  for layer = 0, layers - 1 do
    sizes[tostring(layer)] = { params_floats = 1e6, act_output_floats = 1e6, act_mem_floats = 5e6 }
    by_layer[tostring(layer)] = times or { 0.01, 0.02, 0.001 }
  end
  local profiles = {}
  for _, gpu in ipairs { 'GH-96', 'RTX-3090', 'Titan-RTX' } do
    profiles[gpu] = { ['1'] = { ['4'] = by_layer }, ['2'] = { ['4'] = by_layer } }
  end
  local curve = { ['4'] = { zone = { ['RTX-3090'] = { ['4'] = { { 0, 0, 0.1 }, 1e8 } },
    ['Titan-RTX'] = { ['4'] = { { 0, 0, 0.1 }, 1e8 } } } } }
  return { info = { small = { ['4'] = sizes } }, profiles = { small = profiles },
    bandwidths = { zone = { ['RTX-3090'] = curve, ['Titan-RTX'] = curve } } }
end

local function plan_of(changes)
  local o = util.merged({ stages = { { 0, 1 }, { 2, 3 } }, replicas = 1, mbs = 1, gbs = 8, gpus = { 'GH-96', 'GH-96' } },
    changes)
  local groups, dp = {}, {}
  for s in ipairs(o.stages) do
    groups[s], dp[s] = {}, o.replicas
    for r = 1, o.replicas do groups[s][r] = { { { o.gpus[s], 4, 'zone' } }, 4 } end
  end
  return { mbs = o.mbs, gbs = o.gbs, real = o.real, max_mem = o.max_mem,
    pipeline_list = { { num_stages = #o.stages, layers_per_stage = o.stages, tmp_per_stage = groups, dp = dp } } }
end

local values = { network_share = 0.5, slot_s = 0, state_bytes = 20, activation_share = 1, logits_share = 0,
  context_bytes = 4e9 }
local data = data_of()

local function read(changes) return sailor.plan('plan.json', plan_of(changes), data.info) end

describe('a plan', function()
  it('on one stage takes its layers, micro-batch by micro-batch, and one update', function()
    local told = sailor.predict(read { stages = { { 0, 1, 2, 3 } } }, data, values)
    expect(told.predicted):near(8 * 4 * 0.03 + 0.001, 1e-6)
  end)
  it('of two stages has the bubble of 1F1B, and copies and sends that hold stages up', function()
    local send_s = 4 * 1e6 / 12.5e9 + 4e-6
    local told = sailor.predict(read(), data, values)
    local slots = 9 * 2 * 0.03 + 0.001
    expect(told.predicted > slots + 8 * send_s):truthy()
    expect(told.predicted < slots + 4 * 9 * send_s):truthy()
  end)
  it('with replicas pays for a ring of all its gradients after the last micro-batch', function()
    local one = sailor.predict(read { stages = { { 0, 1, 2, 3 } }, gbs = 8 }, data, values).predicted
    local four = sailor.predict(read { stages = { { 0, 1, 2, 3 } }, gbs = 32, replicas = 4 }, data, values).predicted
    expect(four - one):near(2 * 3 / 4 * 16e6 / 12.5e9, 1e-4)
  end)
  it('holds states, what 1F1B keeps, and the context', function()
    local told = sailor.predict(read(), data, values)
    local first = 2 * 1e6 * 20 + 2 * 2 * 4 * 5e6 + 4e9
    expect(told.memory_bytes >= first and told.memory_bytes < first + 6 * 4e6):truthy()
  end)
  it('on different GPUs has the times of each, and the rates that were measured between them', function()
    local slower = data_of()
    slower.profiles.small['Titan-RTX'] = { ['1'] = { ['4'] = {} } }
    for layer = 0, layers - 1 do
      slower.profiles.small['Titan-RTX']['1']['4'][tostring(layer)] = { 0.03, 0.06, 0.001 }
    end
    slower.profiles.small['RTX-3090'] = data.profiles.small['RTX-3090']
    local plan = sailor.plan('plan.json', plan_of { gpus = { 'RTX-3090', 'Titan-RTX' } }, slower.info)
    local told = sailor.predict(plan, slower, values)
    expect(told.predicted > 8 * 2 * 0.09 + 2 * 0.03):truthy()
    local sends_s = 4e6 / 4 / (0.1e9 / 4 * 0.5)
    expect(told.predicted < 9 * (2 * 0.09 + 3 * sends_s) + 2 * 0.03 + 0.01):truthy()
  end)
  it('takes no longer for a pass than with a larger micro-batch', function()
    local odd = data_of()
    odd.profiles.small['GH-96'] = { ['1'] = { ['4'] = {} }, ['2'] = odd.profiles.small['GH-96']['2'] }
    for layer = 0, layers - 1 do odd.profiles.small['GH-96']['1']['4'][tostring(layer)] = { 0.05, 0.02, 0.001 } end
    local plan = read { stages = { { 0, 1, 2, 3 } } }
    expect(sailor.predict(plan, odd, values).predicted)
      :equals(sailor.predict(plan, data, values).predicted)
  end)
end)

local function folders(plan, other)
  local folder = temporary()
  if other then core.write_file(folder .. '/plans/here/a.json', json.encode(other)) end
  core.write_file(folder .. '/llm_info.json', json.encode(data.info))
  core.write_file(folder .. '/profiles_tmp.json', json.encode(data.profiles))
  core.write_file(folder .. '/providers/multizone_bandwidths_het.json', json.encode(data.bandwidths))
  core.write_file(folder .. '/plans/here/one.json', type(plan) == 'string' and plan or json.encode(plan))
  return ("study fidelity sailor --plans '%s/plans' --data '%s'"):format(folder, folder)
end

describe('the command', function()
  it('predicts plans without a measurement, by their path', function()
    local found = json.decode(trinity_says(folders(plan_of()) .. ' --json', 0)).plans
    expect(#found):equals(1)
    expect(found[1].plan):equals 'here/one.json'
    expect(found[1].predicted_s):near(sailor.predict(read(), data, calibrated.sources.sailor.gh200).predicted,
      1e-9)
    expect(found[1].predicted_memory_bytes > 4e9):truthy()
  end)
  it('predicts the others where a plan is refused, when read or predicted', function()
    for words, other in util.sorted_pairs { ["unknown GPU 'GH%-9'"] = plan_of { gpus = { 'GH-9', 'GH-96' } },
      ["profiles: no entry '7'"] = plan_of { mbs = 7 } } do
      local out = trinity_says(folders(plan_of(), other) .. ' --json', 0, 'warning: .*' .. words)
      local found = json.decode(out:match '{.*}').plans
      expect(found[1].plan .. ' ' .. found[2].plan):equals 'here/a.json here/one.json'
      expect(found[1].predicted_s):equals(nil)
      expect(found[1].refused):matches(words)
      expect(found[2].predicted_s > 0):truthy()
    end
  end)
  it('says what is assumed, and sets errors of plans that are not fitted apart', function()
    trinity_says(folders(plan_of { real = 0.6, max_mem = 4.5e9 }), 0, 'predicted rows')
    trinity_says(folders(plan_of()), 0, 'assumed: a pass takes no longer')
  end)
  it('fits to the plans there and no others', function()
    local saved = temporary '.lua'
    trinity_says(folders(plan_of { real = 0.7, max_mem = 4.5e9 }) .. (" --fit --save '%s'"):format(saved), 0)
    local fitted, count = dofile(saved), 0
    expect(json.read(saved .. '.json').rows.sailor[1]):equals 'here/one.json'
    for name, value in util.sorted_pairs(fitted.sources.sailor.gh200) do
      local one = sailor.priors[name]
      expect(value >= one.least and value <= one.most):truthy()
      count = count + 1
    end
    expect(count <= 8):truthy()
  end)
  it('names what is wrong in one sentence', function()
    trinity_says(folders(util.merged(plan_of(), { mbs = 'x' })), 1, "one.json: field 'mbs': expected a number")
    local out = trinity_says(folders(plan_of { mbs = 7 }) .. ' --json', 1, "profiles: no entry '7'")
    expect(json.decode(out:match '{.*}').plans[1].refused):matches "profiles: no entry '7'"
    trinity_says(folders(plan_of { stages = { { 0 }, { 1 } } }), 1, 'expected a network with 2 layers')
    trinity_says(folders(plan_of { real = 'fast' }), 1, "one.json: field 'real': expected a number above 0, or none, got")
    local thirds = plan_of()
    for _, groups in ipairs(thirds.pipeline_list[1].tmp_per_stage) do groups[1][2] = 3 end
    trinity_says(folders(thirds), 1, "one.json: llm_info.json: no entry '3'")
    trinity_says(folders '[1', 1, 'one.json')
    trinity_says('study fidelity sailor --plans nowhere --data nowhere', 1, "no file llm_info.json in nowhere")
  end)
end)
