-- JSON for the library: text to Lua values and back.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

local json = {}

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

--- A value of an argument as JSON with sorted keys, or a message that names the argument. `form`: nil for JSON with
--- indents, 'line' or 'exact': on one line, and then only values that read back as they are (core.to_json).
function json.text_of(owner, place, name, value, form)
  local ok, text = pcall(core.to_json, value, form)
  if ok then return text end
  check.refuse(owner, place, name, '%s', (util.unplaced(text):gsub('^trinity%.to_json: ', '')))
end

--- A value as JSON on one line. Numbers read back to the same value; those that are not finite are null. An empty table
--- is a list; one that mixes a list with named fields is refused.
function json.encode(value) return json.text_of('json.encode', 1, 'value', value, 'line') end

return json
