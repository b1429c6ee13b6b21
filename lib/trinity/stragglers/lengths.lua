-- Sequences of unequal length (options `lengths`, `fill` and `deal` of trinity.stragglers): the work of every
-- micro-batch of every replica, relative to sequences with the network's length.

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

--- Returns a function of a random stream that assigns sequences: by replica (from 0) and micro-batch { linear, square
--- }, the factors of work linear in tokens and of attention, which is quadratic. attention: its fraction of the work.
return function(owner, strategy, options, attention)
  local graph, replicas, count = strategy.problem.graph, strategy.mesh.data or 1, strategy.micro_batches or 1
  local samples, most, draw = graph.batch_size, sequence_of(owner, graph), drawer(options.lengths)
  local function length(stream)
    local drawn = draw(stream)
    if type(drawn) ~= 'number' or not (drawn >= 1 and drawn <= most and drawn % 1 == 0) then
      util.fail("%s: option 'lengths': expected integer lengths from 1 to %d (the sequence length), got %s", owner,
        most,
        util.describe(drawn))
    end
    return drawn
  end
  --- Pads every sequence to the longest one of its micro-batch.
  local function padded(stream)
    local all = util.listed(replicas * count * samples, function() return length(stream) end)
    if options.deal == 'sorted' then table.sort(all, function(a, b) return a > b end) end
    return util.listed(replicas * count, function(bin)
      local share = math.max(unpack(all, (bin - 1) * samples + 1, bin * samples)) / most
      return { linear = share, square = share ^ 2 }
    end)
  end
  --- Packs sequences into full micro-batches; each sequence attends to itself only.
  local function packed(stream)
    local waiting
    return util.listed(replicas * count, function()
      local squares = 0
      for _ = 1, samples do
        local room = most
        while true do
          waiting = waiting or length(stream)
          if waiting > room then break end
          room, squares, waiting = room - waiting, squares + waiting ^ 2, nil
        end
      end
      return { linear = 1, square = squares / samples / most ^ 2 }
    end)
  end
  local function work(bin) return (1 - attention) * bin.linear + attention * bin.square end
  --- Assigns sequences, longest first, to the replica with the least work and enough space.
  local function balanced(bins)
    local dealt, sums = {}, {}
    for r = 0, replicas - 1 do dealt[r], sums[r] = {}, 0 end
    for k, bin in ipairs(bins) do bin.number = k end
    table.sort(bins, function(a, b)
      if work(a) ~= work(b) then return work(a) > work(b) end
      return a.number < b.number
    end)
    for _, bin in ipairs(bins) do
      local to
      for r = 0, replicas - 1 do if #dealt[r] < count and (not to or sums[r] < sums[to]) then to = r end end
      table.insert(dealt[to], bin)
      sums[to] = sums[to] + work(bin)
    end
    return dealt
  end
  return function(stream)
    local bins, dealt = (options.fill == 'packed' and packed or padded)(stream), {}
    if options.deal == 'balanced' then return balanced(bins) end
    for k, bin in ipairs(bins) do
      local r = (k - 1) % replicas
      dealt[r] = dealt[r] or {}
      table.insert(dealt[r], bin)
    end
    return dealt
  end
end
