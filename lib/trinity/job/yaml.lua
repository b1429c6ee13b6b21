-- The part of YAML that job files use: maps and lists by indentation, lists in brackets, scalars, comments, anchors of
-- maps. Scalars keep their text, { text =, quoted = }; the parser of a client converts them.

local util = require 'trinity.base.util'

local yaml = {}

local Scalar = {}

function yaml.is_scalar(value) return getmetatable(value) == Scalar end

local function scalar(text, quoted) return setmetatable({ text = text, quoted = quoted or false }, Scalar) end

--- Returns the Lua value of a scalar (nil for null, a boolean, number or text), a list or a map.
function yaml.value(node)
  if not yaml.is_scalar(node) then
    local copy = {}
    for key, entry in util.sorted_pairs(node) do
      copy[key] = yaml.value(entry)
      if copy[key] == nil and type(key) == 'number' then copy[key] = false end
    end
    return copy
  end
  local text = node.text
  if node.quoted then return text end
  if text == '' or text == '~' or text:lower() == 'null' then return nil end
  local lower = text:lower()
  if lower == 'true' or lower == 'false' then return lower == 'true' end
  if text:match '^[%d.+-]' and not text:match '^0[xX]' then return tonumber((text:gsub('(%d)_', '%1'))) or text end
  return text
end

-- Returns a line without its comment.
local function uncommented(line)
  local quote
  for at = 1, #line do
    local c = line:sub(at, at)
    if quote then
      if c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      if at == 1 or line:sub(at - 1, at - 1):match '[%s:,%[{-]' then quote = c end
    elseif c == '#' and (at == 1 or line:sub(at - 1, at - 1):match '%s') then
      return (line:sub(1, at - 1):gsub('%s+$', ''))
    end
  end
  return (line:gsub('%s+$', ''))
end

local function read_scalar(text)
  local quote = text:sub(1, 1)
  if (quote == '"' or quote == "'") and text:sub(-1) == quote and #text > 1 then
    return scalar(text:sub(2, -2), true)
  end
  if quote == '[' and text:sub(-1) == ']' then
    local entries = util.words(text:sub(2, -2) .. ',', '%s*(.-)%s*,')
    return util.map(util.filtered(entries, function(entry) return entry ~= '' end), read_scalar)
  end
  if text == '{}' then return {} end
  return scalar(text)
end

-- Returns key and rest of a line 'key: rest', or nil.
local function key_of(text)
  local quote = text:match '^(["\'])'
  if quote then return text:match('^' .. quote .. '(.-)' .. quote .. ':%s*(.*)$') end
  local key, rest = text:match '^([^%s:][^:]-):%s+(.*)$'
  if not key then key = text:match '^([^%s].-):$' end
  return key, rest or ''
end

local function is_item(line) return (line.text .. ' '):match '^%-%s' ~= nil end

local read_block

local function value_at(state, rest, indent)
  if rest == '|' or rest == '>' or rest == '|-' or rest == '>-' then
    local parts = {}
    while state[state.at] and state[state.at].indent > indent do
      parts[#parts + 1] = state[state.at].text
      state.at = state.at + 1
    end
    return scalar(table.concat(parts, '\n'), true)
  end
  local anchor = rest:match '^&([%w_-]+)$'
  if rest ~= '' and not anchor then return state.anchors[rest:match '^%*([%w_-]+)$'] or read_scalar(rest) end
  local next_line = state[state.at]
  if next_line and next_line.indent > indent and not key_of(next_line.text) and not is_item(next_line) then
    state.at = state.at + 1
    return read_scalar(next_line.text)
  end
  if anchor and next_line then
    state.anchors[anchor] = read_block(state, next_line.indent)
    return state.anchors[anchor]
  end
  if next_line and (next_line.indent > indent or next_line.indent == indent and is_item(next_line)) then
    return read_block(state, next_line.indent)
  end
  return scalar ''
end

local function refuse(state, line, expected)
  util.fail("%s:%d: expected %s, got '%s'", state.path, line.number, expected, util.shortened(line.text, 60))
end

local function read_list(state, indent)
  local list = {}
  while state[state.at] and state[state.at].indent == indent and is_item(state[state.at]) do
    local line = state[state.at]
    local text = line.text:sub(2):gsub('^%s+', '')
    if key_of(text) and not text:match '^%[' then -- a map that begins on the line of its dash
      line.indent, line.text = indent + (#line.text - #text), text
      list[#list + 1] = read_block(state, line.indent)
    else
      state.at = state.at + 1
      list[#list + 1] = value_at(state, text, indent)
    end
  end
  return list
end

function read_block(state, indent)
  if is_item(state[state.at]) then return read_list(state, indent) end
  local map = {}
  while state[state.at] and state[state.at].indent == indent do
    local line = state[state.at]
    local key, rest = key_of(line.text)
    if not key then refuse(state, line, "'key: value'") end
    if map[key] ~= nil then state.repeated[#state.repeated + 1] = key end
    state.at = state.at + 1
    if key == '<<' then
      for name, entry in util.sorted_pairs(value_at(state, rest, indent)) do map[name] = map[name] or entry end
    else
      map[key] = value_at(state, rest, indent)
    end
  end
  if state[state.at] and state[state.at].indent > indent then
    refuse(state, state[state.at], ('at most %d blanks'):format(indent))
  end
  return map
end

--- Parses a text: maps and lists of scalars. Also returns keys that occur twice, of which the last counts.
function yaml.read(text, path)
  local state, number = { at = 1, path = path, repeated = {}, anchors = {} }, 0
  for line in (text:gsub('\r', '') .. '\n'):gmatch '(.-)\n' do
    number = number + 1
    local content = uncommented(line)
    local blanks, rest = content:match '^(%s*)(.*)$'
    if rest ~= '' and rest ~= '---' then
      if blanks:find '\t' then util.fail('%s:%d: expected blanks before a key, got a tab', path, number) end
      state[#state + 1] = { indent = #blanks, text = rest, number = number }
    end
  end
  if #state == 0 then return {}, {} end
  local value = read_block(state, state[1].indent)
  if state[state.at] then refuse(state, state[state.at], 'a key of the outermost map') end
  return value, state.repeated
end

return yaml
