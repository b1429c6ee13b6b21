-- Texts that are equal for equal values in any process, to identify the inputs of a saved result. A function is
-- represented by its compiled code and the values that it refers to, a library function by its position and its plain
-- values.

local ffi = require 'ffi'
local core = require 'trinity.core'
local array = require 'trinity.base.array'
local model = require 'trinity.graph.model'
local tensorboard = require 'trinity.runs.tensorboard'
local util = require 'trinity.base.util'

-- Saved before safe.lua removes them from the library.
local getinfo, getupvalue, dump = debug.getinfo, debug.getupvalue, string.dump

local identity = {}

local most_values, longest = 200000, 400
local no_text = {} -- raised if a value has no text

local function checksum(text) return ('%d bytes %08x'):format(#text, tensorboard.crc32c(text)) end

local library = '@' .. core.home .. '/lib/trinity/'

--- Returns whether a function is part of the library, whose version identifies its behaviour.
function identity.is_own(f) return getinfo(f, 'S').source:sub(1, #library) == library end

local write

local function write_entries(state, value)
  local keys, text_of = {}, {}
  for key in next, value do -- sorted below
    keys[#keys + 1] = key
    text_of[key] = type(key) == 'number' and ('%.17g'):format(key) or type(key) == 'string' and ('%q'):format(key)
      or error(no_text, 0)
  end
  table.sort(keys, function(a, b) return text_of[a] < text_of[b] end)
  for _, key in ipairs(keys) do
    state.parts[#state.parts + 1] = text_of[key]
    write(state, rawget(value, key))
  end
end

local function write_table(state, value)
  local class = util.class_of(value)
  if class == 'graph' or class == 'cluster' then
    state.parts[#state.parts + 1] = ('%s %s'):format(class,
      class == 'cluster' and model.identity(value) or value.fingerprint)
    return
  end
  if class == 'problem' then
    value = util.picked(value, { 'graph', 'cluster', 'reward', 'rules', 'cost', 'default_schedule' })
  end
  state.parts[#state.parts + 1] = (class or '') .. '{'
  write_entries(state, value)
  state.parts[#state.parts + 1] = '}'
end

local function write_function(state, f)
  local about, own = getinfo(f, 'Su'), identity.is_own(f)
  if about.what == 'C' then
    state.parts[#state.parts + 1] = tostring(f):match 'builtin#%d+' or 'C'
    return
  end
  state.parts[#state.parts + 1] = own and ('%s:%d'):format(about.source:sub(#library), about.linedefined)
    or checksum(dump(f, true))
  for i = 1, about.nups do
    local _, value = getupvalue(f, i)
    local kind = type(value)
    if not own or kind ~= 'function' and kind ~= 'userdata' then write(state, value)
    elseif kind == 'function' then
      local place = getinfo(value, 'S')
      state.parts[#state.parts + 1] = ('%s:%d'):format(place.short_src, place.linedefined)
    end
  end
end

local function write_array(state, value)
  for i = 1, #value do state.parts[#state.parts + 1] = ('%.17g'):format(value[i]) end
end

function write(state, value)
  local kind = type(value)
  state.left = state.left - 1
  if state.left < 0 then error(no_text, 0) end
  if kind == 'number' then state.parts[#state.parts + 1] = ('%.17g'):format(value)
  elseif kind == 'string' then state.parts[#state.parts + 1] = ('%q'):format(value)
  elseif kind == 'boolean' or kind == 'nil' then state.parts[#state.parts + 1] = tostring(value)
  elseif kind == 'table' or kind == 'function' then
    if state.seen[value] then
      state.parts[#state.parts + 1] = state.seen[value]
      return
    end
    state.count = state.count + 1
    state.seen[value] = ('#%d'):format(state.count)
    if kind == 'function' then write_function(state, value) else write_table(state, value) end
  elseif array.is(value) then write_array(state, value)
  elseif kind == 'cdata' and (ffi.istype('int64_t', value) or ffi.istype('uint64_t', value)) then
    state.parts[#state.parts + 1] = tostring(value)
  else error(no_text, 0) end
end

--- Returns a short text of a value, or nil if it has none (an open file, a LibTorch tensor).
function identity.of(value)
  local state = { parts = {}, seen = {}, count = 0, left = most_values }
  for name, module in util.sorted_pairs(package.loaded) do
    if type(module) == 'table' then state.seen[module] = 'module ' .. name end
  end
  local ok, message = pcall(write, state, value)
  if not ok then
    if message ~= no_text then error(message, 0) end
    return nil
  end
  local text = table.concat(state.parts, ' '):gsub('[^ -~]', function(c) return ('\\x%02X'):format(c:byte()) end)
  return #text <= longest and text or checksum(text)
end

--- Returns a short text of a file's content: '' if it does not exist.
function identity.of_file(path)
  local ok, text = pcall(core.read_file, path)
  return ok and checksum(text) or ''
end

return identity
