-- Experts shared out over an axis of a mesh: what devices hold, what they exchange, what is refused.

local core = require 'trinity.core'
local trinity = require 'trinity'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')

local cluster = trinity.cluster 'dgx_a100x4'
local about = { layers = 2, hidden = 32, heads = 4, key_heads = 2, feed_forward = 64, experts = 8, top_k = 2,
  vocabulary = 96, batch_size = 2, sequence = 32 }
local expert_elements = 3 * about.hidden * about.feed_forward * about.experts * about.layers -- of all layers

local function problem_of(more)
  local o = {}
  for key, value in trinity.sorted_pairs(about) do o[key] = value end
  for key, value in trinity.sorted_pairs(more or {}) do o[key] = value end
  return trinity.problem { cluster = cluster, graph = mixture(o):to_training { optimizer = 'adam' } }
end

local problem = problem_of()
local tokens = about.batch_size * about.sequence
local dealt = 4 * tokens * about.top_k * about.hidden -- bytes of what a device deals out: one copy a choice

-- Number of messages of a kind on an axis in which the first device takes part, and their bytes, but for the weights of
-- experts' rows, a number each.
local function traffic(account, kind, axis)
  local count, bytes = 0, 0
  for _, row in ipairs(account.stages[1].traffic) do
    if row.kind == kind and row.axis == axis and row.bytes > dealt / about.hidden then
      count, bytes = count + row.count, bytes + row.count * row.bytes
    end
  end
  return count, bytes
end

