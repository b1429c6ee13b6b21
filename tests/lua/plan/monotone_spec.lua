-- Invariants of trinity.plan over random cases: a search of a part of a space finds nothing that is better than what the search
-- of the whole finds, more simulations find nothing worse, and what a person includes is ranked.

local trinity = require 'trinity'
local space = require 'trinity.plan.space'

-- Those after the fourth need simulations that take long, since they have many GPUs: they are for `test all`.
local decoders = { 'llama-3-8b', 'mistral-7b', 'qwen3-8b', 'llama-3-70b', 'mixtral-8x7b', 'qwen3-30b-a3b',
  'llama-3.1-405b' }
local mixture = { ['mixtral-8x7b'] = true, ['qwen3-30b-a3b'] = true }
local machines = { 'dgx_h100', 'dgx_a100_80gb', 'dgx_h200' }
-- Few GPUs of them hold weights and gradients, but no optimizer: gigabytes of a machine, and of 9 bytes per parameter.
local tight = { { 'hgx_a100_4', 160 }, { 'dgx_a100', 320 }, { 'hgx_h100_4', 320 }, { 'dgx_h100', 640 } }
local least_gb = { ['llama-3-8b'] = 72, ['mistral-7b'] = 65, ['qwen3-8b'] = 74, ['llama-3-70b'] = 635, ['mixtral-8x7b'] = 420,
  ['qwen3-30b-a3b'] = 275, ['llama-3.1-405b'] = 3650 }

--- Restrictions of one or two dimensions, as people state them.
local restrictions = {
  function(random) return { pipeline = 2 ^ random:integer(4) } end,
  function(random) return { tensor = 2 ^ (random:integer(4) - 1) } end,
  function() return { schedule = '1f1b' } end,
  function() return { schedule = 'interleaved', zero_stage = { 0, 1 } } end,
  function(random) return { zero_stage = random:integer(2) - 1 } end,
  function(random) return { recompute = random:integer(2) == 1 and 'none' or 'full' } end,
  function() return { context = 1 } end,
  function(random) return { micro_batch = 2 ^ (random:integer(3) - 1) } end,
  function(random) return { tensor = 8, pipeline = 2 ^ random:integer(4), recompute = 'none' } end,
  function(random) return { expert = 2 ^ (random:integer(4) - 1) } end,
  function(random) return { optimizer_offload_fraction = (random:integer(3) - 1) / 2 } end,
}

--- A network, 8 to 16,384 GPUs on which its states fit (every third time as few as have to offload), a batch, a
--- restriction.
local function drawn(random)
  local name = decoders[random:integer(draws(10) == 10 and #decoders or 4)]
  local least = name == 'llama-3.1-405b' and 7 or (name:match '70b' or name:match '8x7b') and 3 or 0
  local nodes, machine = 2 ^ (least + random:integer((draws(10) == 10 and 12 or 6) - least) - 1), machines[random:integer(#machines)]
  local sequence = 2048 * 2 ^ random:integer(2)
  if random:integer(3) == 1 then
    local one = tight[random:integer(#tight)]
    machine, nodes, sequence = one[1], 1, 2 * sequence
    while nodes * one[2] < least_gb[name] do nodes = 2 * nodes end
  end
  local given = restrictions[random:integer(#restrictions)](random)
  if given.expert and not mixture[name] then given = { tensor = 2 } end
  return { name = name, cluster = ('%sx%d'):format(machine, nodes), batch = 8 * nodes * 2 ^ (random:integer(3) - 1), sequence = sequence,
    space = given }
end

local function plan(case, given, further)
  return trinity.plan(merged({ cluster = trinity.cluster(case.cluster), global_batch = case.batch, quiet = true,
    plans = 1, runtime = 'megatron', space = given, graph = function(micro_batch, layers)
      return trinity.model(case.name, { batch_size = micro_batch, layers = layers, sequence = case.sequence,
        cluster = case.cluster })
    end }, further or {}))
end

local function words(case)
  local parts = {}
  for name, value in pairs(case.space) do parts[#parts + 1] = name .. ' ' .. trinity.files.json.encode(value) end
  table.sort(parts)
  return ('%s on %s, batch %d, sequence %d, %s'):format(case.name, case.cluster, case.batch, case.sequence,
    table.concat(parts, ', '))
end

local function step_s(found) return found.plans[1] and found.plans[1].step_time_s or math.huge end

describe('a search of plans', function()
  it('over a part of a space finds nothing better than a search of the whole, and no gap is large', function()
    local random, gaps = trinity.random(law_seed(), 'parts of spaces'), {}
    for _ = 1, math.max(10, draws(60)) do
      local case = drawn(random)
      local free, part = plan(case), plan(case, case.space)
      if step_s(free) > 1.001 * step_s(part) then
        error(('%s: %.6g s, %.6g s of all: %s, %s'):format(words(case), step_s(part), step_s(free),
          space.text(part.plans[1].point), free.plans[1] and space.text(free.plans[1].point) or 'nothing fits'))
      end
      if free.plans[1] then
        gaps[#gaps + 1] = step_s(free) / free.lower_bound_s - 1
      end
    end
    table.sort(gaps)
    expect(gaps[math.ceil(0.5 * #gaps)] < 0.05):truthy()
    expect(gaps[math.ceil(0.9 * #gaps)] < 0.15):truthy()
    expect(gaps[#gaps] < 0.25):truthy()
  end)

  it('of more simulations goes on from one of fewer', function()
    local random = trinity.random(law_seed(), 'more simulations')
    for _ = 1, draws(20) do
      local case, last, before = drawn(random), math.huge, {}
      for _, count in ipairs { 4, 12, 36 } do
        local found, there = plan(case, case.space, { simulations = count }), {}
        for _, one in ipairs(found.simulated) do there[tostring(one.step_time_s)] = true end
        for key in pairs(before) do expect(there[key]):truthy() end -- in any order
        if step_s(found) > last then error(('%s: %.9g s of %d'):format(words(case), step_s(found), count)) end
        last, before = step_s(found), there
      end
    end
  end)

  it('ranks plans that a person states, inside the space or not', function()
    local case = { name = 'llama-3-8b', cluster = 'dgx_h100', batch = 64, sequence = 4096 }
    local other = plan(case, { tensor = 8, pipeline = 1, context = 1 }).plans[1]
    local found = plan(case, { tensor = 1, context = 1 }, { included = { other.point }, simulations = 12, plans = 2 })
    local seen = 0
    for i, one in ipairs(found.plans) do
      if i > 1 then expect(one.step_time_s >= found.plans[i - 1].step_time_s):truthy() end
      if one.included then
        seen = seen + 1
        expect(one.step_time_s):equals(other.step_time_s)
        expect(one.rank > 2):truthy()
      else
        expect(one.tensor):equals(1)
      end
    end
    expect(seen):equals(1)
    expect(#found.plans):equals(3)
  end)

  it('shows plans that differ in mesh, schedule, recomputation or sharding', function()
    local found = plan({ name = 'llama-3-8b', cluster = 'dgx_h100', batch = 64, sequence = 4096 }, nil, { plans = 5 })
    local shapes = {}
    for _, one in ipairs(found.plans) do
      local shape = space.shape(one.point)
      expect(shapes[shape]):equals(nil)
      shapes[shape] = true
      for _, variant in ipairs(one.variants) do
        expect(space.shape(variant.point)):equals(shape)
        expect(variant.step_time_s >= one.step_time_s):truthy()
      end
    end
    expect(#found.plans):equals(5)
  end)
end)
