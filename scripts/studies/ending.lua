-- How studies that take long end: the command line that made their output, and what Ctrl-C leaves.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'

local ending = {}

--- Returns the script's command line without the options about its run, for 'made by:'.
function ending.words()
  local words, given, skip = {}, rawget(_G, 'arg') or {}, false
  for _, word in ipairs(given) do
    if skip then skip = false
    elseif word == '--run' or word == '--runs' then skip = true
    elseif not word:match '^%-%-runs?=' and word ~= '--resume' and word ~= '--quiet' then words[#words + 1] = word end
  end
  return table.concat(words, ' ')
end

--- Ends the script after Ctrl-C or SIGTERM with its exit status. Prints what is done ('3 of 10 settings') and how to
--- resume.
function ending.leave_stopped(what)
  local name = require('trinity.runs').name
  progress.warn(('stopped by %s: %s are done%s'):format(core.stop_name(), what,
    name and (", 'trinity runs resume %s' continues"):format(name) or ''))
  os.exit(core.stop_status())
end

return ending
