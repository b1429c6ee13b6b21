-- trinity.stragglers.expert_load: invariants of experts that get different numbers of tokens.

local core = require 'trinity.core'
local dispatcher = require 'trinity.stragglers.dispatcher'
local trinity = require 'trinity'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')

local cluster = trinity.cluster 'dgx_h100x1'

local function strategy(expert, more)
  local graph = mixture(merged({ layers = 2, hidden = 1024, heads = 8, num_kv_heads = 4, feed_forward = 4096, experts = 8,
    top_k = 2, vocabulary = 960, batch_size = 2, sequence = 2048 }, more)):to_training { optimizer = 'adam' }
  return trinity.problem { graph = graph, cluster = cluster }:strategy { mesh = { data = 4, expert = expert } }
end

local two, four = strategy(2), strategy(4)

it('trinity simulate --expert-load prices a saved strategy', function()
  local path = temporary '.json'
  local network = trinity.model('mixtral-8x7b', { layers = 1, sequence = 128, batch_size = 1 })
  trinity.problem { graph = network, cluster = cluster }:strategy({ mesh = { data = 8, expert = 8 } }):save(path)
  local words = ("simulate --model mixtral-8x7b --set layers=1,sequence=128 --batch_size 1 --cluster dgx_h100x1 --run none "
    .. "--strategy '%s'"):format(path)
  trinity_says(words .. ' --expert-load zipf:1.2 --capacity-factor 2', 0, 'expert_load%s+step [%d.]+ s %([%d.]+ times the '
    .. 'even one%), fullest rank 2 times an even load, [%d.]+ %% of tokens dropped')
  trinity_says(words .. ' --expert-load zipf:0 --json', 0, '"slowdown": ?1[,}]')
  trinity_says(words .. ' --capacity-factor 2', 2, 'belongs to %-%-expert%-load')
  trinity_says(words .. ' --expert-load zipf:x', 2, "zipf: and a number from 0 to 100, got 'zipf:x'")
  local alone = tonumber(trinity_says(words .. ' --expert-load zipf:2', 0, 'expert_load'):match 'expert_load%s+step ([%d.]+) s')
  local sampled = trinity_says(words .. ' --expert-load zipf:2 --noise 0 --draws 1', 0, 'sampled'):match 'sampled%s+([%d.]+) s'
  expect(tonumber(sampled)):equals(alone)
end)

