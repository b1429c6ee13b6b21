-- What a fit minimises beside the errors of rows where their order counts, too: of pairs within a group, how sure their
-- order is by what is told against how sure it was by what was given. Sure is 1 / (1 + exp(-d / width)), d being the
-- difference of both in logarithms (the probability of an order in Burges et al., "Learning to Rank using Gradient
-- Descent", ICML 2005), so that a pair that is told in the other order costs at most one, however far it is off.

local errors = require 'trinity.fidelity.errors'

local order = {}

--- Pairs of rows of a group, with the differences of their times and their share: groups count alike, as in
--- errors.ranking, and those alone that have at least `least` rows.
local function pairs_within(rows, least)
  local groups, found, count = {}, {}, 0
  for i, row in ipairs(rows) do
    groups[row.group] = groups[row.group] or {}
    table.insert(groups[row.group], i)
  end
  for _, group in ipairs(errors.groups(rows)) do
    local members = groups[group.name]
    if #members >= least then
      count = count + 1
      for b = 2, #members do
        for a = 1, b - 1 do
          local one, other = members[a], members[b]
          found[#found + 1] = { one = one, other = other, share = 2 / (#members * (#members - 1)),
            given = math.log(rows[other].measured_s / rows[one].measured_s) }
        end
      end
    end
  end
  for _, pair in ipairs(found) do pair.share = pair.share / count end
  return found
end

--- What a fit squares and sums beside errors: a function of the logarithms of told over measured, in the order of rows.
--- The squares come to `weight` where all pairs are told in the other order.
---@param rows table[] with measured_s and group
---@param least integer rows of a group
---@param width number in logarithms
---@param weight number
---@return fun(off: number[]): number[]
function order.residuals(rows, least, width, weight)
  local all = pairs_within(rows, least)
  local function sure(between) return 1 / (1 + math.exp(-between / width)) end
  return function(off)
    local list = {}
    for k, pair in ipairs(all) do
      local told = pair.given + off[pair.other] - off[pair.one]
      list[k] = math.sqrt(weight * pair.share) * (sure(told) - sure(pair.given))
    end
    return list
  end
end

return order
