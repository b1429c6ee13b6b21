-- The end of a search: from the best plans, moves to their neighbours, bounded and simulated like all others, until a
-- round finds nothing better or the simulations set aside for it are spent.

local moves = require 'trinity.plan.moves'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local function part_text(value)
  if type(value) ~= 'table' then return tostring(value) end
  local parts = {}
  for name, part in util.sorted_pairs(value) do
    parts[#parts + 1] = ('%s=%s'):format(tostring(name), part_text(part))
  end
  return '{' .. table.concat(parts, ' ') .. '}'
end

--- What tells two points apart.
local function key_of(point)
  local parts = {}
  for name, value in util.sorted_pairs(point) do
    if name ~= 'devices' and name ~= 'inside' then parts[#parts + 1] = ('%s=%s'):format(name, part_text(value)) end
  end
  return table.concat(parts, ' ')
end

-- Entries of the neighbours of a result that were not seen before.
local function neighbours(search, result, seen)
  local list = {}
  for _, made in ipairs(moves.of(search, result)) do
    local point = space.kept(made.point)
    if not search.space:wrong(point) then
      local key = key_of(point)
      if not seen[key] then
        seen[key] = true
        search.number = search.number + 1
        list[#list + 1] = { kind = 'point', point = point, number = search.number, bound_s = 0, moved = made.move }
      end
    end
  end
  return list
end

--- Takes from the queue what was bounded, in order, as far as it may be among the best.
local function drain(search, mark)
  local list, rest = {}, {}
  while search.queue[1] do
    local entry = search.queue:pop()
    if entry.moved and entry.number > mark then list[#list + 1] = entry else rest[#rest + 1] = entry end
  end
  for _, entry in ipairs(rest) do search.queue:push(entry) end
  return list
end

--- Refines the best `count` results of a search with at most so many simulations.
return function(search, count, simulations)
  local seen, spent, from = {}, search.counts.simulated + simulations, {}
  for _, result in ipairs(search.results) do seen[key_of(result.point)] = true end
  for round = 1, 8 do
    local best = search.results[1]
    if not best or search:stopping() or search.counts.simulated >= spent then return end
    local entries, mark = {}, search.number
    for i = 1, math.min(count, #search.results) do
      local result = search.results[i]
      if not from[result] then
        from[result] = true
        for _, entry in ipairs(neighbours(search, result, seen)) do entries[#entries + 1] = entry end
      end
    end
    if #entries == 0 then return end
    search:bound(entries)
    local list = drain(search, mark)
    while #list > spent - search.counts.simulated do table.remove(list) end
    local i = 1
    while i <= #list and not search:stopping() do
      local group = {}
      while i <= #list and #group < 8 do
        if list[i].bound_s < search:limit_s() then group[#group + 1] = list[i] end
        i = i + 1
      end
      search:simulate(group)
      search.say(search)
    end
    if round > 1 and search.results[1] == best then return end
  end
end