describe('experts of a mesh', function()
  it('are held by one rank each, and all devices hold the rest', function()
    local whole = problem:strategy({ mesh = { data = 4 } }):account().devices[1]
    for _, ranks in ipairs { 2, 4 } do
      local share = problem:strategy({ mesh = { data = 4, expert = ranks } }):account().devices[1]
      local gone = expert_elements * (ranks - 1) / ranks
      expect(share.parameters):equals(whole.parameters - gone)
      expect(share.weight_bytes):equals(whole.weight_bytes - 4 * gone)
      expect(share.gradient_bytes):equals(whole.gradient_bytes - 4 * gone)
      expect(share.optimizer_bytes):equals(whole.optimizer_bytes - 8 * gone)
      expect(share.flops):equals(whole.flops - 2 * 3 * gone) -- as much work, but updates by Adam of what others hold
    end
  end)
  it('get their tokens by two exchanges a layer and pass', function()
    for _, m in ipairs { 1, 3 } do
      local account = problem:strategy({ mesh = { data = 4, expert = 2 }, micro_batches = m }):account()
      local count, bytes = traffic(account, 'all_to_all', 'expert')
      expect(count):equals(m * about.layers * 4)
      expect(bytes):equals(count * dealt)
    end
    local again = problem:strategy({ mesh = { data = 4, expert = 2 }, recompute = 'full' }):account()
    expect((traffic(again, 'all_to_all', 'expert'))):equals(about.layers * 6)
  end)
  it('read and write weights and gradients of their own rank alone', function()
    -- products of so wide experts with so few tokens take what their weights take
    local wide = problem_of { layers = 1, hidden = 512, feed_forward = 4096, batch_size = 1, sequence = 8 }
    local function seconds(expert)
      for _, row in ipairs(wide:timeline({ mesh = { data = 4, expert = expert } }):by_type()) do
        if row.type == 'EinsumGrad' then return row.total_s / row.tasks end
      end
    end
    local alone = seconds(1)
    expect(seconds(2) / alone):near(1 / 2, 0.1)
    expect(seconds(4) / alone):near(1 / 4, 0.1)
  end)
  it('exchange with the ranks beside them', function()
    local account = problem:strategy({ mesh = { data = 4, expert = 2 } }):account()
    local groups = {}
    for _, row in ipairs(account.traffic) do
      if row.kind == 'all_to_all' then groups[table.concat(row.devices, ' ')] = true end
    end
    local found = {}
    for group in trinity.sorted_pairs(groups) do found[#found + 1] = group end
    expect(table.concat(found, ', ')):equals '1 2, 3 4'
  end)
  it('meet their copies alone', function()
    local function reduced(ranks)
      local account = problem:strategy({ mesh = { data = 4, expert = ranks }, bucket_bytes = 2 ^ 40 }):account()
      local with_all, with_copies = 0, 0
      for _, row in ipairs(account.stages[1].traffic) do
        if row.kind == 'all_reduce' and #row.devices == 4 then with_all = with_all + row.bytes end
        if row.kind == 'all_reduce' and #row.devices == 2 then with_copies = with_copies + row.bytes end
      end
      return with_all, with_copies
    end
    local all = reduced(1)
    for _, ranks in ipairs { 2, 4 } do
      local dense, own = reduced(ranks)
      expect(dense):equals(all - 4 * expert_elements)
      expect(own):equals(ranks == 2 and 4 * expert_elements / 2 or 0)
    end
  end)
  it('are shared out by ZeRO over their copies', function()
    local dense = problem:strategy({ mesh = { data = 4 } }):account().devices[1].parameters - expert_elements
    for _, ranks in ipairs { 1, 2, 4 } do
      local function share(level)
        return problem:strategy({ mesh = { data = 4, expert = ranks }, shard = level }):account().devices[1]
      end
      local own = expert_elements / ranks / (4 / ranks) + dense / 4
      expect(math.abs(share(1).optimizer_bytes - 8 * own)):below(2000) -- rounded up by operator
      expect(math.abs(share(2).gradient_bytes - 4 * own)):below(2000)
      expect(math.abs(share(3).weight_bytes - 4 * own)):below(2000)
    end
  end)
  it('are cut over tensor with the sequence shared out', function()
    local account = problem:strategy({ mesh = { data = 2, expert = 2, tensor = 2 }, sequence_parallel = true }):account()
    local count, bytes = traffic(account, 'all_to_all', 'expert')
    expect(count):equals(about.layers * 4)
    expect(bytes):equals(count * dealt / 2)
    local whole = 0
    for _, row in ipairs(account.stages[1].traffic) do
      local of_experts = row.axis == 'tensor' and row.bytes == dealt and row.part == 'layers'
      if of_experts and (row.kind == 'all_gather' or row.kind == 'reduce_scatter') then whole = whole + row.count end
    end
    expect(whole):equals(about.layers * 4)
  end)
  it('cost nothing more where their axis has one rank', function()
    local plain = problem:evaluate { mesh = { data = 2 }, micro_batches = 2 }
    expect(problem:evaluate({ mesh = { data = 2, expert = 1 }, micro_batches = 2 }).step_time_s):equals(plain.step_time_s)
  end)
  it('are found as branches of operators too', function()
    local graph = trinity.model('moe_transformer', { layers = 2, hidden = 64, heads = 4, key_heads = 2, feed_forward = 32,
      experts = 4, top_k = 2, vocabulary = 100, batch_size = 2, sequence = 16 })
    local branches = trinity.problem { cluster = cluster, graph = graph }
    local whole = branches:strategy({ mesh = { data = 2 } }):account()
    local shared = branches:strategy({ mesh = { data = 2, expert = 2 } }):account()
    expect(whole.devices[1].parameters - shared.devices[1].parameters):equals(2 * 4 / 2 * 3 * 64 * 32)
    expect((traffic(shared, 'all_to_all', 'expert'))):equals(2 * 4)
    expect(math.abs(shared.devices[1].flops / whole.devices[1].flops - 1)):below(0.01)
    local placement, homes = branches:strategy({ mesh = { data = 2, expert = 2 } }).placement, {}
    for i = 1, graph.operators do
      local expert = graph:operator(i).name:match '^block_1/moe/expert_(%d)/up$'
      if expert then homes[tonumber(expert)] = placement[i] end
    end
    expect(table.concat(homes, ' ')):equals '1 1 2 2'
  end)
  it('as branches lower under tensor where gates are apart, and are told so where not', function()
    local function branches(fused)
      return trinity.problem { cluster = cluster, graph = trinity.model('moe_transformer', { layers = 2, hidden = 64, heads = 4,
        key_heads = 2, feed_forward = 32, experts = 4, top_k = 2, vocabulary = 100, batch_size = 2, sequence = 16, fused = fused }) }
    end
    local plan = { mesh = { data = 2, expert = 2, tensor = 2 }, sequence_parallel = true }
    local whole = branches(false):strategy({ mesh = { data = 2, expert = 2 } }):account()
    local cut = branches(false):strategy(plan):account()
    expect(whole.devices[1].parameters - cut.devices[1].parameters > 2 * 2 * 3 * 64 * 32 / 2 - 1):truthy()
    expect(function() branches(true):strategy(plan) end):raises 'a network with fused = false has them apart'
    expect(function() branches(false):strategy { mesh = { tensor = 2 } } end):raises 'sequence_parallel = true'
  end)
  it('refuse what does not divide, and tokens dealt out twice', function()
    local function refused(plan, text, by)
      expect(function() (by or problem):strategy(plan) end):raises(text)
    end
    refused({ mesh = { data = 3, expert = 3 } }, "expert = 3 does not divide the 8 experts of 'layer_1/mixture/experts/")
    refused({ mesh = { data = 3, expert = 3 } }, '(nearest that do: 2 or 4)')
    refused({ mesh = { data = 2, expert = 2, tensor = 2 } }, 'would deal out the same tokens; sequence_parallel = true')
    refused({ mesh = { data = 2, expert = 2 } }, "expert = 2: graph 'gpt2_small' has no experts to share out",
      trinity.problem { cluster = cluster, graph = trinity.model('gpt2', { layers = 2 }) })
  end)
end)

-- Mixture cases of an independent count (data/strategies of the shared folder). It leaves out the weights of experts'
-- rows, whose messages are a number a row, and counts the activations of another kernel.
local path = core.home .. '/../shared/data/strategies/expected.json'

local function case_problem(case)
  local m, b = case.model, case.batch
  return trinity.problem { cluster = cluster, graph = mixture({ layers = m.layers, hidden = m.hidden, heads = m.heads,
    key_heads = m.kv_heads, feed_forward = m.ffn, experts = m.experts, top_k = m.top_k, vocabulary = m.vocabulary,
    batch_size = b.micro_batch, sequence = b.sequence, dtype = 'bfloat16' })
    :to_training { gradient_dtype = 'float32', optimizer = 'adam' } }
end

local function case_plan(case)
  local s = case.strategy
  return { mesh = s.mesh, micro_batches = case.batch.micro_batches, shard = s.shard, recompute = s.recompute,
    sequence_parallel = s.sequence_parallel, bucket_bytes = 2 ^ 50 }
end

local function sums(rows, left_out)
  local found = {}
  for _, row in ipairs(rows) do
    local key = ('%s %s'):format(row.kind:gsub('-', '_'), row.axis)
    local small = left_out[row.bytes] and row.kind ~= 'all_reduce'
    if not small then
      found[key] = found[key] or { 0, 0 }
      found[key][1], found[key][2] = found[key][1] + row.count, found[key][2] + row.count * row.bytes
    end
  end
  return found
end

local function near(what, got, wanted)
  if math.abs(got - wanted) > 0.01 * wanted then error(('%s: expected %.6g, got %.6g'):format(what, wanted, got), 0) end
end

local function check_stage(case, wanted, got)
  local rows = 2 * case.batch.micro_batch * case.batch.sequence * case.model.top_k
  local left_out = { [rows] = true, [rows / (case.strategy.mesh.tensor or 1)] = true }
  for _, field in ipairs { 'weight_bytes', 'gradient_bytes', 'optimizer_bytes' } do near(field, got[field], wanted[field]) end
  local ours, theirs = sums(got.traffic, left_out), sums(wanted.collectives, {})
  for key, sum in trinity.sorted_pairs(theirs) do
    local gathered = case.strategy.shard == 3 and key == 'all_gather data' -- layer by layer here, all at once there
    expect(('%s: %d'):format(key, gathered and sum[1] or ours[key] and ours[key][1] or -1)):equals(('%s: %d'):format(key, sum[1]))
    near(key, ours[key][2], sum[2])
  end
  for key in trinity.sorted_pairs(ours) do expect(('%s: %s'):format(key, theirs[key] ~= nil)):matches 'true$' end
end

describe('experts beside an independent count', function()
  local here = io.open(path)
  if not here then return it_shared('of mixtures', function() end) end
  here:close()
  for _, case in ipairs(trinity.json.decode(core.read_file(path)).cases) do
    if case.model.experts then
      it_shared(case.name, function()
        local mixed = case_problem(case)
        if case.refused then
          expect(function() mixed:strategy(case_plan(case)) end):raises '.'
          return
        end
        local account = mixed:strategy(case_plan(case)):account()
        for s, wanted in ipairs(case.expected.stages) do check_stage(case, wanted, account.stages[s]) end
      end)
    end
  end
end)
