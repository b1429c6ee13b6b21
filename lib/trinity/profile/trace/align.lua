-- trinity.profile.trace.align: aligns equal entries of two lists, in order.

local align = {}

local most_cells = 4e6 -- maximum table size; for larger ones only the common ends are aligned

--- Computes the table of common subsequences of a[first..last_a] and b[first..last_b], from their ends.
local function lengths(a, b, first, last_a, last_b)
  local rows = {}
  rows[last_a + 1] = {}
  for j = first, last_b + 1 do rows[last_a + 1][j] = 0 end
  for i = last_a, first, -1 do
    local row, below = {}, rows[i + 1]
    row[last_b + 1] = 0
    for j = last_b, first, -1 do
      row[j] = a[i] == b[j] and below[j + 1] + 1 or math.max(below[j], row[j + 1])
    end
    rows[i] = row
  end
  return rows
end

--- Returns the longest common subsequence of two lists of words: for entries of `a` the position in `b`.
---@param a string[]
---@param b string[]
---@return table<integer, integer>
function align.words(a, b)
  local found, first, last_a, last_b = {}, 1, #a, #b
  while first <= last_a and first <= last_b and a[first] == b[first] do
    found[first], first = first, first + 1
  end
  while last_a >= first and last_b >= first and a[last_a] == b[last_b] do
    found[last_a], last_a, last_b = last_b, last_a - 1, last_b - 1
  end
  if last_a < first or last_b < first or (last_a - first + 2) * (last_b - first + 2) > most_cells then return found end
  local rows = lengths(a, b, first, last_a, last_b)
  local i, j = first, first
  while i <= last_a and j <= last_b do
    if a[i] == b[j] then
      found[i], i, j = j, i + 1, j + 1
    elseif rows[i + 1][j] >= rows[i][j + 1] then
      i = i + 1
    else
      j = j + 1
    end
  end
  return found
end

return align
