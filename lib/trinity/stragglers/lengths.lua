-- Sequences of unequal length (options `lengths`, `fill`, `deal` and `context` of trinity.stragglers): the work of
-- every micro-batch of every replica, relative to sequences with the network's length.

local balance = require 'trinity.stragglers.balance'
local check = require 'trinity.base.check'
local contexts = require 'trinity.stragglers.contexts'
local csv = require 'trinity.base.csv'
local random = require 'trinity.base.random'
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

--- Returns a function that samples a length from 1 to `most`: from a histogram (columns length, count), or the
--- script's function.
local function drawer(owner, lengths, most)
  local draw, rows, total = lengths, {}, 0
  if type(lengths) ~= 'function' then
    if type(lengths) ~= 'string' then check.wrong(owner, 'option', 'lengths', lengths, 'a CSV file or a function') end
    for _, row in ipairs(csv.read(check.path(owner, 'option', 'lengths', lengths), 'length', 'count')) do
      total = total + csv.whole(lengths, row, 'count', nil, 0)
      rows[#rows + 1] = { csv.whole(lengths, row, 'length'), total }
      if rows[#rows][1] > most then
        csv.refuse(lengths, row, "column 'length': expected at most %d (the sequence length), got %s", most, row.length)
      end
    end
    if total == 0 then util.fail('%s: expected a count above 0, got none', util.shortened(lengths)) end
    draw = function(stream)
      local at = stream:uniform() * total
      for _, row in ipairs(rows) do if at < row[2] or row == rows[#rows] then return row[1] end end
    end
  end
  return function(stream)
    local drawn = draw(stream)
    if type(drawn) ~= 'number' or not (drawn >= 1 and drawn <= most and drawn % 1 == 0) then
      util.fail("%s: option 'lengths': expected integer lengths from 1 to %d (the sequence length), got %s", owner,
        most, util.describe(drawn))
    end
    return drawn
  end
end

--- Returns for every node how its time depends on lengths ('linear', 'square', 'context' or nil), and the seconds of
--- one micro-batch on one device with the network's lengths: linear_s (in tokens), square_s (attention, quadratic) and
--- context_s (messages of the context group, by degree).
local function work_of(step, strategy, degrees, factor)
  local kind_of, at, work = {}, step.low.coordinates, { linear_s = 0, square_s = 0, context_s = {} }
  local passes = #util.sorted_keys(at.data) * (strategy.micro_batches or 1)
  for _, degree in ipairs(degrees) do work.context_s[degree] = 0 end
  for i, node in ipairs(step.nodes) do
    local devices, type_name, inside, kind = node.devices or { node.device }, node.op and node.op.type or '', true, nil
    local first, last = devices[1], devices[#devices]
    for _, device in ipairs(devices) do inside = inside and at.data[device] == at.data[first] end
    if node.kind == 'forward' or node.kind == 'backward' then
      kind = type_name:find '^Attention' and 'square' or 'linear'
    elseif not (node.op and contexts.is_of_weights(node.op)) and (inside or type_name:find '^AllToAll') then
      local is_shared = inside and at.context[first] ~= at.context[last] and at.pipeline[first] == at.pipeline[last]
      kind = is_shared and 'context' or 'linear' -- of a sequence
    end
    kind_of[i] = kind
    local time_s = step.time_s[i] * #devices / passes
    if kind == 'context' then
      for _, degree in ipairs(degrees) do
        work.context_s[degree] = work.context_s[degree] + time_s * factor(node, degree)
      end
    elseif kind and not node.devices then work[kind .. '_s'] = work[kind .. '_s'] + time_s end
  end
  return kind_of, work
end

--- Returns a function of a random stream that assigns sequences: by replica and micro-batch { linear, square, degree,
--- switch_s }, the factors of work linear in tokens and of attention, the context-parallel degree, and the seconds in
--- which the tokens change devices.
local function dealer(owner, strategy, options, work, switch_s)
  local graph, replicas, count = strategy.problem.graph, strategy.mesh.data or 1, strategy.micro_batches or 1
  local samples, most = graph.batch_size, sequence_of(owner, graph)
  local whole, is_packed = strategy.mesh.context or 1, options.fill == 'packed'
  local length = drawer(owner, options.lengths, most)
  local function seconds(bin)
    return work.linear_s * bin.linear + work.square_s * bin.square + work.context_s[bin.degree] * bin.linear
      + bin.switch_s
  end
  --- Returns the work of the fullest of equal parts of the context group that share these sequences, `degree` devices
  --- each: padded to the longest, or packed, where a sequence attends to itself alone; nil if one has too many tokens.
  local function shared(lengths, degree)
    local parts = whole / degree
    local space, fullest = samples * most / parts, nil
    local items = util.map(lengths, function(tokens)
      return { size = tokens, work = work.linear_s * tokens / most + work.square_s * (tokens / most) ^ 2 }
    end)
    for _, part in ipairs(parts == 1 and { items } or balance(items, parts, space) or {}) do
      local longest, squares = 0, 0
      for _, item in ipairs(part) do longest, squares = math.max(longest, item.size), squares + item.size ^ 2 end
      local bin = { linear = is_packed and 1 or #part * longest / space, degree = degree,
        square = (is_packed and squares or #part * longest ^ 2) / (space * most),
        switch_s = parts > 1 and switch_s(samples * most) or 0 }
      if bin.linear > 1 then return nil end
      if not fullest or seconds(bin) > seconds(fullest) then fullest = bin end
    end
    return fullest
  end
  local function filled(lengths)
    local best = shared(lengths, whole)
    for degree in util.sorted_pairs(work.context_s) do
      local bin = degree < whole and shared(lengths, degree)
      if bin and seconds(bin) < seconds(best) then best = bin end
    end
    return best
  end
  --- Returns the lengths of the sequences of every micro-batch.
  local function sampled(stream)
    if not is_packed then
      local all = util.listed(replicas * count * samples, function() return length(stream) end)
      if options.deal == 'sorted' then table.sort(all, function(a, b) return a > b end) end
      return util.listed(replicas * count, function(bin)
        return { unpack(all, (bin - 1) * samples + 1, bin * samples) }
      end)
    end
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
      return lengths
    end)
  end
  return function(stream)
    local bins = util.map(sampled(stream), filled)
    if options.deal == 'balanced' then
      for _, bin in ipairs(bins) do bin.work, bin.size = seconds(bin), 1 end
      return balance(bins, replicas, count)
    end
    return util.listed(replicas, function(replica)
      return util.listed(count, function(micro_batch) return bins[(micro_batch - 1) * replicas + replica] end)
    end)
  end
end

--- Returns a function: sample -> (node -> factor of its time by the lengths of its micro-batch, seconds to add), and
--- the number of micro-batches by degree, over samples.
return function(owner, step, strategy, options)
  local used = {}
  if options.lengths == nil then
    for name, plain in util.sorted_pairs { context = 'fixed', deal = 'drawn', fill = 'padded' } do
      if options[name] ~= plain then check.refuse(owner, 'option', name, "expected option 'lengths' with it") end
    end
    return function() return function() return 1, 0 end end, used
  end
  if not strategy.mesh then util.fail("%s: option 'lengths': expected a strategy with a mesh", owner) end
  if options.fill == 'packed' and options.deal == 'sorted' then
    util.fail("%s: option 'deal': expected 'drawn' or 'balanced' with fill = 'packed', got 'sorted'", owner)
  end
  local whole, at = strategy.mesh.context or 1, step.low.coordinates
  local degrees = options.context == 'fixed' and { whole } or contexts.degrees(whole)
  local factor, switch_s, waiting = contexts.factors(strategy), nil, {}
  local kind_of, work = work_of(step, strategy, degrees, factor)
  if #degrees > 1 then switch_s, waiting = contexts.switching(step, strategy) end
  local deal = dealer(owner, strategy, options, work, switch_s)
  return function(draw)
    local dealt = deal(random(options.seed, 'lengths', draw))
    for _, bins in ipairs(dealt) do
      for _, bin in ipairs(bins) do used[bin.degree] = (used[bin.degree] or 0) + 1 end
    end
    return function(i)
      local node, kind, most = step.nodes[i], kind_of[i], 0
      if not kind then return 1, 0 end
      for _, device in ipairs(node.devices or { node.device }) do
        local bin = dealt[at.data[device] + 1][node.micro_batch]
        most = math.max(most, kind == 'context' and bin.linear * factor(node, bin.degree) or bin[kind])
      end
      return most, waiting[i] and dealt[at.data[node.device] + 1][node.micro_batch].switch_s or 0
    end
  end, used
end
