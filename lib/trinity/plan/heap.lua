-- A queue of entries by (bound_s, number): the least bound first, of equal ones the earlier.

local Heap = {}
Heap.__index = Heap

function Heap.new() return setmetatable({}, Heap) end

local function before(a, b) return a.bound_s < b.bound_s or (a.bound_s == b.bound_s and a.number < b.number) end

function Heap:push(entry)
  local i = #self + 1
  while i > 1 do
    local parent = math.floor(i / 2)
    if not before(entry, self[parent]) then break end
    self[i], i = self[parent], parent
  end
  self[i] = entry
end

function Heap:pop()
  local top, last, n = self[1], self[#self], #self - 1
  self[n + 1] = nil
  if n == 0 then return top end
  local i = 1
  while true do
    local child = 2 * i
    if child > n then break end
    if child < n and before(self[child + 1], self[child]) then child = child + 1 end
    if not before(self[child], last) then break end
    self[i], i = self[child], child
  end
  self[i] = last
  return top
end

return Heap