describe('experts with unequal loads', function()
  it('give metrics bit-identical to the strategy where loads are equal', function()
    for _, found in ipairs { strategy(1), two, four } do
      for _, load in ipairs { 'uniform', { zipf = 0 }, function() return 7 end } do
        local even = trinity.stragglers.expert_load(found, { load = load })
        expect(even.step_time_s):equals(found.metrics.step_time_s)
        expect(even.peak_memory_bytes):equals(found.metrics.peak_memory_bytes)
        expect(even.rank_factor):equals(1)
        expect(even.dropped):equals(0)
      end
    end
  end)
  it('make the step and the memory of a network in which all ranks get the tokens of the fullest', function()
    for expert, found in pairs { [2] = two, [4] = four } do -- in any order
      local hot = trinity.stragglers.expert_load(found, { load = function(_, e) return e <= 8 / expert and 1 or 0 end })
      local as_many = strategy(expert, { top_k = 2 * expert })
      expect(hot.rank_factor):equals(expert)
      expect(hot.step_time_s / as_many.metrics.step_time_s):near(1, 0.03)
      expect(hot.peak_memory_bytes / as_many.metrics.peak_memory_bytes):near(1, 0.05)
      expect(hot.fullest_device):equals 'n0/gpu0'
    end
  end)
  it('take longer the more unequal loads are, and less where placed by load or dropped', function()
    local last = four.metrics.step_time_s
    for _, zipf in ipairs { 0.5, 1, 2 } do
      local found = trinity.stragglers.expert_load(four, { load = { zipf = zipf } })
      expect(last):below(found.step_time_s)
      last = found.step_time_s
    end
    local plain = trinity.stragglers.expert_load(four, { load = { zipf = 1 } })
    local placed = trinity.stragglers.expert_load(four, { load = { zipf = 1 }, place = 'by_load' })
    expect(placed.rank_factor):below(plain.rank_factor)
    expect(placed.step_time_s):below(plain.step_time_s)
    local dropped = trinity.stragglers.expert_load(four, { load = { zipf = 1 }, capacity_factor = 1.5 })
    expect(dropped.expert_factor):equals(1.5)
    expect(0):below(dropped.dropped)
    expect(dropped.step_time_s):below(plain.step_time_s)
  end)
  it('are the same from a file, a function or an order of ranks', function()
    local path = temporary '.json'
    trinity.files.write(path, '[[4, 2, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]]')
    local counts = { 4, 2, 1, 1, 0, 0, 0, 0 }
    local function load(layer, e) return layer == 1 and counts[e] or 1 end
    local by_file = trinity.stragglers.expert_load(four, { load = path })
    expect(by_file.rank_factor):equals(3) -- six of eight tokens on the first of four ranks
    expect(by_file.step_time_s):equals(trinity.stragglers.expert_load(four, { load = load }).step_time_s)
    local turned = trinity.stragglers.expert_load(four, { load = load, place = function() return { 8, 2, 3, 4, 5, 6, 7, 1 } end })
    expect(turned.rank_factor):equals(2)
  end)
  it('need fewer bytes where a token goes once to each rank, in any order of ranks', function()
    local network = trinity.model('mixtral-8x7b', { layers = 1, sequence = 2048, batch_size = 2 })
    local found = trinity.problem { graph = network, cluster = cluster }:strategy { mesh = { data = 4, expert = 4 } }
    local function step(name, more)
      return trinity.stragglers.expert_load(found, merged({ load = 'uniform', dispatcher = name }, more))
    end
    expect(step 'alltoall'.slowdown):equals(1)
    expect(step 'hybridep'.step_time_s):below(step 'alltoall'.step_time_s)
    expect(step('hybridep', { group_topk = 1 }).step_time_s):below(step 'hybridep'.step_time_s)
    expect(1):below(step('deepep', { load = { zipf = 1 } }).slowdown)
    local turned = four.problem:strategy { mesh = { data = 4, expert = 4 }, order = { 'data', 'expert', 'tensor', 'context',
      'placement', 'pipeline' } }
    expect(trinity.stragglers.expert_load(turned, { load = 'uniform' }).step_time_s):equals(turned.metrics.step_time_s)
  end)
  it('compose with noise, lengths and slow devices', function()
    local network = trinity.model('mixtral-8x7b', { layers = 2, sequence = 512, batch_size = 1 })
    local slow = trinity.cluster('dgx_h100x1', { slow = { ['n0/gpu3'] = 2 } })
    local function on(where, experts)
      return trinity.problem { graph = network, cluster = where }:strategy { micro_batches = 2,
        mesh = { data = 4, expert = experts or 4, pipeline = 2 } }
    end
    local function mean_s(found, load, more)
      return trinity.stragglers(found, merged({ noise = 0, draws = 1, remedies = false, experts = load and { load = load } },
        more)).mean_s
    end
    local found, hot, short = on(cluster), { zipf = 1 }, { lengths = function() return 256 end }
    expect(mean_s(found, 'uniform')):equals(mean_s(found))
    expect(mean_s(found, hot)):equals(trinity.stragglers.expert_load(found, { load = hot }).step_time_s)
    expect(mean_s(found, 'uniform', short)):equals(mean_s(found, nil, short))
    expect(mean_s(found)):below(mean_s(found, hot))
    expect(mean_s(found, nil, short)):below(mean_s(found, hot, short))
    expect(mean_s(found, hot, short)):below(mean_s(found, hot))
    expect(mean_s(found, hot)):below(mean_s(on(slow), hot))
    local remedy = trinity.stragglers(on(slow, 2), { draws = 1 }).remedies[2]
    expect(remedy.what .. #remedy.devices):equals 'replicas with slow devices dropped4' -- both that share experts
    local noisy = trinity.stragglers(found, { experts = { load = hot }, noise = 0.1, draws = 50 })
    expect(noisy.step_time_s):equals(mean_s(found, hot))
    expect(noisy.step_time_s - 2 * noisy.error_s):below(noisy.mean_s)
    expect(function() mean_s(found, nil, { experts = {} }) end):raises "option 'load' is missing"
  end)
  it('go to the expected number of ranks that hold random experts', function()
    local function destinations(parts, experts, top_k)
      return core.token_destinations { parts = parts, experts = experts, experts_per_token = top_k }
    end
    expect(destinations(2, 4, 2)):near(2 * (1 - 2 / 4 * 1 / 3), 1e-12)
    local members = { 1, 2, 3, 4, 5, 6, 7, 8 }
    local about = { tokens = 4096, token_bytes = 14336, experts = 32, top_k = 8 }
    local copies = cluster:collective { kind = 'all_to_all', devices = members, bytes = 4096 * 8 * 14336 }.time_s
    expect(dispatcher.message_s('alltoall', cluster, members, about)):equals(copies)
    expect(dispatcher.message_s('hybridep', cluster, members, about) / copies):near(destinations(8, 32, 8) / 8, 0.03)
    -- before the first message ranks exchange counts, and the host waits for them while alltoall orders rows
    local counted_s = cluster:collective { kind = 'all_gather', devices = members, bytes = 8 * 32 * 8 }.time_s
    local function first_s(name, ordering_s)
      return dispatcher.message_s(name, cluster, members, about, ordering_s) - dispatcher.message_s(name, cluster, members, about)
    end
    expect(first_s('alltoall', 1)):near(counted_s, 1e-12)
    expect(first_s('hybridep', 1) - counted_s):near(first_s('deepep', 1), 1e-12)
    expect(first_s('alltoall', 0)):near(first_s('hybridep', 0), 1e-12)
  end)
  it('hold rows in two orders where all copies of a token are sent', function()
    local about = { tokens = 1, token_bytes = 1, experts = 8, top_k = 2 }
    expect(dispatcher.held_bytes('alltoall', 8, about, 3)):equals(2 + 2 * 3) -- as sent; results as received
    expect(dispatcher.held_bytes('alltoall', 4, about, 3)):equals(2 + 4 * 3) -- rows as received, too, which are then sorted
    expect(dispatcher.held_bytes('hybridep', 4, merged(about, { padded = true }), 3)):equals(4 * 3)
  end)
  it('are refused where they do not fit the network', function()
    local function loaded(options, found) return function() trinity.stragglers.expert_load(found or four, options) end end
    local path = temporary '.json'
    trinity.files.write(path, '[[1, 2], [3, 4]]')
    expect(loaded { load = path }):raises 'layer 1: expected counts of 8 experts, got 2'
    trinity.files.write(path, '[[1, 2]]')
    expect(loaded { load = path }):raises 'expected a list of 2 layers, got 1'
    trinity.files.write(path, '[[1, 1, 1, 1, 1, 1, 1, -8], []]')
    expect(loaded { load = path }):raises '%.json: layer 1, expert 8: expected 0 or more tokens, got number %-8'
    for _, load in ipairs { 'even', { zipf = -1 } } do expect(loaded { load = load }):raises "option 'load'.*zipf = 0 to 100" end
    expect(loaded { load = function() return 0 end }):raises 'layer 1: expected a finite sum above 0, got 0'
    expect(loaded { load = 'uniform', group_topk = 2 }):raises "option 'group_topk': expected option 'dispatcher' with it"
    expect(loaded { load = function() return -1 end }):raises 'expert 1: expected 0 or more tokens, got number %-1'
    expect(loaded { load = 'uniform', dispatcher = 'deepep' }):raises "option 'dispatcher'.*experts_per_token"
    expect(loaded { load = 'uniform', place = function() return { 1, 1 } end }):raises 'expected every expert from 1 to 8 once'
    local dense = trinity.problem { graph = trinity.model('gpt2', { layers = 2 }), cluster = cluster }
    expect(loaded({ load = 'uniform' }, dense:strategy { mesh = { data = 2 } })):raises 'expected experts with one operator per matmul'
  end)
end)
