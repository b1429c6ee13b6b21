-- Shell completion for bash and the manual page, both made from the commands' declarations.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local declared = require 'trinity.command.declared'
local manual = require 'trinity.command.manual'
local util = require 'trinity.base.util'

local completion = {}

-- Options of the program before a command; those with a value end in '='.
local program = { { '-e=', 'run a piece of Lua' }, { '-l=', 'require a module' }, { '-i',
  'open the prompt after the script' },
  { '--threads=', 'worker threads' }, { '--no-strict', 'do not refuse globals that were never declared' },
  { '--safe', 'restrict an untrusted script' }, { '--write=', 'directory that safe scripts may also read and write' },
  { '--memory-limit=', 'maximum memory of Lua values, and the same again for tensors and graphs' },
  { '--time-limit=', 'for each script, in seconds' }, { '--profile=', 'write a profile of the script' },
  { '--version', 'print the version' }, { '--help', 'print help' } }

--- Returns the visible options of a command, sorted by name: { { name = '--batch-size', help = } }.
local function options_of(command)
  local list = {}
  for name, option in util.sorted_pairs(command.options) do
    if not option.hidden then
      list[#list + 1] = { name = declared.shown(name), help = declared.about(option), common = option.common }
    end
  end
  list[#list + 1] = { name = '--help', help = 'list the options', common = true }
  if declared.has_rare(command.options) then
    list[#list + 1] = { name = '--help-all', help = 'list rare options, too', common = true }
  end
  return list
end

local function every_command()
  return util.map(commands.names(), commands.about)
end

local function topics()
  local list = {}
  for _, names in ipairs { commands.names(), manual.names() } do
    for _, name in ipairs(names) do list[#list + 1] = name end
  end
  return list
end

--- Completion for bash: commands, options of each, topics of help; elsewhere names of files.
function completion.bash()
  local out = { '# bash completion of trinity: source it, or put it where bash-completion looks.', '_trinity() {',
    '  local word=${COMP_WORDS[COMP_CWORD]} command= options= i', '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case ${COMP_WORDS[i]} in', '      -e|-l|--threads|--write|--memory-limit|--time-limit|--profile) ((i++)) ;;',
    '      -*) ;;', '      *) command=${COMP_WORDS[i]}; break ;;', '    esac', '  done', '  case $command in' }
  local names = commands.names()
  local words = util.map(program, function(p) return (p[1]:gsub('=$', '')) end)
  out[#out + 1] = ("    '') options='%s %s' ;;"):format(table.concat(words, ' '), table.concat(names, ' '))
  for _, command in ipairs(every_command()) do
    local list = util.map(options_of(command), function(option) return option.name end)
    for _, topic in ipairs(command.name == 'help' and topics() or {}) do list[#list + 1] = topic end
    out[#out + 1] = ("    %s) options='%s' ;;"):format(command.name, table.concat(list, ' '))
  end
  local rest = { '  esac', "  if [[ $command && $command != help && $word != -* ]]; then", '    COMPREPLY=()', '  else',
    '    COMPREPLY=($(compgen -W "$options" -- "$word"))', '  fi', '}',
    'complete -o default -o bashdefault -F _trinity trinity' }
  for _, line in ipairs(rest) do out[#out + 1] = line end
  return table.concat(out, '\n') .. '\n'
end

--- Escapes a text for roff: backslashes, hyphens, and characters that begin a request.
local function roff(text)
  return (text:gsub('\\', '\\e'):gsub('%-', '\\-'):gsub('\n', ' '):gsub("^([.'])", '\\&%1'))
end

local function options_in_roff(out, list, is_common)
  for _, option in ipairs(list) do
    if (option.common or false) == is_common then
      out[#out + 1] = ('.TP\n\\fB%s\\fR\n%s'):format(roff(option.name), roff(option.help))
    end
  end
end

--- The manual page trinity(1), in roff.
function completion.man()
  local out = { '.TH TRINITY 1 "" "trinity ' .. core.version .. '" "User Commands"', '.SH NAME',
    'trinity \\- a laboratory for parallel\\-training strategies', '.SH SYNOPSIS',
    '.B trinity\n[\\fIoptions\\fR] \\fISCRIPT.lua\\fR [\\fIarguments\\fR]\n.br',
    '.B trinity\n[\\fIoptions\\fR] \\fICOMMAND\\fR [\\fIarguments\\fR]',
    '.SH OPTIONS' }
  for _, p in ipairs(program) do
    local name, value = p[1]:gsub('=$', '')
    out[#out + 1] = ('.TP\n\\fB%s\\fR%s\n%s'):format(roff(name), value > 0 and ' \\fIVALUE\\fR' or '', roff(p[2]))
  end
  out[#out + 1] = '.SH OPTIONS OF EVERY COMMAND'
  local every = every_command()
  options_in_roff(out, options_of { options = declared.read({}, true) }, true)
  out[#out + 1] = '.SH COMMANDS'
  for _, command in ipairs(every) do
    out[#out + 1] = ('.SS trinity %s\n%s'):format(command.name, roff(command.description))
    options_in_roff(out, options_of(command), false)
  end
  out[#out + 1] = '.SH EXIT STATUS\n0 on success, 1 on an error or where nothing fits, 2 for a wrong command line, '
    .. '130 after Ctrl\\-C.'
  out[#out + 1] = '.SH SEE ALSO\n\\fBtrinity help\\fR lists the chapters of the manual.'
  return table.concat(out, '\n') .. '\n'
end

return completion
