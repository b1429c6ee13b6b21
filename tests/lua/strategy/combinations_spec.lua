-- The table of combinations in manual/strategies.md: every pair of parts of a mesh lowers and is priced, or is refused
-- in a sentence.

local core = require 'trinity.core'
local trinity = require 'trinity'

local parts = {
  { 'pipeline', { mesh = { pipeline = 2 } } },
  { 'virtual stages', { mesh = { pipeline = 2 }, schedule = 'interleaved', virtual_stages = 2 } },
  { 'zero bubble', { mesh = { pipeline = 2 }, schedule = 'zb-h1' } },
  { 'tensor', { mesh = { tensor = 2 } } },
  { 'sequence', { mesh = { tensor = 2 }, sequence_parallel = true } },
  { 'context', { mesh = { context = 2 } } },
  { 'expert', { mesh = { data = 2, expert = 2 } } },
  { 'data', { mesh = { data = 2 } } },
  { 'shard 1', { mesh = { data = 2 }, shard = 1 } },
  { 'shard 2, 3', { mesh = { data = 2 }, shard = 3 } },
  { 'recompute', { recompute = 'full' } },
}

local problem = trinity.problem { cluster = trinity.cluster 'dgx_a100x4', graph = trinity.model('gpt2', { layers = 4,
  hidden = 64, heads = 4, sequence = 32, positions = 32, vocabulary = 1000, batch_size = 2, dropout = 0, fused = false }) }

-- Both parts of a cell in one plan; zero bubble over virtual stages has a schedule of its own.
local function joined(a, b)
  local plan = { mesh = {}, micro_batches = 4 }
  for _, part in ipairs { a, b } do
    for key, value in trinity.sorted_pairs(part) do
      if key ~= 'mesh' then plan[key] = value end
    end
    for axis, size in trinity.sorted_pairs(part.mesh or {}) do plan.mesh[axis] = size end
  end
  if plan.virtual_stages and (a.schedule == 'zb-h1' or b.schedule == 'zb-h1') then plan.schedule = 'zb-interleaved' end
  return plan
end

local function cell(a, b)
  local ok, found = pcall(problem.strategy, problem, joined(a, b))
  if ok then return found.metrics.step_time_s > 0 and '+' or 'no time' end
  expect(tostring(found)):matches 'problem:strategy: mesh: expert = 2: graph .* has no experts that trinity could share out'
  return 'x'
end

local function table_text()
  local lines = { '| |', '|---|' }
  for i = 2, #parts do
    lines[1], lines[2] = ('%s %s |'):format(lines[1], parts[i][1]), lines[2] .. '---|'
  end
  for i = 1, #parts - 1 do
    local words = { ('| %s |'):format(parts[i][1]) }
    for j = 2, #parts do
      words[j] = j > i and (' %s |'):format(cell(parts[i][2], parts[j][2])) or ' |'
    end
    lines[#lines + 1] = table.concat(words)
  end
  return table.concat(lines, '\n')
end

describe('combinations of the parts of a mesh', function()
  it('lower or are refused as the manual says', function()
    local manual = core.read_file(core.home .. '/lib/trinity/manual/strategies.md')
    local text = table_text()
    if not manual:find(text, 1, true) then error('the manual has another table than\n' .. text, 0) end
  end)
end)
