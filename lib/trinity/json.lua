-- JSON for the library: text to Lua values and back, on one line. (core.to_json writes JSON for people, indented.)
--
--   json.decode(text, what)  objects and lists become tables, null becomes nil (false inside lists, which keep their
--                            length); an error names `what` and the byte
--   json.encode(value)       keys sorted, numbers so that they read back to the same value, '<' as an escape, so that
--                            the text can stand inside a page; json.list marks a table as a list though it is empty

local json = {}

local deepest = 200

local escapes = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/' }

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xC0 + math.floor(code / 0x40), 0x80 + code % 0x40) end
  if code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 0x1000), 0x80 + math.floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
  end
  return string.char(0xF0 + math.floor(code / 0x40000), 0x80 + math.floor(code / 0x1000) % 0x40,
    0x80 + math.floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
end

local function fail(at, message) error({ json = true, at = at, message = message }, 0) end

--- The text of an escape whose backslash is at `i`, and the byte behind it.
local function unescape(text, i)
  local letter = text:sub(i + 1, i + 1)
  if letter ~= 'u' then
    return escapes[letter] or fail(i, 'an unknown escape'), i + 2
  end
  local code = tonumber(text:match('^%x%x%x%x', i + 2) or fail(i, 'an escape without four digits'), 16)
  if code >= 0xD800 and code < 0xDC00 then
    local low = text:match('^\\u([dD][c-fC-F]%x%x)', i + 6)
    if not low then return '\239\191\189', i + 6 end
    return utf8(0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00), i + 12
  end
  if code >= 0xDC00 and code < 0xE000 then return '\239\191\189', i + 6 end
  return utf8(code), i + 6
end

--- The string whose opening quote is at `i`, and the byte behind its closing one.
local function read_string(text, i)
  local stop = text:find('["\\]', i + 1)
  if stop and text:byte(stop) == 34 then return text:sub(i + 1, stop - 1), stop + 1 end
  local parts, from = {}, i + 1
  while stop do
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:byte(stop) == 34 then return table.concat(parts), stop + 1 end
    parts[#parts + 1], from = unescape(text, stop)
    stop = text:find('["\\]', from)
  end
  fail(i, 'a string without an end')
end

local read_value

local function skip(text, i) return text:find('[^ \t\r\n]', i) or #text + 1 end

local function read_list(text, i, depth)
  local list, n = {}, 0
  i = skip(text, i + 1)
  if text:byte(i) == 93 then return list, i + 1 end
  while true do
    local value
    value, i = read_value(text, i, depth)
    if value == nil then value = false end
    n = n + 1
    list[n] = value
    i = skip(text, i)
    local byte = text:byte(i)
    if byte == 93 then return list, i + 1 end
    if byte ~= 44 then fail(i, "expected ',' or ']'") end
    i = skip(text, i + 1)
  end
end

local function read_object(text, i, depth)
  local object = {}
  i = skip(text, i + 1)
  if text:byte(i) == 125 then return object, i + 1 end
  while true do
    if text:byte(i) ~= 34 then fail(i, 'expected a name in quotes') end
    local key
    key, i = read_string(text, i)
    i = skip(text, i)
    if text:byte(i) ~= 58 then fail(i, "expected ':'") end
    object[key], i = read_value(text, skip(text, i + 1), depth)
    i = skip(text, i)
    local byte = text:byte(i)
    if byte == 125 then return object, i + 1 end
    if byte ~= 44 then fail(i, "expected ',' or '}'") end
    i = skip(text, i + 1)
  end
end

local words = { ['true'] = true, ['false'] = false }

function read_value(text, i, depth)
  local byte = text:byte(i)
  if byte == 34 then return read_string(text, i) end
  if byte == 123 or byte == 91 then
    if depth >= deepest then fail(i, ('nested more than %d deep'):format(deepest)) end
    return (byte == 123 and read_object or read_list)(text, i, depth + 1)
  end
  local number = text:match('^-?%d+%.?%d*[eE]?[+-]?%d*', i)
  if number and tonumber(number) then return tonumber(number), i + #number end
  local word = text:match('^%a+', i)
  if word == 'null' then return nil, i + 4 end
  if words[word] == nil then fail(i, byte and 'expected a value' or 'the text ends early') end
  return words[word], i + #word
end

--- A value from JSON text. `what` (default 'JSON') begins the message of an error.
function json.decode(text, what)
  local ok, value, after = pcall(read_value, text, skip(text, 1), 0)
  if ok then
    after = skip(text, after)
    if after <= #text then ok, value = false, { json = true, at = after, message = 'more text behind the value' } end
  end
  if ok then return value end
  if type(value) ~= 'table' or not value.json then error(value, 0) end
  error(('%s: %s at byte %d'):format(what or 'JSON', value.message, value.at), 0)
end

local List = {}

--- Marks a table as a list, also where it is empty.
function json.list(t) return setmetatable(t, List) end

local function encode_string(text)
  return '"' .. text:gsub('[%c"\\<>&\127]', function(c) return ('\\u%04x'):format(c:byte()) end) .. '"'
end

--- Broken UTF-8 becomes '?': a page must stay readable whatever a name holds.
local function encode_text(text)
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

--- A value as JSON on one line. Not a number and infinities become null.
function json.encode(value)
  local out = {}
  encode(value, out, 0)
  return table.concat(out)
end

return json
