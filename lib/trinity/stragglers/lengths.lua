-- Sequences of unequal length (options `lengths`, `fill`, `deal` and `context` of trinity.stragglers): the work of
-- every micro-batch of every replica, relative to sequences with the network's length.

local balance = require 'trinity.stragglers.balance'
local csv = require 'trinity.base.csv'
local util = require 'trinity.base.util'

--- Returns the tokens per sequence of the network: the second axis of its first input.
local function sequence_of(owner, graph)
  for i = 1, graph.operators do
    local op = graph:operator(i)
    local shape = op.type == 'Input' and op.outputs[1].shape or {}
    if #shape == 2 and shape[1] == graph.batch_size then return shape[2] end
  end
  util.fail("%s: option 'lengths': expected a network of sequences, got graph '%s'", owner, graph.name)
end

--- Returns a function that samples a length: from a histogram (columns length, count), or the script's function.
local function drawer(lengths)
  if type(lengths) == 'function' then return lengths end
  local rows, total = {}, 0
  for _, row in ipairs(csv.read(lengths, 'length', 'count')) do
    total = total + csv.whole(lengths, row, 'count', nil, 0)
    rows[#rows + 1] = { csv.whole(lengths, row, 'length'), total }
  end
  if total == 0 then util.fail('%s: expected a count above 0, got none', util.shortened(lengths)) end
  return function(stream)
    local at = stream:uniform() * total
    for _, row in ipairs(rows) do if at < row[2] then return row[1] end end
    return rows[#rows][1]
  end
end

--- Returns a function of a random stream that assigns sequences: by replica (from 0) and micro-batch { linear, square,
--- degree, switch_s }, the factors of work linear in tokens and of attention, which is quadratic, the context-parallel
--- degree, and the seconds in which its tokens change devices. work: of one micro-batch on one device { linear_s,
--- square_s, context_s = by degree, switch_s }, seconds of sequences with the network's length; context_s: of messages
--- of the context group; switch_s: function of the tokens of a micro-batch.
return function(owner, strategy, options, work)
  local graph, replicas, count = strategy.problem.graph, strategy.mesh.data or 1, strategy.micro_batches or 1
  local samples, most, draw = graph.batch_size, sequence_of(owner, graph), drawer(options.lengths)
  local whole, is_packed = strategy.mesh.context or 1, options.fill == 'packed'
  local function length(stream)
    local drawn = draw(stream)
    if type(drawn) ~= 'number' or not (drawn >= 1 and drawn <= most and drawn % 1 == 0) then
      util.fail("%s: option 'lengths': expected integer lengths from 1 to %d (the sequence length), got %s", owner,
        most, util.describe(drawn))
    end
    return drawn
  end
  local function seconds(bin)
    return work.linear_s * bin.linear + work.square_s * bin.square + work.context_s[bin.degree] * bin.linear
      + bin.switch_s
  end
  --- Returns the work of the fullest of `parts` equal parts of the context group that share these sequences: padded to
  --- the longest of a part, or packed, where each sequence attends to itself only; nil if a part has too many tokens.
  local function shared(lengths, parts)
    local space, items = samples * most / parts, {}
    for k, tokens in ipairs(lengths) do
      items[k] = { size = tokens, work = work.linear_s * tokens / most + work.square_s * (tokens / most) ^ 2 }
    end
    local fullest, degree = nil, whole / parts
    for _, part in ipairs(parts == 1 and { items } or balance(items, parts, space) or {}) do
      local longest, squares = 0, 0
      for _, item in ipairs(part) do longest, squares = math.max(longest, item.size), squares + item.size ^ 2 end
      local bin = { linear = is_packed and 1 or #part * longest / space, degree = degree,
        square = (is_packed and squares or #part * longest ^ 2) / (space * most),
        switch_s = parts > 1 and work.switch_s(samples * most) or 0 }
      if bin.linear > 1 then return nil end
      if not fullest or seconds(bin) > seconds(fullest) then fullest = bin end
    end
    return fullest
  end
  local function filled(lengths)
    local best = shared(lengths, 1)
    for degree in util.sorted_pairs(options.context == 'per_micro_batch' and work.context_s or {}) do
      local bin = degree < whole and shared(lengths, whole / degree)
      if bin and seconds(bin) < seconds(best) then best = bin end
    end
    return best
  end
  local function padded(stream)
    local all = util.listed(replicas * count * samples, function() return length(stream) end)
    if options.deal == 'sorted' then table.sort(all, function(a, b) return a > b end) end
    return util.listed(replicas * count, function(bin)
      return filled { unpack(all, (bin - 1) * samples + 1, bin * samples) }
    end)
  end
  local function packed(stream)
    local waiting
    return util.listed(replicas * count, function()
      local lengths = {}
      for _ = 1, samples do
        local space = most
        while true do
          waiting = waiting or length(stream)
          if waiting > space then break end
          space, lengths[#lengths + 1], waiting = space - waiting, waiting, nil
        end
      end
      return filled(lengths)
    end)
  end
  return function(stream)
    local bins, dealt = (is_packed and packed or padded)(stream), {}
    if options.deal == 'balanced' then
      for _, bin in ipairs(bins) do bin.work, bin.size = seconds(bin), 1 end
      for r, list in ipairs(balance(bins, replicas, count)) do dealt[r - 1] = list end
      return dealt
    end
    for k, bin in ipairs(bins) do
      local r = (k - 1) % replicas
      dealt[r] = dealt[r] or {}
      table.insert(dealt[r], bin)
    end
    return dealt
  end
end
