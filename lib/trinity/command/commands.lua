-- The commands of the program with the options that each declares: scripts/NAME.lua is run as far as its call of
-- trinity.options, which comes before everything that it does. Completions and the manual page are made of them.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local commands = {}

--- Names of the scripts that come with the program, sorted.
---@return string[]
function commands.names()
  local names = {}
  for _, file in ipairs(core.list_folder(core.home .. '/scripts')) do names[#names + 1] = file:match '^(.*)%.lua$' end
  return names
end

--- Ends the program with what an unknown command may mean: its new words, or a name that is near.
---@param name string
function commands.refuse(name)
  local now = require('trinity.command.renamed')[name]
  if now then util.fail_usage("'%s' is now 'trinity %s'", name, now) end
  local names = commands.names()
  util.fail_usage("no script '%s'%s (known: %s)", name, core.suggestion(name, names), table.concat(names, ', '))
end

--- What a script's comment says first, without its end of line.
local function comment_of(path)
  local words = {}
  for line in core.read_file(path):gmatch '[^\n]*' do
    local comment = line:match '^%-%-+ *(.*)$'
    if comment then words[#words + 1] = comment elseif #words > 0 then break end
  end
  return table.concat(words, ' ')
end

---@class trinity.Command
---@field name string
---@field description string
---@field keeps_run boolean whether --run and --resume are for it
---@field options { name: string, help: string, default: any, position: boolean }[] sorted by name

--- A command by its script. Scripts that declare no options have none.
---@param name string
---@return trinity.Command
function commands.about(name)
  local trinity = require 'trinity'
  local path = ('%s/scripts/%s.lua'):format(core.home, name)
  local chunk = assert(loadstring((core.read_file(path):gsub('^#![^\n]*', '')), '@' .. path))
  local found, mark, options = nil, {}, trinity.options
  trinity.options = function(spec)
    found = spec
    error(mark, 0)
  end
  local ok, message = pcall(setfenv(chunk, setmetatable({ arg = {} }, { __index = _G })))
  trinity.options = options
  if not ok and message ~= mark then error(message, 0) end
  local list = {}
  for option, declared in util.sorted_pairs(found or {}) do
    if type(declared) == 'table' then
      list[#list + 1] = { name = option, help = declared.help or '', default = declared.default,
        position = declared.position == true }
    end
  end
  local keeps_run = not (found and found[2] == 'keeps no run')
  return { name = name, keeps_run = keeps_run, description = found and found[1] or comment_of(path), options = list }
end

return commands
