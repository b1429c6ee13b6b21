-- The table of refusals in manual/strategy_fields.md: every pair of parts of a mesh is simulated, or is refused in a
-- sentence.

local core = require 'trinity.core'
local trinity = require 'trinity'
local mixture = dofile(core.home .. '/tests/lua/support/mixture.lua')

local parts = {
  { 'pipeline', { mesh = { pipeline = 2 } } },
  { 'virtual stages', { mesh = { pipeline = 2 }, schedule = 'interleaved', virtual_stages = 2 } },
  { 'zero bubble', { mesh = { pipeline = 2 }, schedule = 'zb-h1' } },
  { 'tensor', { mesh = { tensor = 2 } } },
  { 'sequence', { mesh = { tensor = 2 }, sequence_parallel = true } },
  { 'context', { mesh = { context = 2 } } },
  { 'expert', { mesh = { data = 2, expert = 2 } } },
  { 'placement', { mesh = { placement = 2 }, inside = function(op) return op.name:find 'query' and 2 or 1 end } },
  { 'data', { mesh = { data = 2 } } },
  { 'ZeRO 1', { mesh = { data = 2 }, zero_stage = 1 } },
  { 'ZeRO 2, 3', { mesh = { data = 2 }, zero_stage = 2 }, { mesh = { data = 2 }, zero_stage = 3 } },
  { 'recompute', { recompute = 'full' } },
  { 'hierarchical', { mesh = { data = 4 }, sync = { kind = 'hierarchical', inner = 2 } } },
  { 'local SGD', { mesh = { data = 4 }, sync = { kind = 'local_sgd', every = 2 } } },
  { 'DASO', { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2, every = 2 } } },
  { 'asynchronous DASO', { mesh = { data = 4 }, sync = { kind = 'daso', inner = 2, every = 2, asynchronous = true } } },
  { 'parameter server', { mesh = { data = 4 }, sync = { kind = 'parameter_server', servers = 2 } } },
  { 'asynchronous server', { mesh = { data = 4 }, sync = { kind = 'parameter_server', servers = 2, asynchronous = true } } },
}

local reasons = { 'each rank of experts would need slots of its own',
  'would dispatch the same tokens; use sequence_parallel = true',
  'experts would get tokens of replicas whose other weights have diverged', 'no server would see all copies',
  'replicas diverge between synchronizations, so there is no common optimiser state to shard', 'servers hold the optimiser states',
  'forward and backward of a mini-batch would use different weights' }

local cluster = trinity.cluster 'dgx_a100x4'
local experts = trinity.problem { cluster = cluster, graph = mixture({ layers = 4, hidden = 64, heads = 4,
  feed_forward = 64, experts = 4, top_k = 2, vocabulary = 1000, batch_size = 2, sequence = 32 }):to_training() }
local problem = trinity.problem { cluster = cluster, graph = trinity.model('gpt2', { layers = 4,
  hidden = 64, heads = 4, sequence = 32, positions = 32, vocabulary = 1000, batch_size = 2, dropout = 0, fused = false }) }

-- Both parts of a cell in one plan; zero bubble over virtual stages has a schedule of its own.
local function joined(a, b)
  local plan = { mesh = {}, micro_batches = 4 }
  for _, part in ipairs { a, b } do
    for key, value in trinity.system.sorted_pairs(part) do
      if key ~= 'mesh' then plan[key] = value end
    end
    for axis, size in trinity.system.sorted_pairs(part.mesh or {}) do plan.mesh[axis] = size end
  end
  if plan.virtual_stages and (a.schedule == 'zb-h1' or b.schedule == 'zb-h1') then plan.schedule = 'zb-interleaved' end
  return plan
end

-- Whether both say one field, which can have one value.
local function same_field(a, b)
  return (a.zero_stage and b.zero_stage) ~= nil or (a.sync and b.sync) ~= nil
end

local function lowers(a, b)
  local plan = joined(a, b)
  local of = plan.mesh.expert and experts or problem
  local ok, found = pcall(of.strategy, of, plan)
  if ok then return found.metrics.step_time_s > 0 and '+' or 'no time' end
  for _, reason in ipairs(reasons) do
    if tostring(found):find(reason, 1, true) then return 'x' end
  end
  error(tostring(found), 0)
end

-- Parts that are two things are compatible with the same others.
local function cell(a, b)
  local words = {}
  for i = 2, #a do
    for j = 2, #b do words[#words + 1] = same_field(a[i], b[j]) and '-' or lowers(a[i], b[j]) end
  end
  for i = 2, #words do expect(words[i]):equals(words[1]) end
  return words[1]
end

--- The pairs that are refused, as the manual lists them. Every pair is tried.
local function table_text()
  local lines = { '| part | refused with |', '|---|---|' }
  for i = 1, #parts - 1 do
    local refused = {}
    for j = i + 1, #parts do
      if cell(parts[i], parts[j]) == 'x' then refused[#refused + 1] = parts[j][1] end
    end
    if #refused > 0 then lines[#lines + 1] = ('| %s | %s |'):format(parts[i][1], table.concat(refused, ', ')) end
  end
  return table.concat(lines, '\n')
end

describe('combinations of the parts of a mesh', function()
  it('lower or are refused as the manual says', function()
    local manual = core.read_file(core.home .. '/lib/trinity/manual/strategy_fields.md')
    local text = table_text()
    if not manual:find(text, 1, true) then error('the manual has another table than\n' .. text, 0) end
  end)
end)
