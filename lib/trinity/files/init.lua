-- trinity.files: files and folders for scripts. The engine checks what safe scripts may open, as everywhere.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

---@class trinity.FilesModule
---@field json trinity.JsonModule readable JSON
local files = {}

--- Returns the content of a file. Raises an error if it cannot be read. Example: `trinity.files.read 'notes.txt'`
---@param path string
---@return string
function files.read(path)
  return util.read_file(check.path('files.read', 1, 'path', path), 'files.read')
end

--- Writes a file atomically: readers get either the old or the new content. Makes its folder. Raises an error if it
--- cannot be written. Example: `trinity.files.write('notes.txt', 'text')`
---@param path string
---@param content string
function files.write(path, content)
  check.path('files.write', 1, 'path', path)
  check.argument('files.write', 2, 'content', content, 'string')
  util.write_file('files.write', path, content)
end

--- Returns the sorted names in a folder, without those that begin with a dot. Raises an error if there is no such
--- folder. Example: `trinity.files.list '.'`
---@param path string
---@return string[]
function files.list(path)
  check.path('files.list', 1, 'path', path)
  local ok, names = pcall(core.list_folder, path)
  if not ok then util.fail_as(names, 'files.list') end
  if not core.exists(path .. '/.') then util.fail('files.list: %s: no such folder', util.shortened(path)) end
  return names
end

return files
