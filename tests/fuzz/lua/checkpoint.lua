-- Checkpoints of searches, policies, tensors, networks and optimisers. An input begins with a line that says which;
-- its check sums are put right, so that changes reach the code after them.

local core = require 'trinity.core'
local trinity = require 'trinity'
local bit = require 'bit'
local merged = require('trinity.base.util').merged
local kept = dofile(core.home .. '/tests/lua/support/kept.lua')
local frame = require 'frame'
local small = require 'small'
local tensorboard = require 'trinity.runs.tensorboard'

local problem = small.problem(4)
local common = { evaluations = 40, samples = 4, hidden = 4, groups = 4, quiet = true, patience = 100 }

local function search(own) return trinity.methods.trinity(problem, merged(common, own)) end

local function resumed(path, own) return kept.search(path, function() return search(own) end, true) end

local refining = { policy = false, warm_start = { 'contiguous' } }
local learning = { policy = 0.75, refine = 0.25, warm_start = { 'contiguous' } }

local content = core.read_file

-- The sums that trinity's own files close with, right again.

--- FNV-1a over the text and its length, as engine/base/hash.h has it.
local function hash_of(text)
  local state, prime = 0xcbf29ce484222325ULL, 0x100000001b3ULL
  for i = 1, #text do state = bit.bxor(state, text:byte(i)) * prime end
  local length = #text
  for _ = 1, 8 do
    state = bit.bxor(state, length % 256) * prime
    length = math.floor(length / 256)
  end
  return bit.tohex(state, 16)
end

-- Where files of arrays have it (engine/formats/export/safetensors.h).
local before_hash = '{"__metadata__":{"fnv1a":"'

local function with_hash(text)
  local at = 8 + #before_hash
  if text:sub(9, at) ~= before_hash then return text end
  local function replaced(digits) return text:sub(1, at) .. digits .. text:sub(at + 17) end
  return replaced(hash_of(replaced(('0'):rep(16))))
end

local function with_sum(text)
  local first, last = text:find '"sum": *"[%x-]*"'
  if not first then return text end
  local sum = tensorboard.crc32c(text:sub(1, first - 1) .. '"sum": "--------"' .. text:sub(last + 1))
  return ('%s"sum": "%08x"%s'):format(text:sub(1, first - 1), sum, text:sub(last + 1))
end

-- The reader of each kind of input.
local tensor = trinity.tensor

local function network()
  return trinity.nn.sequential { trinity.nn.linear { inputs = 2, outputs = 3 },
    trinity.nn.linear { inputs = 3, outputs = 1 }, seed = 1 }
end

local net = network()
local optimiser = trinity.nn.adam { parameters = net:parameters(), learning_rate = 0.01 }
local input = tensor.new { { 1, 2 } }

local side = frame.folder .. '/learning.json.policy'
local beside, refined = {}, ''

local readers = {
  refine = function(path) return resumed(path, refining) end,
  -- The file that a checkpoint has them in, with the sum that the checkpoint then says.
  scores = function(path)
    local scores = content(path)
    local text = refined:gsub('("at_scores_sum": *)"[^"]*"', ('%%1"crc32c %08x"'):format(tensorboard.crc32c(scores)))
      :gsub('("at_scores_bytes": *)"?%d+"?', ('%%1"%d"'):format(#scores))
      :gsub('("at_scores": *)"[^"]*"', '%1"scores.json.scores"')
    frame.file('scores.json.scores', scores)
    return resumed(frame.file('refine.json', with_sum(text)), refining)
  end,
  policy = function(path)
    for slot, text in trinity.system.sorted_pairs(beside) do frame.file('policy.json.policy' .. slot, text) end
    return resumed(path, learning)
  end,
  weights = function(path) return search(merged(learning, { load = path, evaluations = 8 })) end,
  tensors = function(path)
    for _, x in trinity.system.sorted_pairs(tensor.load(path)) do
      tostring(x)
      x:close()
    end
  end,
  network = function(path) return net:load(path):forward(input) end,
  optimiser = function(path)
    optimiser:load(path)
    optimiser:step()
  end,
}

local function seeds()
  local refine, policy = frame.folder .. '/refining.json', frame.folder .. '/learning.json'
  local weights, tensors = frame.folder .. '/weights', frame.folder .. '/tensors'
  kept.search(refine, function() return search(refining) end)
  kept.search(policy, function() return search(merged(learning, { evaluations = 40 })) end)
  search(merged(learning, { save = weights, evaluations = 8 }))
  local refining_text = content(refine)
  local list = { 'refine\n' .. refining_text, 'weights\n' .. content(weights),
    'scores\n' .. content(refine .. '.scores'), 'scores\n' .. content(refine .. '.scores'):sub(1, 40) }
  refined = refining_text
  local learned = content(policy)
  for _, slot in ipairs { '0', '1' } do
    local ok, text = pcall(content, side .. slot)
    if ok then beside[slot] = text end
  end
  list[#list + 1] = 'policy\n' .. learned
  tensor.save(tensors, { a = tensor.new { 1, 2, 3 }, b = tensor.new { { 1, 2 }, { 3, 4 } } })
  list[#list + 1] = 'tensors\n' .. content(tensors)
  net:save(tensors)
  list[#list + 1] = 'network\n' .. content(tensors)
  optimiser:step()
  optimiser:save(tensors)
  list[#list + 1] = 'optimiser\n' .. content(tensors)
  return list
end

return {
  seeds = seeds(),
  run = function(text)
    local kind, rest = text:match '^(%l+)\n(.*)$'
    local reader = kind and readers[kind]
    if not reader then return end
    rest = with_sum(with_hash(rest))
    frame.try(reader, frame.file(kind .. '.json', rest))
  end,
}
