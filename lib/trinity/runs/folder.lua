-- A run's folder on disk: made once, written to until something goes wrong. A full disk, a folder that was removed or
-- may not be written ends the writing with one message; what the script does goes on.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local Folder = {}
Folder.__index = Folder

local folder = {}

--- Tells a person once that nothing more is kept.
function Folder:give_up(message)
  if self.broken then return end
  self.broken = util.unplaced(tostring(message)):gsub('^trinity%.[%w_]+: ', '')
  progress.warn(("the run's folder %s is given up: %s; the script goes on, and nothing more of it is kept there")
    :format(self.path, self.broken))
end

function Folder:try(action, path, ...)
  if self.broken then return false end
  local ok, message = pcall(action, self.path .. '/' .. path, ...)
  if not ok then self:give_up(message) end
  return ok
end

--- Replaces a file of the folder as a whole; makes missing folders below it, but not the run's folder itself, which
--- nobody but its maker may bring to life. It is not synced, as that takes 10 ms: what a loss of power could spoil
--- shows that when it is read (JSON that does not end, a reward or a number of steps that does not fit), and a resumed
--- run finds it anew.
function Folder:write(path, text, durability)
  if not self.broken and not util.exists(self.path .. '/run.json') then
    self:give_up(('%s/run.json: it is not there any more'):format(self.path))
  end
  return self:try(core.write_file, path, text, durability or 'unsynced')
end

--- The same for what must outlive a loss of power: checkpoints.
function Folder:keep(path, text) return self:write(path, text, 'synced') end

--- Replaces run.json, which is the program's alone.
function Folder:record(text)
  if not self.broken and not util.exists(self.path .. '/run.json') then
    self:give_up(('%s/run.json: it is not there any more'):format(self.path))
  end
  return self:try(core.write_record, 'run.json', text)
end

--- Adds to a file whose folder is there.
function Folder:append(path, text) return self:try(core.append_file, path, text) end

--- A name as part of the name of a folder or file.
function folder.word(text) return (tostring(text):gsub('[^%w._+-]+', '_'):gsub('^[.-]', '_'):sub(1, 48)) end

--- Opens the folder at `path`, which exists.
function folder.at(path) return setmetatable({ path = path }, Folder) end

--- Makes the folder root/name, in which `about` is run.json and `script` script.lua from its first moment, held by
--- this process; nil when there is one already. Errors of the system are raised.
function folder.make(root, name, about, script)
  local path = root .. '/' .. name
  if not core.make_folder(path, { 'run.json', about, 'script.lua', script }) then return nil end
  return folder.at(path)
end

local most_counts = 1e6

--- Makes root/base-1, or with the next count that nobody has; about(name) is what run.json says.
function folder.make_next(root, base, about, script)
  local count = 1
  for _, name in ipairs(core.list_folder(root)) do
    local taken = name:sub(1, #base + 1) == base .. '-' and tonumber(name:match('^%d+$', #base + 2))
    if taken and taken < most_counts then count = math.max(count, taken + 1) end
  end
  for number = count, count + most_counts do
    local name = ('%s-%d'):format(base, number)
    local made = folder.make(root, name, about(name), script)
    if made then return made, name end
  end
  util.fail("runs: no name '%s-N' is free", base)
end

return folder
