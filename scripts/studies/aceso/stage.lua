-- The fastest choices for a stage of a plan under a memory limit: tensor and data degrees, algorithm and
-- recomputation of each of its operators, on a given number of GPUs. Time is a sum over operators and over neighbours,
-- and so is memory but for two maxima. With a Lagrange multiplier on memory the best choices are therefore a shortest
-- path over the operators (Viterbi); the multiplier is found by bisection. Layers are equal and would all change their
-- choice at one multiplier; so that they change one after the other, it is slightly higher in later layers.

local ffi = require 'ffi'
local price = require 'studies.aceso.price'
local profiles = require 'studies.aceso.profiles'

local stage = {}

local spread = 0.02       -- by which fraction the multiplier on memory rises over the layers
local price_steps = 24    -- of the bisection of the multiplier
local first_price = 1     -- us a MB
local doubles, bytes = ffi.typeof 'double[?]', ffi.typeof 'uint8_t[?]'

-- Choices of stages on `gpus` GPUs with one size of micro-batches: `rows` has them by row of the tables (columns by
-- choice from 0, `count` of them), `edges` the us between choices of neighbouring rows.

--- Choices that one row has: tensor degree, data degree, algorithm, recomputed.
local function choices_of_row(self, row, micro_batch, gpus, most_tensor)
  local name, list = self.operators[row], {}
  local recomputed = row > 1 and row < #self.operators and 1 or 0
  for _, tensor in ipairs(self.degrees) do
    local data = gpus / tensor
    local sequences = micro_batch / data
    if tensor <= most_tensor and data >= 1 then
      for algorithm = 0, price.has_algorithms(name) and 1 or 0 do
        local t = self.tables[profiles.key(sequences, tensor, algorithm)]
        for recompute = 0, t and recomputed or -1 do
          list[#list + 1] = { tensor = tensor, data = data, algorithm = algorithm, recompute = recompute, profile = t }
        end
      end
    end
  end
  return list
end

--- Columns of a row's choices, as arrays from 0.
local function columns(self, row, list)
  local n = #list
  local c = { count = n, list = list, us = doubles(n), weights = doubles(n), kept = doubles(n), again = bytes(n),
    forward_reserved = doubles(n), backward_reserved = doubles(n), input = doubles(n), output = doubles(n) }
  for i, choice in ipairs(list) do
    local t, k = choice.profile, i - 1
    c.us[k] = t.forward_us[row] * (1 + choice.recompute) + t.backward_us[row]
    c.weights[k], c.again[k] = t.weights_mb[row], choice.recompute
    c.kept[k] = price.kept_mb(self.operators[row], t.activations_mb[row])
    c.forward_reserved[k], c.backward_reserved[k] = t.forward_reserved_mb[row], t.backward_reserved_mb[row]
    c.input[k], c.output[k] = t.input_mb[row], t.output_mb[row]
  end
  return c
end

local function edges_between(self, row, before, next_row, after)
  local us = doubles(before.count * after.count)
  for i, x in ipairs(before.list) do
    for j, y in ipairs(after.list) do
      local forward, backward = price.relayout_us(self, self.operators[row], x.tensor, x.data, x.algorithm,
        self.operators[next_row], y.tensor, y.data, y.algorithm, after.input[j - 1])
      us[(i - 1) * after.count + j - 1] = forward + backward
    end
  end
  return us
end

--- The choices of stages on `gpus` GPUs; nil where some operator has none.
--- `micro_batch` counts the sequences of all replicas together.
function stage.choices(self, micro_batch, gpus, gpus_per_node)
  local found = { rows = {}, edges = {} }
  local last = #self.operators
  for row = 1, last do
    local list = choices_of_row(self, row, micro_batch, gpus, math.min(8, gpus_per_node))
    if #list == 0 then return nil end
    found.rows[row] = columns(self, row, list)
  end
  for row = 1, last - 1 do
    found.edges[row] = { [row + 1] = edges_between(self, row, found.rows[row], row + 1, found.rows[row + 1]) }
  end
  found.edges[last - 2][2] = edges_between(self, last - 2, found.rows[last - 2], 2, found.rows[2])
  return found
end

-- Stages: the state that searches of stages share: profiles, rows, buffers for the paths
local Stages = {}
Stages.__index = Stages

--- For plans of a model of `layers` layers.
function stage.new(self, layers, gpus_per_node)
  local rows = price.rows(#self.operators, layers)
  local most, n = 2 * 2 * #self.degrees, #rows
  local made = setmetatable({ profiles = self, rows = rows, gpus_per_node = gpus_per_node, most = most,
    from = bytes((n + 1) * most), chosen = bytes(n + 1), now = doubles(most), next = doubles(most),
    row = ffi.new('uint8_t[?]', n + 1), ends = bytes(n + 1), open = bytes(n + 1), layer = doubles(n + 1),
    made = {} }, Stages)
  for o, row in ipairs(rows) do
    made.row[o] = row
    made.layer[o] = spread * math.floor(math.max(0, o - 2) / (#self.operators - 3)) / layers
    local name = self.operators[row]
    made.open[o] = (name == 'enc-attention-softmax' or name == 'enc-attention-dropout') and 1 or 0
    made.ends[o] = o < n and price.ends_run(self.operators[row], self.operators[rows[o + 1]]) and 1 or 0
  end
  return made
end

--- Choices of stages, made once.
function Stages:choices(micro_batch, gpus)
  local key = micro_batch * 4096 + gpus
  if self.made[key] == nil then
    self.made[key] = stage.choices(self.profiles, micro_batch, gpus, self.gpus_per_node) or false
  end
  return self.made[key]
end

--- One step of a path: from the costs by choice of an operator (now) to the next operator's (next); `from` has where
--- each came from. `left` micro-batches are kept; a pair that is recomputed saves what its first keeps.
local function step(now, next, from, at, a, b, edges, memory_price, left, saved_price)
  for j = 0, b.count - 1 do
    local best, best_i = math.huge, 0
    local saved = b.again[j] == 1 and saved_price or 0
    for i = 0, a.count - 1 do
      local v = now[i] + edges[i * b.count + j] - saved * a.again[i] * a.kept[i]
      if v < best then best, best_i = v, i end
    end
    next[j] = best + b.us[j] + memory_price * (8 * b.weights[j] + left * b.kept[j])
    from[at + j] = best_i
  end
end

--- The shortest path from operator `first` to `last` where a MB costs us_per_mb: chosen[o] is the choice of each.
function Stages:path(choices, first, last, left, us_per_mb, received, sent)
  local rows, now, next = self.row, self.now, self.next
  local a = choices.rows[rows[first]]
  local function priced(o) return us_per_mb * (1 + self.layer[o]) end
  for i = 0, a.count - 1 do
    now[i] = a.us[i] + price.send_us(self.profiles, received, a.input[i])
      + priced(first) * (8 * a.weights[i] + left * (a.kept[i] + a.input[i]))
  end
  for o = first + 1, last do
    local b = choices.rows[rows[o]]
    step(now, next, self.from, o * self.most, a, b, choices.edges[rows[o - 1]][rows[o]], priced(o), left,
      self.ends[o - 1] == 0 and priced(o - 1) * left or 0)
    now, next, a = next, now, b
  end
  local best, k = math.huge, 0
  for i = 0, a.count - 1 do
    local v = now[i] + price.send_us(self.profiles, sent, a.output[i])
    if v < best then best, k = v, i end
  end
  for o = last, first, -1 do
    self.chosen[o] = k
    if o > first then k = self.from[o * self.most + k] end
  end
  return best
end

--- us and MB of the path that was found last (stage_us and stage_mb of `price.lua` give the same for a plan).
function Stages:measure(choices, first, last, left, received, sent)
  local us, weights, kept, run, peak, forward_reserved, backward_reserved = 0, 0, 0, 0, 0, 0, 0
  local a, i
  local input = 0
  for o = first, last do
    local b, j = choices.rows[self.row[o]], self.chosen[o]
    us, weights, kept = us + b.us[j], weights + b.weights[j], kept + b.kept[j]
    if o == first then
      us, input = us + price.send_us(self.profiles, received, b.input[j]), b.input[j]
    else
      us = us + choices.edges[self.row[o - 1]][self.row[o]][i * b.count + j]
      forward_reserved = math.max(forward_reserved, a.forward_reserved[i])
      backward_reserved = math.max(backward_reserved, a.backward_reserved[i])
      if a.again[i] == 1 and b.again[j] == 1 then
        local ends = self.ends[o - 1] == 1
        if not ends then kept = kept - a.kept[i] end
        run = run + a.kept[i]
        if ends or o == last and self.open[o - 1] == 0 then peak, run = math.max(peak, run), 0 end
      else
        peak, run = math.max(peak, run), 0
      end
    end
    a, i = b, j
  end
  us = us + price.send_us(self.profiles, sent, a.output[i])
  return us, 8 * weights + (input + kept) * left + peak + math.max(forward_reserved + backward_reserved, weights)
end

--- Keeps the path found last as choices of a plan.
local function keep(self, choices, plan, first, last)
  for o = first, last do
    local c = choices.rows[self.row[o]].list[self.chosen[o] + 1]
    plan.tensor[o], plan.data[o], plan.algorithm[o], plan.recompute[o] = c.tensor, c.data, c.algorithm, c.recompute
  end
end

--- Where a stage with GPUs before it receives from and sends to.
function Stages:wires(before, gpus)
  local function wire(boundary) return boundary > 0 and boundary % self.gpus_per_node == 0 and 'inter' or 'intra' end
  return wire(before), wire(before + gpus)
end

--- The least us found for operators `first` to `last` within the memory; nil where none is, or none below `most_us`,
--- which a bound then shows. What reaches it stands in `plan` where one is given.
--- `left` counts the stages from this one on.
function Stages:best(choices, first, last, left, before, gpus, most_us, plan)
  local received, sent = self:wires(before, gpus)
  local low, high, best = 0, nil, nil
  local us_per_mb = 0
  for _ = 1, price_steps do
    local value = self:path(choices, first, last, left, us_per_mb, received, sent)
    local us, mb = self:measure(choices, first, last, left, received, sent)
    if mb <= price.limit_mb then
      if not best or us < best then
        best = us
        if plan then keep(self, choices, plan, first, last) end
      end
      high = us_per_mb
      if us_per_mb == 0 or not plan and best <= most_us then break end
    else
      -- memory beyond the limit is charged: a bound, except for the spread of the multiplier
      if value - us_per_mb * price.limit_mb * (1 + spread) > most_us then return nil end
      low = us_per_mb
    end
    if high and high - low < 1e-4 * high then break end
    us_per_mb = high and (low + high) / 2 or math.max(first_price, low * 4)
    if us_per_mb > 1e9 then break end
  end
  return best and best <= most_us and best or nil
end

return stage
