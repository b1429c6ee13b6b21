-- Megatron-LM's --pipeline-model-parallel-layout: grammar, rules, conversion between stages and text
-- (megatron/core/transformer/pipeline_parallel_layer_layout.py at commit d98e8a64). A layout is units of stages: 'E'
-- the embedding, 't' a layer, 'm' a multi-token-prediction (MTP) layer, 'L' head and loss. '|' separates stages, commas
-- are ignored, 'x*3' is 'xxx' and '(x|)*2' is 'x|x|'; brackets do not nest.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

-- A stage of a layout:
--   embedding      boolean
--   layers         integer
--   ahead          integer: multi-token-prediction layers
--   head           boolean

local layout = {}

local function run(unit, count)
  if count > 3 then return ('%s*%d'):format(unit, count) end
  return unit:rep(count)
end

local function text_of(stage)
  return (stage.embedding and 'E' or '') .. run('t', stage.layers) .. run('m', stage.ahead or 0)
    .. (stage.head and 'L' or '')
end

--- Returns the layout text of stages. Consecutive equal inner stages are written once: (tt|)*3.
function layout.text(stages)
  local parts, i = {}, 1
  while i <= #stages do
    local text, count = text_of(stages[i]), 1
    while i + count < #stages and text_of(stages[i + count]) == text do count = count + 1 end
    -- The outer repetition is expanded first, so '*' may be used inside brackets.
    if count > 2 and text ~= '' then
      parts[#parts + 1] = ('(%s|)*%d'):format(text, count)
    else
      for _ = 1, count do parts[#parts + 1] = text .. '|' end
    end
    i = i + count
  end
  return (table.concat(parts):gsub('|$', ''))
end

local most = 2 ^ 16 -- maximum units of a layout, since '*' can expand a short text without limit

local function repeated(owner, unit, count)
  local number = tonumber(count)
  if number * #unit > most then util.fail("%s: '%s*%s': expected at most %d units", owner, unit, count, most) end
  return unit:rep(number)
end

-- Expands repetitions: brackets first, then single units, as Megatron-LM's parser does.
local function expanded(owner, text)
  local flat = text:gsub(',', '')
  for _, pattern in ipairs { '%(([^)]+)%)%*(%d+)', '(.)%*(%d+)' } do
    flat = flat:gsub(pattern, function(unit, count) return repeated(owner, unit, count) end)
    if #flat > most then util.fail('%s: expected at most %d units in the layout', owner, most) end
  end
  return flat
end

local meaning = { E = 'embedding', t = 'layers', m = 'ahead', L = 'head' }

local function read_stage(owner, units, number)
  local stage = { embedding = 0, layers = 0, ahead = 0, head = 0, order = units }
  for at = 1, #units do
    local unit = units:sub(at, at)
    local what = meaning[unit]
    if not what then
      util.fail("%s: stage %d ('%s'): expected E, t, m or L, got %s", owner, number, util.shortened(units, 40),
        util.quoted(unit))
    end
    stage[what] = stage[what] + 1
  end
  return stage
end

--- Parses a layout. `owner` begins error messages (a file, an option).
function layout.read(text, owner)
  owner = owner or 'layout'
  local stages = util.words(expanded(owner, text) .. '|', '([^|]*)|')
  return util.map(stages, function(units, s) return read_stage(owner, units, s) end)
end

local function count_of(stages, what)
  local sum = util.sum(stages, function(stage) return stage[what] end)
  return sum
end

-- Returns why the positions of multi-token-prediction layers are refused, or nil.
local function refusal_of_ahead(stages, pipeline, ahead)
  local at
  for s, stage in ipairs(stages) do
    if at and stage.layers > 0 then return ('stage %d has layers after the first m'):format(s) end
    if stage.ahead > 0 then
      if at then return ('m is in stages %d and %d, expected one'):format(at, s) end
      if stage.order:find 'm.*t' then return ('stage %d has layers after the first m'):format(s) end
      at = s
    end
  end
  if at and at <= #stages - pipeline then
    return ('m is in stage %d, expected the last of its rank (stage %d or later)'):format(at, #stages - pipeline + 1)
  end
  if count_of(stages, 'ahead') ~= ahead then
    return ('%d m, expected mtp-num-layers = %d'):format(count_of(stages, 'ahead'), ahead)
  end
end

--- Returns why Megatron-LM refuses stages (of layout.read) on `pipeline` ranks, or nil if it accepts them. `empty`
--- allows stages without units, which Megatron-LM accepts but users saw hang.
function layout.refusal(stages, pipeline, layers, ahead, empty)
  if #stages % pipeline ~= 0 then
    return ('%d stages, expected a multiple of pipeline-model-parallel-size = %d'):format(#stages, pipeline)
  end
  local units = {}
  for s, stage in ipairs(stages) do
    units[s] = stage.order
    if not empty and stage.order == '' then return ('stage %d is empty'):format(s) end
  end
  local all = table.concat(units)
  if all:sub(1, 1) ~= 'E' then return 'the first unit is not E (the embedding)' end
  if all:sub(-1) ~= 'L' then return 'the last unit is not L (head and loss)' end
  for unit, what in util.sorted_pairs { E = 'embedding', L = 'head' } do
    if count_of(stages, what) ~= 1 then return ('%d times %s, expected one'):format(count_of(stages, what), unit) end
  end
  if count_of(stages, 'layers') ~= layers then
    return ('%d t, expected num-layers = %d'):format(count_of(stages, 'layers'), layers)
  end
  return refusal_of_ahead(stages, pipeline, ahead or 0)
end

--- Returns the number of multi-token-prediction layers of a graph. They follow the other layers, named 'further_1/...'.
function layout.ahead(graph)
  local count = 0
  for i = 1, graph.operators do
    count = math.max(count, tonumber(graph:operator(i).name:match '^further_(%d+)/') or 0)
  end
  return count
end

--- Returns the number of layers of every virtual stage of a layout, for a pipeline with `pipeline` ranks. Raises an
--- error if Megatron-LM refuses the layout, or if multi-token-prediction layers are not in the stage of the head.
--- graph: nil accepts any number of layers.
function layout.stages(text, pipeline, graph, owner)
  local stages = layout.read(text, owner)
  local layers, ahead = count_of(stages, 'layers'), count_of(stages, 'ahead')
  if graph then layers, ahead = core.repeated_layers(graph.handle), layout.ahead(graph) end
  local why = layout.refusal(stages, pipeline, layers, ahead)
  if why then util.fail('%s: %s', owner, why) end
  if ahead > stages[#stages].ahead then
    util.fail('%s: expected m in the last stage, next to L, got it in an earlier stage',
      owner)
  end
  return util.map(stages, function(stage) return stage.layers end)
end

return layout
