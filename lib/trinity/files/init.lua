-- trinity.files: files and folders of scripts. What safe scripts may open is the engine's to say, as everywhere.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

---@class trinity.FilesModule
---@since 0.1.0
local files = {}

--- The content of a file.
---@param path string
---@return string
function files.read(path)
  check.path('files.read', 1, 'path', path)
  local ok, content = pcall(core.read_file, path)
  if ok then return content end
  util.fail('files.read: %s', (util.unplaced(content):gsub('^trinity%.read_file: ', '')))
end

--- Writes a file, whole or not at all: whoever reads it meanwhile has the old one. Makes its folder.
---@param path string
---@param content string
function files.write(path, content)
  check.path('files.write', 1, 'path', path)
  check.argument('files.write', 2, 'content', content, 'string')
  util.write_file('files.write', path, content)
end

--- The names in a folder, sorted, without those that begin with a dot.
---@param path string
---@return string[]
function files.list(path)
  check.path('files.list', 1, 'path', path)
  local ok, names = pcall(core.list_folder, path)
  if not ok then util.fail('files.list: %s', (util.unplaced(names):gsub('^trinity%.list_folder: ', ''))) end
  if not core.exists(path .. '/.') then util.fail('files.list: %s: no such folder', util.shortened(path)) end
  return names
end

return files
