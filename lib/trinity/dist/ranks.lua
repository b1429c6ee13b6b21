-- Exchange of results between the ranks of a job (trinity.dist).

local infeasibility = require 'trinity.strategy.infeasibility'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local ranks = {}

--- Returns the list of numbers `row` of every rank, rank 0 first.
function ranks.rows(job, row)
  local all, rows = {}, {}
  for i = 1, #row * job.size do all[i] = 0 end
  for i, number in ipairs(row) do all[#row * job.rank + i] = number end
  all = job:all_reduce(tensor.new(all, { dtype = 'float64' })):totable()
  for r = 1, job.size do rows[r] = { unpack(all, #row * (r - 1) + 1, #row * r) } end
  return rows
end

--- Returns the text of rank `owner` (default: 0) on every rank; nil for nil.
function ranks.text(job, text, owner)
  local root = { root = owner or 0 }
  local count = job:broadcast(tensor.new({ text and #text or -1 }, { dtype = 'int64' }), root):totable()[1]
  if count <= 0 then return count == 0 and '' or nil end
  local bytes = util.listed(count, function(i) return job.rank == root.root and text:byte(i) or 0 end)
  return string.char(unpack(job:broadcast(tensor.new(bytes, { dtype = 'int64' }), root):totable()))
end

--- Converts a result { metrics =, reward = } to three numbers for ranks.best.
function ranks.worth(result)
  return result.metrics.feasible and 1 or 0, result.metrics.excess_memory_bytes, result.reward
end

--- Returns the rank with the best result (ties: the lowest rank), from number `first` of the rows on.
function ranks.best(rows, first)
  local winner, best
  for r, row in ipairs(rows) do
    local result = { metrics = { feasible = row[first] == 1, excess_memory_bytes = row[first + 1] },
      reward = row[first + 2] }
    if infeasibility.better(result, best) then winner, best = r - 1, result end
  end
  return winner
end

function ranks.take_placement(job, owner, from, into)
  local devices = util.listed(#into, function(op) return job.rank == owner and from[op] or 0 end)
  local chosen = job:broadcast(tensor.new(devices, { dtype = 'int64' }), { root = owner }):totable()
  for op = 1, #into do into[op] = chosen[op] end
end

return ranks
