-- The commands of the program and their declared options. scripts/NAME.lua is run up to its call of trinity.options,
-- which comes first. Help, completions and the manual page use the result.

local core = require 'trinity.core'
local declared = require 'trinity.command.declared'
local renamed = require 'trinity.base.renamed'
local util = require 'trinity.base.util'

local commands = {}

function commands.names() return util.lua_names(core.home .. '/scripts') end

--- Raises a usage error for an unknown command, with its replacement or a suggestion.
function commands.refuse(word)
  if renamed[word] then util.fail_usage("command '%s' was replaced; use 'trinity %s'", word, renamed[word]) end
  local names = commands.names()
  util.fail_usage("no command '%s'%s (known: %s)", word, core.suggestion(word, names), table.concat(names, ', '))
end

--- Returns a command's name, description and options by name (command/declared.lua).
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
