-- The commands of the program with the options that each declares: scripts/NAME.lua is run as far as its call of
-- trinity.options, which comes before everything that it does. Help, completions and the manual page are made of them.

local core = require 'trinity.core'
local declared = require 'trinity.command.declared'
local renamed = require 'trinity.command.renamed'
local util = require 'trinity.base.util'

local commands = {}

--- Names of the commands, sorted.
---@return string[]
function commands.names()
  local names = {}
  for _, file in ipairs(core.list_folder(core.home .. '/scripts')) do names[#names + 1] = file:match '^(.*)%.lua$' end
  return names
end

--- Refuses a word that is no command, with the words that replace it or a suggestion.
---@param word string
function commands.refuse(word)
  if renamed[word] then util.fail_usage("command '%s' was replaced; use 'trinity %s'", word, renamed[word]) end
  local names = commands.names()
  util.fail_usage("no command '%s'%s (known: %s)", word, core.suggestion(word, names), table.concat(names, ', '))
end

---@class trinity.Command
---@field name string
---@field description string
---@field options table<string, table> by name (command/declared.lua)

--- A command by its script.
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
  local all, description = declared.read(found or {}, true)
  return { name = name, description = description or '', options = all }
end

return commands
