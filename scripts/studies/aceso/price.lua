-- The cost of a plan by Aceso's rules (SuperScaler, branch Aceso, search/aceso_cost_model.py): the time of a stage per
-- micro-batch, the time of an iteration, and the memory of a stage. These rules charge nothing for data-parallel
-- all-reduces nor for the optimiser, so costs are comparable only with costs by the same rules.

local profiles = require 'studies.aceso.profiles'
local util = require 'trinity.base.util'

local price = {}

price.limit_mb = 28000
price.sequences = 1024   -- of an iteration
local absent_ms = 100000 -- of a collective that is not profiled

-- A plan as Aceso's runtime reads it and its rules evaluate it: rows of its tables, not operators of a graph. It is no
-- trinity strategy: degrees differ by operator within a stage, and replicas by stage, which no mesh can express.
-- { micro_batch = sequences of all replicas together, stages = { { gpus, first, last = operators from 1 }, ... }, and
-- by operator: tensor, data, algorithm (0: column then row, 1: the other way), recompute (0, 1) }

-- Where a layer's operators begin and end in the tables: one row comes before the layers, two come after them.
local first_of_layer, behind_layers = 2, 2

--- Rows of the tables by operator of a model of `layers` layers.
function price.rows(rows, layers)
  local list = { 1 }
  for _ = 1, layers do
    for row = first_of_layer, rows - behind_layers do list[#list + 1] = row end
  end
  list[#list + 1], list[#list + 2] = rows - 1, rows
  return list
end

-- Layouts: replicas, and parts of the sequence-like, the batch and the last dimension.
local layouts = {
  whole = function(t, d) return t, 1, d, 1 end,
  last = function(t, d) return 1, 1, d, t end,
  heads = function(t, d) return 1, d, t, 1 end,
  batch = function(t, d) return t, d, 1, 1 end,
}

-- Input and output of an operator by algorithm 0; those that have an algorithm 1 have these exchanged in it.
local input_output = {
  ['encoder-embedding'] = { 'whole', 'whole' },
  ['enc-1st-layernorm'] = { 'whole', 'whole' },
  ['enc-attention-qkv'] = { 'whole', 'last', 'last', 'whole' },
  ['enc-attention-score'] = { 'last', 'heads' },
  ['enc-attention-softmax'] = { 'heads', 'heads' },
  ['enc-attention-dropout'] = { 'heads', 'heads' },
  ['enc-attention-context'] = { 'heads', 'last' },
  ['enc-attention-dense'] = { 'last', 'whole', 'whole', 'last' },
  ['enc-post-attention-dropout'] = { 'whole', 'whole' },
  ['enc-2nd-layernorm'] = { 'whole', 'whole' },
  ['enc-MLP-GEMM-1'] = { 'whole', 'last', 'last', 'whole' },
  ['enc-MLP-gelu'] = { 'last', 'last' },
  ['enc-MLP-GEMM-2'] = { 'last', 'whole', 'whole', 'last' },
  ['enc-post-MLP-dropout'] = { 'whole', 'whole' },
  ['final-layernorm'] = { 'whole', 'batch' },
  ['gpt-post-process'] = { 'batch', 'batch' },
}

--- Whether an operator has a second algorithm.
function price.has_algorithms(name) return name == 'encoder-embedding' or #(input_output[name] or {}) == 4 end

local function layout_of(name, side, algorithm)
  local both = input_output[name]
  if not both then
    util.fail('operator %s: expected one of the operators of GPT that Aceso profiles', util.describe(name))
  end
  return both[algorithm == 1 and both[3] and side + 2 or side]
end

--- us of a collective over `gpus` GPUs; sizes are looked up as in their code, at whole MB or one less.
local function collective_us(self, kind, gpus, size_mb)
  local by_mb = self.collectives[kind][gpus]
  local whole = tonumber(('%.0f'):format(size_mb))
  local ms = by_mb and (by_mb[whole] or by_mb[tonumber(('%.0f'):format(size_mb - 1))]) or absent_ms
  return 1000 * ms
end

--- The time to convert the output of one operator to the layout of the next one's input: us of the forward pass
--- and of the backward pass. writer, reader: names; then each one's tensor and data degrees and algorithm.
function price.relayout_us(self, writer, tensor, data, algorithm, reader, reader_tensor, reader_data, reader_algorithm,
    size_mb)
  local r0, s0, b0, l0 = layouts[layout_of(writer, 2, algorithm)](tensor, data)
  local r1, s1, b1, l1 = layouts[layout_of(reader, 1, reader_algorithm)](reader_tensor, reader_data)
  if r0 == r1 and s0 == s1 and b0 == b1 and l0 == l1 then return 0, 0 end
  if r0 > r1 then return 0, collective_us(self, 'all_gather', r0 / r1, size_mb) end
  local k = s0 > s1 and s0 / s1 or b0 > b1 and b0 / b1 or l0 > l1 and l0 / l1 or 1
  if r1 > r0 then return collective_us(self, 'all_gather', k, size_mb), 0 end
  local both = collective_us(self, 'all_to_all', k, size_mb)
  return both, both
end

--- us that a tensor takes between stages.
function price.send_us(self, where, size_mb)
  if size_mb == 0 then return 0 end
  local list = self.bandwidths[where]
  local i = math.log(size_mb) / math.log(2)
  i = i < 0 and math.ceil(i) or math.floor(i)
  if i >= 1 then i = i - 1 end
  if i < 0 then i = i + #list end
  local gb_per_s = list[math.max(1, math.min(i + 1, #list))]
  return size_mb / (0.001 * gb_per_s)
end

--- The table of an operator of a plan; nil where it is not profiled.
function price.table_of(self, plan, o)
  return self.tables[profiles.key(plan.micro_batch / plan.data[o], plan.tensor[o], plan.algorithm[o])]
end

--- us of a stage for one micro-batch: computation, recomputation, what it receives and sends, changes of layout.
--- `before` counts the GPUs of the stages before.
function price.stage_us(self, plan, rows, stage, before, gpus_per_node)
  local names, total, received, sent = self.operators, 0, 0, 0
  for o = stage.first, stage.last do
    local t, row = price.table_of(self, plan, o), rows[o]
    total = total + t.forward_us[row] * (1 + plan.recompute[o]) + t.backward_us[row]
    if o > stage.first then
      local forward, backward = price.relayout_us(self, names[rows[o - 1]], plan.tensor[o - 1], plan.data[o - 1],
        plan.algorithm[o - 1], names[row], plan.tensor[o], plan.data[o], plan.algorithm[o], t.input_mb[row])
      received, sent = received + forward, sent + backward
    end
  end
  local first = price.table_of(self, plan, stage.first)
  local after = before + stage.gpus
  -- The output's size is the last operator's at the degree of the first, as in their code.
  local last = self.tables[profiles.key(plan.micro_batch / plan.data[stage.last], plan.tensor[stage.first],
    plan.algorithm[stage.last])] or price.table_of(self, plan, stage.last)
  received = received + price.send_us(self, before > 0 and before % gpus_per_node == 0 and 'inter' or 'intra',
    first.input_mb[rows[stage.first]])
  sent = sent + price.send_us(self, after % gpus_per_node == 0 and 'inter' or 'intra', last.output_mb[rows[stage.last]])
  return total + received + sent
end

--- MB that an operator keeps for the backward pass.
function price.kept_mb(name, activations_mb)
  if name == 'enc-attention-softmax' then return 0 end
  return name == 'enc-attention-dropout' and 1.5 * activations_mb or activations_mb
end

--- Whether recomputation ends between an operator and the next of a stage: at the end of a layer.
function price.ends_run(name, next_name)
  return next_name == 'enc-1st-layernorm' and name ~= 'enc-attention-softmax' and name ~= 'enc-attention-dropout'
end

--- MB of a stage; `left` counts the stages from it on.
function price.stage_mb(self, plan, rows, stage, left)
  local names, weights, kept, run, peak = self.operators, 0, 0, 0, 0
  local forward_reserved, backward_reserved = 0, 0
  for o = stage.first, stage.last do
    local t, row = price.table_of(self, plan, o), rows[o]
    local name = names[row]
    local mb = price.kept_mb(name, t.activations_mb[row])
    weights, kept = weights + t.weights_mb[row], kept + mb
    if o < stage.last then
      forward_reserved = math.max(forward_reserved, t.forward_reserved_mb[row])
      backward_reserved = math.max(backward_reserved, t.backward_reserved_mb[row])
      local next_name = names[rows[o + 1]]
      local ends = price.ends_run(name, next_name)
      if plan.recompute[o] == 1 and plan.recompute[o + 1] == 1 then
        if not ends then kept = kept - mb end
        run = run + mb
        if ends or o + 1 == stage.last and name ~= 'enc-attention-softmax' and name ~= 'enc-attention-dropout' then
          peak, run = math.max(peak, run), 0
        end
      else
        peak, run = math.max(peak, run), 0
      end
    end
  end
  local first = price.table_of(self, plan, stage.first)
  return 8 * weights + (first.input_mb[rows[stage.first]] + kept) * left + peak
    + math.max(forward_reserved + backward_reserved, weights)
end

--- The cost of a whole plan: ms of an iteration, us and MB by stage.
function price.of(self, plan, rows, gpus_per_node)
  local stage_us, stage_mb, before, sum, most = {}, {}, 0, 0, 0
  for s, stage in ipairs(plan.stages) do
    stage_us[s] = price.stage_us(self, plan, rows, stage, before, gpus_per_node)
    stage_mb[s] = price.stage_mb(self, plan, rows, stage, #plan.stages - s + 1)
    before = before + stage.gpus
    sum, most = sum + stage_us[s], math.max(most, stage_us[s])
  end
  return { step_time_ms = (sum + (price.sequences / plan.micro_batch - 1) * most) / 1000, stage_us = stage_us,
    stage_mb = stage_mb }
end

return price
