-- trinity.files.json: values as readable JSON, and back.

local check = require 'trinity.base.check'
local text_json = require 'trinity.base.json'
local util = require 'trinity.base.util'

---@class trinity.JsonModule
local json = {}

--- Returns a value as indented JSON with sorted keys. An empty table is a list; NaN and infinity become null. Raises an
--- error for a table that mixes a list with named fields. Example: `trinity.files.json.encode { a = 1 }`
---@param value? any
---@return string
function json.encode(value) return text_json.text_of('files.json.encode', 1, 'value', value) end

local function decoded(owner, text, source)
  local ok, value = pcall(text_json.decode, text, source)
  if ok then return value end
  util.fail('%s: %s', owner, util.unplaced(value))
end

--- Returns the value of JSON: objects and lists become tables; null becomes nil, or false in a list, which keeps its
--- length. Raises an error that names line and column. Example: `trinity.files.json.decode '{"a": 1}'`
---@param text string
---@return any
function json.decode(text)
  check.argument('files.json.decode', 1, 'text', text, 'string')
  return decoded('files.json.decode', text, 'JSON')
end

--- Returns the value of the JSON in a file. Raises an error if it cannot be read or is malformed. Example:
--- `trinity.files.json.read 'a.json'`
---@param path string
---@return any
function json.read(path)
  local text = util.read_file(check.path('files.json.read', 1, 'path', path), 'files.json.read')
  return decoded('files.json.read', text, path)
end

return json
