-- Positions of the layers of a map: by Graphviz (dot), in ranks from top to bottom, or by our own ranks if dot is not
-- installed or takes too long.
--
-- layout.of(count, edges) gives { by = 'dot' | 'ranks', width =, height = (of a node), x =, y = (centres, a list each),
-- paths = (a list by edge: { x1, y1, x2, y2, ... }, a start and cubic Bezier points, or false) }. The page splits long
-- networks into columns that fit its window (placement.js).

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local layout = {}

local node_width, node_height = 150, 34 -- units of the picture; dot counts in inches of 72
local seconds = 15

local function dot_text(count, edges)
  local lines = { ('digraph { rankdir=TB; ranksep=0.3; nodesep=0.15; node [shape=box, fixedsize=true, width=%.4f, '
    .. 'height=%.4f, label=""]; edge [arrowhead=none];'):format(node_width / 72, node_height / 72) }
  for i = 1, count do lines[#lines + 1] = ('n%d;'):format(i) end
  for i = 1, #edges.from do lines[#lines + 1] = ('n%d -> n%d;'):format(edges.from[i], edges.to[i]) end
  lines[#lines + 1] = '}\n'
  return table.concat(lines, '\n')
end

local function quoted(words) return "'" .. words:gsub("'", "'\\''") .. "'" end

local function run_dot(text)
  local folder = core.is_safe() and (core.environment 'TMPDIR' or '.') -- the folder of the run, if there is one
  local path = folder and ('%s/layout-%d.dot'):format(folder, core.process().pid) or os.tmpname()
  if not pcall(core.write_file, path, text, 'unsynced') then return nil end
  local pipe = io.popen(("timeout -k 1 %d dot -Tplain -y %s 2>/dev/null"):format(seconds, quoted(path)))
  local plain = pipe:read '*a'
  pipe:close()
  core.remove_tree(path)
  return plain:find '\nstop%s*$' and plain or nil
end

local function numbers(text) return util.map(util.words(text), function(word) return tonumber(word) end) end

local function read_plain(plain, count, edges)
  local x, y, path_of = {}, {}, {}
  for line in plain:gmatch '[^\n]+' do
    local node, rest = line:match '^node n(%d+) (.*)$'
    if node then
      local values = numbers(rest)
      x[tonumber(node)], y[tonumber(node)] = values[1] * 72, values[2] * 72
    end
    local from, to, points = line:match '^edge n(%d+) n(%d+) (.*)$'
    if from then
      local values, path = numbers(points), {}
      for i = 1, 2 * values[1] do path[i] = values[i + 1] * 72 end
      path_of[from .. ' ' .. to] = path
    end
  end
  local paths = util.listed(#edges.from, function(i) return path_of[edges.from[i] .. ' ' .. edges.to[i]] or false end)
  if #x < count then return nil end
  return { by = 'dot', x = x, y = y, paths = paths }
end

--- Ranks by the longest path over forward edges; within a rank in the order of the layers.
local function by_ranks(count, edges)
  local rank, width, order = {}, {}, {}
  for i = 1, count do rank[i] = 1 end
  for i = 1, #edges.from do order[i] = i end
  table.sort(order, function(a, b)
    if edges.from[a] ~= edges.from[b] then return edges.from[a] < edges.from[b] end
    return edges.to[a] < edges.to[b]
  end)
  for _, i in ipairs(order) do
    local from, to = edges.from[i], edges.to[i]
    if from < to then rank[to] = math.max(rank[to], rank[from] + 1) end
  end
  local most = 1
  for i = 1, count do
    width[rank[i]] = (width[rank[i]] or 0) + 1
    most = math.max(most, width[rank[i]])
  end
  local x, y, at, paths = {}, {}, {}, {}
  for i = 1, count do
    local r = rank[i]
    at[r] = (at[r] or 0) + 1
    x[i] = (at[r] - 0.5 + (most - width[r]) / 2) * (node_width + 12)
    y[i] = (r - 0.5) * (node_height + 24)
  end
  for i = 1, #edges.from do paths[i] = false end
  return { by = 'ranks', x = x, y = y, paths = paths }
end

local function rounded(list)
  for i = 1, #list do list[i] = math.floor(list[i] * 10 + 0.5) / 10 end
end

layout.by_ranks = by_ranks

function layout.of(count, edges)
  local plain = run_dot(dot_text(count, edges))
  local picture = plain and read_plain(plain, count, edges) or by_ranks(count, edges)
  rounded(picture.x)
  rounded(picture.y)
  for _, path in ipairs(picture.paths) do
    if path then rounded(path) end
  end
  picture.width, picture.height = node_width, node_height
  return picture
end

return layout
