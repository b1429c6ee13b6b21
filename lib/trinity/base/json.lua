-- JSON for the library: text to Lua values and back.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local json = {}

--- Parses JSON text: objects and lists become tables, null becomes nil (false in lists, which keep their length).
--- `what` (default 'JSON') begins error messages, before line and column.
function json.decode(text, what)
  local ok, value = pcall(core.from_json, text, what or 'JSON')
  if ok then return value end
  error(util.plain(value), 0)
end

--- Returns the text of a file, unpacked if it is a gzip file.
function json.text(path)
  local text = util.read_file(path)
  if text:sub(1, 2) ~= '\31\139' then return text end
  local ok, unpacked = pcall(core.read_compressed, path)
  if ok then return unpacked end
  error(util.plain(unpacked), 0)
end

--- Returns the value in a file.
function json.read(path) return json.decode(json.text(path), path) end

--- Returns the object or list in a file, or nil.
function json.try(path)
  local ok, value = pcall(json.read, path)
  return ok and type(value) == 'table' and value or nil
end

--- Returns an argument's value as JSON with sorted keys, or raises an error that names the argument. `form`: nil for
--- indented JSON; 'line' for one line; 'exact' for one line and only values that are read back unchanged
--- (core.to_json).
function json.text_of(owner, place, name, value, form)
  local ok, text = pcall(core.to_json, value, form)
  if ok then return text end
  check.refuse(owner, place, name, '%s', util.plain(text))
end

--- Returns a value as JSON on one line. Numbers are read back exactly; infinity and NaN become null. An empty table is
--- a list. Raises an error for a table that mixes a list with named fields.
function json.encode(value) return json.text_of('json.encode', 1, 'value', value, 'line') end

return json
