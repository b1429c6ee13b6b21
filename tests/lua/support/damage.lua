-- Small files of every format of ours that is read back, and what becomes of them when a bit flips or their end is
-- missing: refused by name, or read as what they were. See damaged_spec.lua.

local core = require 'trinity.core'
local kept = dofile(core.home .. '/tests/lua/support/kept.lua')
local trinity = require 'trinity'

local damage = {}

local function small_problem()
  local builder = trinity.graph.new { name = 'small' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 }, gradient = false } } }
  for i = 1, 3 do
    x = builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
  end
  return trinity.problem { graph = builder:build(), cluster = trinity.cluster 'p100x2' }
end

local settings = { samples = 2, groups = 2, hidden = 2, epochs = 1 }

local function search_options(own)
  for key, value in trinity.system.sorted_pairs(settings) do own[key] = value end
  own.evaluations, own.quiet = 24, true
  if own.policy == nil then own.policy = 1 end
  return own
end

-- The scores from which a search of the engine resumes are next to its checkpoint, whose name lacks '.scores'.
local function scores_format(problem, placement_text)
  local function search()
    return trinity.methods.trinity(problem, search_options { policy = false, warm_start = { 'contiguous' } })
  end
  local function checkpoint_of(path) return path:match '^(.*)%.scores$' end
  return { name = 'scores of a search', ending = '.scores', summed = true,
    write = function(path) kept.search(checkpoint_of(path), search) end,
    read = function(path) return placement_text(kept.search(checkpoint_of(path), search, true).placement) end }
end

-- The checkpoint of an executed training.
local function training_format()
  local rows = os.tmpname() .. '.csv'
  local graph = trinity.model('mlp', { inputs = 1, hidden = {}, classes = 2, batch_size = 2, optimizer = 'momentum' })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100' }
  local function train(epochs, path)
    core.write_file(rows, '1,0\n2,1\n')
    local ok, run = pcall(trinity.execute, problem, problem:placement(), { data = rows, epochs = epochs, checkpoint = path,
      keep_weights = true, quiet = true, rate = { decay = 'plateau' } })
    os.remove(rows)
    if not ok then error(run, 0) end
    return table.concat(run.weights[1].values, ' ')
  end
  local function write(path)
    os.remove(path)
    train(1, path)
  end
  return { name = 'training', summed = true, write = write,
    read = function(path)
      local text = core.read_file(path)
      local again = train(2, path)
      core.write_file(path, text)
      return again
    end }
end

--- Formats: { name, write(path), read(path) -> text of what was read, summed = whether a checksum covers every bit,
--- ending = what the file's name needs }.
function damage.formats()
  local problem = small_problem()
  local function placement_text(placement) return table.concat(placement:totable(), ' ') end
  local strategy = problem:strategy(problem:placement_by_unit(function(unit) return unit % 2 + 1 end), { method = 'hand' })
  local profile = trinity.profile.measure(trinity.model('rnnlm', { batch_size = 1, sequence = 2, hidden = 4,
    vocabulary = 5, layers = 1 }), { steps = 1, warm_up = 0, copies = 1, sizes = { 64, 4096 }, quiet = true })
  local function search() return trinity.methods.trinity(problem, search_options {}) end
  local function agent(path)
    local own = { resume = path }
    for key, value in trinity.system.sorted_pairs(settings) do own[key] = value end
    return trinity.learn.agent(problem, own)
  end
  return {
    { name = 'agent', summed = true, write = function(path) agent():save(path) end,
      read = function(path) return placement_text(agent(path):greedy()) end },
    { name = 'search checkpoint', summed = true,
      write = function(path) kept.search(path, search) end,
      read = function(path) return placement_text(kept.search(path, search, true).placement) end },
    scores_format(problem, placement_text),
    { name = 'strategy', write = function(path) strategy:save(path) end,
      read = function(path) return placement_text(problem:load(path).placement) end },
    { name = 'graph', ending = '.json', write = function(path) problem.graph:save(path) end,
      read = function(path) return trinity.model(path).fingerprint end },
    { name = 'profile', write = function(path) profile:save(path) end,
      read = function(path)
        local again = path .. '.again'
        trinity.profile.load(path):save(again)
        local text = core.read_file(again)
        os.remove(again)
        return text
      end },
    training_format(),
    { name = 'tensors', write = function(path) trinity.tensor.save(path, { x = trinity.tensor.ones { 2, 3 } }) end,
      read = function(path) return tostring(trinity.tensor.load(path).x) end },
  }
end

--- Counts of what happened: cases, refused, same, other (legal, but not what was written).
local function judge(format, path, whole, text, counts)
  core.write_file(path, text)
  local ok, got = pcall(format.read, path)
  counts.cases = counts.cases + 1
  if ok then
    local key = got == whole and 'same' or 'other'
    counts[key] = counts[key] + 1
    if format.summed then return 'accepted' end
    return nil
  end
  counts.refused = counts.refused + 1
  local message = tostring(got)
  if not message:find(path, 1, true) then return 'not named: ' .. message end
  if message:find('\n', 1, true) then return 'more than one line: ' .. message end
end

--- Flips one bit of every `flip_step`-th byte and cuts at every `cut_step`-th length. Returns counts and a list of what
--- is wrong: accepted where a checksum could tell, or refused without the file's name.
function damage.try(format, path, flip_step, cut_step)
  format.write(path)
  local text, whole = core.read_file(path), format.read(path)
  local counts, wrong = { bytes = #text, cases = 0, refused = 0, same = 0, other = 0 }, {}
  local function case(what, changed)
    local problem = judge(format, path, whole, changed, counts)
    if problem then wrong[#wrong + 1] = ('%s, %s: %s'):format(format.name, what, problem) end
  end
  for at = 1, #text, flip_step do
    local byte = bit.bxor(text:byte(at), bit.lshift(1, at % 8))
    case(('a bit of byte %d'):format(at), text:sub(1, at - 1) .. string.char(byte) .. text:sub(at + 1))
  end
  for length = 0, #text - 1, cut_step do case(('cut at %d'):format(length), text:sub(1, length)) end
  core.write_file(path, text)
  return counts, wrong
end

return damage
