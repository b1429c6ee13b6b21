-- Context-parallel degrees for sequences of unequal length: one for all, and one per micro-batch.

local contexts = require 'trinity.stragglers.contexts'
local step_of = require 'trinity.stragglers.step'
local trinity = require 'trinity'

local cluster, whole_length = trinity.cluster 'dgx_h100x1', 16384

local function strategy(sequence, mesh, more)
  local graph = trinity.model('decoder', { layers = 2, hidden = 4096, heads = 32, feed_forward = 14336, gated = true,
    vocabulary = 4096, positions = 0, kernels = 'flash', sequence = sequence, batch_size = 1, dtype = 'bfloat16' })
  return trinity.problem { graph = graph, cluster = cluster }:strategy(merged({ mesh = mesh, micro_batches = 2,
    recompute = 'full', zero_stage = 1 }, more))
end

local function sampled(found, options)
  return trinity.stragglers(found, merged({ noise = 0, draws = 1, fill = 'packed', context = 'per_micro_batch',
    remedies = false }, options))
end

describe('a context-parallel degree per micro-batch', function()
  for _, kind in ipairs { 'all_gather', 'ring', 'all_to_all' } do
    it('takes as long as the simulated mesh of the degree, which is the one that sequences fit: ' .. kind, function()
      local whole = strategy(whole_length, { context = 8 }, { cp_comm_type = kind })
      for _, degree in ipairs { 1, 2, 4, 8 } do
        local exact = strategy(whole_length * degree / 8, { data = 8 / degree, context = degree }, { cp_comm_type = kind })
        local found = sampled(whole, { lengths = function() return whole_length * degree / 8 end })
        expect(found.degrees[degree]):equals(1)
        -- attention keeps the pieces of the whole ring, which are smaller kernels
        expect(found.mean_s / exact.metrics.step_time_s):near(1, kind == 'ring' and 0.07 or 0.02)
      end
    end)
  end
  it('is the one of the mesh where every sequence has the full length, in every schedule', function()
    for _, more in ipairs { {}, { schedule = 'interleaved', virtual_stages = 1 }, { zero_stage = 3 } } do
      local found = strategy(whole_length, { context = 2, pipeline = 2, tensor = 2 }, merged({ sequence_parallel = true }, more))
      expect(sampled(found, { lengths = function() return whole_length end }).mean_s):near(found.metrics.step_time_s, 1e-9)
    end
  end)
  it('exchanges the tokens of a micro-batch where it is not the degree of the mesh', function()
    local found = strategy(whole_length, { context = 4, pipeline = 2 })
    local switch_s, waiting = contexts.switching(step_of('test', found), found)
    local count = 0
    for _ in pairs(waiting) do count = count + 1 end
    expect(count):equals(8 * 2) -- devices, micro-batches
    expect(switch_s(whole_length)):equals(cluster:collective { kind = 'all_to_all', devices = { 1, 2, 3, 4 },
      bytes = 28 * whole_length / 4 }.time_s)
  end)
  it('does not change messages of weights and gradients', function()
    local found = strategy(whole_length, { context = 8 }, { zero_stage = 3 })
    local step, weights_s = step_of('test', found), 0
    for i, node in ipairs(step.nodes) do
      if node.kind == 'collective' and contexts.is_of_weights(node.op) then
        weights_s = weights_s + step.time_s[i]
      end
    end
    expect(weights_s):below(sampled(found, { lengths = function() return 1 end, fill = 'padded', context = 'fixed' }).mean_s)
  end)
end)

it('trinity simulate --context-degrees prints them, as text and as JSON', function()
  local lengths, path = temporary '.csv', temporary '.json'
  trinity.files.write(lengths, 'length,count\n32,3\n128,1\n')
  local network = trinity.model('llama-3-8b', { layers = 1, sequence = 128, batch_size = 1 })
  trinity.problem { graph = network, cluster = cluster }:strategy({ mesh = { context = 4 }, micro_batches = 4 }):save(path)
  local words = ("simulate --model llama-3-8b --set layers=1,sequence=128 --batch_size 1 --cluster dgx_h100x1 --run none "
    .. "--strategy '%s' --lengths '%s' --fill packed --context-degrees --draws 3"):format(path, lengths)
  trinity_says(words, 0, 'context 1 [^\n]*1: 100 %%', 'one per micro%-batch')
  trinity_says(words .. ' --json', 0, '"what": ?"context 4"', '"4": ?1[,}%s]', '"p50_s"')
  trinity_says((words:gsub("%-%-lengths '[^']*' %-%-fill packed", '--noise 0')), 2, 'belongs to %-%-lengths')
end)

it('trinity.stragglers.context_degrees compares divisors of the degree, with the sequences of trinity.stragglers', function()
  local lengths = temporary '.csv'
  trinity.files.write(lengths, 'length,count\n1024,8\n4096,4\n16384,1\n')
  local found = strategy(whole_length, { context = 8 }, { micro_batches = 8 })
  local options = { lengths = lengths, fill = 'packed', noise = 0, draws = 5 }
  local rows, by_name = trinity.stragglers.context_degrees(found, options), {}
  for i, row in ipairs(rows) do
    by_name[row.what] = row
    if i > 1 then expect(rows[i - 1].mean_s <= row.mean_s):equals(true) end
    expect(row.p50_s <= row.p95_s):equals(true)
  end
  expect(by_name['context 8'].mean_s):equals(trinity.stragglers(found, options).mean_s)
  expect(by_name['context 2'].micro_batches):equals(2)
  expect(by_name['context 2'].mesh.data):equals(4)
  expect(by_name['one per micro-batch'].mean_s):below(by_name['context 8'].mean_s)
  local sum = 0
  for _, share in pairs(by_name['one per micro-batch'].degrees) do sum = sum + share end -- in any order
  expect(sum):near(1, 1e-9)
  local network = trinity.model('llama-3-8b', { layers = 4, sequence = 128, batch_size = 1 })
  local interleaved = trinity.problem { graph = network, cluster = cluster }:strategy { mesh = { context = 4, pipeline = 2 },
    micro_batches = 4, schedule = 'interleaved', virtual_stages = 2 }
  local possible = {} -- with context 1 there is one micro-batch, which two stages cannot interleave
  for i, row in ipairs(trinity.stragglers.context_degrees(interleaved, { draws = 1,
    lengths = function() return 64 end })) do possible[i] = row.what end
  table.sort(possible)
  expect(table.concat(possible, ', ')):equals 'context 2, context 4, one per micro-batch'
  expect(function() trinity.stragglers.context_degrees(found, {}) end):raises "option 'lengths'"
  expect(function() trinity.stragglers(found, { context = 'per_micro_batch' }) end):raises "expected option 'lengths' with it"
end)
