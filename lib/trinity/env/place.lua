-- Environments in which an action puts a node on a device. 'place' fills a placement node by node in topological order;
-- 'order' picks the next node, too, among those whose parents are placed; 'move' changes a placement that is complete.
-- An action is a device, or (node - 1) x devices + device.

local place = {}

-- Puts node k on device d of the placement.
local function assign(s, k, d)
  local placement, operators, first = s.placement, s.nodes.operators, s.nodes.first
  s.device[k] = d
  for i = first[k], first[k + 1] - 1 do placement[operators[i]] = d end
end

-- Adds node k to what device d holds, or takes it away (sign -1).
local function count(s, k, d, sign)
  local of = s.nodes
  s.load[d] = s.load[d] + sign * of.time_s[(k - 1) * of.devices + d]
  s.used[d] = s.used[d] + sign * of.bytes[k]
end

--- Begins an episode: `device_of(node)` says where every node is at first; `placed` whether it counts as placed.
function place.begin(s, device_of, placed)
  local of = s.nodes
  s.step, s.left = 0, placed and 0 or of.count
  for d = 1, of.devices do s.load[d], s.used[d] = 0, 0 end
  for k = 1, of.count do
    s.placed[k], s.missing[k] = placed, of.parent_count[k]
    assign(s, k, device_of(k))
    if placed then count(s, k, s.device[k], 1) end
  end
end

--- The node and the device of an action, where there are `width` devices at most; nil where it means nothing. wraps:
--- nodes and devices that the problem does not have stand for those modulo what there is.
function place.read(s, action, kind, width, wraps)
  local of, k, d = s.nodes, s.step + 1, action
  if kind ~= 'place' then k, d = math.floor((action - 1) / width) + 1, (action - 1) % width + 1 end
  if wraps then k, d = (k - 1) % of.count + 1, (d - 1) % of.devices + 1 end
  if k > of.count or d > of.devices or kind == 'order' and (s.placed[k] or s.missing[k] > 0) then return nil end
  return k, d
end

--- Takes an action that read() gave.
function place.apply(s, k, d)
  s.step = s.step + 1
  if s.placed[k] then
    count(s, k, s.device[k], -1)
  else
    s.placed[k], s.left = true, s.left - 1
    for _, child in ipairs(s.nodes.children[k]) do s.missing[child] = s.missing[child] - 1 end
  end
  assign(s, k, d)
  count(s, k, d, 1)
end

-- Whether node k fits on device d in addition to the nodes there.
local function fits(s, k, d) return s.used[d] + s.nodes.bytes[k] <= s.nodes.capacity[d] end

-- Writes the mask of node k from entry `at` on; if it fits on no device, all devices are allowed.
local function mask_node(s, k, mask, at, moves)
  local devices, any = s.nodes.devices, false
  for d = 1, devices do
    local allowed = fits(s, k, d) and not (moves and s.device[k] == d)
    mask[at + d], any = allowed and 1 or 0, any or allowed
  end
  if any or moves then return end
  for d = 1, devices do mask[at + d] = 1 end
end

-- Whether all nodes fit on a device: then its column of the mask needs no second look.
local function is_roomy(s, d) return s.used[d] + s.nodes.largest_bytes <= s.nodes.capacity[d] end

--- Writes which actions are allowed into mask[at + 1 ...], 1 or 0. moved: the node that was moved last, from device
--- `from`; the rest of the mask must hold the state before. nil: the whole mask is written.
function place.mask(s, kind, width, mask, at, moved, from)
  local of = s.nodes
  if kind == 'place' then
    if s.left > 0 then mask_node(s, s.step + 1, mask, at) end
  elseif kind == 'move' and moved and s.roomy and is_roomy(s, from) and is_roomy(s, s.device[moved]) then
    mask_node(s, moved, mask, at + (moved - 1) * width, true)
  else
    for k = 1, of.count do
      local first = at + (k - 1) * width
      if kind == 'move' then
        mask_node(s, k, mask, first, true)
      elseif s.placed[k] or s.missing[k] > 0 then
        for d = 1, of.devices do mask[first + d] = 0 end
      else
        mask_node(s, k, mask, first)
      end
    end
    s.roomy = true
    for d = 1, of.devices do s.roomy = s.roomy and is_roomy(s, d) end
  end
end

--- A lower bound of the step time of all that the state's placement can become: the fullest device's work.
function place.bound_s(s)
  local most = s.nodes.bound_s
  for d = 1, s.nodes.devices do most = math.max(most, s.load[d]) end
  return most
end

return place
