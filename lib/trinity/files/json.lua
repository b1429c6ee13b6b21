-- trinity.json: JSON as people read it, and back.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local text_json = require 'trinity.base.json'
local util = require 'trinity.base.util'

---@class trinity.JsonModule
---@since 0.1.0
local json = {}

--- A value as JSON, indented, with sorted keys. An empty table is a list; not a number and infinities are
--- null. A table that mixes a list with named fields is refused.
---@param value? any
---@return string
function json.encode(value) return text_json.text_of('json.encode', 1, 'value', value) end

local function decoded(owner, text, source)
  local ok, value = pcall(text_json.decode, text, source)
  if ok then return value end
  util.fail('%s: %s', owner, util.unplaced(value))
end

--- The value of JSON: objects and lists become tables, null nothing, and false in a list, which keeps its length.
---@param text string
---@return any
function json.decode(text)
  check.argument('json.decode', 1, 'text', text, 'string')
  return decoded('json.decode', text, 'JSON')
end

--- The value of the JSON in a file.
---@param path string
---@return any
function json.read(path)
  check.path('json.read', 1, 'path', path)
  local ok, text = pcall(core.read_file, path)
  if not ok then util.fail('json.read: %s', (util.unplaced(text):gsub('^trinity%.read_file: ', ''))) end
  return decoded('json.read', text, path)
end

return json
