-- The part of TOML that job files use: [tables], dotted keys, texts, numbers, booleans, lists, comments.

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

local escapes = { n = '\n', t = '\t', r = '\r', ['"'] = '"', ['\\'] = '\\' }

local function read_text(state)
  local long = take(state, '"""\n?(.-)"""') or take(state, "'''\n?(.-)'''")
  if long then return long end
  local plain = take(state, "'([^'\n]*)'")
  if plain then return plain end
  local parts = {}
  state.at = state.at + 1
  while true do
    parts[#parts + 1] = take(state, '([^"\\\n]*)')
    if take(state, '(")') then return table.concat(parts) end
    local escaped = take(state, '\\(.)')
    if not escaped or not escapes[escaped] then refuse(state, 'the end of a text') end
    parts[#parts + 1] = escapes[escaped]
  end
end

local function read_list(state)
  local list = {}
  state.at = state.at + 1
  while true do
    skip(state, true)
    if take(state, '(%])') then return list end
    list[#list + 1] = read_value(state)
    skip(state, true)
    if not take(state, '(,)') and not state.text:find('^%]', state.at) then refuse(state, "',' or ']'") end
  end
end

local function read_keys(state)
  local keys = {}
  repeat
    skip(state)
    local quoted = state.text:find('^["\']', state.at) and read_text(state)
    keys[#keys + 1] = quoted or take(state, '([%w_-]+)') or refuse(state, 'a key')
    skip(state)
  until not take(state, '(%.)')
  return keys
end

local function put(state, into, keys, value)
  for k = 1, #keys - 1 do
    if into[keys[k]] == nil then into[keys[k]] = {} end
    into = into[keys[k]]
    if type(into) ~= 'table' then refuse(state, ("'%s' to be a table"):format(keys[k])) end
  end
  if into[keys[#keys]] ~= nil then refuse(state, ("key '%s' once"):format(keys[#keys])) end
  into[keys[#keys]] = value
end

local function read_inline(state)
  local map = {}
  state.at = state.at + 1
  while true do
    skip(state, true)
    if take(state, '(})') then return map end
    local keys = read_keys(state)
    if not take(state, '(=)') then refuse(state, "'='") end
    skip(state)
    put(state, map, keys, read_value(state))
    skip(state, true)
    if not take(state, '(,)') and not state.text:find('^}', state.at) then refuse(state, "',' or '}'") end
  end
end

function read_value(state)
  local first = state.text:sub(state.at, state.at)
  if first == '"' or first == "'" then return read_text(state) end
  if first == '[' then return read_list(state) end
  if first == '{' then return read_inline(state) end
  local word = take(state, '([%w_.+-]+)')
  if word == 'true' or word == 'false' then return word == 'true' end
  local number = word and tonumber((word:gsub('_', '')))
  if not number then refuse(state, 'a value') end
  return number
end

--- Parses a single value of a command line; returns the text if it is no value.
function toml.value(text)
  local state = { text = text, at = 1, path = 'argument' }
  local ok, value = pcall(read_value, state)
  if ok and state.at > #text then return value end
  return text
end

--- Parses the tables of a text.
---@param text string
---@param path string begins messages
---@return table
function toml.read(text, path)
  local state, all = { text = text, at = 1, path = path }, {}
  local into = all
  while true do
    skip(state, true)
    if state.at > #text then return all end
    if take(state, '(%[)') then
      local keys = read_keys(state)
      if not take(state, '(%])') then refuse(state, "']'") end
      into = all
      for _, key in ipairs(keys) do
        if into[key] == nil then into[key] = {} end
        into = into[key]
        if type(into) ~= 'table' then refuse(state, ("'%s' to be a table"):format(key)) end
      end
    else
      local keys = read_keys(state)
      if not take(state, '(=)') then refuse(state, "'='") end
      skip(state)
      put(state, into, keys, read_value(state))
    end
    skip(state)
    if state.at <= #text and not take(state, '(\n)') then refuse(state, 'the end of the line') end
  end
end

return toml
