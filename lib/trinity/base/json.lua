-- JSON for the library: text to Lua values and back, on one line. (core.to_json writes JSON for people, indented.)

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local json = {}

local deepest = 60 -- as deep as decode reads

--- A value from JSON text: objects and lists become tables, null becomes nil (false inside lists, which keep their
--- length). `what` (default 'JSON') begins the message of an error, before line and column.
function json.decode(text, what)
  local ok, value = pcall(core.from_json, text, what or 'JSON')
  if ok then return value end
  error((util.unplaced(value):gsub('^trinity%.from_json: ', '')), 0)
end

--- The text of a file, unpacked where it begins as those of gzip.
function json.text(path)
  local text = util.read_file(path)
  if text:sub(1, 2) ~= '\31\139' then return text end
  local ok, unpacked = pcall(core.read_compressed, path)
  if ok then return unpacked end
  error((util.unplaced(unpacked):gsub('^trinity%.read_compressed: ', '')), 0)
end

--- The value in a file.
function json.read(path) return json.decode(json.text(path), path) end

--- The object or list in a file; nil where there is none.
function json.try(path)
  local ok, value = pcall(json.read, path)
  return ok and type(value) == 'table' and value or nil
end

local List = {}

--- Marks a table as a list, also where it is empty.
function json.list(t) return setmetatable(t, List) end

-- Beside control characters those that turn the direction of writing: text in JSON may meet a terminal.
local function encode_string(text)
  text = text:gsub('[%c"\\<>&\127]', function(c) return ('\\u%04x'):format(c:byte()) end)
  if text:find '[\194\216\226]' then
    text = text:gsub('\194([\128-\159])', function(c) return ('\\u%04x'):format(c:byte()) end)
      :gsub('\216\156', '\\u061c'):gsub('\226([\128\129])([\128-\191])', function(high, low)
        local code = 0x2000 + (high:byte() - 128) * 64 + low:byte() - 128
        local turns = code == 0x200e or code == 0x200f or code >= 0x2028 and code <= 0x202e
          or code >= 0x2066 and code <= 0x2069
        return turns and ('\\u%04x'):format(code) or nil
      end)
  end
  return '"' .. text .. '"'
end

--- Broken UTF-8 becomes '?': a page must stay readable whatever a name holds.
local function encode_text(text)
  if not text:find '[%c"\\<>&\127-\255]' then return '"' .. text .. '"' end
  if text:find '[\128-\255]' then
    local parts, i = {}, 1
    while i <= #text do
      local whole = text:match('^[%z\1-\127]+', i) or text:match('^[\194-\223][\128-\191]', i)
        or text:match('^[\224-\239][\128-\191][\128-\191]', i)
        or text:match('^[\240-\244][\128-\191][\128-\191][\128-\191]', i)
      parts[#parts + 1] = whole or '?'
      i = i + (whole and #whole or 1)
    end
    text = table.concat(parts)
  end
  return encode_string(text)
end

local function encode_number(value)
  if value ~= value or value == math.huge or value == -math.huge then return 'null' end
  if value % 1 == 0 and math.abs(value) < 2 ^ 53 then return ('%d'):format(value) end
  local short = ('%.15g'):format(value)
  return tonumber(short) == value and short or ('%.17g'):format(value)
end

local function encode(value, out, depth)
  local kind = type(value)
  if kind == 'string' then out[#out + 1] = encode_text(value)
  elseif kind == 'number' then out[#out + 1] = encode_number(value)
  elseif kind == 'boolean' then out[#out + 1] = tostring(value)
  elseif kind ~= 'table' then out[#out + 1] = 'null'
  elseif depth > deepest then error(('json.encode: nested more than %d deep'):format(deepest), 0)
  elseif #value > 0 or getmetatable(value) == List then
    for i = 1, #value do
      out[#out + 1] = i == 1 and '[' or ','
      encode(value[i], out, depth + 1)
    end
    out[#out + 1] = #value == 0 and '[]' or ']'
  else
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = tostring(key) end -- sorted below
    table.sort(keys)
    for i, key in ipairs(keys) do
      out[#out + 1] = (i == 1 and '{' or ',') .. encode_text(key) .. ':'
      encode(value[key], out, depth + 1)
    end
    out[#out + 1] = #keys == 0 and '{}' or '}'
  end
end

--- A value as JSON on one line: keys sorted, numbers so that they read back to the same value, '<' as an escape, so
--- that the text can stand inside a page. Not a number and infinities become null.
function json.encode(value)
  local out = {}
  encode(value, out, 0)
  return table.concat(out)
end

return json
