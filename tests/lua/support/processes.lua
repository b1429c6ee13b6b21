-- The program in processes of its own, for specs: shell commands, jobs of several ranks, scripts that are removed again.

local core = require 'trinity.core'

local processes = { program = core.program() }

local written = {}

--- Remembers a file for clean().
function processes.to_remove(path) written[#written + 1] = path end

--- A file with a script, removed at the end.
function processes.write_script(text)
  local path = os.tmpname()
  core.write_file(path, text)
  processes.to_remove(path)
  return path
end

--- Runs a shell command with the program as $T: exit status, output with errors, seconds. set: what else to set, as the
--- shell has it ("F='folder' ...").
function processes.shell(command, set)
  local start = core.clock_s()
  local pipe = io.popen(("cd '%s' && export TRINITY_HOME='%s' T='%s' %s && { %s ; } 2>&1; echo \"status=$?\""):format(core.home,
    core.home, processes.program, set or '', command))
  local output = pipe:read '*a'
  pipe:close()
  local text, status = output:match '^(.*)status=(%d+)\n$'
  return tonumber(status), text, core.clock_s() - start
end

--- The words that start the program as the ranks of a job, on nodes of `per_node` ranks (default: on one).
function processes.ranks(count, per_node)
  return ('timeout -k 5 100 sh "$TRINITY_HOME"/tests/lua/support/ranks.sh %d %d "$T" --threads 1'):format(count, per_node or count)
end

--- Runs a script in `count` processes of a job: exit status, output, seconds. options: per_node, arguments.
function processes.launch(count, text, options)
  options = options or {}
  return processes.shell(('%s %s %s'):format(processes.ranks(count, options.per_node), processes.write_script(text),
    options.arguments or ''))
end

--- Removes what was written.
function processes.clean()
  for _, path in ipairs(written) do os.remove(path) end
end

return processes
