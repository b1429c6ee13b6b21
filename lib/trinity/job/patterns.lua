-- Patterns of layers in Megatron-LM's arguments: lists of layers ("([0]*3+[1]*5)"), hybrid patterns ("M-M*|M-"),
-- layouts of stages ("Et*3|(tt|)*6L").

local layout = require 'trinity.strategy.layout'
local util = require 'trinity.base.util'

local patterns = {}

local max_layers = 2 ^ 14

-- Lists of layers, as Python's: list + list, list * number.
local List = {}

function List.__add(a, b) return setmetatable(util.joined(a, b), List) end

function List.__mul(a, b)
  if type(a) == 'number' then a, b = b, a end
  if #a * b > max_layers then error 'too many layers' end
  local all = setmetatable({}, List)
  for _ = 1, b do all = all + a end
  return all
end

--- Parses a frequency (a number) or a list of layers; returns the text if it is neither.
function patterns.layers(text)
  local sum = not text:find '[^%d%s,+*()%[%]]' and #text < 1000 and text:gsub('%[', ' list{'):gsub('%]', '}')
  local chunk = sum and loadstring('return ' .. sum)
  if not chunk then return text end
  local ok, value = pcall(setfenv(chunk, { list = function(entries) return setmetatable(entries, List) end }))
  if not ok or type(value) ~= 'number' and type(value) ~= 'table' then return text end
  return type(value) == 'table' and { unpack(value) } or value
end

--- Returns of --moe-layer-freq (a number, or a list with 1 for experts) the count of first layers without experts, one
--- of how many further layers has them (nil: another pattern), and the count of layers without experts.
function patterns.experts(freq, layers)
  if type(freq) ~= 'table' then return 0, freq, layers - math.ceil(layers / freq) end
  local leading, dense = 0, 0
  for i, kind in ipairs(freq) do
    if kind ~= 1 then leading, dense = leading == i - 1 and i or leading, dense + 1 end
  end
  return leading, leading == dense and 1 or nil, dense
end

--- Returns layers, segments and multi-token-prediction parts of a hybrid pattern, and the rules that it breaks.
function patterns.hybrid(text)
  local parts = util.words(text .. '/', '([^/]*)/')
  local main, fault = parts[1], nil
  local _, pipes = main:gsub('|', '')
  if main:find '[^MG*D+%-E|]' then fault = 'symbol' end
  if main:find('*', 1, true) and main:find '[D+]' then fault = 'attention' end
  for p = 2, #parts do
    if parts[p] ~= parts[2] then fault = 'further' end
    if parts[p]:find '[^MG*D+%-E]' then fault = 'symbol' end
  end
  return { layers = #main - pipes, segments = pipes + 1, further = #parts - 1, fault = fault, main = main,
    latent = text:find '[D+]' ~= nil }
end

--- Returns what Megatron-LM refuses in the stages of a layout, by kind.
function patterns.layout_faults(stages, pipeline, layers, further)
  local order = util.map(stages, function(stage) return stage.order end)
  local all = table.concat(order)
  local _, embeddings = all:gsub('E', '')
  local _, losses = all:gsub('L', '')
  local _, decoders = all:gsub('t', '')
  local ahead = select(2, all:gsub('m', ''))
  local faults = { stages = #stages, list = stages, embedding = all:sub(1, 1) ~= 'E' or embeddings ~= 1,
    loss = all:sub(-1) ~= 'L' or losses ~= 1, layers = layers ~= nil and decoders ~= layers }
  if #stages % pipeline == 0 then
    local why = layout.refusal(stages, pipeline, decoders, further or 0, true)
    faults.further = ahead ~= (further or 0) or why ~= nil and why:find ' m' ~= nil and not faults.embedding
      and not faults.loss
  end
  return faults
end

--- Returns the number of decoder layers per virtual stage, in the order of layers, or nil if they are not divisible.
function patterns.stages(v)
  local count, virtual = v.pipeline_model_parallel_size, v.virtual or 1
  if not v.num_layers or not v.counted or count < 1 then return nil end
  if v.layout then return v.layout.list and util.map(v.layout.list, function(stage) return stage.layers end) end
  if v.hybrid and v.hybrid.segments > 1 then
    return util.map(util.words(v.hybrid.main .. '|', '([^|]*)|'), string.len)
  end
  local parts, first, last = count * virtual, v.decoder_first_pipeline_num_layers, v.decoder_last_pipeline_num_layers
  local list = {}
  for part = 1, parts do
    local rank, each = (part - 1) % count + 1
    if first or last then
      each = (rank == 1 and first or rank == count and last or v.middle / v.middle_stages) / virtual
    else
      each = v.counted / parts - (part == 1 and v.account_for_embedding_in_pipeline_split and 1 or 0)
        - (part == parts and v.account_for_loss_in_pipeline_split and 1 or 0)
    end
    if each % 1 ~= 0 or each < 0 then return nil end
    list[part] = each
  end
  return list
end

return patterns
