-- Reads JSON text into Lua values, for specs that look into shared data. Objects and lists become tables,
-- null becomes nil.

local read

local function skip(text, at) return text:find('[^%s]', at) end

local function read_string(text, at)
  local close = text:find('"', at + 1, true) -- no escapes in the data
  return text:sub(at + 1, close - 1), close + 1
end

local function read_list(text, at)
  local list = {}
  at = skip(text, at + 1)
  while text:sub(at, at) ~= ']' do
    list[#list + 1], at = read(text, at)
    at = skip(text, at)
    if text:sub(at, at) == ',' then at = skip(text, at + 1) end
  end
  return list, at + 1
end

local function read_object(text, at)
  local object = {}
  at = skip(text, at + 1)
  while text:sub(at, at) ~= '}' do
    local key
    key, at = read_string(text, at)
    object[key], at = read(text, skip(text, skip(text, at) + 1))
    at = skip(text, at)
    if text:sub(at, at) == ',' then at = skip(text, at + 1) end
  end
  return object, at + 1
end

local words = { ['true'] = true, ['false'] = false }

function read(text, at)
  at = skip(text, at)
  local first = text:sub(at, at)
  if first == '{' then return read_object(text, at) end
  if first == '[' then return read_list(text, at) end
  if first == '"' then return read_string(text, at) end
  local word = text:match('^[^%s,%]}]+', at)
  local value = words[word]
  if value == nil then value = tonumber(word) end
  return value, at + #word
end

return function(text) return (read(text, 1)) end
