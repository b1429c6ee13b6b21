-- The part of TOML that job files use: [tables], dotted keys, texts, numbers, booleans, lists, inline tables, comments.

local util = require 'trinity.base.util'

local toml = {}

local read_value

local function refuse(state, expected)
  local _, lines = state.text:sub(1, state.at - 1):gsub('\n', '')
  util.fail("%s:%d: expected %s, got '%s'", state.path, lines + 1, expected,
    util.shortened(state.text:match('^[^\n]*', state.at), 40))
end

-- Skips blanks, comments and, with `lines`, ends of lines.
local function skip(state, lines)
  while true do
    local _, last = state.text:find(lines and '^%s+' or '^[ \t\r]+', state.at)
    if not last then _, last = state.text:find('^#[^\n]*', state.at) end
    if not last then return end
    state.at = last + 1
  end
end

local function take(state, pattern)
  local _, last, found = state.text:find('^' .. pattern, state.at)
  if last then state.at = last + 1 end
  return found
end

local function need(state, pattern, expected)
  skip(state)
  return take(state, pattern) or refuse(state, expected)
end

local escapes = { n = '\n', t = '\t', r = '\r', ['"'] = '"', ['\\'] = '\\' }

local function read_text(state)
  local plain = take(state, '"""\n?(.-)"""') or take(state, "'''\n?(.-)'''") or take(state, "'([^'\n]*)'")
  if plain then return plain end
  local parts = {}
  state.at = state.at + 1
  while true do
    parts[#parts + 1] = take(state, '([^"\\\n]*)')
    if take(state, '(")') then return table.concat(parts) end
    parts[#parts + 1] = escapes[take(state, '\\(.)') or ''] or refuse(state, 'the end of a text')
  end
end

-- Reads keys separated by points, and returns the table of the last one and its name.
local function read_keys(state, into)
  local name
  repeat
    if name then into[name] = into[name] == nil and {} or into[name] end
    into = name and into[name] or into
    if type(into) ~= 'table' then refuse(state, ("'%s' to be a table"):format(name)) end
    skip(state)
    name = state.text:find('^["\']', state.at) and read_text(state) or need(state, '([%w_-]+)', 'a key')
    skip(state)
  until not take(state, '(%.)')
  return into, name
end

local function read_pair(state, into)
  local inner, name = read_keys(state, into)
  need(state, '(=)', "'='")
  skip(state)
  if inner[name] ~= nil then refuse(state, ("key '%s' once"):format(name)) end
  inner[name] = read_value(state)
end

function read_value(state)
  local first = state.text:sub(state.at, state.at)
  if first == '"' or first == "'" then return read_text(state) end
  if first == '[' or first == '{' then
    local all, close = {}, first == '[' and ']' or '}'
    state.at = state.at + 1
    while true do
      skip(state, true)
      if take(state, '(%' .. close .. ')') then return all end
      if first == '[' then all[#all + 1] = read_value(state) else read_pair(state, all) end
      skip(state, true)
      if not take(state, '(,)') and not state.text:find('^%' .. close, state.at) then
        refuse(state, ("',' or '%s'"):format(close))
      end
    end
  end
  local word = take(state, '([%w_.+-]+)')
  if word == 'true' or word == 'false' then return word == 'true' end
  return word and tonumber((word:gsub('_', ''))) or refuse(state, 'a value')
end

--- Parses a single value of a command line; returns the text if it is no value.
function toml.value(text)
  local state = { text = text, at = 1, path = 'argument' }
  local ok, value = pcall(read_value, state)
  if ok and state.at > #text then return value end
  return text
end

--- Parses the tables of a text.
function toml.read(text, path)
  local state, all = { text = text, at = 1, path = path }, {}
  local into = all
  while true do
    skip(state, true)
    if state.at > #text then return all end
    if take(state, '(%[)') then
      local outer, name = read_keys(state, all)
      need(state, '(%])', "']'")
      outer[name] = outer[name] == nil and {} or outer[name]
      into = type(outer[name]) == 'table' and outer[name] or refuse(state, ("'%s' to be a table"):format(name))
    else
      read_pair(state, into)
    end
    skip(state)
    if state.at <= #text then need(state, '(\n)', 'the end of the line') end
  end
end

return toml
