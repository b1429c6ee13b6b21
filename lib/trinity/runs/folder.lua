-- A run folder on disk. If it cannot be written (a full disk, a removed folder, missing permissions), one warning is
-- printed, nothing more is written, and the script continues.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local Folder = {}
Folder.__index = Folder

local folder = {}

--- Warns once that nothing more is saved.
function Folder:give_up(message)
  if self.broken then return end
  self.broken = util.plain(message)
  progress.warn(('cannot write to the run folder %s: %s; the script continues, but its results are no longer saved')
    :format(self.path, self.broken))
end

function Folder:try(action, path, ...)
  if self.broken then return false end
  local ok, message = pcall(action, self.path .. '/' .. path, ...)
  if not ok then self:give_up(message) end
  return ok
end

--- Replaces a file of the folder atomically. Makes missing folders below the run folder, but not the run folder itself.
--- The file is not synced, because that takes 10 ms: files damaged by a power loss are detected when they are read
--- (incomplete JSON, a wrong reward or number of steps), and a resumed run computes them again.
function Folder:write(path, text, durability)
  if not self.broken and not util.exists(self.path .. '/run.json') then
    self:give_up(('%s/run.json no longer exists'):format(self.path))
  end
  return self:try(core.write_file, path, text, durability or 'unsynced')
end

--- Same, for checkpoints, which must survive a power loss.
function Folder:keep(path, text) return self:write(path, text, 'synced') end

function Folder:append(path, text) return self:try(core.append_file, path, text) end

--- Converts a name for use in folder and file names.
function folder.word(text) return (tostring(text):gsub('[^%w._+-]+', '_'):gsub('^[.-]', '_'):sub(1, 48)) end

--- Opens the existing folder at `path`.
function folder.at(path) return setmetatable({ path = path }, Folder) end

--- Makes the folder root/name with run.json (`about`), script.lua (`script`) and a seal atomically, held by this
--- process unless `unheld` is given; returns nil if it exists already. Raises errors of the system.
function folder.make(root, name, about, script, seal, unheld)
  local path = root .. '/' .. name
  if not core.make_folder(path, { 'run.json', about, 'script.lua', script }, seal, unheld) then return nil end
  return folder.at(path)
end

local most_counts = 1e6

--- Makes root/base-1, or with the next free number; about(name) returns the content of run.json.
function folder.make_next(root, base, about, ...)
  local count = 1
  for _, name in ipairs(core.list_folder(root)) do
    local taken = name:sub(1, #base + 1) == base .. '-' and tonumber(name:match('^%d+$', #base + 2))
    if taken and taken < most_counts then count = math.max(count, taken + 1) end
  end
  for number = count, count + most_counts do
    local name = ('%s-%d'):format(base, number)
    local made = folder.make(root, name, about(name), ...)
    if made then return made, name end
  end
  util.fail("runs: expected a free name '%s-N', got none", base)
end

return folder
